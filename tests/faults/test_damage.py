"""A damaged index is built anew, and what was deleted comes back whatever the clock says."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ragdocs.engines.local.index import LocalIndex
from ragdocs.lanes import MEMORY
from ragdocs.search.corpus import Corpus
from ragdocs.search.encoders.hashing import HashEncoder
from ragdocs.stores.files.store import FileStore
from ragdocs.types import Change, Discard, Expect, Probe, Put, Query
from ragdocs.verbs.quality.health import compare

if TYPE_CHECKING:
    from tests.tally import Tally

NOW = datetime(2026, 2, 4, 12, 0, 0, tzinfo=UTC)
ENCODER = HashEncoder()
QUERIES = ("harbour lantern", "[[src/auth.py]] tokens", "river evening", "word3")


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let syncing take no time; nothing here depends on it."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@dataclass
class Opened:
    """An index that was opened as a server does, and brought up to the files."""

    believed: bool
    index: LocalIndex
    corpus: Corpus


def make(directory: Path | None) -> LocalIndex:
    return LocalIndex(
        directory, recipe="1", encoder=ENCODER.identity, dim=ENCODER.dim, key=b"k" * 32
    )


def opened(root: Path, directory: Path | None) -> Opened:
    index = make(directory)
    believed = index.open()
    corpus = Corpus(MEMORY, FileStore(root, MEMORY), index, ENCODER)
    corpus.sync()
    corpus.embed()
    return Opened(believed, index, corpus)


def answers(of: Opened) -> list[tuple[str, float, str]]:
    findings = [of.corpus.search(Query(probes=(Probe(query),), limit=5), NOW) for query in QUERIES]
    return [(hit.chunk.id, hit.score, hit.chunk.text) for found in findings for hit in found.hits]


# --- damage ---

# Each takes a file's bytes and those of another file, and returns other bytes, or nothing for no
# file at all.
DAMAGES: dict[str, Callable[[bytes, bytes, random.Random], bytes | None]] = {
    "a bit turned": lambda data, _, chooser: _flipped(data, chooser),
    "cut": lambda data, _, chooser: data[: chooser.randrange(len(data))] if data else b"x",
    "last byte gone": lambda data, *_: data[:-1],
    "gone": lambda *_: None,
    "emptied": lambda *_: b"",
    "zeroed": lambda data, *_: bytes(len(data)),
    "a stretch zeroed": lambda data, _, chooser: _blanked(data, chooser),
    "longer": lambda data, _, chooser: data + chooser.randbytes(chooser.randrange(1, 50)),
    "another file in its place": lambda _, other, __: other,
    "noise": lambda data, _, chooser: chooser.randbytes(len(data)),
}
RANDOM = {"a bit turned", "cut", "a stretch zeroed", "longer", "another file in its place"}


def _flipped(data: bytes, chooser: random.Random) -> bytes:
    at = chooser.randrange(len(data)) if data else 0
    return (
        data[:at] + bytes([data[at] ^ (1 << chooser.randrange(8))]) + data[at + 1 :]
        if data
        else b"x"
    )


def _blanked(data: bytes, chooser: random.Random) -> bytes:
    at = chooser.randrange(len(data)) if data else 0
    return data[:at] + bytes(min(64, len(data) - at)) + data[at + 64 :]


@pytest.fixture
def saved(scratch: Path) -> tuple[Path, Path]:
    """Give memories and a folder with two generations of their index."""
    root, directory = scratch / "memories", scratch / "indices"
    root.mkdir()
    for number in range(6):
        text = f"# Note {number}\n\nThe harbour lantern, word{number}, by the river [[src/auth.py]] tokens.\n"
        (root / f"{number}.md").write_text(text)
        if number in {3, 5}:
            opened(root, directory).index.save()
    return root, directory


def spoiled(
    directory: Path, chooser: random.Random
) -> Iterator[tuple[Path, str, bytes, bytes | None]]:
    """Yield files of the live generation with every kind of damage to each."""
    live = directory / (directory / "current").read_text()
    files = [directory / "current", *sorted(path for path in live.rglob("*") if path.is_file())]
    for file in files:
        data = file.read_bytes()
        for name, damage in DAMAGES.items():
            for _ in range(6 if name in RANDOM else 1):
                after = damage(data, chooser.choice(files).read_bytes(), chooser)
                if after != data:
                    yield file, name, data, after


def test_every_damage_is_noticed_and_no_answer_is_wrong(
    saved: tuple[Path, Path], tally: Tally
) -> None:
    root, directory = saved
    expected = answers(opened(root, None))
    assert len(expected) > 10
    assert opened(root, directory).believed
    damages = list(spoiled(directory, random.Random(8)))
    assert len(damages) >= 300
    for number, (file, name, data, after) in enumerate(damages):
        file.unlink()
        if after is not None:
            file.write_bytes(after)
        index = make(directory)
        assert not index.open(), (file.name, name)
        # What knows of nothing is built from the files alone; one in ten is asked, to see that it
        # is.
        assert not index.stamps()
        assert index.info().passages == index.info().documents == 0
        assert number % 10 or answers(opened(root, directory)) == expected, (file.name, name)
        tally("R8 damaged index files", damaged=1, noticed=1, wrong=0)
        file.write_bytes(data)
    assert opened(root, directory).believed


def test_an_older_generation_that_is_put_back_is_brought_up_to_the_files(
    saved: tuple[Path, Path],
) -> None:
    root, directory = saved
    live = (directory / "current").read_text()
    older = next(path.name for path in directory.iterdir() if path.is_dir() and path.name != live)
    (directory / "current").write_text(older)
    index = opened(root, directory)
    assert index.believed
    assert answers(index) == answers(opened(root, None))


# --- clocks ---


def test_whatever_is_deleted_or_merged_in_one_second_comes_back(
    scratch: Path, tally: Tally
) -> None:
    store = FileStore(scratch, MEMORY, now=lambda: NOW)
    moved = {}
    for number in range(1000):
        text = f"text {number}"
        store.commit([Put("a.md", text)])
        if number % 2:
            changes: list[Change] = [Put("all.md", f"merged {number}", Expect.ANY), Discard("a.md")]
            moved[text] = store.commit(changes, "merge")[1].moved_to
        else:
            moved[text] = store.commit([Discard("a.md")], "delete")[0].moved_to
    kept = {store.recover(revision.version) for revision in store.history("a.md")}
    back = sum(Path(place).read_text() == text and text in kept for text, place in moved.items())
    tally("R10 deleted and merged in one second", discarded=len(moved), recovered=back)
    assert back == len(moved) == len(set(moved.values())) == 1000


def test_a_clock_that_jumps_loses_nothing_and_publishes_the_newest(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, directory = scratch / "memories", scratch / "indices"
    real, moved = time.time_ns(), []
    for step, days in enumerate((0, 400, -400, 0, 0, -800)):
        skew = timedelta(days=days)
        now = real + int(skew.total_seconds()) * 1_000_000_000
        monkeypatch.setattr(time, "time_ns", lambda now=now: now)
        monkeypatch.setattr(time, "time", lambda now=now: now / 1e9)
        store = FileStore(root, MEMORY, now=lambda skew=skew: NOW + skew)  # type: ignore[misc]
        store.commit([Put("kept.md", f"step{step}"), Put("gone.md", f"gone{step}", Expect.ABSENT)])
        moved.append(store.commit([Discard("gone.md")], "delete")[0].moved_to)
        opened(root, directory).index.save()
        again = opened(root, directory)
        assert again.believed
        rebuilt = opened(root, None).index.contents()
        assert not compare(again.index.contents(), rebuilt).difference
        found = again.corpus.search(Query(probes=(Probe(f"step{step}"),)), NOW).hits
        assert [hit.chunk.text for hit in found] == [f"step{step}"]
    assert [Path(place).read_text() for place in moved] == [f"gone{step}" for step in range(6)]
    assert len([path for path in directory.iterdir() if path.is_dir()]) == 2
    texts = [store.recover(revision.version) for revision in store.history("kept.md")]
    assert texts == [f"step{step}" for step in reversed(range(5))]
