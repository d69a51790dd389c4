"""What a document becomes in the index: lengths of its fields and postings of its terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragdocs.engines.postgres.lengths import FIELDS, LENGTHS, Codes, codes
from ragdocs.search import bm25
from ragdocs.search.fields import FieldTerms, field_terms, is_read_alone
from ragdocs.types import IndexedDocument

# Fields that each passage has for itself; all passages of a document share the others.
OWN = ("body", "headings")
SHARED = tuple(field for field in FIELDS if field not in OWN)
BODY = FIELDS.index("body")
HEADINGS = FIELDS.index("headings")
# What a term is in one passage: its position and how often the term stands in body and headings.
# Instead of a position, DOCUMENT says that a field and a number follow, for all passages.
ENTRY = np.dtype([("ord", "<u4"), ("body", "<u2"), ("headings", "<u2")])
DOCUMENT = 0xFFFFFFFF
MOST_OCCURRENCES = 0xFFFF
# Bounds are a little larger than what they bound, because scores are added up in single precision.
ROUNDING = 1 + 2e-5
# Says that a term stands elsewhere than in bodies, though not in title or name.
_ELSEWHERE = float(np.float32(1e-9))

Averages = npt.NDArray[np.float64]
# Four rows: terms by number, positions, and occurrences in bodies and headings.
Entries = npt.NDArray[np.int64]


class Posting(NamedTuple):
    """A term in one document, as a row has it."""

    best: float
    named: float
    passages: int
    bodies: int
    payload: bytes


class StoredPostings:
    """The postings of one document as rows have them, in columns: there are hundreds."""

    def __init__(self, rows: Sequence[tuple[Any, ...]] = ()) -> None:
        """Take rows of a term, bounds, counts and a payload."""
        columns: Sequence[Sequence[Any]] = tuple(zip(*rows, strict=True)) or ((),) * 6
        self.terms, self._best, self._named, self._passages, self._bodies, self.payloads = columns
        # Where each term is.
        self.positions = dict(zip(self.terms, range(len(self.terms)), strict=True))

    def at(self, position: int) -> Posting:
        """Return the posting at a position."""
        return Posting(
            self._best[position],
            self._named[position],
            self._passages[position],
            self._bodies[position],
            self.payloads[position],
        )


@dataclass(frozen=True, slots=True)
class StoredTerms:
    """The terms of a document as rows have them."""

    codes: Codes
    postings: StoredPostings
    # The passages whose text and headings are as they were: their positions, and those before.
    unchanged: Mapping[int, int]

    def entries(self, unchanged: Mapping[int, int]) -> tuple[Entries, npt.NDArray[np.int64]]:
        """Return the entries of known passages, and the positions of terms that may differ."""
        payloads = self.postings.payloads
        sizes = [len(payload) // ENTRY.itemsize for payload in payloads]
        stored = np.frombuffer(b"".join(payloads), dtype=ENTRY)
        of_term = np.repeat(np.arange(len(sizes)), sizes)
        moved = np.full(len(self.codes) + 1, -1)
        moved[list(unchanged.values())] = list(unchanged)
        # What belongs to the whole document comes last, which is nowhere.
        positions = moved[np.minimum(stored["ord"], len(self.codes))]
        differing = np.unique(of_term[positions != stored["ord"]])
        entries = np.array((of_term, positions, stored["body"], stored["headings"]), dtype=np.int64)
        return entries[:, positions >= 0], differing


NO_TERMS = StoredTerms(np.zeros((0, len(FIELDS)), dtype=np.uint8), StoredPostings(), {})


@dataclass(frozen=True)
class AnalysedDocument:
    """A document with the terms of its fields counted."""

    entry: IndexedDocument
    codes: Codes
    # The terms of bodies and headings, and their entries, those of one term side by side.
    own_terms: Sequence[str]
    entries: npt.NDArray[np.void]
    # Where the entries of each of these terms begin.
    starts: npt.NDArray[np.int64]
    # For each term of other fields, occurrences by field.
    shared: Mapping[str, Mapping[int, int]]
    # Positions of the stored postings that may differ; no others have terms of the above.
    open_positions: Sequence[int] | None = None

    @cached_property
    def sums(self) -> list[int]:
        """The lengths of all passages added up, by field."""
        totals = LENGTHS[self.codes].sum(axis=0, dtype=np.float64)
        sums: list[int] = totals.astype(int).tolist()
        return sums

    def postings(self, reference: Averages) -> dict[str, Posting]:
        """Return the postings by term, with bounds as of these average lengths."""
        passages = len(self.entry.chunks)
        if not passages:
            return {}
        weights = field_weights(self.codes, reference)
        frequencies = self.entries["body"] * weights[self.entries["ord"], BODY]
        frequencies += self.entries["headings"] * weights[self.entries["ord"], HEADINGS]
        largest = _reduced(np.maximum, frequencies, self.starts)
        best = (largest / (largest + bm25.K1) * ROUNDING).astype(np.float32).tolist()
        bodies = _reduced(np.add, (self.entries["body"] > 0).astype(np.int64), self.starts).tolist()
        in_headings = _reduced(np.maximum, self.entries["headings"], self.starts).tolist()
        ends = [*self.starts.tolist()[1:], len(self.entries)]
        data = self.entries.tobytes()
        postings = {}
        start = 0
        for position, term in enumerate(self.own_terms):
            end = ends[position]
            named = 0.0
            if in_headings[position]:
                named = _ELSEWHERE
            payload = data[start * ENTRY.itemsize : end * ENTRY.itemsize]
            postings[term] = Posting(best[position], named, end - start, bodies[position], payload)
            start = end
        own = dict(zip(self.own_terms, largest.tolist(), strict=True))
        for term, counts in self.shared.items():
            postings[term] = self._with_shared(
                postings.get(term), own.get(term, 0.0), counts, weights[0]
            )
        return postings

    def _with_shared(
        self,
        own: Posting | None,
        frequency: float,
        counts: Mapping[int, int],
        weights: npt.NDArray[np.float64],
    ) -> Posting:
        """Return the posting of a term that stands in a field of the document as well."""
        entries = []
        for field, count in counts.items():
            entries.append((DOCUMENT, field, count))
            frequency += count * float(weights[field])
        bodies = 0
        payload = b""
        if own is not None:
            bodies = own.bodies
            payload = own.payload
        named = 0.0
        for name, most in bm25.NAMED.items():
            field = FIELDS.index(name)
            length = float(LENGTHS[self.codes[0][field]])
            named += most * counts.get(field, 0) / max(1.0, length)
        return Posting(
            _single(frequency / (frequency + bm25.K1) * ROUNDING),
            _single(named * ROUNDING) or _ELSEWHERE,
            len(self.entry.chunks),
            bodies,
            payload + np.array(entries, dtype=ENTRY).tobytes(),
        )


def analysed(entry: IndexedDocument, stored: StoredTerms = NO_TERMS) -> AnalysedDocument:
    """Count the terms of all fields of a document; those of passages that are stored are kept."""
    unchanged = {}
    for position, before in stored.unchanged.items():
        if is_read_alone(entry.chunks[position]):
            unchanged[position] = before
    passages = field_terms(entry, unchanged)
    shared: dict[str, dict[int, int]] = {}
    if passages:
        shared = _shared_terms(passages[0])
    # Terms are numbered: those that are stored by their positions, others after them.
    numbers = dict(stored.postings.positions)
    fresh = _counted(passages, numbers)
    stored_entries, differing = stored.entries(unchanged)
    is_open = np.zeros(len(numbers), dtype=bool)
    is_open[differing] = True
    is_open[fresh[0]] = True
    is_open[[numbers[term] for term in shared if term in numbers]] = True
    entries = np.hstack((stored_entries[:, is_open[stored_entries[0]]], fresh))
    open_positions = np.flatnonzero(is_open[: len(stored.postings.terms)]).tolist()
    return AnalysedDocument(
        entry,
        _codes(passages, stored, unchanged),
        *_by_term(entries, list(numbers)),
        shared,
        open_positions,
    )


def _counted(passages: Sequence[FieldTerms], numbers: dict[str, int]) -> Entries:
    """Count the terms of bodies and headings; a new term gets the next number."""
    columns: tuple[list[int], ...] = ([], [], [], [])
    of_term, at, in_body, in_headings = columns
    for position, passage in enumerate(passages):
        body = Counter(passage.get("body", ()))
        headings = Counter(passage.get("headings", ()))
        for term in headings:
            body.setdefault(term, 0)
        of_term += [numbers.setdefault(term, len(numbers)) for term in body]
        at += [position] * len(body)
        in_body += body.values()
        in_headings += map(headings.__getitem__, body)
    return np.array(columns, dtype=np.int64)


def _shared_terms(passage: FieldTerms) -> dict[str, dict[int, int]]:
    """Return for each term of the fields that all passages share its occurrences by field."""
    shared: dict[str, dict[int, int]] = {}
    for field in SHARED:
        for term, count in Counter(passage.get(field, ())).items():
            shared.setdefault(term, {})[FIELDS.index(field)] = min(count, MOST_OCCURRENCES)
    return shared


def _codes(
    passages: Sequence[FieldTerms], stored: StoredTerms, unchanged: Mapping[int, int]
) -> Codes:
    """Return the lengths of all fields as they are stored; known passages keep theirs."""
    lengths = []
    for passage in passages:
        lengths.append([len(passage.get(field, ())) for field in FIELDS])
    coded = codes(lengths)
    for field in (BODY, HEADINGS):
        coded[list(unchanged), field] = stored.codes[list(unchanged.values()), field]
    return coded


def _by_term(
    entries: Entries, terms: Sequence[str]
) -> tuple[list[str], npt.NDArray[np.void], npt.NDArray[np.int64]]:
    """Put the entries of each term side by side; return terms, entries, where those of each begin.

    A term without entries is left out.
    """
    of_term, positions, in_body, in_headings = entries[:, np.lexsort((entries[1], entries[0]))]
    ordered = np.zeros(len(of_term), dtype=ENTRY)
    ordered["ord"] = positions
    ordered["body"] = in_body.clip(max=MOST_OCCURRENCES)
    ordered["headings"] = in_headings.clip(max=MOST_OCCURRENCES)
    sizes = np.bincount(of_term, minlength=len(terms))
    used = np.flatnonzero(sizes)
    starts = np.cumsum(sizes) - sizes
    return [terms[number] for number in used.tolist()], ordered, starts[used]


def _reduced(
    function: np.ufunc, values: npt.NDArray[Any], starts: npt.NDArray[np.int64]
) -> npt.NDArray[Any]:
    """Reduce the values of each term to one."""
    if not len(starts):
        return values
    reduced: npt.NDArray[Any] = function.reduceat(values, starts)
    return reduced


def field_weights(stored: Codes, averages: Averages) -> npt.NDArray[np.float64]:
    """Return what one occurrence in each field of each passage counts before saturation."""
    padding = np.zeros(len(FIELDS))
    padding[BODY] = bm25.EQUAL_WORDS
    lengths = LENGTHS[stored].astype(np.float64)
    normal = 1 - bm25.B + bm25.B * (lengths + padding) / (averages + padding)
    boosts = np.array([bm25.BOOSTS[field] for field in FIELDS])
    weights: npt.NDArray[np.float64] = boosts / normal
    return weights


def average_lengths(sums: Sequence[int], passages: int) -> Averages:
    """Return the average length of each field, as scores are made with."""
    totals = np.array(sums, dtype=np.float64)
    averages: Averages = np.maximum(1.0, totals / max(1, passages))
    return averages


def drift(averages: Averages, reference: Averages) -> tuple[float, float]:
    """Return by how much bounds must be larger since average lengths have grown.

    One figure for terms that stand in bodies alone, and one for all others. A score grows at most
    in proportion to the average: an occurrence counts 1 / (1 - B + B * length / average), which
    does, and the saturation that follows is concave.
    """
    padding = np.zeros(len(FIELDS))
    padding[BODY] = bm25.EQUAL_WORDS
    ratios = np.maximum(1.0, (averages + padding) / (reference + padding))
    return float(ratios[BODY]), float(ratios.max())


def _single(value: float) -> float:
    """Return a number as a row of single precision has it."""
    return float(np.float32(value))
