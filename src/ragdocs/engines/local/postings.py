"""Keyword search: Whoosh keeps the postings, numpy adds up what they are worth."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

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
from ragdocs.engines.local.words import FIELDS, Words, every_posting
from ragdocs.engines.local.worths import Numbering, Numbers, Part, Scale, Worth, worths
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

# Terms are computed together until so many passages have them: numpy gains nothing by more.
TOGETHER = 1 << 16

Posting = tuple[str, str, int, float]


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
class _Impact:
    """What one term adds to the score of its rows, or of every row where that is quicker.

    `named` are the rows that have it in a title or a name, and their share of that.
    """

    rows: Numbers | None
    values: Floats
    frequency: int
    named: tuple[Numbers, Floats]

    @classmethod
    def of(cls, worth: Worth, row_count: int) -> _Impact:
        """Return what is quicker to add to the scores of so many rows."""
        rows, values, named = worth
        if len(rows) <= DENSE_SHARE * row_count:
            return cls(rows, values, len(rows), named)
        spread = np.zeros(row_count, dtype=np.float32)
        spread[rows] = values
        return cls(None, spread, len(rows), named)

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
        self._numberings: dict[str, Numbering] = {}
        # The words of each segment with its numbering, by their first rows.
        self._numbered: list[tuple[Words, Numbering]] = []
        # Whether no segment has rows between those of another.
        self._is_in_order = True
        self._count = 0
        self._scale = Scale(dict.fromkeys(bm25.BOOSTS, 1.0))
        self._sums: dict[str, _Sums] = {}
        self._spellings: dict[str, tuple[str, ...]] = {}
        # Terms like one whose spellings are chosen next.
        self._resembling: dict[str, set[str]] = {}
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
        forms = list(query)
        for term in query:
            forms.extend(stems.get(term, ()))
        # With several stems, a term that is nowhere may still be in its other languages.
        frequencies = self._frequencies(forms, alive, are_words=not stems)

        def spellings(term: str) -> tuple[str, ...]:
            return self._similar(term, alive)

        return bm25.weigh(query, frequencies, self._count, spellings, stems)

    def _frequencies(
        self, terms: Iterable[str], alive: Mask, *, are_words: bool = False
    ) -> dict[str, int]:
        """Return in how many rows each term stands, and keep what it is worth in them.

        Where terms are the words of a query, those like one that is nowhere are computed as well.
        """
        frequencies = {}
        unknown: dict[str, list[Part]] = {}
        size = 0
        for term in terms:
            ready = self._ready(term)
            if ready is not None:
                frequencies[term] = ready.frequency
                continue
            parts = self._parts(term)
            unknown[term] = parts
            for part in parts:
                size += len(part.occurrences.numbers)
            if size > TOGETHER:
                frequencies.update(self._compute(unknown, alive))
                unknown = {}
                size = 0
        if are_words:
            self._add_spellings(unknown)
        if unknown:
            frequencies.update(self._compute(unknown, alive))
        return frequencies

    def _add_spellings(self, parts: dict[str, list[Part]]) -> None:
        """Add terms like the first of those that have no parts: they are needed next."""
        nowhere = [term for term, own in parts.items() if not own]
        for term in filter(bm25.may_be_typo, nowhere[: bm25.MOST_TYPOS]):
            if term in self._spellings:
                continue
            near = self._near(term)
            self._resembling[term] = near
            for word in near:
                is_kept = self._ready(word) is not None
                if not is_kept:
                    parts[word] = self._parts(word)

    def _compute(self, terms: Mapping[str, Sequence[Part]], alive: Mask) -> dict[str, int]:
        """Compute what terms are worth, keep it, and return in how many rows each stands."""
        frequencies = {}
        computed = worths(self._scale, list(terms.values()), in_order=self._is_in_order)
        for term, worth in zip(terms, computed, strict=True):
            self._keep(term, _Impact.of(worth, len(alive)), len(alive))
            frequencies[term] = len(worth.rows)
        return frequencies

    def _impact(self, term: str, alive: Mask) -> _Impact:
        """Return what a term is worth in each row, computed once between two changes."""
        impact = self._ready(term)
        if impact is None:
            impact = _Impact.of(self._worth(term), len(alive))
            self._keep(term, impact, len(alive))
        return impact

    def _ready(self, term: str) -> _Impact | None:
        """Return what a term is worth, if that was kept."""
        with self._keeping:
            ready = self._impacts.get(term)
            if ready is not None:
                self._impacts.move_to_end(term)
            return ready

    def _keep(self, term: str, impact: _Impact, row_count: int) -> None:
        """Keep an impact for the next query; forget the oldest when there are too many."""
        most = max(CACHED_IMPACTS, COMMON_TERMS * row_count * impact.values.itemsize)
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
            near = self._resembling.pop(term, None)
            if near is None:
                near = self._near(term)
            # Words that stand only in removed documents are still in the postings.
            frequencies = self._frequencies(near, alive)
            self._spellings[term] = bm25.best_spellings(frequencies)
        return self._spellings[term]

    def _near(self, term: str) -> set[str]:
        """Return the terms of bodies one edit or one swap away."""
        near: set[str] = set()
        for segment in self._segments.opened.values():
            near |= segment.words.near(term)
        return near

    def _worth(self, term: str) -> Worth:
        """Return what a term is worth in each row that has it."""
        return worths(self._scale, [self._parts(term)], in_order=self._is_in_order)[0]

    def _parts(self, term: str) -> list[Part]:
        """Return what each segment has of a term."""
        self._has_read = True
        parts = []
        for words, numbering in self._numbered:
            number = words.find(term)
            if number >= 0:
                parts.append(Part(numbering, words.occurrences(number)))
        return parts

    def _refresh(self) -> None:
        """Count anew what depends on all rows, and forget what was computed from it."""
        self._count_rows()
        self._spellings = {}
        self._resembling = {}
        self._counts = {}
        self._impacts.clear()
        self._impact_size = 0

    def _count_rows(self) -> None:
        opened = self._segments.opened
        numberings = {}
        for name, segment in opened.items():
            numberings[name] = Numbering.of(self._row_of[segment.rows])
        self._numberings = numberings
        self._number(numberings)
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
        averages = {}
        for field, total in totals.items():
            averages[field] = max(1.0, total / max(1, self._count))
        self._scale = Scale(averages)

    def _number(self, numberings: Mapping[str, Numbering]) -> None:
        """Put segments in the order of rows, in which what they have is put together."""
        living = {name: numbering.living() for name, numbering in numberings.items()}
        # Where nothing is left of a segment, it does not matter when its turn is.
        names = sorted(living, key=lambda name: int(living[name][:1].sum()))
        self._numbered = []
        for name in names:
            self._numbered.append((self._segments.opened[name].words, numberings[name]))
        rows = np.concatenate([_NO_ROWS, *(living[name] for name in names)])
        self._is_in_order = bool((rows[1:] > rows[:-1]).all())

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


_LENGTHS = LENGTHS.astype(np.float32)
_NO_ROWS = np.empty(0, dtype=np.int32)
