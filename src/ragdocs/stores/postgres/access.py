"""How often the memories of a project were found, read and used, by anybody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ragdocs.errors import StorageError, UnavailableError
from ragdocs.stores import access
from ragdocs.system.postgres.columns import columns
from ragdocs.types import AccessKind

if TYPE_CHECKING:
    from ragdocs.system.postgres.database import Database

# Notes of one server between two prunings of the list.
PRUNE_EVERY = 1000

# A search must not wait for a log, and the last second of a log may be lost with the server.
_QUICKLY = """
SELECT set_config('lock_timeout', %s, true), set_config('synchronous_commit', 'off', true)
"""
_INSERT = """
INSERT INTO accesses (scope, accessed_at, kind, query, memory_id, score)
SELECT %s, %s, %s, %s, * FROM unnest(%s::text[], %s::float8[])
"""
_COUNT = """
INSERT INTO access_counts AS known (scope, kind, last_at, memory_id, count)
SELECT %s, %s, %s, * FROM unnest(%s::text[], %s::bigint[])
ON CONFLICT (scope, kind, memory_id) DO UPDATE
SET count = known.count + excluded.count, last_at = greatest(known.last_at, excluded.last_at)
"""
_PRUNE = """
DELETE FROM accesses WHERE scope = %(scope)s AND access < (
    SELECT min(access) FROM (
        SELECT access FROM accesses WHERE scope = %(scope)s
        ORDER BY access DESC LIMIT %(most)s) AS newest)
"""
_RECENT = """
SELECT memory_id, accessed_at, kind, score, query FROM accesses
WHERE scope = %s ORDER BY access DESC LIMIT %s
"""


class RowAccessLog:
    """The accesses to the memories of one scope.

    If the database cannot be used, nothing is noted and every count is zero.
    """

    def __init__(self, database: Database, scope: int) -> None:
        self._database = database
        self._scope = scope
        self._since_pruning = 0

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
        ids, scores = columns(accessed, 2)
        # In one order, so that two searches do not wait for each other.
        names, times = columns(sorted(Counter(ids).items()), 2)
        beginning = _storable(query[: access.LONGEST_QUERY])
        milliseconds = str(int(access.WAIT_SECONDS * 1000))
        try:
            with self._database.writing() as session, session.pipeline():
                session.execute(_QUICKLY, [milliseconds])
                session.execute(_INSERT, [self._scope, at, kind, beginning, ids, scores])
                session.execute(_COUNT, [self._scope, kind, at, names, times])
            self._prune_in_turn()
        except (UnavailableError, StorageError):
            return False
        return True

    def counts(self, kind: AccessKind) -> dict[str, int]:
        """Map each memory that was ever accessed in this way to the number of times."""
        statement = "SELECT memory_id, count FROM access_counts WHERE scope = %s AND kind = %s"
        return dict(self._rows(statement, kind))

    def of(self, memory_id: str) -> tuple[dict[str, int], datetime | None]:
        """Return how often one memory was accessed, by kind, and when last."""
        statement = (
            "SELECT kind, count, last_at FROM access_counts WHERE scope = %s AND memory_id = %s"
        )
        counts: dict[str, int] = dict.fromkeys(access.KINDS, 0)
        last = None
        for kind, count, last_at in self._rows(statement, _storable(memory_id)):
            if kind in counts:
                counts[kind] = count
            at = last_at.astimezone(UTC)
            last = max(last or at, at)
        return counts, last

    def totals(self) -> dict[str, int]:
        """Count all accesses to the memories of this project, by kind."""
        statement = "SELECT kind, sum(count)::bigint FROM access_counts WHERE scope = %s GROUP BY 1"
        counts = dict(self._rows(statement))
        return {kind: counts.get(kind, 0) for kind in access.KINDS}

    def recent(self, limit: int = 100) -> list[tuple[str, int, str, float | None, str]]:
        """List the last accesses, newest first.

        Each is memory, milliseconds since 1970, kind, score and query.
        """
        accesses = []
        for memory_id, at, kind, score, query in self._rows(_RECENT, limit):
            accesses.append((memory_id, round(at.timestamp() * 1000), kind, score, query))
        return accesses

    def _prune_in_turn(self) -> None:
        self._since_pruning += 1
        if self._since_pruning >= PRUNE_EVERY:
            self._since_pruning = 0
            with self._database.maintaining() as session:
                session.execute(_PRUNE, {"scope": self._scope, "most": access.MOST_ROWS})

    def _rows(self, statement: str, *values: object) -> list[Any]:
        """Return the rows that a statement selects, or none if the database cannot be used."""
        try:
            with self._database.reading() as session:
                return session.execute(statement, [self._scope, *values]).fetchall()
        except UnavailableError:
            return []


def _storable(text: str) -> str:
    """Return a text without what a database cannot hold."""
    return text.replace("\0", "").encode(errors="replace").decode()
