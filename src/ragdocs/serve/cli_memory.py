"""`ragdocs memory …`: the verbs of the memory tools, from a terminal."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragdocs.errors import StorageError, ValidationError
from ragdocs.serve import bounds, cli, cli_entries

if TYPE_CHECKING:
    from ragdocs.workspace import Workspace

EXAMPLES = """\
examples:
  ragdocs memory create auth-plan.md --type plan --tag auth --content "Move [[src/auth.py]] to JWT"
  ragdocs memory append auth-plan.md < progress.md
  ragdocs memory linked src/auth.py --query "known problems"
  ragdocs memory merge a.md b.md --into auth.md --file summary.md
  ragdocs memory edit auth-plan.md --section Progress --mode append --text "- shipped"
  ragdocs memory rename auth-plan.md auth/plan.md
  ragdocs memory log auth-plan.md && ragdocs memory restore auth-plan.md
  ragdocs memory undo
"""
# Said at the end of the help of each command about earlier texts.
EXIT_CODES = "exit codes: 0 done, 1 failed or refused with nothing changed, 2 wrong usage"
COLOURS = {"+": "32", "-": "31", "@": "36"}

Verb = Callable[["Workspace", argparse.Namespace], Any]


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], common: argparse.ArgumentParser) -> None:
    """Add the memory commands to the parser."""
    memory = commands.add_parser(
        "memory",
        help="create, read, change, find and merge memories",
        epilog=EXAMPLES,
    )
    verbs = memory.add_subparsers(title="memory commands", metavar="VERB", required=True)

    def verb(
        name: str, help_text: str, run: Verb, text: str, *, filename: bool = True, epilog: str = ""
    ) -> argparse.ArgumentParser:
        command = verbs.add_parser(
            name,
            parents=[common],
            help=help_text,
            epilog=epilog and f"examples:\n{epilog}\n{EXIT_CODES}",
        )
        if filename:
            command.add_argument("filename", help="the memory's file name below the memory folder")
        command.set_defaults(run=lambda options: _run(options, run, text))
        return command

    _add_writing(verb)
    _add_finding(verb)
    _add_upkeep(verb)
    _add_past(verb)
    cli_entries.add(verb)


def _add_writing(verb: Callable[..., argparse.ArgumentParser]) -> None:
    command = verb("create", "write a new memory", _create, "saved")
    _add_content(command)
    command.add_argument("--tag", action="append", default=[], help="a tag; may be repeated")
    command.add_argument("--type", default="journal", help="journal, plan, fact, observation or reflection")
    for name, run, help_text in (
        ("update", _update, "replace a memory entirely"),
        ("append", _append, "add to the end of a memory"),
    ):
        command = verb(name, help_text, run, "saved")
        _add_content(command)
        command.add_argument("--expect", metavar="VERSION", help="refuse if the memory is at another version")
    command = verb(
        "edit",
        "change a part of a memory",
        _edit,
        "edited",
        epilog="  ragdocs memory edit plan.md --find 'in May' --text 'in June'\n"
        "  ragdocs memory edit plan.md --section 'Plan > Progress' --mode append --text '- shipped'\n"
        "  ragdocs memory edit plan.md --field status=archived --field draft=\n",
    )
    command.add_argument("--text", help="the new text")
    command.add_argument("--find", help="the passage to change, as it stands in the memory")
    command.add_argument("--section", help="the section to change, by its heading")
    command.add_argument("--mode", default="replace", help="replace (default), replace_all, append or prepend")
    command.add_argument(
        "--field", action="append", default=[], metavar="KEY=VALUE", help="a field to set; KEY= removes it"
    )
    command.add_argument("--expect", metavar="VERSION", help="refuse if the memory is at another version")
    command = verb("delete", "move a memory to the trash", _delete, "deleted")
    command.add_argument("--expect", metavar="VERSION", help="refuse if the memory is at another version")


def _add_finding(verb: Callable[..., argparse.ArgumentParser]) -> None:
    command = verb("read", "print a memory", lambda w, o: w.memories.read(o.filename, o.lines), "memory")
    command.add_argument("--lines", help="only these lines, such as 10-40")
    command = verb("search", "find memories", _search, "memories", filename=False)
    command.add_argument("query", nargs="+", help="what to look for, in plain words")
    command.add_argument("--limit", type=int, default=5, help="how many results (default: 5)")
    command.add_argument("--tag", action="append", default=[], help="only memories with one of these tags")
    command.add_argument("--type", help="only memories of this type")
    command.add_argument("--archived", action="store_true", help="archived memories too")
    command.add_argument("--explain", action="store_true", help="show every contribution to each score")
    command = verb("linked", "find memories that link to a file", _linked, "linked", filename=False)
    command.add_argument("target", help="the document or source file, such as src/auth.py")
    command.add_argument("--query", default="", help="what to rank the memories by")
    command.add_argument("--limit", type=int, default=5, help="how many results (default: 5)")


def _add_upkeep(verb: Callable[..., argparse.ArgumentParser]) -> None:
    verb("stats", "count memories, tags and types", lambda w, _: w.memories.stats(), "stats", filename=False)
    command = verb("merge", "make one memory of several", _merge, "merged", filename=False)
    command.add_argument("sources", nargs="+", help="the memories to replace")
    command.add_argument("--into", required=True, metavar="FILENAME", help="the memory to write")
    _add_content(command)
    command = verb("suggest", "list groups of similar memories", _suggest, "clusters", filename=False)
    command.add_argument("--threshold", type=float, default=0.85, help="similarity from 0.0 to 1.0 (default: 0.85)")
    command.add_argument("--limit", type=int, default=5, help="how many groups (default: 5)")
    command.add_argument("--type", default="journal", help='only memories of this type, or "all" (default: journal)')
    command = verb(
        "rename",
        "give a memory another name and rewrite the links to it",
        _rename,
        "renamed",
        epilog="  ragdocs memory rename notes.md auth/session-notes.md\n",
    )
    command.add_argument("new_name", help="the new file name")
    command.add_argument("--expect", metavar="VERSION", help="refuse if the memory is at another version")


def _add_past(verb: Callable[..., argparse.ArgumentParser]) -> None:
    command = verb(
        "log",
        "list the earlier texts of memories, newest first",
        _log,
        "revisions",
        filename=False,
        epilog="  ragdocs memory log\n  ragdocs memory log auth-plan.md --limit 50 --json\n",
    )
    command.add_argument("filename", nargs="?", default="", help="one memory only, under all names it had")
    command.add_argument("--limit", type=int, default=20, help="how many (default: 20)")
    command = verb(
        "diff",
        "show what changed between two texts of a memory",
        _diff,
        "difference",
        epilog="  ragdocs memory diff auth-plan.md\n  ragdocs memory diff auth-plan.md 3f2a9b8c 77aa01bc\n",
    )
    command.add_argument("before", nargs="?", help="a version from the log (default: the latest that was replaced)")
    command.add_argument("after", nargs="?", help="another version (default: the text there now)")
    command = verb(
        "restore",
        "bring back an earlier text of a memory, or a deleted one",
        _restore,
        "saved",
        epilog="  ragdocs memory restore auth-plan.md\n  ragdocs memory restore auth-plan.md 3f2a9b8c\n",
    )
    command.add_argument("revision", nargs="?", metavar="version", help="from the log (default: the latest replaced)")
    verb(
        "undo",
        "take back the last change of any memory, whole",
        lambda w, _: w.versions.undo(),
        "undone",
        filename=False,
        epilog="  ragdocs memory undo\n  ragdocs memory undo --json\n",
    )


def _add_content(command: argparse.ArgumentParser) -> None:
    group = command.add_mutually_exclusive_group()
    group.add_argument("--content", help="the text")
    group.add_argument("--file", type=Path, help="a file with the text (default: standard input)")


def read_content(options: argparse.Namespace) -> str:
    """Return the text that the options name, or that is piped in."""
    if options.content is not None:
        return str(options.content)
    if options.file is None and sys.stdin.isatty():
        raise ValidationError("there is no text", "Give --content or --file, or pipe the text in")
    return read_text(options.file)


def read_text(file: Path | None) -> str:
    """Return the text of a file, or of standard input, as far as a text may be long."""
    try:
        if file is None:
            text = sys.stdin.read(bounds.TEXT.longest + 1)
        else:
            with file.open(encoding="utf-8") as opened:
                text = opened.read(bounds.TEXT.longest + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{file or 'standard input'} cannot be read: {error}") from error
    if len(text) > bounds.TEXT.longest:
        raise bounds.refuse_longer(str(file or "standard input"), bounds.TEXT)
    return text


def _run(options: argparse.Namespace, run: Verb, text: str) -> int:
    from ragdocs.serve import render

    workspace = cli.open_workspace(options)
    answer = run(workspace, options)
    cli.save(workspace)
    coloured = text == "difference" and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return cli.show(options, answer, _coloured if coloured else getattr(render, text))


def _create(workspace: Workspace, options: argparse.Namespace) -> Any:
    return workspace.memories.create(options.filename, read_content(options), options.tag, options.type)


def _update(workspace: Workspace, options: argparse.Namespace) -> Any:
    return workspace.memories.update(options.filename, read_content(options), options.expect)


def _append(workspace: Workspace, options: argparse.Namespace) -> Any:
    return workspace.memories.append(options.filename, read_content(options), options.expect)


def _edit(workspace: Workspace, options: argparse.Namespace) -> Any:
    from ragdocs.verbs.revise import Edit

    fields = {}
    for pair in options.field:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ValidationError(f"--field {pair!r} is not KEY=VALUE", "Write it as --field status=archived")
        fields[key.strip()] = value.strip() or None
    edit = Edit(options.text, options.find, options.section, options.mode, fields)
    return workspace.edits.edit(options.filename, edit, options.expect)


def _delete(workspace: Workspace, options: argparse.Namespace) -> Any:
    return workspace.memories.delete(options.filename, options.expect)


def _rename(workspace: Workspace, options: argparse.Namespace) -> Any:
    return workspace.edits.rename(options.filename, options.new_name, options.expect)


def _search(workspace: Workspace, options: argparse.Namespace) -> Any:
    return workspace.memories.search(
        " ".join(options.query),
        options.limit,
        tags=options.tag,
        kind=options.type,
        archived=options.archived,
        explain=options.explain,
    )


def _linked(workspace: Workspace, options: argparse.Namespace) -> Any:
    return workspace.memories.linked(options.query, options.target, options.limit)


def _merge(workspace: Workspace, options: argparse.Namespace) -> Any:
    return workspace.merges.merge(options.sources, options.into, read_content(options))


def _suggest(workspace: Workspace, options: argparse.Namespace) -> Any:
    kind = None if options.type == "all" else options.type
    return workspace.merges.suggest(options.threshold, options.limit, kind)


def _log(workspace: Workspace, options: argparse.Namespace) -> Any:
    return workspace.versions.history(options.filename, options.limit)


def _diff(workspace: Workspace, options: argparse.Namespace) -> Any:
    return workspace.versions.diff(options.filename, options.before, options.after)


def _restore(workspace: Workspace, options: argparse.Namespace) -> Any:
    return workspace.versions.restore(options.filename, options.revision)


def _coloured(answer: Any) -> str:
    from ragdocs.serve import render

    lines = render.difference(answer).split("\n")
    return "\n".join(f"\x1b[{COLOURS[line[0]]}m{line}\x1b[0m" if line[:1] in COLOURS else line for line in lines)
