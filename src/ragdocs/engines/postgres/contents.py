"""Everything in an index as values that can be compared, and passages by their slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ragdocs.engines.postgres.cards import Cards
from ragdocs.engines.postgres.lengths import FIELDS
from ragdocs.engines.postgres.rows import DOCUMENT, ENTRY
from ragdocs.engines.postgres.snapshot import PASSAGE, chunk
from ragdocs.system.names import link_key
from ragdocs.system.postgres.columns import columns
from ragdocs.types import Chunk, Document

if TYPE_CHECKING:
    from ragdocs.system.postgres.database import Session


def first_of_slots(
    session: Session, scope: int, slots: Sequence[tuple[int, int]], cards: Cards
) -> list[tuple[Document, Chunk]]:
    """Return the first passage in each slot of a document, in the order given."""
    numbers, wanted = columns(slots, 2)
    rows = session.execute(
        f"""
        SELECT d.card, {PASSAGE}
        FROM unnest(%s::bigint[], %s::int[]) WITH ORDINALITY AS a(doc_id, slot, place)
        JOIN documents d ON d.doc_id = a.doc_id AND d.scope = %s
        CROSS JOIN LATERAL (
            SELECT {PASSAGE} FROM passages p
            WHERE p.doc_id = a.doc_id AND p.slot = a.slot ORDER BY p.ord LIMIT 1
        ) p
        ORDER BY a.place
        """,
        [numbers, wanted, scope],
        binary=True,
    )
    passages = []
    for card, *values in rows:
        document = cards.document(card)
        passages.append((document, chunk(document, values)))
    return passages


def everything(session: Session, scope: int, dim: int, cards: Cards) -> dict[str, list[Any]]:
    """List documents, passages, postings, links and vectors as the local engine lists them."""
    documents = {}
    sizes = {}
    rows = session.execute(
        "SELECT doc_id, passages, card FROM documents WHERE scope = %s ORDER BY path",
        [scope],
        binary=True,
    )
    for number, size, card in rows:
        documents[number] = cards.document(card)
        sizes[number] = size
    edges = []
    for document in documents.values():
        for link in document.links:
            ghost = f"ghost:{link_key(link.target)}"
            edges.append((document.id, ghost, link.kind, link.context))
    passages, vectors = _passages(session, scope, dim, documents)
    return {
        "documents": [replace(document, modified_at=None) for document in documents.values()],
        "chunks": passages,
        "postings": _postings(session, scope, documents, sizes),
        "edges": sorted(edges),
        "vectors": vectors,
    }


def _passages(
    session: Session, scope: int, dim: int, documents: dict[int, Document]
) -> tuple[list[Chunk], list[tuple[str, Any]]]:
    rows = session.execute(
        f"""
        SELECT halfvec_send(v.emb), p.doc_id, {PASSAGE}
        FROM passages p LEFT JOIN vectors v ON v.doc_id = p.doc_id AND v.slot = p.slot
        WHERE p.scope = %s
        """,
        [scope],
        binary=True,
    )
    passages = {}
    vectors = {}
    for sent, number, *values in rows:
        passage = chunk(documents[number], values)
        vector = np.zeros(dim, dtype=np.float32)
        if sent is not None:
            vector = np.frombuffer(sent, dtype=">f2", offset=4).astype(np.float32)
        passages[passage.id] = passage
        vectors[passage.id] = vector
    names = sorted(passages)
    return [passages[name] for name in names], [(name, vectors[name]) for name in names]


def _postings(
    session: Session, scope: int, documents: dict[int, Document], sizes: dict[int, int]
) -> list[tuple[str, str, str, float]]:
    rows = session.execute(
        "SELECT doc_id, term, payload FROM postings WHERE scope = %s", [scope], binary=True
    )
    postings = []
    for number, term, payload in rows:
        name = documents[number].id
        for position, first, second in np.frombuffer(payload, dtype=ENTRY).tolist():
            if position == DOCUMENT:
                for ordinal in range(sizes[number]):
                    postings.append((f"{name}#{ordinal}", FIELDS[first], term, float(second)))
                continue
            for field, count in (("body", first), ("headings", second)):
                if count:
                    postings.append((f"{name}#{position}", field, term, float(count)))
    return sorted(postings)
