"""What git knows about the files of a project: other names, first commits, changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from ragdocs.errors import RagdocsError
from ragdocs.system import git

# Commits that are looked at; older names are in nobody's mind.
MOST_COMMITS = 3_000
MOST_STEPS = 20
TERMS = git.Terms(seconds=10.0, most=20_000_000)


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that was changed: when last, by which commit, and how often."""

    path: str
    at: datetime
    subject: str
    commit: str
    count: int


def renamed(root: Path) -> dict[str, str]:
    """Map old names of files to those that they have today and that exist.

    Empty where there is no repository, or where git does not answer in time.
    """
    try:
        steps = dict(_committed(root))
        # What is not committed yet is the newest.
        steps |= dict(_staged(root))
    except RagdocsError:
        return {}
    names = {}
    for old in steps:
        new = _today(root, old, steps)
        if new:
            names[old] = new
    return names


def first_commits(root: Path, folder: str) -> dict[str, datetime]:
    """Map the files below a folder of a project to the time of the commit that added each."""
    words = ["log", "--diff-filter=A", "--name-only", "-z", "--format=%x01%aI", "--relative"]
    try:
        output = git.run(root, [*words, f"-n{MOST_COMMITS}"], paths=[folder], terms=TERMS)
    except RagdocsError:
        return {}
    added: dict[str, datetime] = {}
    at: datetime | None = None
    for field in _fields(output):
        if field.startswith("\x01"):
            at = datetime.fromisoformat(field[1:])
        elif field and at is not None:
            # The log goes back in time, so the last one that is seen is the first.
            added[field] = at
    return added


def changed_files(root: Path, since: datetime) -> list[FileChange] | None:
    """List the files that commits changed since a moment, the last changed first.

    None where there is no repository, or where git does not answer in time.
    """
    form = "--format=%x01%H%x02%cI%x02%s"
    words = ["log", "--name-only", "-z", "--no-merges", form, "--relative", f"-n{MOST_COMMITS}"]
    try:
        output = git.run(root, [*words, f"--since={since.isoformat()}"], terms=TERMS)
    except RagdocsError:
        return None
    changes: dict[str, FileChange] = {}
    commit = at = subject = ""
    for field in _fields(output):
        if field.startswith("\x01"):
            commit, at, subject = field[1:].split("\x02", 2)
        elif field in changes:
            changes[field] = replace(changes[field], count=changes[field].count + 1)
        elif field:
            moment = datetime.fromisoformat(at)
            changes[field] = FileChange(field, moment, subject, commit, 1)
    return sorted(changes.values(), key=lambda change: (-change.at.timestamp(), change.path))


def _committed(root: Path) -> Iterator[tuple[str, str]]:
    """Yield renames of the history, the oldest first: a later one of the same name counts."""
    words = ["log", "-M", "--diff-filter=R", "--name-status", "-z", "--format=", "--relative"]
    fields = _fields(git.run(root, [*words, f"-n{MOST_COMMITS}"], terms=TERMS))
    pairs = []
    for position, field in enumerate(fields):
        if field.startswith("R") and field[1:].isdigit() and position + 2 < len(fields):
            pairs.append((fields[position + 1], fields[position + 2]))
    yield from reversed(pairs)


def _staged(root: Path) -> Iterator[tuple[str, str]]:
    """Yield renames that are not committed yet."""
    fields = _fields(git.run(root, ["status", "--porcelain=v2", "-z"], terms=TERMS))
    prefix = _prefix(root)
    for field, following in pairwise(fields):
        if field.startswith("2 "):
            new = field.split(" ", 9)[-1]
            if new.startswith(prefix) and following.startswith(prefix):
                yield following.removeprefix(prefix), new.removeprefix(prefix)


def _prefix(root: Path) -> str:
    """Return where a project is in its repository."""
    top = git.top(root)
    if top is None or top == root:
        return ""
    return f"{root.relative_to(top).as_posix()}/"


def _fields(output: bytes) -> list[str]:
    fields = []
    for field in output.decode(errors="surrogateescape").split("\0"):
        fields.append(field.lstrip("\n"))
    return fields


def _today(root: Path, old: str, steps: Mapping[str, str]) -> str:
    """Follow renames to a file that exists; nothing where the old name exists, or none does."""
    if (root / old).exists():
        return ""
    name = old
    for _ in range(MOST_STEPS):
        if name not in steps:
            return ""
        name = steps[name]
        if (root / name).exists():
            return name
    return ""
