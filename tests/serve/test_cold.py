"""A server that was just started answers from the files what needs no index."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.faults.servers import RAGDOCS, Line, answer_of, open_line

if TYPE_CHECKING:
    from tests.conftest import Project

MEMORIES = 30
# So many that a first look at all of them takes longer than a caller waits.
PAGES = 3000
PATIENCE = 60.0


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A large folder of documentation, made once and linked into each project."""
    folder = tmp_path_factory.mktemp("large")
    words = [f"word{number}" for number in range(3000)]
    source = random.Random(7)
    for number in range(PAGES):
        sections = []
        for section in range(8):
            text = " ".join(source.choices(words, k=150))
            sections.append(f"## Part {section}\n\n{text}\n")
        body = "\n".join(sections)
        (folder / f"page-{number:04}.md").write_text(f"# Page {number}\n\n{body}")
    return folder


@pytest.fixture
def noted(project: Project) -> Project:
    """A project with thirty memories."""
    for number in range(MEMORIES):
        text = f"# Note {number}\n\nThe gateway of zone {number} refreshes tokens hourly.\n"
        project.memory(f"note-{number:02}.md", f"---\ntags: [zones]\ntype: fact\n---\n{text}")
    return project


@pytest.fixture
def cold(noted: Project, pages: Path) -> Project:
    """A project with thirty memories beside large documentation, that was never indexed."""
    add_documentation(noted, pages)
    return noted


def add_documentation(project: Project, pages: Path) -> None:
    shutil.copytree(pages, project.root / "docs", copy_function=os.link)


@pytest.fixture
def lines() -> Iterator[list[Line]]:
    opened: list[Line] = []
    yield opened
    for line in opened:
        line.kill()


def start(project: Project, lines: list[Line]) -> Line:
    """Start a server as a client does, and shake hands."""
    command = [*RAGDOCS, "mcp", "--project", str(project.root)]
    for setting in ("embedding.model=hash", "memory.enabled=true"):
        command += ["--set", setting]
    environment = {**os.environ, "RAGDOCS_SERVER_SHARED": "false"}
    line = open_line(command, project.root.parent / f"log-{len(lines)}", environment)
    lines.append(line)
    return line.greet(PATIENCE)


def assert_answers_from_files(line: Line) -> None:
    """Ask what needs no index, while the documentation is still being read."""
    deadline = time.monotonic() + PATIENCE
    recalled = line.call("recall")
    while not recalled["result"]:
        # On a very busy machine the first files take longer than a caller waits, and it is told so.
        assert recalled["notes"], recalled
        assert time.monotonic() < deadline, recalled
        recalled = line.call("recall")
    assert [memory["path"] for memory in recalled["result"]][:2] == [
        ".memories/note-29.md",
        ".memories/note-28.md",
    ]
    assert len(recalled["result"]) + recalled["omitted"] == MEMORIES
    stats = line.call("get_memory_stats")
    assert (stats["count"], stats["tags"]) == (MEMORIES, {"zones": MEMORIES})
    page = line.call("read_doc", path=f"docs/page-{PAGES // 2:04}.md")
    assert page["title"] == f"Page {PAGES // 2}"
    memory = line.call("read_memory", filename="note-07.md")
    assert "zone 7" in memory["content"]
    found = line.call("search_memories", query="gateway of zone 11 refreshes tokens")
    assert found["result"][0]["file_path"].endswith("note-11.md")


def test_a_cold_server_answers_from_the_files(cold: Project, lines: list[Line]) -> None:
    line = start(cold, lines)
    assert_answers_from_files(line)
    documents = line.call("search_docs", query="word17 word18 word19")
    assert any(note.startswith("still indexing: ") for note in documents["notes"])


@pytest.mark.parametrize("harm", ["damaged", "read-only", "other version"])
def test_an_index_that_cannot_be_used_does_not_empty_the_answers(
    noted: Project, pages: Path, lines: list[Line], harm: str
) -> None:
    assert_answers_in_spite_of(harm, noted, pages, lines)


def test_a_damaged_index_does_not_empty_the_answers_on_any_system(
    noted: Project, pages: Path, lines: list[Line], portable: None
) -> None:
    assert_answers_in_spite_of("damaged", noted, pages, lines)


def assert_answers_in_spite_of(harm: str, noted: Project, pages: Path, lines: list[Line]) -> None:
    noted.open().save()
    indices = [path for path in noted.root.rglob("indices") if path.is_dir()]
    assert indices
    add_documentation(noted, pages)
    for folder in indices:
        hurt(folder, harm)
    try:
        assert_answers_from_files(start(noted, lines))
    finally:
        for folder in indices:
            restore(folder)


def hurt(folder: Path, harm: str) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    for path in files:
        if harm == "damaged":
            path.write_bytes(path.read_bytes()[::-1])
        elif harm == "other version" and path.suffix == ".json":
            manifest = json.loads(path.read_bytes())
            if "recipe" in manifest:
                manifest["recipe"]["format"] = "0"
                path.write_text(json.dumps(manifest))
    if harm == "read-only":
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o500 if path.is_dir() else 0o400)


def restore(folder: Path) -> None:
    folder.chmod(0o700)
    for path in folder.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)


def test_a_client_that_waits_is_told_each_second_how_far_the_index_is(
    cold: Project, lines: list[Line]
) -> None:
    line = start(cold, lines)
    arguments = {"query": "word17 word18 word19"}
    meta = {"progressToken": "waiting"}
    number = line.send("tools/call", name="search_docs", arguments=arguments, _meta=meta)
    began = time.monotonic()
    answer_of(line.wait_for(number, PATIENCE))
    waited = time.monotonic() - began
    reports = []
    for message in line.notifications:
        if message["method"] == "notifications/progress":
            reports.append(message["params"])
    # At least one for every two seconds: a busy machine is late.
    assert len(reports) >= waited // 2
    assert all(report["message"] for report in reports)
