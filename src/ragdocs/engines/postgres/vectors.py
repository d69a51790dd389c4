"""Searching by meaning: exactly up to a size, through a graph of neighbours above."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ragdocs.engines.postgres.filters import Condition
from ragdocs.engines.postgres.words import passes
from ragdocs.protocols import Vectors
from ragdocs.system.postgres.database import Statement, half_vector

# A row of an answer: the document, the slot of its vector, and the inner product.
NEAR = np.dtype([("document", ">i8"), ("slot", ">i4"), ("product", ">f4")])
# One product of a document's passages.
PRODUCT = np.dtype([("slot", ">i4"), ("product", ">f4")])
# Up to so many vectors a scan of all takes a few milliseconds and finds everything.
EXACT_LIMIT = 8_000
# A graph finds little when most of what it meets is filtered out; then those that pass are
# compared one by one, if they are not more than this.
FEW_PASSING = 10_000

Near = npt.NDArray[np.void]


def nearest(
    scope: int, vector: Vectors, condition: Condition, count: int, *, graph_dim: int = 0
) -> Statement:
    """Return the statement for the vectors with the largest inner products.

    Where the cut goes through equal ones, as copies of a text have them, those with the first
    paths and positions are taken. With `graph_dim`, the components of a vector, vectors are looked
    for in the graph of the scope.
    """
    values: dict[str, Any] = {
        "scope": scope,
        "vector": half_vector(vector.tolist()),
        "count": count,
        "few": FEW_PASSING,
        **condition.values,
    }
    passing = passes(condition, "v.doc_id")
    # A zero is added so that no graph is used, which would lose what a filter leaves.
    exact = f"""
        SELECT v.doc_id, v.slot, {EXACTLY} AS distance
        FROM vectors v WHERE v.scope = %(scope)s AND {passing}
        ORDER BY distance LIMIT %(count)s + 1
        """
    if not graph_dim:
        equal = f"v.scope = %(scope)s AND {EXACTLY} = (SELECT distance FROM torn) AND {passing}"
        return _SENT.format(found=exact, equal=equal), values
    nearest_rows = _through_graph(scope, graph_dim, passing)
    if not condition.is_open and not condition.excludes:
        counted = f"""
            (SELECT coalesce(sum(d.passages), 0) <= %(few)s
             FROM documents d WHERE d.scope = %(scope)s AND {condition.sql})
            """
        nearest_rows = f"""
            SELECT * FROM ({exact}) e WHERE {counted}
            UNION ALL SELECT * FROM ({nearest_rows}) g WHERE NOT {counted}
            """
    return _SENT.format(found=nearest_rows, equal=_COPIES.format(passing=passing)), values


def _through_graph(scope: int, dim: int, passing: str) -> str:
    distance = f"v.emb::halfvec({dim}) <#> %(vector)s::halfvec({dim})"
    # The number of the scope stands in the text, because the graph is an index over part of the
    # table and the planner must see that this is the part.
    return f"""
        SELECT v.doc_id, v.slot, {distance} AS distance
        FROM vectors v WHERE v.scope = {scope:d} AND {passing}
        ORDER BY {distance} LIMIT %(count)s + 1
        """


def read_near(data: bytes | None) -> Near:
    """Return the rows of an answer, the nearest first."""
    near = np.frombuffer(data or b"", dtype=NEAR)
    order = np.argsort(-near["product"].astype(np.float64), kind="stable")
    return near[order]


def products_column(number: int) -> str:
    """Return the expression for all products of a document `d` with one of several vectors."""
    return f"""(
        SELECT string_agg(int4send(v.slot)
            || float4send((-(v.emb <#> %(vector{number})s::halfvec))::real), '')
        FROM vectors v WHERE v.doc_id = d.doc_id AND v.scope = %(scope)s
    )"""


# All vectors of a document `d`, each after its slot.
VECTORS_COLUMN = """(
    SELECT string_agg(int4send(v.slot) || halfvec_send(v.emb), '')
    FROM vectors v WHERE v.doc_id = d.doc_id AND v.scope = %(scope)s
)"""


def product_values(vectors: Sequence[Vectors]) -> dict[str, Any]:
    """Return the values of these expressions."""
    values = {}
    for number, vector in enumerate(vectors):
        values[f"vector{number}"] = half_vector(vector.tolist())
    return values


EXACTLY = "((v.emb <#> %(vector)s::halfvec) + 0)"
# One vector more than is wanted is looked for. If it is as near as the one before, `torn` has the
# distance, and all vectors at that distance are asked for, which are ordered.
_SENT = """
WITH near AS MATERIALIZED ({found}),
torn AS MATERIALIZED (
    SELECT max(distance) AS distance
    FROM (SELECT distance FROM near ORDER BY distance DESC LIMIT 2) AS last
    HAVING min(distance) = max(distance) AND (SELECT count(*) FROM near) > %(count)s
),
equal AS (
    SELECT v.doc_id, v.slot, (SELECT distance FROM torn) AS distance
    FROM vectors v
    JOIN documents d ON d.doc_id = v.doc_id
    JOIN passages p ON p.doc_id = v.doc_id AND p.slot = v.slot
    WHERE (SELECT distance FROM torn) IS NOT NULL AND {equal}
    ORDER BY d.path, p.ord LIMIT %(count)s
)
SELECT string_agg(int8send(doc_id) || int4send(slot) || float4send((-distance)::real), '')
FROM (
    SELECT * FROM near
    WHERE (SELECT distance FROM torn) IS NULL OR distance < (SELECT distance FROM torn)
    UNION ALL SELECT * FROM equal
) found
"""
# Comparing all vectors is what a graph spares: here equal are those of the same text.
_COPIES = """
v.scope = %(scope)s AND {passing} AND p.scope = %(scope)s AND p.digest IN (
    SELECT t.digest FROM near n JOIN passages t ON t.doc_id = n.doc_id AND t.slot = n.slot
    WHERE n.distance = (SELECT distance FROM torn)
)
"""
