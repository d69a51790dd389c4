"""Searching and reading documents, resources, completion and prompts, through a real client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Connect, Session

GUIDE = """
    ---
    tags: [auth]
    ---
    # Guide

    How to begin.

    ## Tokens

    Tokens expire after an hour.

    ### Refresh & Rotation

    A refresh token is used once.

    ## Sessions

    Sessions end at midnight.
    """
PATH = "docs/guide.md"


@pytest.fixture
def session(project: Project, connect: Connect) -> Session:
    project.doc("guide.md", GUIDE)
    project.doc("api/limits.md", "# Limits\n\nA hundred requests a minute.\n")
    project.doc("api-old/limits.md", "# Old limits\n\nTen requests a minute.\n")
    project.memory("note.md", "Tokens and requests, remembered.\n")
    return connect().settle()


def paths(session: Session, **arguments: Any) -> list[str]:
    hits = session.call("search_docs", **arguments)["result"]
    return [hit["path"] for hit in hits]


def test_the_lanes_never_mix(session: Session) -> None:
    for query in ("tokens requests remembered", "note", "guide"):
        assert all(path.startswith("docs/") for path in paths(session, query=query, limit=50))
        memories = session.call("search_memories", query=query, limit=50)["result"]
        assert {hit["memory_id"] for hit in memories} <= {"memory:note"}
    assert "there is no document" in session.error("read_doc", path=".memories/note.md")
    assert "does not exist" in session.error("read_memory", filename=PATH)


def test_what_cannot_be_read_is_answered_with_what_can(session: Session) -> None:
    assert session.call("read_doc", path=PATH, lines="17-99999")["lines"] == "17-18"
    for arguments, expected in (
        ({"path": "docs/giude.md"}, "Did you mean docs/guide.md"),
        ({"path": "limits"}, "there is no document"),
        ({"path": ""}, "path is empty"),
        ({"path": PATH, "heading": "Tokenz"}, "Tokens"),
        *(({"path": PATH, "lines": lines}, '"1-18"') for lines in ("0-3", "99-100", "9-3")),
        *(({"path": PATH, "lines": lines}, '"10-40"') for lines in ("all", "-5", "²")),
    ):
        assert expected in session.error("read_doc", **arguments), arguments


# --- resources, completion, prompts ---


def test_a_resource_can_be_the_first_thing_a_client_reads(
    project: Project, connect: Connect
) -> None:
    project.doc("a.md", "# A\n")
    assert connect().ask("read_resource", "ragdocs://docs/docs/a.md").contents[0].text == "# A\n"


OTHER_FILES = [
    "docs/docs/none.md", "docs/config.toml", "docs/docs/../config.toml", "docs/../config.toml",
    "docs/docs/%2e%2e/config.toml", "docs//etc/passwd", "docs/.memories/note.md",
    "memory/../docs/guide.md", "memory/.trash/x.md", "other/x.md",
]  # fmt: skip


def test_other_files_are_not_resources(project: Project, session: Session) -> None:
    project.write("config.toml", "# secret\n")
    refusal = r"(?i)not found|no document|no memory|unknown|invalid"
    for path in OTHER_FILES:
        with pytest.raises(MCPError, match=refusal) as caught:
            session.ask("read_resource", f"ragdocs://{path}")
        assert "secret" not in str(caught.value)


def test_paths_are_completed(session: Session) -> None:
    def complete(lane: str, value: str) -> Any:
        reference = ResourceTemplateReference(
            type="ref/resource", uri=f"ragdocs://{lane}/{{+path}}"
        )
        return session.ask("complete", reference, {"name": "path", "value": value}).completion

    limits = complete("docs", "LIMITS")
    assert limits.values == ["docs/api-old/limits.md", "docs/api/limits.md"]
    assert (limits.total, limits.has_more) == (2, False)
    assert complete("memory", "").values == ["note.md"]
    prompt = PromptReference(type="ref/prompt", name="recall_before_work")
    assert session.ask("complete", prompt, {"name": "task", "value": "x"}).completion.values == []


def test_prompts_name_tools_that_exist(session: Session) -> None:
    tools = {tool.name for tool in session.tools()}
    for name, task in (("recall_before_work", "fix the login"), ("write_session_journal", "")):
        arguments = {"task": task} if task else {}
        text = session.ask("get_prompt", name, arguments).messages[0].content.text
        assert task in text
        used = {word.strip(".,:;()") for word in text.split() if "_" in word}
        assert used
        assert used <= tools
