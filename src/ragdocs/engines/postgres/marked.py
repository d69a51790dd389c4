"""All documents of a scope by path, each with the mark of its version."""

from __future__ import annotations

from bisect import bisect_left
from itertools import compress
from typing import NamedTuple

import numpy as np

from ragdocs.engines.postgres.lengths import FIELDS, Codes
from ragdocs.engines.postgres.pool import Fetched, Numbers


class Marked(NamedTuple):
    """Documents by path, and the mark of each."""

    documents: Fetched
    marks: Numbers

    @property
    def codes(self) -> Codes:
        """The codes of the lengths, one row a passage."""
        codes: Codes = np.frombuffer(self.documents.lengths, dtype=np.uint8)
        return codes.reshape(-1, len(FIELDS))

    def has_layout_of(self, other: Marked) -> bool:
        """Tell whether the same documents have as many passages each, so that columns agree."""
        return self.documents.sizes is other.documents.sizes

    def replaced(self, numbers: Numbers, fresh: Marked) -> Marked:
        """Return the documents after a change: those with these numbers are fresh, or are gone."""
        own = self.documents
        is_changed = np.isin(own.numbers, numbers)
        positions = np.flatnonzero(is_changed)
        # Both are ordered by path, and a number is the hash of a path.
        is_edit = np.array_equal(own.numbers[positions], fresh.documents.numbers)
        if is_edit and np.array_equal(own.sizes[positions], fresh.documents.sizes):
            return self._edited(positions, fresh)
        return self.without(positions).joined(fresh)

    def _edited(self, positions: Numbers, fresh: Marked) -> Marked:
        """Return documents of which some have other texts, but as many passages as before."""
        marks = self.marks.copy()
        marks[positions] = fresh.marks
        codes = self.codes.copy()
        rows = self._rows(positions)
        codes[rows] = fresh.codes
        lengths = codes.tobytes()
        documents = self.documents._replace(lengths=lengths)
        return Marked(documents, marks)

    def _rows(self, positions: Numbers) -> Numbers:
        """Return the passages of documents."""
        sizes = self.documents.sizes
        starts = np.cumsum(sizes) - sizes
        own = sizes[positions]
        begins = np.cumsum(own) - own
        shifts = starts[positions] - begins
        shifted = np.repeat(shifts, own)
        rows: Numbers = np.arange(len(shifted)) + shifted
        return rows

    def without(self, positions: Numbers) -> Marked:
        """Return all documents but those at these positions."""
        if not len(positions):
            return self
        documents = self.documents
        is_kept = np.ones(len(self.marks), dtype=np.bool_)
        is_kept[positions] = False
        rows = self._rows(positions)
        codes = np.delete(self.codes, rows, axis=0)
        fetched = Fetched(
            documents.numbers[is_kept],
            documents.passes[is_kept],
            documents.sizes[is_kept],
            list(compress(documents.paths, is_kept.tolist())),
            codes.tobytes(),
        )
        return Marked(fetched, self.marks[is_kept])

    def joined(self, fresh: Marked) -> Marked:
        """Return the documents of both, by path."""
        if not len(fresh.marks):
            return self
        own = self.documents
        other = fresh.documents
        paths = list(own.paths)
        positions = [bisect_left(own.paths, path) for path in other.paths]
        # From the last one on, so that the positions of the others stay as they are.
        for position, path in zip(reversed(positions), reversed(other.paths), strict=True):
            paths.insert(position, path)
        ends = np.cumsum(own.sizes)
        starts = np.concatenate([[0], ends])
        rows = np.repeat(starts[positions], other.sizes)
        codes = np.insert(self.codes, rows, fresh.codes, axis=0)
        fetched = Fetched(
            np.insert(own.numbers, positions, other.numbers),
            np.insert(own.passes, positions, other.passes),
            np.insert(own.sizes, positions, other.sizes),
            paths,
            codes.tobytes(),
        )
        marks = np.insert(self.marks, positions, fresh.marks)
        return Marked(fetched, marks)
