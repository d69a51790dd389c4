"""The graph of neighbours.

Chosen by size, as good as exact, aware of filters, and kept in snapshots.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ragdocs.engines.local import vectors
from ragdocs.engines.local.vectors import VectorTable, build_graph, similar_pairs
from ragdocs.protocols import Vectors

DIM = 48
COUNT = 3000


def cloud(count: int, seed: int = 1) -> Vectors:
    """Make unit vectors in clusters, as those of texts are."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(40, DIM))
    rows = centres[rng.integers(0, 40, count)] + rng.normal(scale=0.7, size=(count, DIM))
    unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> VectorTable:
    monkeypatch.setattr(vectors, "EXACT_LIMIT", 1000)
    return grown_table()


def exact(matrix: Vectors, query: Vectors, allowed: np.ndarray, k: int = 10) -> set[int]:
    scores = np.where(allowed, matrix @ query, -9)
    return set(np.argsort(-scores)[:k].tolist())


def recall(table: VectorTable, matrix: Vectors, allowed: np.ndarray) -> float:
    queries = cloud(60, seed=2)
    found = [set(table.nearest(query, 10, allowed)[0].tolist()) for query in queries]
    wanted = [exact(matrix, query, allowed) for query in queries]
    return float(np.mean([len(one & other) / 10 for one, other in zip(found, wanted, strict=True)]))


def test_the_graph_finds_what_an_exact_search_finds(table: VectorTable) -> None:
    assert table.method.startswith("HNSW over 3000")
    assert recall(table, cloud(COUNT), np.ones(COUNT, dtype=np.bool_)) >= 0.98


def test_filters_apply_before_the_cut_in_the_graph_too(table: VectorTable) -> None:
    matrix = cloud(COUNT)
    for share in (2, 100):
        allowed = np.arange(COUNT) % share == 0
        found = []
        for query in cloud(20, seed=3):
            found += table.nearest(query, 10, allowed)[0].tolist()
        assert len(found) == 200
        assert all(row % share == 0 for row in found)
        assert recall(table, matrix, allowed) >= 0.98


def test_what_came_after_the_graph_is_searched_exactly(table: VectorTable) -> None:
    late = cloud(100, seed=4)
    table.add(list(range(COUNT, COUNT + 100)), late)
    assert table.ungraphed() is None, "a tenth more is not worth a new graph"
    allowed = np.ones(COUNT + 100, dtype=np.bool_)
    for offset, vector in enumerate(late):
        assert table.nearest(vector, 1, allowed)[0][0] == COUNT + offset


def test_a_graph_of_vectors_that_have_moved_since_is_not_adopted(table: VectorTable) -> None:
    built = table.ungraphed() or (0, cloud(COUNT).astype(np.float16))
    table.remove(list(range(0, COUNT, 2)))
    assert table.method == "exact", "compacting moves every vector"
    table.adopt(built[0], build_graph(built[1]))
    assert table.method == "exact"


def test_stored_vectors_stay_in_their_file(table: VectorTable) -> None:
    data, graph, rows = table.dump()
    restored = VectorTable.restore(data, graph, rows, DIM)
    restored.open()
    assert restored.dump()[0] is data


@pytest.mark.parametrize("limit", [1000, 10 * COUNT])
def test_a_stored_table_that_grows_answers_as_one_that_was_never_stored(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "EXACT_LIMIT", limit)
    plain = grown_table()
    restored = reopened(plain)
    late = cloud(100, seed=6)
    late_rows = list(range(COUNT, COUNT + 100))
    gone = list(range(0, COUNT, 7))
    for table in (plain, restored):
        table.add(late_rows, late)
        table.remove([*gone, COUNT + 1])
    assert_same_answers(plain, restored)
    assert_same_answers(plain, reopened(restored))
    # More than a quarter of them is gone: what is left moves.
    for table in (plain, restored):
        table.remove(list(range(0, COUNT, 3)))
    assert_same_answers(plain, restored)


def test_vectors_that_came_while_a_graph_was_built_are_found_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vectors, "EXACT_LIMIT", 1000)
    table = reopened(grown_table())
    more = list(range(COUNT, 2 * COUNT))
    table.add(more, cloud(COUNT, seed=7))
    wanted = table.ungraphed()
    assert wanted is not None
    late = cloud(50, seed=8)
    table.add(list(range(2 * COUNT, 2 * COUNT + 50)), late)
    table.adopt(wanted[0], build_graph(wanted[1]))
    assert table.method.startswith("HNSW over 6000")
    allowed = np.ones(2 * COUNT + 50, dtype=np.bool_)
    for offset, vector in enumerate(late):
        assert table.nearest(vector, 1, allowed)[0][0] == 2 * COUNT + offset
    assert_same_answers(table, reopened(table))


def grown_table() -> VectorTable:
    """Return a table with a graph, if it is large enough for one."""
    made = VectorTable(DIM)
    made.open()
    made.add(list(range(COUNT)), cloud(COUNT))
    wanted = made.ungraphed()
    if wanted is not None:
        made.adopt(wanted[0], build_graph(wanted[1]))
    return made


def reopened(table: VectorTable) -> VectorTable:
    stored = VectorTable.restore(*table.dump(), DIM)
    stored.open()
    return stored


def assert_same_answers(one: VectorTable, other: VectorTable) -> None:
    assert one.method == other.method
    every = np.arange(2 * COUNT + 100)
    assert one.places(every).tolist() == other.places(every).tolist()
    assert np.array_equal(one.get(every), other.get(every))
    alive = one.places(every) >= 0
    few = alive & (every % 40 == 0)
    for query in cloud(10, seed=9):
        assert one.products(query, every).tolist() == other.products(query, every).tolist()
        for allowed in (alive, few):
            rows, scores = one.nearest(query, 10, allowed)
            same_rows, same_scores = other.nearest(query, 10, allowed)
            assert rows.tolist() == same_rows.tolist()
            assert scores.tolist() == same_scores.tolist()
            assert one.products(query, rows).tolist() == scores.tolist()


def test_opening_a_stored_index_imports_neither_faiss_nor_networkx(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from ragdocs.engines.local.index import LocalIndex
from ragdocs.protocols import ProbeVector
from ragdocs.types import Chunk, Document, IndexedDocument, Filter, Link

def make():
    return LocalIndex(Path(sys.argv[1]), recipe="1", encoder="e", dim=4, key=b"k")

document = Document(id="t:a", lane="t", path="a.md", title="A", version="1", links=(Link("b", "mentions", "see b"),))
first = make()
first.apply([IndexedDocument(document, (Chunk("t:a#0", "t:a", (), "apple words", 1, 1, "0" * 32),))])
first.save()
for name in [name for name in sys.modules if name.split(".")[0] in ("faiss", "networkx")]:
    del sys.modules[name]
second = make()
assert second.open() and second.info().links == 1
with second.snapshot() as snapshot:
    keys = snapshot.candidates([ProbeVector("q", "apple")], [Filter()], 5).keys
    assert snapshot.load(keys)[0][1].text == "apple words"
print(sorted({name.split(".")[0] for name in sys.modules} & {"faiss", "networkx"}))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "indices")],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("limit", [None, 1, 500])
@pytest.mark.parametrize("threshold", [0.0, 0.6])
def test_pairs_are_the_most_alike_of_all(threshold: float, limit: int | None) -> None:
    count = vectors.STRIPE + 200
    texts = cloud(count)
    texts[::3] = 0.0  # not encoded yet
    likeness = texts @ texts.T
    expected = []
    for first in range(count):
        for second in range(first + 1, count):
            if first % 3 and second % 3 and likeness[first, second] >= threshold:
                expected.append((-float(likeness[first, second]), first, second))
    expected.sort()
    pairs = similar_pairs(texts, threshold, limit)
    assert [pair[0] for pair in pairs] == pytest.approx(
        [-score for score, _, _ in expected[:limit]], abs=1e-5
    )
    assert len({pair[1:] for pair in pairs}) == len(pairs)
    assert all(first < second for _, first, second in pairs)
