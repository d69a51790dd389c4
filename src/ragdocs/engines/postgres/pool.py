"""Documents that are in the running, and the word scores of all their passages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragdocs.engines.postgres.lengths import FIELDS, Floats, decoded
from ragdocs.engines.postgres.rows import BODY, DOCUMENT, ENTRY, HEADINGS
from ragdocs.search import bm25

Columns = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.floating]
Entries = npt.NDArray[np.void]

# Terms times passages that are scored at once, which bounds the memory that takes.
MOST_AT_ONCE = 2_000_000


class Payload(NamedTuple):
    """The postings of one term: in which documents, how many bytes each, and the bytes."""

    documents: Numbers
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
        self._ordered = numbers[self._order]
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
        positions = range(len(paths))
        order = sorted(positions, key=paths.__getitem__)
        numbers = np.concatenate([self.numbers, other.numbers])
        passes = np.concatenate([self.passes, other.passes])
        sizes = np.concatenate([self.sizes, other.sizes])
        ordered_paths = [paths[position] for position in order]
        return Pool(
            numbers[order],
            passes[order],
            sizes[order],
            ordered_paths,
        )

    def positions(self, numbers: npt.NDArray[np.integer]) -> Numbers:
        """Return where documents with these numbers are; of one that is not here, any position."""
        if not len(self.numbers):
            return np.zeros(0, dtype=np.int64)
        ranks = np.searchsorted(self._ordered, numbers)
        last = len(self._order) - 1
        positions: Numbers = self._order[ranks.clip(max=last)]
        return positions

    def position(self, number: int) -> int:
        """Return where a document is that is here."""
        positions = self.positions(np.array([number]))
        return int(positions[0])

    def columns_of(self, part: Pool) -> Columns:
        """Return the columns here of all columns of a part of this pool."""
        positions = self.positions(part.numbers)
        # How far each document stands from where it stood.
        shifts = self.starts[positions] - part.starts
        columns: Columns = np.arange(part.columns) + shifts[part.owners]
        return columns

    def passing(self, number: int) -> Mask:
        """Tell for each column whether its document passes a filter."""
        bits = (self.passes >> number) & 1
        passes: Mask = bits.astype(np.bool_)
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
        _add_query(scores[name], query, worths)
    return scores


class Worth(NamedTuple):
    """The columns that have a term, its impact there, and its share of titles."""

    columns: Columns
    impact: Floats
    named: Floats


def _add_query(
    scores: Floats, query: Sequence[bm25.QueryTerm], worths: Mapping[str, Worth]
) -> None:
    """Add what the terms of a query are worth to the scores of all columns."""
    total = sum(term.weight for term in query)
    naming = bm25.naming(len(query))
    for term in query:
        for spelling, share in term.spellings:
            own = worths.get(spelling)
            if own is None:
                continue
            factor = bm25.factor(term, share, total)
            named_factor = np.float32(share * naming)
            scores[own.columns] += factor * own.impact
            scores[own.columns] += named_factor * own.named


def worth(
    pool: Pool,
    lengths: Floats,
    payloads: Mapping[str, Payload],
    averages: Mapping[str, float],
) -> Iterator[tuple[str, Worth]]:
    """Yield what each term is worth."""
    terms = list(payloads)
    columns = max(1, pool.columns)
    group = max(1, MOST_AT_ONCE // columns)
    for start in range(0, len(terms), group):
        chosen = terms[start : start + group]
        own_payloads = [payloads[term] for term in chosen]
        occurrences = _Occurrences(pool, own_payloads)
        by_field = occurrences.by_field(lengths)
        impact = bm25.impact(by_field, averages)
        named = bm25.named_share(by_field)
        for number, term in enumerate(chosen):
            part = occurrences.part(number)
            own = Worth(
                occurrences.columns[part],
                impact[part],
                named[part],
            )
            yield term, own


class _Occurrences:
    """How often terms stand in the fields of passages, for all terms at once.

    A cell is that of a term and a column: the columns of one term follow those of the other.
    """

    def __init__(self, pool: Pool, payloads: Sequence[Payload]) -> None:
        self._pool = pool
        self._size = len(payloads) * pool.columns
        self._counts: dict[int, Floats] = {}
        having = np.zeros(self._size, dtype=np.bool_)
        postings = _decoded(pool, payloads)
        is_shared = postings.entries["ord"] == DOCUMENT
        if is_shared.any():
            self._spread(postings.at(is_shared))
            for count in self._counts.values():
                having |= count > 0
            postings = postings.at(~is_shared)
        cells = self._first_cells(postings) + postings.entries["ord"]
        having[cells] = True
        self._count(BODY, cells, postings.entries["body"])
        self._count(HEADINGS, cells, postings.entries["headings"])
        self._cells = np.flatnonzero(having)
        self.columns = self._cells % pool.columns

    def _first_cells(self, postings: _Postings) -> Numbers:
        """Return the cell of the first passage of each document, for the term of a posting."""
        starts = self._pool.starts[postings.documents]
        cells: Numbers = postings.terms * self._pool.columns + starts
        return cells

    def _count(self, field: int, cells: Numbers, counts: npt.NDArray[Any]) -> None:
        """Note how often terms stand in a field, if they do."""
        if counts.any():
            spread = np.zeros(self._size, dtype=np.float32)
            spread[cells] = counts
            self._counts[field] = spread

    def by_field(self, lengths: Floats) -> dict[str, bm25.Occurrences]:
        """Return counts and lengths, in the order in which the local engine adds fields up."""
        fields = {}
        for field in sorted(self._counts):
            counts = self._counts[field][self._cells]
            fields[FIELDS[field]] = (counts, lengths[field][self.columns])
        return fields

    def part(self, term: int) -> slice:
        """Return where the columns of one term are."""
        ends = np.array([term, term + 1]) * self._pool.columns
        start, end = np.searchsorted(self._cells, ends).tolist()
        return slice(start, end)

    def _spread(self, postings: _Postings) -> None:
        """Spread what stands in a field of a document over all its passages."""
        fields = postings.entries["body"]
        for field in np.unique(fields).tolist():
            own = postings.at(fields == field)
            sizes = self._pool.sizes[own.documents]
            begins = np.cumsum(sizes) - sizes
            # From the first cell of each document on, as many as it has passages.
            shifts = self._first_cells(own) - begins
            cells = np.arange(int(sizes.sum())) + np.repeat(shifts, sizes)
            spread = np.zeros(self._size, dtype=np.float32)
            spread[cells] = np.repeat(own.entries["headings"], sizes)
            self._counts[field] = spread


class _Postings(NamedTuple):
    """Entries, each with the position of its document and the number of its term."""

    entries: Entries
    documents: Numbers
    terms: Numbers

    def at(self, chosen: Mask) -> _Postings:
        """Return those that are chosen."""
        return _Postings(
            self.entries[chosen],
            self.documents[chosen],
            self.terms[chosen],
        )


def _decoded(pool: Pool, payloads: Sequence[Payload]) -> _Postings:
    """Return the postings of terms in documents of this pool."""
    data = b"".join(payload.entries for payload in payloads)
    entries = np.frombuffer(data, dtype=ENTRY)
    numbers = np.concatenate([payload.documents for payload in payloads])
    bytes_each = np.concatenate([payload.sizes for payload in payloads])
    sizes = bytes_each // ENTRY.itemsize
    counts = [len(payload.documents) for payload in payloads]
    every_term = np.arange(len(payloads))
    terms = np.repeat(every_term, counts)
    positions = pool.positions(numbers)
    postings = _Postings(
        entries,
        np.repeat(positions, sizes),
        np.repeat(terms, sizes),
    )
    # Postings may have come of documents that are in another pool.
    is_here = pool.numbers[positions] == numbers
    if is_here.all():
        return postings
    return postings.at(np.repeat(is_here, sizes))


def best(scores: Scores, k: int, allowed: Mask) -> Columns:
    """Return the k allowed columns with the highest scores, of equal ones the lower first."""
    columns = np.flatnonzero(allowed)
    values = scores[columns]
    if len(columns) > k:
        # Everything that ties with the k-th stays until the order of ties decides.
        kth = np.partition(values, -k)[-k]
        is_best = values >= kth
        columns = columns[is_best]
        values = values[is_best]
    order = np.lexsort((columns, -values))[:k]
    chosen: Columns = columns[order]
    return chosen


def united(parts: Sequence[Columns], scores: Scores) -> Columns:
    """Return the columns of several lists once each, best first."""
    if len(parts) == 1:
        return parts[0]
    columns = np.unique(np.concatenate(parts))
    values = scores[columns]
    order = np.lexsort((columns, -values))
    ordered: Columns = columns[order]
    return ordered
