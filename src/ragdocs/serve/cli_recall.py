"""`ragdocs remember` and `ragdocs recall`: a note in passing, and what was done when, here or everywhere."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from typing import Any

from ragdocs.errors import ValidationError
from ragdocs.serve import cli, cli_memory
from ragdocs.serve.framing import line

REMEMBER = """\
examples:
  ragdocs remember "Chose OAuth2 over JWT: sessions must be revocable at once" --tag auth --tag architecture
  git log -1 --format=%B | ragdocs remember --tag release
"""
RECALL = """\
examples:
  ragdocs recall                                     the latest memories of this project, by day
  ragdocs recall "token refresh" --tag auth          the best matches; spelling mistakes are forgiven
  ragdocs recall --since yesterday --scope global    a stand-up: by day and project
  ragdocs recall --since 1w --limit 50 --json        for scripts

--since takes 30m, 12h, 1d, 1w, today, yesterday, monday, "last week", "last month", 2026-02-04, 2026-02-04T09:00
exit codes: 0 done (also when nothing was found), 1 failed, 2 wrong usage
"""
# A person reads in a terminal that scrolls; an agent's answers have a budget of their own.
BUDGET = 1_000_000
# Lines of a memory that a timeline shows below its first.
SHOWN_LINES = 3


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], common: argparse.ArgumentParser) -> None:
    """Add both commands to the parser."""
    command = commands.add_parser(
        "remember",
        parents=[common],
        help="write a memory under the present moment",
        epilog=REMEMBER,
    )
    command.add_argument("content", nargs="?", help="the text, in markdown (default: standard input)")
    command.add_argument("--tag", action="append", default=[], help="a tag; may be repeated")
    command.set_defaults(run=_remember)
    command = commands.add_parser(
        "recall",
        parents=[common],
        help="what was remembered lately, here or everywhere",
        epilog=RECALL,
    )
    command.add_argument("query", nargs="*", help="what to look for, in plain words (default: the latest)")
    command.add_argument("--since", default="", metavar="TIME", help='such as 1d, yesterday, "last week", 2026-02-04')
    command.add_argument("--scope", choices=("project", "global"), default="project", help="(default: project)")
    command.add_argument("--tag", action="append", default=[], help="only memories with one of these tags")
    command.add_argument("--limit", type=int, default=10, help="how many at most (default: 10)")
    command.add_argument("--timeline", action="store_true", help="group by day and project, also with a query")
    command.set_defaults(run=_recall)


def _remember(options: argparse.Namespace) -> int:
    from ragdocs.serve import render

    if options.content is None and sys.stdin.isatty():
        raise ValidationError("there is no text", "Give it as an argument, or pipe it in")
    workspace = cli.open_workspace(options, embed=False)
    content = options.content if options.content is not None else cli_memory.read_text(None)
    kept = workspace.recall.remember(content, options.tag)
    cli.save(workspace)
    return cli.show(options, kept, render.remembered)


def _recall(options: argparse.Namespace) -> int:
    from ragdocs.serve import render

    query = " ".join(options.query)
    # The newest need no meaning, so no model is loaded for them.
    workspace = cli.open_workspace(options, embed=bool(query))
    verbs = replace(workspace.recall, budget=BUDGET)
    found: Any = verbs.recall(query, tags=options.tag, since=options.since, limit=options.limit, scope=options.scope)
    if options.timeline or not query:
        if options.timeline and options.json:
            found = {**found, "result": _days(found["result"])}
        return cli.show(options, found, _timeline)
    return cli.show(options, found, render.recalled)


def _days(memories: Sequence[Any]) -> list[dict[str, Any]]:
    """Group memories by day, the newest first, and by project within a day."""
    newest = sorted(memories, key=lambda memory: -memory["timestamp"])
    days = groupby(newest, key=lambda memory: _moment(memory).date().isoformat())
    return [{"day": day, "projects": _projects(list(group))} for day, group in days]


def _projects(memories: Sequence[Any]) -> list[dict[str, Any]]:
    names = dict.fromkeys(memory.get("project", "") for memory in memories)
    return [{"project": name, "memories": [m for m in memories if m.get("project", "") == name]} for name in names]


def _timeline(found: Any) -> str:
    """Write memories as one would tell them: day by day, project by project."""
    lines = []
    for day in _days(found["result"]):
        lines += ["", f"{datetime.fromisoformat(day['day']):%A %d %B %Y}"]
        for project in day["projects"]:
            lines += [f"  {line(project['project'])}"] if project["project"] else []
            for memory in project["memories"]:
                lines += _told(memory)
    lines = lines[1:] or ["nothing is remembered that fits"]
    if found["omitted"]:
        lines += ["", f"{found['omitted']} more memories; raise --limit or narrow --since to see others"]
    return "\n".join([*lines, *(f"\nNote: {line(note)}" for note in found["notes"])])


def _told(memory: Any) -> Iterator[str]:
    from ragdocs.serve import render

    first, *rest = [text for text in memory["content"].splitlines() if text.strip()] or [""]
    tags = "".join(f" #{tag}" for tag in memory["tags"])
    yield f"    {_moment(memory):%H:%M}  {first.lstrip('# ')}{line(tags)}"
    yield f"           {line(render.written(memory))} · {line(memory['path'])}"
    yield from (f"           | {text}" for text in rest[:SHOWN_LINES])
    if len(rest) > SHOWN_LINES:
        yield f"           | … {len(rest) - SHOWN_LINES} more lines"


def _moment(memory: Any) -> datetime:
    return datetime.fromtimestamp(memory["timestamp"]).astimezone()
