"""What is in a team database, and how far its background work is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragdocs.system.postgres.database import without_password

if TYPE_CHECKING:
    from ragdocs.system.postgres.database import Database, Session

_SERVER = """
SELECT current_setting('server_version'),
       (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
       pg_database_size(current_database()),
       pg_is_in_recovery(),
       (SELECT count(*) FROM pg_stat_activity
        WHERE application_name = 'ragdocs' AND datname = current_database()),
       (SELECT max(number) FROM migrations)
"""
# A standby that has replayed all it received is not behind, however long ago the last change was.
# How far others are behind is told to superusers and members of pg_monitor.
_REPLICATION = """
SELECT (SELECT count(*) FROM pg_stat_replication),
       extract(epoch FROM CASE
           WHEN NOT pg_is_in_recovery() THEN (SELECT max(replay_lag) FROM pg_stat_replication)
           WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN interval '0'
           ELSE now() - pg_last_xact_replay_timestamp() END)::float8
"""
# As engines/postgres/statistics.py counts: documents, passages, vectors.
_SCOPES = """
SELECT p.identity, s.lane, s.branch,
       (SELECT count(*) FROM texts t WHERE t.scope = s.scope),
       coalesce(c.documents, 0), coalesce(c.passages, 0), coalesce(c.vectors, 0),
       (SELECT count(*) FROM waiting w WHERE w.scope = s.scope),
       (SELECT count(*) FROM tallies l WHERE l.scope = s.scope),
       (SELECT count(*) FROM feed f WHERE f.scope = s.scope),
       (SELECT coalesce(to_char(max(at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), '')
        FROM feed f WHERE f.scope = s.scope)
FROM scopes s JOIN projects p USING (project)
LEFT JOIN (
    SELECT scope, sum(counts[1])::bigint AS documents, sum(counts[2])::bigint AS passages,
           sum(counts[3])::bigint AS vectors
    FROM (SELECT scope, counts FROM indexes UNION ALL SELECT scope, counts FROM tallies) AS counted
    GROUP BY scope) c USING (scope)
WHERE s.lane <> 'summaries'
ORDER BY p.identity, s.lane, s.branch
"""


@dataclass(frozen=True, slots=True)
class ScopeState:
    """One lane of a project, on one branch where it has several."""

    project: str
    lane: str
    branch: str
    texts: int
    documents: int
    passages: int
    vectors: int
    # Passages that nobody has encoded yet, and changes of statistics that were not added up yet.
    waiting: int
    unfolded: int
    # Changes that the feed still tells, and when the last was made.
    feed: int
    changed_at: str


@dataclass(frozen=True, slots=True)
class Overview:
    """A team database as one caller may see it."""

    address: str
    server: str
    pgvector: str
    schema: int
    size_bytes: int
    standby: bool
    # Servers that follow this one, and how far the slowest of them is behind, or this one itself.
    standbys: int
    lag_seconds: float | None
    connections: int
    scopes: tuple[ScopeState, ...]


def overview(database: Database) -> Overview:
    """Look at the server, and at the projects that the caller may read."""
    with database.reading() as session:
        row = session.execute(_SERVER).fetchone()
        assert row is not None
        version, vector, size, standby, connections, schema = row
        scopes = tuple(_scopes(session))
    with database.maintaining() as session:
        ((standbys, lag),) = session.execute(_REPLICATION).fetchall()
    return Overview(
        address=without_password(database.address),
        server=version,
        pgvector=vector,
        schema=schema,
        size_bytes=size,
        standby=standby,
        standbys=standbys,
        lag_seconds=lag,
        connections=connections,
        scopes=scopes,
    )


def _scopes(session: Session) -> list[ScopeState]:
    return [ScopeState(*row) for row in session.execute(_SCOPES).fetchall()]
