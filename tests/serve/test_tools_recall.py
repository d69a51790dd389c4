"""remember and recall through a real client and from the terminal.

With the examples of their document.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.plain_git import plain_git

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Connect, Run

# What the document shows as a memory, and what it asks for.
DECISION = """\
## Chose OAuth2 over JWT for session management

### Decision
OAuth2 with refresh tokens stored server-side. Access tokens are short-lived (15min),
refresh tokens in Redis with explicit revocation support.

### Trade-offs
- But: can revoke sessions instantly (security requirement)"""
CALLS: list[dict[str, Any]] = [
    {},
    {"query": "auth"},
    {"since": "1w"},
    {"scope": "global"},
    {"scope": "global", "since": "yesterday"},
]
MEMORY = ["id", "timestamp", "tags", "content", "git", "age", "path"]


@pytest.fixture(autouse=True)
def home(own_directories: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(own_directories))
    return own_directories


def repository(root: Path, branch: str) -> None:
    plain_git(root, "init", "-b", branch)
    plain_git(root, "commit", "--allow-empty", "-m", "first")


def beside(project: Project, name: str) -> Project:
    root = project.root.parent / name
    root.mkdir()
    return type(project)(root)


def test_the_examples_of_the_document_run_as_written(project: Project, connect: Connect) -> None:
    repository(project.root, "feature/oauth")
    project.write("src/auth/oauth.ts", "x\n")
    project.write("src/middleware/session.ts", "x\n")
    session = connect()
    kept = session.call("remember", content=DECISION, tags=["auth", "architecture"])
    assert re.fullmatch(r"mem_[0-9a-f]{12}", kept["id"])
    assert re.fullmatch(r"\.memories/\d{4}-\d\d-\d\d/\d{6}_[0-9a-f]{4}\.md", kept["path"])
    for arguments in CALLS:
        (memory,) = session.call("recall", **arguments)["result"]
        expected = set(MEMORY)
        # Where there was something to look for, and where all projects were asked.
        expected |= {"score"} if "query" in arguments else set()
        expected |= {"project"} if "scope" in arguments else set()
        assert set(memory) == expected
        assert memory["id"] == kept["id"]
        assert memory["content"] == DECISION
        assert memory["tags"] == ["auth", "architecture"]
        assert abs(memory["timestamp"] - datetime.now(UTC).timestamp()) < 60
        assert memory["git"]["branch"] == "feature/oauth"
        assert memory["git"]["files_changed"] == ["src/auth/oauth.ts", "src/middleware/session.ts"]


def test_answers_fit_into_what_a_client_takes(project: Project, connect: Connect) -> None:
    files = ", ".join(f"'src/{'long-name-' * 9}{n}.py'" for n in range(50))
    git = f"git: {{branch: {'b' * 300}, commit: abc, dirty: true, files_changed: [{files}]}}"
    text = 'A "needle" in 日本語.\n' * 60
    for number in range(30):
        tags = ", ".join(f"tag-{number}-{n}" for n in range(30))
        project.memory(f"{number:02}.md", f"---\ntags: [{tags}]\n{git}\n---\n\n{text}")
    session = connect().settle()
    everywhere = {"query": "needle", "scope": "global", "limit": 50}
    for arguments in ({"limit": 50}, {"query": "needle"}, everywhere):
        answer, text = session.call("recall", **arguments), session.text("recall", **arguments)
        assert len(json.dumps(answer, ensure_ascii=False)) < 10_000
        assert len(text) < 10_000
        assert answer["result"]
        assert f"{answer['omitted']} more memories" in text
        assert any("did not fit" in note for note in answer["notes"])


def test_an_agent_may_ask_for_superseded_memories(project: Project, connect: Connect) -> None:
    project.memory("tokens.md", "# Tokens\n\nAccess tokens live for one hour.\n")
    project.memory("sessions.md", "# Sessions\n\nIn Redis.\n\n- supersedes:: [[tokens]]\n")
    session = connect().settle()
    (current,) = session.call("recall")["result"]
    assert current["path"] == ".memories/sessions.md"
    both = session.call("recall", superseded=True)["result"]
    assert [memory.get("superseded_by") for memory in both] == [None, ["memory:sessions"]]
    assert ".memories/tokens.md" not in session.call("build_context")["context"]
    pack = session.call("build_context", superseded=True)["context"]
    assert "superseded by memory:sessions" in pack


# --- the command line ---


def test_a_stand_up_is_grouped_by_day_and_project(project: Project, run: Run) -> None:
    other = beside(project, "miller")
    project.write("config.toml", "[memory]\nenabled = true\n")
    other.write("config.toml", "[memory]\nenabled = true\n")
    text = "Chose OAuth2.\n\nBecause.\n\na\n\nb\n\nc"
    assert run("remember", text, "--tag", "auth")[1].startswith("remembered mem_")
    assert run("remember", stdin="Fixed the report.\n", root=other.root)[0] == 0
    moment = datetime.now(UTC) - timedelta(days=3)
    project.memory("old.md", f"---\ncreated_at: '{moment.isoformat()}'\n---\n\n# Three days ago\n")
    code, out, _ = run("recall", "--scope", "global", "--since", "1w")
    today, earlier = (f"{day.astimezone():%A %d %B %Y}" for day in (datetime.now(UTC), moment))
    assert code == 0
    first, second = out.split(f"{earlier}\n")
    assert first.startswith(f"{today}\n")
    assert {"  project", "  miller"} <= set(first.splitlines())
    assert re.match(r"  project\n    \d\d:\d\d  Three days ago\n", second)
    assert re.search(r"\d\d:\d\d  Chose OAuth2\. #auth\n +just now · \.memories/\S+\n", first)
    assert re.search(r"\n +\| Because\.\n(.*\n)+ +\| … 1 more lines\n", first)
    assert "Three days ago" not in run("recall", "--scope", "global", "--since", "yesterday")[1]
