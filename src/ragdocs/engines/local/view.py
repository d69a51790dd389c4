"""One state of a local index, as a search reads it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import cast

import numpy as np

from ragdocs.engines.local.catalog import Catalog, Mask, Rows, Siblings
from ragdocs.engines.local.graph import LinkGraph
from ragdocs.engines.local.postings import KeywordTable, Scored, best
from ragdocs.engines.local.vectors import VectorTable, similar_pairs
from ragdocs.protocols import (
    Candidates,
    Documents,
    Facet,
    Floats,
    Order,
    PassageKey,
    ProbeVector,
    SignalName,
    Vectors,
)
from ragdocs.search.fields import meant
from ragdocs.search.newest import age_order
from ragdocs.types import Chunk, Document, Filter, Link


class LocalSnapshot:
    """Reads of an index whose lock is held; keys are the rows of the catalog."""

    def __init__(
        self,
        catalog: Catalog,
        graph: LinkGraph,
        keywords: KeywordTable,
        table: Callable[[], VectorTable],
    ) -> None:
        self._catalog = catalog
        self._graph = graph
        self._keywords = keywords
        # FAISS is opened when vectors are first needed.
        self._table = table

    def candidates(
        self,
        probes: Sequence[ProbeVector],
        filters: Sequence[Filter],
        k: int,
        also: Collection[str] = (),
    ) -> Candidates:
        """Find the k best passages by words and by vector under each of the filters."""
        masks = [self._mask(where) for where in filters]
        started = time.perf_counter()
        scored, rows_found = self._by_words(probes, masks, k)
        searched_words = time.perf_counter()
        rows_found |= self._by_vector(probes, masks, k)
        searched_vectors = time.perf_counter()
        family = self._family(rows_found.values(), also)
        found = {}
        for signal, rows in rows_found.items():
            found[signal] = np.searchsorted(family.rows, rows).tolist()
        return Candidates(
            keys=family.rows.tolist(),
            starts=family.starts,
            documents=self._catalog.owners(family.rows[family.starts]),
            raw=self._measured(probes, scored, family.rows),
            found=found,
            term_counts={name: words.terms for name, words in scored.items()},
            lone_share=self._catalog.lone_share(),
            seconds={
                "words": searched_words - started,
                "meaning": searched_vectors - searched_words,
            },
        )

    def neighbours(
        self, document_ids: Sequence[str], where: Filter
    ) -> dict[str, list[tuple[Document, PassageKey]]]:
        """Map each document to those it links to that pass the filter, with their first passage."""
        slots = self.slots(where)
        neighbours: dict[str, list[tuple[Document, PassageKey]]] = {}
        for document_id in document_ids:
            neighbours[document_id] = []
            for target in self._graph.linked(document_id):
                rows = self._catalog.rows(target)
                document = self._catalog.document(target)
                if document is not None and rows and self._catalog.passes(target, slots):
                    neighbours[document_id].append((document, _key(rows.start)))
        return neighbours

    def load(
        self, keys: Sequence[PassageKey], words: Sequence[str] = ()
    ) -> list[tuple[Document, Chunk, tuple[str, ...]]]:
        """Return passages with their documents, and which of these words stand in each."""
        rows = cast("Sequence[int]", keys)
        holding = {word: self._keywords.holding(rows, meant(word)) for word in words}
        passages = []
        for position, row in enumerate(rows):
            document, chunk = self._catalog.chunk(row)
            there = tuple(word for word, mask in holding.items() if mask[position])
            passages.append((document, chunk, there))
        self._catalog.rest()
        return passages

    def get(self, name: str) -> Document | None:
        """Return a document by its id or its path."""
        return self._catalog.document(name) or self._catalog.at_path(name)

    def list(
        self,
        where: Filter,
        order: Order = "path",
        limit: int | None = None,
        offset: int = 0,
        now: datetime | None = None,
    ) -> Documents:
        """List documents; by age as seen from `now`, where those without a date come last."""
        documents = self._catalog.documents(self.slots(where))
        if order != "path":
            if now is None:
                raise TypeError("an order by age needs the present moment")
            moment = now
            is_oldest = order == "oldest"
            documents.sort(key=lambda document: age_order(document, moment, oldest=is_oldest))
        end = None if limit is None else offset + limit
        return documents[offset:end]

    def count(self, where: Filter) -> int:
        """Count documents."""
        return self._catalog.count(self.slots(where))

    def facets(self, field: Facet, where: Filter) -> dict[str, int]:
        """Count documents by the values of a field, the most frequent first."""
        counts: Counter[str] = Counter()
        for document in self._catalog.documents(self.slots(where)):
            value = getattr(document, field)
            counts.update(value if isinstance(value, tuple) else (value,))
        return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))

    def first_passages(
        self, document_ids: Sequence[str], room: int = 0
    ) -> dict[str, Sequence[Chunk]]:
        """Return the first passage of each document, and more up to so many characters."""
        beginnings: dict[str, Sequence[Chunk]] = {}
        for document_id in document_ids:
            passages: list[Chunk] = []
            size = 0
            for row in self._catalog.rows(document_id):
                if size > room or (passages and not room):
                    break
                _, passage = self._catalog.chunk(row)
                passages.append(passage)
                size += len(passage.text)
            beginnings[document_id] = passages
        self._catalog.rest()
        return beginnings

    def links(
        self, to: Sequence[str], among: Collection[str] | None = None
    ) -> Mapping[str, tuple[Link, ...]]:
        """Map documents, or those among these, to their links to any of these names."""
        return self._graph.links_to(to, among) if to else {}

    def similar(
        self, where: Filter, threshold: float, limit: int | None = None
    ) -> Sequence[tuple[float, str, str]]:
        """Return pairs of document ids whose mean vectors are this alike, the most alike first."""
        ids = [document.id for document in self._catalog.documents(self.slots(where))]
        means = self._table().means([self._catalog.rows(document_id) for document_id in ids])
        pairs = similar_pairs(means, threshold)[:limit]
        return [(similarity, ids[first], ids[second]) for similarity, first, second in pairs]

    def slots(self, where: Filter) -> Mask:
        """Tell for each document slot of the catalog whether it passes."""
        linked = self._graph.pointing(where.linked_to) if where.linked_to else None
        return self._catalog.slots(where, linked)

    def _mask(self, where: Filter) -> Mask:
        return self._catalog.mask(self.slots(where))

    def _by_words(
        self, probes: Sequence[ProbeVector], masks: Sequence[Mask], k: int
    ) -> tuple[dict[str, Scored], dict[SignalName, Rows]]:
        """Score all rows for each probe that has words, and choose the best."""
        scored: dict[str, Scored] = {}
        found: dict[SignalName, Rows] = {}
        for probe in probes:
            if probe.text:
                words = self._keywords.score(probe.text, self._catalog.alive)
                scored[probe.name] = words
                found[probe.name, "keyword"] = best(
                    words.values, k, masks, self._catalog.best_first
                )
        return scored, found

    def _by_vector(
        self, probes: Sequence[ProbeVector], masks: Sequence[Mask], k: int
    ) -> dict[SignalName, Rows]:
        """Choose the rows that are nearest to each probe that has a vector."""
        found: dict[SignalName, Rows] = {}
        for probe in probes:
            if probe.vector is not None:
                found[probe.name, "vector"] = self._nearest(probe.vector, masks, k)
        return found

    def _nearest(self, vector: Vectors, masks: Sequence[Mask], k: int) -> Rows:
        table = self._table()
        best_first = self._catalog.best_first
        parts = [table.nearest(vector, k, mask, best_first) for mask in masks]
        if len(parts) == 1:
            return parts[0][0]
        every = np.concatenate([rows for rows, _ in parts])
        rows, first = np.unique(every, return_index=True)
        scores = np.concatenate([scores for _, scores in parts])[first]
        return rows[best_first(rows, scores)]

    def _family(self, found: Iterable[Rows], also: Collection[str]) -> Siblings:
        """Return all rows of the documents that were found or are measured anyway."""
        parts = [np.empty(0, dtype=np.int64), *found]
        for document_id in also:
            parts.append(np.array(self._catalog.rows(document_id), dtype=np.int64))
        return self._catalog.siblings(np.concatenate(parts))

    def _measured(
        self, probes: Sequence[ProbeVector], scored: Mapping[str, Scored], rows: Rows
    ) -> dict[SignalName, Floats]:
        """Return what each source measures in these rows, words before vectors."""
        raw: dict[SignalName, Floats] = {}
        for name, words in scored.items():
            raw[name, "keyword"] = words.values[rows].astype(np.float64)
        for probe in probes:
            if probe.vector is not None:
                products = self._table().products(probe.vector, rows)
                raw[probe.name, "vector"] = products.astype(np.float64)
        return raw


def _key(row: int) -> PassageKey:
    return PassageKey(row)
