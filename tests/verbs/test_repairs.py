"""Safe repairs of memories, and the formats in which problems are listed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.asking import ask
from tests.conftest import Project
from tests.plain_git import plain_git

from ragdocs.serve.surface.present import reports

HEAD = "---\ncreated_at: 2026-01-01\n---\n"


@pytest.fixture
def repository(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose file was renamed twice."""
    plain_git(project.root, "init")
    project.write("src/old.py", "def parse():\n    return 'a text that stays the same'\n")
    plain_git(project.root, "add", "src")
    plain_git(project.root, "commit", "-m", "first")
    plain_git(project.root, "mv", "src/old.py", "src/newer.py")
    plain_git(project.root, "commit", "-m", "second")
    # A rename that is only staged counts too.
    plain_git(project.root, "mv", "src/newer.py", "src/newest.py")
    monkeypatch.chdir(project.root)
    return project


def text_of(project: Project, name: str) -> str:
    return Path(project.root, ".memories", name).read_text(encoding="utf-8")


def test_links_to_renamed_files_lead_to_their_new_names(repository: Project) -> None:
    text = f"{HEAD}See [[src/old.py]] and [it](../src/newer.py#L3), not `[[src/old.py]]`.\n"
    repository.memory("plan.md", text)
    workspace = repository.open()
    trial = ask(workspace, "lint_texts", fix=True, dry_run=True)
    assert [row["rule"] for row in trial["repairs"]] == ["renamed-file", "renamed-file"]
    assert "-See [[src/old.py]]" in trial["diff"]
    assert text_of(repository, "plan.md") == text
    assert any(
        "repairs are possible in 1 of the memories" in note
        for note in ask(workspace, "lint_texts")["notes"]
    )
    done = ask(workspace, "lint_texts", fix=True)
    assert done["is_repaired"]
    wanted = "See [[src/newest.py]] and [it](../src/newest.py#L3), not `[[src/old.py]]`.\n"
    assert text_of(repository, "plan.md") == f"{HEAD}{wanted}"
    assert ask(workspace, "lint_texts", fix=True)["repairs"] == []
    ask(workspace, "undo_memory_change")
    assert text_of(repository, "plan.md") == text


def test_relative_links_tags_and_dates_are_repaired_as_one_change(repository: Project) -> None:
    repository.memory("a.md", f"{HEAD.replace('---', '---', 1)}The first.\n")
    repository.memory("deep/b.md", f"{HEAD}See [[../a]] and [[./c|that]] and [[./nothing]].\n")
    repository.memory("deep/c.md", "---\ntags: [front-end] # of the page\n---\nNo date.\n")
    repository.memory("d.md", f"{HEAD[:-4]}tags: [frontend, x]\n---\nOne.\n")
    repository.memory("e.md", f"{HEAD[:-4]}tags: [frontend]\n---\nTwo.\n")
    before = {name: text_of(repository, name) for name in ("deep/b.md", "deep/c.md", "d.md")}
    workspace = repository.open()
    rows = ask(workspace, "lint_texts", fix=True)["repairs"]
    rules = sorted(row["rule"] for row in rows)
    assert rules == ["missing-date", "relative-link", "relative-link", "tag-spelling"]
    assert "tags become [frontend]" in [row["problem"] for row in rows]
    assert text_of(repository, "deep/b.md").endswith(
        "See [[a]] and [[deep/c|that]] and [[./nothing]].\n"
    )
    assert "tags: [frontend] # of the page" in text_of(repository, "deep/c.md")
    assert "created_at: " in text_of(repository, "deep/c.md")
    ask(workspace, "undo_memory_change")
    for name, text in before.items():
        assert text_of(repository, name) == text


def test_contradictions_are_notes_and_fail_nothing(project: Project) -> None:
    project.memory("a.md", f"{HEAD}The gateway allows 100 requests per minute.\n")
    project.memory("b.md", f"{HEAD}\n\nGateways allow 200 requests per minute.\n")
    project.memory("c.md", f"{HEAD}We deploy from the release branch.\n\ncontradicts:: [[d]]\n")
    project.memory("d.md", f"{HEAD}Something else.\n")
    project.memory("e.md", f"{HEAD}The gateway allows 300 requests.\n\nsupersedes:: [[f]]\n")
    project.memory("f.md", f"{HEAD}The gateway allowed 50 requests per minute.\n")
    workspace = project.open()
    rows = ask(workspace, "lint_texts")["result"]
    # What is known about texts that have not changed is not looked for again.
    assert ask(project.open(), "lint_texts")["result"] == rows
    assert {row["rule"] for row in rows} == {"contradiction"}
    assert {row["level"] for row in rows} == {"note"}
    texts = [row["problem"] for row in rows]
    assert texts[0] == "says that it contradicts d.md"
    assert any("b.md:6 (100 and 200)" in text for text in texts)
    assert not any("f.md" in text for text in texts)
    ask(workspace, "update_memory", filename="b.md", content=f"{HEAD}Something new.\n")
    texts = [row["problem"] for row in ask(workspace, "lint_texts")["result"]]
    assert texts == ["says that it contradicts d.md"]


def test_problems_are_written_as_other_programs_read_them(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.root)
    project.doc("a.md", "# A\n\nSee [b](missing, 100%.md).\n\nSee [c](missing.md).\n")
    answer = ask(project.open(), "lint_texts")
    log = json.loads(reports.sarif(answer))
    (result,) = log["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("docs/a.md", 5)
    assert result["ruleId"] in {rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]}
    line = reports.github(answer)
    assert line.startswith("::warning file=docs/a.md,line=5,title=ragdocs dead-link::the link to")
    project.memory("b.md", f"{HEAD}The first.\n\nSee [[./nothing]].\n")
    lines = reports.github(ask(project.open(), "lint_texts")).splitlines()
    assert any(line.startswith("::warning file=.memories/b.md,line=6,") for line in lines)
    row = {"path": "a,b.md", "line": None, "problem": "50%\nof it", "rule": "text", "level": "note"}
    written = reports.github({"result": [row]})
    assert written == "::notice file=a%2Cb.md,line=1,title=ragdocs text::50%25%0Aof it"
