"""Finding the candidates of a search, usually in two turns.

The first asks for the documents with the highest bounds and for the nearest vectors, the second
for everything about the documents that are left, and for those that could not be ruled out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, overload

import numpy as np
import numpy.typing as npt

from ragdocs.engines.postgres import vectors, words
from ragdocs.engines.postgres.cards import Cards, all_stored
from ragdocs.engines.postgres.filters import Condition
from ragdocs.engines.postgres.hot import (
    HotDocument,
    HotScope,
    HotState,
    passage_vectors,
    vector_products,
)
from ragdocs.engines.postgres.hot_search import HotSearch
from ragdocs.engines.postgres.lengths import Floats
from ragdocs.engines.postgres.pool import (
    Columns,
    Fetched,
    Mask,
    Numbers,
    Payload,
    Pool,
    best,
    united,
    word_scores,
)
from ragdocs.engines.postgres.statistics import TOTALS, Totals
from ragdocs.protocols import Candidates, PassageKey, ProbeVector, SignalName, Vectors
from ragdocs.search import bm25
from ragdocs.system.postgres.database import Rows, Statement

# Marks of a document and a slot; no slot is that large.
SLOT_BITS = 32
NO_SLOT = 2**31 - 1
# Of more documents than this that could not be ruled out, only the words are fetched at first: few
# of them are among the best, and vectors and cards cost several times as much. Those with the
# highest bounds come first, because they rule out others; each round has twice as many.
MOST_AT_ONCE = 100
FIRST_ROUND = 300


class Key(NamedTuple):
    """A passage: the number of its document and its position there."""

    document: int
    ord: int


class Keys(Sequence[PassageKey]):
    """The keys of columns, made when they are asked for: a search uses few of thousands."""

    def __init__(self, documents: Numbers, positions: Numbers) -> None:
        self._documents = documents
        self._positions = positions

    def __len__(self) -> int:
        return len(self._documents)

    @overload
    def __getitem__(self, column: int) -> PassageKey: ...
    @overload
    def __getitem__(self, column: slice) -> Sequence[PassageKey]: ...
    def __getitem__(self, column: int | slice) -> PassageKey | Sequence[PassageKey]:
        if isinstance(column, slice):
            return [self[number] for number in range(*column.indices(len(self)))]
        document = int(self._documents[column])
        position = int(self._positions[column])
        return PassageKey(Key(document, position))


class Details(NamedTuple):
    """What only documents that are shown need: card, slots of passages, and products by probe.

    Instead of products there are the vectors of all passages, if they are kept in memory.
    """

    is_asked_for: bool
    card: bytes
    slots: bytes = b""
    products: Sequence[bytes | None] = ()
    vectors: Vectors | None = None


class SearchedScope(NamedTuple):
    """A scope, the components of a vector if there is a graph of them, and what is in memory."""

    number: int
    graph_dim: int
    hot: HotScope


class CandidateSearch:
    """One search in one state of an index."""

    def __init__(
        self,
        ask: Callable[..., list[Rows]],
        scope: SearchedScope,
        probes: Sequence[ProbeVector],
        conditions: Sequence[Condition],
        k: int,
    ) -> None:
        self._ask = ask
        self._scope, self._graph_dim, self._hot = scope
        self._probes = probes
        # Vectors by the name of their probe.
        self._vectors: dict[str, Vectors] = {}
        for probe in probes:
            if probe.vector is not None:
                self._vectors[probe.name] = probe.vector
        self._conditions = conditions
        self._k = k
        # The state that is kept in memory, if the search is made there.
        self.state: HotState | None = None
        # Which documents of it pass each filter; nothing where all do.
        self.passing: Sequence[Mask | None] = ()
        self._look = words.FirstLook(Totals.of(None))
        self._has_looked = False
        self._hot_search: HotSearch | None = None
        self._pool = Pool.of(words.NOTHING_FETCHED)
        self._best: dict[tuple[str, int], Columns] = {}
        self._scores: dict[str, Floats] = {}
        self._near: dict[tuple[str, int], vectors.Near] = {}
        self._details: dict[int, Details] = {}

    def run(self, also: Collection[str], cards: Cards) -> Candidates:
        """Find candidates; the documents with the ids in `also` are among them."""
        started = time.perf_counter()
        self._look_first()
        looked = time.perf_counter()
        self._gather(also)
        # Both sources are asked in the same turns, so their parts cannot be told apart.
        seconds = {"words": looked - started, "meaning": time.perf_counter() - looked}
        return self._candidates(cards, seconds)

    @property
    def writes(self) -> int | None:
        """The number of writes before this state, if it was asked for."""
        if not self._has_looked:
            return None
        return self._look.totals.counts["writes"]

    # --- the first turn ---

    def _look_first(self) -> None:
        queries = words.word_queries(self._probes, self._rarest)
        sources = []
        statements = []
        for name in self._vectors:
            for number in range(len(self._conditions)):
                sources.append((name, number))
                statements.append(self._nearest(name, number))
        if not statements and not queries:
            return
        self._has_looked = True
        if not queries:
            totals, *answers = self._ask((TOTALS, {"scope": self._scope}), *statements)
            self._look = words.FirstLook(Totals.of(totals[0][0]))
        else:
            answers = self._look_by_words(queries, statements)
        for key, rows in zip(sources, answers, strict=True):
            self._near[key] = vectors.read_near(rows[0][0])
        if self.state is not None:
            self._take_hot_look()

    def _look_by_words(
        self, queries: Sequence[words.WordQuery], statements: Sequence[Statement]
    ) -> list[Rows]:
        """Search by words in memory or by bounds; return the answers to further statements."""
        if not self._hot.is_wanted:
            return self._look_by_bounds(queries, statements)
        search = HotSearch(self._ask, self._scope, self._hot, queries, self._conditions)
        answers = search.bring_up(statements)
        self.state = search.state
        self.passing = search.passing
        self._hot_search = search
        if self.state is None:
            self._look_by_bounds(queries, ())
        return answers

    def _look_by_bounds(
        self, queries: Sequence[words.WordQuery], statements: Sequence[Statement]
    ) -> list[Rows]:
        look = words.first_look(
            self._scope, queries, self._conditions, self._k, with_cards=not self._vectors
        )
        rows, *answers = self._ask(look, *statements)
        self._look = words.read_first_look(rows, queries)
        for number, card in self._look.cards.items():
            self._details[number] = Details(is_asked_for=False, card=card)
        self._score(self._look.documents, self._look.payloads)
        self._hot.searched(self._look.totals)
        return answers

    def _take_hot_look(self) -> None:
        assert self._hot_search is not None
        assert self.state is not None
        near = [own["document"].astype(np.int64) for own in self._near.values()]
        looked = self._hot_search.look(self._k, near)
        self._look = words.FirstLook(self.state.totals, self._hot_search.weighed)
        self._pool, self._scores, self._best = looked

    def _rarest(self, query: words.WordQuery) -> dict[str, int]:
        forms: dict[str, None] = {}
        for term in query.terms:
            forms |= dict.fromkeys(query.forms(term))
        counted, totals = self._ask(
            words.frequencies_of(self._scope, list(forms)), (TOTALS, {"scope": self._scope})
        )
        count = Totals.of(totals[0][0]).passages
        return words.rarest(query, dict(counted), count)

    def _nearest(self, name: str, number: int) -> Statement:
        return vectors.nearest(
            self._scope,
            self._vectors[name],
            self._conditions[number],
            self._k,
            graph_dim=self._graph_dim,
        )

    def _score(self, fetched: Fetched, payloads: Mapping[str, Payload]) -> None:
        """Score these documents by words and put them into the pool."""
        pool = Pool.of(fetched)
        averages = self._look.totals.by_field
        scores = word_scores(fetched, self._look.queries, payloads, averages)
        self._best.clear()
        if not len(self._pool.numbers):
            self._pool = pool
            self._scores = scores
            return
        both = self._pool.joined(pool)
        for name, values in scores.items():
            joined = np.zeros(both.columns, dtype=np.float32)
            joined[both.columns_of(self._pool)] = self._scores[name]
            joined[both.columns_of(pool)] = values
            self._scores[name] = joined
        self._pool = both

    # --- the second turn ---

    def _gather(self, also: Collection[str]) -> None:
        """Fetch what is missing: cards and products of documents, and documents not ruled out."""
        missing = self._not_ruled_out()
        size = FIRST_ROUND
        while len(missing) > MOST_AT_ONCE:
            self._score_missing(missing[:size])
            missing = self._not_ruled_out()
            size *= 2
        wanted = set(missing)
        for columns in self._hits_by_words().values():
            owners = self._pool.owners[columns]
            wanted.update(self._pool.numbers[owners].tolist())
        for near in self._near.values():
            wanted.update(near["document"].tolist())
        self._take_hot_documents(wanted)
        wanted -= self._details.keys()
        if not wanted and not also:
            return
        in_pool = set(self._pool.numbers.tolist())
        statements = [self._documents(wanted, also)]
        terms = self._spellings()
        unscored = wanted - in_pool
        if terms and (unscored or also):
            statements.append(self._payloads(terms, unscored, also))
        answers = self._ask(*statements)
        fetched = []
        for number, path, passes, lengths, *details in answers[0]:
            self._details[number] = self._read_details(number, *details)
            if number not in in_pool:
                fetched.append((number, passes, path, lengths))
        if fetched:
            payloads = {}
            if len(answers) > 1:
                payloads = words.read_payloads(answers[1])
            self._score(words.as_fetched(fetched), payloads)

    def _take_hot_documents(self, wanted: Collection[int]) -> None:
        """Take what is kept in memory of documents."""
        if self.state is None:
            return
        for number in wanted:
            document = self.state.documents.get(number)
            if document is None or (self._vectors and document.vectors is None):
                continue
            self._details[number] = Details(
                False, document.card, document.slots, vectors=document.vectors
            )

    def _read_details(
        self,
        number: int,
        is_asked_for: bool,
        card: bytes,
        slots: bytes,
        *measured: bytes | None,
    ) -> Details:
        if self.state is None:
            return Details(is_asked_for, card, slots, measured)
        own = None
        if measured:
            own = passage_vectors(measured[0], slots, self._dim)
        self.state.documents.add(number, HotDocument.of(card, slots, own))
        return Details(is_asked_for, card, slots, vectors=own)

    @property
    def _dim(self) -> int:
        return len(next(iter(self._vectors.values())))

    def _score_missing(self, missing: Collection[int]) -> None:
        """Fetch the words of documents and score them."""
        columns = f"d.doc_id, ({words.flags(self._conditions)})::bigint, d.path, d.lengths"
        values = {"scope": self._scope, "wanted": words.array(missing)}
        for condition in self._conditions:
            values |= condition.values
        sql = f"SELECT {columns} FROM documents d WHERE {_chosen(())} ORDER BY d.path"
        payloads = self._payloads(self._spellings(), missing, ())
        fetched, postings = self._ask((sql, values), payloads)
        self._score(words.as_fetched(fetched), words.read_payloads(postings))

    def _not_ruled_out(self) -> list[int]:
        """Return the documents that may have a better passage than the k-th best so far.

        Those with the highest bounds come first.
        """
        if self.state is not None:
            # All documents were looked at.
            return []
        bounds: dict[int, float] = {}
        statements = []
        for probe, name in enumerate(self._scores):
            for number, condition in enumerate(self._conditions):
                least = self._kth_score(name, number)
                listing = self._look.listings[probe, number]
                bounds |= listing.at_least(least)
                if not listing.is_complete(least):
                    factors = self._factors(name)
                    statements.append(words.documents_above(self._scope, factors, condition, least))
        if statements:
            for rows in self._ask(*statements):
                bounds |= dict(rows)
        for number in self._pool.numbers.tolist():
            bounds.pop(number, None)
        return sorted(bounds, key=bounds.__getitem__, reverse=True)

    def _kth_score(self, name: str, number: int) -> float:
        """Return the k-th best score under a filter, or 0 if there are fewer."""
        columns = self._best_by_words(name, number)
        if len(columns) < self._k:
            return 0.0
        return float(self._scores[name][columns[-1]])

    def _factors(self, name: str) -> list[tuple[str, float, float]]:
        query = self._look.queries[name]
        total = sum(term.weight for term in query)
        naming = bm25.naming(len(query))
        factors = []
        for term in query:
            for spelling, share in term.spellings:
                factor = float(bm25.factor(term, share, total))
                factors.append((spelling, factor, share * naming))
        return factors

    def _spellings(self) -> list[str]:
        spellings: set[str] = set()
        for query in self._look.queries.values():
            for term in query:
                for spelling, _ in term.spellings:
                    spellings.add(spelling)
        return sorted(spellings)

    def _documents(self, wanted: Collection[int], also: Collection[str]) -> Statement:
        columns = ["d.doc_id", "d.path", f"({words.flags(self._conditions)})::bigint", "d.lengths"]
        columns += ["d.id = ANY (%(also)s::text[])", "d.card", "d.slots"]
        values = {
            "scope": self._scope,
            "wanted": words.array(wanted),
            "also": all_stored(also),
        }
        if self.state is None:
            for number in range(len(self._vectors)):
                columns.append(vectors.products_column(number))
            values |= vectors.product_values(list(self._vectors.values()))
        elif self._vectors:
            columns.append(vectors.VECTORS_COLUMN)
        for condition in self._conditions:
            values |= condition.values
        return (
            f"SELECT {', '.join(columns)} FROM documents d WHERE {_chosen(also)} ORDER BY d.path",
            values,
        )

    def _payloads(
        self, terms: list[str], unscored: Collection[int], also: Collection[str]
    ) -> Statement:
        values = {
            "scope": self._scope,
            "terms": terms,
            "wanted": words.array(unscored),
            "also": all_stored(also),
        }
        chosen = f"SELECT d.doc_id FROM documents d WHERE {_chosen(also)}"
        if not also:
            chosen = "SELECT doc_id FROM unnest(%(wanted)s::bigint[]) AS u(doc_id)"
        return words.payloads(chosen), values

    # --- what was found ---

    def _best_by_words(self, name: str, number: int) -> Columns:
        """Return the k best passages under a filter, computed once between two fetches."""
        columns = self._best.get((name, number))
        if columns is None:
            scores = self._scores[name]
            allowed = self._pool.passing(number) & (scores > 0)
            columns = best(scores, self._k, allowed)
            self._best[name, number] = columns
        return columns

    def _hits_by_words(self) -> dict[str, Columns]:
        columns = {}
        for name, scores in self._scores.items():
            parts = []
            for number in range(len(self._conditions)):
                parts.append(self._best_by_words(name, number))
            columns[name] = united(parts, scores)
        return columns

    def _hits_by_vector(
        self, slots: Numbers, measured: Mapping[str, Vectors]
    ) -> dict[str, Columns]:
        """Return the nearest passages of each probe; those of equal text have the same slot."""
        columns = {}
        for name, products in measured.items():
            parts = []
            for number in range(len(self._conditions)):
                near = self._near[name, number]
                positions = self._pool.positions(near["document"])
                allowed = np.isin(slots, _marked(positions, near["slot"]))
                parts.append(best(products, self._k, allowed))
            columns[name] = united(parts, products)
        return columns

    def _measured(self) -> tuple[Numbers, dict[str, Vectors]]:
        """Return the document and slot of every column as one number, and the products."""
        if not self._vectors:
            return np.empty(0, dtype=np.int64), {}
        marked = _marked(self._pool.owners, self._slots())
        measured = {}
        if self.state is not None:
            all_vectors = self._passage_vectors()
            for name, vector in self._vectors.items():
                measured[name] = vector_products(all_vectors, vector)
            return marked, measured
        for number, name in enumerate(self._vectors):
            owners, entries = self._products(number)
            own_marked = _marked(owners, entries["slot"])
            measured[name] = _spread(own_marked, entries["product"], marked)
        return marked, measured

    def _passage_vectors(self) -> Vectors:
        """Return the vectors of all columns, zero where there is none."""
        parts = [np.zeros((0, self._dim), dtype=np.float32)]
        numbers = self._pool.numbers.tolist()
        for number, size in zip(numbers, self._pool.sizes.tolist(), strict=True):
            details = self._details.get(number)
            if details is None or details.vectors is None:
                parts.append(np.zeros((size, self._dim), dtype=np.float32))
            else:
                parts.append(details.vectors)
        return np.concatenate(parts)

    def _slots(self) -> npt.NDArray[np.int32]:
        """Return the slot of every column, none in documents without details."""
        longest = int(self._pool.sizes.max(initial=0))
        no_slots = np.full(longest, NO_SLOT, dtype="<i4")
        blank = no_slots.tobytes()
        parts = []
        numbers = self._pool.numbers.tolist()
        for number, size in zip(numbers, self._pool.sizes.tolist(), strict=True):
            details = self._details.get(number)
            if details is None:
                parts.append(blank[: size * 4])
            else:
                parts.append(details.slots)
        return np.frombuffer(b"".join(parts), dtype="<i4")

    def _products(self, probe: int) -> tuple[Numbers, npt.NDArray[np.void]]:
        """Return the products of all documents with one vector, and the position of each owner."""
        parts = []
        sizes = []
        for number in self._pool.numbers.tolist():
            details = self._details.get(number)
            products = b""
            if details is not None:
                products = details.products[probe] or b""
            parts.append(products)
            sizes.append(len(products) // vectors.PRODUCT.itemsize)
        owners = np.repeat(np.arange(len(parts)), sizes)
        return owners, np.frombuffer(b"".join(parts), dtype=vectors.PRODUCT)

    def _candidates(self, cards: Cards, seconds: Mapping[str, float]) -> Candidates:
        """Leave out documents of which no passage was found, and put the rest in columns."""
        slots, measured = self._measured()
        columns: dict[SignalName, Columns] = {}
        raw: dict[SignalName, npt.NDArray[np.floating]] = {}
        for name, hits in self._hits_by_words().items():
            columns[name, "keyword"] = hits
            raw[name, "keyword"] = self._scores[name]
        for name, hits in self._hits_by_vector(slots, measured).items():
            columns[name, "vector"] = hits
            raw[name, "vector"] = measured[name]
        pool = self._pool
        is_kept = self._has_hits(columns.values())
        is_column_kept = is_kept[pool.owners]
        moved = np.cumsum(is_column_kept) - 1
        sizes = pool.sizes[is_kept]
        documents = []
        for number in pool.numbers[is_kept].tolist():
            details = self._details[number]
            documents.append(cards.document(details.card))
        scores = {}
        for signal, values in raw.items():
            scores[signal] = values[is_column_kept].astype(np.float64)
        return Candidates(
            keys=self._keys(is_column_kept),
            starts=np.cumsum(sizes) - sizes,
            documents=documents,
            raw=scores,
            found={signal: moved[hits].tolist() for signal, hits in columns.items()},
            term_counts={name: len(query) for name, query in self._look.queries.items()},
            lone_share=self._look.totals.lone_share,
            seconds=seconds,
        )

    def _has_hits(self, chosen: Iterable[Columns]) -> Mask:
        """Tell for each document whether it has a passage that was found, or was asked for."""
        pool = self._pool
        is_kept = np.zeros(len(pool.numbers), dtype=np.bool_)
        for columns in chosen:
            owners = pool.owners[columns]
            is_kept[owners] = True
        for number, details in self._details.items():
            if details.is_asked_for:
                is_kept[pool.numbers == number] = True
        return is_kept

    def _keys(self, is_kept: Mask) -> Keys:
        """Return the keys of the columns that are kept."""
        pool = self._pool
        owners = pool.owners[is_kept]
        columns = np.flatnonzero(is_kept)
        positions = columns - pool.starts[owners]
        return Keys(pool.numbers[owners], positions)


def _chosen(also: Collection[str]) -> str:
    by_number = "d.doc_id = ANY (%(wanted)s::bigint[])"
    if not also:
        return f"d.scope = %(scope)s AND {by_number}"
    return f"d.scope = %(scope)s AND ({by_number} OR d.id = ANY (%(also)s::text[]))"


def _marked(positions: Numbers, slots: npt.NDArray[np.integer]) -> Numbers:
    """Return one number for each document and slot."""
    marked: Numbers = (positions.astype(np.int64) << SLOT_BITS) + slots.astype(np.int64)
    return marked


def _spread(marked: Numbers, values: Vectors, wanted: Numbers) -> Vectors:
    """Return the value of each wanted mark, 0 where there is none."""
    if not len(marked):
        return np.zeros(len(wanted), dtype=np.float32)
    order = np.argsort(marked)
    positions = np.searchsorted(marked, wanted, sorter=order)
    last = len(marked) - 1
    nearest = order[positions.clip(max=last)]
    is_there = marked[nearest] == wanted
    result: Vectors = np.where(is_there, values[nearest], 0.0).astype(np.float32)
    return result
