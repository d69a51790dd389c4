"""Keyword search: Whoosh keeps the postings, numpy scores them."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from ragdocs.engines.local.segments import Buffer, Floats, Mask, Rows, Segment, Segments
from ragdocs.text.terms import STOP_TERMS, is_compound, terms

# How much a term's occurrence counts where it stands; the body is the unit. Titles and headings say
# what a passage is about, but a much larger boost loses precision where titles repeat common words.
BOOSTS = {
    "body": 1.0,
    "title": 2.0,
    "headings": 1.0,
    "tags": 1.0,
    "path": 0.5,
    "name": 0.5,
    "date": 1.0,
}
# What it is worth besides that a query has all words of a title, or of a file's name: who asks for
# "client libraries" means that page before the ones that mention them. It is shared out among the
# words, so that long titles gain no more.
NAMED = {"title": 0.25, "name": 0.15}
# BM25 with a saturation below the usual 1.2, because passages are short, and with this many words
# added to every body before lengths are compared: that one of two short remarks is twice as long as
# the other says little.
K1 = 0.8
B = 0.9
EQUAL_WORDS = 50
# What src/auth.py as a whole counts beside its parts, which are asked for as well.
COMPOUND_WEIGHT = 0.5
# A query is a question, not a document: past this many distinct terms only the rarest are scored.
MOST_TERMS = 64
# Looking a term up costs about 20 microseconds: a pasted file is cut before the rarest of its terms
# are chosen.
LONGEST_QUERY = 20_000
MOST_LOOKUPS = 512
# A term found nowhere is replaced by its nearest spellings, each worth this much of an exact match.
TYPO_WEIGHT = 0.6
MOST_SPELLINGS = 3
MOST_TYPOS = 2
SHORTEST_TYPO = 4
# Decoded postings kept in memory, counted in postings of about 50 bytes.
CACHED_POSTINGS = 1_000_000
# A term in more than this share of all rows is kept as one value for every row: adding a whole
# array takes a tenth of the time of adding to chosen places.
DENSE_SHARE = 0.06
# Values kept ready between two changes, 4 or 12 bytes each; in a large index as many as a hundred
# common terms have.
CACHED_IMPACTS = 2_000_000
COMMON_TERMS = 100
# Segments are merged with every snapshot; where changes never pause for one, this many may pile up.
PILED_SEGMENTS = 64
# The name of our own file among Whoosh's.
ROWS = "rows.bin"


@dataclass(frozen=True, slots=True)
class _Postings:
    """Where one term occurs in the segments named.

    Rows in order, and (tf, field length) of each field.
    """

    segments: frozenset[str]
    rows: Rows
    by_field: Mapping[str, tuple[Floats, Floats]]


@dataclass(frozen=True, slots=True)
class _Impact:
    """What one term adds to the score of its rows, or of every row where that is quicker.

    Until the next change.

    `named` are the rows that have it in a title or a name, and what share of that it is.
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
        self._segments = Segments(tuple(BOOSTS), None if files is None else stored)
        self._names: frozenset[str] = frozenset()
        self._count = 0
        self._average = dict.fromkeys(BOOSTS, 1.0)
        self._spellings: dict[str, tuple[str, ...]] = {}
        self._cache: OrderedDict[str, _Postings] = OrderedDict()
        self._cached = 0
        self._resting = True
        self._impacts: OrderedDict[str, _Impact] = OrderedDict()
        self._kept = 0
        # The last query and what it found, until the next change: an answer asks for scores of
        # other rows too.
        self._asked: tuple[str, Floats, int] | None = None
        self._refresh()

    def write(self, texts: Iterable[Mapping[str, str]], removed: Iterable[int] = ()) -> None:
        """Add texts by field, and remove rows, in one commit, which shows with the next `adopt`.

        That takes long for many texts; what is only added may be written while others search.
        """
        gone = np.flatnonzero(np.isin(self._row_of, np.fromiter(removed, dtype=np.int64)))
        ready = {
            number: {name: list(terms(text)) for name, text in fields.items() if text}
            for number, fields in enumerate(texts, start=len(self._row_of))
        }
        self._segments.write(ready, gone)
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

    def match(
        self, text: str, k: int, masks: Sequence[Mask], alive: Mask
    ) -> list[tuple[int, float]]:
        """Score rows by BM25 over all fields and return the k best under each mask.

        1.0 is every term once in a passage of average length.
        """
        scores = self.scores(text, alive)
        found = np.unique(np.concatenate([_best(np.where(mask, scores, 0), k) for mask in masks]))
        order = np.lexsort((found, -scores[found]))
        return list(zip(found[order].tolist(), scores[found[order]].tolist(), strict=True))

    def scores(self, text: str, alive: Mask) -> Floats:
        """Return the score of every row."""
        if self._asked is not None and self._asked[0] == text and len(self._asked[1]) == len(alive):
            return self._asked[1]
        weights = self._weigh(text, alive)
        total = sum(weight for _, weight in weights)
        # Over all live rows, not only the allowed ones: a filter must not change the order of what
        # passes it.
        scores = np.zeros(len(alive), dtype=np.float32)
        for variants, weight in weights:
            for term, share in variants:
                impact = self._impact(term, alive)
                factor = np.float32(weight * share * (K1 + 1) / total)
                if impact.rows is None:
                    scores += factor * impact.values
                else:
                    scores[impact.rows] += factor * impact.values
                scores[impact.named[0]] += np.float32(share) * impact.named[1]
        if not self._resting:
            # Looking a new term up touches pages all over the files.
            self._segments.rest()
            self._resting = True
        self._asked = text, scores, len(weights)
        return scores

    def asked(self, text: str, alive: Mask) -> int:
        """Count the different terms that a query is scored by."""
        self.scores(text, alive)
        return self._asked[2] if self._asked else 0

    def holding(self, rows: Sequence[int], wanted: Collection[str]) -> Mask:
        """Tell for each row whether it has every one of these terms, and there are any."""
        asked = np.asarray(rows, dtype=np.int64)
        result = np.full(len(asked), bool(wanted))
        for term in wanted:
            known = self._impacts.get(term) or self._postings(term)
            if known.rows is None:
                result &= known.values[asked] > 0
            else:
                places = np.searchsorted(known.rows, asked)
                result &= (
                    known.rows.take(places, mode="clip") == asked if len(known.rows) else False
                )
        return result

    def dump(self) -> dict[str, bytes]:
        """Return the files of the Whoosh index."""
        return {**self._segments.dump(), ROWS: self._row_of.tobytes()}

    def postings(self) -> list[tuple[str, str, int, float]]:
        """List every live posting as (field, term, row, weight), sorted: what `verify` compares."""
        listed = []
        for segment in self._segments.opened.values():
            for field, term, numbers, weights in segment.everything():
                there = segment.alive[numbers]
                pairs = zip(
                    self._row_of[segment.rows[numbers[there]]].tolist(),
                    weights[there].tolist(),
                    strict=True,
                )
                listed += [(field, term, row, weight) for row, weight in pairs]
        return sorted(listed)

    def _weigh(self, text: str, alive: Mask) -> list[tuple[list[tuple[str, float]], float]]:
        """Choose the terms of a query.

        (spellings with their shares, inverse document frequency), the rarest first.
        """
        distinct = dict.fromkeys(islice(terms(text[:LONGEST_QUERY]), MOST_LOOKUPS))
        meaningful = [term for term in distinct if term not in STOP_TERMS] or list(distinct)
        weighed, unknown = [], []
        for term in meaningful:
            frequency = self._impact(term, alive).frequency
            if frequency:
                rarity = _rarity(self._count, frequency)
                weighed.append(
                    ([(term, 1.0)], rarity * COMPOUND_WEIGHT if is_compound(term) else rarity)
                )
            else:
                unknown.append(term)
        # A word nobody wrote weighs as much as the rarest word, so that a query of unknown words
        # scores low.
        rarest = _rarity(self._count, 1)
        weighed.sort(key=lambda pair: -pair[1])
        guesses = [
            self._near(term, alive) if place < MOST_TYPOS else ()
            for place, term in enumerate(unknown)
        ]
        weighed += [([(near, TYPO_WEIGHT) for near in guess], rarest) for guess in guesses]
        return weighed[:MOST_TERMS]

    def _impact(self, term: str, alive: Mask) -> _Impact:
        """Return what a term is worth in each row, computed once between two changes."""
        known = self._impacts.get(term)
        if known is not None:
            self._impacts.move_to_end(term)
            return known
        postings = self._postings(term)
        frequency = np.zeros(len(postings.rows), dtype=np.float32)
        for field, (tf, length) in postings.by_field.items():
            more = EQUAL_WORDS if field == "body" else 0
            frequency += (
                BOOSTS[field] * tf / (1 - B + B * (length + more) / (self._average[field] + more))
            )
        values = frequency / (frequency + np.float32(K1))
        shares = np.zeros(len(postings.rows), dtype=np.float32)
        for field in NAMED.keys() & postings.by_field.keys():
            tf, length = postings.by_field[field]
            shares += NAMED[field] * tf / np.maximum(length, 1)
        there = np.flatnonzero(shares)
        named = postings.rows[there], shares[there]
        impact = _Impact(postings.rows, values, int(np.count_nonzero(alive[postings.rows])), named)
        if len(values) > DENSE_SHARE * len(alive):
            spread = np.zeros(len(alive), dtype=np.float32)
            spread[postings.rows] = values
            impact = replace(impact, rows=None, values=spread)
        self._impacts[term] = impact
        self._kept += 1 + len(impact.values)
        while (
            self._kept > max(CACHED_IMPACTS, COMMON_TERMS * len(alive)) and len(self._impacts) > 1
        ):
            self._kept -= 1 + len(self._impacts.popitem(last=False)[1].values)
        return impact

    def _near(self, term: str, alive: Mask) -> tuple[str, ...]:
        """Return the most frequent spellings one edit or one swap away from a term that is found nowhere."""
        if len(term) < SHORTEST_TYPO or not term.isalpha():
            return ()
        if term not in self._spellings:
            near = {
                word
                for segment in self._segments.opened.values()
                for word in segment.near("body", term)
            }
            # Words that stand only in removed documents are still in the postings.
            counted = sorted((-self._impact(word, alive).frequency, word) for word in near)
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
        self._resting = False
        unread = self._names - (old.segments if old else frozenset())
        fresh = [self._gather(self._segments.opened[name], term) for name in unread]
        postings = _concatenate(self._names, [*([old] if old else []), *fresh])
        self._cache[term] = postings
        self._cached += 1 + len(postings.rows)
        while self._cached > CACHED_POSTINGS and len(self._cache) > 1:
            self._cached -= 1 + len(self._cache.popitem(last=False)[1].rows)
        return postings

    def _gather(self, segment: Segment, term: str) -> _Postings:
        """Decode the postings of a term in all fields.

        Lined up over the rows that have it anywhere.
        """
        decoded = {field: there for field in BOOSTS if (there := segment.postings(field, term))}
        if not decoded:
            return _Postings(frozenset(), np.empty(0, dtype=np.int64), {})
        every = [found for found, _ in decoded.values()]
        numbers = np.unique(np.concatenate(every)) if len(every) > 1 else every[0]
        by_field = {}
        alive = segment.alive[numbers]
        for field, (found, weights) in decoded.items():
            tf = np.zeros(len(numbers), dtype=np.float32)
            tf[np.searchsorted(numbers, found)] = weights
            by_field[field] = (tf[alive], segment.lengths[field][numbers[alive]])
        return _Postings(frozenset(), self._row_of[segment.rows[numbers[alive]]], by_field)

    def _refresh(self) -> None:
        """Count anew what depends on all rows, and forget what was computed from it."""
        opened = self._segments.opened
        self._names = frozenset(opened)
        self._count = sum(int(np.count_nonzero(segment.alive)) for segment in opened.values())
        for field in BOOSTS:
            total = sum(
                float(segment.lengths[field] @ segment.alive) for segment in opened.values()
            )
            self._average[field] = max(1.0, total / max(1, self._count))
        self._spellings = {}
        self._impacts.clear()
        self._kept = 0
        self._asked = None


def _best(scores: Floats, k: int) -> Rows:
    found = np.flatnonzero(scores)
    if len(found) > k:
        # Everything that ties with the k-th is kept until rows decide, so that equal scores have
        # one order.
        there = scores[found]
        found = found[there >= np.partition(there, -k)[-k]]
        found = found[np.lexsort((found, -scores[found]))[:k]]
    return found


def _concatenate(names: frozenset[str], parts: Sequence[_Postings]) -> _Postings:
    """Join the postings of several segments.

    A field that a part does not have counts nothing there.
    """
    parts = [part for part in parts if len(part.rows)]
    if len(parts) == 1 and (len(parts[0].rows) < 2 or np.all(np.diff(parts[0].rows) > 0)):  # noqa: PLR2004 - one is in order
        return replace(parts[0], segments=names)
    present = [field for field in BOOSTS if any(field in part.by_field for part in parts)]
    by_field = {}
    for field in present:
        blank = [(np.zeros(len(part.rows), dtype=np.float32),) * 2 for part in parts]
        pairs = [part.by_field.get(field, empty) for part, empty in zip(parts, blank, strict=True)]
        by_field[field] = (
            np.concatenate([tf for tf, _ in pairs]),
            np.concatenate([length for _, length in pairs]),
        )
    rows = np.concatenate([part.rows for part in parts]) if parts else np.empty(0, dtype=np.int64)
    order = np.argsort(rows)
    ordered = {field: (tf[order], length[order]) for field, (tf, length) in by_field.items()}
    return _Postings(names, rows[order], ordered)


def _rarity(count: int, frequency: int) -> float:
    return math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))
