"""Searches of a large project that has no index yet."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp_types import CallToolResult

from ragdocs.search import early
from ragdocs.search.corpus import FIRST_BATCH
from ragdocs.serve import live as keeping
from ragdocs.serve.live import FEW_FILES, Live
from ragdocs.serve.mcp.server import ToolServer
from ragdocs.serve.surface.call import OBSERVERS

if TYPE_CHECKING:
    from tests.conftest import Project

# Longer than all that is waited for here; only a failing test waits so long.
HELD_SECONDS = 30.0
PAGES = FEW_FILES + 250
BY_WORDS = """\
import sys
from datetime import UTC, datetime
from pathlib import Path
from ragdocs import config
from ragdocs.types import Probe, Query
from ragdocs.workspace import Workspace
root = Path(sys.argv[1])
corpus = Workspace(config.load(root, project=root)).places["docs"].corpus
corpus.sync()
for hit in corpus.search(Query(probes=(Probe("tokens"),)), datetime.now(UTC)).hits:
    print(hit.document.path)
for name in ("faiss", "onnxruntime"):
    print(name, name in sys.modules)
"""
OLDEST = "Only the oldest page speaks of zebras."


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Hold the reading of files after the first step, until the event is set."""
    monkeypatch.setattr(keeping, "EARLY_SECONDS", 0.0)
    monkeypatch.setattr(keeping, "FIRST_INDEX_SECONDS", 10 * HELD_SECONDS)
    # Else a search reads all of these small files itself.
    monkeypatch.setattr(early, "EARLY_SECONDS", 0.0)
    event = threading.Event()
    yield event
    event.set()


def serve(project: Project, pages: int, held: threading.Event, **flags: object) -> Live:
    """Begin to serve so many pages, of which the first names are read last."""
    for number in range(pages):
        text = OLDEST if number == 0 else f"The gateway of zone {number} refreshes tokens."
        project.doc(f"page-{number:04}.md", f"# Page {number}\n\n{text}\n")
    live = Live(project.config(**{"watch.enabled": False, **flags}))

    def hold(lane: str, *_: object) -> None:
        # The reader of files, and not a search that reads some itself.
        if lane == "docs" and threading.current_thread().name == "ragdocs-keeper":
            held.wait(HELD_SECONDS)

    live.listeners.append(hold)
    return live


def search(live: Live, query: str) -> dict[str, Any]:
    server = ToolServer(live)
    try:
        answer = anyio.run(server.call_tool, "search_docs", {"query": query})
    finally:
        live._stopping.set()
    assert isinstance(answer, CallToolResult)
    content: dict[str, Any] = answer.structured_content or {}
    return content


def is_partial(answer: dict[str, Any]) -> bool:
    return any(note.startswith("still indexing: ") for note in answer["notes"])


def test_a_search_is_answered_before_a_large_project_is_read(
    project: Project, held: threading.Event
) -> None:
    live = serve(project, PAGES, held)
    answer = search(live, "gateway refreshes tokens")
    assert answer["result"]
    assert is_partial(answer)


def test_a_search_is_tried_as_soon_as_enough_passages_are_read(
    project: Project, held: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "EARLY_SECONDS", 10 * HELD_SECONDS)
    monkeypatch.setattr(keeping, "EARLY_PASSAGES", FIRST_BATCH)
    started = time.monotonic()
    answer = search(serve(project, PAGES, held), "gateway refreshes tokens")
    assert answer["result"]
    assert is_partial(answer)
    assert time.monotonic() - started < HELD_SECONDS


def test_words_are_indexed_and_searched_without_faiss_and_without_the_model(
    project: Project,
) -> None:
    project.doc("auth.md", "# Authentication\n\nTokens are refreshed each hour.\n")
    command = [sys.executable, "-P", "-c", BY_WORDS, str(project.root)]
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
    assert ran.stdout.splitlines() == ["docs/auth.md", "faiss False", "onnxruntime False"]


def test_a_search_that_has_found_nothing_waits_for_the_rest(
    project: Project, held: threading.Event
) -> None:
    live = serve(project, PAGES, held)

    def go_on(*_: object) -> None:
        # The first try is over.
        held.set()

    OBSERVERS.append(go_on)
    try:
        answer = search(live, "zebras")
    finally:
        OBSERVERS.remove(go_on)
    assert answer["result"][0]["path"] == "docs/page-0000.md"


def test_a_question_that_is_tried_again_is_kept_once_at_most(
    project: Project, held: threading.Event
) -> None:
    flags = {"server.keep_questions": True, "embedding.model": "none"}
    live = serve(project, PAGES, held, **flags)
    tries: list[object] = []

    def go_on(*_: object) -> None:
        tries.append(_)
        if len(tries) > 1:
            held.set()

    OBSERVERS.append(go_on)
    try:
        answer = search(live, "xylophones")
    finally:
        OBSERVERS.remove(go_on)
    assert not answer["result"]
    assert len(tries) > 1
    questions = live.workspace().tidying.questions
    assert questions is not None
    assert sum(question.count for question in questions.unanswered()) <= 1


def test_a_search_of_a_small_project_is_answered_when_it_is_read(
    project: Project, held: threading.Event
) -> None:
    live = serve(project, FEW_FILES, held)
    release = threading.Timer(0.5, held.set)
    release.start()
    answer = search(live, "gateway refreshes tokens")
    release.join()
    assert answer["result"]
    assert not is_partial(answer)
