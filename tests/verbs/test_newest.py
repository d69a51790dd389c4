"""Newest first is one order, down to what was written within one second."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from tests.asking import ask

from ragdocs.workspace import Workspace

if TYPE_CHECKING:
    from tests.conftest import Project

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def ticking(project: Project, step: timedelta = timedelta(milliseconds=7)) -> None:
    """Let every look at the clock be a moment later."""
    moments = (NOON + number * step for number in itertools.count())
    project.clock = lambda: next(moments)


def contents(workspace: Workspace, limit: int) -> list[str]:
    return [memory.hit.chunk.text for memory in workspace.recall.recall(limit=limit).memories]


def test_all_lists_have_the_same_order(project: Project) -> None:
    ticking(project)
    workspace = project.open()
    names = []
    for number in range(6):
        name = f"{5 - number if number % 2 else number}-{number}.md"
        workspace.memories.create(name, f"about [[src/a.py]] {number}", [])
        names.append(name)
    project.memory("undated.md", "about [[src/a.py]] undated")
    project.memory("future.md", "---\ncreated_at: '2030-01-01'\n---\n\nabout [[src/a.py]] future")
    workspace = project.open(**{"embedding.model": "none"})
    memories = workspace.recall.recall(limit=20).memories
    recalled = [memory.hit.document.path for memory in memories]
    linked = workspace.memories.linked("zzzz", "src/a.py", limit=20).hits
    assert recalled[:6] == names[::-1]
    assert [hit.document.path for hit in linked] == recalled
    pack = ask(workspace, "build_context", max_chars=8000)["context"]
    places = [pack.index(f".memories/{name}") for name in recalled if f".memories/{name}" in pack]
    assert len(places) >= 4
    assert places == sorted(places)


def test_since_and_a_query_mean_the_same_days(project: Project) -> None:
    project.clock = lambda: datetime(2026, 11, 16, 20, tzinfo=UTC)
    # In Tokyo it is the morning of the 17th: the 16th there begins at 15:00 of the 15th.
    project.memory("a.md", "---\ncreated_at: '2026-11-15T16:00:00Z'\n---\n\nzebra alpha\n")
    project.memory("b.md", "---\ncreated_at: '2026-11-15T14:00:00Z'\n---\n\nzebra beta\n")
    workspace = Workspace(project.config(), project.clock, ZoneInfo("Asia/Tokyo"))
    workspace.sync()
    workspace.embed()
    (memory,) = workspace.recall.recall(since="yesterday").memories
    assert memory.hit.document.id == "memory:a"
    in_time = {}
    for hit in workspace.memories.search("zebra yesterday").hits:
        in_time[hit.document.id] = "time" in {signal.source for signal in hit.signals}
    assert in_time == {"memory:a": True, "memory:b": False}
