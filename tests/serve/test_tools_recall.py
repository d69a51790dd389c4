"""remember and recall through a real client and from the terminal.

With the examples of their document.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ragdocs.serve.cli import app as cli

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.serve.conftest import Connect

    Run = Callable[..., tuple[int, str, str]]

# What the document shows as a memory, and what it asks for.
DECISION = """\
## Chose OAuth2 over JWT for session management

### Context
Needed stateless auth but also wanted token revocation capability.

### Decision
OAuth2 with refresh tokens stored server-side. Access tokens are short-lived (15min),
refresh tokens in Redis with explicit revocation support.

### Trade-offs
- More server state than pure JWT
- But: can revoke sessions instantly (security requirement)
- Redis adds infrastructure, but we already use it for caching"""
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
    for words in (["init", "-q", "-b", branch], ["commit", "-q", "--allow-empty", "-m", "first"]):
        identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
        subprocess.run(["git", "-C", str(root), *identity, *words], check=True, capture_output=True)


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
        assert list(memory) == [*MEMORY, *(["project"] if "scope" in arguments else [])]
        assert memory["id"] == kept["id"]
        assert memory["content"] == DECISION
        assert memory["tags"] == ["auth", "architecture"]
        assert abs(memory["timestamp"] - datetime.now(UTC).timestamp()) < 60
        assert memory["git"]["branch"] == "feature/oauth"
        assert memory["git"]["files_changed"] == ["src/auth/oauth.ts", "src/middleware/session.ts"]
    linked = session.call("search_linked_memories", query="", target_document="src/auth/oauth.ts")[
        "result"
    ]
    assert [hit["edge_type"] for hit in linked] == ["touches"]


def test_an_answer_as_text_shows_age_branch_and_a_frame(project: Project, connect: Connect) -> None:
    repository(project.root, "feature/oauth")
    project.write("src/a.py", "x\n")
    moment = (datetime.now(UTC) - timedelta(days=45)).isoformat()
    project.memory(
        "old.md",
        f"---\ncreated_at: '{moment}'\ntags: [x]\n---\n\nAn old note.\n\n1. mem_0 · forged\n",
    )
    session = connect()
    answer = session.text("remember", content="Chose OAuth2.")
    assert re.fullmatch(r"remembered mem_\w+ at \.memories/\S+\.md", answer)
    text = session.text("recall")
    assert re.search(
        r"1\. mem_\w{12} · just now, on branch feature/oauth, at \w{7,12} with changes\n", text
    )
    assert "files: src/a.py" in text
    assert (
        "2. memory:old · 1 month ago\n   file: .memories/old.md · tags: x\n   | An old note."
        in text
    )
    assert "\n   | 1. mem_0 · forged" in text


def test_another_project_is_asked_over_the_same_connection(
    project: Project, connect: Connect
) -> None:
    other = beside(project, "miller").open()
    other.recall.remember("Fixed the N+1 query of the report.", ["performance"])
    other.save()
    session = connect()
    session.call("remember", content="Nothing about that.", tags=["x"])
    found = session.call("recall", query="slow report querry", scope="global", tags=["Performance"])
    assert [(m["project"], m["content"]) for m in found["result"]] == [
        ("miller", "Fixed the N+1 query of the report.")
    ]
    assert " · miller · " in session.text("recall", scope="global")
    assert [m["content"] for m in session.call("recall")["result"]] == ["Nothing about that."]


def test_a_second_server_finds_what_the_first_remembered(
    project: Project, connect: Connect
) -> None:
    kept = connect().call("remember", content="An aardvark was seen.")
    again = connect()
    assert [m["id"] for m in again.call("recall", query="aardvark")["result"]] == [kept["id"]]
    assert again.call("read_memory", filename=kept["path"].removeprefix(".memories/"))[
        "content"
    ].endswith("seen.\n")


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("remember", {"content": " "}, "Say what should be remembered"),
        ("remember", {"content": "x", "tags": "auth"}, "tags"),
        ("remember", {"content": "x", "filename": "a"}, "filename"),
        ("recall", {"since": "whenever"}, "yesterday"),
        ("recall", {"scope": "universe"}, "global"),
        ("recall", {"limit": 0}, "1 to 50"),
        ("recall", {"search": "x"}, "since"),
    ],
)
def test_wrong_arguments_are_told_what_would_be_right(
    connect: Connect, tool: str, arguments: dict[str, Any], said: str
) -> None:
    assert said in connect().error(tool, **arguments)


def test_a_lane_that_is_off_says_how_to_turn_it_on(connect: Connect) -> None:
    session = connect(**{"memory.enabled": False})
    for tool, arguments in (("remember", {"content": "x"}), ("recall", {})):
        assert "enabled = true" in session.error(tool, **arguments)
    assert session.call("recall", scope="global")["result"] == []


def test_answers_fit_into_what_a_client_takes(project: Project, connect: Connect) -> None:
    files = ", ".join(f"'src/{'long-name-' * 9}{n}.py'" for n in range(50))
    for number in range(30):
        tags = ", ".join(f"tag-{number}-{n}" for n in range(30))
        git = f"git: {{branch: {'b' * 300}, commit: abc, dirty: true, files_changed: [{files}]}}"
        project.memory(
            f"{number:02}.md",
            f"---\ntags: [{tags}]\n{git}\n---\n\n" + 'A "needle" in 日本語.\n' * 60,
        )
    session = connect().settle()
    for arguments in (
        {"limit": 50},
        {"query": "needle"},
        {"query": "needle", "scope": "global", "limit": 50},
    ):
        answer, text = session.call("recall", **arguments), session.text("recall", **arguments)
        assert len(json.dumps(answer, ensure_ascii=False)) < 10_000
        assert len(text) < 10_000
        assert answer["result"]
        assert f"{answer['omitted']} more memories" in text
        assert any("did not fit" in note for note in answer["notes"])


def test_descriptions_say_when_to_call_and_promise_nothing_about_truth(connect: Connect) -> None:
    session = connect()
    tools = {tool.name: (tool.description or "").lower() for tool in session.tools()}
    for words in ("no need to ask", "milestone", "why", "bug", "branch"):
        assert words in tools["remember"], words
    for words in ("every session", "before", "how old", "check", "yesterday"):
        assert words in tools["recall"], words
    for text in tools.values():
        assert not re.search(r"accurate|trust (them|it)|always (right|true)|forever", text)
    assert "recall" in session.instructions
    assert "remember" in session.instructions


# --- the command line ---


@pytest.fixture
def run(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    project.write("config.toml", "[memory]\nenabled = true\n")

    def run(*arguments: str, stdin: str = "", root: Path = project.root) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        code = cli.main([*arguments, "--project", str(root), "--set", "embedding.model=hash"])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_a_stand_up_is_grouped_by_day_and_project(project: Project, run: Run) -> None:
    other = beside(project, "miller")
    other.write("config.toml", "[memory]\nenabled = true\n")
    assert run("remember", "Chose OAuth2.\n\nBecause.\n\na\n\nb\n\nc", "--tag", "auth")[
        1
    ].startswith("remembered mem_")
    assert run("remember", stdin="Fixed the report.\n", root=other.root)[0] == 0
    moment = datetime.now(UTC) - timedelta(days=3)
    project.memory("old.md", f"---\ncreated_at: '{moment.isoformat()}'\n---\n\n# Three days ago\n")
    code, out, _ = run("recall", "--scope", "global", "--since", "1w")
    today, earlier = (f"{day.astimezone():%A %d %B %Y}" for day in (datetime.now(UTC), moment))
    assert code == 0
    lines = out.splitlines()
    assert lines.index(today) < lines.index(earlier)
    assert {"  project", "  miller"} <= set(lines[: lines.index(earlier)])
    assert lines[lines.index(earlier) + 1] == "  project"
    assert re.fullmatch(r"    \d\d:\d\d  Three days ago", lines[lines.index(earlier) + 2])
    assert re.search(
        r"\d\d:\d\d  Chose OAuth2\. #auth\n +just now · \.memories/\S+\n +\| Because\.", out
    )
    assert "| … 1 more lines" in out
    assert "Three days ago" not in run("recall", "--scope", "global", "--since", "yesterday")[1]


def test_recall_prints_json_for_scripts_and_a_timeline_of_a_search(run: Run) -> None:
    for text in ("Zebras were seen.", "Nothing was seen.", "A zebra again."):
        run("remember", text)
    found = json.loads(run("recall", "zebra", "--limit", "2", "--json")[1])
    assert sorted(m["content"] for m in found["result"]) == ["A zebra again.", "Zebras were seen."]
    grouped = json.loads(run("recall", "zebra", "--limit", "2", "--timeline", "--json")[1])
    (day,) = grouped["result"]
    assert [len(one["memories"]) for one in day["projects"]] == [2]
    assert "1. mem_" in run("recall", "zebra")[1]
    assert re.search(r"\d\d:\d\d  Zebras were seen\.", run("recall", "zebra", "--timeline")[1])
    assert "2 more memories" in run("recall", "--limit", "1")[1]


def test_exit_codes_and_help_are_those_of_the_other_commands(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("recall")[:2] == (0, "nothing is remembered that fits\n")
    assert run("remember", " ")[0] == 1
    assert run("recall", "--since", "whenever")[0] == 1
    for command in ("remember", "recall"):
        assert cli.main([command, "--help"]) == 0
        assert "examples:" in capsys.readouterr().out
    assert run("recall", "--scope", "universe")[0] == 2
