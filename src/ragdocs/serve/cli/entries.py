"""`ragdocs memory expire` and `ragdocs memory review`: what a person does about entries now and then."""

from __future__ import annotations

import argparse
from collections.abc import Callable

EXPIRE = """\
  ragdocs memory expire --dry-run               list what is over
  ragdocs memory expire                         move it to the trash, from where it can be taken back
"""
REVIEW = """\
  ragdocs memory review --limit 50              old, never used, or replaced by a newer one; nothing is changed
  ragdocs memory review --json | jq -r '.result[].id'
"""


def add(verb: Callable[..., argparse.ArgumentParser]) -> None:
    """Add both commands to those of the memory lane."""
    command = verb(
        "expire",
        "move memories whose expires_at has passed to the trash",
        lambda workspace, options: workspace.entry_care.expire(dry_run=options.dry_run),
        "expired",
        filename=False,
        epilog=EXPIRE,
    )
    command.add_argument("--dry-run", action="store_true", help="only list them")
    command = verb(
        "review",
        "list entries that are old, never used or superseded",
        lambda workspace, options: workspace.entry_care.review(options.limit),
        "reviewed",
        filename=False,
        epilog=REVIEW,
    )
    command.add_argument("--limit", type=int, default=20, help="how many at most (default: 20)")
