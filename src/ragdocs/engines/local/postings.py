"""Keyword search: Whoosh keeps the postings, numpy adds up what they are worth."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ragdocs.engines.local.catalog import BestFirst, by_row
from ragdocs.engines.local.segments import Buffer, Floats, Mask, Rows, Segment, Segments
from ragdocs.search import bm25
from ragdocs.search.fields import FieldTerms
from ragdocs.text.languages import ENGLISH

# Decoded postings kept in memory, counted in postings of about 50 bytes.
CACHED_POSTINGS = 1_000_000
# A term in more than this share of all rows is kept as one value for every row: adding a whole
# array takes a tenth of the time of adding to chosen positions.
DENSE_SHARE = 0.06
# Values kept ready between two changes, 4 or 12 bytes each; in a large index as many as a hundred
# common terms have.
CACHED_IMPACTS = 2_000_000
COMMON_TERMS = 100
# Segments are merged with every snapshot; where changes never pause for one, this many may pile up.
PILED_SEGMENTS = 64
# The name of our own file among Whoosh's.
ROWS = "rows.bin"


class Scored(NamedTuple):
    """The score of every row for a query, and how many different terms it is scored by."""

    values: Floats
    terms: int


@dataclass(frozen=True, slots=True)
class _Postings:
    """The rows that have a term in the segments named, in order.

    With (term frequency, field length) of each row for each field.
    """

    segments: frozenset[str]
    rows: Rows
    by_field: Mapping[str, bm25.Occurrences]


@dataclass(frozen=True, slots=True)
class _Sums:
    """The rows of a segment that are not removed: how many, and how long each field is in all."""

    count: int
    lengths: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Impact:
    """What one term adds to the score of its rows, or of every row where that is quicker.

    `named` are the rows that have it in a title or a name, and their share of that.
    """

    rows: Rows | None
    values: Floats
    frequency: int
    named: tuple[Rows, Floats]


class KeywordTable:
    """A Whoosh index in memory, with one Whoosh document for each row."""

    def __init__(self, files: Mapping[str, Buffer] | None = None) -> None:
        stored = dict(files or {})
        # Whoosh knows a row by a number that is never used twice; here is the row, or -1 when it is
        # gone.
        self._row_of: Rows = np.frombuffer(stored.pop(ROWS, b""), dtype=np.int64).copy()
        self._segments = Segments(tuple(bm25.BOOSTS), None if files is None else stored)
        self._names: frozenset[str] = frozenset()
        self._count = 0
        self._averages = dict.fromkeys(bm25.BOOSTS, 1.0)
        self._sums: dict[str, _Sums] = {}
        self._spellings: dict[str, tuple[str, ...]] = {}
        self._counts: dict[str, int] = {}
        self._cache: OrderedDict[str, _Postings] = OrderedDict()
        self._cached = 0
        self._resting = True
        self._impacts: OrderedDict[str, _Impact] = OrderedDict()
        self._impact_size = 0
        self._refresh()

    def write(self, passages: Iterable[FieldTerms], removed: Iterable[int] = ()) -> None:
        """Add terms by field, and remove rows, in one commit, which shows with the next `adopt`.

        That takes long for many passages; what is only added may be written while others search.
        """
        gone = np.flatnonzero(np.isin(self._row_of, np.fromiter(removed, dtype=np.int64)))
        added = dict(enumerate(passages, start=len(self._row_of)))
        self._segments.write(added, gone)
        self._row_of[gone] = -1

    def adopt(self, rows: Iterable[int]) -> None:
        """Show what was written last, under these rows."""
        self._row_of = np.concatenate([self._row_of, np.fromiter(rows, dtype=np.int64)])
        self._segments.refresh()
        self._refresh()
        if len(self._segments.opened) > PILED_SEGMENTS:
            self.consolidate()

    def renumber(self, moved: Rows) -> None:
        """Take over new numbers of rows."""
        self._row_of = np.where(self._row_of >= 0, moved[self._row_of], -1)
        self._cache.clear()
        self._cached = 0
        self._refresh()

    def consolidate(self) -> None:
        """Merge segments of like size if there are many."""
        if self._segments.merge():
            self._refresh()

    def score(self, text: str, alive: Mask, languages: Sequence[str] = (ENGLISH,)) -> Scored:
        """Score every row by BM25 over all fields.

        Statistics are those of all live rows, so that a filter never changes an order.
        """
        query = self._weigh(text, alive, languages)
        total = sum(term.weight for term in query)
        naming = bm25.naming(len(query))
        scores = np.zeros(len(alive), dtype=np.float32)
        for term in query:
            for spelling, share in term.spellings:
                impact = self._impact(spelling, alive)
                factor = bm25.factor(term, share, total)
                if impact.rows is None:
                    scores += factor * impact.values
                else:
                    scores[impact.rows] += factor * impact.values
                named_rows, named_shares = impact.named
                if len(named_rows):
                    scores[named_rows] += np.float32(share * naming) * named_shares
        if not self._resting:
            # Looking a new term up touches pages all over the files.
            self._segments.rest()
            self._resting = True
        return Scored(scores, len(query))

    def holding(self, rows: Sequence[int], wanted: Collection[str]) -> Mask:
        """Tell for each row whether it has every one of these terms, and there are any."""
        looked_up = np.asarray(rows, dtype=np.int64)
        result = np.full(len(looked_up), bool(wanted))
        for term in wanted:
            result &= self._having(looked_up, term)
        return result

    def _having(self, rows: Rows, term: str) -> Mask:
        postings = self._impacts.get(term) or self._postings(term)
        if isinstance(postings, _Impact) and postings.rows is None:
            return postings.values[rows] > 0
        having = postings.rows
        if having is None or not len(having):
            return np.zeros(len(rows), dtype=np.bool_)
        positions = np.searchsorted(having, rows)
        is_there: Mask = having.take(positions, mode="clip") == rows
        return is_there

    def dump(self) -> dict[str, bytes]:
        """Return the files of the Whoosh index."""
        return {**self._segments.dump(), ROWS: self._row_of.tobytes()}

    def postings(self) -> list[tuple[str, str, int, float]]:
        """List every live posting as (field, term, row, weight), sorted: what `verify` compares."""
        postings = []
        for segment in self._segments.opened.values():
            for field, term, numbers, weights in segment.everything():
                living = segment.alive[numbers]
                rows = self._row_of[segment.rows[numbers[living]]].tolist()
                for row, weight in zip(rows, weights[living].tolist(), strict=True):
                    postings.append((field, term, row, weight))
        return sorted(postings)

    def count(self, terms: Iterable[str], alive: Mask) -> dict[str, int]:
        """Return in how many rows each term stands, computed once between two changes."""
        counts = {}
        for term in terms:
            if term not in self._counts:
                rows = self._postings(term).rows
                self._counts[term] = int(np.count_nonzero(alive[rows]))
            counts[term] = self._counts[term]
        return counts

    def _weigh(self, text: str, alive: Mask, languages: Sequence[str]) -> list[bm25.QueryTerm]:
        """Choose the terms that a query is scored by."""
        query = bm25.query_terms(text, languages)
        stems = bm25.other_stems(text, languages)
        frequencies = {}
        for term in query:
            for form in (term, *stems.get(term, ())):
                frequencies[form] = self._impact(form, alive).frequency

        def spellings(term: str) -> tuple[str, ...]:
            return self._similar(term, alive)

        return bm25.weigh(query, frequencies, self._count, spellings, stems)

    def _impact(self, term: str, alive: Mask) -> _Impact:
        """Return what a term is worth in each row, computed once between two changes."""
        ready = self._impacts.get(term)
        if ready is not None:
            self._impacts.move_to_end(term)
            return ready
        postings = self._postings(term)
        values = bm25.impact(postings.by_field, self._averages)
        shares = bm25.named_share(postings.by_field)
        named = np.flatnonzero(shares)
        impact = _Impact(
            postings.rows,
            values,
            int(np.count_nonzero(alive[postings.rows])),
            (postings.rows[named], shares[named]),
        )
        if len(values) > DENSE_SHARE * len(alive):
            spread = np.zeros(len(alive), dtype=np.float32)
            spread[postings.rows] = values
            impact = replace(impact, rows=None, values=spread)
        self._keep(term, impact, max(CACHED_IMPACTS, COMMON_TERMS * len(alive)))
        return impact

    def _keep(self, term: str, impact: _Impact, most: int) -> None:
        """Keep an impact for the next query; forget the oldest when there are too many."""
        self._impacts[term] = impact
        self._impact_size += 1 + len(impact.values)
        while self._impact_size > most and len(self._impacts) > 1:
            _, oldest = self._impacts.popitem(last=False)
            self._impact_size -= 1 + len(oldest.values)

    def _similar(self, term: str, alive: Mask) -> tuple[str, ...]:
        """Return the most frequent spellings one edit or one swap away."""
        if term not in self._spellings:
            near: set[str] = set()
            for segment in self._segments.opened.values():
                near |= segment.near("body", term)
            # Words that stand only in removed documents are still in the postings.
            frequencies = {word: self._impact(word, alive).frequency for word in near}
            self._spellings[term] = bm25.best_spellings(frequencies)
        return self._spellings[term]

    def _postings(self, term: str) -> _Postings:
        """Return where a term occurs; what was decoded before is extended by new segments only."""
        cached = self._cache.get(term)
        if cached is not None and cached.segments == self._names:
            self._cache.move_to_end(term)
            return cached
        if cached is not None:
            self._cached -= 1 + len(self._cache.pop(term).rows)
        parts = []
        unread = self._names
        if cached is not None and cached.segments <= self._names:
            parts.append(cached)
            unread = self._names - cached.segments
        self._resting = False
        for name in unread:
            parts.append(self._gather(self._segments.opened[name], term))
        postings = _concatenate(self._names, parts)
        self._cache[term] = postings
        self._cached += 1 + len(postings.rows)
        while self._cached > CACHED_POSTINGS and len(self._cache) > 1:
            _, oldest = self._cache.popitem(last=False)
            self._cached -= 1 + len(oldest.rows)
        return postings

    def _gather(self, segment: Segment, term: str) -> _Postings:
        """Decode the postings of a term in all fields, lined up over the rows that have it."""
        decoded = {}
        for field in bm25.BOOSTS:
            postings = segment.postings(field, term)
            if postings:
                decoded[field] = postings
        if not decoded:
            return _Postings(frozenset(), np.empty(0, dtype=np.int64), {})
        by_number = [numbers for numbers, _ in decoded.values()]
        numbers = by_number[0]
        if len(by_number) > 1:
            numbers = np.unique(np.concatenate(by_number))
        living = segment.alive[numbers]
        by_field = {}
        for field, (having, weights) in decoded.items():
            counts = np.zeros(len(numbers), dtype=np.float32)
            counts[np.searchsorted(numbers, having)] = weights
            by_field[field] = (counts[living], segment.lengths[field][numbers[living]])
        return _Postings(frozenset(), self._row_of[segment.rows[numbers[living]]], by_field)

    def _refresh(self) -> None:
        """Count anew what depends on all rows, and forget what was computed from it."""
        opened = self._segments.opened
        self._names = frozenset(opened)
        sums = {}
        self._count = 0
        totals = dict.fromkeys(bm25.BOOSTS, 0.0)
        for name, segment in opened.items():
            part = self._summed(name, segment)
            sums[name] = part
            self._count += part.count
            for field, length in part.lengths.items():
                totals[field] += length
        self._sums = sums
        for field, total in totals.items():
            self._averages[field] = max(1.0, total / max(1, self._count))
        self._spellings = {}
        self._counts = {}
        self._impacts.clear()
        self._impact_size = 0

    def _summed(self, name: str, segment: Segment) -> _Sums:
        """Add up the lengths of a segment, unless no row of it was removed since the last time."""
        count = int(np.count_nonzero(segment.alive))
        earlier = self._sums.get(name)
        if earlier is not None and earlier.count == count:
            return earlier
        # In double precision, as another engine adds them up.
        alive = segment.alive.astype(np.float64)
        lengths = {}
        for field in bm25.BOOSTS:
            lengths[field] = float(segment.lengths[field] @ alive)
        return _Sums(count, lengths)


def best(scores: Floats, k: int, masks: Sequence[Mask], best_first: BestFirst = by_row) -> Rows:
    """Return the k rows with the highest scores above 0 under each mask, best first."""
    positive = np.flatnonzero(scores > 0)
    parts = []
    for mask in masks:
        parts.append(_best_of(positive[mask[positive]], scores, k, best_first))
    if len(parts) == 1:
        return parts[0]
    rows = np.unique(np.concatenate(parts))
    return rows[best_first(rows, scores[rows])]


def _best_of(rows: Rows, scores: Floats, k: int, best_first: BestFirst) -> Rows:
    values = scores[rows]
    if len(rows) > k:
        # Everything that ties with the k-th stays until the order of ties decides.
        is_best = values >= np.partition(values, -k)[-k]
        rows = rows[is_best]
        values = values[is_best]
    return rows[best_first(rows, values)[:k]]


def _concatenate(names: frozenset[str], parts: Sequence[_Postings]) -> _Postings:
    """Join the postings of several segments; a field that a part does not have counts nothing."""
    parts = [part for part in parts if len(part.rows)]
    if not parts:
        return _Postings(names, np.empty(0, dtype=np.int64), {})
    if len(parts) == 1 and np.all(np.diff(parts[0].rows) > 0):
        return replace(parts[0], segments=names)
    rows = np.concatenate([part.rows for part in parts])
    order = np.argsort(rows)
    by_field = {}
    for field in bm25.BOOSTS:
        columns = _joined(field, parts)
        if columns:
            counts, lengths = columns
            by_field[field] = (counts[order], lengths[order])
    return _Postings(names, rows[order], by_field)


def _joined(field: str, parts: Sequence[_Postings]) -> bm25.Occurrences | None:
    counts: list[Floats] = []
    lengths: list[Floats] = []
    is_present = False
    for part in parts:
        blank = np.zeros(len(part.rows), dtype=np.float32)
        is_present = is_present or field in part.by_field
        part_counts, part_lengths = part.by_field.get(field, (blank, blank))
        counts.append(part_counts)
        lengths.append(part_lengths)
    if not is_present:
        return None
    return np.concatenate(counts), np.concatenate(lengths)
