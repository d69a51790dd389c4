from __future__ import annotations

import hashlib
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tests.faults.processes import resident_kb

from ragdocs.engines.local import index as local
from ragdocs.engines.local.index import LocalIndex
from ragdocs.protocols import Index, ProbeVector, Vectors
from ragdocs.system import files, turns
from ragdocs.types import IndexedDocument, Link
from ragdocs.verbs.quality.health import compare

from .contract import DIM, IndexContract, axis, digest, entry
from .reads import ANYTHING, counts, listed, matching
from .wrappers import Opaque

KEY = b"k" * 32
CHANGES = {"apply", "fill", "calibrate"}


def make(
    directory: Path | None, encoder: str = "test/8", *, private: Path | None = None
) -> LocalIndex:
    return LocalIndex(
        directory, recipe="1/900/1400", encoder=encoder, dim=DIM, key=KEY, private=private
    )


class Restarting:
    """A LocalIndex that is saved and opened anew after every change, as by a process that ends."""

    def __init__(self, directory: Path, *, private: Path | None = None) -> None:
        self._make = partial(make, directory, private=private)
        self._index = self._make()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._index, name)
        return self._restarting(found) if name in CHANGES else found

    def _restarting(self, change: Callable[..., None]) -> Callable[..., None]:
        def changed(*arguments: Any) -> None:
            change(*arguments)
            was_dirty = self._index.dirty
            assert bool(self._index.save()) == was_dirty
            self._index = self._make()
            self._index.open()

        return changed


class TestFresh(IndexContract):
    @pytest.fixture
    def index(self) -> Index:
        return make(None)


class TestWithOpaqueKeys(IndexContract):
    @pytest.fixture
    def index(self) -> Index:
        return cast("Index", Opaque(make(None)))


class TestReopened(IndexContract):
    @pytest.fixture
    def index(self, tmp_path: Path) -> Index:
        return cast("Index", Restarting(tmp_path / "indices"))


class TestCompacted(IndexContract):
    @pytest.fixture
    def index(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
        monkeypatch.setattr(local, "MOST_ROWS", 1)
        monkeypatch.setattr(local, "SPARE_ROWS", 0)
        return cast("Index", Restarting(tmp_path / "indices"))


class TestMapped(IndexContract):
    @pytest.fixture
    def index(self, tmp_path: Path) -> Index:
        return cast("Index", Restarting(tmp_path / "indices", private=tmp_path))


class TestMappedCopies(IndexContract):
    @pytest.fixture
    def index(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
        monkeypatch.setattr(files, "_WORTH_A_COPY", 1)
        return cast("Index", Restarting(tmp_path / "indices", private=tmp_path / "private"))


# --- an index is what its documents make it, whatever happened on the way ---

WORDS = (
    "apple",
    "apples",
    "pear",
    "receive",
    "max_chars",
    "maxChars",
    "größe",
    "日本語",
    "src/auth.py",
    "the",
)
QUERIES = ("apple pear", "recieve", "aple", "max chars", "日本", "auth.py the", "nothing like it")
PATHS = tuple(f"{folder}{name}.md" for folder in ("", "f/") for name in "abcd")

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
entries = st.builds(
    lambda path, texts, tags, links: entry(path, *texts, tags=tuple(tags), links=tuple(links)),
    st.sampled_from(PATHS),
    st.lists(texts, min_size=1, max_size=3),
    st.sets(st.sampled_from(["x", "Y"])).map(sorted),
    st.lists(
        st.builds(Link, st.sampled_from(["a", "f/b.md", "src/x.py"]), st.just("mentions"), texts),
        max_size=2,
    ),
)
steps = st.one_of(
    st.tuples(st.just("apply"), st.lists(entries, max_size=4, unique_by=lambda e: e.document.path)),
    st.tuples(st.just("remove"), st.sets(st.sampled_from(PATHS), max_size=3).map(sorted)),
    st.tuples(st.just("fill"), st.integers(1, 4)),
    st.tuples(st.just("restart"), st.none()),
)


def vector_of(text: str) -> Vectors:
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
    return axis(*np.random.default_rng(seed).normal(size=DIM))


def fill(index: Index, limit: int) -> None:
    index.fill({chunk.digest: vector_of(chunk.digest) for _, chunk in index.claim_missing(limit)})


def scores(index: Index, query: str) -> dict[str, float]:
    with index.snapshot() as snapshot:
        candidates = snapshot.candidates([ProbeVector("q", query)], [ANYTHING], 1000)
        loaded = snapshot.load(candidates.keys).passages
    measured = candidates.raw["q", "keyword"].tolist()
    return {chunk.id: score for (_, chunk, _), score in zip(loaded, measured, strict=True)}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(steps, max_size=12))
def test_any_history_gives_the_index_that_is_built_at_once(history: list[tuple[str, Any]]) -> None:
    state: dict[str, IndexedDocument] = {}
    with tempfile.TemporaryDirectory() as folder:
        live = make(Path(folder))
        for verb, what in history:
            if verb == "apply":
                live.apply(what)
                state |= {one.document.path: one for one in what}
            elif verb == "remove":
                live.apply([], what)
                state = {path: one for path, one in state.items() if path not in what}
            elif verb == "fill":
                fill(live, what)
            elif live.save():
                live = make(Path(folder))
                assert live.open()
                event("restarted")
    built = make(None)
    built.apply([state[path] for path in sorted(state)])
    fill(live, 1000)
    fill(built, 1000)
    assert_same(live, built)
    for query in QUERIES:
        assert scores(live, query) == pytest.approx(scores(built, query), abs=1e-6), query


def assert_same(live: LocalIndex, built: LocalIndex) -> None:
    ours, theirs = live.contents(), built.contents()
    for part in ("documents", "chunks", "postings", "edges"):
        assert ours[part] == theirs[part], part
    assert [name for name, _ in ours["vectors"]] == [name for name, _ in theirs["vectors"]]
    assert all(
        (a == b).all() for (_, a), (_, b) in zip(ours["vectors"], theirs["vectors"], strict=True)
    )
    assert counts(live) == counts(built)
    assert live.stamps() == built.stamps()


def test_contents_name_documents_chunks_postings_edges_and_vectors() -> None:
    index = make(None)
    index.apply([entry("a.md", "apple", links=(Link("src/x.py", "mentions", "see"),))])
    fill(index, 1)
    contents = index.contents()
    assert [document.path for document in contents["documents"]] == ["a.md"]
    assert ("test:a#0", "body", "appl", 1.0) in contents["postings"]
    assert contents["edges"] == [("test:a", "ghost:src/x.py", "mentions", "see")]
    assert contents["vectors"][0][1] == pytest.approx(vector_of(digest("apple")), abs=1e-3)


# --- rows of the dead ---


def test_an_index_that_is_edited_for_long_keeps_its_size(tmp_path: Path) -> None:
    index = make(tmp_path / "indices")
    sizes = []
    for turn in range(12):
        index.apply([entry(f"{n}.md", f"apple turn{turn}", f"pear {n}") for n in range(100)])
        for step in range(10):
            index.apply([entry("0.md", f"apple turn{turn}", f"step {step}")])
        fill(index, 1000)
        generation = tmp_path / "indices" / (index.save() or "")
        sizes.append(sum(file.stat().st_size for file in generation.rglob("*") if file.is_file()))
        assert len(index._catalog.passages) <= local.MOST_ROWS * 200 + local.SPARE_ROWS + 220
        assert len(matching(index, f"turn{turn} apple", k=200)) == 100
    assert sizes[-1] < 3 * sizes[0]
    reopened = make(tmp_path / "indices")
    assert reopened.open()
    assert not compare(reopened.contents(), index.contents()).difference
    assert counts(index) == (100, 200, 200, 0)


class SearchedWhileSaving(LocalIndex):
    """Asks a question from another thread while the bytes of a generation are made."""

    answers: dict[str, float]

    def _dump(self) -> tuple[dict[str, Any], dict[str, Any]]:
        def ask() -> None:
            self.answers = scores(self, "apple")

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(20)
        assert not thread.is_alive(), "the search waits for the save"
        return super()._dump()


def test_a_search_does_not_wait_for_a_save(tmp_path: Path) -> None:
    index = SearchedWhileSaving(tmp_path, recipe="1", encoder="test/8", dim=DIM, key=KEY)
    index.apply([entry("a.md", "apple"), entry("b.md", "pear")])
    assert index.save()
    assert max(index.answers.values()) > 0


def test_rows_are_not_given_twice_after_a_restart(tmp_path: Path) -> None:
    index = make(tmp_path)
    index.apply([entry("a.md", "common apple"), entry("b.md", "common pear")])
    index.apply([], ["b.md"])
    index.save()
    again = make(tmp_path)
    assert again.open()
    assert matching(again, "common pear") == ["a.md"], "a word of a removed document"
    again.apply([entry("c.md", "plum")])
    assert matching(again, "plum") == ["c.md"]
    assert matching(again, "pear") == []


def test_a_change_makes_an_index_dirty_and_a_snapshot_clean(tmp_path: Path) -> None:
    index = make(tmp_path)
    assert not index.dirty
    assert index.save() is None
    index.apply([entry("a.md", "apple")])
    assert index.dirty
    assert index.save()
    assert not index.dirty
    index.apply([], (), {"a.md": "s2"})
    assert index.dirty
    index.save()
    index.apply([], ["never.md"])
    assert not index.dirty
    index.apply([], ["a.md"])
    assert index.dirty
    nowhere = make(None)
    nowhere.apply([entry("a.md", "apple")])
    assert nowhere.save() is None
    assert not nowhere.open()


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what is in memory")
def test_a_search_leaves_the_files_of_whoosh_on_disk(tmp_path: Path) -> None:
    index = make(tmp_path, private=tmp_path)
    index.apply([entry("a.md", "apple"), entry("b.md", "pear")])
    index.save()
    again = make(tmp_path, private=tmp_path)
    assert again.open()
    assert matching(again, "apple") == ["a.md"]
    assert resident_kb(".seg", tmp_path) == 0
    assert resident_kb(".words", tmp_path) == 0, "what was read of the words is given back"


def test_an_opened_index_takes_documents_with_and_without_passages(tmp_path: Path) -> None:
    index = make(tmp_path, private=tmp_path)
    index.apply([entry("a.md", "apple")])
    index.save()
    again = make(tmp_path, private=tmp_path)
    assert again.open()
    again.apply([entry("empty.md")])
    again.apply([entry("b.md", "pear")])
    assert matching(again, "apple") == ["a.md"]
    assert matching(again, "pear") == ["b.md"]


def test_a_path_that_is_not_text_survives_a_restart(tmp_path: Path) -> None:
    index = make(tmp_path)
    index.apply(
        [entry("caf\udce9.md", "apple", links=(Link("src/caf\udce9.py", "mentions", "x"),))]
    )
    index.save()
    again = make(tmp_path)
    assert again.open()
    assert listed(again) == listed(index)


def test_searches_go_on_while_many_texts_are_added() -> None:
    index = make(None)
    index.apply([entry("a.md", "zebra")])
    many = [
        entry(f"{number}.md", *(f"text{number} word{n}" for n in range(20)))
        for number in range(100)
    ]
    adding = threading.Thread(target=index.apply, args=(many,))
    adding.start()
    answered: list[int] = []
    while adding.is_alive():
        # A new word each time: what is known of a term is not looked up again.
        answered.append(len(matching(index, f"zebra unheard{len(answered)}")))
    adding.join()
    assert len(answered) > 20
    assert set(answered) == {1}
    assert len(matching(index, "word3", k=200)) == 100


def test_who_ranks_has_the_turn_until_the_snapshot_ends_and_who_lists_has_none() -> None:
    index = make(None)
    index.apply([entry("a.md", "zebra")])
    with index.snapshot() as snapshot:
        assert snapshot.list(ANYTHING)
        assert not turns.is_somebody_ranking()
        snapshot.candidates([ProbeVector("q", "zebra")], [ANYTHING], 10)
        assert turns.is_somebody_ranking()
    assert not turns.is_somebody_ranking()


def test_searches_rank_one_after_the_other_and_all_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "PATIENCE", 30.0)
    index = make(None)
    index.apply([entry(f"{number}.md", "zebra") for number in range(20)])
    ranking: set[int] = set()
    counts_of_ranking: list[int] = []
    answers: list[int] = []

    def search() -> None:
        with index.snapshot() as snapshot:
            candidates = snapshot.candidates([ProbeVector("q", "zebra")], [ANYTHING], 100)
            ranking.add(threading.get_ident())
            counts_of_ranking.append(len(ranking))
            # Others run meanwhile, as when numpy lets go of the interpreter.
            time.sleep(0.005)
            answers.append(len(snapshot.load(candidates.keys).passages))
            ranking.remove(threading.get_ident())

    threads = [threading.Thread(target=search) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert answers == [20] * 8
    assert counts_of_ranking == [1] * 8
