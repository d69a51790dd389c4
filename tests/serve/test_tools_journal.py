"""The journal toolset through clients: sessions, conflicts, secrets, and what others commit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mcp_types import CreateMessageResult, TextContent
from tests.plain_git import plain_git
from tests.serve.windows import until

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Connect, Run, Session

ON = {"journal.enabled": True}


@pytest.fixture
def session(connect: Connect) -> Session:
    return connect(**ON)


def write(session: Session, path: str, entry: str, **more: str) -> Any:
    session.call("journal_read", id=path)
    return session.call("journal_write", path=path, entry=entry, **more)


def search(session: Session, content: str, work_context: str = "") -> Any:
    return session.call("journal_search", work_context=work_context, content=content)["result"]


def test_the_project_s_repository_leaves_the_journal_alone(
    project: Project, connect: Connect
) -> None:
    plain_git(project.root, "init", "-q")
    for path in ("journal-data", "notes [x] #1/own"):
        write(connect(**ON, **{"journal.path": path}), "a", "first")
        assert plain_git(project.root, "status", "--porcelain", "--untracked-files=all") == ""
        assert plain_git(project.root / path, "status", "--porcelain") == ""


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_is_one_session_that_writes_only_where_it_has_read(
    connect: Connect, launch: Connect, mode: str
) -> None:
    session = launch(mode, **ON)
    refusal = session.error("journal_write", path="a", entry="x")
    assert 'Call journal_read with id "a" first' in refusal
    written = write(session, "a", "one", overview="# A")
    assert session.call("journal_write", path="a", entry="two", overview="# B")["entry_count"] == 2
    assert "without #" in session.error("journal_write", path=written["id"], entry="two")
    assert "empty" in session.error("journal_write", path="a", entry=" \n")
    other = connect(**ON)
    other.call("journal_read", id=written["id"])
    refusal = other.error("journal_write", path="a", entry="an entry shows no overview")
    assert "was not read in this session" in refusal


def test_an_overview_that_changed_since_it_was_read_is_a_conflict_with_a_draft(
    project: Project, connect: Connect
) -> None:
    one, two = connect(**ON), connect(**ON)
    base = "# Design\n\nfirst\n\nmiddle\n\nlast"
    theirs, yours = base.replace("first", "FIRST"), base.replace("last", "LAST")
    draft = theirs.replace("last", "LAST")
    write(one, "design", "start", overview=base)
    two.call("journal_read", id="design")
    one.call("journal_write", path="design", entry="changed", overview=theirs)
    # An entry alone is no conflict, and does not count as having seen the new overview.
    assert two.call("journal_write", path="design", entry="by the way")["rebased"]
    message = two.error("journal_write", path="design", entry="mine", overview=yours)
    assert "design says something else now since you read it" in message
    assert "read the section again with journal_read and send it as overview" in message
    assert "update_memory" not in message
    for text in (draft, base, theirs, yours):
        assert text in message
    refusal = two.error("journal_write", path="design", entry="again", overview=draft)
    assert "says something else" in refusal
    assert write(two, "design", "merged", overview=draft)["entry_count"] == 4
    assert one.call("journal_read", id="design")["content"] == draft
    file = project.root / "journal-data" / "design.md"
    assert file.read_text() == f"{draft}\n\n<!-- entry count: 4 -->\n"
    for session in (one, two):
        assert not session.call("journal_read", id="new")["exists"]
    one.call("journal_write", path="new", entry="mine", overview="# One")
    message = two.error("journal_write", path="new", entry="mine", overview="# Two")
    assert "<<<<<<< theirs\n# One\n=======\n# Two\n>>>>>>> yours" in message


def test_search_weighs_the_work_and_the_content(connect: Connect, session: Session) -> None:
    client = "debugging the network client"
    write(session, "a", "Exponential backoff with jitter", work_context=client)
    write(session, "a", "Exponential growth of the index", work_context="capacity planning")
    write(session, "b", "Colours of the buttons", work_context="debugging the style sheet")
    hits = search(session, "backoff with jitter", "debugging the network")
    expected = f"work_context: {client}\n\nExponential backoff"
    assert hits[0]["content"].startswith(expected)
    for hit in hits:
        mean = (hit["work_context_score"] + hit["content_score"]) / 2
        assert hit["combined_score"] == pytest.approx(mean, abs=0.002)
        assert 0 <= hit["combined_score"] <= 1
    scores = [hit["combined_score"] for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert search(session, "") == []
    only = search(connect(**ON, **{"journal.context_weight": 1.0}), "x", "planning")
    contexts = [hit["content"].split("\n")[0] for hit in only]
    assert contexts == ["work_context: capacity planning"]
    wrong = {"work_context": "a", "content": "b", "salience_threshold": 2}
    assert "0 to 1" in session.error("journal_search", **wrong)


def test_a_long_entry_is_read_in_parts(session: Session) -> None:
    entry = "\n".join(f"line {number} of a long entry" for number in range(2500))
    written = write(session, "long", entry)
    answer = session.call("journal_read", id=written["id"])
    assert len(answer["content"]) < 10_000
    assert "ask for lines=" in answer["omitted"]
    part = session.call("journal_read", id=written["id"], lines="2499-2500")
    assert part["content"] == "line 2498 of a long entry\nline 2499 of a long entry"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_that_lends_its_model_is_asked(connect: Connect, mode: str) -> None:
    questions = []

    async def lend(context: Any, params: Any) -> CreateMessageResult:
        del context
        questions.append(params.messages[0].content.text)
        content = TextContent(type="text", text="# One")
        return CreateMessageResult(role="assistant", content=content, model="some-model")

    versions = {"version_a": "# A", "version_b": "# B", "work_context": "design"}
    session = connect(mode, lend, **ON)
    answer = session.call("journal_synthesize_conflict", section="alpha", **versions)
    assert (answer["synthesis"], answer["model"]) == ("# One", "some-model")
    assert answer["disagreements"] == 1
    assert len(questions) == 1
    assert "<version_a>\n# A\n</version_a>" in questions[0]


def test_secrets_reach_neither_the_file_nor_the_message(project: Project, session: Session) -> None:
    secret = "ghp_" + "R7fQ2mZ9xL4vT8kB1nD6cW3yH5jP0sA7gE2u"
    texts = {"overview": f"use {secret}", "summary": f"s {secret}"}
    assert write(session, "a", f"token {secret}", **texts)["warnings"]
    assert secret not in plain_git(project.root / "journal-data", "log", "-p", "--all")
    assert secret not in session.error("journal_write", path=f"x/{secret}", entry="y")


def test_without_git_the_toolset_says_so_and_the_rest_works(
    project: Project, connect: Connect, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    project.doc("a.md", "# Retries\n\nWith jitter.\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    session = connect(**ON, **{"docs.commits": True})
    assert "git is not installed" in session.error("journal_toc")
    assert "git is not installed" in session.error("journal_read", id="a")
    assert session.call("search_docs", query="retries")["result"]
    assert session.call("search_commits", query="retries")["result"] == []


def test_commits_of_the_project_are_searched_when_that_is_turned_on(
    project: Project, connect: Connect, run: Run
) -> None:
    assert "search_commits" not in {tool.name for tool in connect().tools()}
    project.write("src/retry.py", "retries = 3\n")
    plain_git(project.root, "init", "-q")
    plain_git(project.root, "add", ".")
    plain_git(project.root, "commit", "-qm", "Limit retries\n\nThe queue was full.")
    session = connect(**{"docs.commits": True})
    filters = {"paths": ["src"], "since": "1d", "author": "ada"}
    text = session.text("search_commits", query="why are retries limited", **filters)
    assert "Limit retries" in text
    assert "The queue was full." in text
    assert "Ask for 1 to" in session.error("search_commits", query="x", limit=0)
    assert "Limit retries" in run("commits", "retries")[1]


def test_a_server_notices_what_others_commit(project: Project, connect: Connect) -> None:
    watching = connect(**ON, **{"watch.enabled": True})
    assert search(watching, "walrus") == []
    write(connect(**ON), "a", "the walrus sings")
    until(lambda: search(watching, "walrus"))
    (project.root / "journal-data" / "a.md").write_text("by hand\n")
    plain_git(project.root / "journal-data", "commit", "-qam", "the gecko dances")
    until(lambda: search(watching, "gecko"))
