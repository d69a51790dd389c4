"""Graphs of neighbours: one for each scope that is too large to compare all of its vectors."""

from __future__ import annotations

from ragdocs.engines.postgres.vectors import EXACT_LIMIT
from ragdocs.system.postgres.database import Database

# Neighbours of a vector in the graph, and candidates followed while building it: at 100,000
# vectors nine searches in a thousand miss one of fifty.
NEIGHBOURS = 16
BUILDING = 64
# Whoever builds holds this lock of the scope.
BUILDING_LOCK = 7421_0004


def build(database: Database, scope: int, dim: int, vectors: int) -> bool:
    """Build the graph of a scope if it is large and has none; tell whether there is one.

    Takes half a minute for 100,000 vectors, while searches and writes go on.
    """
    if vectors <= EXACT_LIMIT:
        return False
    name = f"vectors_graph_{scope:d}_{dim:d}"
    with database.building(BUILDING_LOCK, scope) as session:
        if session is None:
            return False
        row = session.execute(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [name]
        ).fetchone()
        if row is not None and not row[0]:
            # What a builder that was ended has left.
            session.execute(f"DROP INDEX CONCURRENTLY {name}")
            row = None
        if row is None:
            session.execute(
                f"CREATE INDEX CONCURRENTLY {name} ON vectors"
                f" USING hnsw ((emb::halfvec({dim:d})) halfvec_ip_ops)"
                f" WITH (m = {NEIGHBOURS}, ef_construction = {BUILDING})"
                f" WHERE scope = {scope:d}"
            )
        session.execute("UPDATE indexes SET graph = %s WHERE scope = %s", [vectors, scope])
    return True
