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

    With `graph_dim`, the components of a vector, they are looked for in the graph of the scope.
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
        SELECT v.doc_id, v.slot, (v.emb <#> %(vector)s::halfvec) + 0 AS distance
        FROM vectors v WHERE v.scope = %(scope)s AND {passing}
        ORDER BY distance LIMIT %(count)s
        """
    if not graph_dim:
        return _SENT.format(found=exact), values
    distance = f"v.emb::halfvec({graph_dim}) <#> %(vector)s::halfvec({graph_dim})"
    # The number of the scope stands in the text, because the graph is an index over part of the
    # table and the planner must see that this is the part.
    through_graph = f"""
        SELECT v.doc_id, v.slot, {distance} AS distance
        FROM vectors v WHERE v.scope = {scope:d} AND {passing}
        ORDER BY {distance} LIMIT %(count)s
        """
    if condition.is_open or condition.excludes:
        return _SENT.format(found=through_graph), values
    counted = f"""
        (SELECT coalesce(sum(d.passages), 0) <= %(few)s
         FROM documents d WHERE d.scope = %(scope)s AND {condition.sql})
        """
    either = f"""
        SELECT * FROM ({exact}) e WHERE {counted}
        UNION ALL SELECT * FROM ({through_graph}) g WHERE NOT {counted}
        """
    return _SENT.format(found=either), values


def read_near(data: bytes | None) -> Near:
    """Return the rows of an answer, the nearest first."""
    near = np.frombuffer(data or b"", dtype=NEAR)
    order = np.argsort(-near["product"].astype(np.float64), kind="stable")
    return near[order]


def is_torn(near: Near, k: int) -> bool:
    """Tell whether the k-th and the last of more rows tie, so that equals may be missing."""
    return len(near) > k and bool(near["product"][k - 1] == near["product"][-1])


def products_column(number: int) -> str:
    """Return the expression for all products of a document `d` with one of several vectors."""
    return f"""(
        SELECT string_agg(int4send(v.slot)
            || float4send((-(v.emb <#> %(vector{number})s::halfvec))::real), '')
        FROM vectors v WHERE v.doc_id = d.doc_id AND v.scope = %(scope)s
    )"""


def product_values(vectors: Sequence[Vectors]) -> dict[str, Any]:
    """Return the values of these expressions."""
    values = {}
    for number, vector in enumerate(vectors):
        values[f"vector{number}"] = half_vector(vector.tolist())
    return values


_SENT = """
SELECT string_agg(int8send(doc_id) || int4send(slot) || float4send((-distance)::real), '')
FROM ({found}) found
"""
