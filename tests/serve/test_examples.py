"""The usage examples of the main document, as data, run as written over MCP.

The life of a memory from its creation to a merge is told in test_stdio.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Connect, Session

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
EXAMPLES: list[dict[str, Any]] = [JOURNAL, PLAN, FACT, AUTH_PLAN]


@pytest.fixture
def session(connect: Connect) -> Session:
    """Connect to a server on which every example was created."""
    session = connect()
    for example in EXAMPLES:
        session.call("create_memory", **example)
    return session


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["filename"])
def test_a_memory_is_created_as_in_the_examples(
    project: Project, connect: Connect, example: dict[str, Any]
) -> None:
    session = connect()
    created = session.call("create_memory", **example)
    path = project.root / ".memories" / example["filename"]
    assert created["status"] == "created"
    assert (created["filename"], created["path"]) == (example["filename"], str(path))
    read = session.call("read_memory", filename=example["filename"])
    assert read["content"].endswith(f"---\n\n{example['content']}")
    stats = session.call("get_memory_stats")
    assert stats["types"] == {example["memory_type"]: 1}
    assert stats["tags"] == dict.fromkeys(sorted(example["tags"]), 1)


AUTH_MEMORIES = ["memory:auth-refactor-plan", "memory:session-2025-01-10"]


@pytest.mark.parametrize(
    ("query", "memories"),
    [
        (
            {"query": "authentication token handling", "filter_tags": ["auth"], "limit": 5},
            AUTH_MEMORIES,
        ),
        (
            {
                "query": "authentication improvements",
                "filter_tags": ["auth", "security"],
                "filter_type": "plan",
                "limit": 10,
            },
            ["memory:auth-refactor-plan"],
        ),
    ],
    ids=["before starting work", "by tags and type"],
)
def test_relevant_memories_are_found_with_the_documented_fields(
    project: Project, session: Session, query: dict[str, Any], memories: list[str]
) -> None:
    hits = session.call("search_memories", **query)["result"]
    plan, *_ = sorted(hits, key=lambda hit: hit["memory_id"])
    assert sorted(hit["memory_id"] for hit in hits) == memories
    assert (plan["type"], plan["status"], plan["tags"]) == ("plan", "active", ["refactor", "auth"])
    assert plan["file_path"] == str(project.root / ".memories/auth-refactor-plan.md")
    assert 0 < plan["score"] <= 1
    assert isinstance(plan["header_path"], str)


@pytest.mark.parametrize(
    ("target", "memories", "kind"),
    [
        ("src/auth.py", AUTH_MEMORIES, "mentions"),
        ("src/db/connection.py", ["memory:database-migration-plan"], "related_to"),
        ("src/db/models.py", ["memory:database-migration-plan"], "related_to"),
        ("src/middleware/rate_limit.py", ["memory:api-rate-limits"], "mentions"),
        ("src/db", [], ""),
    ],
)
def test_memories_are_found_from_each_file_they_affect(
    session: Session, target: str, memories: list[str], kind: str
) -> None:
    query = {"query": "recent changes and plans", "target_document": target}
    hits = session.call("search_linked_memories", **query)["result"]
    assert sorted(hit["memory_id"] for hit in hits) == memories
    for hit in hits:
        assert hit["edge_type"] == kind
        assert f"[[{target}]]" in hit["anchor_context"]


def test_token_expiry_is_found_by_meaning_with_the_real_model(connect: Connect) -> None:
    session = connect(**{"embedding.model": "all-MiniLM-L6-v2"})
    content = "People get logged out because credentials lapse too soon."
    note = {"filename": "login.md", "content": content, "tags": []}
    for memory in (PLAN, FACT, note):
        session.call("create_memory", **memory)
    hits = session.call("search_memories", query="token expiry")["result"]
    assert hits[0]["memory_id"] == "memory:login"
    assert "words" not in hits[0]["why"]
