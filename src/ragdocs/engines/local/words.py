"""The words of a segment with the passages that have them, read as they lie in a file.

Terms are sorted. The passages of a term are numbers in order, each with one code of how often the
body has the term and how long the body is. What other fields have of it stands beside them.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragdocs.search.bm25 import BOOSTS

Numbers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint16]
Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Offsets = npt.NDArray[np.uint32]
Counts = npt.NDArray[Any]
Part = npt.NDArray[Any]
Buffer = bytes | memoryview

# The body is the first.
FIELDS = tuple(BOOSTS)
# A code is a count in its upper byte and a length, as Whoosh rounds it, in its lower one. Higher
# counts are kept apart.
HIGHEST = 255
# Bytes by which a word and its misspelling differ in the middle: two letters may be swapped.
PLAIN_SLACK = 2
WIDE_SLACK = 8
SWAPPED = 2
# Bytes above this are parts of longer characters.
LAST_ASCII = 127
# What lies in a file, one after the other, each from a multiple of eight bytes on.
PARTS: Mapping[str, npt.DTypeLike] = {
    "text_starts": np.uint32,
    "texts": np.uint8,
    "firsts": np.uint32,
    "numbers": np.uint32,
    "bodies": np.uint16,
    "other_firsts": np.uint32,
    "other_positions": np.uint32,
    "other_fields": np.uint8,
    "other_codes": np.uint16,
    "high_places": np.int64,
    "high_counts": np.int64,
}
_SIZES = struct.Struct(f"<{len(PARTS)}q")


class Postings(NamedTuple):
    """All postings by term, field and passage, each known by its number, with their counts."""

    terms: Numbers
    fields: Numbers
    numbers: Numbers
    counts: Numbers

    def of_field(self, field: str) -> Postings:
        """Return those of one field."""
        number = FIELDS.index(field)
        return self.at(self.fields == number)

    def at(self, chosen: Numbers | Mask) -> Postings:
        """Return those at some positions, or those that are chosen by a mask."""
        return Postings(*(column[chosen] for column in self))


class FieldOccurrences(NamedTuple):
    """What one field of passages has of a term; positions count the passages of the term."""

    field: str
    positions: Offsets
    counts: Counts
    lengths: Bytes


class Occurrences(NamedTuple):
    """The passages that have a term, the codes of their bodies, and other fields.

    `high` has the counts that are too high for their codes, by their positions among the passages.
    """

    numbers: Offsets
    codes: Codes
    high: Mapping[int, int]
    others: list[FieldOccurrences]


class Words:
    """The words of one segment; what is not small is read where it lies when it is asked for."""

    def __init__(self, parts: Mapping[str, Part], buffer: Buffer = b"") -> None:
        self._parts = parts
        self.buffer = buffer
        # In memory of their own: a search for a term reads these two in many positions.
        self._texts = parts["texts"].tobytes()
        starts = parts["text_starts"].astype(np.uint32)
        self._starts = array("I", starts.tobytes())
        self._firsts = parts["firsts"]
        self._numbers = parts["numbers"]
        self._bodies = parts["bodies"]
        self._other_firsts = parts["other_firsts"]
        # Where a count is too high for its code: in the bodies first, then in the other fields.
        self._high: dict[int, int] = {}
        if len(parts["high_places"]):
            numbers = parts["high_places"].tolist()
            counts = parts["high_counts"].tolist()
            self._high = dict(zip(numbers, counts, strict=True))

    def __len__(self) -> int:
        return len(self._starts) - 1

    def find(self, term: str) -> int:
        """Return the number of a term, -1 if no passage has it."""
        wanted = term.encode()
        number = self._from(wanted)
        if number < len(self) and self._text(number) == wanted:
            return number
        return -1

    def occurrences(self, term: int) -> Occurrences:
        """Return the passages that have a term."""
        own = _span(self._firsts, term)
        codes = self._bodies[own]
        others = []
        span = _span(self._other_firsts, term)
        if span.start < span.stop:
            others = self._others(span)
        return Occurrences(self._numbers[own], codes, self._high_counts(codes, own.start), others)

    def _others(self, span: slice) -> list[FieldOccurrences]:
        """Return what fields other than the body have of the term that this span is of."""
        fields = self._parts["other_fields"][span]
        positions = self._parts["other_positions"][span]
        codes = self._parts["other_codes"][span]
        # Their counts are numbered behind those of all bodies.
        counts = self._counts(codes, len(self._numbers) + span.start)
        lengths = _lengths(codes)
        others = []
        # Those of one field follow one another.
        begin = 0
        while begin < len(fields):
            field = fields[begin]
            end = int(np.searchsorted(fields, field, side="right"))
            run = slice(begin, end)
            own = FieldOccurrences(FIELDS[field], positions[run], counts[run], lengths[run])
            others.append(own)
            begin = end
        return others

    def _counts(self, codes: Codes, start: int) -> Counts:
        """Return the counts of the codes from this one on."""
        counts = codes >> 8
        high = self._high_counts(codes, start)
        if high:
            counts = counts.astype(np.int64)
            counts[list(high)] = list(high.values())
        return counts

    def _high_counts(self, codes: Codes, start: int) -> dict[int, int]:
        """Return which of the codes from this one on have too low a count, and the true one."""
        if not self._high:
            return {}
        is_high = codes >> 8 == HIGHEST
        high = {}
        for position in np.flatnonzero(is_high).tolist():
            high[position] = self._high.get(start + position, HIGHEST)
        return high

    def near(self, term: str) -> set[str]:
        """Return the terms of bodies that are one edit or one swap away, from its first letter."""
        first_letter = term[0].encode()
        low = self._from(first_letter)
        # The last of all characters comes after every other.
        high = self._from(first_letter + b"\xff")
        wanted = np.frombuffer(term.encode(), dtype=np.uint8)
        slack = PLAIN_SLACK if term.isascii() else WIDE_SLACK
        near = set()
        for number in self._alike(wanted, low, high, slack):
            word = self._text(number).decode()
            if _is_near(term, word) and self._is_in_a_body(number):
                near.add(word)
        return near

    def _alike(self, wanted: Bytes, low: int, high: int, slack: int) -> list[int]:
        """Return those of the terms from low to high that have most of these bytes at both ends."""
        all_starts = np.frombuffer(self._starts, dtype=np.uint32)
        starts = all_starts[low : high + 1].astype(np.int64)
        sizes = np.diff(starts)
        differences = np.abs(sizes - len(wanted))
        slacks = np.full(len(sizes), slack)
        if slack == PLAIN_SLACK:
            # A letter more or less leaves all others as they are, unless it takes several bytes.
            is_plain = ~self._is_wide[low:high]
            slacks[is_plain & (differences == 1)] = 0
            differences[is_plain & (differences > 1)] = slack + 1
        is_possible = differences <= slack
        # What is shared at both ends has this much at one of them at least.
        least = (len(wanted) - 2 * slack + 1) // 2
        if least > 0:
            is_possible &= self._shares_an_end(wanted, least, starts, low)
        chosen = np.flatnonzero(is_possible)
        sizes = sizes[chosen]
        begins = starts[chosen]
        lasts = begins + sizes - 1
        steps = np.arange(len(wanted))
        is_inside = steps < sizes[:, None]
        same = self._same(wanted, begins[:, None] + steps, is_inside)
        same += self._same(wanted[::-1], lasts[:, None] - steps, is_inside)
        is_alike = same >= np.minimum(sizes, len(wanted)) - slacks[chosen]
        alike: list[int] = (low + chosen[is_alike]).tolist()
        return alike

    @cached_property
    def _is_wide(self) -> Mask:
        """Tell which terms have characters of several bytes."""
        texts = np.frombuffer(self._texts, dtype=np.uint8)
        wide = np.flatnonzero(texts > LAST_ASCII)
        is_wide = np.zeros(len(self), dtype=np.bool_)
        starts = np.frombuffer(self._starts, dtype=np.uint32)
        is_wide[np.searchsorted(starts, wide, side="right") - 1] = True
        return is_wide

    def _shares_an_end(self, wanted: Bytes, least: int, starts: Numbers, low: int) -> Mask:
        """Tell which of the terms from low on have so many of the wanted bytes at one end.

        `starts` has where each of these terms begins, and where the last one ends.
        """
        texts = np.frombuffer(self._texts, dtype=np.uint8)
        shares = np.ones(len(starts) - 1, dtype=np.bool_)
        for back in range(1, least + 1):
            # A term that is too short for this is no possible one anyway.
            shares &= texts.take(starts[1:] - back, mode="clip") == wanted[-back]
        prefix = wanted[:least].tobytes()
        first = self._from(prefix) - low
        last = self._from(prefix + b"\xff") - low
        shares[first:last] = True
        return shares

    def _same(self, wanted: Bytes, offsets: Numbers, is_inside: Mask) -> Numbers:
        """Count the wanted bytes that each row of offsets has before one differs or is outside."""
        texts = np.frombuffer(self._texts, dtype=np.uint8)
        # An offset beyond the end of all texts is never looked at.
        read = texts.take(offsets, mode="clip")
        is_same = np.where(is_inside, read, 0) == wanted
        is_same_so_far = np.logical_and.accumulate(is_same, axis=1)
        count: Numbers = is_same_so_far.sum(axis=1)
        return count

    def _is_in_a_body(self, number: int) -> bool:
        span = _span(self._firsts, number)
        return bool(self._bodies[span].any())

    def terms(self) -> list[bytes]:
        """List all terms in their order."""
        return [self._text(number) for number in range(len(self))]

    def postings(self) -> Postings:
        """Return all postings."""
        bodies = np.flatnonzero(self._bodies)
        body_terms = _owners(self._firsts)[bodies]
        body_fields = np.zeros(len(bodies), dtype=np.int64)
        other_terms = _owners(self._other_firsts)
        other_firsts = self._firsts[other_terms].astype(np.int64)
        other_entries = other_firsts + self._parts["other_positions"]
        entries = np.concatenate([bodies, other_entries])
        return Postings(
            terms=np.concatenate([body_terms, other_terms]),
            fields=np.concatenate([body_fields, self._parts["other_fields"]]),
            numbers=self._numbers[entries].astype(np.int64),
            counts=self._all_counts(bodies),
        )

    def _all_counts(self, bodies: Numbers) -> Numbers:
        """Return the counts of these bodies, and then of all other fields."""
        other_codes = self._parts["other_codes"]
        codes = np.concatenate([self._bodies[bodies], other_codes])
        counts: Numbers = (codes >> 8).astype(np.int64)
        other_numbers = len(self._bodies) + np.arange(len(other_codes))
        code_numbers = np.append(bodies, other_numbers)
        is_high = counts == HIGHEST
        for position in np.flatnonzero(is_high).tolist():
            number = int(code_numbers[position])
            counts[position] = self._high.get(number, HIGHEST)
        return counts

    def dump(self) -> bytes:
        """Return everything as one file."""
        sizes = [len(self._parts[name]) for name in PARTS]
        pieces = [_SIZES.pack(*sizes)]
        for name, dtype in PARTS.items():
            part = self._parts[name].astype(dtype, copy=False)
            piece = part.tobytes()
            padding = bytes(-len(piece) % 8)
            pieces += [piece, padding]
        return b"".join(pieces)

    @classmethod
    def restore(cls, data: Buffer) -> Words:
        """Read what `dump` returned where it lies."""
        if len(data) < _SIZES.size:
            raise ValueError("the stored words are too short")
        parts = {}
        offset = _SIZES.size
        sizes = _SIZES.unpack_from(data)
        for name, size in zip(PARTS, sizes, strict=True):
            dtype = np.dtype(PARTS[name])
            parts[name] = np.frombuffer(data, dtype, size, offset)
            offset += dtype.itemsize * size
            offset += -offset % 8
        return cls(parts, data)

    def _from(self, wanted: bytes) -> int:
        """Return the first term that is not before this one."""
        low = 0
        high = len(self)
        starts = self._starts
        texts = self._texts
        while low < high:
            middle = (low + high) // 2
            text = texts[starts[middle] : starts[middle + 1]]
            if text < wanted:
                low = middle + 1
            else:
                high = middle
        return low

    def _text(self, number: int) -> bytes:
        start = self._starts[number]
        end = self._starts[number + 1]
        return self._texts[start:end]


def every_posting(words: Words) -> Iterator[tuple[str, bytes, Numbers, Numbers]]:
    """Yield every field and term with its passages and counts."""
    texts = words.terms()
    postings = words.postings()
    for field in FIELDS:
        own = postings.of_field(field)
        is_first = is_first_of_run(own.terms)
        firsts = np.flatnonzero(is_first)
        ends = firsts + np.diff(firsts, append=len(own.terms))
        distinct = own.terms[firsts]
        bounds = zip(distinct.tolist(), firsts.tolist(), ends.tolist(), strict=True)
        for term, first, end in bounds:
            span = slice(first, end)
            yield field, texts[term], own.numbers[span], own.counts[span]


def is_first_of_run(values: Numbers) -> Mask:
    """Tell for each value whether the one before it is another."""
    is_first = np.ones(len(values), dtype=np.bool_)
    is_first[1:] = values[1:] != values[:-1]
    return is_first


def _span(firsts: Offsets, number: int) -> slice:
    """Return where the part with this number lies, given where each of them begins."""
    first = int(firsts[number])
    end = int(firsts[number + 1])
    return slice(first, end)


def _owners(firsts: Offsets) -> Numbers:
    """Return for each position the number of the part that it lies in."""
    bounds = firsts.astype(np.int64)
    sizes = np.diff(bounds)
    numbers = np.arange(len(sizes))
    return np.repeat(numbers, sizes)


def _lengths(codes: Codes) -> Bytes:
    return (codes & HIGHEST).astype(np.uint8)


def _is_near(term: str, word: str) -> bool:
    """Tell whether one edit, or a swap of two neighbours, makes one word of the other.

    Both begin with the same letter.
    """
    shorter = min(len(term), len(word))
    start = 0
    while start < shorter and term[start] == word[start]:
        start += 1
    end = 0
    while end < shorter - start and term[-1 - end] == word[-1 - end]:
        end += 1
    middle = term[start : len(term) - end]
    other = word[start : len(word) - end]
    if start == 0:
        return False
    if len(middle) <= 1 and len(other) <= 1:
        return True
    return len(middle) == SWAPPED and middle == other[::-1]
