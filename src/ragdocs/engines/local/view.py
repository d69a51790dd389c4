"""One state of a local index, as a search reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, cast

from ragdocs.engines.local.catalog import Catalog, Slots
from ragdocs.engines.local.graph import LinkGraph
from ragdocs.protocols import (
    Candidates,
    Documents,
    Facet,
    Loaded,
    Order,
    PassageKey,
    ProbeVector,
    Tied,
    Ties,
)
from ragdocs.search.newest import age_order
from ragdocs.system.turns import RankingTurn
from ragdocs.types import Chunk, Document, Filter, Link

if TYPE_CHECKING:
    from ragdocs.engines.local.postings import KeywordTable
    from ragdocs.engines.local.vectors import VectorTable


class LocalSnapshot:
    """Reads of an index whose lock is held; keys are the rows of the catalog."""

    def __init__(
        self,
        catalog: Catalog,
        graph: LinkGraph,
        keywords: Callable[[], KeywordTable],
        table: Callable[[], VectorTable],
        turn: RankingTurn,
    ) -> None:
        self._catalog = catalog
        self._graph = graph
        # Whoosh is opened when words are first needed, and FAISS when vectors are.
        self._keywords = keywords
        self._table = table
        self._turn = turn

    def candidates(
        self,
        probes: Sequence[ProbeVector],
        filters: Sequence[Filter],
        k: int,
        also: Collection[str] = (),
        count_up_to: int = 0,
    ) -> Candidates:
        """Find the k best passages by words and by vector under each of the filters."""
        # Whoever only lists documents needs none of it.
        from ragdocs.engines.local import candidates

        slots = list(map(self.slots, filters))
        sources = candidates.Sources(self._catalog, self._keywords, self._table, self._turn)
        found = candidates.find(sources, probes, slots, k, also)
        if not count_up_to:
            return found
        return replace(found, passing=min(self._catalog.count(slots[0]), count_up_to))

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
        languages: Sequence[str] = ("en",),
        ties: Ties | None = None,
    ) -> Loaded:
        """Return passages with their documents, and which of these words stand in each."""
        from ragdocs.search.fields import meant

        rows = cast("Sequence[int]", keys)
        present_words: list[list[str]] = [[] for _ in rows]
        for word in words:
            positions: set[int] = set()
            for wanted in {meant(word, language) for language in languages}:
                positions.update(self._keywords().holding(rows, wanted).nonzero()[0].tolist())
            for position in positions:
                present_words[position].append(word)
        passages = []
        for row, present in zip(rows, present_words, strict=True):
            document, passage = self._catalog.chunk(row)
            passages.append((document, passage, tuple(present)))
        tied: Tied = {}
        if ties is not None:
            tied = self._tied(self._catalog.owners(rows), ties)
        self._catalog.passages.rest()
        return Loaded(passages, tied)

    def tied(self, documents: Sequence[Document], ties: Ties) -> Tied:
        """Return the other documents that ties join to these, directly or by way of others."""
        tied = self._tied(documents, ties)
        self._catalog.passages.rest()
        return tied

    def _tied(self, documents: Sequence[Document], ties: Ties) -> Tied:
        ids = list(map(attrgetter("id"), documents))
        others = self._graph.tied(ids, ties.kinds, ties.steps)
        if not others:
            return {}
        slots = self.slots(ties.where)
        tied: dict[str, tuple[Document, Chunk | None]] = {}
        for document_id in sorted(others):
            document = self._catalog.document(document_id)
            if document is None:
                continue
            passage = None
            rows = self._catalog.rows(document_id)
            if rows and self._catalog.passes(document_id, slots):
                passage = self._catalog.chunk(rows.start)[1]
            tied[document_id] = (document, passage)
        return tied

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
        self._catalog.passages.rest()
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
        from ragdocs.engines.local.vectors import similar_pairs

        ids = [document.id for document in self._catalog.documents(self.slots(where))]
        means = self._table().means([self._catalog.rows(document_id) for document_id in ids])
        pairs = similar_pairs(means, threshold, limit)
        return [(similarity, ids[first], ids[second]) for similarity, first, second in pairs]

    def slots(self, where: Filter) -> Slots:
        """Tell for each document slot of the catalog whether it passes."""
        linked = None
        if where.linked_to:
            linked = self._graph.pointing(where.linked_to)
        return self._catalog.slots(where, linked)


def _key(row: int) -> PassageKey:
    return PassageKey(row)
