"""What a process keeps in memory of a scope: the postings that it has read, and much else.

A search asks for the totals of the scope in its own transaction. If they are those under which
something was read, it still holds, also for a caller who has not read it: one who may not read the
scope is told no totals. After a write, documents and postings are brought up to date; the marks of
all documents then add up to the sum in the totals, or everything is forgotten.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragdocs.engines.postgres.lengths import FIELDS, Floats, decoded
from ragdocs.engines.postgres.pool import (
    Columns,
    Fetched,
    Mask,
    Numbers,
    Payload,
    Pool,
    Worth,
    worth,
)
from ragdocs.engines.postgres.statistics import Totals
from ragdocs.protocols import Vectors
from ragdocs.search import bm25

# Bytes that all scopes of a process may keep together; the one that was searched longest ago is
# forgotten first.
MOST_BYTES = 256_000_000
# Larger scopes are not kept: their documents alone would take most of that.
MOST_PASSAGES = 500_000
# After a write of more documents everything is read anew.
MOST_TOUCHED = 64
# A term in more than this share of all passages has a value for each of them, as in the local
# engine: adding a whole array is quicker than adding to chosen columns.
DENSE_SHARE = 0.06
# What a Python object costs beside its bytes, about.
OBJECT_BYTES = 200

# A vector of a document as it is sent: its slot, two numbers of the format, and its components.
_SLOT = np.dtype(">i4")
_HALF = np.dtype(">f2")
_HEAD_BYTES = 8


class TermWorth(NamedTuple):
    """What a term is worth in the columns that have it, or in every column where they are many."""

    columns: Columns
    values: Floats
    is_dense: bool
    # Columns whose title or name has it, and its share of that.
    named_columns: Columns
    named: Floats

    @property
    def size(self) -> int:
        """The number of bytes."""
        arrays = (self.columns, self.values, self.named_columns, self.named)
        return OBJECT_BYTES + sum(array.nbytes for array in arrays)


class HotDocument(NamedTuple):
    """A card, the slots of passages, and one vector a passage where they were read."""

    card: bytes
    slots: bytes
    vectors: Vectors | None

    @property
    def size(self) -> int:
        """The number of bytes."""
        vectors = 0
        if self.vectors is not None:
            vectors = self.vectors.nbytes
        return OBJECT_BYTES + len(self.card) + len(self.slots) + vectors


class Marked(NamedTuple):
    """Documents by path, and the mark of each."""

    documents: Fetched
    marks: Numbers


class HotState:
    """A scope as of one state; what was read of it is added as searches need it."""

    def __init__(self, totals: Totals, since: int, marked: Marked) -> None:
        self.totals = totals
        # Transactions before this one had ended when the state was read.
        self.since = since
        self.marked = marked
        self.pool = Pool.of(marked.documents)
        self.postings: dict[str, Payload] = {}
        self.documents: dict[int, HotDocument] = {}
        # Spellings that resemble a term which no passage has.
        self.spellings: dict[str, tuple[str, ...]] = {}
        # The number and the card of each document that goes by a name.
        self.targets: dict[str, list[tuple[int, bytes]]] = {}
        # The row of a passage.
        self.passages: dict[tuple[int, int], tuple[Any, ...]] = {}
        self._worth: dict[str, TermWorth] = {}
        # One row a field: terms are looked at field by field.
        self._lengths = np.ascontiguousarray(decoded(marked.documents.lengths).T)
        self.bytes = self._lengths.nbytes + OBJECT_BYTES * len(marked.marks)

    @property
    def is_proven(self) -> bool:
        """Whether these are the present documents, and all of them."""
        counts = self.totals.counts
        sums = self._lengths.sum(axis=1, dtype=np.float64)
        own = {
            "documents": len(self.marked.marks),
            "passages": self.pool.columns,
            "marks": int(self.marked.marks.sum()),
        }
        for field, length in zip(FIELDS, sums.tolist(), strict=True):
            own[field] = int(length)
        return all(counts[name] == count for name, count in own.items())

    def add_postings(self, postings: Mapping[str, Payload], terms: Iterable[str]) -> None:
        """Keep the postings of these terms; of some there may be none."""
        for term in terms:
            payload = postings.get(term, NO_POSTINGS)
            self.postings[term] = payload
            self.bytes += OBJECT_BYTES + len(payload.entries) + payload.documents.nbytes

    def worth(self, terms: Iterable[str]) -> dict[str, TermWorth]:
        """Return what each of these terms, whose postings are kept, is worth."""
        missing = {}
        for term in terms:
            if term not in self._worth:
                missing[term] = self.postings[term]
        averages = self.totals.by_field
        added = worth(self.pool, self._lengths, missing, averages)
        for term, found in added:
            own = _term_worth(self.pool.columns, found)
            self._worth[term] = own
            self.bytes += own.size
        return {term: self._worth[term] for term in terms}

    def having(self, term: str, columns: Columns) -> Mask:
        """Tell for each column whether it has a term whose worth is known."""
        own = self._worth[term].columns
        if not len(own):
            return np.zeros(len(columns), dtype=np.bool_)
        places = np.searchsorted(own, columns)
        is_there: Mask = own.take(places, mode="clip") == columns
        return is_there

    def knows(self, terms: Collection[str]) -> bool:
        """Tell whether the worth of these terms is known."""
        return self._worth.keys() >= set(terms)

    def add_document(self, number: int, document: HotDocument) -> None:
        """Keep a document."""
        self.documents[number] = document
        self.bytes += document.size

    def add_targets(self, by_name: Mapping[str, list[tuple[int, bytes]]]) -> None:
        """Keep which documents go by these names."""
        for name, documents in by_name.items():
            self.targets[name] = documents
            cards = sum(len(card) for _, card in documents)
            self.bytes += OBJECT_BYTES + cards

    def add_passage(self, key: tuple[int, int], row: tuple[Any, ...]) -> None:
        """Keep the row of a passage."""
        self.passages[key] = row
        self.bytes += OBJECT_BYTES
        for value in row:
            if isinstance(value, bytes):
                self.bytes += len(value)


NO_POSTINGS = Payload(np.empty(0, np.int64), np.empty(0, np.int32), b"")


def _term_worth(count: int, found: Worth) -> TermWorth:
    """Return what is kept of the worth of a term, given the number of all columns."""
    places = np.flatnonzero(found.named)
    is_dense = len(found.columns) > DENSE_SHARE * count
    # What was found are parts of arrays of many terms, which would be kept with them.
    if is_dense:
        values = np.zeros(count, dtype=np.float32)
        values[found.columns] = found.impact
    else:
        values = found.impact.copy()
    return TermWorth(
        found.columns.copy(),
        values,
        is_dense,
        found.columns[places],
        found.named[places],
    )


def word_score(state: HotState, query: Sequence[bm25.QueryTerm]) -> Floats:
    """Score every passage of the scope, in the steps and the precision of the local engine."""
    scores = np.zeros(state.pool.columns, dtype=np.float32)
    total = sum(term.weight for term in query)
    naming = bm25.naming(len(query))
    for term in query:
        spellings = dict(term.spellings)
        for spelling, own in state.worth(spellings).items():
            share = spellings[spelling]
            factor = bm25.factor(term, share, total)
            if own.is_dense:
                scores += factor * own.values
            else:
                scores[own.columns] += factor * own.values
            if len(own.named):
                named_factor = np.float32(share * naming)
                scores[own.named_columns] += named_factor * own.named
    return scores


class HotScope:
    """The newest state of a scope that this process has read, if it has read one."""

    def __init__(self, memory: HotMemory | None = None) -> None:
        self._memory = memory or MEMORY
        self._state: HotState | None = None
        self._searches = 0

    @property
    def state(self) -> HotState | None:
        """The state that was kept last."""
        return self._state

    @property
    def is_wanted(self) -> bool:
        """Whether to read a state; a process that searches once, as a command does, needs none."""
        return self._searches > 0

    def searched(self, totals: Totals) -> None:
        """Note a search that found nothing kept."""
        if totals.passages <= MOST_PASSAGES:
            self._searches += 1

    def keep(self, state: HotState) -> None:
        """Keep a state, and what was added to it."""
        self._state = state
        self._memory.used(self, state.bytes)

    def forget(self) -> None:
        """Keep nothing."""
        self._state = None
        self._searches = 0
        self._memory.used(self, 0)


class HotMemory:
    """How much the scopes of a process keep, and which was searched longest ago."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._bytes: OrderedDict[HotScope, int] = OrderedDict()

    def used(self, scope: HotScope, count: int) -> None:
        """Note what a scope keeps now; forget others, or itself, if that is too much."""
        forgotten = []
        with self._lock:
            self._bytes.pop(scope, None)
            if count:
                self._bytes[scope] = count
            while sum(self._bytes.values()) > self._limit:
                oldest, _ = self._bytes.popitem(last=False)
                forgotten.append(oldest)
        for other in forgotten:
            other.forget()


MEMORY = HotMemory(MOST_BYTES)


def brought_up(
    state: HotState,
    totals: Totals,
    since: int,
    touched: Collection[int],
    fresh: Marked,
    postings: Mapping[str, Payload],
) -> HotState:
    """Return a later state: documents that were touched are those given now, or are gone."""
    changed = np.fromiter(touched, dtype=np.int64, count=len(touched))
    unchanged = _without(state.marked, changed)
    documents = _joined(unchanged, fresh)
    later = HotState(totals, since, documents)
    # Another search may be adding to them.
    for term, payload in list(state.postings.items()):
        kept = _postings_without(payload, changed)
        added = postings.get(term, NO_POSTINGS)
        if len(added.documents):
            kept = _joined_postings(kept, added)
        later.add_postings({term: kept}, [term])
    return later


def _joined_postings(first: Payload, second: Payload) -> Payload:
    return Payload(
        np.concatenate([first.documents, second.documents]),
        np.concatenate([first.sizes, second.sizes]),
        first.entries + second.entries,
    )


def _postings_without(payload: Payload, numbers: Numbers) -> Payload:
    """Leave out the postings of these documents."""
    is_kept = ~np.isin(payload.documents, numbers)
    if is_kept.all():
        return payload
    data = np.frombuffer(payload.entries, dtype=np.uint8)
    is_byte_kept = np.repeat(is_kept, payload.sizes)
    return Payload(
        payload.documents[is_kept],
        payload.sizes[is_kept],
        data[is_byte_kept].tobytes(),
    )


def _without(marked: Marked, numbers: Numbers) -> Marked:
    """Leave documents out."""
    documents = marked.documents
    kept = ~np.isin(documents.numbers, numbers)
    if kept.all():
        return marked
    codes = np.frombuffer(documents.lengths, dtype=np.uint8)
    by_passage = codes.reshape(-1, len(FIELDS))
    is_passage_kept = np.repeat(kept, documents.sizes)
    fetched = Fetched(
        documents.numbers[kept],
        documents.passes[kept],
        documents.sizes[kept],
        list(compress(documents.paths, kept.tolist())),
        by_passage[is_passage_kept].tobytes(),
    )
    return Marked(fetched, marked.marks[kept])


def _joined(first: Marked, second: Marked) -> Marked:
    """Put the documents of both in the order of their paths."""
    if not len(second.marks):
        return first
    one = first.documents
    other = second.documents
    paths = one.paths + other.paths
    order = sorted(range(len(paths)), key=paths.__getitem__)
    numbers = np.concatenate([one.numbers, other.numbers])
    passes = np.concatenate([one.passes, other.passes])
    sizes = np.concatenate([one.sizes, other.sizes])
    marks = np.concatenate([first.marks, second.marks])
    fetched = Fetched(
        numbers[order],
        passes[order],
        sizes[order],
        [paths[place] for place in order],
        _ordered_lengths(one.lengths + other.lengths, sizes, order),
    )
    return Marked(fetched, marks[order])


def _ordered_lengths(codes: bytes, sizes: Numbers, order: Sequence[int]) -> bytes:
    """Return the lengths of the passages of documents in another order of these."""
    ends = np.cumsum(sizes) * len(FIELDS)
    bounds = [0, *ends.tolist()]
    pieces = []
    for place in order:
        start = bounds[place]
        end = bounds[place + 1]
        pieces.append(codes[start:end])
    return b"".join(pieces)


def passage_vectors(data: bytes | None, slots: bytes, dim: int) -> Vectors:
    """Return the vector of each passage, zero where it has none, from all of its document."""
    sent = np.dtype((np.void, _HEAD_BYTES + dim * _HALF.itemsize))
    rows = np.frombuffer(data or b"", dtype=sent)
    parts = rows.view(np.uint8).reshape(len(rows), sent.itemsize)
    slot_bytes = np.ascontiguousarray(parts[:, : _SLOT.itemsize])
    numbers = slot_bytes.view(_SLOT).ravel()
    half_bytes = np.ascontiguousarray(parts[:, _HEAD_BYTES:])
    halves = half_bytes.view(_HALF).reshape(len(rows), dim)
    wanted = np.frombuffer(slots, dtype="<i4")
    vectors = np.zeros((len(wanted), dim), dtype=np.float32)
    place_of = {slot: place for place, slot in enumerate(numbers.tolist())}
    for position, slot in enumerate(wanted.tolist()):
        if slot in place_of:
            vectors[position] = halves[place_of[slot]]
    return vectors


def vector_products(vectors: Vectors, query: Vectors) -> npt.NDArray[np.float32]:
    """Return the inner product of each vector with that of a query, in half precision.

    Row by row: where a product would depend on the rows beside it, equal texts could differ.
    """
    rounded = query.astype(np.float16).astype(np.float32)
    result: Vectors = np.einsum("ij,j->i", vectors, rounded)
    return result
