"""Editing a part of a memory, renaming one, and conflicts with a proposal, over real files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.asking import ask

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
    paths = root.rglob("*.md")
    return {path.relative_to(root).as_posix(): path.read_bytes().decode() for path in paths}


def plan(project: Project, data: bytes = b"") -> Path:
    path = project.root / ".memories/plan.md"
    if data:
        path.parent.mkdir()
        path.write_bytes(data)
    return path


# --- edit ---


def test_an_edit_is_written_found_and_kept_in_history(
    project: Project, workspace: Workspace
) -> None:
    answer = ask(workspace, "edit_memory", filename="plan", text="zwei", find="two")
    assert (answer["status"], answer["places"], answer["lines"]) == ("edited", 1, "7-11")
    assert answer["content"] == "one\n\nzwei\n\nthree"
    assert plan(project).read_text() == PLAN.replace("two", "zwei")
    assert answer["version"] == workspace.memories.read("plan").source.version
    assert workspace.memories.search("zwei").hits[0].document.id == "memory:plan"
    (revision,) = workspace.versions.history("plan").revisions
    assert (revision.verb, revision.after) == ("edit", answer["version"])
    # An edit that changes nothing leaves no trace.
    assert workspace.edits.edit("plan", Edit(fields={"type": "plan"})).status == "unchanged"
    assert workspace.versions.history("plan").total == 1


def test_marks_line_ends_and_a_missing_last_end_stay(project: Project) -> None:
    head = b"\xef\xbb\xbf---\r\ntype: plan\r\n---\r\n\r\n"
    data = head + b"# Plan\r\n\r\ntwo\r\n\r\n## End\r\n\r\nlast"
    path = plan(project, data)
    edits = project.open().edits
    edits.edit("plan", Edit("zwei", find="two"))
    edits.edit("plan", Edit("more\nlines", section="End", mode="append"))
    edits.edit("plan", Edit(fields={"status": "done"}))
    expected = data.replace(b"two", b"zwei").replace(b"plan\r\n", b"plan\r\nstatus: done\r\n", 1)
    assert path.read_bytes() == expected + b"\r\n\r\nmore\r\nlines"


def test_bytes_that_are_no_text_are_not_edited_away(project: Project) -> None:
    path = plan(project, b"caf\xe9 two\n")
    edits = project.open().edits
    with pytest.raises(ParseError, match="not valid UTF-8"):
        edits.edit("plan", Edit("x", find="two"))
    with pytest.raises(ParseError, match="not valid UTF-8"):
        edits.rename("plan", "other")
    assert path.read_bytes() == b"caf\xe9 two\n"


def test_fields_that_ragdocs_reads_are_checked(workspace: Workspace) -> None:
    workspace.edits.edit("plan", Edit(fields={"tags": "#auth, Auth,two words"}))
    assert "tags: [auth, two words]" in workspace.memories.read("plan").source.text
    for fields in ({"type": "two words"}, {"tags": ["a\nb"]}, {"": 1}, {"a\nb": 1}):
        with pytest.raises(ValidationError):
            workspace.edits.edit("plan", Edit(fields=fields))


def test_a_secret_does_not_get_in_by_an_edit(project: Project, workspace: Workspace) -> None:
    token = "ghp_" + "".join(chr(ord("a") + (7 * n) % 26) + str(n % 10) for n in range(18))
    for change in ({"text": f"two {token}", "find": "two"}, {"fields": {"note": token}}):
        answer = ask(workspace, "edit_memory", filename="plan", **change)
        assert answer["warnings"]
        assert token not in str(answer)
    for path in project.root.rglob("*"):
        assert not path.is_file() or token.encode() not in path.read_bytes()


# --- conflicts ---


def conflict(workspace: Workspace, theirs: str, verb: str, **arguments: Any) -> ConflictError:
    """Let somebody else write first, and return what a writer with the old version is told."""
    version = workspace.memories.read("plan").source.version
    workspace.memories.update("plan", theirs)
    with pytest.raises(ConflictError) as caught:
        ask(workspace, verb, filename="plan", expected_version=version, **arguments)
    current = workspace.memories.read("plan").source
    error = caught.value
    assert (current.text, current.version, error.base) == (theirs, error.version, PLAN)
    assert error.theirs == theirs
    return error


def test_a_stale_update_is_told_both_changes_together(workspace: Workspace) -> None:
    theirs, yours = PLAN.replace("one", "ONE"), PLAN.replace("three", "THREE")
    error = conflict(workspace, theirs, "update_memory", content=yours)
    assert error.yours == yours
    assert (error.merged, error.overlaps) == (theirs.replace("three", "THREE"), 0)
    assert workspace.memories.update("plan", error.merged, error.version).status == "updated"


def test_a_stale_append_or_edit_is_proposed_on_the_new_text(workspace: Workspace) -> None:
    theirs = PLAN.replace("one", "ONE")
    error = conflict(workspace, theirs, "append_memory", content="mine")
    assert (error.yours, error.merged) == ("mine", f"{theirs}\n\nmine")
    workspace.memories.update("plan", PLAN)
    error = conflict(workspace, theirs, "edit_memory", find="two", text="zwei")
    assert error.yours == PLAN.replace("two", "zwei")
    assert (error.merged, error.overlaps) == (theirs.replace("two", "zwei"), 0)


def test_a_base_that_is_not_kept_leaves_the_two_texts(
    project: Project, workspace: Workspace
) -> None:
    version = workspace.memories.read("plan").source.version
    plan(project).write_text("written by hand\n")
    with pytest.raises(ConflictError) as caught:
        workspace.memories.update("plan", "mine\n", version)
    assert (caught.value.base, caught.value.merged) == ("", "")
    assert (caught.value.theirs, caught.value.yours) == ("written by hand\n", "mine\n")


def test_stale_deletes_renames_and_merges_change_nothing(
    project: Project, workspace: Workspace
) -> None:
    version = workspace.memories.read("plan").source.version
    workspace.memories.append("plan", "more")
    workspace.memories.create("other", "text", [])
    other = workspace.memories.read("other").source.version
    before = texts(project)

    def merge(target: str) -> None:
        workspace.merges.merge(["plan", "other"], target, "both", source_versions=[version, other])

    for change in (
        lambda: workspace.memories.delete("plan", version),
        lambda: workspace.edits.rename("plan", "new", version),
        lambda: merge("other"),
        lambda: merge("elsewhere"),
        lambda: merge("plan"),
        lambda: workspace.merges.merge(["plan", "other"], "plan", "both", version),
    ):
        with pytest.raises(ConflictError) as caught:
            change()
        assert caught.value.theirs.endswith("more")
        assert texts(project) == before
    assert caught.value.base == PLAN
    with pytest.raises(ValidationError, match="2 source files and 1 version"):
        workspace.merges.merge(["plan", "other"], "other", "both", source_versions=[other])
    assert texts(project) == before
    current = workspace.memories.read("plan").source.version
    assert workspace.edits.rename("plan", "new", current).path == "new.md"


# --- rename ---

LINKS = """\
---
related: ["[[plan]]", plan.md, "memory:plan", planet.md]   # kept
title: plan.md
---

See [[plan]], [[plan.md#Plan|the plan]], ![[Plan#one]] and [[planet]] or [[ plan ]].

- supersedes [[plan]]
- [label](plan.md), [other](./plan.md#two "title"), [angle](<plan.md>), [root](/.memories/plan.md)

[p]: plan.md#one

`[[plan]]` and \\[[plan]] are none.

```
[[plan]] [x](plan.md)
```
"""
RELINKED = """\
---
related: ['[[road map]]', auth/road map.md, 'memory:auth/road map', planet.md]   # kept
title: plan.md
---

See [[road map]], [[auth/road map.md#Plan|the plan]], ![[road map#one]] and [[planet]] or [[ road map ]].

- supersedes [[road map]]
- [label](auth/road%20map.md), [other](auth/road%20map.md#two "title"), [angle](<auth/road map.md>), [root](/.memories/auth/road%20map.md)

[p]: auth/road%20map.md#one

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
    renamed = workspace.edits.rename("plan.md", "auth/road map.md")
    assert texts(project) == {
        "links.md": RELINKED,
        "sub/deep.md": "Up [to it](../auth/road%20map.md) and [[road map]].\n",
        "unrelated.md": "The plan is [[planet]] and plan.md.\n",
        "auth/road map.md": PLAN,
    }
    assert renamed.links == {"links.md": 11, "sub/deep.md": 2}
    hits = workspace.memories.linked("", "auth/road map.md").hits
    assert {hit.document.id for hit in hits} == {"memory:links", "memory:sub/deep"}
    assert workspace.memories.linked("", "plan.md").hits == ()
    assert not (project.root / ".memories/.trash").exists()


def test_a_moved_memory_keeps_reaching_what_it_links_to(project: Project) -> None:
    same = "[self](a.md#h) [web](https://x.org/a.md) [[b]]\n"
    project.memory("a.md", f"[doc](../docs/x.md) [sib](b.md) ![img](p.png) {same}")
    project.memory("b.md", "b\n")
    workspace = project.open()
    assert workspace.edits.rename("a", "deep/down/a").links == {"deep/down/a.md": 4}
    moved = "[doc](../../../docs/x.md) [sib](../../b.md) ![img](../../p.png)"
    assert texts(project)["deep/down/a.md"] == f"{moved} {same}"
    (hit,) = workspace.memories.linked("", "docs/x.md").hits
    assert hit.document.id == "memory:deep/down/a"


@pytest.mark.parametrize(
    ("text", "old", "new", "links", "relinked"),
    [
        (
            "---\naliases: [Alpha]\n---\n\n# The title\n",
            "a",
            "folder/a",
            "[[a]] [[Alpha]] [[The title]] [[a.md]]\n",
            "[[a]] [[Alpha]] [[The title]] [[folder/a.md]]\n",
        ),
        ("text\n", "auth-plan", "login-plan", "[[Auth plan]]\n", "[[login-plan]]\n"),
        ("x\n", "x/notes", "x/other", "[[notes]] and [[x/notes]]\n", "[[notes]] and [[x/other]]\n"),
    ],
    ids=["those that still reach it stay", "a title made from the name", "a name of others"],
)
def test_only_links_that_meant_it_are_rewritten(
    project: Project, text: str, old: str, new: str, links: str, relinked: str
) -> None:
    project.memory(f"{old}.md", text)
    project.memory("y/notes.md", "y\n")
    project.memory("links.md", links)
    renamed = project.open().edits.rename(old, new)
    assert texts(project)["links.md"] == relinked
    assert renamed.links == {"links.md": 1}
    assert ("others have that name too" in str(renamed.warnings)) == (old == "x/notes")


def test_a_mark_at_the_start_and_line_ends_move_along(project: Project) -> None:
    data = b"\xef\xbb\xbf---\r\nid: 4711\r\n---\r\n\r\n[[plan]]\r\n\r\nlast"
    plan(project, data)
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
    project: Project, workspace: Workspace, old: str, new: str, error: type[RagdocsError]
) -> None:
    project.memory("taken.md", "[[plan]]\n")
    before = texts(project)
    with pytest.raises(error):
        workspace.edits.rename(old, new)
    assert texts(project) == before
    assert workspace.versions.history().total == 0


def test_a_memory_that_cannot_be_rewritten_is_named(project: Project, workspace: Workspace) -> None:
    (project.root / ".memories/odd.md").write_bytes(b"[[plan]] caf\xe9\n")
    (project.root / ".memories/large.md").write_bytes(b"[[plan]]\n" * 1_200_000)
    warnings = workspace.edits.rename("plan", "new").warnings
    named = sorted(warning.split(":")[0] for warning in warnings)
    assert named == [f"links in {name}.md are as they were" for name in ("large", "odd")]
    assert (project.root / ".memories/odd.md").read_bytes() == b"[[plan]] caf\xe9\n"
