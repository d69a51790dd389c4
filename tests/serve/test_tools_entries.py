"""The entries toolset through a client: refusals, budgets, hostile texts, and files that appear."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.serve.windows import until

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Connect, Session


@pytest.fixture
def session(connect: Connect) -> Session:
    return connect(**{"server.toolsets": ["docs", "entries"]})


def test_both_memory_toolsets_see_the_same_memories(project: Project, connect: Connect) -> None:
    session = connect(**{"server.toolsets": ["memory", "entries", "recall"]})
    added = session.call("memory_add", content="Alice reports to Bob", entryType="relationship")
    kept = session.call("remember", content="Bob moved to the platform team")
    session.call("create_memory", filename="team.md", content="Carol joined Bob", tags=[])
    found = session.call("memory_search", query="bob", mode="keyword")
    assert {one["id"] for one in found["results"]} == {added["id"], kept["id"], "memory:team"}
    entry = session.call("memory_get", id=kept["id"])["entry"]
    assert entry["content"] == "Bob moved to the platform team"
    hits = session.call("search_memories", query="bob", filter_type="relationship")["result"]
    assert [hit["file_path"] for hit in hits] == [added["path"]]
    recalled = session.call("recall", query="bob")["result"]
    assert {added["id"], kept["id"]} <= {memory["id"] for memory in recalled}


def test_answers_fit_the_budget(session: Session) -> None:
    for number in range(12):
        content, context = f"needle {number} " * 900, "why needle " * 150
        session.call("memory_add", content=content, context=context, tags=[f"t{number}"])
    for limit, mode in ((50, "hybrid"), (50, "keyword"), (3, "hybrid")):
        arguments: dict[str, Any] = {"query": "needle", "limit": limit, "mode": mode}
        answer = session.call("memory_search", **arguments)
        assert len(json.dumps(answer, ensure_ascii=False)) < 10_000
        assert len(session.text("memory_search", **arguments)) < 10_000
        assert 1 <= len(answer["results"]) <= limit
        assert len(answer["results"]) <= answer["total"] <= 12
        notes = " ".join(answer["notes"])
        assert ("are cut" in notes or "did not fit" in notes) is (limit > 3)
    entry = session.call("memory_get", id=answer["results"][0]["id"])
    assert "the content is cut" in entry["message"]
    assert len(json.dumps(entry, ensure_ascii=False)) < 10_000


def test_a_file_that_appears_is_indexed_and_one_that_is_saved_unchanged_is_not(
    project: Project, connect: Connect
) -> None:
    path = project.memory("first.md", "The axolotl is there at the start.\n")
    watch = {"watch.enabled": True, "watch.debounce_ms": 50}
    session = connect(**{"server.toolsets": ["docs", "entries"], **watch})

    def axolotls() -> list[Any]:
        answer = session.call("memory_search", query="axolotl", mode="keyword")
        return list(answer["results"])

    assert [hit["content"] for hit in axolotls()] == ["The axolotl is there at the start."]
    project.memory("second.md", "An axolotl that came later.\n")
    until(lambda: len(axolotls()) == 2)
    assert {hit["source"] for hit in axolotls()} == {"file-index"}
    path.write_text("Gone.\n")
    until(lambda: len(axolotls()) == 1)
    assert not (project.root / ".memories/.daily").exists()
