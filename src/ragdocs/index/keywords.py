"""Keyword search: Whoosh keeps the postings, numpy scores them; with `terms` the only module that imports whoosh."""

from __future__ import annotations

import math
import secrets
import struct
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pickle import PickleError
from typing import Any

import numpy as np
import numpy.typing as npt
from whoosh import fields
from whoosh.analysis import IDAnalyzer
from whoosh.codec.whoosh3 import W3Codec
from whoosh.filedb.filestore import RamStorage
from whoosh.filedb.filetables import FileFormatError
from whoosh.index import IndexError as WhooshError
from whoosh.reading import SegmentReader

from ragdocs.index.terms import STOP_TERMS, terms

Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]

# How much a term's occurrence counts where it stands; the body is the unit. Titles and headings say what a passage is
# about, but a much larger boost loses precision where titles repeat common words.
BOOSTS = {"body": 1.0, "title": 1.5, "headings": 1.0, "tags": 1.0, "path": 0.5}
# BM25's usual saturation and length normalisation.
K1 = 1.2
B = 0.75
# A query is a question, not a document: past this many distinct terms only the rarest are scored.
MOST_TERMS = 64
# Looking a term up costs about 20 microseconds: a pasted file is cut before the rarest of its terms are chosen.
LONGEST_QUERY = 20_000
MOST_LOOKUPS = 512
# A term found nowhere is replaced by its nearest spellings, each worth this much of an exact match.
TYPO_WEIGHT = 0.6
MOST_SPELLINGS = 3
MOST_TYPOS = 2
SHORTEST_TYPO = 4
# Decoded postings kept in memory, counted in postings of about 50 bytes.
CACHED_POSTINGS = 1_000_000
# Whoosh would put postings beyond its limit into a temporary file that a storage in memory does not keep.
UNLIMITED = 1 << 20
# More segments than this are merged when there is time.
MOST_SEGMENTS = 12
SIZE_CLASS = 8
# Merging costs about a millisecond a row, during which nobody can search: a few rows at any time, many only when there
# is much to gain, and never most of a large index.
FEW_MERGED = 500
MOST_MERGED = 4000


class _Memory(RamStorage):  # type: ignore[misc] # whoosh has no types
    """Whoosh files in memory; RamStorage itself keeps its work files under a fixed name in the temporary directory."""

    def temp_storage(self, name: str | None = None) -> _Memory:  # noqa: ARG002 - Whoosh's signature
        return _Memory()


class _Codec(W3Codec):  # type: ignore[misc] # whoosh has no types
    """Names segments by the system's randomness; Whoosh's own names repeat when somebody seeds the random module."""

    def new_segment(self, storage: Any, indexname: str) -> Any:
        segment = super().new_segment(storage, indexname)
        segment.segid = secrets.token_hex(8)
        return segment


@dataclass(frozen=True, slots=True)
class _Segment:
    reader: Any
    rows: Rows
    lengths: Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class _Postings:
    """Where one term occurs in the segments named: rows, and (field, tf, field length) of each field."""

    segments: frozenset[str]
    rows: Rows
    by_field: Mapping[str, tuple[Floats, Floats]]


class KeywordTable:
    """A Whoosh index in memory, with one Whoosh document for each row."""

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        self._storage = _Memory()
        if files is None:
            # Terms arrive ready-made as lists, so Whoosh's analyser has nothing to do.
            text = {name: fields.TEXT(analyzer=IDAnalyzer(), phrase=False) for name in BOOSTS}
            row = fields.NUMERIC(int, bits=64, sortable=True)
            self._index: Any = self._storage.create_index(fields.Schema(row=row, **text))
        else:
            self._storage.files = dict(files)
            try:
                self._index = self._storage.open_index()
            except (WhooshError, fields.FieldConfigurationError, FileFormatError, PickleError, struct.error) as error:
                raise ValueError(f"the stored keywords cannot be read: {error}") from error
        self._segments: dict[str, _Segment] = {}
        self._names: frozenset[str] = frozenset()
        self._place: dict[int, tuple[str, int]] = {}
        self._totals = dict.fromkeys(BOOSTS, 0.0)
        self._spellings: dict[str, tuple[str, ...]] = {}
        self._cache: OrderedDict[str, _Postings] = OrderedDict()
        self._cached = 0
        self._refresh()

    def apply(self, added: Mapping[int, Mapping[str, str]], removed: Iterable[int]) -> None:
        """Add rows with the text of each field, and remove rows, in one commit."""
        writer = self._index.writer(codec=_Codec(), limitmb=UNLIMITED)
        bases = _bases(writer.segments)
        for row in removed:
            name, number = self._place.pop(row)
            writer.delete_document(bases[name] + number)
            for field, lengths in self._segments[name].lengths.items():
                self._totals[field] -= float(lengths[number])
        for row, texts in added.items():
            writer.add_document(row=row, **{name: list(terms(text)) for name, text in texts.items() if text})
        writer.commit(merge=False)
        self._refresh()

    def consolidate(self) -> bool:
        """Merge segments of like size if there are many; tell whether anything was done."""
        if len(self._segments) <= MOST_SEGMENTS:
            return False
        self._index.writer(codec=_Codec(), limitmb=UNLIMITED).commit(mergetype=_merge_alike)
        self._refresh()
        return True

    def match(self, text: str, k: int, mask: Mask, alive: Mask) -> list[tuple[int, float]]:
        """Score rows by BM25 over all fields; 1.0 is every term once in a passage of average length."""
        weights = self._weigh(text, alive)
        total = sum(weight for _, weight in weights)
        if not total:
            return []
        # Over all live rows, not only the allowed ones: a filter must not change the order of what passes it.
        average = {field: max(1.0, length / max(1, len(self._place))) for field, length in self._totals.items()}
        scores = np.zeros(len(mask), dtype=np.float32)
        for variants, weight in weights:
            for term, share in variants:
                postings = self._postings(term)
                frequency = np.zeros(len(postings.rows), dtype=np.float32)
                for field, (tf, length) in postings.by_field.items():
                    frequency += BOOSTS[field] * tf / (1 - B + B * length / average[field])
                scores[postings.rows] += (weight * share * (K1 + 1) / total) * (frequency / (frequency + K1))
        scores[~mask] = 0.0
        found = np.flatnonzero(scores)
        if len(found) > k:
            # Everything that ties with the k-th is kept until rows decide, so that equal scores have one order.
            found = found[scores[found] >= np.partition(scores[found], -k)[-k]]
        order = sorted(((int(row), float(scores[row])) for row in found), key=lambda pair: (-pair[1], pair[0]))
        return order[:k]

    def holds(self, row: int, wanted: Collection[str]) -> bool:
        """Tell whether a row has every one of these terms, and there are any."""
        return bool(wanted) and all(bool(np.any(self._postings(term).rows == row)) for term in wanted)

    def dump(self) -> dict[str, bytes]:
        """Return the files of the Whoosh index."""
        return {name: bytes(data) for name, data in self._storage.files.items()}

    def postings(self) -> list[tuple[str, str, int, float]]:
        """List every live posting as (field, term, row, weight), sorted: what `verify` compares."""
        listed = []
        for segment in self._segments.values():
            for field, term in segment.reader.all_terms():
                if field in BOOSTS:
                    numbers, weights = _decode(segment.reader, field, term)
                    pairs = zip(segment.rows[numbers].tolist(), weights.tolist(), strict=True)
                    listed += [(field, term.decode(), row, weight) for row, weight in pairs if row in self._place]
        return sorted(listed)

    def _weigh(self, text: str, alive: Mask) -> list[tuple[list[tuple[str, float]], float]]:
        """Choose the terms of a query: (spellings with their shares, inverse document frequency), the rarest first."""
        distinct = dict.fromkeys(islice(terms(text[:LONGEST_QUERY]), MOST_LOOKUPS))
        meaningful = [term for term in distinct if term not in STOP_TERMS] or list(distinct)
        count = len(self._place)
        weighed, unknown = [], []
        for term in meaningful:
            frequency = self._frequency(term, alive)
            if frequency:
                weighed.append(([(term, 1.0)], _rarity(count, frequency)))
            else:
                unknown.append(term)
        # A word nobody wrote weighs as much as the rarest word, so that a query of unknown words scores low.
        rarest = _rarity(count, 1)
        guesses = [self._near(term, alive) for term in unknown[:MOST_TYPOS]]
        weighed += [([(near, TYPO_WEIGHT) for near in guess], rarest) for guess in guesses]
        return sorted(weighed, key=lambda pair: -pair[1])[:MOST_TERMS]

    def _frequency(self, term: str, alive: Mask) -> int:
        return int(np.count_nonzero(alive[self._postings(term).rows]))

    def _near(self, term: str, alive: Mask) -> tuple[str, ...]:
        """Return the most frequent spellings one edit or one swap away from a term that is found nowhere."""
        if len(term) < SHORTEST_TYPO or not term.isalpha():
            return ()
        if term not in self._spellings:
            readers = [segment.reader for segment in self._segments.values()]
            near = {word for reader in readers for word in reader.terms_within("body", term, maxdist=1, prefix=1)}
            # Two letters swapped are the commonest slip, and to Whoosh they are two edits.
            swapped = {term[:i] + term[i + 1] + term[i] + term[i + 2 :] for i in range(1, len(term) - 1)}
            near |= {word for reader in readers for word in swapped if ("body", word.encode()) in reader}
            # Words that stand only in removed documents are still in the postings.
            counted = sorted((-self._frequency(word, alive), word) for word in near)
            self._spellings[term] = tuple(word for count, word in counted[:MOST_SPELLINGS] if count)
        return self._spellings[term]

    def _postings(self, term: str) -> _Postings:
        """Return where a term occurs; what was decoded before is extended by new segments only."""
        known = self._cache.get(term)
        if known is not None and known.segments == self._names:
            self._cache.move_to_end(term)
            return known
        if known is not None:
            self._cached -= 1 + len(self._cache.pop(term).rows)
        old = known if known is not None and known.segments <= self._names else None
        fresh = [_gather(self._segments[name], term) for name in self._names - (old.segments if old else frozenset())]
        postings = _concatenate(self._names, [*([old] if old else []), *fresh])
        self._cache[term] = postings
        self._cached += 1 + len(postings.rows)
        while self._cached > CACHED_POSTINGS and len(self._cache) > 1:
            self._cached -= 1 + len(self._cache.popitem(last=False)[1].rows)
        return postings

    def _refresh(self) -> None:
        """Open the segments that the last commit wrote; those that were there before cost nothing."""
        found = {segment.segment_id(): segment for segment in self._index._segments()}  # noqa: SLF001 - the reason is at `_decode`
        for name in self._segments.keys() - found.keys():
            segment = self._segments.pop(name)
            for row in segment.rows.tolist():
                if self._place.get(row, ("", 0))[0] == name:
                    number = self._place.pop(row)[1]
                    for field, lengths in segment.lengths.items():
                        self._totals[field] -= float(lengths[number])
        for name in found.keys() - self._segments.keys():
            reader = SegmentReader(self._storage, self._index.schema, found[name])
            self._segments[name] = segment = _open(reader)
            alive = np.fromiter(reader.all_doc_ids(), dtype=np.int64)
            self._place.update({int(segment.rows[number]): (name, int(number)) for number in alive})
            for field, lengths in segment.lengths.items():
                self._totals[field] += float(lengths[alive].sum())
        self._names = frozenset(self._segments)
        self._spellings = {}


def _bases(segments: Sequence[Any]) -> dict[str, int]:
    """Return the number of the first document of each segment, as a writer counts them."""
    counts = [segment.doc_count_all() for segment in segments]
    return {segment.segment_id(): sum(counts[:place]) for place, segment in enumerate(segments)}


def _open(reader: Any) -> _Segment:
    count = reader.doc_count_all()
    column = reader.column_reader("row")
    lengths = {
        # Whoosh has no length for a field that holds no term.
        field: np.fromiter((reader.doc_field_length(i, field) or 0 for i in range(count)), np.float32, count)
        for field in BOOSTS
    }
    return _Segment(reader, np.fromiter((column[i] for i in range(count)), np.int64, count), lengths)


def _gather(segment: _Segment, term: str) -> _Postings:
    """Decode the postings of a term in all fields, lined up over the documents that have it anywhere."""
    encoded = term.encode()
    decoded = {field: _decode(segment.reader, field, encoded) for field in BOOSTS if (field, encoded) in segment.reader}
    if not decoded:
        return _Postings(frozenset(), np.empty(0, dtype=np.int64), {})
    numbers = np.unique(np.concatenate([found for found, _ in decoded.values()]))
    by_field = {}
    for field, (found, weights) in decoded.items():
        tf = np.zeros(len(numbers), dtype=np.float32)
        tf[np.searchsorted(numbers, found)] = weights
        by_field[field] = (tf, segment.lengths[field][numbers])
    return _Postings(frozenset(), segment.rows[numbers], by_field)


def _concatenate(names: frozenset[str], parts: Sequence[_Postings]) -> _Postings:
    """Join the postings of several segments; a field that a part does not have counts nothing there."""
    parts = [part for part in parts if len(part.rows)]
    if len(parts) == 1:
        return replace(parts[0], segments=names)
    present = [field for field in BOOSTS if any(field in part.by_field for part in parts)]
    by_field = {}
    for field in present:
        blank = [(np.zeros(len(part.rows), dtype=np.float32),) * 2 for part in parts]
        pairs = [part.by_field.get(field, empty) for part, empty in zip(parts, blank, strict=True)]
        by_field[field] = (np.concatenate([tf for tf, _ in pairs]), np.concatenate([length for _, length in pairs]))
    rows = np.concatenate([part.rows for part in parts]) if parts else np.empty(0, dtype=np.int64)
    return _Postings(names, rows, by_field)


def _decode(reader: Any, field: str, term: bytes) -> tuple[Rows, Floats]:
    """Read a posting list block by block; Whoosh's public matcher takes a Python step for every posting."""
    matcher = reader._terms.matcher(field, term, reader.schema[field].format)  # noqa: SLF001 - the reason is above
    numbers: list[int] = []
    weights: list[float] = []
    while matcher.is_active():
        matcher._read_ids()  # noqa: SLF001
        matcher._read_weights()  # noqa: SLF001
        numbers.extend(matcher._ids)  # noqa: SLF001
        weights.extend(matcher._weights)  # noqa: SLF001
        matcher._next_block()  # noqa: SLF001
    return np.asarray(numbers, dtype=np.int64), np.asarray(weights, dtype=np.float32)


def _rarity(count: int, frequency: int) -> float:
    return math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))


def _merge_alike(writer: Any, segments: Sequence[Any]) -> list[Any]:
    """Merge the segments of each size class that has several: a row moves once for each class it grows through."""
    classes: dict[int, list[Any]] = {}
    for segment in segments:
        classes.setdefault(int(math.log(max(1, segment.doc_count_all()), SIZE_CLASS)), []).append(segment)
    kept = []
    for alike in classes.values():
        total = sum(segment.doc_count_all() for segment in alike)
        if len(alike) == 1 or total > (MOST_MERGED if len(alike) >= SIZE_CLASS else FEW_MERGED):
            kept += alike
            continue
        for segment in alike:
            reader = SegmentReader(writer.storage, writer.schema, segment)
            writer.add_reader(reader)
            reader.close()
    return kept
