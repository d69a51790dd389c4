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


def test_paths_and_tags_limit_a_search(session: Session) -> None:
    everywhere = paths(session, query="requests")
    assert {"docs/api-old/limits.md", "docs/api/limits.md"} <= set(everywhere)
    for path in ("docs/api", "docs/api/", "./docs/api", "docs/api/limits.md"):
        assert paths(session, query="requests", path=path) == ["docs/api/limits.md"], path
    assert paths(session, query="requests", path="nowhere") == []
    assert paths(session, query="tokens requests", tags=["AUTH"]) == [PATH]
    assert paths(session, query="tokens requests", tags=["none such"]) == []


def test_signals_add_up_to_the_score(session: Session) -> None:
    for tool in ("search_docs", "search_memories"):
        hits = session.call(tool, query="tokens requests", explain=True)["result"]
        assert hits
        for hit in hits:
            shares = sum(signal["share"] for signal in hit["signals"])
            assert shares == pytest.approx(hit["score"], abs=0.001)
    assert "signals" not in session.call("search_docs", query="tokens")["result"][0]


def test_the_lanes_never_mix(session: Session) -> None:
    for query in ("tokens requests remembered", "note", "guide"):
        assert all(path.startswith("docs/") for path in paths(session, query=query, limit=50))
        memories = session.call("search_memories", query=query, limit=50)["result"]
        assert {hit["memory_id"] for hit in memories} <= {"memory:note"}
    assert "there is no document" in session.error("read_doc", path=".memories/note.md")
    assert "does not exist" in session.error("read_memory", filename=PATH)


def test_no_query_is_an_error(session: Session) -> None:
    for query in ("", " "):
        for tool in ("search_docs", "search_memories"):
            assert "the query is empty" in session.error(tool, query=query)
    queries = ["*", '"', "AND OR NOT (", "[[", "a" * 10_000, "\0", "\ud800", "日本", "🙂"]
    for query in queries:
        assert isinstance(session.call("search_docs", query=query)["result"], list)
        assert isinstance(session.call("search_memories", query=query)["result"], list)
        linked = session.call("search_linked_memories", query=query, target_document=query[:1000])
        assert linked["result"] == []


def test_a_section_is_read_by_its_heading_its_anchor_or_its_lines(session: Session) -> None:
    for arguments in (
        {"path": PATH, "heading": "Tokens"},
        {"path": PATH, "heading": "tokens"},
        {"path": PATH, "heading": "## Tokens"},
        {"path": PATH, "heading": "Guide › Tokens"},
        {"path": f"{PATH}#Tokens"},
        {"path": "docs/guide#tokens"},
        {"path": PATH, "lines": "8-14"},
    ):
        answer = session.call("read_doc", **arguments)
        assert answer["content"].startswith("## Tokens\n"), arguments
        assert answer["content"].rstrip().endswith("A refresh token is used once.")
        assert answer["lines"].startswith("8-")
    for anchor in ("Refresh & Rotation", "refresh--rotation", "refresh-rotation"):
        content = session.call("read_doc", path=f"{PATH}#{anchor}")["content"]
        assert content.startswith("### Refresh & Rotation"), anchor


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


def test_status_names_changes_that_are_not_seen_yet(project: Project, session: Session) -> None:
    project.doc("late.md", "# Late\n")
    (project.root / "docs/bad.md").write_bytes(b"# Caf\xe9\n")
    changed = "2 files changed on disk and are not indexed yet"
    assert changed in session.call("index_status")["lanes"][0]["notes"]


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
