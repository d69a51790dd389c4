"""Searches beside each other and beside changes."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ragdocs.engines.local import index as local
from ragdocs.engines.local import postings, segments
from ragdocs.engines.local.index import LocalIndex
from ragdocs.engines.local.sharing import SharedLock
from ragdocs.protocols import ProbeVector
from ragdocs.types import Filter, IndexedDocument
from ragdocs.verbs.quality.health import compare

from .contract import DIM, axis, entry

KEY = b"k" * 32
FRUIT = ("apple", "pear", "plum", "cherry", "quince", "fig", "grape", "melon")
DOCUMENTS, ROUNDS, READERS = 30, 10, 3


def make(directory: Path | None) -> LocalIndex:
    return LocalIndex(directory, recipe="1", encoder="test/8", dim=DIM, key=KEY)


def test_readers_share_and_a_writer_is_alone() -> None:
    lock = SharedLock()
    together = threading.Barrier(2)
    seen: list[str] = []

    def read() -> None:
        with lock.reading():
            together.wait(10)
            seen.append("read")

    def write() -> None:
        with lock.writing():
            seen.append("written")

    threads = [threading.Thread(target=read), threading.Thread(target=write)]
    with lock.reading():
        for thread in threads[:1]:
            thread.start()
        together.wait(10)
        threads[1].start()
        time.sleep(0.05)
        with lock.reading():
            assert "written" not in seen, "a writer came in beside a reader"
    for thread in threads:
        thread.join(10)
    assert sorted(seen) == ["read", "written"]


def test_a_reader_who_would_change_what_it_reads_is_told() -> None:
    lock = SharedLock()
    with (
        lock.reading(),
        pytest.raises(RuntimeError, match="cannot be changed"),
        lock.writing(),
    ):
        pass
    with lock.writing(), lock.reading():
        pass


def found(index: LocalIndex, text: str) -> dict[str, float]:
    """Map each passage that has one of the words to its score."""
    scores = {}
    with index.snapshot() as snapshot:
        probe = ProbeVector("query", text, axis(1))
        candidates = snapshot.candidates([probe], [Filter()], 1000)
        values = candidates.raw["query", "keyword"]
        passages = snapshot.load(candidates.keys)
        for (_, passage, _), score in zip(passages, values.tolist(), strict=True):
            if score > 0:
                scores[passage.id] = score
    return scores


def state(turn: int) -> list[IndexedDocument]:
    """Return all documents as they are after a round; each says which one it is."""
    chooser = random.Random(turn)
    entries = []
    for number in range(DOCUMENTS):
        texts = []
        for _ in range(chooser.randint(1, 4)):
            words = " ".join(chooser.choices(FRUIT, k=6))
            texts.append(f"turn{turn} common {words} rare{chooser.randrange(500)}")
        entries.append(entry(f"{number}.md", *texts, version=f"v{turn}"))
    return entries


def check(index: LocalIndex, chooser: random.Random) -> int:
    """Read one state in several ways that must agree; return its round."""
    with index.snapshot() as snapshot:
        probe = ProbeVector("query", f"common {chooser.choice(FRUIT)}", axis(1))
        candidates = snapshot.candidates([probe], [Filter()], 1000)
        turns = set()
        for _, passage, present in snapshot.load(candidates.keys, ["common"]):
            turns.add(int(passage.text.split()[0].removeprefix("turn")))
            assert present == ("common",)
        assert len(turns) == 1, "passages of two states were found together"
        assert snapshot.count(Filter()) == len(candidates.documents) == DOCUMENTS
        assert (candidates.raw["query", "keyword"] > 0).all()
        (turn,) = turns
    return turn


def test_searches_beside_changes_and_saves_see_one_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that segments are merged, rows numbered anew and impacts forgotten all the time.
    monkeypatch.setattr(segments, "MOST_SEGMENTS", 2)
    monkeypatch.setattr(postings, "PILED_SEGMENTS", 4)
    monkeypatch.setattr(postings, "CACHED_IMPACTS", 100)
    monkeypatch.setattr(postings, "COMMON_TERMS", 1)
    monkeypatch.setattr(local, "SPARE_ROWS", 40)
    index = make(tmp_path)
    index.apply(state(0))
    is_over = threading.Event()

    def read(seed: int) -> list[int]:
        chooser = random.Random(seed)
        turns = []
        while not is_over.is_set():
            turns.append(check(index, chooser))
            index.info()
        return turns

    with ThreadPoolExecutor(READERS) as pool:
        readers = [pool.submit(read, seed) for seed in range(READERS)]
        try:
            for turn in range(1, ROUNDS):
                index.apply(state(turn))
                for _, passage in index.claim_missing(20):
                    index.fill({passage.digest: axis(1, turn)})
                index.save()
        finally:
            is_over.set()
        for reader in readers:
            turns = reader.result(30)
            assert turns == sorted(turns), "an earlier state came back"
    fresh = make(None)
    fresh.apply(state(ROUNDS - 1))
    for word in FRUIT:
        assert found(index, f"common {word}") == pytest.approx(found(fresh, f"common {word}"))
    ours, theirs = index.contents(), fresh.contents()
    ours["vectors"] = theirs["vectors"] = []
    assert not compare(ours, theirs).difference
    reopened = make(tmp_path)
    assert reopened.open()
    assert found(reopened, "common fig") == found(index, "common fig")
    assert index._catalog.passage_count == len(ours["chunks"])
