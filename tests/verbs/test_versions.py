"""Earlier texts: every verb keeps them, any can come back.

And the last change can be taken back whole.
"""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.asking import ask

from ragdocs.errors import ConflictError, NotFoundError, RagdocsError, ValidationError
from ragdocs.stores.files import history
from ragdocs.verbs.memories.revise import Edit

if TYPE_CHECKING:
    from tests.conftest import Project

    from ragdocs.workspace import Workspace

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


@pytest.fixture
def workspace(project: Project) -> Workspace:
    for name in ("a", "b", "c"):
        project.memory(f"{name}.md", f"text of {name}\n")
    project.memory("links.md", "see [[a]]\n")
    return project.open()


def texts(project: Project) -> dict[str, bytes]:
    root = project.root / ".memories"
    files = (path for path in root.rglob("*.md") if ".trash" not in path.parts)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def version(workspace: Workspace, name: str = "a") -> str:
    return workspace.memories.read(name).source.version


def steps(workspace: Workspace, name: str = "") -> list[str]:
    revisions = workspace.versions.history(name, limit=50).revisions
    return [f"{revision.verb} {revision.path}" for revision in revisions]


# --- history ---


def test_every_verb_keeps_what_it_replaces(project: Project, workspace: Workspace) -> None:
    memories = workspace.memories
    memories.update("a", "one\n")
    memories.append("a", "two")
    workspace.edits.edit("a", Edit("three", find="two"))
    workspace.edits.rename("a", "x")
    workspace.merges.merge(["b", "c"], "b", "both\n")
    memories.delete("x")
    workspace.versions.restore("x")
    merged = ["merge b.md", "merge c.md"]
    before = ["rename a.md", "edit a.md", "append a.md", "update a.md"]
    assert steps(workspace) == ["delete x.md", *merged, "rename links.md", *before]
    store = workspace.corpus("memory").versioned
    kept = [store.recover(revision.version) for revision in store.history("a.md")]
    assert kept == ["one\n\n\nthree", "one\n\n\ntwo", "one\n", "text of a\n"]
    paths = (project.root / ".memories/.history").rglob("*")
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600, 0o700}


def test_the_history_of_a_memory_goes_on_under_its_new_name(workspace: Workspace) -> None:
    workspace.memories.update("a", "one\n")
    workspace.edits.rename("a", "x")
    workspace.memories.create("a", "another memory", [])
    workspace.memories.append("a", "of that name")
    workspace.memories.update("x", "two\n")
    assert steps(workspace, "x") == ["update x.md", "rename a.md", "update a.md"]
    found = workspace.versions.history("x")
    last, renamed, first = found.revisions
    assert found.current == version(workspace, "x")
    assert (last.after, renamed.after, first.after) == (found.current, "", renamed.version)
    assert workspace.versions.restore("x", first.version).status == "restored"
    assert workspace.memories.read("x").source.text == "text of a\n"


# --- restore and diff ---


def test_a_version_is_named_by_its_first_digits(workspace: Workspace) -> None:
    versions = workspace.versions
    first = version(workspace)
    workspace.memories.update("a", "one\n")
    workspace.memories.update("a", "two\n")
    assert versions.restore("a", first[:6].upper()).written.version == first
    assert versions.restore("a", first).status == "unchanged"
    assert versions.restore("a").status == "restored"
    assert workspace.memories.read("a").source.text == "two\n"
    for wrong in ("0" * 16, "../../x"):
        with pytest.raises(NotFoundError):
            versions.restore("a", wrong)
    with pytest.raises(ValidationError):
        versions.restore("a", first[:3])
    with pytest.raises(NotFoundError, match="no earlier text"):
        versions.restore("b")


def test_what_comes_back_has_the_very_bytes(project: Project, workspace: Workspace) -> None:
    path = project.root / ".memories/a.md"
    data = b"\xef\xbb\xbfcaf\xe9\r\nmixed\nlines"
    path.write_bytes(data)
    workspace.memories.update("a", "all\r\nof\r\nthem\r\n")
    workspace.versions.restore("a")
    assert path.read_bytes() == data
    workspace.memories.delete("a")
    workspace.versions.undo()
    assert path.read_bytes() == data


def test_a_secret_does_not_come_back(project: Project, workspace: Workspace) -> None:
    token = "ghp_" + "".join(chr(ord("a") + (7 * n) % 26) + str(n % 10) for n in range(18))
    project.memory("a.md", f"the token {token}\n")
    workspace.memories.update("a", "gone\n")
    assert workspace.versions.restore("a").written.removed
    assert token.encode() not in texts(project)["a.md"]


def test_a_diff_shows_what_changed(workspace: Workspace) -> None:
    def changed(*versions: str) -> list[str]:
        return list(workspace.versions.diff("a", *versions).lines[3:])

    first = version(workspace)
    workspace.memories.update("a", "one\n")
    second = version(workspace)
    workspace.memories.update("a", "two\n")
    current = version(workspace)
    assert changed() == ["-one", "+two"]
    assert changed(first) == changed(first, current) == ["-text of a", "+two"]
    assert changed(first, second[:5]) == ["-text of a", "+one"]
    assert changed(second, second) == changed(current[:6], current) == []
    workspace.memories.delete("a")
    assert changed() == ["-two"]


# --- undo ---


def test_each_kind_of_change_is_taken_back_whole(project: Project, workspace: Workspace) -> None:
    memories, merge = workspace.memories, workspace.merges.merge
    for change in (
        lambda: memories.create("new", "text", []),
        lambda: memories.update("a", "changed"),
        lambda: memories.append("a", "more"),
        lambda: workspace.edits.edit("a", Edit("TEXT", find="text")),
        lambda: memories.delete("a"),
        lambda: workspace.edits.rename("a", "folder/x"),
        lambda: merge(["a", "b"], "all", "both"),
        lambda: merge(["a", "b", "c"], "b", "all three"),
    ):
        before = texts(project)
        change()
        assert texts(project) != before
        workspace.versions.undo()
        assert texts(project) == before
    assert workspace.memories.search("text of a").hits
    with pytest.raises(NotFoundError, match="nothing to undo"):
        workspace.versions.undo()


def test_undo_says_what_it_did(workspace: Workspace) -> None:
    workspace.merges.merge(["a", "b"], "all", "both")
    answer = ask(workspace, "undo_memory_change")
    assert (answer["verb"], answer["restored"]) == ("merge", ["a.md", "b.md"])
    assert answer["removed"] == ["all.md"]
    assert Path(answer["moved_to"][0]).read_text().endswith("both")
    workspace.edits.rename("a", "x")
    answer = ask(workspace, "undo_memory_change")
    assert sorted(answer["restored"]) == ["a.md", "links.md"]
    assert (answer["removed"], answer["moved_to"]) == (["x.md"], [])


def test_undoing_again_goes_further_back_in_another_process_too(
    project: Project, workspace: Workspace
) -> None:
    states = [texts(project)]
    for number in range(3):
        workspace.memories.update("a", f"{number}\n")
        states.append(texts(project))
    workspace.memories.delete("b")
    for state in reversed(states):
        project.open().versions.undo()
        assert texts(project) == state


def undone(workspace: Workspace) -> list[str]:
    return [written.path for written in workspace.versions.undo().written]


def test_changes_after_an_undo_are_undone_first(project: Project, workspace: Workspace) -> None:
    workspace.memories.update("a", "one\n")
    workspace.versions.undo()
    workspace.memories.update("a", "one\n")
    workspace.memories.update("b", "two\n")
    assert [undone(workspace), undone(workspace)] == [["b.md"], ["a.md"]]
    with pytest.raises(NotFoundError):
        workspace.versions.undo()
    assert texts(project)["a.md"] == b"text of a\n"


def test_undo_refuses_when_a_file_changed_since(project: Project, workspace: Workspace) -> None:
    workspace.merges.merge(["a", "b"], "all", "both")
    project.memory("b.md", "a new file of the old name\n")
    before = texts(project)
    refusal = r"merge of .*cannot be undone: b\.md changed since; nothing was changed"
    with pytest.raises(ConflictError, match=refusal):
        workspace.versions.undo()
    assert texts(project) == before


def test_a_change_that_was_announced_and_never_made_is_passed_over(
    project: Project, workspace: Workspace
) -> None:
    workspace.memories.update("a", "one\n")
    workspace.memories.update("a", "two\n")
    # As a process leaves it that ends between its record and its rename.
    project.memory("a.md", "one\n")
    assert undone(workspace) == ["a.md"]
    assert texts(project)["a.md"] == b"text of a\n"


def test_a_record_from_a_clone_leads_nowhere(project: Project, workspace: Workspace) -> None:
    (project.root / "outside.md").write_text("precious")
    workspace.memories.update("a", "one\n")
    log = project.root / ".memories/.history/log.jsonl"
    record = log.read_text().splitlines()[-1]
    for path in ("../outside.md", ".history/log.jsonl", "/etc/passwd", "a\\u0000.md"):
        log.write_text(record.replace('"a.md"', f'"{path}"') + "\n")
        with pytest.raises(RagdocsError):
            workspace.versions.undo()
    assert (project.root / "outside.md").read_text() == "precious"


def test_old_changes_go_and_the_log_stays_bounded(
    project: Project, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "KEEP_ALWAYS", 3)
    store = workspace.corpus("memory").versioned
    for days in range(0, 400, 100):
        monkeypatch.setattr(store, "_now", lambda days=days: NOW + timedelta(days=days))
        workspace.memories.update("a", f"{days}\n")
    assert len(store.commits()) == 4
    # Every process prunes when it first keeps a text.
    again = project.open()
    monkeypatch.setattr(again.open_lanes["memory"].store, "_now", lambda: NOW + timedelta(days=900))
    again.memories.update("a", "last\n")
    assert list(again.versions.history("a").revisions) == list(store.history("a.md"))
    assert len(store.commits()) == 3
    assert len(list((project.root / ".memories/.history").glob("??/*"))) == 3


def test_a_change_is_undone_by_its_version_whatever_came_after_it(
    project: Project, workspace: Workspace
) -> None:
    before = texts(project)
    mine = workspace.memories.update("a", "mine\n").written.version
    workspace.memories.update("b", "theirs\n")
    workspace.versions.undo(mine)
    assert texts(project) == {**before, "b.md": b"theirs\n"}
    gone = workspace.memories.read("c").source.version
    workspace.memories.delete("c", gone)
    workspace.versions.undo(gone)
    assert texts(project)["c.md"] == before["c.md"]
    with pytest.raises(ConflictError, match=r"changed since"):
        workspace.versions.undo(mine)
    with pytest.raises(NotFoundError, match="no change is known"):
        workspace.versions.undo("0" * 16)


def test_a_change_is_not_undone_where_a_file_of_it_is_no_text_any_more(
    project: Project, workspace: Workspace
) -> None:
    workspace.edits.rename("a", "x")
    before = texts(project)
    (project.root / ".memories/x.md").write_bytes(b"a\0b")
    with pytest.raises(ConflictError, match=r"rename of .*x.md.* cannot be undone: x.md changed"):
        workspace.versions.undo()
    (project.root / ".memories/x.md").write_bytes(before["x.md"])
    workspace.versions.undo()
    assert sorted(texts(project)) == ["a.md", "b.md", "c.md", "links.md"]
