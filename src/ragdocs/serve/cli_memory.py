"""`ragdocs memory …`: the verbs of the memory tools, from a terminal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragdocs.errors import StorageError, ValidationError
from ragdocs.serve import cli

if TYPE_CHECKING:
    from ragdocs.workspace import Workspace

EXAMPLES = """\
examples:
  ragdocs memory create auth-plan.md --type plan --tag auth --content "Move [[src/auth.py]] to JWT"
  ragdocs memory append auth-plan.md < progress.md
  ragdocs memory linked src/auth.py --query "known problems"
  ragdocs memory merge a.md b.md --into auth.md --file summary.md
  ragdocs memory log auth-plan.md && ragdocs memory restore auth-plan.md
"""

Verb = Callable[["Workspace", argparse.Namespace], Any]


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], common: argparse.ArgumentParser) -> None:
    """Add the memory commands to the parser."""
    memory = commands.add_parser(
        "memory",
        help="create, read, change, find and merge memories",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = memory.add_subparsers(title="memory commands", metavar="VERB", required=True)

    def verb(name: str, help_text: str, run: Verb, text: str, *, filename: bool = True) -> argparse.ArgumentParser:
        command = verbs.add_parser(name, parents=[common], help=help_text)
        if filename:
            command.add_argument("filename", help="the memory's file name below the memory folder")
        command.set_defaults(run=lambda options: _run(options, run, text))
        return command

    _add_writing(verb)
    _add_finding(verb)
    _add_upkeep(verb)


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
    verb("delete", "move a memory to the trash", lambda w, o: w.memories.delete(o.filename), "deleted")


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
    command = verb("log", "list the earlier texts of memories", _log, "log", filename=False)
    command.add_argument("filename", nargs="?", default="", help="one memory only")
    command = verb("restore", "bring back an earlier text of a memory", _restore, "saved")
    command.add_argument("--version", dest="revision", help="which one (default: the latest that was replaced)")


def _add_content(command: argparse.ArgumentParser) -> None:
    group = command.add_mutually_exclusive_group()
    group.add_argument("--content", help="the text")
    group.add_argument("--file", type=Path, help="a file with the text (default: standard input)")


def _content(options: argparse.Namespace) -> str:
    if options.content is not None:
        return str(options.content)
    if options.file is None and sys.stdin.isatty():
        raise ValidationError("there is no text", "Give --content or --file, or pipe the text in")
    try:
        return options.file.read_text(encoding="utf-8") if options.file else sys.stdin.read()
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{options.file or 'standard input'} cannot be read: {error}") from error


def _run(options: argparse.Namespace, run: Verb, text: str) -> int:
    from ragdocs.serve import render

    workspace = cli.open_workspace(options)
    answer = run(workspace, options)
    cli.save(workspace)
    return cli.show(options, answer, _log_text if text == "log" else getattr(render, text))


def _create(workspace: Workspace, options: argparse.Namespace) -> Any:
    return workspace.memories.create(options.filename, _content(options), options.tag, options.type)


def _update(workspace: Workspace, options: argparse.Namespace) -> Any:
    return workspace.memories.update(options.filename, _content(options), options.expect)


def _append(workspace: Workspace, options: argparse.Namespace) -> Any:
    return workspace.memories.append(options.filename, _content(options), options.expect)


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
    return workspace.merges.merge(options.sources, options.into, _content(options))


def _suggest(workspace: Workspace, options: argparse.Namespace) -> Any:
    kind = None if options.type == "all" else options.type
    return workspace.merges.suggest(options.threshold, options.limit, kind)


def _log(workspace: Workspace, options: argparse.Namespace) -> Any:
    return workspace.memories.history(options.filename)


def _restore(workspace: Workspace, options: argparse.Namespace) -> Any:
    return workspace.memories.restore(options.filename, options.revision)


def _log_text(revisions: list[dict[str, Any]]) -> str:
    rows = [f"{r['at']}  {r['version']}  {r['verb']:<8} {r['size']:>7}  {r['filename']}" for r in revisions]
    return "\n".join(rows) or "no earlier texts are kept"
