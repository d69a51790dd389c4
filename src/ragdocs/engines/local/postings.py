"""Keyword search: Whoosh keeps the postings, numpy adds up what they are worth."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ragdocs.engines.local.rows import BestFirst, by_row
from ragdocs.engines.local.segments import (
    Buffer,
    Floats,
    Mask,
    Merged,
    Rows,
    Segment,
    Segments,
)
from ragdocs.engines.local.whoosh_files import LENGTHS
from ragdocs.engines.local.words import FIELDS, HIGHEST, Occurrences, every_posting
from ragdocs.search import bm25
from ragdocs.search.fields import FieldTerms
from ragdocs.text.languages import ENGLISH

# A term in more than this share of all rows is kept as one value for every row: adding a whole
# array takes a tenth of the time of adding to chosen positions.
DENSE_SHARE = 0.06
# Bytes of values kept ready between two changes; in a large index as many as so many common terms
# have.
CACHED_IMPACTS = 16_000_000
COMMON_TERMS = 60
# Segments are merged with every snapshot; where changes never pause for one, this many may pile up.
PILED_SEGMENTS = 64
# What stands for the row of a removed passage, and of a number that no passage has.
REMOVED = -1
ASTRAY = -2
# The name of our own file among Whoosh's.
ROWS = "rows.bin"

# What a value that is kept takes besides its numbers, in bytes.
ENTRY = 400

Posting = tuple[str, str, int, float]
# Rows in half the room: what is kept of many terms has them.
Numbers = npt.NDArray[np.int32]


class Scored(NamedTuple):
    """The score of every row for a query, and how many different terms it is scored by."""

    values: Floats
    terms: int


@dataclass(frozen=True, slots=True)
class _Sums:
    """The rows of a segment that are not removed: how many, and how long each field is in all."""

    count: int
    lengths: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Numbering:
    """The row of each document of a segment, -1 where it is removed.

    `shift` is what a number is less than its row, if that is the same for all.
    """

    rows: Numbers
    shift: int | None


class _Worth(NamedTuple):
    """Rows that have a term, what its occurrences are worth, and what titles and names add."""

    rows: Numbers
    frequency: Floats
    named: Floats | None


@dataclass(frozen=True, slots=True)
class _Impact:
    """What one term adds to the score of its rows, or of every row where that is quicker.

    `named` are the rows that have it in a title or a name, and their share of that.
    """

    rows: Numbers | None
    values: Floats
    frequency: int
    named: tuple[Numbers, Floats]

    @property
    def size(self) -> int:
        """Return how many bytes it takes, about."""
        size = ENTRY + self.values.nbytes
        if self.rows is not None:
            size += self.rows.nbytes
        return size


class KeywordTable:
    """A Whoosh index in memory, with one Whoosh document for each row."""

    def __init__(self, files: Mapping[str, Buffer] | None = None) -> None:
        stored = dict(files or {})
        # Whoosh knows a row by a number that is never used twice; here is the row, or -1 when it is
        # gone.
        self._row_of: Rows = np.frombuffer(stored.pop(ROWS, b""), dtype=np.int64).copy()
        self._segments = Segments(None if files is None else stored)
        self._numberings: dict[str, _Numbering] = {}
        self._count = 0
        # What occurrences are divided by, by field and by Whoosh's byte of its length.
        self._norms: dict[str, Floats] = {}
        # What a body is worth by its code, before it saturates.
        self._body_worths: Floats = np.empty(0, dtype=np.float32)
        self._sums: dict[str, _Sums] = {}
        self._spellings: dict[str, tuple[str, ...]] = {}
        self._counts: dict[str, int] = {}
        self._has_read = False
        # Searches that go on side by side share it.
        self._keeping = threading.Lock()
        self._impacts: OrderedDict[str, _Impact] = OrderedDict()
        self._impact_size = 0
        self._refresh()

    def write(self, passages: Iterable[FieldTerms], removed: Iterable[int] = ()) -> None:
        """Add terms by field, and remove rows, in one commit, which shows with the next `adopt`.

        That takes long for many passages; what is only added may be written while others search.
        """
        gone = np.flatnonzero(np.isin(self._row_of, np.fromiter(removed, dtype=np.int64)))
        self._segments.write(list(passages), len(self._row_of), gone)
        self._row_of[gone] = -1

    def adopt(self, rows: Iterable[int]) -> None:
        """Show what was written last, under these rows."""
        self._row_of = np.concatenate([self._row_of, np.fromiter(rows, dtype=np.int64)])
        self._segments.refresh()
        self._refresh()

    @property
    def is_piled(self) -> bool:
        """Tell whether there are so many segments that searches take longer."""
        return len(self._segments.opened) > PILED_SEGMENTS

    def renumber(self, moved: Rows) -> None:
        """Take over new numbers of rows."""
        self._row_of = np.where(self._row_of >= 0, moved[self._row_of], -1)
        self._refresh()

    def merge(self) -> Iterator[Merged]:
        """Merge segments of like size beside them, while others search and write."""
        return self._segments.merge()

    def replace(self, merged: Merged) -> None:
        """Search a merged segment instead of those that it was made of.

        No passage changes, so what was computed of them holds.
        """
        if self._segments.adopt(merged):
            self._count_rows()

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
        if self._has_read:
            # One read may bring megabytes around it into memory, and reading a page again is cheap.
            self._segments.rest()
            self._has_read = False
        return Scored(scores, len(query))

    def holding(self, rows: Sequence[int], wanted: Collection[str]) -> Mask:
        """Tell for each row whether it has every one of these terms, and there are any."""
        # Of the kind that terms have: else all of those would be converted.
        looked_up = np.asarray(rows, dtype=np.int32)
        result = np.full(len(looked_up), bool(wanted))
        for term in wanted:
            result &= self._having(looked_up, term)
        return result

    def _having(self, rows: Numbers, term: str) -> Mask:
        impact = self._impacts.get(term)
        if impact is not None and impact.rows is None:
            return impact.values[rows] > 0
        having = self._worth(term).rows if impact is None else impact.rows
        if having is None or not len(having):
            return np.zeros(len(rows), dtype=np.bool_)
        positions = np.searchsorted(having, rows)
        is_there: Mask = having.take(positions, mode="clip") == rows
        return is_there

    def dump(self) -> dict[str, Buffer]:
        """Return the files of the Whoosh index."""
        return {**self._segments.dump(), ROWS: self._row_of.tobytes()}

    def postings(self) -> list[Posting]:
        """List every live posting as (field, term, row, count), sorted: what `verify` compares."""
        postings = []
        for name, segment in self._segments.opened.items():
            for field, term, numbers, counts in every_posting(segment.words):
                inside = numbers < len(segment.rows)
                postings += self._listed(
                    name, field, term.decode(), numbers[inside], counts[inside]
                )
        return sorted(postings)

    def differences(self) -> list[Posting]:
        """List the live postings that are searched and that Whoosh does not have so, or reverse.

        One that names no passage of its segment has the row `ASTRAY`.
        """
        postings = []
        for name, segment in self._segments.opened.items():
            for field, term, numbers, counts in segment.differences():
                postings += self._listed(name, field, term.decode(), numbers, counts)
        return sorted(postings)

    def _listed(
        self, segment: str, field: str, term: str, numbers: Rows, counts: Rows
    ) -> list[Posting]:
        known_rows = np.append(self._numberings[segment].rows, ASTRAY)
        rows = known_rows[np.minimum(numbers, len(known_rows) - 1)]
        is_listed = rows != REMOVED
        pairs = zip(rows[is_listed].tolist(), counts[is_listed].tolist(), strict=True)
        return [(field, term, row, float(count)) for row, count in pairs]

    def count(self, terms: Iterable[str]) -> dict[str, int]:
        """Return in how many rows each term stands, computed once between two changes."""
        counts = {}
        for term in terms:
            count = self._counts.get(term)
            if count is None:
                count = len(self._worth(term).rows)
                self._counts[term] = count
            counts[term] = count
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
        with self._keeping:
            ready = self._impacts.get(term)
            if ready is not None:
                self._impacts.move_to_end(term)
                return ready
        rows, frequency, shares = self._worth(term)
        values = bm25.saturated(frequency)
        named = (rows[:0], frequency[:0])
        if shares is not None:
            is_named = np.flatnonzero(shares)
            named = (rows[is_named], shares[is_named])
        impact = _Impact(rows, values, len(rows), named)
        if len(values) > DENSE_SHARE * len(alive):
            spread = np.zeros(len(alive), dtype=np.float32)
            spread[rows] = values
            impact = replace(impact, rows=None, values=spread)
        common = alive.size * values.itemsize
        self._keep(term, impact, max(CACHED_IMPACTS, COMMON_TERMS * common))
        return impact

    def _keep(self, term: str, impact: _Impact, most: int) -> None:
        """Keep an impact for the next query; forget the oldest when there are too many."""
        with self._keeping:
            if term in self._impacts:
                # Another search was quicker.
                return
            self._impacts[term] = impact
            self._impact_size += impact.size
            while self._impact_size > most and len(self._impacts) > 1:
                _, oldest = self._impacts.popitem(last=False)
                self._impact_size -= oldest.size

    def _similar(self, term: str, alive: Mask) -> tuple[str, ...]:
        """Return the most frequent spellings one edit or one swap away."""
        if term not in self._spellings:
            near: set[str] = set()
            for segment in self._segments.opened.values():
                near |= segment.words.near(term)
            # Words that stand only in removed documents are still in the postings.
            frequencies = {word: self._impact(word, alive).frequency for word in near}
            self._spellings[term] = bm25.best_spellings(frequencies)
        return self._spellings[term]

    def _worth(self, term: str) -> _Worth:
        """Add up what a term is worth in each row that has it, in the order of rows."""
        parts = []
        for name, numbering in self._numberings.items():
            words = self._segments.opened[name].words
            number = words.find(term)
            if number >= 0:
                parts.append(self._in_segment(numbering, words.occurrences(number)))
        self._has_read = True
        if not parts:
            return _Worth(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.float32), None)
        if len(parts) == 1:
            return parts[0]
        return _together(parts)

    def _in_segment(self, numbering: _Numbering, occurrences: Occurrences) -> _Worth:
        numbers, codes, high, others = occurrences
        frequency = self._body_worths.take(codes)
        if high:
            high_positions = list(high)
            times = np.fromiter(high.values(), dtype=np.float32)
            divisors = self._norms["body"].take(codes[high_positions] & HIGHEST)
            frequency[high_positions] = bm25.weighted("body", times, divisors)
        named: Floats | None = None
        for field, positions, field_counts, field_lengths in others:
            times = field_counts.astype(np.float32)
            divisors = self._norms[field].take(field_lengths)
            frequency[positions] += bm25.weighted(field, times, divisors)
            if field in bm25.NAMED:
                named = np.zeros(len(numbers), dtype=np.float32) if named is None else named
                named[positions] += bm25.field_share(field, times, _LENGTHS.take(field_lengths))
        if numbering.shift is not None:
            rows = np.add(numbers, numbering.shift, dtype=np.int32, casting="same_kind")
            return _Worth(rows, frequency, named)
        rows = numbering.rows[numbers]
        is_live = rows >= 0
        if is_live.all():
            return _Worth(rows, frequency, named)
        if named is not None:
            named = named[is_live]
        return _Worth(rows[is_live], frequency[is_live], named)

    def _refresh(self) -> None:
        """Count anew what depends on all rows, and forget what was computed from it."""
        self._count_rows()
        self._spellings = {}
        self._counts = {}
        self._impacts.clear()
        self._impact_size = 0

    def _count_rows(self) -> None:
        opened = self._segments.opened
        numberings = {}
        for name, segment in opened.items():
            numberings[name] = _numbering(self._row_of[segment.rows])
        # In the order of rows, in which what they have is put together.
        names = sorted(numberings, key=lambda name: _first_row(numberings[name]))
        self._numberings = {name: numberings[name] for name in names}
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
            average = max(1.0, total / max(1, self._count))
            self._norms[field] = bm25.norms(field, _LENGTHS, average)
        self._body_worths = bm25.weighted("body", _COUNTS, self._norms["body"]).ravel()

    def _summed(self, name: str, segment: Segment) -> _Sums:
        """Add up the lengths of a segment, unless no row of it was removed since the last time."""
        count = int(np.count_nonzero(segment.alive))
        earlier = self._sums.get(name)
        if earlier is not None and earlier.count == count:
            return earlier
        # In double precision, as another engine adds them up.
        alive = segment.alive.astype(np.float64)
        lengths = {}
        for field, column in zip(FIELDS, segment.lengths, strict=True):
            lengths[field] = float(_LENGTHS[column] @ alive)
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


def _numbering(rows: Rows) -> _Numbering:
    small = rows.astype(np.int32)
    if not len(rows) or rows[0] < 0:
        return _Numbering(small, None)
    is_one_run = (np.diff(small) == 1).all()
    shift = int(rows[0]) if is_one_run else None
    return _Numbering(small, shift)


def _first_row(numbering: _Numbering) -> int:
    """Return the first row of a segment that is not removed."""
    living = numbering.rows[numbering.rows >= 0]
    return int(living[:1].sum())


def _together(parts: Sequence[_Worth]) -> _Worth:
    """Join what several segments have, in the order of rows."""
    rows = np.concatenate([part.rows for part in parts])
    frequency = np.concatenate([part.frequency for part in parts])
    named: Floats | None = None
    if any(part.named is not None for part in parts):
        shares = []
        for part in parts:
            blank = np.zeros(len(part.rows), dtype=np.float32)
            shares.append(blank if part.named is None else part.named)
        named = np.concatenate(shares)
    if (rows[1:] > rows[:-1]).all():
        return _Worth(rows, frequency, named)
    # A few runs in order are merged, where another way to sort would begin anew.
    order = np.argsort(rows, kind="stable")
    if named is not None:
        named = named[order]
    return _Worth(rows[order], frequency[order], named)


_LENGTHS = LENGTHS.astype(np.float32)
# The counts that a code may have, each in a row of its own.
_COUNTS = np.arange(HIGHEST + 1, dtype=np.float32)[:, np.newaxis]
