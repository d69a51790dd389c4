"""Which memories were shown, read and used: one small database of the user, for all projects.

Nothing depends on it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from ragdocs.system.sqlite_cache import SideFile

Kind = Literal["get", "search", "used"]
KINDS: tuple[Kind, ...] = ("get", "search", "used")
# Accesses kept one by one, of all projects, about 10 MB; what is older is only counted.
MOST_ROWS = 100_000
# Of a query; what a person searched for is told by its beginning.
LONGEST_QUERY = 200
# A search must not wait for a log.
WAIT_SECONDS = 1.0

_TABLES = """
CREATE TABLE IF NOT EXISTS accesses (
    project TEXT NOT NULL, memory_id TEXT NOT NULL, accessed_at INTEGER NOT NULL, kind TEXT NOT NULL,
    score REAL, query TEXT
);
CREATE TABLE IF NOT EXISTS counts (
    project TEXT NOT NULL, kind TEXT NOT NULL, memory_id TEXT NOT NULL,
    count INTEGER NOT NULL, last_at INTEGER NOT NULL,
    PRIMARY KEY (project, kind, memory_id)
) WITHOUT ROWID;
"""
_COUNT = """
INSERT INTO counts (project, kind, memory_id, count, last_at) VALUES (?, ?, ?, 1, ?)
ON CONFLICT DO UPDATE SET count = count + 1, last_at = MAX(last_at, excluded.last_at)
"""


class AccessLog:
    """The accesses to one project's memories.

    Where the database cannot be used, nothing is noted and all is zero.
    """

    def __init__(self, path: Path, project: str) -> None:
        self._project = project
        self._file = SideFile(path, _TABLES, name="access log", wait_seconds=WAIT_SECONDS)

    def note(
        self,
        kind: Kind,
        accessed: Sequence[tuple[str, float | None]],
        at: datetime,
        query: str = "",
    ) -> bool:
        """Note accesses to memories, each with the score it had in a search.

        Tell whether that could be done.
        """
        moment = int(at.timestamp() * 1000)
        rows = [
            (self._project, own_id, moment, kind, score, query[:LONGEST_QUERY])
            for own_id, score in accessed
        ]

        def write(connection: sqlite3.Connection) -> bool:
            with connection:
                connection.executemany("INSERT INTO accesses VALUES (?, ?, ?, ?, ?, ?)", rows)
                connection.executemany(
                    _COUNT, [(self._project, kind, own_id, moment) for own_id, _ in accessed]
                )
                connection.execute(
                    "DELETE FROM accesses WHERE rowid <= (SELECT MAX(rowid) FROM accesses) - ?",
                    (MOST_ROWS,),
                )
            return True

        return not rows or bool(self._file.ask(write))

    def counts(self, kind: Kind) -> dict[str, int]:
        """Map each memory that was ever accessed in this way to how often it was."""
        question = "SELECT memory_id, count FROM counts WHERE project = ? AND kind = ?"
        return dict(self._asked(question, kind))

    def of(self, memory_id: str) -> tuple[dict[str, int], datetime | None]:
        """Return how often one memory was accessed in each way, and when last."""
        question = "SELECT kind, count, last_at FROM counts WHERE project = ? AND memory_id = ?"
        rows = self._asked(question, memory_id)
        last = max((row[2] for row in rows), default=None)
        counted = {kind: count for kind, count, _ in rows}
        return (
            {kind: counted.get(kind, 0) for kind in KINDS},
            None if last is None else datetime.fromtimestamp(last / 1000, UTC),
        )

    def totals(self) -> dict[str, int]:
        """Count all accesses to memories of this project, by their kind."""
        question = "SELECT kind, SUM(count) FROM counts WHERE project = ? GROUP BY kind"
        counted = dict(self._asked(question))
        return {kind: counted.get(kind, 0) for kind in KINDS}

    def recent(self, limit: int = 100) -> list[tuple[str, int, str, float | None, str]]:
        """List the last accesses, newest first.

        Memory, milliseconds since 1970, kind, score and query.
        """
        question = (
            "SELECT memory_id, accessed_at, kind, score, query FROM accesses "
            "WHERE project = ? ORDER BY rowid DESC LIMIT ?"
        )
        return self._asked(question, limit)

    def _asked(self, question: str, *values: object) -> list[Any]:
        found = self._file.ask(
            lambda connection: connection.execute(question, (self._project, *values)).fetchall()
        )
        return found or []
