"""The usage examples of the main document, as data, run as written over MCP."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import Client

from ragdocs.serve.live import Live
from ragdocs.serve.mcp.server import ToolServer

if TYPE_CHECKING:
    from tests.conftest import Project

    Run = Callable[..., list[Any]]

Call = tuple[str, dict[str, Any]]

JOURNAL = {
    "filename": "session-2025-01-10.md",
    "content": "## Session Notes\n\n- Looked into the login bug of [[src/auth.py]]\n"
    "- Cause: nobody checks when a token expires\n- Repaired in commit abc123",
    "tags": ["session", "auth", "bugfix"],
    "memory_type": "journal",
}
PLAN = {
    "filename": "database-migration-plan.md",
    "content": "## Database Migration Plan\n\nGo from SQLite to PostgreSQL.\n\n### Affected Files\n"
    "- [[src/db/connection.py]]\n- [[src/db/models.py]]",
    "tags": ["migration", "database", "plan"],
    "memory_type": "plan",
}
FACT = {
    "filename": "api-rate-limits.md",
    "content": "## API Rate Limits\n\n- Free: 100 a minute\n- Pro: 1000 a minute\n- Enterprise: no limit\n\n"
    "The code is in [[src/middleware/rate_limit.py]]",
    "tags": ["api", "limits", "reference"],
    "memory_type": "fact",
}
AUTH_PLAN = {
    "filename": "auth-refactor-plan.md",
    "content": "Plan to rework [[src/auth.py]] around JWT tokens.\n\n## Goals\n- No more sessions for authentication",
    "tags": ["refactor", "auth"],
    "memory_type": "plan",
}
EXAMPLES = [JOURNAL, PLAN, FACT, AUTH_PLAN]
CREATE: list[Call] = [("create_memory", example) for example in EXAMPLES]


@pytest.fixture
def run(project: Project) -> Run:
    """Make calls one after the other on a server of their own and return the structured answers."""

    async def converse(live: Live, calls: list[Call]) -> list[Any]:
        answers = []
        async with Client(ToolServer(live), raise_exceptions=True) as client:
            for name, arguments in calls:
                result = await client.call_tool(name, arguments)
                assert not result.is_error, result.content
                answers.append(result.structured_content)
        return answers

    def converse_and_stop(*calls: Call, **flags: object) -> list[Any]:
        live = Live(project.config(**{"watch.enabled": False, **flags}))
        try:
            return anyio.run(converse, live, list(calls))
        finally:
            live.stop()

    return converse_and_stop


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["filename"])
def test_a_memory_is_created_as_in_the_examples(
    project: Project, run: Run, example: dict[str, Any]
) -> None:
    created, read, stats = run(
        ("create_memory", example),
        ("read_memory", {"filename": example["filename"]}),
        ("get_memory_stats", {}),
    )
    path = project.root / ".memories" / example["filename"]
    assert created["status"] == "created"
    assert (created["filename"], created["path"]) == (example["filename"], str(path))
    assert read["content"].endswith(f"---\n\n{example['content']}")
    assert stats["types"] == {example["memory_type"]: 1}
    assert stats["tags"] == dict.fromkeys(sorted(example["tags"]), 1)


def test_relevant_memories_are_retrieved_before_starting_work(run: Run) -> None:
    query = {"query": "authentication token handling", "filter_tags": ["auth"], "limit": 5}
    answer = run(*CREATE, ("search_memories", query))[-1]
    assert sorted(hit["memory_id"] for hit in answer["result"]) == [
        "memory:auth-refactor-plan",
        "memory:session-2025-01-10",
    ]
    assert all("auth" in hit["tags"] for hit in answer["result"])


def test_search_by_tags_and_type_returns_the_documented_fields(project: Project, run: Run) -> None:
    query = {
        "query": "authentication improvements",
        "filter_tags": ["auth", "security"],
        "filter_type": "plan",
        "limit": 10,
    }
    (hit,) = run(*CREATE, ("search_memories", query))[-1]["result"]
    assert hit["memory_id"] == "memory:auth-refactor-plan"
    assert (hit["type"], hit["status"], hit["tags"]) == ("plan", "active", ["refactor", "auth"])
    assert hit["file_path"] == str(project.root / ".memories/auth-refactor-plan.md")
    assert 0 < hit["score"] <= 1
    assert isinstance(hit["header_path"], str)


def test_memories_related_to_a_file_are_found_without_a_limit(run: Run) -> None:
    linked = (
        "search_linked_memories",
        {"query": "recent changes and plans", "target_document": "src/auth.py"},
    )
    answer = run(*CREATE, linked)[-1]
    found = {hit["memory_id"]: hit for hit in answer["result"]}
    assert found.keys() == {"memory:auth-refactor-plan", "memory:session-2025-01-10"}
    plan = found["memory:auth-refactor-plan"]
    assert plan["edge_type"] == "mentions"
    assert "rework [[src/auth.py]] around JWT" in plan["anchor_context"]


def test_a_plan_is_found_from_each_file_it_affects(run: Run) -> None:
    targets = ["src/db/connection.py", "src/db/models.py", "src/middleware/rate_limit.py", "src/db"]
    calls = [
        ("search_linked_memories", {"query": "refactor plans", "target_document": name, "limit": 5})
        for name in targets
    ]
    found = [
        [hit["memory_id"] for hit in answer["result"]]
        for answer in run(*CREATE, *calls)[-len(targets) :]
    ]
    assert found == [
        ["memory:database-migration-plan"],
        ["memory:database-migration-plan"],
        ["memory:api-rate-limits"],
        [],
    ]


def test_a_journal_grows_is_rewritten_and_put_away(project: Project, run: Run) -> None:
    name = {"filename": JOURNAL["filename"]}
    appended, read, updated, deleted, searched = run(
        ("create_memory", JOURNAL),
        ("append_memory", {**name, "content": "- Deployed in the evening"}),
        ("read_memory", name),
        ("update_memory", {**name, "content": "---\ntype: journal\n---\n\nAll done."}),
        ("delete_memory", name),
        ("search_memories", {"query": "deployed in the evening"}),
    )[1:]
    assert appended["status"] == "appended"
    assert read["content"].endswith("commit abc123\n\n- Deployed in the evening")
    assert updated["status"] == "updated"
    assert any("tags" in warning for warning in updated["warnings"])
    assert deleted["status"] == "deleted"
    trash = Path(deleted["moved_to"])
    assert trash.parent == project.root / ".memories/.trash"
    assert trash.read_text(encoding="utf-8").endswith("All done.")
    assert searched["result"] == []


def test_notes_are_suggested_for_merging_and_merged(project: Project, run: Run) -> None:
    content = "Auth work: tokens are checked on every call, expired ones are refused, and the clock may be off by a minute."
    notes = [
        {"filename": f"auth-notes-{n}.md", "content": f"{content} Day {n}.", "tags": ["auth"]}
        for n in (1, 2, 3)
    ]
    names = [f"auth-notes-{n}.md" for n in (1, 2, 3)]
    summary = '---\ntype: "journal"\ntags: ["auth", "consolidated"]\n---\n\n# Auth Notes Consolidated\n\nWhat was learned.'
    suggested, merged, stats, read = run(
        *(("create_memory", note) for note in notes),
        ("suggest_memory_merges", {"threshold": 0.85, "filter_type": "journal"}),
        (
            "merge_memories",
            {
                "source_files": names,
                "target_file": "auth-consolidated.md",
                "summary_content": summary,
            },
        ),
        ("get_memory_stats", {}),
        ("read_memory", {"filename": "auth-consolidated.md"}),
    )[3:]
    (cluster,) = suggested["result"]
    assert (cluster["cluster_id"], cluster["memory_count"]) == (0, 3)
    assert cluster["reason"] == "High vector similarity (> 0.85)"
    assert [Path(member["file_path"]).name for member in cluster["memories"]] == names
    assert [
        Path(path).name.rpartition("_")[0].rpartition("_")[0] for path in merged["moved_to"]
    ] == [name.removesuffix(".md") for name in names]
    assert (stats["count"], stats["tags"]) == (1, {"auth": 1, "consolidated": 1})
    assert read["content"].count("---\n") == 2


def test_token_expiry_is_found_by_meaning_with_the_real_model(run: Run) -> None:
    note = {
        "filename": "login.md",
        "content": "People get logged out because credentials lapse too soon.",
        "tags": [],
    }
    query = ("search_memories", {"query": "token expiry"})
    answer = run(
        *CREATE[1:3], ("create_memory", note), query, **{"embedding.model": "all-MiniLM-L6-v2"}
    )[-1]
    assert answer["result"][0]["memory_id"] == "memory:login"
    assert "words" not in answer["result"][0]["why"]


def test_deleting_the_index_and_restarting_rebuilds_it(project: Project, run: Run) -> None:
    query: Call = ("search_memories", {"query": "rate limits of the free tier"})
    # Without a model nothing arrives in the background, so that scores can be compared to the
    # digit.
    before = run(*CREATE, query, **{"embedding.model": "none"})[-1]
    indices = project.root / ".memories/indices"
    assert (indices / "current").is_file()
    indices.rename(project.root / "old-indices")
    after = run(query, **{"embedding.model": "none"})[0]
    assert [(hit["memory_id"], hit["score"]) for hit in after["result"]] == [
        (hit["memory_id"], hit["score"]) for hit in before["result"]
    ]
