"""What a process keeps in memory of a scope: the postings that it has read, and much else.

A search asks for the totals of the scope in its own transaction. If they are those under which
something was read, it still holds, also for a caller who has not read it: one who may not read the
scope is told no totals. After a write, documents are brought up to date; the marks of all documents
then add up to the sum in the totals, or everything is forgotten. Postings are brought up to date
when a search needs them again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragdocs.engines.postgres.lengths import FIELDS, Floats, decoded
from ragdocs.engines.postgres.marked import Marked
from ragdocs.engines.postgres.pool import (
    Columns,
    Mask,
    Numbers,
    Payload,
    Pool,
    Worth,
    worth,
)
from ragdocs.engines.postgres.shelf import Shelf
from ragdocs.engines.postgres.statistics import Totals
from ragdocs.protocols import Vectors
from ragdocs.search import bm25
from ragdocs.system.postgres.database import Rows

# Bytes that all scopes of a process may keep together; the one that was searched longest ago is
# forgotten first.
MOST_BYTES = 256_000_000
# Larger scopes are not kept: their documents alone would take most of that.
MOST_PASSAGES = 500_000
# After a write of more documents everything is read anew.
MOST_TOUCHED = 64
# Postings that are behind by more documents than this are read anew.
MOST_BEHIND = 256
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
    # Whether passages still wait for a vector, which comes without a new mark of the document.
    may_change: bool

    @classmethod
    def of(cls, card: bytes, slots: bytes, vectors: Vectors | None) -> HotDocument:
        """Return a document whose vectors are zero where there is none yet."""
        may_change = False
        if vectors is not None:
            is_there = vectors.any(axis=1)
            may_change = not is_there.all()
        return cls(card, slots, vectors, may_change)

    @property
    def size(self) -> int:
        """The number of bytes."""
        vectors = 0
        if self.vectors is not None:
            vectors = self.vectors.nbytes
        return OBJECT_BYTES + len(self.card) + len(self.slots) + vectors


class HotPostings(NamedTuple):
    """The postings of a term, and after how many changes they were read."""

    payload: Payload
    changes: int

    @property
    def size(self) -> int:
        """The number of bytes."""
        return OBJECT_BYTES + len(self.payload.entries) + self.payload.documents.nbytes


class Behind(NamedTuple):
    """Terms whose postings are behind, and the documents in which they may differ."""

    terms: list[str]
    documents: Numbers


class Present(NamedTuple):
    """What the database says of a scope now, and which documents were touched since a state."""

    totals: Totals
    # Transactions before this one have ended.
    since: int
    touched: list[int]

    @classmethod
    def of(cls, rows: Rows) -> Present:
        """Read the answer of the database."""
        ((counts, since, touched),) = rows
        return cls(Totals.of(counts), int(since), touched or [])


class HotState:
    """A scope as of one state; what was read of it is added as searches need it."""

    def __init__(
        self, totals: Totals, since: int, marked: Marked, before: HotState | None = None
    ) -> None:
        """Describe a state; what is the same in the one before is shared with it."""
        self.totals = totals
        # Transactions before this one had ended when the state was read.
        self.since = since
        self.marked = marked
        # The number of changes since the first state, and the documents that the last ones touched.
        self._changes = 0
        self._touched: tuple[Numbers, ...] = ()
        self._postings: Shelf[str, HotPostings] = Shelf(_size)
        self.documents: Shelf[int, HotDocument] = Shelf(_size)
        # Spellings that resemble a term which no passage has.
        self.spellings: dict[str, tuple[str, ...]] = {}
        # The number and the card of each document that goes by a name.
        self.targets: Shelf[str, list[tuple[int, bytes]]] = Shelf(_cards_size)
        # The row of a passage.
        self.passages: Shelf[tuple[int, int], tuple[Any, ...]] = Shelf(_row_size)
        self._worth: Shelf[str, TermWorth] = Shelf(_size)
        self.pool: Pool
        if before is not None and marked.has_layout_of(before.marked):
            self.pool = before.pool
        else:
            self.pool = Pool.of(marked.documents)
        # One row a field: terms are looked at field by field.
        self._lengths = np.ascontiguousarray(decoded(marked.documents.lengths).T)

    @property
    def bytes(self) -> int:
        """The number of bytes that are kept, about."""
        return (
            self._lengths.nbytes
            + OBJECT_BYTES * len(self.marked.marks)
            + self._postings.bytes
            + self.documents.bytes
            + self.targets.bytes
            + self.passages.bytes
            + self._worth.bytes
        )

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

    def missing(self, terms: Iterable[str]) -> list[str]:
        """Return those terms whose postings are not kept."""
        return [term for term in terms if term not in self._postings]

    def behind(self, terms: Iterable[str]) -> Behind:
        """Return those terms whose postings are kept and behind."""
        late = []
        oldest = self._changes
        for term in terms:
            postings = self._postings.get(term)
            if postings is not None and postings.changes < self._changes:
                late.append(term)
                oldest = min(oldest, postings.changes)
        since = len(self._touched) - (self._changes - oldest)
        nothing = np.zeros(0, np.int64)
        changed = np.concatenate([nothing, *self._touched[since:]])
        return Behind(late, np.unique(changed))

    def behind_after(self, terms: Sequence[str], touched: Sequence[int]) -> Behind:
        """Return the terms that will be behind when these documents have been touched, too."""
        present = [term for term in terms if term in self._postings]
        before = self.behind(terms)
        changed = np.array(touched, dtype=np.int64)
        documents = np.union1d(before.documents, changed)
        return Behind(present, documents)

    def is_current(self, term: str) -> bool:
        """Tell whether the postings of a term are kept and not behind."""
        postings = self._postings.get(term)
        return postings is not None and postings.changes == self._changes

    def add_postings(self, postings: Mapping[str, Payload], terms: Iterable[str]) -> None:
        """Keep the postings of these terms; of some there may be none."""
        for term in terms:
            payload = postings.get(term, NO_POSTINGS)
            current = HotPostings(payload, self._changes)
            self._postings.add(term, current)

    def catch_up(self, behind: Behind, postings: Mapping[str, Payload]) -> None:
        """Replace postings in documents where they may differ."""
        for term in behind.terms:
            stored = self._postings.get(term)
            if stored is None:
                # It was behind too far.
                continue
            payload = _postings_without(stored.payload, behind.documents)
            added = postings.get(term, NO_POSTINGS)
            if len(added.documents):
                payload = _joined_postings(payload, added)
            current = HotPostings(payload, self._changes)
            self._postings.add(term, current)

    def worth(self, terms: Iterable[str]) -> dict[str, TermWorth]:
        """Return what each of these terms, whose postings are kept, is worth."""
        missing = {}
        for term in terms:
            if term not in self._worth:
                missing[term] = self._postings[term].payload
        averages = self.totals.by_field
        added = worth(self.pool, self._lengths, missing, averages)
        for term, single_worth in added:
            own = _term_worth(self.pool.columns, single_worth)
            self._worth.add(term, own)
        return {term: self._worth[term] for term in terms}

    def having(self, term: str, columns: Columns) -> Mask:
        """Tell for each column whether it has a term whose worth is known."""
        own = self._worth[term].columns
        if not len(own):
            return np.zeros(len(columns), dtype=np.bool_)
        positions = np.searchsorted(own, columns)
        is_there: Mask = own.take(positions, mode="clip") == columns
        return is_there

    def knows(self, terms: Collection[str]) -> bool:
        """Tell whether the worth of these terms is known."""
        return self._worth.has_all(terms)

    def take_over(self, before: HotState, touched: Numbers, names: Collection[str]) -> None:
        """Keep what was kept of the state before, unless it belongs to documents that have changed.

        They go by these names now.
        """
        gone = set(touched.tolist())
        changed = []
        for number, document in before.documents.items():
            if number in gone or document.may_change:
                changed.append(number)
        self.documents = before.documents.without(changed)
        outdated = []
        for number, position in before.passages:
            if number in gone:
                outdated.append((number, position))
        self.passages = before.passages.without(outdated)
        renamed = set(names)
        for name, targets in before.targets.items():
            if any(number in gone for number, _ in targets):
                renamed.add(name)
        self.targets = before.targets.without(renamed)
        self._take_over_postings(before, touched)

    def _take_over_postings(self, before: HotState, touched: Numbers) -> None:
        self._changes = before._changes
        self._touched = before._touched
        if len(touched):
            self._changes += 1
            self._touched += (touched,)
        elif self.totals.by_field == before.totals.by_field:
            self._worth = before._worth.without(())
        count = sum(map(len, self._touched))
        while count > MOST_BEHIND:
            first, *others = self._touched
            count -= len(first)
            self._touched = tuple(others)
        oldest = self._changes - len(self._touched)
        lost = []
        for term, postings in before._postings.items():
            if postings.changes < oldest:
                lost.append(term)
        self._postings = before._postings.without(lost)


def _size(value: HotDocument | HotPostings | TermWorth) -> int:
    return value.size


def _cards_size(targets: list[tuple[int, bytes]]) -> int:
    return OBJECT_BYTES + sum(len(card) for _, card in targets)


def _row_size(row: tuple[Any, ...]) -> int:
    return OBJECT_BYTES + sum(len(value) for value in row if isinstance(value, bytes))


NO_POSTINGS = Payload(np.empty(0, np.int64), np.empty(0, np.int32), b"")


def _term_worth(count: int, whole: Worth) -> TermWorth:
    """Return what is kept of the worth of a term, given the number of all columns."""
    named = np.flatnonzero(whole.named)
    is_dense = len(whole.columns) > DENSE_SHARE * count
    # What was found are parts of arrays of many terms, which would be kept with them.
    if is_dense:
        values = np.zeros(count, dtype=np.float32)
        values[whole.columns] = whole.impact
    else:
        values = whole.impact.copy()
    return TermWorth(
        whole.columns.copy(),
        values,
        is_dense,
        whole.columns[named],
        whole.named[named],
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
    before: HotState, present: Present, fresh: Marked, names: Collection[str]
) -> HotState:
    """Return a later state: documents that were touched are those given now, or are gone.

    They go by these names now.
    """
    changed = np.array(present.touched, dtype=np.int64)
    documents = before.marked.replaced(changed, fresh)
    later = HotState(present.totals, present.since, documents, before)
    later.take_over(before, changed, names)
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
    row_of = {slot: row for row, slot in enumerate(numbers.tolist())}
    for position, slot in enumerate(wanted.tolist()):
        if slot in row_of:
            vectors[position] = halves[row_of[slot]]
    return vectors


def vector_products(vectors: Vectors, query: Vectors) -> npt.NDArray[np.float32]:
    """Return the inner product of each vector with that of a query, in half precision.

    Row by row: where a product would depend on the rows beside it, equal texts could differ.
    """
    rounded = query.astype(np.float16).astype(np.float32)
    result: Vectors = np.einsum("ij,j->i", vectors, rounded)
    return result
