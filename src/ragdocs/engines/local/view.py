"""One state of a local index, as a search reads it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, cast

import numpy as np

from ragdocs.engines.local.catalog import Catalog, Mask, Rows, Siblings
from ragdocs.engines.local.graph import LinkGraph
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
from ragdocs.text.languages import ENGLISH
from ragdocs.types import Chunk, Document, Filter, Link

if TYPE_CHECKING:
    from ragdocs.engines.local.postings import KeywordTable, Scored


class LocalSnapshot:
    """Reads of an index whose lock is held; keys are the rows of the catalog."""

    def __init__(
        self,
        catalog: Catalog,
        graph: LinkGraph,
        keywords: Callable[[], KeywordTable],
        table: Callable[[], VectorTable],
    ) -> None:
        self._catalog = catalog
        self._graph = graph
        # Whoosh is opened when words are first needed, and FAISS when vectors are.
        self._keywords = keywords
        self._table = table

    def candidates(
        self,
        probes: Sequence[ProbeVector],
        filters: Sequence[Filter],
        k: int,
        also: Collection[str] = (),
    ) -> Candidates:
        """Find the k best passages by words and by vector under each of the filters."""
        masks = self._masks(filters)
        started = time.perf_counter()
        scored, rows_found = self._by_words(probes, masks, k)
        searched_words = time.perf_counter()
        rows_found |= self._by_vector(probes, masks, k)
        searched_vectors = time.perf_counter()
        family = self._family(rows_found.values(), also)
        columns = {}
        for signal, rows in rows_found.items():
            columns[signal] = np.searchsorted(family.rows, rows).tolist()
        term_counts = {}
        for name, words in scored.items():
            term_counts[name] = words.terms
        return Candidates(
            keys=family.rows.tolist(),
            starts=family.starts,
            documents=self._catalog.owners(family.rows[family.starts]),
            raw=self._measured(probes, scored, family.rows),
            found=columns,
            term_counts=term_counts,
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
        self,
        keys: Sequence[PassageKey],
        words: Sequence[str] = (),
        languages: Sequence[str] = (ENGLISH,),
    ) -> list[tuple[Document, Chunk, tuple[str, ...]]]:
        """Return passages with their documents, and which of these words stand in each."""
        rows = cast("Sequence[int]", keys)
        present_words: list[list[str]] = [[] for _ in rows]
        for word in words:
            is_present = np.zeros(len(rows), dtype=np.bool_)
            for wanted in {meant(word, language) for language in languages}:
                is_present |= self._keywords().holding(rows, wanted)
            for position in np.flatnonzero(is_present):
                present_words[position].append(word)
        passages = []
        for row, present in zip(rows, present_words, strict=True):
            document, passage = self._catalog.chunk(row)
            passages.append((document, passage, tuple(present)))
        self._catalog.rest()
        return passages

    def get(self, names: Sequence[str]) -> Mapping[str, Document]:
        """Return documents by their ids or paths; where one name is both, the id counts."""
        documents = {}
        for name in names:
            document = self._catalog.document(name)
            if document is None:
                document = self._catalog.at_path(name)
            if document is not None:
                documents[name] = document
        return documents

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
        if limit is None:
            return documents[offset:]
        return documents[offset : offset + limit]

    def count(self, where: Filter) -> int:
        """Count documents."""
        return self._catalog.count(self.slots(where))

    def facets(self, field: Facet, where: Filter) -> dict[str, int]:
        """Count documents by the values of a field, the most frequent first."""
        counts: Counter[str] = Counter()
        for document in self._catalog.documents(self.slots(where)):
            value = getattr(document, field)
            if isinstance(value, tuple):
                counts.update(value)
            else:
                counts[value] += 1
        return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))

    def first_passages(
        self, document_ids: Sequence[str], room: int = 0
    ) -> dict[str, Sequence[Chunk]]:
        """Return the first passage of each document, and more up to so many characters."""
        beginnings: dict[str, Sequence[Chunk]] = {}
        for document_id in document_ids:
            beginnings[document_id] = self._catalog.beginning(document_id, room)
        self._catalog.rest()
        return beginnings

    def links(
        self, to: Sequence[str], among: Collection[str] | None = None
    ) -> Mapping[str, tuple[Link, ...]]:
        """Map documents, or those among these, to their links to any of these names."""
        if not to:
            return {}
        return self._graph.links_to(to, among)

    def similar(
        self, where: Filter, threshold: float, limit: int | None = None
    ) -> Sequence[tuple[float, str, str]]:
        """Return pairs of document ids whose mean vectors are this alike, the most alike first."""
        ids = [document.id for document in self._catalog.documents(self.slots(where))]
        means = self._table().means([self._catalog.rows(document_id) for document_id in ids])
        pairs = similar_pairs(means, threshold, limit)
        return [(similarity, ids[first], ids[second]) for similarity, first, second in pairs]

    def slots(self, where: Filter) -> Mask:
        """Tell for each document slot of the catalog whether it passes."""
        linked = None
        if where.linked_to:
            linked = self._graph.pointing(where.linked_to)
        return self._catalog.slots(where, linked)

    def _masks(self, filters: Sequence[Filter]) -> Sequence[Mask]:
        """Tell for each filter and row whether it passes."""
        masks = []
        for where in filters:
            masks.append(self._catalog.mask(self.slots(where)))
        return masks

    def _by_words(
        self, probes: Sequence[ProbeVector], masks: Sequence[Mask], k: int
    ) -> tuple[dict[str, Scored], dict[SignalName, Rows]]:
        """Score all rows for each probe that has words, and choose the best."""
        from ragdocs.engines.local.postings import best

        scored: dict[str, Scored] = {}
        found: dict[SignalName, Rows] = {}
        for probe in probes:
            if probe.text:
                words = self._keywords().score(probe.text, self._catalog.alive, probe.languages)
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
        all_rows = []
        all_scores = []
        for mask in masks:
            rows, scores = table.nearest(vector, k, mask, best_first)
            all_rows.append(rows)
            all_scores.append(scores)
        if len(all_rows) == 1:
            return all_rows[0]
        # A row that passes several filters has the same score under each.
        distinct, first = np.unique(np.concatenate(all_rows), return_index=True)
        return distinct[best_first(distinct, np.concatenate(all_scores)[first])]

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
