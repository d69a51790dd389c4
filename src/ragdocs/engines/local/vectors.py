"""Vectors by row, searched by inner product: exactly up to a size, through a graph above.

The only home of faiss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ragdocs.engines.local.rows import BestFirst, by_row
from ragdocs.protocols import Vectors
from ragdocs.system import files as fsio
from ragdocs.system import heap

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]
Halves = npt.NDArray[np.float16]
Codes = npt.NDArray[np.uint8]
Buffer = bytes | memoryview

# Removed vectors stay in place, hidden by the row mask, until they are this share of all:
# compacting copies everything.
DEAD_SHARE = 0.25
# An exact search in half precision takes 0.066 ms of processor time for 1,000 vectors of 384
# components: up to here it stays under 5 ms.
EXACT_LIMIT = 75_000
# Neighbours of a vector in the graph, and candidates followed while building and searching it: at
# 100,000 clustered vectors they find 0.98 of the true ten, in 1.4 ms.
NEIGHBOURS, BUILDING, SEARCHING = 16, 64, 256
# Vectors that are added to a graph at once, in full precision.
BUILT_AT_ONCE = 1 << 17
# A graph is useless when most of what it finds is filtered out; then an exact search over the few
# allowed is quick.
MILD_FILTER = 0.2
# Vectors that came after the graph was built are searched exactly, until they are this share of it.
STALE_SHARE = 0.2
# Vectors compared with all others at once, which bounds the memory that takes.
STRIPE = 1024


class VectorTable:
    """FAISS indexes in half precision whose entries are named by row numbers.

    What was stored is opened by `open`, when vectors are first needed: FAISS is large, and a start
    does without it. Stored vectors stay in their file, and those that come later are an index of
    their own: FAISS ends the process when something is added to vectors that lie in a file.
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        # Vectors of a file, or those that a graph was built of: nothing is ever added to them.
        self._settled: Any = None
        self._settled_file: Buffer = b""
        # Vectors that came since; their positions follow.
        self._added: Any = None
        self._stored: tuple[Buffer, Buffer] = (b"", b"")
        self._rows: Rows = np.empty(0, dtype=np.int64)
        # The position of each row in the index, -1 where it has none.
        self._positions: Rows = np.empty(0, dtype=np.int64)
        self._count = 0
        self._graph: Any = None
        self._graph_file: Buffer = b""
        # Counts how often positions changed.
        self._epoch = 0

    def __len__(self) -> int:
        return self._count

    def positions(self, rows: Sequence[int] | Rows) -> Rows:
        """Return where the vectors of these rows are, -1 for those that have none."""
        wanted = np.asarray(rows, dtype=np.int64)
        inside = wanted < len(self._positions)
        positions = np.full(len(wanted), -1, dtype=np.int64)
        positions[inside] = self._positions[wanted[inside]]
        return positions

    @property
    def method(self) -> str:
        """Say how vectors are searched."""
        if self._graph is None and not self._stored[1]:
            return "exact"
        in_graph = self._graph.ntotal if self._graph else len(self._rows)
        return f"HNSW over {in_graph}, exact over the rest"

    def open(self) -> None:
        """Bring the engine and what was stored into memory.

        Raise ValueError if the two do not fit.
        """
        if self._settled is not None:
            return
        data, graph = self._stored
        self._stored = (b"", b"")
        settled = _exact(self.dim)
        skeleton = None
        try:
            if data:
                settled = _like(_read_in_place(data), settled)
            if graph:
                skeleton = _read_in_place(graph)
        except (RuntimeError, AttributeError) as error:
            raise ValueError(f"the stored vectors cannot be read: {error}") from error
        if settled.ntotal != len(self._rows):
            raise ValueError("the stored vectors do not fit their rows")
        self._settled_file = data
        self._added = _exact(self.dim)
        self._settled = settled
        if skeleton is not None:
            # Nothing is ever added to a graph, so it stays where it lies.
            self._share(skeleton, graph)
        for stored in (data, graph):
            fsio.release(stored)

    def missing(self, rows: Sequence[int]) -> set[int]:
        """Return those of these rows that have no vector."""
        wanted = np.asarray(rows, dtype=np.int64)
        return set(wanted[self.positions(wanted) < 0].tolist())

    def add(self, rows: Sequence[int] | Rows, vectors: Vectors | Sequence[Vectors]) -> None:
        """Store one vector for each row."""
        # FAISS rounds halfway cases away from zero, and all others, such as databases, to even.
        halves = np.asarray(vectors, dtype=np.float16).astype(np.float32)
        self._added.add(np.ascontiguousarray(halves))
        self._register(
            np.concatenate([self._rows, np.asarray(rows, dtype=np.int64)]), len(self._rows)
        )

    def remove(self, rows: Sequence[int]) -> None:
        """Forget these rows; rows that have no vector are passed over."""
        there = np.asarray(rows, dtype=np.int64)[self.positions(rows) >= 0]
        self._positions[there] = -1
        self._count -= len(there)
        if len(self._rows) - self._count > max(64, DEAD_SHARE * len(self._rows)):
            self._compact()

    def nearest(
        self, vector: Vectors, k: int, mask: Mask, best_first: BestFirst = by_row
    ) -> tuple[Rows, Vectors]:
        """Return the k rows allowed by the mask with the largest inner product, best first."""
        allowed = mask[self._rows]
        count = int(np.count_nonzero(allowed))
        if not count:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        settled = self._settled.ntotal
        searches = []
        if self._graph is not None and count >= MILD_FILTER * len(allowed):
            covered = self._graph.ntotal
            searches.append(self._search(self._graph, vector, k, allowed[:covered]))
            allowed[:covered] = False
        searches.append(self._search(self._settled, vector, k, allowed[:settled]))
        searches.append(self._search(self._added, vector, k, allowed[settled:], settled))
        rows = np.concatenate([some for some, _ in searches])
        scores = np.concatenate([some for _, some in searches])
        order = best_first(rows, scores)[:k]
        return rows[order], scores[order]

    def products(self, vector: Vectors, rows: Rows) -> Vectors:
        """Return the inner product with the vector of each of these rows.

        Zero where a row has none.
        """
        there = np.flatnonzero(self.positions(rows) >= 0)
        result: Vectors = np.zeros(len(rows), dtype=np.float32)
        if len(there):
            # FAISS multiplies as in a search, so that scores are equal to the last bit.
            few = _exact(self.dim)
            stored = self.positions(rows[there])
            few.add_sa_codes(self._codes(stored))
            everything = np.ones(len(there), dtype=np.bool_)
            scores, positions = self._ask(few, vector, len(there), everything)
            result[there[positions]] = scores
        return result

    def get(self, rows: Sequence[int] | Rows) -> Vectors:
        """Return the vectors of these rows, zero where a row has none."""
        result = np.zeros((len(rows), self.dim), dtype=np.float32)
        positions = self.positions(rows)
        there = positions >= 0
        if there.any():
            result[there] = self._codes(positions[there]).view(np.float16)
        return result

    def _codes(self, positions: Rows) -> Codes:
        """Return the vectors at these positions in half precision, as bytes."""
        settled = self._settled.ntotal
        is_settled = positions < settled
        codes = np.empty((len(positions), self._settled.code_size), dtype=np.uint8)
        early = positions[is_settled]
        codes[is_settled] = _codes_of(self._settled)[early]
        late = positions[~is_settled] - settled
        codes[~is_settled] = _codes_of(self._added)[late]
        return codes

    def means(self, groups: Sequence[Sequence[int]]) -> Vectors:
        """Return the unit vector in the middle of each group of rows.

        Zero where none of them has a vector.
        """
        matrix = np.stack(
            [np.zeros(self.dim, np.float32), *(self.get(rows).sum(axis=0) for rows in groups)]
        )[1:]
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        unit: Vectors = np.divide(
            matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0
        ).astype(np.float32)
        return unit

    def renumbered(self, moved: npt.NDArray[np.int64]) -> VectorTable | None:
        """Return the same vectors under new numbers of rows, while this table is searched.

        Nothing if a graph would have to be built anew.
        """
        if self._graph is not None:
            return None
        table = VectorTable(self.dim)
        table.open()
        table._epoch = self._epoch + 1
        rows = np.flatnonzero(self._positions >= 0)
        for start in range(0, len(rows), STRIPE):
            stripe = rows[start : start + STRIPE]
            table.add(moved[stripe], self.get(stripe))
        return table

    def ungraphed(self) -> tuple[int, Halves] | None:
        """Return the vectors that a new graph should hold.

        And their epoch, if so many are worth building one. Half precision is all they have.
        """
        covered = 0 if self._graph is None else self._graph.ntotal
        if len(self._rows) <= EXACT_LIMIT or len(self._rows) - covered <= STALE_SHARE * len(
            self._rows
        ):
            return None
        return self._epoch, self._codes(np.arange(len(self._rows))).view(np.float16)

    def adopt(self, epoch: int, graph: Any) -> None:
        """Search through a graph from now on, and take the vectors that it was built of.

        Unless those have moved since.
        """
        if epoch != self._epoch:
            return
        late = np.arange(graph.ntotal, len(self._rows))
        added = _exact(self.dim)
        if len(late):
            added.add_sa_codes(self._codes(late))
        self._added = added
        self._settled = _storage(graph)
        self._settled_file = b""
        self._graph = graph
        self._graph_file = b""

    def _share(self, graph: Any, file: Buffer) -> None:
        """Let a graph that was stored without vectors find them among the settled ones.

        They belong to it then. `file` is what it is read from as it lies.
        """
        graph.storage = self._settled
        graph.own_fields = True
        self._graph = graph
        self._graph_file = file

    def dump(self) -> tuple[Buffer, Buffer, bytes]:
        """Return index and graph as FAISS writes them, the graph without its vectors.

        And the row of each entry, negative where it is dead.
        """
        import faiss

        graph: Buffer = b""
        if self._graph is not None:
            graph = _written(self._graph, faiss.IO_FLAG_SKIP_STORAGE)
        is_alive = self.positions(self._rows) == np.arange(len(self._rows))
        rows = np.where(is_alive, self._rows, -1 - self._rows)
        return self._dumped(), graph, rows.tobytes()

    def _dumped(self) -> Buffer:
        """Return all vectors as FAISS writes them; if they are those of a file, that one."""
        if not self._added.ntotal:
            return self._settled_file or _written(self._settled)
        joined = _exact(self.dim)
        for part in (self._settled, self._added):
            if part.ntotal:
                joined.add_sa_codes(_codes_of(part))
        return _written(joined)

    @classmethod
    def restore(cls, data: Buffer, graph: Buffer, rows: Buffer, dim: int) -> VectorTable:
        """Take what `dump` returned; `open` reads it."""
        table = cls(dim)
        table._stored = (data, graph)
        stored = np.frombuffer(rows, dtype=np.int64)
        dead = stored < 0
        table._register(np.where(dead, -1 - stored, stored))
        table._positions[table._rows[dead]] = -1
        table._count -= int(np.count_nonzero(dead))
        return table

    def _register(self, rows: Rows, start: int = 0) -> None:
        """Take these as the rows of the entries; those from `start` on are new."""
        size = int(rows.max(initial=-1)) + 1
        if not start:
            self._positions, self._count = np.full(size, -1, dtype=np.int64), 0
        elif size > len(self._positions):
            # By half more, so that many small additions copy little.
            blank = np.full(size + size // 2 - len(self._positions), -1, dtype=np.int64)
            self._positions = np.concatenate([self._positions, blank])
        self._positions[rows[start:]] = np.arange(start, len(rows))
        self._rows = rows
        self._count += len(rows) - start

    def _search(
        self, index: Any, vector: Vectors, k: int, allowed: Mask, start: int = 0
    ) -> tuple[Rows, Vectors]:
        """Return at least the k best rows, with all that are as good as the last of them.

        `start` is the position of the first vector of this index.
        """
        count = int(np.count_nonzero(allowed))
        if not count:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        # Of equal scores FAISS keeps whichever it likes: it is asked for more until the k-th
        # differs from the last.
        wanted = min(k + 1, count)
        while True:
            scores, positions = self._ask(index, vector, wanted, allowed)
            if wanted == count or len(positions) < wanted or scores[-1] < scores[k - 1]:
                return self._rows[start + positions], scores
            wanted = min(wanted * 4, count)

    def _ask(self, index: Any, vector: Vectors, wanted: int, allowed: Mask) -> tuple[Vectors, Rows]:
        """Return the scores and positions of the best among those allowed."""
        import faiss

        # One query is too little work to share: a second thread spins for ten milliseconds after it
        # and saves nothing. OpenMP keeps this setting for each thread, so it is made where the
        # search is.
        faiss.omp_set_num_threads(1)
        # The Python wrappers of faiss take arrays and keywords that its type stubs do not know.
        untyped: Any = faiss
        selector = None
        if not allowed.all():
            selector = untyped.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))
        parameters = None
        if index is self._graph:
            parameters = untyped.SearchParametersHNSW(sel=selector, efSearch=SEARCHING)
        elif selector is not None:
            parameters = untyped.SearchParameters(sel=selector)
        scores, positions = index.search(vector.reshape(1, -1), wanted, params=parameters)
        # A graph may find fewer than were asked for.
        is_hit = positions[0] >= 0
        return scores[0][is_hit], positions[0][is_hit]

    def _compact(self) -> None:
        if len(self._rows) == self._count:
            return
        rows = np.flatnonzero(self._positions >= 0)
        vectors = self.get(rows)
        self._settled = _exact(self.dim)
        self._settled_file = b""
        self._added = _exact(self.dim)
        self._graph = None
        self._graph_file = b""
        self._epoch += 1
        self._register(np.empty(0, dtype=np.int64))
        if len(rows):
            self.add(rows, vectors)


def similar_pairs(
    vectors: Vectors, threshold: float, limit: int | None = None
) -> list[tuple[float, int, int]]:
    """Return (similarity, first, second) of every two vectors that are alike, most alike first.

    With a limit, only so many: ten thousand documents have fifty million pairs.
    """
    # A document that has no vector yet resembles nothing, whatever the threshold.
    numbers = np.flatnonzero(np.any(vectors != 0, axis=1))
    present = vectors[numbers]
    scores: Vectors = np.empty(0, np.float32)
    firsts = seconds = np.empty(0, np.int64)
    for start in range(0, len(present), STRIPE):
        # Each pair once: with those that follow.
        stripe = present[start : start + STRIPE] @ present[start:].T
        rows, columns = np.nonzero(np.triu(stripe >= threshold, 1))
        scores = np.concatenate([scores, stripe[rows, columns]])
        firsts = np.concatenate([firsts, numbers[start + rows]])
        seconds = np.concatenate([seconds, numbers[start + columns]])
        best = np.lexsort((seconds, firsts, -scores))[:limit]
        scores, firsts, seconds = scores[best], firsts[best], seconds[best]
        if limit is not None and len(scores) == limit > 0:
            # What is less alike than the last of them is not looked at any more.
            threshold = max(threshold, float(scores[-1]))
    return list(zip(scores.tolist(), firsts.tolist(), seconds.tolist(), strict=True))


def build_graph(vectors: Halves) -> Any:
    """Build a graph over vectors.

    That takes half a millisecond for each, so nobody should wait for it.
    """
    import faiss

    half: Any = faiss.ScalarQuantizer.QT_fp16
    graph: Any = faiss.IndexHNSWSQ(vectors.shape[1], half, NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = BUILDING
    graph.train(vectors[:1].astype(np.float32))
    for start in range(0, len(vectors), BUILT_AT_ONCE):
        graph.add(vectors[start : start + BUILT_AT_ONCE].astype(np.float32))
    return graph


def _storage(graph: Any) -> Any:
    """Return the index that a graph finds its vectors in, and that goes with it."""
    import faiss

    return faiss.downcast_index(graph.storage)


def _read_in_place(data: Buffer) -> Any:
    """Return what FAISS has written, as it lies there; whoever has it keeps the data."""
    import faiss

    content = np.frombuffer(data, dtype=np.uint8)
    # Its type stubs do not know this reader.
    untyped: Any = faiss
    reader = untyped.ZeroCopyIOReader(faiss.swig_ptr(content), content.size)
    return faiss.read_index(reader)


def _codes_of(index: Any) -> Codes:
    """Return the vectors of an index as they lie, until something is added to it."""
    import faiss

    size = index.ntotal * index.code_size
    if not size:
        return np.empty((0, index.code_size), dtype=np.uint8)
    codes: Any = faiss.rev_swig_ptr(index.codes.data(), size)
    return np.asarray(codes).reshape(index.ntotal, index.code_size)


def _like(stored: Any, other: Any) -> Any:
    """Return an index that was read, whose vectors must have the size of those of another."""
    if stored.d != other.d or stored.code_size != other.code_size:
        raise RuntimeError("they have another size")
    if stored.codes.size() != stored.ntotal * stored.code_size:
        raise RuntimeError("there are more or fewer than it says")
    return stored


def _written(index: Any, flags: int = 0) -> Buffer:
    """Return what FAISS writes of an index, which lets others run meanwhile.

    A copy of it would not.
    """
    import faiss

    writer = faiss.VectorIOWriter()
    faiss.write_index(index, writer, flags)
    return heap.view(int(writer.data.data()), writer.data.size(), writer)


def _exact(dim: int) -> Any:
    import faiss

    return faiss.IndexScalarQuantizer(
        dim, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
    )
