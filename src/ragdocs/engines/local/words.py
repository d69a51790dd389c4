"""The words of a segment with the passages that have them, read as they lie in a file.

Terms are sorted. The passages of a term are numbers in order, each with one code of how often the
body has the term and how long the body is. What other fields have of it stands beside them.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragdocs.search.bm25 import BOOSTS

Numbers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint16]
Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Buffer = bytes | memoryview

# The body is the first.
FIELDS = tuple(BOOSTS)
# A code is a count in its upper byte and a length, as Whoosh rounds it, in its lower one. Higher
# counts are kept apart.
HIGHEST = 255
# Bytes by which a word and its misspelling differ in the middle: two letters may be swapped.
PLAIN_SLACK, WIDE_SLACK = 2, 8
SWAPPED = 2
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
        chosen = self.fields == FIELDS.index(field)
        return Postings(*(column[chosen] for column in self))


class Occurrences(NamedTuple):
    """The passages that have a term, the counts and lengths of their bodies, and other fields.

    Those are (field, positions among the passages, counts, lengths). Lengths are Whoosh's bytes.
    """

    numbers: npt.NDArray[np.uint32]
    counts: npt.NDArray[Any]
    lengths: Bytes
    others: list[tuple[str, npt.NDArray[np.uint32], npt.NDArray[Any], Bytes]]


class Words:
    """The words of one segment; what is not small is read where it lies when it is asked for."""

    def __init__(self, parts: Mapping[str, npt.NDArray[Any]], buffer: Buffer = b"") -> None:
        self._parts = parts
        self.buffer = buffer
        # In memory of their own: a search for a term looks at many places of these two.
        self._texts = parts["texts"].tobytes()
        self._starts = array("I", parts["text_starts"].astype(np.uint32).tobytes())
        self._firsts = parts["firsts"]
        self._numbers = parts["numbers"]
        self._bodies = parts["bodies"]
        self._other_firsts = parts["other_firsts"]
        # Where a count is too high for its code: in the bodies first, then in the other fields.
        self._high: dict[int, int] = {}
        if len(parts["high_places"]):
            places = parts["high_places"].tolist()
            self._high = dict(zip(places, parts["high_counts"].tolist(), strict=True))

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
        first, end = int(self._firsts[term]), int(self._firsts[term + 1])
        codes = self._bodies[first:end]
        numbers = self._numbers[first:end]
        others = []
        start, stop = int(self._other_firsts[term]), int(self._other_firsts[term + 1])
        if start < stop:
            others = self._others(start, stop)
        return Occurrences(numbers, self._counts(codes, first), _lengths(codes), others)

    def _others(
        self, start: int, stop: int
    ) -> list[tuple[str, npt.NDArray[np.uint32], npt.NDArray[Any], Bytes]]:
        fields = self._parts["other_fields"][start:stop]
        others = []
        # Those of one field follow one another.
        begin = 0
        while begin < len(fields):
            field = fields[begin]
            end = int(np.searchsorted(fields, field, side="right"))
            codes = self._parts["other_codes"][start + begin : start + end]
            counts = self._counts(codes, len(self._numbers) + start + begin)
            positions = self._parts["other_positions"][start + begin : start + end]
            others.append((FIELDS[field], positions, counts, _lengths(codes)))
            begin = end
        return others

    def _counts(self, codes: Codes, place: int) -> npt.NDArray[Any]:
        """Return the counts of the codes from this place on."""
        counts = codes >> 8
        if self._high:
            counts = counts.astype(np.int64)
            for position in np.flatnonzero(counts == HIGHEST).tolist():
                counts[position] = self._high.get(place + position, HIGHEST)
        return counts

    def near(self, term: str) -> set[str]:
        """Return the terms of bodies that are one edit or one swap away, from its first letter."""
        low = self._from(term[0].encode())
        # The last of all characters comes after every other.
        high = self._from(term[0].encode() + b"\xff")
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
        starts = np.frombuffer(self._starts, dtype=np.uint32)[low : high + 1].astype(np.int64)
        sizes = starts[1:] - starts[:-1]
        chosen = np.flatnonzero(np.abs(sizes - len(wanted)) <= slack)
        texts = np.frombuffer(self._texts, dtype=np.uint8)
        begins, sizes = starts[:-1][chosen, None], sizes[chosen, None]
        steps = np.arange(len(wanted))
        is_inside = steps < sizes
        # A place beyond the end of all texts is never looked at.
        forth = np.where(is_inside, texts.take(begins + steps, mode="clip"), 0) == wanted
        back = begins + sizes - 1 - steps
        backwards = np.where(is_inside, texts.take(back, mode="clip"), 0) == wanted[::-1]
        same = np.logical_and.accumulate(forth, axis=1).sum(axis=1)
        same += np.logical_and.accumulate(backwards, axis=1).sum(axis=1)
        least = np.minimum(sizes[:, 0], len(wanted)) - slack
        alike: list[int] = (low + chosen[same >= least]).tolist()
        return alike

    def _is_in_a_body(self, number: int) -> bool:
        return bool(self._bodies[self._firsts[number] : self._firsts[number + 1]].any())

    def terms(self) -> list[bytes]:
        """List all terms in their order."""
        return [self._text(number) for number in range(len(self))]

    def postings(self) -> Postings:
        """Return all postings."""
        every = np.arange(len(self))
        bodies = np.flatnonzero(self._bodies)
        body_terms = np.repeat(every, _sizes(self._firsts))[bodies]
        other_terms = np.repeat(every, _sizes(self._other_firsts))
        places = self._firsts[other_terms].astype(np.int64) + self._parts["other_positions"]
        codes = np.concatenate([self._bodies[bodies], self._parts["other_codes"]])
        counts = (codes >> 8).astype(np.int64)
        code_places = np.append(bodies, len(self._bodies) + np.arange(len(other_terms)))
        for position in np.flatnonzero(counts == HIGHEST).tolist():
            counts[position] = self._high.get(int(code_places[position]), HIGHEST)
        body_fields = np.zeros(len(bodies), dtype=np.int64)
        return Postings(
            terms=np.concatenate([body_terms, other_terms]),
            fields=np.concatenate([body_fields, self._parts["other_fields"]]),
            numbers=self._numbers[np.concatenate([bodies, places])].astype(np.int64),
            counts=counts,
        )

    def dump(self) -> bytes:
        """Return everything as one file."""
        sizes = [len(self._parts[name]) for name in PARTS]
        pieces = [_SIZES.pack(*sizes)]
        for name, dtype in PARTS.items():
            piece = self._parts[name].astype(dtype, copy=False).tobytes()
            pieces += [piece, bytes(-len(piece) % 8)]
        return b"".join(pieces)

    @classmethod
    def restore(cls, data: Buffer) -> Words:
        """Read what `dump` returned where it lies."""
        if len(data) < _SIZES.size:
            raise ValueError("the stored words are too short")
        parts = {}
        place = _SIZES.size
        for (name, kind), size in zip(PARTS.items(), _SIZES.unpack_from(data), strict=True):
            dtype = np.dtype(kind)
            parts[name] = np.frombuffer(data, dtype, size, place)
            place += dtype.itemsize * size
            place += -place % 8
        return cls(parts, data)

    def _from(self, wanted: bytes) -> int:
        """Return the first term that is not before this one."""
        low, high = 0, len(self)
        starts, texts = self._starts, self._texts
        while low < high:
            middle = (low + high) // 2
            if texts[starts[middle] : starts[middle + 1]] < wanted:
                low = middle + 1
            else:
                high = middle
        return low

    def _text(self, number: int) -> bytes:
        return self._texts[self._starts[number] : self._starts[number + 1]]


def every_posting(words: Words) -> Iterator[tuple[str, bytes, Numbers, Numbers]]:
    """Yield every field and term with its passages and counts."""
    texts = words.terms()
    postings = words.postings()
    for field in FIELDS:
        terms, _, numbers, counts = postings.of_field(field)
        distinct, firsts, sizes = np.unique(terms, return_index=True, return_counts=True)
        ends = firsts + sizes
        bounds = zip(distinct.tolist(), firsts.tolist(), ends.tolist(), strict=True)
        for term, first, end in bounds:
            yield field, texts[term], numbers[first:end], counts[first:end]


def _sizes(firsts: npt.NDArray[np.uint32]) -> Numbers:
    bounds: Numbers = firsts.astype(np.int64)
    return bounds[1:] - bounds[:-1]


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
    middle, other = term[start : len(term) - end], word[start : len(word) - end]
    if start == 0:
        return False
    if len(middle) <= 1 and len(other) <= 1:
        return True
    return len(middle) == SWAPPED and middle == other[::-1]
