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


@pytest.fixture
def session(project: Project, connect: Connect) -> Session:
    project.doc("guide.md", GUIDE)
    project.doc("api/limits.md", "# Limits\n\nA hundred requests a minute.\n")
    project.doc("api-old/limits.md", "# Old limits\n\nTen requests a minute.\n")
    project.memory("note.md", "Tokens and requests, remembered.\n")
    return connect().settle()


def paths(answer: dict[str, Any]) -> list[str]:
    return [hit["path"] for hit in answer["result"]]


# --- search_docs ---


def test_a_path_limits_to_a_folder_or_a_file(session: Session) -> None:
    assert {"docs/api-old/limits.md", "docs/api/limits.md"} <= set(
        paths(session.call("search_docs", query="requests"))
    )
    for path in ("docs/api", "docs/api/", "./docs/api", "docs/api/limits.md"):
        assert paths(session.call("search_docs", query="requests", path=path)) == [
            "docs/api/limits.md"
        ], path
    assert paths(session.call("search_docs", query="requests", path="nowhere")) == []


def test_tags_filter_without_case(session: Session) -> None:
    assert paths(session.call("search_docs", query="tokens requests", tags=["AUTH"])) == [
        "docs/guide.md"
    ]
    assert paths(session.call("search_docs", query="tokens requests", tags=["none such"])) == []


def test_signals_add_up_to_the_score(session: Session) -> None:
    for tool in ("search_docs", "search_memories"):
        hits = session.call(tool, query="tokens requests", explain=True)["result"]
        assert hits
        for hit in hits:
            assert sum(signal["share"] for signal in hit["signals"]) == pytest.approx(
                hit["score"], abs=0.001
            )
            assert all(
                list(s) == ["probe", "source", "rank", "raw", "share"] for s in hit["signals"]
            )
    assert "signals:" in session.text("search_docs", query="tokens", explain=True)
    assert "signals" not in session.call("search_docs", query="tokens")["result"][0]


def test_the_lanes_never_mix(session: Session) -> None:
    for query in ("tokens requests remembered", "note", "guide"):
        assert all(
            path.startswith("docs/")
            for path in paths(session.call("search_docs", query=query, limit=50))
        )
        memories = session.call("search_memories", query=query, limit=50)["result"]
        assert {hit["memory_id"] for hit in memories} <= {"memory:note"}
    assert "there is no document" in session.error("read_doc", path=".memories/note.md")
    assert "does not exist" in session.error("read_memory", filename="docs/guide.md")


def test_no_query_is_an_error(session: Session) -> None:
    for query in (
        "",
        " ",
        "*",
        '"',
        "AND OR NOT (",
        "[[",
        "a" * 10_000,
        "\0",
        "\ud800",
        "日本",
        "🙂",
    ):
        assert isinstance(session.call("search_docs", query=query)["result"], list)
        assert isinstance(session.call("search_memories", query=query)["result"], list)
        linked = session.call("search_linked_memories", query=query, target_document=query[:1000])
        assert linked["result"] == []


# --- read_doc ---


def test_a_section_is_read_by_its_heading_or_lines(session: Session) -> None:
    for arguments in (
        {"path": "docs/guide.md", "heading": "Tokens"},
        {"path": "docs/guide.md", "heading": "tokens"},
        {"path": "docs/guide.md", "heading": "## Tokens"},
        {"path": "docs/guide.md", "heading": "Guide › Tokens"},
        {"path": "docs/guide.md#Tokens"},
        {"path": "docs/guide#tokens"},
        {"path": "docs/guide.md", "lines": "8-14"},
    ):
        answer = session.call("read_doc", **arguments)
        assert answer["content"].startswith("## Tokens\n"), arguments
        assert answer["content"].rstrip().endswith("A refresh token is used once.")
        assert answer["lines"].startswith("8-")


def test_a_heading_is_found_by_its_anchor(session: Session) -> None:
    for anchor in ("Refresh & Rotation", "refresh--rotation", "refresh-rotation"):
        answer = session.call("read_doc", path=f"docs/guide.md#{anchor}")
        assert answer["content"].startswith("### Refresh & Rotation"), anchor


def test_what_cannot_be_read_is_answered_with_what_can(session: Session) -> None:
    guide = "docs/guide.md"
    assert session.call("read_doc", path=guide, lines="17-99999")["lines"] == "17-18"
    for arguments, says in (
        ({"path": "docs/giude.md"}, "Did you mean docs/guide.md"),
        ({"path": "limits"}, "there is no document"),
        ({"path": ""}, "path is empty"),
        ({"path": guide, "heading": "Tokenz"}, "Tokens"),
        ({"path": guide, "lines": "0-3"}, '"1-18"'),
        ({"path": guide, "lines": "99-100"}, '"1-18"'),
        ({"path": guide, "lines": "9-3"}, '"1-18"'),
        ({"path": guide, "lines": "all"}, '"10-40"'),
        ({"path": guide, "lines": "-5"}, '"10-40"'),
        ({"path": guide, "lines": "²"}, '"10-40"'),
    ):
        assert says in session.error("read_doc", **arguments), arguments


# --- index_status ---


def test_status_names_files_with_problems_and_changes_not_seen_yet(
    project: Project, session: Session
) -> None:
    project.doc("late.md", "# Late\n")
    (project.root / "docs/bad.md").write_bytes(b"# Caf\xe9\n")
    notes = session.call("index_status")["lanes"][0]["notes"]
    assert "2 files changed on disk and are not indexed yet" in notes
    assert "2 files changed" in session.text("index_status")


# --- resources, completion, prompts ---


def test_a_resource_can_be_the_first_thing_a_client_reads(
    project: Project, connect: Connect
) -> None:
    project.doc("a.md", "# A\n")
    assert connect().ask("read_resource", "ragdocs://docs/docs/a.md").contents[0].text == "# A\n"


OTHER_FILES = [
    "ragdocs://docs/docs/none.md", "ragdocs://docs/config.toml",
    "ragdocs://docs/docs/../config.toml", "ragdocs://docs/../config.toml",
    "ragdocs://docs/docs/%2e%2e/config.toml", "ragdocs://docs//etc/passwd",
    "ragdocs://docs/.memories/note.md", "ragdocs://memory/../docs/guide.md",
    "ragdocs://memory/.trash/x.md", "ragdocs://other/x.md",
]  # fmt: skip


def test_other_files_are_not_resources(project: Project, session: Session) -> None:
    project.write("config.toml", "# secret\n")
    for uri in OTHER_FILES:
        with pytest.raises(
            MCPError, match=r"(?i)not found|no document|no memory|unknown|invalid"
        ) as caught:
            session.ask("read_resource", uri)
        assert "secret" not in str(caught.value)


def test_paths_are_completed(session: Session) -> None:
    reference = ResourceTemplateReference(type="ref/resource", uri="ragdocs://docs/{+path}")
    done = session.ask("complete", reference, {"name": "path", "value": "LIMITS"}).completion
    assert done.values == ["docs/api-old/limits.md", "docs/api/limits.md"]
    assert (done.total, done.has_more) == (2, False)
    memory = ResourceTemplateReference(type="ref/resource", uri="ragdocs://memory/{+path}")
    assert session.ask("complete", memory, {"name": "path", "value": ""}).completion.values == [
        "note.md"
    ]
    prompt = PromptReference(type="ref/prompt", name="recall_before_work")
    assert session.ask("complete", prompt, {"name": "task", "value": "x"}).completion.values == []


def test_prompts_name_tools_that_exist(session: Session) -> None:
    names = {tool.name for tool in session.tools()}
    prompts = {prompt.name: prompt for prompt in session.ask("list_prompts").prompts}
    assert sorted(prompts) == ["recall_before_work", "start_with_context", "write_session_journal"]
    for name, arguments in (
        ("recall_before_work", {"task": "fix the login"}),
        ("write_session_journal", {}),
    ):
        text = session.ask("get_prompt", name, arguments).messages[0].content.text
        assert arguments.get("task", "") in text
        used = {word.strip(".,:;()") for word in text.split() if "_" in word}
        assert used
        assert used <= names
