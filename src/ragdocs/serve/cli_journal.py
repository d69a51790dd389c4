"""`ragdocs journal …` and `ragdocs commits`: the verbs of the journal's tools, from a terminal."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragdocs.errors import ConflictError, ValidationError
from ragdocs.serve import cli, cli_memory

if TYPE_CHECKING:
    from ragdocs.verbs.journal import Journal, Reads
    from ragdocs.workspace import Workspace

EXAMPLES = """\
examples:
  ragdocs journal write project/api --work-context "debugging" --entry "Retries need a jitter, because ..."
  ragdocs journal write project/api --overview-file api.md --summary "jitter" < entry.md
  ragdocs journal read project/api              what is understood now
  ragdocs journal read project/api#abc1234      one entry
  ragdocs journal toc project --depth 2         sections, entries, last change
  ragdocs journal entries project/api --length 50
  ragdocs journal search "retries" --work-context "debugging the client"
  ragdocs journal sync                          fetch, merge and push to the remote that you gave the journal
  ragdocs journal sync --resolve project/api=api.md

exit codes: 0 done, 1 failed or refused with nothing changed, 2 wrong usage
"""
COMMITS = """\
examples:
  ragdocs commits "why are retries limited" --path src/net
  ragdocs commits --path src/net/retry.py --since "last month" --author ada

exit codes: 0 done (also when nothing was found), 1 failed, 2 wrong usage
"""
# A person reads in a terminal that scrolls; an agent's answers have a budget of their own.
BUDGET = 1_000_000

Parsers = argparse._SubParsersAction  # noqa: SLF001 - argparse has no public name for it
Verb = Callable[["Journal", argparse.Namespace], Any]


def add(commands: Parsers[argparse.ArgumentParser], common: argparse.ArgumentParser) -> None:
    """Add the commands to the parser."""
    journal = commands.add_parser("journal", help="what is understood now and how it came to that", epilog=EXAMPLES)
    verbs = journal.add_subparsers(title="journal commands", metavar="VERB", required=True)

    def verb(name: str, help_text: str, run: Verb, text: str) -> argparse.ArgumentParser:
        command = verbs.add_parser(name, parents=[common], help=help_text, epilog=EXAMPLES)
        command.set_defaults(run=lambda options: _run(options, run, text))
        return command

    _add_writing(verb)
    _add_reading(verb)
    command = commands.add_parser("commits", parents=[common], help="search the project's own commits", epilog=COMMITS)
    command.add_argument("query", nargs="*", help="what to look for, in plain words (default: the newest)")
    command.add_argument("--path", action="append", default=[], help="only commits that changed this file or folder")
    command.add_argument("--since", default="", metavar="TIME", help='such as 2w, "last month", 2026-02-04')
    command.add_argument("--author", default="", help="a part of a name or an address")
    command.add_argument("--limit", type=int, default=10, help="how many results (default: 10)")
    command.set_defaults(run=_commits)


def _add_writing(verb: Callable[..., argparse.ArgumentParser]) -> None:
    command = verb("write", "commit an entry, and perhaps a new overview", _write, "written")
    command.add_argument("section", help="the section, such as project/api")
    group = command.add_mutually_exclusive_group()
    group.add_argument("--entry", dest="content", help="what changed or was learned")
    group.add_argument("--file", type=Path, help="a file with the entry (default: standard input)")
    group = command.add_mutually_exclusive_group()
    group.add_argument("--overview", help="what the section is to say now")
    group.add_argument("--overview-file", type=Path, help="a file with what the section is to say now")
    command.add_argument("--summary", default="", help="the entry in one line")
    command.add_argument("--work-context", default="", help="what kind of work this was")
    command.add_argument("--expect", metavar="COMMIT", help="refuse if the section is at another commit")
    command = verb("sync", "fetch, merge and push to a remote of the journal", _sync, "exchanged")
    command.add_argument("--remote", default="", help="the remote's name (default: origin, else the first)")
    command.add_argument(
        "--resolve", action="append", default=[], metavar="SECTION=FILE", help="what a section in conflict is to say"
    )


def _add_reading(verb: Callable[..., argparse.ArgumentParser]) -> None:
    command = verb("read", "print what a section says now, or an entry", _read, "text")
    command.add_argument("id", help="the section, or section#commit")
    command.add_argument("--lines", help="only these lines, such as 10-40")
    command = verb("toc", "list sections", lambda j, o: j.contents(o.id, o.depth), "contents")
    command.add_argument("id", nargs="?", default="", help="the section to begin at (default: all)")
    command.add_argument("--depth", type=int, default=1, help="how many levels (default: 1)")
    command = verb("entries", "list the entries of a section, newest first", _entries, "listed")
    command.add_argument("section", help="the section, such as project/api")
    command.add_argument("--start", type=int, default=0, help="the first to list (default: 0, the newest)")
    command.add_argument("--length", type=int, default=10, help="how many (default: 10)")
    command = verb("search", "find entries by content and by the work they came from", _search, "hits")
    command.add_argument("content", nargs="+", help="what to look for, in plain words")
    command.add_argument("--work-context", default="", help="the kind of work it may have come from")
    command.add_argument("--salience-threshold", type=float, default=0.5, help="what old entries need (default: 0.5)")


def _run(options: argparse.Namespace, run: Verb, text: str) -> int:
    from ragdocs.serve import render_journal

    workspace = cli.open_workspace(options)
    answer = run(replace(workspace.journal, budget=BUDGET), options)
    cli.save(workspace)
    return cli.show(options, answer, getattr(render_journal, text))


def _write(journal: Journal, options: argparse.Namespace) -> Any:
    from ragdocs.verbs.journal import NewEntry

    reads: Reads = {}
    entry = cli_memory.read_content(options)
    shown = journal.read(options.section, reads=reads)
    if options.expect and not shown["version"].startswith(options.expect):
        hint = "Read it again; `ragdocs journal entries` tells what came since"
        raise ConflictError(f"{options.section} is at {shown['version'][:12] or 'no entry'} by now", hint)
    overview = options.overview if options.overview_file is None else cli_memory.read_text(options.overview_file)
    return journal.write(options.section, NewEntry(entry, overview, options.summary, options.work_context), reads)


def _read(journal: Journal, options: argparse.Namespace) -> Any:
    return journal.read(options.id, options.lines)


def _entries(journal: Journal, options: argparse.Namespace) -> Any:
    return journal.entries(options.section, options.start, options.length)


def _search(journal: Journal, options: argparse.Namespace) -> Any:
    return journal.search(options.work_context, " ".join(options.content), options.salience_threshold)


def _sync(journal: Journal, options: argparse.Namespace) -> Any:
    resolved = {}
    for pair in options.resolve:
        section, equals, file = pair.rpartition("=")
        if not equals:
            raise ValidationError(f"--resolve {pair!r} is not SECTION=FILE", "Write it as --resolve project/api=api.md")
        resolved[section] = cli_memory.read_text(Path(file))
    return journal.sync(options.remote, resolved)


def _commits(options: argparse.Namespace) -> int:
    from ragdocs.serve import render_journal

    options.set = ["docs.commits=true", *options.set]
    workspace: Workspace = cli.open_workspace(options)
    commits = replace(workspace.commits, budget=BUDGET)
    found = commits.search(" ".join(options.query), options.path, options.since, options.author, options.limit)
    return cli.show(options, found, render_journal.commits)
