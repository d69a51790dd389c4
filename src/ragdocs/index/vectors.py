"""Vectors by row, searched by exact inner product; the only module that imports faiss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from ragdocs.protocols import Vectors

# Removed vectors stay in place, hidden by the row mask, until they are this share of all: compacting copies everything.
DEAD_SHARE = 0.25


class VectorTable:
    """A FAISS index whose entries are named by row numbers."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._index: Any = faiss.IndexFlatIP(dim)
        self._rows: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._position: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._position)

    def __contains__(self, row: int) -> bool:
        return row in self._position

    def add(self, rows: Sequence[int], vectors: Vectors) -> None:
        """Store one vector for each row."""
        start = len(self._rows)
        self._index.add(np.ascontiguousarray(vectors, dtype=np.float32))
        self._rows = np.concatenate([self._rows, np.asarray(rows, dtype=np.int64)])
        self._position.update({row: start + offset for offset, row in enumerate(rows)})

    def remove(self, rows: Sequence[int]) -> None:
        """Forget these rows; rows that have no vector are passed over."""
        for row in rows:
            self._position.pop(row, None)
        if len(self._rows) - len(self._position) > max(64, DEAD_SHARE * len(self._rows)):
            self._compact()

    def nearest(self, vector: Vectors, k: int, mask: npt.NDArray[np.bool_]) -> list[tuple[int, float]]:
        """Return the k rows allowed by the mask with the largest inner product; ties go to the lower row."""
        if not len(self._rows):
            return []
        allowed = mask[self._rows]
        count = int(np.count_nonzero(allowed))
        if not count:
            return []
        # The Python wrappers of faiss take arrays and keywords that its type stubs do not know.
        selector = faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))  # type: ignore[call-arg, arg-type]
        parameters = faiss.SearchParameters(sel=selector)  # type: ignore[call-arg]
        # Of equal scores FAISS keeps whichever it likes: it is asked for more until the k-th is told from the next.
        wanted = min(k + 1, count)
        while True:
            scores, positions = self._index.search(vector.reshape(1, -1), wanted, params=parameters)
            if wanted == count or scores[0][-1] < scores[0][k - 1]:
                break
            wanted = min(wanted * 4, count)
        found = [
            (int(self._rows[p]), float(s))
            for p, s in zip(positions[0], scores[0], strict=True)
            if p >= 0 and s > -np.inf
        ]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:k]

    def get(self, rows: Sequence[int]) -> Vectors:
        """Return the vectors of these rows, zero where a row has none."""
        result = np.zeros((len(rows), self.dim), dtype=np.float32)
        stored = self._stored()
        for offset, row in enumerate(rows):
            position = self._position.get(row)
            if position is not None:
                result[offset] = stored[position]
        return result

    def dump(self) -> tuple[bytes, list[int]]:
        """Return the index as FAISS writes it, without dead entries, and the row of each entry."""
        self._compact()
        return faiss.serialize_index(self._index).tobytes(), self._rows.tolist()

    @classmethod
    def restore(cls, data: bytes, rows: Sequence[int], dim: int) -> VectorTable:
        """Rebuild a table from what `dump` returned."""
        table = cls(dim)
        table._index = faiss.deserialize_index(np.frombuffer(data, dtype=np.uint8))
        if table._index.d != dim or table._index.ntotal != len(rows):
            raise ValueError("the stored vectors do not fit their rows")
        table._rows = np.asarray(rows, dtype=np.int64)
        table._position = {row: position for position, row in enumerate(rows)}
        return table

    def _stored(self) -> Vectors:
        size = self._index.ntotal * self.dim
        if not size:
            return np.zeros((0, self.dim), dtype=np.float32)
        view: Vectors = faiss.rev_swig_ptr(self._index.get_xb(), size).reshape(-1, self.dim)
        return view

    def _compact(self) -> None:
        if len(self._rows) == len(self._position):
            return
        rows = sorted(self._position)
        vectors = self.get(rows)
        self._index = faiss.IndexFlatIP(self.dim)
        self._rows = np.empty(0, dtype=np.int64)
        self._position = {}
        if rows:
            self.add(rows, vectors)
