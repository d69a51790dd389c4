"""What changed in a scope since a reader last asked, whoever changed it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ragdocs.errors import UnavailableError

if TYPE_CHECKING:
    from ragdocs.system.postgres.database import Database

CHANNEL = "ragdocs"
# Readers ask every second; one that was away for longer than this reads everything anew.
KEEP_HOURS = 24

# Where this server stands: its timeline, which a standby that takes over changes, and which
# transactions can be seen. A standby does not say which of them are still going on, so that
# everything above the oldest of them is told once more.
_NOW = """
SELECT CASE WHEN pg_is_in_recovery() THEN ''
            ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END,
       CASE WHEN pg_is_in_recovery()
            THEN concat(pg_snapshot_xmin(now), ':', pg_snapshot_xmin(now), ':')
            ELSE now::text END
FROM pg_current_snapshot() AS now
"""
_CHANGES = """
SELECT DISTINCT path FROM feed
WHERE scope = %(scope)s AND xid >= pg_snapshot_xmin(%(seen)s::pg_snapshot)
AND NOT pg_visible_in_snapshot(xid, %(seen)s::pg_snapshot)
ORDER BY path
"""
_IS_PRUNED = """
SELECT EXISTS (
    SELECT FROM feed_horizons WHERE scope = %s AND xid >= pg_snapshot_xmin(%s::pg_snapshot))
"""
_PRUNE = """
WITH pruned AS (
    DELETE FROM feed
    WHERE scope = %(scope)s AND at < now() - make_interval(hours => %(hours)s)
    RETURNING xid)
INSERT INTO feed_horizons (scope, xid)
SELECT %(scope)s, max(xid) FROM pruned HAVING count(*) > 0
ON CONFLICT (scope) DO UPDATE SET xid = greatest(feed_horizons.xid, excluded.xid)
"""


class Feed:
    """The changes of one scope.

    A cursor is a snapshot: a change is new if the snapshot does not show its transaction. So
    nothing is lost, in whatever order writers draw numbers and commit.
    """

    def __init__(self, database: Database, scope: int) -> None:
        self._database = database
        self._scope = scope
        # How often a writer was heard before the last look.
        self._heard = 0

    def now(self) -> str:
        """Return the cursor of this moment."""
        return self.changes("")[0]

    def changes(self, cursor: str) -> tuple[str, list[str]]:
        """Return the next cursor, and the paths that changed since this one.

        The path "" stands for everything: the cursor is of no use, so that all must be looked at.
        """
        timeline, _, seen = cursor.partition("/")
        heard = self._database.listener(CHANNEL).count(str(self._scope))
        with self._database.reading() as session:
            row = session.execute(_NOW).fetchone()
            assert row is not None
            self._heard = heard
            following = "/".join(row)
            if not seen or timeline != row[0]:
                return following, [""]
            pruned = session.execute(_IS_PRUNED, [self._scope, seen]).fetchone()
            if pruned is None or pruned[0]:
                return following, [""]
            values = {"scope": self._scope, "seen": seen}
            rows = session.execute(_CHANGES, values).fetchall()
        return following, [path for (path,) in rows]

    def wait(self, seconds: float) -> bool:
        """Wait until something may have changed since the last look; return whether it may.

        A writer that dies may not say so: look after this time in any case.
        """
        listener = self._database.listener(CHANNEL)
        return listener.wait(str(self._scope), seconds, since=self._heard)

    def prune(self, hours: int = KEEP_HOURS) -> None:
        """Forget old changes; who still asks for them is told to look at everything."""
        with self._database.maintaining() as session:
            session.execute(_PRUNE, {"scope": self._scope, "hours": hours})


def ring(database: Database, scope: int) -> None:
    """Wake up those who wait for changes.

    After the change and not with it: all transactions that notify commit one after the other.
    """
    with contextlib.suppress(UnavailableError), database.session() as session:
        session.execute("SELECT pg_notify(%s, %s)", [CHANNEL, str(scope)])
