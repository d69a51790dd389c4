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


def test_create_never_touches_an_existing_memory(project: Project, connect: Connect) -> None:
    project.memory("plan.md", "first\n")
    session, before = connect(), files(project.root)
    for name in ("plan.md", "plan", "PLAN.md"):
        assert "exists" in session.error("create_memory", filename=name, content="second", tags=[])
    assert files(project.root) == before


def test_tags_are_stripped_and_kept_once(project: Project, connect: Connect) -> None:
    session = connect()
    tags = [" #Auth ", "auth", "", "ünï code"]
    session.call("create_memory", filename="a", content="x", tags=tags)
    assert session.call("get_memory_stats")["tags"] == {"Auth": 1, "ünï code": 1}


REFUSED: list[tuple[str, object, str]] = [
    ("content", "", "content is empty"),
    ("content", " \n\t", "content is empty"),
    ("content", "a\0b", "NUL"),
    ("content", "half \ud83d a pair", "surrogates"),
    ("content", "x" * 1_000_001, "longer than"),
    ("content", "---\ntags: [a\n---\n\nx", "frontmatter: line"),
    ("content", 7, "valid string"),
    ("tags", "auth", "valid list"),
    ("tags", None, "valid list"),
    ("tags", [1], "valid string"),
    ("tags", ["a\nb"], "one short line"),
    ("tags", ["a" * 101], "longer than 100 characters"),
    ("memory_type", "", "not a memory type"),
    ("memory_type", "two words", "not a memory type"),
    ("memory_type", "plan\nstatus: archived", "not a memory type"),
]


def test_a_write_of_what_cannot_be_meant_is_refused(project: Project, connect: Connect) -> None:
    project.memory("log.md", "text\n")
    session, before = connect(), files(project.root)
    for argument, value, says in REFUSED:
        arguments = {"filename": "a.md", "content": "text", "tags": ["x"], argument: value}
        assert says in session.error("create_memory", **arguments), (argument, value)
    for content in ("", "\n", "a\0b", "\udc80"):
        assert "content" in session.error("update_memory", filename="log.md", content=content)
        assert "content" in session.error("append_memory", filename="log.md", content=content)
    assert files(project.root) == before


# --- read, update, append, delete ---


def test_append_adds_two_newlines_and_the_content_literally(
    project: Project, connect: Connect
) -> None:
    path = project.memory("log.md", "one\n")
    session = connect()
    session.call("append_memory", filename="log.md", content="---\ntwo: 2\n---")
    assert path.read_bytes() == b"one\n\n\n---\ntwo: 2\n---"


# --- search_memories ---


def test_a_limit_that_cannot_be_meant_is_refused(connect: Connect) -> None:
    session = connect()
    for limit in (0, -1, 51, "many", 2.5, None):
        target = {"query": "x", "target_document": "a.py"}
        assert "limit" in session.error("search_linked_memories", **target, limit=limit)
        assert "limit" in session.error("suggest_memory_merges", limit=limit)
        for tool in ("search_memories", "search_docs"):
            assert "limit" in session.error(tool, query="x", limit=limit)


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


def test_recency_counts_whole_days_inclusively(project: Project, connect: Connect) -> None:
    for name, days in {"d7": 7.9, "d8": 8.1, "future": -400.0}.items():
        dated(project, name, days, "The cache was too small.")
    project.memory("undated.md", "The cache was too small.\n")
    boosted = {}
    for hit in connect().call("search_memories", query="cache", explain=True)["result"]:
        sources = {signal["source"] for signal in hit["signals"]}
        boosted[hit["memory_id"].removeprefix("memory:")] = "recency" in sources
    assert boosted == {"d7": True, "future": True, "d8": False, "undated": False}


def test_a_memory_is_found_by_meaning_with_no_word_in_common(
    project: Project, connect: Connect
) -> None:
    project.memory("login.md", "People are logged out because the credential lapses.\n")
    project.memory("paint.md", "The walls of the kitchen were painted green last summer.\n")
    session = connect(**{"embedding.model": "all-MiniLM-L6-v2"}).settle()
    best = session.call("search_memories", query="token expiry")["result"][0]
    assert best["memory_id"] == "memory:login"
    assert best["why"].startswith("meaning"), "no word is shared"


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
