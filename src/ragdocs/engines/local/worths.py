"""What terms are worth in the rows that have them, computed for several terms at once.

Most terms are rare, and numpy takes longer to begin than to add up what a rare term has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragdocs.engines.local.segments import Floats, Mask, Rows
from ragdocs.engines.local.whoosh_files import LENGTHS
from ragdocs.engines.local.words import FIELDS, HIGHEST, Bytes, Codes, Occurrences, OtherOccurrences
from ragdocs.search import bm25

# Rows in half the room: what is kept of many terms has them.
Numbers = npt.NDArray[np.int32]
Values = npt.NDArray[Any]


class Numbering(NamedTuple):
    """The row of each document of a segment, -1 where it is removed.

    `shift` is what a number is less than its row, if that is the same for all.
    """

    rows: Numbers
    shift: int | None

    @classmethod
    def of(cls, rows: Rows) -> Numbering:
        """Return the numbering of documents with these rows."""
        small = rows.astype(np.int32)
        if not len(rows) or rows[0] < 0:
            return cls(small, None)
        is_one_run = (np.diff(small) == 1).all()
        if not is_one_run:
            return cls(small, None)
        return cls(small, int(rows[0]))

    def living(self) -> Numbers:
        """Return the rows that are not removed."""
        if self.shift is not None:
            return self.rows
        return self.rows[self.rows >= 0]


class Part(NamedTuple):
    """What one segment has of a term."""

    numbering: Numbering
    occurrences: Occurrences


class Worth(NamedTuple):
    """Rows that have a term and what it adds to their scores, from 0 to 1.

    `named` are the rows that have it in a title or a name, and what that adds.
    """

    rows: Numbers
    values: Floats
    named: tuple[Numbers, Floats]


class Scale:
    """What occurrences are worth by field, count and length, given how long fields are."""

    def __init__(self, averages: Mapping[str, float]) -> None:
        # What occurrences are divided by, by field and by Whoosh's byte of its length.
        self._norms: Floats = np.zeros((len(FIELDS), len(_LENGTHS)), dtype=np.float32)
        for norms, field in zip(self._norms, FIELDS, strict=True):
            norms[:] = bm25.norms(field, _LENGTHS, averages[field])
        # What a body is worth by its code, before it saturates.
        self._bodies: Floats = bm25.weighted("body", _COUNTS, self._norms[0]).ravel()

    def of_bodies(self, codes: Codes, high: Mapping[int, int]) -> Floats:
        """Return what occurrences in bodies are worth; `high` has counts that codes have not."""
        worth = self._bodies.take(codes)
        if high:
            positions = np.fromiter(high, dtype=np.int64)
            counts = np.fromiter(high.values(), dtype=np.float32)
            divisors = self._norms[0].take(codes[positions] & HIGHEST)
            worth[positions] = bm25.weighted("body", counts, divisors)
        return worth

    def of_others(self, others: _Others) -> Floats:
        """Return what occurrences in several other fields are worth."""
        divisors = self._norms[others.fields, others.lengths]
        worth: Floats = _BOOSTS.take(others.fields) * others.counts / divisors
        return worth


def worths(scale: Scale, terms: Sequence[Sequence[Part]], *, in_order: bool) -> list[Worth]:
    """Return what each term is worth in each row that has it, in the order of rows.

    A term comes as its parts; `in_order` tells that their rows are in the order of parts.
    """
    gathered = _Gathered()
    ends = []
    for term in terms:
        for part in term:
            gathered.add(part)
        ends.append(gathered.size)
    if not gathered.size:
        return [NOTHING] * len(terms)
    every = gathered.weighed(scale)
    separated = []
    begin = 0
    for end in ends:
        own = every.of_term(begin, end)
        if gathered.has_removed:
            own = own.without_removed()
        if not in_order:
            own = own.ascending()
        separated.append(own.worth())
        begin = end
    return separated


class _Others(NamedTuple):
    """What fields other than the body have of several terms; positions are among all rows."""

    positions: Rows
    fields: Bytes
    counts: Floats
    lengths: Bytes


class _Gathered:
    """What several parts have, one part after the other."""

    def __init__(self) -> None:
        self.size = 0
        self.has_removed = False
        self._sizes: list[int] = []
        self._shifts: list[int] = []
        self._numbers: list[Values] = []
        self._codes: list[Codes] = []
        # Counts that are too high for their codes, by their positions among all codes.
        self._high: dict[int, int] = {}
        self._others: list[OtherOccurrences] = []
        self._other_begins: list[int] = []

    def add(self, part: Part) -> None:
        """Take over what one segment has of a term."""
        (rows, shift), (numbers, codes, high, others) = part
        for position, count in high.items():
            self._high[self.size + position] = count
        if others is not None:
            self._others.append(others)
            self._other_begins.append(self.size)
        self._codes.append(codes)
        self._sizes.append(len(codes))
        self.size += len(codes)
        if shift is None:
            self.has_removed = True
            self._numbers.append(rows[numbers])
            self._shifts.append(0)
        else:
            self._numbers.append(numbers)
            self._shifts.append(shift)

    def weighed(self, scale: Scale) -> _Rows:
        """Return all rows with what the occurrences in them are worth."""
        shifts = np.array(self._shifts, dtype=np.int32)
        rows = _joined(self._numbers).astype(np.int32)
        rows += np.repeat(shifts, self._sizes)
        frequency = scale.of_bodies(_joined(self._codes), self._high)
        named: Floats | None = None
        if self._others:
            others = self._joined_others()
            # What several fields of a passage have is added in their order, as everywhere.
            np.add.at(frequency, others.positions, scale.of_others(others))
            named = _named(others, self.size)
        return _Rows(rows, bm25.saturated(frequency), named)

    def _joined_others(self) -> _Others:
        columns = zip(*self._others, strict=True)
        positions, fields, codes, high = columns
        sizes = list(map(len, codes))
        joined_codes = _joined(codes)
        counts = (joined_codes >> 8).astype(np.float32)
        begin = 0
        for size, counts_by_position in zip(sizes, high, strict=True):
            for position, count in counts_by_position.items():
                counts[begin + position] = count
            begin += size
        return _Others(
            _joined(positions) + np.repeat(self._other_begins, sizes),
            _joined(fields),
            counts,
            (joined_codes & HIGHEST).astype(np.uint8),
        )


class _Rows(NamedTuple):
    """Rows that have a term or several, what that is worth there, and what names add, if any do."""

    rows: Numbers
    values: Floats
    named: Floats | None

    def of_term(self, begin: int, end: int) -> _Rows:
        """Return those from one position to another, in memory of their own."""
        if end - begin == len(self.rows):
            return self
        span = slice(begin, end)
        named = self.named
        if named is not None:
            named = named[span]
        return _Rows(self.rows[span].copy(), self.values[span].copy(), named)

    def without_removed(self) -> _Rows:
        """Leave out the rows of removed passages."""
        is_live = self.rows >= 0
        if is_live.all():
            return self
        return self._at(is_live)

    def ascending(self) -> _Rows:
        """Sort by rows."""
        if (self.rows[1:] > self.rows[:-1]).all():
            return self
        # A few runs in order are merged, where another way to sort would begin anew.
        return self._at(np.argsort(self.rows, kind="stable"))

    def worth(self) -> Worth:
        """Return them with the few that names add to."""
        if self.named is None:
            return Worth(self.rows, self.values, NOTHING.named)
        positions = np.flatnonzero(self.named)
        return Worth(self.rows, self.values, (self.rows[positions], self.named[positions]))

    def _at(self, chosen: Rows | Mask) -> _Rows:
        named = self.named
        if named is not None:
            named = named[chosen]
        return _Rows(self.rows[chosen], self.values[chosen], named)


def _named(others: _Others, size: int) -> Floats | None:
    """Return what titles and names add to each of so many rows, if any do."""
    positions = np.flatnonzero(_IS_NAMING.take(others.fields))
    if not len(positions):
        return None
    fields = others.fields[positions]
    named = np.zeros(size, dtype=np.float32)
    for field in _NAMING:
        own = positions[fields == field]
        lengths = _LENGTHS.take(others.lengths[own])
        shares = bm25.field_share(FIELDS[field], others.counts[own], lengths)
        named[others.positions[own]] += shares
    return named


def _joined(pieces: Sequence[Values]) -> Values:
    if len(pieces) == 1:
        return pieces[0]
    return np.concatenate(pieces)


_LENGTHS = LENGTHS.astype(np.float32)
# The counts that a code may have, each in a row of its own.
_COUNTS = np.arange(HIGHEST + 1, dtype=np.float32)[:, np.newaxis]
_BOOSTS = np.array(list(map(bm25.BOOSTS.__getitem__, FIELDS)), dtype=np.float32)
_NAMING = tuple(map(FIELDS.index, bm25.NAMED))
_IS_NAMING = np.isin(np.arange(len(FIELDS)), _NAMING)
_NO_ROWS = np.empty(0, dtype=np.int32)
_NO_VALUES = np.empty(0, dtype=np.float32)
NOTHING = Worth(_NO_ROWS, _NO_VALUES, (_NO_ROWS, _NO_VALUES))
