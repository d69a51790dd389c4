"""One text as a person reads it: the links of a text lead where their author meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.asking import ask

from ragdocs.errors import NotFoundError

if TYPE_CHECKING:
    from tests.conftest import Project

    from ragdocs.workspace import Workspace

PLAN = """
---
type: plan
aliases: [the big move]
---
# Move to JWT

[[docs/guide.md#Tokens]] [[guide]] [[src/auth.py]] [[src/gone.py]] [s](folder/sessions.md)
[[SESSIONS LIVE IN REDIS]] [[../outside]] [out](https://example.org)
"""


@pytest.fixture
def workspace(project: Project) -> Workspace:
    project.write("src/auth.py", "pass\n")
    project.doc("guide.md", "# Guide\n\nSee [the plan](../.memories/plan.md).\n")
    project.memory("plan.md", PLAN)
    project.memory("folder/sessions.md", "# Sessions live in Redis\n\nUntil [[the big move]].\n")
    return project.open()


def test_links_out_say_where_they_lead(workspace: Workspace) -> None:
    links = ask(workspace, "text_links", path="plan.md")["out"]
    led = {link["target"]: (link["state"], link["lane"], link["path"]) for link in links}
    sessions = ("indexed", "memory", "folder/sessions.md")
    guide = ("indexed", "docs", "docs/guide.md")
    assert led == {
        "docs/guide.md": guide,
        "guide": guide,
        "src/auth.py": ("file", "", ""),
        "src/gone.py": ("missing", "", ""),
        "folder/sessions.md": sessions,
        "SESSIONS LIVE IN REDIS": sessions,
    }


def test_links_back_have_the_words_around_them_memories_first(workspace: Workspace) -> None:
    back = ask(workspace, "text_links", path="plan.md")["back"]
    assert [(link["path"], link["context"]) for link in back] == [
        ("folder/sessions.md", "Until [[the big move]]."),
        ("docs/guide.md", "See [the plan](../.memories/plan.md)."),
    ]


def test_similar_memories_are_those_that_no_link_leads_to(
    project: Project, workspace: Workspace
) -> None:
    project.memory("jwt.md", "# JWT\n\nWe move to JWT, says the guide to auth tokens.\n")
    workspace.sync()
    workspace.embed()
    similar = ask(workspace, "text_links", path="plan.md")["similar"]
    assert [memory["path"] for memory in similar] == ["jwt.md"]


def test_a_draft_is_looked_at_as_if_it_was_saved(workspace: Workspace) -> None:
    draft = {"path": "folder/new.md", "content": "[s](sessions.md) [[nothing]]"}
    links = ask(workspace, "draft_links", **draft)["out"]
    assert [(link["path"], link["state"]) for link in links] == [
        ("folder/sessions.md", "indexed"),
        ("", "missing"),
    ]


def test_a_whole_text_is_not_cut_and_nothing_else_is_shown(workspace: Workspace) -> None:
    long = "word " * 40_000
    workspace.memories.create("long.md", long, [])
    shown = ask(workspace, "show_text", path="long.md")
    assert shown["content"].endswith(long)
    assert shown["version"] == workspace.memories.read("long.md").source.version
    with pytest.raises(NotFoundError):
        ask(workspace, "show_text", path="src/auth.py", text_lane="docs")


def test_secrets_are_told_by_line_and_kind_never_by_value(workspace: Workspace) -> None:
    key = "AKIA" + "Q3EGRZ7TJ5WNXK2B"
    found = ask(workspace, "check_secrets", content=f"first\n\nkey {key}\n")
    assert [secret["line"] for secret in found["result"]] == [3]
    assert key not in str(found)
