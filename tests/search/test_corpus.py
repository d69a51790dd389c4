from __future__ import annotations

import contextlib
import os
import random
import shutil
import tempfile
import threading
import time
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.engines.reads import ANYTHING, links_to, matching

from ragdocs.engines.local.index import LocalIndex
from ragdocs.errors import UnavailableError
from ragdocs.lanes import MEMORY
from ragdocs.protocols import ProbeVector, Vectors
from ragdocs.search import corpus as pipeline
from ragdocs.search.corpus import Corpus
from ragdocs.search.encoders.hashing import HashEncoder
from ragdocs.stores.files.store import FileStore
from ragdocs.types import FRESH, Expect, Findings, Probe, Put, Query, Scan, Source

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


class CountingStore(FileStore):
    """A store of real files that notes what is read and how often it is looked at."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, MEMORY)
        self.reads: list[str] = []
        self.scans = 0
        # What the disk takes for each file.
        self.seconds = 0.0

    def read(self, path: str) -> Source:
        self.reads.append(path)
        time.sleep(self.seconds)
        return super().read(path)

    def scan(self, paths: Iterable[str] | None = None) -> Scan:
        self.scans += 1
        return super().scan(paths)


class CountingEncoder(HashEncoder):
    """The small encoder, with a count of the texts it was given, that may be taken away."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.gone = ""

    def rest(self, _: float, /) -> bool:
        return False

    def prepare(self) -> None:
        pass

    def encode(self, texts: Sequence[str]) -> Vectors:
        if self.gone:
            raise UnavailableError(self.gone)
        self.texts += texts
        return super().encode(texts)


class Bench:
    """A corpus over a real folder, with everything it is made of."""

    def __init__(self, root: Path, indices: Path | None = None) -> None:
        self.root = root
        self.root.mkdir(exist_ok=True)
        self.store = CountingStore(root)
        self.encoder = CountingEncoder()
        self.index = LocalIndex(
            indices, recipe="1", encoder=self.encoder.identity, dim=self.encoder.dim, key=b"k"
        )
        self.corpus = Corpus(MEMORY, self.store, self.index, self.encoder)

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def settle(self) -> None:
        """Index everything, and go on until no file is too fresh to be sure of."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            self.store.reads.clear()
            self.corpus.sync()
            if not self.store.reads:
                self.corpus.embed()
                self.encoder.texts.clear()
                self.store.scans = 0
                return
        pytest.fail(f"still reading {self.store.reads}")

    def search(self, text: str, limit: int = 5) -> Findings:
        return self.corpus.search(Query(probes=(Probe(text),), limit=limit), NOW)

    def found(self, text: str) -> list[str]:
        return [hit.document.path for hit in self.search(text).hits]

    def matched(self, text: str) -> list[str]:
        return matching(self.index, text)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / ".memories", tmp_path / "indices")


# --- reading only what changed ---


def test_only_changed_files_are_read(bench: Bench) -> None:
    for n in range(20):
        bench.write(f"f{n % 3}/{n}.md", f"note number{n}")
    bench.settle()
    bench.write("f1/4.md", "changed")
    bench.write("new.md", "brand new")
    (bench.root / "f2/5.md").unlink()
    report = bench.corpus.sync()
    assert sorted(bench.store.reads) == ["f1/4.md", "new.md"]
    assert (report.added, report.changed, report.removed, report.unchanged) == (1, 1, 1, 18)
    assert bench.matched("number4") == bench.matched("number5") == []


def test_the_files_that_changed_last_are_read_first(bench: Bench) -> None:
    for age, name in enumerate(("b.md", "c.md", "a.md")):
        path = bench.write(name, f"note {name}")
        os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    bench.corpus.sync()
    assert bench.store.reads == ["b.md", "c.md", "a.md"]


def test_a_touched_file_is_read_once_and_neither_indexed_nor_encoded_again(bench: Bench) -> None:
    path = bench.write("a.md", "same text")
    bench.settle()
    os.utime(path, (1, 1))
    report = bench.corpus.sync()
    assert (report.changed, report.unchanged) == (0, 1)
    assert bench.store.reads == ["a.md"]
    assert bench.corpus.embed() == 0
    bench.settle()
    assert bench.corpus.sync().unchanged == 1
    assert bench.store.reads == []


def test_a_file_that_is_only_read_again_to_be_sure_does_not_keep_others_waiting(
    bench: Bench,
) -> None:
    bench.write("older.md", "not indexed yet")
    stamp = ""
    while not stamp.startswith(FRESH):
        bench.write("newer.md", "indexed at once")
        bench.corpus.sync(["newer.md"])
        stamp, _ = bench.index.stamps()["newer.md"]
    bench.store.reads.clear()
    unread: list[int] = []
    bench.corpus.sync(progress=lambda *_: unread.append(bench.corpus.unread))
    assert bench.store.reads == ["older.md", "newer.md"]
    assert unread == [0]


def test_a_sync_of_some_paths_leaves_the_others_alone(bench: Bench) -> None:
    for name in ("f/a.md", "f/b.md", "fg.md", "c.md"):
        bench.write(name, f"old {name}")
    bench.settle()
    for name in ("f/a.md", "fg.md", "c.md"):
        bench.write(name, f"fresh {name}")
    (bench.root / "f/b.md").unlink()
    report = bench.corpus.sync(["f", "nowhere", "c.md"])
    assert (report.changed, report.removed) == (2, 1)
    assert sorted(bench.matched("fresh")) == ["c.md", "f/a.md"]
    assert bench.matched("old") == ["fg.md"]


def test_same_length_edits_within_one_tick_are_not_missed(bench: Bench) -> None:
    for n in range(30):
        bench.write("a.md", f"version{n:02}")
        bench.corpus.sync()
        assert bench.matched(f"version{n:02}") == ["a.md"]


@pytest.mark.parametrize("whole", [True, False])
def test_moves_and_renames_are_followed(bench: Bench, whole: bool) -> None:
    for n in range(5):
        bench.write(f"old/{n}.md", f"note number{n} [[src/x.py]]")
    bench.write("stays.md", "see [[old/3]]")
    bench.settle()
    (bench.root / "old").rename(bench.root / "new")
    (bench.root / "new/3.md").rename(bench.root / "new/three.md")
    report = bench.corpus.sync(None if whole else ["old", "new"])
    assert (report.added, report.removed) == (5, 5)
    assert bench.matched("number3") == ["new/three.md"]
    assert set(links_to(bench.index, "src/x.py")) == {
        f"memory:new/{name}" for name in (0, 1, 2, "three", 4)
    }
    assert set(links_to(bench.index, "old/3")) == {"memory:stays"}


# --- what cannot be read is not gone ---


def test_an_unreadable_file_keeps_its_entry_and_is_reported(bench: Bench) -> None:
    path = bench.write("a.md", "precious words")
    bench.settle()
    path.write_bytes(b"PNG\0\0")
    report = bench.corpus.sync()
    assert "NUL" in report.skipped["a.md"]
    assert bench.found("precious") == ["a.md"]
    bench.write("a.md", "readable again")
    assert bench.corpus.sync().skipped == {}
    assert bench.found("readable") == ["a.md"]


def test_a_problem_is_forgotten_with_its_file(bench: Bench) -> None:
    path = bench.write("f/a.md", "x\0y")
    bench.corpus.sync()
    assert list(bench.corpus.skipped) == ["f/a.md"]
    path.unlink()
    bench.corpus.sync(["f/a.md"])
    assert bench.corpus.skipped == {}


@pytest.mark.parametrize("instead", ["file", "link to nothing", "link elsewhere"])
def test_an_unreadable_root_raises_and_drops_nothing(
    bench: Bench, tmp_path: Path, instead: str
) -> None:
    bench.write("a.md", "precious words")
    bench.settle()
    bench.root.rename(tmp_path / "away")
    (tmp_path / "empty").mkdir()
    if instead == "file":
        bench.root.write_text("x")
    else:
        bench.root.symlink_to(tmp_path / ("nowhere" if instead == "link to nothing" else "empty"))
    for paths in (None, ["a.md"]):
        with pytest.raises(UnavailableError):
            bench.corpus.sync(paths)
    assert bench.found("precious") == ["a.md"]
    bench.root.unlink()
    (tmp_path / "away").rename(bench.root)
    assert bench.corpus.sync().unchanged == 1


@contextlib.contextmanager
def without_rights() -> Iterator[None]:
    """Do something as a user who may not read everything."""
    if os.getuid() == 0:
        os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        if os.geteuid() == 65534:
            os.setresuid(0, 0, 0)


@pytest.mark.skipif(not hasattr(os, "setresuid"), reason="this system has no such users")
def test_a_closed_folder_keeps_its_entries_and_is_reported() -> None:
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    try:
        bench = Bench(place / "memories")
        for name in ("closed/a.md", "closed/deep/b.md", "open/c.md", "secret.md"):
            bench.write(name, f"precious {name}")
        bench.settle()
        (bench.root / "closed").chmod(0)
        (bench.root / "secret.md").chmod(0)
        (bench.root / "open/c.md").unlink()
        with without_rights():
            report = bench.corpus.sync()
        assert report.removed == 1
        assert set(report.skipped) == {"closed", "secret.md"}
        assert sorted(bench.matched("precious")) == ["closed/a.md", "closed/deep/b.md", "secret.md"]
    finally:
        (place / "memories/closed").chmod(0o755)
        shutil.rmtree(place)


def test_a_mass_removal_is_looked_at_twice(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "SECOND_LOOK_SECONDS", 0.01)
    for n in range(30):
        bench.write(f"f/{n}.md", f"note {n}")
    bench.settle()
    for n in range(5):
        (bench.root / f"f/{n}.md").unlink()
    assert bench.corpus.sync().removed == 5
    assert bench.store.scans == 1
    shutil.rmtree(bench.root / "f")
    assert bench.corpus.sync().removed == 25
    assert bench.store.scans == 3


def test_a_folder_that_is_away_for_a_moment_loses_nothing(bench: Bench, tmp_path: Path) -> None:
    for n in range(30):
        bench.write(f"f/{n}.md", f"note {n}")
    bench.settle()
    folder, away = bench.root / "f", tmp_path / "away"
    folder.rename(away)
    scan = bench.store.scan

    def returning(paths: Iterable[str] | None = None) -> Scan:
        seen = scan(paths)
        if away.exists():
            away.rename(folder)
        return seen

    bench.store.scan = returning  # type: ignore[method-assign] # the world moves between two looks
    report = bench.corpus.sync()
    assert (report.removed, report.unchanged) == (0, 30)


# --- vectors ---


def test_an_interrupted_embedding_resumes_where_it_stopped(bench: Bench, tmp_path: Path) -> None:
    for n in range(200):
        bench.write(f"{n}.md", f"note number{n}")
    bench.corpus.sync()
    calls = iter([False, True])
    assert bench.corpus.embed(stop=lambda: next(calls)) == pipeline.ENCODED_AT_ONCE
    assert f"{pipeline.ENCODED_AT_ONCE} of 200" in bench.corpus.notes()[0]
    bench.index.save()
    again = Bench(bench.root, tmp_path / "indices")
    assert again.index.open()
    assert again.corpus.embed() == 200 - pipeline.ENCODED_AT_ONCE
    assert not set(again.encoder.texts) & set(bench.encoder.texts)
    assert again.corpus.notes() == ()


def test_needles_at_every_depth_are_found_by_word_and_by_meaning(bench: Bench) -> None:
    chooser = random.Random(7)
    words = [
        "river",
        "stone",
        "harbour",
        "lantern",
        "meadow",
        "copper",
        "willow",
        "thunder",
        "saddle",
        "ember",
    ]
    needles = {
        n: f"The zq{n}x valve is greased with compound kx{n}y, and vents{n} open."
        for n in range(0, 330, 15)
    }
    sections = []
    for n in range(330):
        sections.append(f"## Part {n}\n\n{' '.join(chooser.choices(words, k=130))}.\n")
        sections.append(
            f"## Valve {n}\n\n{needles[n]} {needles[n]} {needles[n]}\n" if n in needles else ""
        )
    bench.write("long.md", "# Long\n\n" + "\n".join(sections))
    bench.corpus.sync()
    bench.corpus.embed()
    assert (bench.root / "long.md").stat().st_size > 300_000
    for n, needle in needles.items():
        probe = ProbeVector("q", f"zq{n}x", bench.encoder.encode([needle])[0])
        with bench.index.snapshot() as snapshot:
            candidates = snapshot.candidates([probe], [ANYTHING], 1)
            for columns in candidates.found.values():
                ((_, passage, _),) = snapshot.load([candidates.keys[columns[0]]])
                assert f"zq{n}x" in passage.text, n
    print(f"\n{len(needles)} of {len(needles)} needles found by word and by meaning")  # noqa: T201 - the figure is the point


@pytest.mark.parametrize("moment", ["before embedding", "before asking"])
def test_without_its_model_a_corpus_searches_by_words_and_says_so(
    bench: Bench, moment: str
) -> None:
    bench.write("a.md", "tokens expire")
    bench.corpus.sync()
    if moment == "before asking":
        bench.corpus.embed()
    bench.encoder.gone = "the model file is gone"
    assert bench.corpus.embed() == 0
    findings = bench.search("tokens")
    assert [hit.document.path for hit in findings.hits] == ["a.md"]
    assert {signal.source for hit in findings.hits for signal in hit.signals} == {"keyword"}
    assert "the model file is gone" in bench.corpus.notes()[0]
    assert "keyword" in findings.notes[0]


# --- writing ---


def test_a_long_text_is_found_by_its_words_before_it_is_embedded(bench: Bench) -> None:
    text = "\n\n".join(f"## Part {n}\n\n{f'word{n} ' * 120}" for n in range(40))
    bench.corpus.commit([Put("long.md", text)])
    assert len(bench.encoder.texts) == pipeline.ENCODED_IN_A_WRITE
    assert bench.found("word39") == ["long.md"]
    assert "still embedding" in bench.corpus.notes()[0]
    bench.corpus.embed()
    assert bench.corpus.notes() == ()


def test_a_passage_is_not_weaker_for_waiting_for_its_vector(bench: Bench) -> None:
    bench.write("tokens.md", "Tokens are refreshed by the gateway.")
    bench.corpus.sync()
    by_words = bench.search("tokens refreshed").hits[0]
    bench.corpus.commit([Put("other.md", "Another text, which is encoded at once.")])
    assert bench.index.info().vectors == 1
    best = bench.search("tokens refreshed").hits[0]
    assert best.document.path == "tokens.md"
    assert best.score == pytest.approx(by_words.score, abs=0.001)


def test_a_commit_reads_nothing_but_what_it_wrote(bench: Bench) -> None:
    for n in range(10):
        bench.write(f"{n}.md", f"note {n}")
    bench.settle()
    bench.write("5.md", "edited by hand")
    bench.corpus.commit([Put("a.md", "mine")])
    assert bench.store.reads == ["a.md"]
    assert bench.encoder.texts == ["A\nmine"]


def test_a_name_spelled_otherwise_on_disk_is_indexed_under_its_own(bench: Bench) -> None:
    own = unicodedata.normalize("NFD", "größe.md")
    bench.write(own, "old words")
    bench.settle()
    bench.corpus.commit([Put(unicodedata.normalize("NFC", own), "fresh words", Expect.PRESENT)])
    assert bench.matched("fresh") == [own]
    assert bench.matched("old") == []


def test_nobody_is_told_that_there_is_nothing_while_the_first_files_are_read(bench: Bench) -> None:
    for number in range(10):
        bench.write(f"note-{number}.md", f"# Note {number}\n")
    bench.store.seconds = 0.1
    bench.corpus.serve_early()
    first_look = threading.Thread(target=bench.corpus.sync)
    first_look.start()
    while not bench.store.reads:
        time.sleep(0.01)
    assert len(bench.corpus.documents()) == 10
    first_look.join()
    assert bench.corpus.unread == 0
