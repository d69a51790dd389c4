"""Documents that are in the running, and the word scores of all their passages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ragdocs.engines.postgres.lengths import FIELDS, Floats, decoded
from ragdocs.engines.postgres.rows import BODY, DOCUMENT, ENTRY, HEADINGS
from ragdocs.search import bm25

Columns = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Terms times passages that are scored at once, which bounds the memory that takes.
MOST_AT_ONCE = 2_000_000


class Payload(NamedTuple):
    """The postings of one term: in which documents, how many bytes each, and the bytes."""

    documents: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int32]
    entries: bytes


class Fetched(NamedTuple):
    """Documents as they were fetched, by path.

    `passes` has a bit for each filter that a document passes, `sizes` its number of passages, and
    `lengths` the codes of the field lengths of all passages.
    """

    numbers: Numbers
    passes: Numbers
    sizes: Numbers
    paths: list[bytes]
    lengths: bytes


class Pool:
    """Passages in columns, by path and position: of equal scores the lower column comes first."""

    def __init__(
        self, numbers: Numbers, passes: Numbers, sizes: Numbers, paths: list[bytes]
    ) -> None:
        self.numbers = numbers
        self.passes = passes
        self.sizes = sizes
        self.paths = paths
        self._order = np.argsort(numbers)
        self.starts: Numbers = np.cumsum(sizes) - sizes
        self.columns = int(sizes.sum())
        self.owners: Columns = np.repeat(np.arange(len(numbers)), sizes)

    @classmethod
    def of(cls, fetched: Fetched) -> Pool:
        """Return the pool of documents that are fetched by path."""
        return cls(fetched.numbers, fetched.passes, fetched.sizes, fetched.paths)

    def joined(self, other: Pool) -> Pool:
        """Return a pool with the documents of both."""
        paths = self.paths + other.paths
        order = sorted(range(len(paths)), key=paths.__getitem__)
        numbers = np.concatenate([self.numbers, other.numbers])[order]
        passes = np.concatenate([self.passes, other.passes])[order]
        sizes = np.concatenate([self.sizes, other.sizes])[order]
        return Pool(numbers, passes, sizes, [paths[place] for place in order])

    def places(self, numbers: npt.NDArray[np.integer]) -> Numbers:
        """Return where documents with these numbers are; of one that is not here, any place."""
        if not len(self.numbers):
            return np.zeros(0, dtype=np.int64)
        found = np.searchsorted(self.numbers, numbers, sorter=self._order)
        places: Numbers = self._order[found.clip(max=len(self._order) - 1)]
        return places

    def place(self, number: int) -> int:
        """Return where a document is that is here."""
        return int(self.places(np.array([number]))[0])

    def columns_of(self, part: Pool) -> Columns:
        """Return the columns here of all columns of a part of this pool."""
        places = self.places(part.numbers)
        moved: Columns = np.arange(part.columns) - part.starts[part.owners]
        return moved + self.starts[places][part.owners]

    def passing(self, number: int) -> Mask:
        """Tell for each column whether its document passes a filter."""
        passes: Mask = ((self.passes >> number) & 1).astype(np.bool_)
        return passes[self.owners]


def word_scores(
    fetched: Fetched,
    queries: Mapping[str, Sequence[bm25.QueryTerm]],
    payloads: Mapping[str, Payload],
    averages: Mapping[str, float],
) -> dict[str, Floats]:
    """Score every passage for each query, in the steps and the precision of the local engine."""
    pool = Pool.of(fetched)
    scores: dict[str, Floats] = {}
    for name in queries:
        scores[name] = np.zeros(pool.columns, dtype=np.float32)
    if not pool.columns:
        return scores
    # One row a field: terms are looked at field by field.
    lengths = np.ascontiguousarray(decoded(fetched.lengths).T)
    worths = dict(worth(pool, lengths, payloads, averages))
    for name, query in queries.items():
        total = sum(term.weight for term in query)
        naming = bm25.naming(len(query))
        for term in query:
            for spelling, share in term.spellings:
                if spelling not in worths:
                    continue
                columns, impact, named = worths[spelling]
                scores[name][columns] += bm25.factor(term, share, total) * impact
                scores[name][columns] += np.float32(share * naming) * named
    return scores


Worth = tuple[Columns, Floats, Floats]


def worth(
    pool: Pool,
    lengths: Floats,
    payloads: Mapping[str, Payload],
    averages: Mapping[str, float],
) -> Iterator[tuple[str, Worth]]:
    """Yield the columns that have each term, its impact there, and its share of titles."""
    terms = list(payloads)
    group = max(1, MOST_AT_ONCE // max(1, pool.columns))
    for start in range(0, len(terms), group):
        chosen = terms[start : start + group]
        occurrences = _Occurrences(pool, [payloads[term] for term in chosen])
        by_field = occurrences.by_field(lengths)
        impact = bm25.impact(by_field, averages)
        named = bm25.named_share(by_field)
        for place, term in enumerate(chosen):
            part = occurrences.part(place)
            yield term, (occurrences.columns[part], impact[part], named[part])


class _Occurrences:
    """How often terms stand in the fields of passages, for all terms at once.

    A place is that of a term and a column: the columns of one term follow those of the other.
    """

    def __init__(self, pool: Pool, payloads: Sequence[Payload]) -> None:
        self._pool = pool
        entries, documents, terms = _decoded(pool, payloads)
        size = len(payloads) * pool.columns
        self._counts: dict[int, Floats] = {}
        having = np.zeros(size, dtype=np.bool_)
        is_shared = entries["ord"] == DOCUMENT
        if is_shared.any():
            self._spread(entries[is_shared], documents[is_shared], terms[is_shared], size)
            for count in self._counts.values():
                having |= count > 0
            is_own = ~is_shared
            entries, documents, terms = entries[is_own], documents[is_own], terms[is_own]
        own = terms * pool.columns + pool.starts[documents] + entries["ord"]
        having[own] = True
        for field, name in ((BODY, "body"), (HEADINGS, "headings")):
            if entries[name].any():
                self._counts[field] = np.zeros(size, dtype=np.float32)
                self._counts[field][own] = entries[name]
        self._places = np.flatnonzero(having)
        self.columns = self._places % pool.columns

    def by_field(self, lengths: Floats) -> dict[str, bm25.Occurrences]:
        """Return counts and lengths, in the order in which the local engine adds fields up."""
        fields = {}
        for field in sorted(self._counts):
            counts = self._counts[field][self._places]
            fields[FIELDS[field]] = (counts, lengths[field][self.columns])
        return fields

    def part(self, term: int) -> slice:
        """Return where the columns of one term are."""
        ends = np.array([term, term + 1]) * self._pool.columns
        start, end = np.searchsorted(self._places, ends).tolist()
        return slice(start, end)

    def _spread(
        self, entries: npt.NDArray[np.void], documents: Numbers, terms: Numbers, size: int
    ) -> None:
        """Spread what stands in a field of a document over all its passages."""
        pool = self._pool
        for field in np.unique(entries["body"]).tolist():
            chosen = entries["body"] == field
            sizes = pool.sizes[documents[chosen]]
            first = terms[chosen] * pool.columns + pool.starts[documents[chosen]]
            within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            self._counts[field] = np.zeros(size, dtype=np.float32)
            places = np.repeat(first, sizes) + within
            self._counts[field][places] = np.repeat(entries["headings"][chosen], sizes)


def _decoded(
    pool: Pool, payloads: Sequence[Payload]
) -> tuple[npt.NDArray[np.void], Numbers, Numbers]:
    """Return all entries, each with the place of its document and the number of its term."""
    entries = np.frombuffer(b"".join(payload.entries for payload in payloads), dtype=ENTRY)
    numbers = np.concatenate([payload.documents for payload in payloads])
    sizes = np.concatenate([payload.sizes for payload in payloads]) // ENTRY.itemsize
    counts = [len(payload.documents) for payload in payloads]
    terms = np.repeat(np.arange(len(payloads)), counts)
    places = pool.places(numbers)
    # Postings may have come of documents that are in another pool.
    is_here = pool.numbers[places] == numbers
    if not is_here.all():
        entries = entries[np.repeat(is_here, sizes)]
        places, terms, sizes = places[is_here], terms[is_here], sizes[is_here]
    return entries, np.repeat(places, sizes), np.repeat(terms, sizes)


def best(scores: npt.NDArray[np.floating], k: int, allowed: Mask) -> Columns:
    """Return the k allowed columns with the highest scores, of equal ones the lower first."""
    columns = np.flatnonzero(allowed)
    values = scores[columns]
    if len(columns) > k:
        # Everything that ties with the k-th stays until the order of ties decides.
        is_best = values >= np.partition(values, -k)[-k]
        columns = columns[is_best]
        values = values[is_best]
    order = np.lexsort((columns, -values))[:k]
    chosen: Columns = columns[order]
    return chosen


def united(parts: Sequence[Columns], scores: npt.NDArray[np.floating]) -> Columns:
    """Return the columns of several lists once each, best first."""
    if len(parts) == 1:
        return parts[0]
    columns = np.unique(np.concatenate(parts))
    ordered: Columns = columns[np.lexsort((columns, -scores[columns]))]
    return ordered
