from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.engines.reads import listed, matching

from ragdocs.engines.local.index import LocalIndex
from ragdocs.protocols import Vectors
from ragdocs.search.calibration import UNRELATED
from ragdocs.search.corpus import Corpus
from ragdocs.search.encoders.cache import CachedEncoder
from ragdocs.search.encoders.hashing import HashEncoder
from ragdocs.search.encoders.minilm import MINILM, OnnxEncoder
from ragdocs.serve import live as keeping
from ragdocs.serve.live import Live
from ragdocs.serve.surface import catalog
from ragdocs.types import Probe, Query
from ragdocs.verbs.quality.health import compare

if TYPE_CHECKING:
    from tests.conftest import Project

    Serve = Callable[..., Live]

# Far above what anything here takes; only a hanging test waits so long.
PATIENCE = 120.0


def until(true: Callable[[], object], what: str = "") -> None:
    """Look again and again until something is so."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > deadline:
            pytest.fail(f"never happened: {what or true}")
        time.sleep(0.02)


@pytest.fixture
def serve(project: Project) -> Iterator[Serve]:
    """Start to serve the project as it is now, and wait for the first index."""
    started: list[Live] = []

    def start(**flags: object) -> Live:
        live = Live(project.config(**{"watch.debounce_ms": 50, **flags}))
        started.append(live)
        live.start()
        until(lambda: live.settled, "the first index")
        return live

    yield start
    for live in started:
        live.stop()
        if live._thread:
            live._thread.join(PATIENCE)


def paths(live: Live, lane: str = "docs") -> list[str]:
    return listed(live.workspace().open_lanes[lane].index)


def matched(live: Live, text: str, lane: str = "docs") -> list[str]:
    return sorted(set(matching(live.workspace().open_lanes[lane].index, text, k=1000)))


def _embedded(corpus: Corpus) -> bool:
    counts = corpus.counts()
    return counts["vectors"] == counts["chunks"]


def assert_true_to_files(live: Live) -> None:
    """Compare with what the files alone would give, once the last vectors are there."""
    workspace = live.workspace()
    for name, open_lane in workspace.open_lanes.items():
        index = open_lane.index
        until(partial(_embedded, open_lane.corpus), "every vector")
        assert compare(index.contents(), workspace.rebuilt(name).contents()).difference == ""


def status(live: Live, lane: str) -> dict[str, object]:
    return next(asdict(one) for one in live.workspace().status().lanes if one.lane == lane)


# --- how editors save ---


def save_in_place(path: Path, text: str) -> None:
    path.write_text(text)


def save_like_vim(path: Path, text: str) -> None:
    probe, backup = path.with_name("4913"), path.with_name(f"{path.name}~")
    probe.touch()
    probe.unlink()
    path.rename(backup)
    path.write_text(text)
    backup.unlink()


def save_by_rename(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(text)
    temporary.replace(path)


def save_by_removing_first(path: Path, text: str) -> None:
    path.unlink()
    path.write_text(text)


@pytest.mark.parametrize(
    "save", [save_in_place, save_like_vim, save_by_rename, save_by_removing_first]
)
def test_a_save_is_found_however_the_editor_does_it(
    project: Project, serve: Serve, save: Callable[[Path, str], None]
) -> None:
    for lane, path in (
        ("docs", project.doc("a.md", "old words")),
        ("memory", project.memory("a.md", "old words")),
    ):
        live = serve()
        for turn in range(3):
            save(path, f"fresh{turn} words")
            until(partial(matched, live, f"fresh{turn}", lane), f"save {turn}")
        assert len(matched(live, "words", lane)) == 1
        live.stop()


def test_edits_new_files_and_deletions_are_followed_in_both_lanes(
    project: Project, serve: Serve
) -> None:
    project.doc("a.md", "alpha words")
    readme = project.write("README.md", "# Readme\n\nalpha words\n")
    project.memory("a.md", "alpha words")
    live = serve()
    project.doc("deep/er/b.md", "beta words")
    project.memory("2026-11-16/b.md", "beta words [[src/x.py]]")
    readme.write_text("# Readme\n\ngamma words\n")
    until(lambda: matched(live, "beta") == ["docs/deep/er/b.md"], "a new folder")
    until(lambda: matched(live, "gamma") == ["README.md"], "the file in the root")
    until(lambda: matched(live, "beta", "memory") == ["2026-11-16/b.md"], "a new memory")
    (project.root / "docs/a.md").unlink()
    (project.root / ".memories/a.md").unlink()
    until(lambda: paths(live) == ["README.md", "docs/deep/er/b.md"], "a deletion")
    until(lambda: paths(live, "memory") == ["2026-11-16/b.md"], "a deleted memory")
    assert_true_to_files(live)


def test_what_belongs_to_no_lane_changes_nothing(project: Project, serve: Serve) -> None:
    project.doc("a.md", "alpha")
    project.memory("a.md", "alpha")
    live = serve()
    for name in (
        "src/x.md",
        "docs/.hidden.md",
        "docs/x.png",
        ".memories/.trash/x.md",
        ".memories/indices/x.md",
        "x.md",
    ):
        project.write(name, "stray")
    project.doc("sentinel.md", "sentinel")
    project.memory("sentinel.md", "sentinel")
    until(
        lambda: matched(live, "sentinel") and matched(live, "sentinel", "memory"), "the sentinels"
    )
    assert matched(live, "stray") == matched(live, "stray", "memory") == []


# --- many files at once ---


def git(root: Path, *arguments: str) -> None:
    identity = (
        "-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "commit.gpgSign=false",
    )  # fmt: skip
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


def test_a_checkout_of_another_branch_is_followed(project: Project, serve: Serve) -> None:
    git(project.root, "init", "-q", "-b", "main")
    for n in range(200):
        project.doc(f"f{n % 5}/{n}.md", f"# Page {n}\n\nmainword text number{n}\n")
    git(project.root, "add", ".")
    git(project.root, "commit", "-q", "-m", "main")
    git(project.root, "checkout", "-q", "-b", "other")
    for n in range(200):
        project.doc(f"f{n % 5}/{n}.md", f"# Page {n}\n\notherword text number{n}\n")
    shutil.rmtree(project.root / "docs/f0")
    for n in range(30):
        project.doc(f"g/{n}.md", f"# New {n}\n\notherword extra{n}\n")
    git(project.root, "add", "-A")
    git(project.root, "commit", "-q", "-m", "other")
    git(project.root, "checkout", "-q", "main")
    live = serve()
    assert len(matched(live, "mainword")) == 200
    git(project.root, "checkout", "-q", "other")
    until(
        lambda: len(matched(live, "otherword")) == 190 and not matched(live, "mainword"),
        "the other branch",
    )
    git(project.root, "checkout", "-q", "main")
    until(
        lambda: len(matched(live, "mainword")) == 200 and not matched(live, "otherword"), "and back"
    )
    assert_true_to_files(live)


def test_a_mass_move_of_a_folder_is_followed(project: Project, serve: Serve) -> None:
    for n in range(100):
        project.doc(f"old/{n}.md", f"note number{n}")
    live = serve()
    (project.root / "docs/old").rename(project.root / "docs/new")
    until(lambda: paths(live) == sorted(f"docs/new/{n}.md" for n in range(100)), "the move")
    (project.root / "docs/new/7.md").write_text("edited after the move")
    until(lambda: matched(live, "edited") == ["docs/new/7.md"], "an edit in the moved folder")
    (project.root / "docs/new").rename(project.root / "elsewhere")
    until(lambda: paths(live) == [], "the move out of the lane")


@pytest.mark.parametrize("folder", ["docs", "docs/deep", ".memories", ".memories/deep"])
def test_a_folder_may_go_and_come_back(project: Project, serve: Serve, folder: str) -> None:
    lane = "docs" if folder.startswith("docs") else "memory"
    for n in range(30):
        project.write(f"{folder}/{n}.md", f"note number{n}")
    live = serve()
    place, away = project.root / folder, project.root / "away"
    place.rename(away)
    until(lambda: paths(live, lane) == [], "the absence")
    away.rename(place)
    until(lambda: len(paths(live, lane)) == 30, "the return")
    (place / "3.md").write_text("edited afterwards")
    until(lambda: matched(live, "afterwards", lane), "an edit in what came back")


@pytest.mark.parametrize("folder", ["docs", ".memories"])
def test_a_folder_that_is_exchanged_for_another_is_still_followed(
    project: Project, serve: Serve, folder: str
) -> None:
    lane = "docs" if folder == "docs" else "memory"
    project.write(f"{folder}/a.md", "first")
    project.write("next/a.md", "second")
    live = serve()
    (project.root / folder).rename(project.root / "before")
    (project.root / "next").rename(project.root / folder)
    until(lambda: matched(live, "second", lane), "the other folder")
    project.write(f"{folder}/a.md", "third")
    until(lambda: matched(live, "third", lane), "an edit in the other folder")


@pytest.mark.parametrize("folder", ["docs", ".memories"])
def test_a_folder_that_is_made_anew_at_once_is_still_followed(
    project: Project, serve: Serve, folder: str
) -> None:
    lane = "docs" if folder == "docs" else "memory"
    project.write(f"{folder}/a.md", "first")
    live = serve()
    for turn in range(3):
        shutil.rmtree(project.root / folder)
        project.write(f"{folder}/a.md", f"made{turn}")
        until(partial(matched, live, f"made{turn}", lane), f"what was made in turn {turn}")
        project.write(f"{folder}/a.md", f"edited{turn}")
        until(partial(matched, live, f"edited{turn}", lane), f"the edit in turn {turn}")


def test_memories_made_after_the_start_are_found(project: Project, serve: Serve) -> None:
    project.doc("a.md", "alpha")
    live = serve()
    assert paths(live, "memory") == []
    project.memory("first.md", "the very first")
    until(lambda: matched(live, "first", "memory") == ["first.md"], "the first memory")
    project.memory("second.md", "the second")
    until(lambda: matched(live, "second", "memory") == ["second.md"], "the second memory")


def count_encoding(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    encoded: list[str] = []
    encode = HashEncoder.encode

    def counting(self: HashEncoder, texts: Sequence[str]) -> Vectors:
        encoded.extend(texts)
        return encode(self, texts)

    monkeypatch.setattr(HashEncoder, "encode", counting)
    return encoded


@pytest.mark.parametrize("files", [2, 40])
def test_a_search_waits_for_the_first_vectors_where_they_are_few(
    project: Project, serve: Serve, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    encode = HashEncoder.encode

    def slowly(self: HashEncoder, texts: Sequence[str]) -> Vectors:
        # As long as it takes to load a model.
        time.sleep(0.3)
        return encode(self, texts)

    monkeypatch.setattr(HashEncoder, "encode", slowly)
    for number in range(files):
        project.doc(f"{number}.md", f"note number{number}")
    live = serve()
    (search_docs,) = [verb for verb in catalog.every() if verb.name == "search_docs"]
    info = live.indexed(search_docs).open_lanes["docs"].index.info()
    has_vectors = info.vectors == info.passages
    assert has_vectors == (files <= keeping.ENCODED_FOR_COMMAND)


def test_a_storm_of_touches_encodes_nothing_again(
    project: Project, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded = count_encoding(monkeypatch)
    files = [project.doc(f"{n}.md", f"note number{n}") for n in range(200)]
    live = serve()

    def passages() -> list[str]:
        return [text for text in encoded if text not in UNRELATED]

    until(lambda: len(passages()) == 200, "the first vectors")
    for turn in range(5):
        for file in files:
            save_by_rename(file, file.read_text())
            os.utime(file, (turn, turn))
    project.doc("sentinel.md", "sentinel")
    until(lambda: len(passages()) > 200, "the sentinel")
    assert passages()[200:] == ["Sentinel\nsentinel"]
    assert live.workspace().open_lanes["docs"].index.info().vectors == 201


# --- the life of a server ---


def beats(live: Live, count: int) -> None:
    """Let the keeper go round so often."""
    seen = {live.heartbeat}
    until(lambda: seen.add(live.heartbeat) or len(seen) > count, "heartbeats")  # type: ignore[func-returns-value]


def test_polling_finds_changes_where_there_are_no_events(project: Project, serve: Serve) -> None:
    path = project.doc("a.md", "alpha")
    live = serve(**{"watch.poll": True})
    assert live.state().watcher == "polling"
    path.write_text("beta")
    project.memory("a.md", "gamma")
    until(lambda: matched(live, "beta") and matched(live, "gamma", "memory"), "the edits")


def test_the_heart_goes_on_beating(project: Project, serve: Serve) -> None:
    project.doc("a.md", "alpha")
    live = serve()
    beats(live, 3)
    state = live.state()
    assert state.ready
    assert state.watcher == "events"
    assert state.heartbeat


def test_a_model_that_nobody_needs_is_given_back_and_comes_back(project: Project) -> None:
    project.write("docs/auth.md", "# Auth\n\nTokens are rotated on every use.\n")
    live = Live(project.config(**{"embedding.model": MINILM}), model_idle_seconds=0.5)
    live.start()
    try:
        until(lambda: live.settled, "the first index")
        encoder = live.workspace().encoder
        assert isinstance(encoder, CachedEncoder)
        model = encoder._encoder
        assert isinstance(model, OnnxEncoder)
        before = encoder.encode(["a question that was not asked before"])
        assert model._loaded
        until(lambda: model._loaded is None, "the model is given back")
        corpus = live.workspace().open_lanes["docs"].corpus
        query = Query(probes=(Probe("how often are tokens rotated"),))
        findings = corpus.search(query, datetime.now(UTC))
        assert findings.hits[0].document.path == "docs/auth.md"
        assert (model.encode(["a question that was not asked before"]) == before).all()
    finally:
        live.stop()


def test_without_watching_a_server_still_indexes_at_its_start(
    project: Project, serve: Serve
) -> None:
    project.doc("a.md", "alpha")
    live = serve(**{"watch.enabled": False})
    assert matched(live, "alpha") == ["docs/a.md"]
    assert live.state().watcher == "off"


def test_one_lane_that_cannot_be_read_does_not_stop_the_other(
    project: Project, serve: Serve
) -> None:
    path = project.doc("a.md", "alpha")
    project.memory("a.md", "precious")
    live = serve()
    memories, away = project.root / ".memories", project.root / "away"
    memories.rename(away)
    memories.write_text("not a folder")
    path.write_text("beta")
    until(lambda: matched(live, "beta"), "an edit in the lane that can be read")
    until(lambda: live.workspace().open_lanes["docs"].index.info().vectors == 1, "its vector")
    assert matched(live, "precious", "memory") == ["a.md"]
    assert "not a folder" in str(status(live, "memory")["notes"])
    memories.unlink()
    away.rename(memories)
    (memories / "b.md").write_text("repaired")
    until(lambda: matched(live, "repaired", "memory"), "an edit after the repair")


def test_a_lane_that_cannot_be_read_at_the_start_is_told_and_found_later(
    project: Project, serve: Serve
) -> None:
    project.doc("a.md", "alpha")
    (project.root / ".memories").write_text("not a folder")
    live = serve()
    until(lambda: live.ready, "readiness")
    until(
        lambda: live.workspace().open_lanes["docs"].index.info().vectors == 1,
        "the vector of the other lane",
    )
    (project.root / ".memories").unlink()
    project.memory("a.md", "found later")
    until(lambda: matched(live, "later", "memory"), "the memory")


def pointer(project: Project) -> Path:
    return project.root / ".memories/indices/current"


def test_a_snapshot_is_written_when_it_is_quiet(
    project: Project, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "QUIET_SECONDS", 0.3)
    project.memory("a.md", "alpha")
    live = serve()
    until(pointer(project).exists, "the first snapshot")
    first = pointer(project).read_text()
    project.memory("b.md", "beta")
    until(lambda: pointer(project).read_text() != first, "the second snapshot")
    index = live.workspace().open_lanes["memory"].index
    assert isinstance(index, LocalIndex)
    until(lambda: not index.dirty, "a clean index")
    settled = pointer(project).read_text()
    beats(live, 4)
    assert pointer(project).read_text() == settled


def test_a_failing_snapshot_is_told_once_and_tried_again(
    project: Project,
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(keeping, "QUIET_SECONDS", 0.4)
    project.memory("a.md", "alpha")
    (project.root / ".memories/indices").write_text("in the way")
    live = serve()
    until(lambda: "could not be saved" in caplog.text, "the complaint")
    beats(live, 8)
    assert caplog.text.count("could not be saved") == 1
    (project.root / ".memories/indices").unlink()
    until(pointer(project).exists, "the snapshot")


LOOK = """
import json, sys
from pathlib import Path
from ragdocs import config
from ragdocs.workspace import Workspace

root = Path(sys.argv[1])
workspace = Workspace(config.load(root, project=root, flags={"embedding.model": "hash", "memory.enabled": True}))
workspace.load()
print(json.dumps({name: lane.corpus.counts() for name, lane in workspace.open_lanes.items()}))
"""


def test_what_is_written_just_before_the_end_is_in_the_snapshot_that_another_process_opens(
    project: Project, serve: Serve
) -> None:
    project.doc("a.md", "alpha")
    live = serve()
    live.workspace().memories.create("late.md", "written at the last moment", ["x"])
    live.stop()
    seen = subprocess.run(
        [sys.executable, "-c", LOOK, str(project.root)], check=True, capture_output=True, text=True
    )
    counts = json.loads(seen.stdout)
    assert counts["memory"] == {"documents": 1, "chunks": 1, "vectors": 1, "links": 0}
    assert counts["docs"]["documents"] == 1


def test_stopping_in_the_middle_of_indexing_is_prompt_and_keeps_what_was_done(
    project: Project, serve: Serve
) -> None:
    for n in range(1200):
        project.doc(f"{n}.md", f"# Note {n}\n\n" + f"word{n} " * 100)
    live = Live(project.config())
    live.start()
    until(lambda: live.progress.startswith("indexing"), "the beginning")
    before = time.monotonic()
    live.stop()
    # A second and a half, on a busy machine.
    assert time.monotonic() - before < 15
    assert live._thread
    live._thread.join(PATIENCE)
    done = live.workspace().open_lanes["docs"].index.info().documents
    assert 0 < done < 1200
    again = serve()
    assert len(paths(again)) == 1200
