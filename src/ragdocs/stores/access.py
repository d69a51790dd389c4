"""How often memories were found, read and used: one small database of the user.

It serves all projects, and nothing depends on it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ragdocs.system.sqlite_cache import SideFile
from ragdocs.types import AccessKind

KINDS: tuple[AccessKind, ...] = ("get", "search", "used")
# Single accesses that are stored, of all projects, about 10 MB; older ones are only counted.
MOST_ROWS = 100_000
# The beginning of a query is enough to recognise it.
LONGEST_QUERY = 200
# A search must not wait for a log.
WAIT_SECONDS = 1.0

_TABLES = """
CREATE TABLE IF NOT EXISTS accesses (
    project TEXT NOT NULL, memory_id TEXT NOT NULL,
    accessed_at INTEGER NOT NULL, kind TEXT NOT NULL,
    score REAL, query TEXT
);
CREATE TABLE IF NOT EXISTS counts (
    project TEXT NOT NULL, kind TEXT NOT NULL, memory_id TEXT NOT NULL,
    count INTEGER NOT NULL, last_at INTEGER NOT NULL,
    PRIMARY KEY (project, kind, memory_id)
) WITHOUT ROWID;
"""
_INSERT = "INSERT INTO accesses VALUES (?, ?, ?, ?, ?, ?)"
_COUNT = """
INSERT INTO counts (project, kind, memory_id, count, last_at) VALUES (?, ?, ?, 1, ?)
ON CONFLICT DO UPDATE SET count = count + 1, last_at = MAX(last_at, excluded.last_at)
"""
_PRUNE = "DELETE FROM accesses WHERE rowid <= (SELECT MAX(rowid) FROM accesses) - ?"


class SqliteAccessLog:
    """The accesses to one project's memories.

    If the database cannot be used, nothing is noted and every count is zero.
    """

    def __init__(self, path: Path, project: str) -> None:
        self._project = project
        self._file = SideFile(path, _TABLES, name="access log", wait_seconds=WAIT_SECONDS)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def note(
        self,
        kind: AccessKind,
        accessed: Sequence[tuple[str, float | None]],
        at: datetime,
        query: str = "",
    ) -> bool:
        """Note accesses to memories, each with its score in a search, if it was found by one.

        Return whether they were noted.
        """
        if not accessed:
            return True
        milliseconds = int(at.timestamp() * 1000)
        beginning = query[:LONGEST_QUERY]
        rows = []
        counts = []
        for memory_id, score in accessed:
            rows.append((self._project, memory_id, milliseconds, kind, score, beginning))
            counts.append((self._project, kind, memory_id, milliseconds))

        def write(connection: sqlite3.Connection) -> bool:
            with connection:
                connection.executemany(_INSERT, rows)
                connection.executemany(_COUNT, counts)
                connection.execute(_PRUNE, (MOST_ROWS,))
            return True

        return bool(self._file.ask(write))

    def counts(self, kind: AccessKind) -> dict[str, int]:
        """Map each memory that was ever accessed in this way to the number of times."""
        statement = "SELECT memory_id, count FROM counts WHERE project = ? AND kind = ?"
        return dict(self._rows(statement, kind))

    def of(self, memory_id: str) -> tuple[dict[str, int], datetime | None]:
        """Return how often one memory was accessed, by kind, and when last."""
        statement = "SELECT kind, count, last_at FROM counts WHERE project = ? AND memory_id = ?"
        counts: dict[str, int] = dict.fromkeys(KINDS, 0)
        last = None
        for kind, count, milliseconds in self._rows(statement, memory_id):
            if kind in counts:
                counts[kind] = count
            at = datetime.fromtimestamp(milliseconds / 1000, UTC)
            last = max(last or at, at)
        return counts, last

    def totals(self) -> dict[str, int]:
        """Count all accesses to the memories of this project, by kind."""
        statement = "SELECT kind, SUM(count) FROM counts WHERE project = ? GROUP BY kind"
        counts = dict(self._rows(statement))
        return {kind: counts.get(kind, 0) for kind in KINDS}

    def recent(self, limit: int = 100) -> list[tuple[str, int, str, float | None, str]]:
        """List the last accesses, newest first.

        Each is memory, milliseconds since 1970, kind, score and query.
        """
        statement = (
            "SELECT memory_id, accessed_at, kind, score, query FROM accesses "
            "WHERE project = ? ORDER BY rowid DESC LIMIT ?"
        )
        return self._rows(statement, limit)

    def _rows(self, statement: str, *values: object) -> list[Any]:
        """Return the rows that a statement selects, or none if the database cannot be used."""

        def select(connection: sqlite3.Connection) -> list[Any]:
            return connection.execute(statement, (self._project, *values)).fetchall()

        return self._file.ask(select) or []
