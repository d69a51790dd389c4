"""Vectors by row, searched by inner product: exactly up to a size, through a graph above; the only home of faiss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ragdocs import fsio
from ragdocs.protocols import Vectors

Mask = npt.NDArray[np.bool_]
Pairs = list[tuple[int, float]]
Buffer = bytes | memoryview

# Removed vectors stay in place, hidden by the row mask, until they are this share of all: compacting copies everything.
DEAD_SHARE = 0.25
# An exact search in half precision takes 0.066 ms of processor time for 1,000 vectors of 384 components: up to here it
# stays under 5 ms. bench/speed.py prints it.
EXACT_LIMIT = 75_000
# Neighbours of a vector in the graph, and candidates followed while building and searching it: at 100,000 clustered
# vectors they find 0.98 of the true ten, in 1.4 ms.
NEIGHBOURS, BUILDING, SEARCHING = 16, 64, 256
# A graph is useless when most of what it finds is filtered out; then an exact search over the few allowed is quick.
MILD_FILTER = 0.2
# Vectors that came after the graph was built are searched exactly, until they are this share of it.
STALE_SHARE = 0.2


class VectorTable:
    """A FAISS index in half precision whose entries are named by row numbers.

    What was stored is opened by `open`, when vectors are first needed: FAISS is large, and a start does without it.
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._index: Any = None
        self._stored: tuple[Buffer, Buffer] = (b"", b"")
        self._rows: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._position: dict[int, int] = {}
        self._graph: Any = None
        # Counts how often positions changed.
        self._epoch = 0

    def __len__(self) -> int:
        return len(self._position)

    def __contains__(self, row: int) -> bool:
        return row in self._position

    @property
    def method(self) -> str:
        """Say how vectors are searched."""
        if self._graph is None and not self._stored[1]:
            return "exact"
        return f"HNSW over {self._graph.ntotal if self._graph else len(self._rows)}, exact over the rest"

    def open(self) -> None:
        """Bring the engine and what was stored into memory; raise ValueError if the two do not fit."""
        if self._index is not None:
            return
        import faiss

        data, graph = self._stored
        self._stored = (b"", b"")
        try:
            index = faiss.deserialize_index(np.frombuffer(data, dtype=np.uint8)) if data else _exact(self.dim)
            self._graph = faiss.deserialize_index(np.frombuffer(graph, dtype=np.uint8)) if graph else None
        except RuntimeError as error:
            raise ValueError(f"the stored vectors cannot be read: {error}") from error
        if index.d != self.dim or index.ntotal != len(self._rows):
            raise ValueError("the stored vectors do not fit their rows")
        self._index = index
        for stored in (data, graph):
            fsio.release(stored)

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

    def nearest(self, vector: Vectors, k: int, mask: Mask) -> Pairs:
        """Return the k rows allowed by the mask with the largest inner product; ties go to the lower row."""
        allowed = mask[self._rows]
        count = int(np.count_nonzero(allowed))
        if not count:
            return []
        if self._graph is None or count < MILD_FILTER * len(allowed):
            found = self._search(self._index, vector, k, allowed)
        else:
            covered = self._graph.ntotal
            found = self._search(self._graph, vector, k, allowed[:covered])
            allowed[:covered] = False
            found += self._search(self._index, vector, k, allowed)
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:k]

    def get(self, rows: Sequence[int]) -> Vectors:
        """Return the vectors of these rows, zero where a row has none."""
        result = np.zeros((len(rows), self.dim), dtype=np.float32)
        there = [(offset, self._position[row]) for offset, row in enumerate(rows) if row in self._position]
        if there:
            offsets, positions = np.asarray(there, dtype=np.int64).T
            result[offsets] = self._index.reconstruct_batch(positions)
        return result

    def renumber(self, moved: npt.NDArray[np.int64]) -> bool:
        """Take over new numbers of rows, unless a graph would have to be built anew; tell whether it was done."""
        if self._graph is not None:
            return False
        self._compact()
        self._rows = moved[self._rows]
        self._position = {row: position for position, row in enumerate(self._rows.tolist())}
        return True

    def ungraphed(self) -> tuple[int, Vectors] | None:
        """Return the vectors that a new graph should hold, and their epoch, if so many are worth building one."""
        covered = 0 if self._graph is None else self._graph.ntotal
        if len(self._rows) <= EXACT_LIMIT or len(self._rows) - covered <= STALE_SHARE * len(self._rows):
            return None
        return self._epoch, self._index.reconstruct_n(0, len(self._rows))

    def adopt(self, epoch: int, graph: Any) -> None:
        """Search through a graph from now on, unless the vectors it was built of have moved since."""
        if epoch == self._epoch:
            self._graph = graph

    def dump(self) -> tuple[bytes, bytes, list[int]]:
        """Return index and graph as FAISS writes them, and the row of each entry, negative where it is dead."""
        import faiss

        graph = b"" if self._graph is None else faiss.serialize_index(self._graph).tobytes()
        return (
            faiss.serialize_index(self._index).tobytes(),
            graph,
            [row if row in self._position else -1 - row for row in self._rows.tolist()],
        )

    @classmethod
    def restore(cls, data: Buffer, graph: Buffer, rows: Sequence[int], dim: int) -> VectorTable:
        """Take what `dump` returned; `open` reads it."""
        table = cls(dim)
        table._stored = (data, graph)
        table._rows = np.asarray([row if row >= 0 else -1 - row for row in rows], dtype=np.int64)
        table._position = {row: position for position, row in enumerate(rows) if row >= 0}
        return table

    def _search(self, index: Any, vector: Vectors, k: int, allowed: Mask) -> Pairs:
        import faiss

        count = int(np.count_nonzero(allowed))
        if not count:
            return []
        # One query is too little work to share: a second thread spins for ten milliseconds after it and saves nothing.
        # OpenMP keeps this setting for each thread, so it is made where the search is.
        faiss.omp_set_num_threads(1)
        # The Python wrappers of faiss take arrays and keywords that its type stubs do not know.
        untyped: Any = faiss
        selector = untyped.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))
        if index is self._graph:
            parameters = untyped.SearchParametersHNSW(sel=selector, efSearch=SEARCHING)
        else:
            parameters = untyped.SearchParameters(sel=selector)
        # Of equal scores FAISS keeps whichever it likes: it is asked for more until the k-th is told from the next.
        wanted = min(k + 1, count)
        while True:
            scores, positions = index.search(vector.reshape(1, -1), wanted, params=parameters)
            if wanted == count or positions[0][-1] < 0 or scores[0][-1] < scores[0][k - 1]:
                break
            wanted = min(wanted * 4, count)
        pairs = zip(positions[0], scores[0], strict=True)
        return [(int(self._rows[position]), float(score)) for position, score in pairs if position >= 0]

    def _compact(self) -> None:
        if len(self._rows) == len(self._position):
            return
        rows = sorted(self._position)
        vectors = self.get(rows)
        self._index, self._graph, self._epoch = _exact(self.dim), None, self._epoch + 1
        self._rows = np.empty(0, dtype=np.int64)
        self._position = {}
        if rows:
            self.add(rows, vectors)


def build_graph(vectors: Vectors) -> Any:
    """Build a graph over vectors; half a millisecond for each, so nobody should wait for it."""
    import faiss

    half: Any = faiss.ScalarQuantizer.QT_fp16
    graph: Any = faiss.IndexHNSWSQ(vectors.shape[1], half, NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = BUILDING
    graph.train(vectors[:1])
    graph.add(vectors)
    return graph


def _exact(dim: int) -> Any:
    import faiss

    return faiss.IndexScalarQuantizer(dim, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
