"""`ragdocs explain`: why a search finds a document, or at which stage it drops out."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from ragdocs.serve.cli import app as cli
from ragdocs.text.visible import line

EXAMPLES = """\
examples:
  ragdocs explain "how are tokens refreshed" docs/auth.md
  ragdocs explain --lane memory "why OAuth2" 2026-02-04/143052_a1b2 --tag auth

stages: not indexed, filtered, other words, not a candidate, below the floor, cut by limit, shown
exit codes: 0 done, whatever the stage, 1 failed, 2 wrong usage
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser], common: argparse.ArgumentParser) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "explain",
        parents=[common],
        help="why a search finds a document, or at which stage it drops out",
        epilog=EXAMPLES,
    )
    command.add_argument("query", help="what was searched for")
    command.add_argument("path", help="the document that was expected")
    command.add_argument("--lane", choices=("docs", "memory"), default="docs", help="where it is (default: docs)")
    command.add_argument("--limit", type=int, default=5, help="how many results were asked for (default: 5)")
    command.add_argument("--tag", action="append", default=[], help="a tag that was asked for; may be repeated")
    command.add_argument("--type", default="", help="the type of memory that was asked for")
    command.set_defaults(run=_explain)


def _explain(options: argparse.Namespace) -> int:
    workspace = cli.open_workspace(options)
    verbs = workspace.explain(options.lane)
    answer = verbs.explain(options.query, options.path, options.limit, tags=options.tag, kind=options.type)
    return cli.show(options, answer, text)


def text(answer: Mapping[str, Any]) -> str:
    """Write why a document was found or not."""
    rows = [f"{line(answer['path'])}: {line(answer['why'])}"]
    if answer["lines"]:
        held, missing = (", ".join(map(line, answer[name])) or "none" for name in ("words", "missing"))
        rows += [
            f"  best passage: lines {answer['lines']}, score {answer['score']:.2f}",
            f"  words: {answer['keyword']:.2f}, number {answer['keyword_rank'] or 'none'}",
            f"  of the query in it: {held}; not in it: {missing}",
            f"  meaning: {answer['meaning']:.2f}, number {answer['meaning_rank'] or 'none'}",
        ]
    rows += [f"  {s['source']}[{s['probe']}]: raw {s['raw']:g}, share {s['share']:+.4f}" for s in answer["signals"]]
    return "\n".join(rows)
