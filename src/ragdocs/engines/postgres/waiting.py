"""Passages that wait for a vector, shared out among servers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from ragdocs.engines.postgres.cards import document_numbers, stored
from ragdocs.engines.postgres.statistics import Tally, write_tally
from ragdocs.protocols import Vectors
from ragdocs.system.postgres.columns import columns
from ragdocs.system.postgres.database import half_vector

if TYPE_CHECKING:
    from ragdocs.system.postgres.database import Session

# Whoever claims holds this lock of the scope: passages of one text must have one claimant.
CLAIMING = 7421_0002
# A claim is free again after so many seconds; a batch takes one or two.
CLAIM_SECONDS = 120

Claim = tuple[int, int]


def claim(
    session: Session, scope: int, claimant: str, limit: int, paths: Collection[str]
) -> list[Claim]:
    """Claim passages, one for each text, and return (document, slot) of each.

    What this claimant has claimed before is its to claim again.
    """
    row = session.execute(
        "SELECT pg_is_in_recovery(), pg_advisory_xact_lock(%s, %s)", [CLAIMING, scope]
    ).fetchone()
    if row is None or row[0]:
        # A standby can only be read: servers that write encode for it.
        return []
    values: dict[str, Any] = {"scope": scope, "claimant": claimant, "rows": limit}
    among = ""
    if paths:
        values["numbers"] = document_numbers(scope, paths)
        among = "AND doc_id = ANY (%(numbers)s)"
    sql = _FREE.format(among=among)
    claimed: dict[str, Claim] = {}
    while True:
        rows = session.execute(sql, values).fetchall()
        claimed.clear()
        for number, slot, digest in rows:
            claimed.setdefault(digest, (number, slot))
        # Passages with the same text are one claim: it may take more rows to have enough.
        if len(claimed) >= limit or len(rows) < values["rows"]:
            break
        values["rows"] *= 4
    digests = list(claimed)[:limit]
    if digests:
        values |= {"digests": digests, "seconds": CLAIM_SECONDS}
        session.execute(_CLAIM, values)
    return [claimed[digest] for digest in digests]


def fill(session: Session, scope: int, vectors: Mapping[str, Vectors]) -> int:
    """Give vectors to the passages that wait for one; return how many passages there were."""
    by_digest = {stored(digest): vector for digest, vector in vectors.items()}
    rows = session.execute(
        "SELECT number, doc_id, slot, digest FROM waiting WHERE scope = %s AND digest = ANY (%s)"
        " ORDER BY number FOR UPDATE",
        [scope, list(by_digest)],
    ).fetchall()
    if not rows:
        return 0
    waiting, numbers, slots, _ = columns(rows, 4)
    halves = {digest: half_vector(vector.tolist()) for digest, vector in by_digest.items()}
    filled = []
    for _, number, slot, digest in rows:
        filled.append((number, slot, scope, halves[digest]))
    with session.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO vectors (doc_id, slot, scope, emb) VALUES (%s, %s, %s, %s)"
            " ON CONFLICT (doc_id, slot) DO UPDATE SET emb = excluded.emb",
            filled,
        )
    session.execute("DELETE FROM waiting WHERE number = ANY (%s)", [waiting])
    ((count,),) = session.execute(
        """
        SELECT count(*) FROM unnest(%s::bigint[], %s::int[]) AS u(doc_id, slot)
        JOIN passages p ON p.doc_id = u.doc_id AND p.slot = u.slot
        """,
        [numbers, slots],
    ).fetchall()
    tally = Tally()
    tally.add(vectors=count)
    tally.write()
    write_tally(session, scope, tally)
    return len(rows)


# In the order of encoding; rows that a writer is changing are passed over.
_FREE = """
SELECT doc_id, slot, digest FROM waiting
WHERE scope = %(scope)s {among}
    AND (claimed_until IS NULL OR claimed_until < now() OR claimed_by = %(claimant)s)
ORDER BY turn, modified_at DESC NULLS LAST, number
LIMIT %(rows)s
FOR UPDATE SKIP LOCKED
"""
_CLAIM = """
UPDATE waiting SET claimed_by = %(claimant)s,
    claimed_until = now() + make_interval(secs => %(seconds)s)
WHERE number IN (
    SELECT number FROM waiting WHERE scope = %(scope)s AND digest = ANY (%(digests)s)
    ORDER BY number FOR UPDATE SKIP LOCKED
)
"""
