"""The journal toolset through clients: sessions, conflicts, secrets, and what others commit."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mcp_types import CreateMessageResult, TextContent
from tests.serve.windows import until

from ragdocs.serve.cli import app as cli

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Connect, Session

ON = {"journal.enabled": True}


@pytest.fixture
def session(connect: Connect) -> Session:
    return connect(**ON)


def journal(project: Project, *words: str) -> str:
    """Run plain git in the journal, as a person does."""
    environ = {"HOME": str(project.root), "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=P", "-c", "user.email=p@localhost", "-c", "init.defaultBranch=main")
    command = ["git", "-C", str(project.root / "journal-data"), *who, *words]
    return subprocess.run(
        command, env=environ, check=True, capture_output=True, text=True
    ).stdout.strip()


def write(session: Session, path: str, entry: str, **more: str) -> Any:
    session.call("journal_read", id=path)
    return session.call("journal_write", path=path, entry=entry, **more)


def test_the_project_s_repository_leaves_the_journal_alone(
    project: Project, connect: Connect
) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(project.root.parent)}
    subprocess.run(["git", "init", "-q", str(project.root)], env=environ, check=True)
    for path in ("journal-data", "notes [x] #1/own"):
        write(connect(**ON, **{"journal.path": path}), "a", "first")
        status = ["git", "-C", str(project.root), "status", "--porcelain", "--untracked-files=all"]
        assert (
            subprocess.run(status, env=environ, check=True, capture_output=True, text=True).stdout
            == ""
        )
        inner = ["git", "-C", str(project.root / path), "status", "--porcelain"]
        assert (
            subprocess.run(inner, env=environ, check=True, capture_output=True, text=True).stdout
            == ""
        )


def test_a_session_writes_only_where_it_has_read(connect: Connect, session: Session) -> None:
    assert 'Call journal_read with id "a" first' in session.error(
        "journal_write", path="a", entry="x"
    )
    written = write(session, "a", "one")
    other = connect(**ON)
    assert "was not read in this session" in other.error("journal_write", path="a", entry="two")
    other.call("journal_read", id=written["id"])
    assert "was not read" in other.error(
        "journal_write", path="a", entry="an entry shows no overview"
    )
    assert "without #" in session.error("journal_write", path=written["id"], entry="two")
    assert "empty" in session.error("journal_write", path="a", entry=" \n")


def test_entries_of_two_sessions_both_stand_and_are_counted(
    project: Project, connect: Connect
) -> None:
    one, two = connect(**ON), connect(**ON)
    write(one, "shared", "first", overview="# Shared")
    for session in (one, two):
        session.call("journal_read", id="shared")
    for number in range(3):
        for name, session in (("one", one), ("two", two)):
            written = session.call("journal_write", path="shared", entry=f"{name} {number}")
    assert written["rebased"]
    assert written["entry_count"] == 7
    assert (
        project.root / "journal-data" / "shared.md"
    ).read_text() == "# Shared\n\n<!-- entry count: 7 -->\n"
    assert journal(project, "status", "--porcelain") == ""


def test_an_overview_that_changed_since_it_was_read_is_a_conflict_with_a_draft(
    connect: Connect,
) -> None:
    one, two = connect(**ON), connect(**ON)
    write(one, "design", "start", overview="# Design\n\nfirst\n\nmiddle\n\nlast")
    two.call("journal_read", id="design")
    one.call(
        "journal_write",
        path="design",
        entry="changed",
        overview="# Design\n\nFIRST\n\nmiddle\n\nlast",
    )
    # An entry alone is no conflict, and does not count as having seen the new overview.
    assert two.call("journal_write", path="design", entry="by the way")["rebased"]
    message = two.error(
        "journal_write", path="design", entry="mine", overview="# Design\n\nfirst\n\nmiddle\n\nLAST"
    )
    assert "design says something else now since you read it" in message
    assert "read the section again with journal_read and send it as overview" in message
    draft = "# Design\n\nFIRST\n\nmiddle\n\nLAST"
    for text in (
        draft,
        "first\n\nmiddle\n\nlast",
        "FIRST\n\nmiddle\n\nlast",
        "first\n\nmiddle\n\nLAST",
    ):
        assert text in message
    assert "journal_read" in message
    assert "update_memory" not in message
    assert "says something else" in two.error(
        "journal_write", path="design", entry="again", overview=draft
    )
    two.call("journal_read", id="design")
    assert (
        two.call("journal_write", path="design", entry="merged", overview=draft)["entry_count"] == 4
    )
    assert one.call("journal_read", id="design")["content"] == draft


def test_a_section_that_two_sessions_make_at_once_is_made_once(connect: Connect) -> None:
    one, two = connect(**ON), connect(**ON)
    for session in (one, two):
        assert not session.call("journal_read", id="new")["exists"]
    one.call("journal_write", path="new", entry="mine", overview="# One")
    message = two.error("journal_write", path="new", entry="mine", overview="# Two")
    assert "<<<<<<< theirs\n# One\n=======\n# Two\n>>>>>>> yours" in message
    assert two.call("journal_write", path="new", entry="only an entry")["entry_count"] == 2


def test_search_weighs_the_work_and_the_content(connect: Connect) -> None:
    session = connect(**ON)
    write(
        session, "a", "Exponential backoff with jitter", work_context="debugging the network client"
    )
    write(session, "a", "Exponential growth of the index", work_context="capacity planning")
    write(session, "b", "Colours of the buttons", work_context="debugging the style sheet")
    found = session.call(
        "journal_search", work_context="debugging the network", content="backoff with jitter"
    )
    best = found["result"][0]
    assert best["content"].startswith(
        "work_context: debugging the network client\n\nExponential backoff"
    )
    assert best.keys() == {
        "id",
        "content",
        "work_context_score",
        "content_score",
        "combined_score",
        "timestamp",
        "age",
    }
    for hit in found["result"]:
        mean = (hit["work_context_score"] + hit["content_score"]) / 2
        assert hit["combined_score"] == pytest.approx(mean, abs=0.002)
        assert 0 <= hit["combined_score"] <= 1
    scores = [hit["combined_score"] for hit in found["result"]]
    assert scores == sorted(scores, reverse=True)
    assert best["id"] in session.text("journal_search", work_context="debugging", content="jitter")
    assert session.call("journal_search", work_context="", content="")["result"] == []
    only = connect(**ON, **{"journal.context_weight": 1.0}).call(
        "journal_search", work_context="planning", content="x"
    )
    assert [hit["content"].split("\n")[0] for hit in only["result"]] == [
        "work_context: capacity planning"
    ]
    assert "0 to 1" in session.error(
        "journal_search", work_context="a", content="b", salience_threshold=2
    )


def test_a_long_entry_is_read_in_parts(session: Session) -> None:
    entry = "\n".join(f"line {number} of a long entry" for number in range(2500))
    written = write(session, "long", entry)
    shown = session.call("journal_read", id=written["id"])
    assert len(shown["content"]) < 10_000
    assert "ask for lines=" in shown["omitted"]
    part = session.call("journal_read", id=written["id"], lines="2499-2500")
    assert part["content"] == "line 2498 of a long entry\nline 2499 of a long entry"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_that_lends_its_model_is_asked(connect: Connect, mode: str) -> None:
    heard = []

    async def lend(context: Any, params: Any) -> CreateMessageResult:
        del context
        heard.append(params.messages[0].content.text)
        return CreateMessageResult(
            role="assistant", content=TextContent(type="text", text="# One"), model="some-model"
        )

    session = connect(mode, lend, **ON)
    answer = session.call(
        "journal_synthesize_conflict",
        section="alpha",
        version_a="# A",
        version_b="# B",
        work_context="design",
    )
    assert (answer["synthesis"], answer["model"], answer["disagreements"]) == (
        "# One",
        "some-model",
        1,
    )
    assert len(heard) == 1
    assert "<version_a>\n# A\n</version_a>" in heard[0]


def test_secrets_reach_neither_the_file_nor_the_message(project: Project, session: Session) -> None:
    secret = "ghp_" + "R7fQ2mZ9xL4vT8kB1nD6cW3yH5jP0sA7gE2u"
    written = write(
        session, "a", f"token {secret}", overview=f"use {secret}", summary=f"s {secret}"
    )
    assert written["warnings"]
    assert secret not in journal(project, "log", "-p", "--all")
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
    project: Project, connect: Connect, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "search_commits" not in {tool.name for tool in connect().tools()}
    environ = {"PATH": os.environ["PATH"], "HOME": str(project.root.parent)}
    project.write("src/retry.py", "retries = 3\n")
    who = ("-c", "user.name=Ada", "-c", "user.email=a@localhost")
    for words in (
        ("init", "-q"),
        ("add", "."),
        ("commit", "-qm", "Limit retries\n\nThe queue was full."),
    ):
        subprocess.run(["git", "-C", str(project.root), *who, *words], env=environ, check=True)
    session = connect(**{"docs.commits": True})
    asked: dict[str, Any] = {
        "query": "why are retries limited",
        "paths": ["src"],
        "since": "1d",
        "author": "ada",
    }
    hit = session.call("search_commits", **asked)["result"][0]
    assert (hit["subject"], hit["paths"]) == ("Limit retries", ["src/retry.py"])
    assert "The queue was full." in session.text("search_commits", **asked)
    assert "Ask for 1 to" in session.error("search_commits", query="x", limit=0)
    assert (
        cli.main(
            ["commits", "retries", "--project", str(project.root), "--set=embedding.model=hash"]
        )
        == 0
    )
    assert "Limit retries" in capsys.readouterr().out


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_over_stdio_is_one_session_in_either_era(launch: Connect, mode: str) -> None:
    session = launch(mode, **ON)
    assert "was not read" in session.error("journal_write", path="a", entry="too early")
    assert write(session, "a", "first", overview="# A")["entry_count"] == 1
    assert (
        session.call("journal_write", path="a", entry="second", overview="# B")["entry_count"] == 2
    )


def test_a_server_notices_what_others_commit(project: Project, connect: Connect) -> None:
    watching = connect(**ON, **{"watch.enabled": True})
    assert watching.call("journal_search", work_context="", content="walrus")["result"] == []
    other = connect(**ON)
    write(other, "a", "the walrus sings")
    until(lambda: watching.call("journal_search", work_context="", content="walrus")["result"])
    (project.root / "journal-data" / "a.md").write_text("by hand\n")
    journal(project, "commit", "-qam", "the gecko dances")
    until(lambda: watching.call("journal_search", work_context="", content="gecko")["result"])
