"""Editing a part of a memory, renaming one, and conflicts with a proposal, over real files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ragdocs.errors import (
    AlreadyExistsError,
    ConflictError,
    NotFoundError,
    ParseError,
    RagdocsError,
    ValidationError,
)
from ragdocs.verbs.memories.revise import Edit

if TYPE_CHECKING:
    from tests.conftest import Project

    from ragdocs.workspace import Workspace

PLAN = "---\ntype: plan\n---\n\n# Plan\n\none\n\ntwo\n\nthree\n"


@pytest.fixture
def workspace(project: Project) -> Workspace:
    project.memory("plan.md", PLAN)
    return project.open()


def texts(project: Project) -> dict[str, str]:
    root = project.root / ".memories"
    return {
        path.relative_to(root).as_posix(): path.read_bytes().decode() for path in root.rglob("*.md")
    }


def plan(project: Project) -> Path:
    return project.root / ".memories/plan.md"


# --- edit ---


def test_an_edit_is_written_found_and_kept_in_history(
    project: Project, workspace: Workspace
) -> None:
    answer = workspace.edits.edit("plan", Edit("zwei", find="two"))
    assert answer["status"] == "edited"
    assert (answer["places"], answer["lines"]) == (1, "7-11")
    assert answer["content"] == "one\n\nzwei\n\nthree"
    assert plan(project).read_text() == PLAN.replace("two", "zwei")
    assert answer["version"] == workspace.memories.read("plan")["version"]
    assert [hit["memory_id"] for hit in workspace.memories.search("zwei")["result"]] == [
        "memory:plan"
    ]
    kept = workspace.versions.history("plan")["result"]
    assert [(one["verb"], one["became"]) for one in kept] == [("edit", answer["version"])]


def test_an_edit_that_changes_nothing_leaves_no_trace(
    project: Project, workspace: Workspace
) -> None:
    assert workspace.edits.edit("plan", Edit(fields={"type": "plan"}))["status"] == "unchanged"
    assert workspace.versions.history("plan")["result"] == []
    assert plan(project).read_text() == PLAN


def test_marks_line_ends_and_a_missing_last_end_stay(project: Project) -> None:
    data = (
        b"\xef\xbb\xbf---\r\ntype: plan\r\n---\r\n\r\n# Plan\r\n\r\ntwo\r\n\r\n## End\r\n\r\nlast"
    )
    plan(project).parent.mkdir()
    plan(project).write_bytes(data)
    edits = project.open().edits
    edits.edit("plan", Edit("zwei", find="two"))
    edits.edit("plan", Edit("more\nlines", section="End", mode="append"))
    edits.edit("plan", Edit(fields={"status": "done"}))
    assert plan(project).read_bytes() == (
        data.replace(b"two", b"zwei").replace(b"plan\r\n---", b"plan\r\nstatus: done\r\n---")
        + b"\r\n\r\nmore\r\nlines"
    )


def test_bytes_that_are_no_text_are_not_edited_away(project: Project) -> None:
    plan(project).parent.mkdir()
    plan(project).write_bytes(b"caf\xe9 two\n")
    edits = project.open().edits
    for change in (
        lambda: edits.edit("plan", Edit("x", find="two")),
        lambda: edits.rename("plan", "other"),
    ):
        with pytest.raises(ParseError, match="not valid UTF-8"):
            change()
    assert plan(project).read_bytes() == b"caf\xe9 two\n"


def test_fields_that_ragdocs_reads_are_checked(workspace: Workspace) -> None:
    workspace.edits.edit("plan", Edit(fields={"tags": "#auth, Auth,two words"}))
    assert "tags: [auth, two words]" in workspace.memories.read("plan")["content"]
    for fields in ({"type": "two words"}, {"tags": ["a\nb"]}, {"": 1}, {"a\nb": 1}):
        with pytest.raises(ValidationError):
            workspace.edits.edit("plan", Edit(fields=fields))


def test_a_secret_does_not_get_in_by_an_edit(project: Project, workspace: Workspace) -> None:
    token = "ghp_" + "".join(chr(ord("a") + (7 * n) % 26) + str(n % 10) for n in range(18))
    answers = [
        workspace.edits.edit("plan", Edit(f"two {token}", find="two")),
        workspace.edits.edit("plan", Edit(fields={"note": token})),
    ]
    assert all(answer["warnings"] for answer in answers)
    assert token not in str(answers)
    assert not any(
        token.encode() in path.read_bytes() for path in project.root.rglob("*") if path.is_file()
    )


# --- conflicts ---


def conflict(workspace: Workspace, theirs: str, change: Edit | str) -> ConflictError:
    """Let somebody else write first, and return what a writer with the old version is told."""
    version = workspace.memories.read("plan")["version"]
    workspace.memories.update("plan", theirs)
    write: Any = workspace.edits.edit if isinstance(change, Edit) else workspace.memories.update
    with pytest.raises(ConflictError) as caught:
        write("plan", change, version)
    assert workspace.memories.read("plan")["content"] == theirs
    assert caught.value.version == workspace.memories.read("plan")["version"]
    return caught.value


def test_a_stale_update_is_told_base_theirs_yours_and_both_together(workspace: Workspace) -> None:
    theirs, yours = PLAN.replace("one", "ONE"), PLAN.replace("three", "THREE")
    error = conflict(workspace, theirs, yours)
    assert (error.base, error.theirs, error.yours) == (PLAN, theirs, yours)
    assert error.merged == PLAN.replace("one", "ONE").replace("three", "THREE")
    assert error.overlaps == 0
    assert workspace.memories.update("plan", error.merged, error.version)["status"] == "updated"


def test_overlapping_updates_are_marked(workspace: Workspace) -> None:
    error = conflict(workspace, PLAN.replace("two", "deux"), PLAN.replace("two", "zwei"))
    assert error.overlaps == 1
    assert "<<<<<<< theirs\ndeux\n=======\nzwei\n>>>>>>> yours\n" in error.merged


def test_a_base_that_is_not_kept_leaves_the_two_texts(
    project: Project, workspace: Workspace
) -> None:
    version = workspace.memories.read("plan")["version"]
    plan(project).write_text("written by hand\n")
    with pytest.raises(ConflictError) as caught:
        workspace.memories.update("plan", "mine\n", version)
    assert (caught.value.base, caught.value.merged) == ("", "")
    assert (caught.value.theirs, caught.value.yours) == ("written by hand\n", "mine\n")


def test_a_stale_append_is_proposed_behind_the_new_text(workspace: Workspace) -> None:
    version = workspace.memories.read("plan")["version"]
    workspace.memories.update("plan", "new text\n")
    with pytest.raises(ConflictError) as caught:
        workspace.memories.append("plan", "mine", version)
    assert (caught.value.base, caught.value.yours) == (PLAN, "mine")
    assert caught.value.merged == "new text\n\n\nmine"


def test_a_stale_edit_is_proposed_on_the_new_text(workspace: Workspace) -> None:
    theirs = PLAN.replace("one", "ONE")
    error = conflict(workspace, theirs, Edit("zwei", find="two"))
    assert (error.base, error.yours) == (PLAN, PLAN.replace("two", "zwei"))
    assert error.merged == theirs.replace("two", "zwei")


def test_a_stale_edit_of_a_passage_that_is_gone_is_marked(workspace: Workspace) -> None:
    error = conflict(workspace, PLAN.replace("two", "deux"), Edit("zwei", find="two"))
    assert error.overlaps == 1
    assert "deux\n=======\nzwei" in error.merged


def test_stale_deletes_renames_and_merges_change_nothing(
    project: Project, workspace: Workspace
) -> None:
    version = workspace.memories.read("plan")["version"]
    workspace.memories.append("plan", "more")
    workspace.memories.create("other", "text", [])
    before = texts(project)
    for change in (
        lambda: workspace.memories.delete("plan", version),
        lambda: workspace.edits.rename("plan", "new", version),
        lambda: workspace.merges.merge(["plan", "other"], "plan", "both", version),
    ):
        with pytest.raises(ConflictError) as caught:
            change()
        assert caught.value.theirs.endswith("more")
        assert texts(project) == before
    assert caught.value.base == PLAN
    current = workspace.memories.read("plan")["version"]
    assert workspace.edits.rename("plan", "new", current)["filename"] == "new.md"


# --- rename ---

LINKS = """\
---
related: ["[[plan]]", plan.md, "memory:plan", planet.md]   # kept
title: plan.md
---

See [[plan]], [[plan.md#Plan|the plan]], ![[Plan#one]] and [[planet]] or [[ plan ]].

- supersedes [[plan]]
- [label](plan.md), [other](./plan.md#two "title"), [angle](<plan.md>), [root](/.memories/plan.md), [ref][p]

[p]: plan.md#one

`[[plan]]` and \\[[plan]] are none.

```
[[plan]] [x](plan.md)
```
"""


def test_every_kind_of_link_follows_a_renamed_memory(
    project: Project, workspace: Workspace
) -> None:
    project.memory("links.md", LINKS)
    project.memory("sub/deep.md", "Up [to it](../plan.md) and [[plan]].\n")
    project.memory("unrelated.md", "The plan is [[planet]] and plan.md.\n")
    answer = workspace.edits.rename("plan.md", "auth/road map.md")
    new = (
        LINKS.replace(
            '"[[plan]]", plan.md, "memory:plan"',
            "'[[road map]]', auth/road map.md, 'memory:auth/road map'",
        )
        .replace("[[plan]],", "[[road map]],")
        .replace("[[plan.md#Plan|", "[[auth/road map.md#Plan|")
        .replace("[[Plan#one]]", "[[road map#one]]")
        .replace("[[ plan ]]", "[[ road map ]]")
        .replace("supersedes [[plan]]", "supersedes [[road map]]")
        .replace("[label](plan.md)", "[label](auth/road%20map.md)")
        .replace("(./plan.md#two", "(auth/road%20map.md#two")
        .replace("<plan.md>", "<auth/road map.md>")
        .replace("(/.memories/plan.md)", "(/.memories/auth/road%20map.md)")
        .replace("[p]: plan.md", "[p]: auth/road%20map.md")
    )
    found = texts(project)
    assert found["links.md"] == new
    assert found["sub/deep.md"] == "Up [to it](../auth/road%20map.md) and [[road map]].\n"
    assert found["unrelated.md"] == "The plan is [[planet]] and plan.md.\n"
    assert found["auth/road map.md"] == PLAN
    assert "plan.md" not in found
    assert answer["files"] == {"links.md": 11, "sub/deep.md": 2}
    assert answer["links"] == 13
    linked = workspace.memories.linked("", "auth/road map.md")["result"]
    assert {hit["memory_id"] for hit in linked} == {"memory:links", "memory:sub/deep"}
    assert workspace.memories.linked("", "plan.md")["result"] == []
    assert not (project.root / ".memories/.trash").exists()


def test_a_moved_memory_keeps_reaching_what_it_links_to(project: Project) -> None:
    project.memory(
        "a.md",
        "[doc](../docs/x.md) [sib](b.md) ![img](p.png) [self](a.md#h) [web](https://x.org/a.md) [[b]]\n",
    )
    project.memory("b.md", "b\n")
    workspace = project.open()
    assert workspace.edits.rename("a", "deep/down/a")["files"] == {"deep/down/a.md": 4}
    assert texts(project)["deep/down/a.md"] == (
        "[doc](../../../docs/x.md) [sib](../../b.md) ![img](../../p.png) [self](a.md#h) [web](https://x.org/a.md) "
        "[[b]]\n"
    )
    assert (
        workspace.memories.linked("", "docs/x.md")["result"][0]["memory_id"] == "memory:deep/down/a"
    )


def test_links_that_still_reach_it_are_left_alone(project: Project) -> None:
    project.memory("a.md", "---\naliases: [Alpha]\n---\n\n# The title\n")
    project.memory("b.md", "[[a]] [[Alpha]] [[The title]] [[a.md]]\n")
    workspace = project.open()
    assert workspace.edits.rename("a", "folder/a")["links"] == 1
    assert texts(project)["b.md"] == "[[a]] [[Alpha]] [[The title]] [[folder/a.md]]\n"


def test_a_name_that_others_have_too_is_left_and_told(project: Project) -> None:
    project.memory("x/notes.md", "x\n")
    project.memory("y/notes.md", "y\n")
    project.memory("links.md", "[[notes]] and [[x/notes]]\n")
    answer = project.open().edits.rename("x/notes", "x/other")
    assert texts(project)["links.md"] == "[[notes]] and [[x/other]]\n"
    assert "others have that name too" in answer["warnings"][0]


def test_a_title_taken_from_the_file_name_follows_it(project: Project) -> None:
    project.memory("auth-plan.md", "text\n")
    project.memory("links.md", "[[Auth plan]]\n")
    project.open().edits.rename("auth-plan", "login-plan")
    assert texts(project)["links.md"] == "[[login-plan]]\n"


def test_a_mark_at_the_start_and_line_ends_move_along(project: Project) -> None:
    data = b"\xef\xbb\xbf---\r\nid: 4711\r\n---\r\n\r\n[[plan]]\r\n\r\nlast"
    plan(project).parent.mkdir()
    plan(project).write_bytes(data)
    other = project.root / ".memories/other.md"
    other.write_bytes(b"\xef\xbb\xbf[[plan]]\r\nx\r\n")
    project.open().edits.rename("plan", "new")
    assert (project.root / ".memories/new.md").read_bytes() == data.replace(b"[[plan]]", b"[[new]]")
    assert other.read_bytes() == b"\xef\xbb\xbf[[new]]\r\nx\r\n"


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("plan", "taken", AlreadyExistsError),
        ("plan", "TAKEN", AlreadyExistsError),
        ("plan", "Plan", RagdocsError),
        ("plan", "plan.md", ValidationError),
        ("plan", "../out", ValidationError),
        ("plan", ".hidden", ValidationError),
        ("plan", "indices/x", ValidationError),
        ("gone", "new", NotFoundError),
    ],
)
def test_a_name_that_cannot_be_is_refused(
    project: Project, old: str, new: str, error: type[RagdocsError]
) -> None:
    project.memory("plan.md", PLAN)
    project.memory("taken.md", "[[plan]]\n")
    workspace, before = project.open(), texts(project)
    with pytest.raises(error):
        workspace.edits.rename(old, new)
    assert texts(project) == before
    assert workspace.versions.history()["result"] == []


def test_a_memory_that_cannot_be_rewritten_is_named(project: Project, workspace: Workspace) -> None:
    (project.root / ".memories/odd.md").write_bytes(b"[[plan]] caf\xe9\n")
    (project.root / ".memories/large.md").write_bytes(b"[[plan]]\n" * 1_200_000)
    answer = workspace.edits.rename("plan", "new")
    told = sorted(warning.split(":")[0] for warning in answer["warnings"])
    assert told == [f"links in {name}.md are as they were" for name in ("large", "odd")]
    assert (project.root / ".memories/odd.md").read_bytes() == b"[[plan]] caf\xe9\n"
