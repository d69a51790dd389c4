"""Single reads of a local index outside a snapshot, for callers that still make them."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import cast

import numpy as np

from ragdocs.engines.local.catalog import Catalog, Rows
from ragdocs.engines.local.graph import LinkGraph
from ragdocs.engines.local.postings import KeywordTable, best
from ragdocs.engines.local.vectors import VectorTable
from ragdocs.engines.local.view import LocalSnapshot
from ragdocs.protocols import PassageKey, Vectors
from ragdocs.types import Chunk, Document, Filter, Link

Pairs = list[tuple[int, float]]


class DirectReads(ABC):
    """What an index answers one call at a time, by row."""

    _lock: threading.RLock
    _catalog: Catalog
    _graph: LinkGraph
    _keywords: KeywordTable
    _vectors: VectorTable

    @abstractmethod
    def _table(self) -> VectorTable:
        """Return the vectors of the rows."""

    @abstractmethod
    def _view(self) -> LocalSnapshot:
        """Return a look at the state now."""

    def documents(self, where: Filter | None = None) -> list[Document]:
        """List document cards, in the order of their paths."""
        with self._lock:
            return self._view().list(where or Filter())

    def document(self, doc_id: str) -> Document | None:
        """Return one card, if there is such a document."""
        with self._lock:
            return self._catalog.document(doc_id)

    def nearest(self, vector: Vectors, k: int, *wheres: Filter) -> Pairs:
        """Return the k passages with the largest inner product under each of the filters."""
        with self._lock:
            scores: dict[int, float] = {}
            for where in wheres:
                mask = self._catalog.mask(self._view().slots(where))
                rows, products = self._table().nearest(vector, k, mask, self._catalog.best_first)
                scores.update(zip(rows.tolist(), products.tolist(), strict=True))
            return self._ordered(scores)

    def match(self, text: str, k: int, *wheres: Filter) -> Pairs:
        """Return the k best passages by keyword score under each of the filters."""
        with self._lock:
            scores = self._keywords.score(text, self._catalog.alive).values
            masks = [self._catalog.mask(self._view().slots(where)) for where in wheres]
            rows = best(scores, k, masks, self._catalog.best_first)
            return list(zip(rows.tolist(), scores[rows].tolist(), strict=True))

    def _ordered(self, scores: Mapping[int, float]) -> Pairs:
        rows = np.array(list(scores), dtype=np.int64)
        values = np.array(list(scores.values()), dtype=np.float32)
        order = self._catalog.best_first(rows, values)
        return list(zip(rows[order].tolist(), values[order].tolist(), strict=True))

    def weigh(self, text: str, vector: Vectors | None, keys: Rows) -> tuple[Vectors, Vectors]:
        """Return the keyword score and the inner product of each of these passages."""
        with self._lock:
            words = np.zeros(len(keys), dtype=np.float32)
            products = np.zeros(len(keys), dtype=np.float32)
            if text:
                words = self._keywords.score(text, self._catalog.alive).values[keys]
            if vector is not None:
                products = self._table().products(vector, keys)
            return words, products

    def matched(self, text: str, keys: Sequence[int]) -> list[tuple[str, ...]]:
        """Return for each passage the words of a query that stand in it."""
        words = dict.fromkeys(word.strip(".,;:!?\"'()") for word in text[:2000].split())
        with self._lock:
            loaded = self._view().load(cast("Sequence[PassageKey]", keys), list(words))
        return [there for _, _, there in loaded]

    def links_to(
        self, names: Sequence[str], among: Collection[str] | None = None
    ) -> Mapping[str, tuple[Link, ...]]:
        """Map each document, or each among these, to its links to any of these names."""
        with self._lock:
            return self._view().links(names, among)

    def load(self, keys: Sequence[int]) -> list[tuple[Document, Chunk]]:
        """Return the passages with these keys and their documents."""
        with self._lock:
            loaded = self._view().load(cast("Sequence[PassageKey]", keys))
        return [(document, chunk) for document, chunk, _ in loaded]

    def chunks(self, doc_id: str) -> list[int]:
        """Return the keys of one document's passages, in order."""
        with self._lock:
            return list(self._catalog.rows(doc_id))

    def vectors(self, doc_ids: Sequence[str]) -> Vectors:
        """Return the mean unit vector of each document, zero where it has none yet."""
        with self._lock:
            return self._table().means([self._catalog.rows(doc_id) for doc_id in doc_ids])

    @property
    def vector_search(self) -> str:
        """Say how vectors are searched."""
        return self._vectors.method

    def held(self) -> AbstractContextManager[object]:
        """Keep the index as it is while several things are asked of it."""
        return self._lock

    def counts(self) -> dict[str, int]:
        """Count documents, passages, vectors and links."""
        with self._lock:
            return {
                "documents": len(self._catalog),
                "chunks": int(np.count_nonzero(self._catalog.alive)),
                "vectors": len(self._vectors),
                "links": len(self._graph),
            }
