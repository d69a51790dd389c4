"""What git knows about the files of a project: other names, first commits, changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

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


class EditedFile(NamedTuple):
    """A file that a commit changed: its path, and the one that it had before."""

    before: str
    path: str


def commits(root: Path, options: Sequence[str], operands: Sequence[str]) -> list[list[EditedFile]]:
    """Return the files that each commit of a log changed, in the order of the log.

    Files outside the project are left out.
    """
    words = ["log", "-M", "--name-status", "-z", "--format=%x01", "--relative", *options]
    edits: list[list[EditedFile]] = []
    fields = iter(_fields(git.run(root, words, operands, terms=TERMS)))
    for field in fields:
        if field == "\x01":
            edits.append([])
        elif field[:1] in ("R", "C"):
            before = next(fields)
            path = next(fields)
            # A copy has a past of its own from now on.
            edits[-1].append(EditedFile(before if field[0] == "R" else path, path))
        elif field:
            path = next(fields)
            edits[-1].append(EditedFile(path, path))
    return edits


def renames(root: Path, options: Sequence[str], revisions: Sequence[str]) -> list[EditedFile]:
    """Return the files that the commits of a log renamed, the oldest first."""
    renaming = ["--diff-filter=R", "--reverse", *options]
    pairs = []
    for files in commits(root, renaming, revisions):
        pairs += files
    return pairs


def renamed(root: Path) -> dict[str, str]:
    """Map old names of files to those that they have today and that exist.

    Empty where there is no repository, or where git does not answer in time.
    """
    try:
        # A later one of the same name counts.
        steps = dict(renames(root, [f"-n{MOST_COMMITS}"], ()))
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
    return sorted(changes.values(), key=_newest_first)


def _newest_first(change: FileChange) -> tuple[float, str]:
    return -change.at.timestamp(), change.path


def _staged(root: Path) -> Iterator[tuple[str, str]]:
    """Yield renames that are not committed yet."""
    fields = _fields(git.run(root, ["status", "--porcelain=v2", "-z"], terms=TERMS))
    prefix = git.prefix(root)
    for field, following in pairwise(fields):
        if field.startswith("2 "):
            new = field.split(" ", 9)[-1]
            if new.startswith(prefix) and following.startswith(prefix):
                yield following.removeprefix(prefix), new.removeprefix(prefix)


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
