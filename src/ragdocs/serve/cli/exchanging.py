"""Commands that take memories over from other tools, and write them for others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ragdocs.serve.cli.commands import VerbCommand, common_options
from ragdocs.serve.cli.output import print_answer
from ragdocs.serve.cli.project import (
    catch_up,
    catch_up_in_time,
    complete,
    open_workspace,
)
from ragdocs.verbs.exchange import formats
from ragdocs.verbs.exchange.note import KEPT, NEW, OUTCOMES, PRESENT, REFUSED

# Lines of a report; more are counted.
LISTED = 50
IMPORT_EXAMPLES = f"""\
examples:
  ragdocs import notes/ --dry-run            what would be written; the format is detected
  ragdocs import server-memory memory.jsonl
  ragdocs import obsidian ~/vault --into vault
  ragdocs import rules .                     CLAUDE.md, AGENTS.md and Cursor rules of a project
  ragdocs import ~/.claude-mem/claude-mem.db --from-project harbour
  ragdocs import adr docs/adr --tag architecture --json

formats: {", ".join(formats.READABLE)}

Memories that exist are never overwritten, and a second import writes only what is new.
`ragdocs memory undo` takes a whole import back.

exit codes: 0 done, 1 the source cannot be read and nothing was written, 2 wrong usage
"""
EXPORT_EXAMPLES = f"""\
examples:
  ragdocs export markdown backup/            the files as they are
  ragdocs export memories.jsonl              JSON lines with everything
  ragdocs export server-memory memory.jsonl
  ragdocs export obsidian vault/
  ragdocs export memories.html               one page to read

formats: {", ".join(formats.WRITABLE)}

Secrets are left out. A file or folder that exists is not touched.

exit codes: 0 done, 1 failed and nothing was written, 2 wrong usage
"""
OUTCOME_WORDS = {
    NEW: "new",
    PRESENT: "already there",
    KEPT: "not written, because a memory with another text is there",
    REFUSED: "refused",
}


def _import(
    project: str | None,
    as_json: bool,
    settings: tuple[str, ...],
    *,
    words: tuple[str, ...],
    **options: Any,
) -> int:
    from ragdocs.stores.files.store import FileStore
    from ragdocs.verbs.exchange.detect import detect
    from ragdocs.verbs.exchange.importing import Import, without_texts

    name, path = _format_and_path(words, formats.READABLE)
    form = formats.FORMATS[name] if name else detect(path)
    workspace = open_workspace(project, settings, lanes=("memory",))
    catch_up(workspace, embed=False)
    memories = workspace.memories
    store = memories.corpus.store
    # A team's database dates its revisions itself.
    adopt = store.adopt if isinstance(store, FileStore) else None
    importer = Import(memories.corpus, memories.clock, workspace.scope, adopt)
    report = importer.run(form, path, **options)
    if report.is_written:
        catch_up_in_time(workspace, embed=True)
        complete(workspace, project, settings)
    counts = {outcome: report.count(outcome) for outcome in OUTCOMES}
    answer = {**asdict(without_texts(report)), "counts": counts}
    for memory in answer["memories"]:
        del memory["text"]
    print_answer(answer, _import_text, as_json=as_json)
    return 0


def _import_text(answer: Mapping[str, Any]) -> str:
    counts = answer["counts"]
    done = "would be imported"
    if answer["is_written"]:
        done = "imported"
    elif not counts[NEW]:
        done = "to import"
    lines = [f"{answer['source']} ({answer['format']}): {_memories(counts[NEW])} {done}"]
    if len(answer["projects"]) > 1:
        named = []
        for name, count in answer["projects"].items():
            named.append(f"{name} ({count})")
        lines.append(f"  projects there: {', '.join(named)}; --from-project takes one of them")
    for outcome in (PRESENT, KEPT, REFUSED):
        if counts[outcome]:
            lines.append(f"  {counts[outcome]} {OUTCOME_WORDS[outcome]}")
    changes = [memory for memory in answer["memories"] if memory["outcome"] != PRESENT]
    for memory in changes[:LISTED]:
        lines.append(_memory_line(memory))
    if len(changes) > LISTED:
        lines.append(f"… and {len(changes) - LISTED} more; --json lists all")
    if answer["is_written"]:
        lines.append("`ragdocs memory undo` takes this import back")
    return "\n".join(lines)


def _memory_line(memory: Mapping[str, Any]) -> str:
    remarks = [memory["kind"]]
    if memory["reason"]:
        remarks.append(memory["reason"])
    if memory["secrets"]:
        remarks.append(f"secrets left out: {memory['secrets']}")
    return f"{memory['outcome']}: {memory['path']} ({'; '.join(remarks)})"


def _export(
    project: str | None, as_json: bool, settings: tuple[str, ...], *, words: tuple[str, ...]
) -> int:
    from ragdocs.verbs.exchange.detect import detect_target
    from ragdocs.verbs.exchange.exporting import Export

    name, path = _format_and_path(words, formats.WRITABLE)
    form = formats.FORMATS[name] if name else detect_target(path)
    workspace = open_workspace(project, settings, lanes=("memory",))
    catch_up(workspace, embed=False)
    report = Export(workspace.memories.corpus).run(form, path)
    print_answer(asdict(report), _export_text, as_json=as_json)
    return 0


def _memories(count: int) -> str:
    if count == 1:
        return "1 memory"
    return f"{count} memories"


def _export_text(answer: Mapping[str, Any]) -> str:
    memories = _memories(answer["memories"])
    lines = [f"{answer['target']} ({answer['format']}): {memories} exported"]
    if answer["secrets"]:
        lines.append(f"  secrets left out: {answer['secrets']}")
    for reason in answer["left_out"]:
        lines.append(f"left out: {reason}")
    return "\n".join(lines)


def _format_and_path(words: tuple[str, ...], formats: Sequence[str]) -> tuple[str, Path]:
    """Return the format, empty if it is to be detected, and the path."""
    if len(words) == 1:
        return "", Path(words[0])
    name, *rest = words
    if len(rest) != 1:
        raise click.UsageError("name a format and one path, or a path alone")
    if name not in formats:
        raise click.UsageError(f"{name!r} is not a format; use one of {', '.join(formats)}")
    return name, Path(rest[0])


def _command(
    name: str, about: str, run: Callable[..., int], *options: click.Parameter, epilog: str
) -> click.Command:
    words = click.Argument(["words"], nargs=-1, required=True, metavar="[FORMAT] PATH")
    params = [words, *options, *common_options()]
    return VerbCommand(name, help=about, params=params, callback=run, epilog=epilog)


COMMANDS = (
    _command(
        "import",
        "take memories over from another tool",
        _import,
        click.Option(
            ["--into"],
            metavar="FOLDER",
            help="the folder of the memories (default: by the format)",
        ),
        click.Option(
            ["--tag", "tags"],
            multiple=True,
            metavar="TAG",
            help="a tag for all of them; repeatable",
        ),
        click.Option(
            ["--from-project"],
            default="",
            metavar="NAME",
            help="only this project of the source, where it has several",
        ),
        click.Option(["--dry-run"], is_flag=True, help="show what would be written, only"),
        epilog=IMPORT_EXAMPLES,
    ),
    _command(
        "export",
        "write all memories for another tool, or to read",
        _export,
        epilog=EXPORT_EXAMPLES,
    ),
)
