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
        places = np.flatnonzero(is_changed)
        # Both are ordered by path, and a number is the hash of a path.
        is_edit = np.array_equal(own.numbers[places], fresh.documents.numbers)
        if is_edit and np.array_equal(own.sizes[places], fresh.documents.sizes):
            return self._edited(places, fresh)
        return self.without(places).joined(fresh)

    def _edited(self, places: Numbers, fresh: Marked) -> Marked:
        """Return documents of which some have other texts, but as many passages as before."""
        marks = self.marks.copy()
        marks[places] = fresh.marks
        codes = self.codes.copy()
        rows = self._rows(places)
        codes[rows] = fresh.codes
        lengths = codes.tobytes()
        documents = self.documents._replace(lengths=lengths)
        return Marked(documents, marks)

    def _rows(self, places: Numbers) -> Numbers:
        """Return the passages of documents."""
        sizes = self.documents.sizes
        starts = np.cumsum(sizes) - sizes
        own = sizes[places]
        begins = np.cumsum(own) - own
        shifts = starts[places] - begins
        shifted = np.repeat(shifts, own)
        rows: Numbers = np.arange(len(shifted)) + shifted
        return rows

    def without(self, places: Numbers) -> Marked:
        """Return all documents but those at these places."""
        if not len(places):
            return self
        documents = self.documents
        is_kept = np.ones(len(self.marks), dtype=np.bool_)
        is_kept[places] = False
        rows = self._rows(places)
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
        places = [bisect_left(own.paths, path) for path in other.paths]
        # From the last one on, so that the places of the others stay as they are.
        for place, path in zip(reversed(places), reversed(other.paths), strict=True):
            paths.insert(place, path)
        ends = np.cumsum(own.sizes)
        starts = np.concatenate([[0], ends])
        rows = np.repeat(starts[places], other.sizes)
        codes = np.insert(self.codes, rows, fresh.codes, axis=0)
        fetched = Fetched(
            np.insert(own.numbers, places, other.numbers),
            np.insert(own.passes, places, other.passes),
            np.insert(own.sizes, places, other.sizes),
            paths,
            codes.tobytes(),
        )
        marks = np.insert(self.marks, places, fresh.marks)
        return Marked(fetched, marks)
