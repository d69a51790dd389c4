"""Memories that the documentation says already, and those that it should say."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from tests.asking import ask
from tests.conftest import NOW, Project

from ragdocs.serve.surface.present import care as present_care

SECTION = (
    "Access tokens are signed with RS256 and expire after 15 minutes. The refresh endpoint "
    "rotates the refresh token and revokes the previous one in the same transaction."
)
SAME = (
    "Refresh endpoint rotates the refresh token, and revokes the previous one in the same "
    "transaction. Access tokens expire after 15 minutes and are signed with RS256."
)


def planted(project: Project) -> None:
    filler = "\n\n".join(f"## Part {n}\n\nSomething about gardens {n}." for n in range(40))
    short = "## Use\n\nSend it."
    page = f"# Tokens\n\n{short}\n\n## Life of a token\n\n{SECTION}\n\n{filler}\n"
    project.doc("tokens.md", page)
    head = "---\ncreated_at: 2026-01-01\n---\n"
    project.memory("same.md", f"{head}# Tokens\n\n{SAME}\n")
    project.memory("news.md", f"{head}# Tokens\n\n{SAME.replace('15', '20')}\n")
    project.memory(
        "other.md", f"{head}# Tokens\n\n{SAME.replace('endpoint', 'endpoint of Kendra')}\n"
    )
    project.memory("short.md", f"{head}Access tokens are signed.\n")


def test_a_memory_that_a_section_says_could_be_a_link(project: Project) -> None:
    planted(project)
    before = {path: path.read_text() for path in project.root.rglob("*.md")}
    answer = ask(project.open(), "suggest_docs_changes")
    (item,) = answer["restated"]
    assert item["memory"]["path"] == "same.md"
    assert item["page"]["path"] == "docs/tokens.md"
    assert "RS256" in item["section"]
    assert item["heading"] == "Tokens > Life of a token"
    assert item["lines"].startswith("9-")
    assert "+See [[docs/tokens.md#Life of a token]]." in item["diff"]
    shown = present_care.docs_changes(answer)
    assert "   | +See [[docs/tokens.md#Life of a token]]." in shown.splitlines()
    assert " created_at: 2026-01-01" in item["diff"]
    assert answer["patches"] == []
    assert {path: path.read_text() for path in project.root.rglob("*.md")} == before


def test_a_memory_that_is_used_often_and_stable_comes_as_a_patch(project: Project) -> None:
    planted(project)
    text = "# Ledger\n\nThe ledger is swept every night, see [[docs/tokens.md]].\n"
    path = project.memory("ledger.md", text)
    project.memory("fresh.md", "# Fresh\n\nWritten an hour ago, see [[docs/tokens.md]].\n")
    old = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    os.utime(path, (old, old))
    workspace = project.open()
    for name in ("memory:ledger", "memory:fresh"):
        for _ in range(3):
            workspace.access.note("used", [(name, None)], NOW)
    (patch,) = ask(workspace, "suggest_docs_changes")["patches"]
    assert (patch["memory"]["path"], patch["uses"]) == ("ledger.md", 3)
    assert "--- docs/tokens.md" in patch["diff"]
    assert "+## Ledger\n+\n+The ledger is swept every night" in patch["diff"]
