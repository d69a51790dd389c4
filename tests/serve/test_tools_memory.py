"""The memory tools through a real client: what they keep, what they rank, what they refuse."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragdocs.serve.surface import VERBS

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Connect


def ids(answer: dict[str, Any]) -> list[str]:
    return [hit["memory_id"] for hit in answer["result"]]


def dated(project: Project, name: str, days: float, text: str) -> None:
    moment = (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="seconds")
    project.memory(f"{name}.md", f"---\ncreated_at: '{moment}'\n---\n\n{text}\n")


def files(root: Path) -> dict[str, bytes]:
    """Everything on disk but the index, which a background thread may write at any time."""
    found = (path for path in root.rglob("*") if path.is_file() and "indices" not in path.parts)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


# --- create_memory ---


# --- read, update, append, delete ---


def test_append_adds_two_newlines_and_the_content_literally(
    project: Project, connect: Connect
) -> None:
    path = project.memory("log.md", "one\n")
    session = connect()
    session.call("append_memory", filename="log.md", content="---\ntwo: 2\n---")
    assert path.read_bytes() == b"one\n\n\n---\ntwo: 2\n---"


# --- search_memories ---


def test_a_memory_of_the_time_that_is_named_rises_over_any_number_of_others(
    project: Project, connect: Connect
) -> None:
    for number in range(120):
        dated(project, f"a{number:03}", 70, "The cache was too small.")
    dated(project, "z", 28, "The cache was small.")
    session = connect()
    assert "memory:z" not in ids(session.call("search_memories", query="cache too small", limit=3))
    query = "cache too small four weeks ago"
    hit = session.call("search_memories", query=query, limit=3, explain=True)["result"][0]
    assert hit["memory_id"] == "memory:z"
    assert "time" in {signal["source"] for signal in hit["signals"]}


# --- every tool ---


def test_every_memory_tool_says_how_to_turn_the_lane_on(project: Project, connect: Connect) -> None:
    project.memory("a.md", "text\n")
    toolsets = ("memory", "edit", "recall", "entries")
    session = connect(**{"memory.enabled": False, "server.toolsets": list(toolsets)})
    before = files(project.root)
    for verb in VERBS.values():
        if verb.tool and verb.toolset in toolsets and verb.lanes == ("memory",):
            arguments: dict[str, Any] = {}
            for param in verb.params:
                if param.required:
                    arguments[param.name] = ["a"] if param.repeated else "a"
            message = session.error(verb.name, **arguments)
            assert "enabled = true under [memory]" in message, verb.name
    assert files(project.root) == before
