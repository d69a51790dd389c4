"""What linked files were when a memory was written or checked: a small database of this user.

It is about one working copy. What is lost is read from the history of the repository again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ragdocs.system.sqlite_cache import SideFile

# How a baseline is known: the memory was written or checked here, or it was worked out later.
WRITTEN, VERIFIED, HISTORY, TIMES = "written", "verified", "history", "times"
TABLES = """
CREATE TABLE IF NOT EXISTS baselines (
    project TEXT NOT NULL, memory TEXT NOT NULL, target TEXT NOT NULL, heading TEXT NOT NULL,
    path TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL,
    signature BLOB NOT NULL, blob TEXT NOT NULL, size INTEGER NOT NULL, version TEXT NOT NULL,
    commit_id TEXT NOT NULL, at INTEGER NOT NULL, author TEXT NOT NULL, how TEXT NOT NULL,
    PRIMARY KEY (project, memory, target, heading)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS checks (
    project TEXT NOT NULL, memory TEXT NOT NULL, at INTEGER NOT NULL, author TEXT NOT NULL,
    PRIMARY KEY (project, memory)) WITHOUT ROWID;
"""
_COLUMNS = (
    "target, heading, path, kind, name, digest, signature, blob, size, version, commit_id, at,"
    " author, how"
)
_SELECT = f"SELECT {_COLUMNS} FROM baselines WHERE project = ? AND memory = ?"  # noqa: S608
_WRITE = "INSERT OR REPLACE INTO baselines VALUES (?, ?" + ", ?" * 14 + ")"
_FORGET = "DELETE FROM baselines WHERE project = ? AND memory = ?"
_SELECT_CHECK = "SELECT at, author FROM checks WHERE project = ? AND memory = ?"
_CHECK = "INSERT OR REPLACE INTO checks VALUES (?, ?, ?, ?)"

# The target of a link as it is written, and the heading.
Target = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What a link led to: which part of which file, and its content by digest and signature.

    Without a digest there was nothing to compare with, only a time.
    """

    target: str
    heading: str
    path: str
    kind: str
    name: str
    digest: str
    signature: bytes
    # The whole file: the name that git gives to its content, and its size.
    blob: str
    size: int
    # The version of the memory, and the commit that was checked out.
    version: str
    commit: str
    at: datetime
    author: str
    how: str


@dataclass(frozen=True, slots=True)
class Check:
    """When somebody said that a memory is still true, and who."""

    at: datetime
    author: str


class Ledger:
    """The baselines of the memories of one working copy."""

    def __init__(self, file: SideFile, project: str) -> None:
        self._file = file
        self._project = project
        self._writes = 0

    def state(self) -> tuple[int, int]:
        """Return what differs after each change, also by another process."""
        return self._file.ask(_data_version) or 0, self._writes

    def of(self, memory: str) -> dict[Target, Baseline]:
        """Return the baselines of a memory by target."""
        baselines = {}
        for fields in self._rows(_SELECT, memory):
            baseline = _baseline(fields)
            baselines[baseline.target, baseline.heading] = baseline
        return baselines

    def check(self, memory: str) -> Check | None:
        """Return when a memory was last checked."""
        for seconds, author in self._rows(_SELECT_CHECK, memory):
            return Check(datetime.fromtimestamp(int(seconds), UTC), author)
        return None

    def replace(self, memory: str, baselines: Sequence[Baseline], others: Sequence[str]) -> None:
        """Write down all baselines of a memory; forget its earlier ones and other memories."""
        names = [(self._project, name) for name in (memory, *others)]
        rows = [(self._project, memory, *_row(baseline)) for baseline in baselines]

        def write(connection: sqlite3.Connection) -> None:
            with connection:
                connection.executemany(_FORGET, names)
                connection.executemany(_WRITE, rows)

        self._file.ask(write)
        self._writes += 1

    def add(self, baselines: Sequence[tuple[str, Baseline]]) -> None:
        """Write down baselines that were worked out, each with its memory."""
        rows = [(self._project, memory, *_row(baseline)) for memory, baseline in baselines]

        def write(connection: sqlite3.Connection) -> None:
            with connection:
                connection.executemany(_WRITE, rows)

        self._file.ask(write)

    def note_check(self, memory: str, check: Check) -> bool:
        """Write down that a memory was checked; return whether that was possible."""
        row = (self._project, memory, int(check.at.timestamp()), check.author)

        def write(connection: sqlite3.Connection) -> bool:
            with connection:
                connection.execute(_CHECK, row)
            return True

        self._writes += 1
        return bool(self._file.ask(write))

    def _rows(self, statement: str, memory: str) -> list[Any]:
        def select(connection: sqlite3.Connection) -> list[Any]:
            return connection.execute(statement, (self._project, memory)).fetchall()

        return self._file.ask(select) or []


def _data_version(connection: sqlite3.Connection) -> int:
    """Return a number that SQLite changes when another connection has written."""
    row = connection.execute("PRAGMA data_version").fetchone()
    return int(row[0])


def _row(baseline: Baseline) -> tuple[object, ...]:
    return (
        baseline.target,
        baseline.heading,
        baseline.path,
        baseline.kind,
        baseline.name,
        baseline.digest,
        baseline.signature,
        baseline.blob,
        baseline.size,
        baseline.version,
        baseline.commit,
        int(baseline.at.timestamp()),
        baseline.author,
        baseline.how,
    )


def _baseline(fields: Sequence[object]) -> Baseline:
    names = _COLUMNS.replace("commit_id", "commit").split(", ")
    values = dict(zip(names, fields, strict=True))
    values["at"] = datetime.fromtimestamp(int(str(values["at"])), UTC)
    return Baseline(**values)  # type: ignore[arg-type]
