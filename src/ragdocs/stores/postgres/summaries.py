"""Summaries of steps on the rows of a team database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from ragdocs.protocols import Summaries
from ragdocs.stores.postgres.change_set import lock_key
from ragdocs.stores.postgres.scopes import address
from ragdocs.stores.summaries import (
    FILE_NAME,
    Limits,
    checked_summary,
    encoded_line,
    moment_of,
    without_secrets,
)
from ragdocs.text.redaction.redact import Redactor
from ragdocs.types import AppendedSummary, StepSummary

if TYPE_CHECKING:
    from ragdocs.system.postgres.database import Database, Session

_LOCK = "SELECT pg_advisory_xact_lock(%s)"
_INSERT = """
INSERT INTO summaries (scope, run_id, step_id, written_at, timestamp, body, tags, size)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
"""
_NEWEST = """
SELECT run_id, step_id, timestamp, body, tags FROM summaries
WHERE scope = %s ORDER BY written_at DESC, summary DESC LIMIT %s
"""
# The newest stays whatever its size.
_PRUNE = """
DELETE FROM summaries WHERE scope = %(scope)s AND summary IN (
    SELECT summary FROM (
        SELECT summary, row_number() OVER newest AS number, sum(size) OVER newest AS total
        FROM summaries WHERE scope = %(scope)s
        WINDOW newest AS (ORDER BY written_at DESC, summary DESC)) AS ordered
    WHERE number > %(entries)s OR (total > %(size)s AND number > 1))
"""


@dataclass(frozen=True, slots=True)
class RowSummaries:
    """The summaries of one scope."""

    database: Database
    scope: int
    limits: Limits
    redactor: Redactor

    @property
    def name(self) -> str:
        """The name under which a context pack cites the summaries."""
        return FILE_NAME

    @property
    def shown(self) -> int:
        """The number of summaries that a context pack has at most."""
        return self.limits.shown

    def append(
        self, run_id: str, step_id: str, summary: str, tags: Sequence[str], now: datetime
    ) -> AppendedSummary:
        """Write one summary, durably and without secrets, and drop the oldest over the limits."""
        record = checked_summary(run_id, step_id, summary, tags, now)
        record, rules = without_secrets(record, self.redactor)
        with self.database.writing() as session:
            session.execute(_LOCK, [lock_key("summaries", self.scope)])
            self._insert(session, record)
            pruned = self._prune(session)
            statement = "SELECT count(*) FROM summaries WHERE scope = %s"
            (total,) = session.execute(statement, [self.scope]).fetchall()[0]
            path = f"{address(session, self.scope)}/{FILE_NAME}"
        return AppendedSummary(record, total, pruned, path, rules)

    def newest(self, count: int | None = None) -> list[StepSummary]:
        """Return summaries by time, newest first.

        Of the same moment, the one that was written later comes first.
        """
        with self.database.reading() as session:
            return self._newest(session, count)

    def take(self, other: Summaries) -> int:
        """Add the summaries of another scope that are not here yet, and return their number."""
        incoming = other.newest()
        if not incoming:
            return 0
        with self.database.writing() as session:
            session.execute(_LOCK, [lock_key("summaries", self.scope)])
            existing = set(self._newest(session, None))
            added = 0
            # In the order in which they were written, so that those of one moment stay in it.
            for record in reversed(incoming):
                if record not in existing:
                    existing.add(record)
                    self._insert(session, record)
                    added += 1
            self._prune(session)
        return added

    def _newest(self, session: Session, count: int | None) -> list[StepSummary]:
        records = []
        rows = session.execute(_NEWEST, [self.scope, count]).fetchall()
        for run_id, step_id, timestamp, body, tags in rows:
            records.append(StepSummary(run_id, step_id, timestamp, body, tuple(tags)))
        return records

    def _insert(self, session: Session, record: StepSummary) -> None:
        values = [
            self.scope,
            record.run_id,
            record.step_id,
            moment_of(record.timestamp),
            record.timestamp,
            record.text,
            list(record.tags),
            len(encoded_line(record)) + 1,
        ]
        session.execute(_INSERT, values)

    def _prune(self, session: Session) -> int:
        """Drop the oldest over the limits, and return how many left."""
        limits = {
            "scope": self.scope,
            "entries": self.limits.entries,
            "size": self.limits.size,
        }
        return session.execute(_PRUNE, limits).rowcount
