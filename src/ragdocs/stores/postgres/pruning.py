"""Which earlier texts of a scope are kept, and for how long."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from ragdocs.stores.files.history import KEEP_AGE, KEEP_ALWAYS
from ragdocs.stores.postgres.change_set import lock_key
from ragdocs.stores.postgres.feed import Feed

if TYPE_CHECKING:
    from ragdocs.system.postgres.database import Database

# As long as the files of one person are kept; a team has room, so that no size ends it.
_DROP = """
WITH dropped AS (
    DELETE FROM change_sets
    WHERE scope = %(scope)s AND made_at < %(before)s AND change_set < (
        SELECT min(change_set) FROM (
            SELECT change_set FROM change_sets WHERE scope = %(scope)s
            ORDER BY change_set DESC LIMIT %(always)s) AS newest)
    RETURNING change_set)
SELECT array_agg(DISTINCT before) FROM revisions JOIN dropped USING (change_set)
WHERE scope = %(scope)s AND before IS NOT NULL
"""
_FREE = """
DELETE FROM bodies WHERE scope = %(scope)s AND digest = ANY (%(digests)s)
AND NOT EXISTS (SELECT FROM texts t WHERE (t.scope, t.digest) = (bodies.scope, bodies.digest))
AND NOT EXISTS (SELECT FROM trash t WHERE (t.scope, t.digest) = (bodies.scope, bodies.digest))
AND NOT EXISTS (SELECT FROM revisions r WHERE (r.scope, r.before) = (bodies.scope, bodies.digest))
"""


def prune(database: Database, scope: int, now: datetime) -> None:
    """Drop the change sets of a scope that are too old, and the texts that only they have."""
    values = {"scope": scope, "before": now - KEEP_AGE, "always": KEEP_ALWAYS}
    with database.maintaining() as session:
        # Writers share this lock: none of them finds a body that is about to go.
        key = lock_key("history", scope)
        session.execute("SELECT pg_advisory_xact_lock(%s)", [key])
        row = session.execute(_DROP, values, binary=True).fetchone()
        if row is not None and row[0]:
            session.execute(_FREE, {"scope": scope, "digests": row[0]})
    Feed(database, scope).prune()
