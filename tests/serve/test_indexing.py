"""Answers while the index grows, and who is at work on it."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.serve.windows import RAGDOCS, until

from ragdocs.search.encoders.hashing import HashEncoder
from ragdocs.serve import indexing
from ragdocs.serve.cli import app as cli
from ragdocs.serve.cli import progress as showing
from ragdocs.serve.cli import project as opening
from ragdocs.serve.live import Live

if TYPE_CHECKING:
    from tests.conftest import Project

MANY = 400


def run(project: Project, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[Any, str]:
    options = ["--project", str(project.root), "--set", "embedding.model=hash"]
    assert cli.main([*words, "--json", *options]) == 0
    captured = capsys.readouterr()
    return json.loads(captured.out), captured.err


def write_many(project: Project) -> None:
    project.write("config.toml", "[memory]\nenabled = true\n")
    for number in range(MANY):
        project.doc(f"page{number:03}.md", f"# Page {number}\n\nThe zebra{number} is here.\n")


def test_a_first_search_answers_before_everything_is_indexed_and_says_how_far_it_is(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_many(project)
    patience = opening.ANSWER_SECONDS
    monkeypatch.setattr(opening, "ANSWER_SECONDS", 0.0)
    # Files that changed last are read first.
    answer, error = run(project, capsys, "search", "--lane", "docs", "zebra399")
    assert answer["result"][0]["path"] == "docs/page399.md"
    assert any(note.startswith("still indexing: 300 files") for note in answer["notes"])
    assert any(note.startswith("still embedding: 0 of 100") for note in answer["notes"])
    assert "`ragdocs index` completes it" in error
    answer, _ = run(project, capsys, "search", "--lane", "docs", "zebra0")
    # Each search brings the index further, by as many files as there is time for.
    assert not any(note.startswith("still indexing: 300 files") for note in answer["notes"])
    monkeypatch.setattr(opening, "ANSWER_SECONDS", patience)
    answer, error = run(project, capsys, "search", "--lane", "docs", "zebra0")
    assert "docs/page000.md" in json.dumps(answer)
    assert not any(note.startswith("still") for note in answer["notes"])
    assert error == ""


def test_a_command_that_cannot_say_what_is_missing_waits_for_all_of_it(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_many(project)
    monkeypatch.setattr(opening, "ANSWER_SECONDS", 0.0)
    answer, _ = run(project, capsys, "docs", "read", "docs/page399.md")
    assert "zebra399" in answer["content"]


def test_the_time_of_indexing_includes_embedding(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project.doc("a.md", "# A\n\nThe zebra.\n")
    encode = HashEncoder.encode

    def slowly(encoder: HashEncoder, texts: Any) -> Any:
        time.sleep(0.5)
        return encode(encoder, texts)

    monkeypatch.setattr(HashEncoder, "encode", slowly)
    answer, _ = run(project, capsys, "index")
    assert answer["encoded"] == 1
    assert answer["lanes"]["docs"]["seconds"] >= 0.5
    assert answer["seconds"] >= 0.5


def test_an_interrupted_indexing_keeps_what_is_done(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_many(project)
    encode = HashEncoder.encode
    batches = []

    def interrupted(encoder: HashEncoder, texts: Any) -> Any:
        batches.append(len(texts))
        if len(batches) > 2:
            raise KeyboardInterrupt
        return encode(encoder, texts)

    monkeypatch.setattr(HashEncoder, "encode", interrupted)
    options = ["--project", str(project.root), "--set", "embedding.model=hash"]
    assert cli.main(["index", *options]) == cli.INTERRUPTED
    monkeypatch.setattr(HashEncoder, "encode", encode)
    capsys.readouterr()
    status, _ = run(project, capsys, "status")
    assert status["lanes"][0]["documents"] == MANY
    assert status["lanes"][0]["vectors"] == sum(batches[:2])


def test_a_log_gets_lines_with_the_time_left(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_many(project)
    monkeypatch.setattr(showing, "LINE_SECONDS", 0.0)
    monkeypatch.setattr(showing, "PATIENCE_SECONDS", 0.0)
    _, error = run(project, capsys, "index")
    assert "docs: indexing: 100 of 400\n" in error
    assert "docs: indexing: 400 of 400, about " in error
    assert "docs: embedding: 400 of 400, about 0 s left\n" in error


def test_a_terminal_gets_a_bar_for_each_stage(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    write_many(project)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(showing, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(sys, "stderr", terminal)
    run(project, capsys, "index")
    assert "docs: indexing" in terminal.getvalue()
    assert "docs: embedding" in terminal.getvalue()


def indexing_process(project: Project) -> subprocess.Popen[bytes]:
    """Start `ragdocs index` and stop it where other processes can see that it is at work."""
    for number in range(MANY):
        text = "".join(f"## Part {part}\n\n{'zebra okapi quagga ' * 40}\n\n" for part in range(40))
        project.doc(f"large{number:03}.md", f"# Page {number}\n\n{text}")
    process = subprocess.Popen(
        [*RAGDOCS, "index", "--project", str(project.root), "--set", "embedding.model=hash"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(lambda: indexing.at_work(project.config()))
    os.kill(process.pid, signal.SIGSTOP)
    return process


def test_status_tells_that_another_process_is_indexing_until_it_is_gone(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.write("config.toml", "[memory]\nenabled = true\n")
    process = indexing_process(project)
    try:
        status, _ = run(project, capsys, "status")
        docs, memory = status["lanes"]
        words = f"process {process.pid} is at work on the index: docs: indexing, "
        assert any(note.startswith(words) for note in docs["notes"]), docs["notes"]
        assert not any("at work" in note for note in memory["notes"])
    finally:
        process.kill()
        process.wait()
    status, _ = run(project, capsys, "status")
    assert not any("at work" in note for note in status["lanes"][0]["notes"])
    assert not list(Path(os.environ["XDG_CACHE_HOME"]).rglob("indexing-*.json"))


def test_a_server_tells_how_far_it_is_and_stops_when_it_is_done(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_many(project)
    monkeypatch.setattr(indexing, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(indexing, "WRITE_SECONDS", 0.0)
    encode = HashEncoder.encode

    def slowly(encoder: HashEncoder, texts: Any) -> Any:
        time.sleep(0.2)
        return encode(encoder, texts)

    monkeypatch.setattr(HashEncoder, "encode", slowly)
    live = Live(project.config(**{"watch.enabled": False}))
    file = indexing.Announcement(live.config)._path
    stages = set()

    def has_shown_both() -> bool:
        state = indexing._read(file)
        if state:
            stages.add(state.stage)
        return stages == {"docs: indexing", "docs: embedding"}

    live.start()
    try:
        until(has_shown_both)
        until(lambda: not file.exists())
        assert live.workspace().open_lanes["docs"].corpus.info().vectors == MANY
    finally:
        live.stop()


def test_a_process_id_that_was_given_away_again_is_recognised(project: Project) -> None:
    announcement = indexing.Announcement(project.config())
    state = indexing.Indexing(1, "another time", "docs: indexing", 1, 2, None)
    announcement._write(state)
    assert indexing.at_work(project.config()) == []
    announcement._path.write_text("{")
    assert indexing.at_work(project.config()) == []
    assert not announcement._path.exists()


def test_durations_read_as_people_say_them() -> None:
    assert indexing.duration(3.4) == "3 s"
    assert indexing.duration(1912) == "31 min 52 s"
    assert indexing.duration(7300) == "2 h 1 min"
