"""The words of a segment with the passages that have them, read as they lie in a file.

Terms are sorted. The passages of a term are numbers in order, each with one code of how often the
body has the term and how long the body is. What other fields have of it stands beside them.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragdocs.engines.local.vocabulary import Vocabulary
from ragdocs.search.bm25 import BOOSTS

Numbers = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint16]
Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Offsets = npt.NDArray[np.uint32]
Part = npt.NDArray[Any]
Buffer = bytes | memoryview

# The body is the first.
FIELDS = tuple(BOOSTS)
# A code is a count in its upper byte and a length, as Whoosh rounds it, in its lower one. Higher
# counts are kept apart.
HIGHEST = 255
NONE_HIGH: Mapping[int, int] = MappingProxyType({})
# What lies in a file, one after the other, each from a multiple of eight bytes on. Systems read a
# file in large pieces: what a search looks at together lies together.
PARTS: Mapping[str, npt.DTypeLike] = {
    "text_starts": np.uint32,
    "texts": np.uint8,
    "backwards": np.uint32,
    "firsts": np.uint32,
    "other_firsts": np.uint32,
    "numbers": np.uint32,
    "bodies": np.uint16,
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


class OtherOccurrences(NamedTuple):
    """What fields other than the body have of a term, field by field.

    Positions count the passages of the term; `high` has counts as `Occurrences` has them.
    """

    positions: Offsets
    fields: Bytes
    codes: Codes
    high: Mapping[int, int]


class Occurrences(NamedTuple):
    """The passages that have a term, the codes of their bodies, and other fields, if any have it.

    `high` has the counts that are too high for their codes, by their positions among the passages.
    """

    numbers: Offsets
    codes: Codes
    high: Mapping[int, int]
    others: OtherOccurrences | None


class Words:
    """The words of one segment; what is not small is read where it lies when it is asked for."""

    def __init__(self, parts: Mapping[str, Part], buffer: Buffer = b"") -> None:
        self._parts = parts
        self.buffer = buffer
        # In memory of their own: a search for a term reads these two in many positions.
        starts = parts["text_starts"].astype(np.uint32)
        own_starts = array("I", starts.tobytes())
        backwards = parts["backwards"].data
        self._vocabulary = Vocabulary(parts["texts"].tobytes(), own_starts, backwards)
        # Python reads single numbers of a view in less time than numpy's.
        self._firsts = parts["firsts"].data
        self._numbers = parts["numbers"]
        self._bodies = parts["bodies"]
        self._other_firsts = parts["other_firsts"].data
        self._other_positions = parts["other_positions"]
        self._other_fields = parts["other_fields"]
        self._other_codes = parts["other_codes"]
        # Where a count is too high for its code: in the bodies first, then in the other fields.
        self._high: dict[int, int] = {}
        if len(parts["high_places"]):
            numbers = parts["high_places"].tolist()
            counts = parts["high_counts"].tolist()
            self._high = dict(zip(numbers, counts, strict=True))

    def __len__(self) -> int:
        return len(self._vocabulary)

    def find(self, term: str) -> int:
        """Return the number of a term, -1 if no passage has it."""
        return self._vocabulary.find(term)

    def occurrences(self, term: int) -> Occurrences:
        """Return the passages that have a term."""
        own = _span(self._firsts, term)
        codes = self._bodies[own]
        high: Mapping[int, int] = NONE_HIGH
        if self._high:
            high = self._high_counts(codes, own.start)
        others = None
        span = _span(self._other_firsts, term)
        if span.start < span.stop:
            others = self._others(span)
        return Occurrences(self._numbers[own], codes, high, others)

    def _others(self, span: slice) -> OtherOccurrences:
        """Return what fields other than the body have of the term that this span is of."""
        codes = self._other_codes[span]
        high: Mapping[int, int] = NONE_HIGH
        if self._high:
            # Their counts are numbered behind those of all bodies.
            high = self._high_counts(codes, len(self._numbers) + span.start)
        return OtherOccurrences(self._other_positions[span], self._other_fields[span], codes, high)

    def _high_counts(self, codes: Codes, start: int) -> dict[int, int]:
        """Return which of the codes from this one on have too low a count, and the true one."""
        is_high = codes >> 8 == HIGHEST
        high = {}
        for position in np.flatnonzero(is_high).tolist():
            high[position] = self._high.get(start + position, HIGHEST)
        return high

    def near(self, term: str) -> set[str]:
        """Return the terms of bodies that are one edit or one swap away, from its first letter."""
        near = set()
        for number, word in self._vocabulary.near(term):
            if self._is_in_a_body(number):
                near.add(word)
        return near

    def _is_in_a_body(self, number: int) -> bool:
        span = _span(self._firsts, number)
        return bool(self._bodies[span].any())

    def terms(self) -> list[bytes]:
        """List all terms in their order."""
        return [self._vocabulary.text(number) for number in range(len(self))]

    def postings(self) -> Postings:
        """Return all postings."""
        bodies = np.flatnonzero(self._bodies)
        body_terms = _owners(self._parts["firsts"])[bodies]
        body_fields = np.zeros(len(bodies), dtype=np.int64)
        other_terms = _owners(self._parts["other_firsts"])
        other_firsts = self._parts["firsts"][other_terms].astype(np.int64)
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


def _span(firsts: memoryview, number: int) -> slice:
    """Return where the part with this number lies, given where each of them begins."""
    return slice(firsts[number], firsts[number + 1])


def _owners(firsts: Offsets) -> Numbers:
    """Return for each position the number of the part that it lies in."""
    bounds = firsts.astype(np.int64)
    sizes = np.diff(bounds)
    every = np.arange(len(sizes))
    return np.repeat(every, sizes)
