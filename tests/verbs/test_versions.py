"""Earlier texts: every verb keeps them, any can come back.

And the last change can be taken back whole.
"""

from __future__ import annotations

import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

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
    verbs = [
        (one["verb"], one["filename"]) for one in workspace.versions.history(limit=50)["result"]
    ]
    assert verbs == [
        ("delete", "x.md"),
        ("merge", "b.md"),
        ("merge", "c.md"),
        ("rename", "links.md"),
        ("rename", "a.md"),
        ("edit", "a.md"),
        ("append", "a.md"),
        ("update", "a.md"),
    ]
    store = workspace.corpus("memory").versioned
    kept = [store.recover(one.version) for one in store.history("a.md")]
    assert kept == ["one\n\n\nthree", "one\n\n\ntwo", "one\n", "text of a\n"]
    modes = {
        stat.S_IMODE(path.stat().st_mode)
        for path in (project.root / ".memories/.history").rglob("*")
    }
    assert modes == {0o600, 0o700}


def test_the_history_of_a_memory_goes_on_under_its_new_name(workspace: Workspace) -> None:
    workspace.memories.update("a", "one\n")
    workspace.edits.rename("a", "x")
    workspace.memories.create("a", "another memory", [])
    workspace.memories.append("a", "of that name")
    workspace.memories.update("x", "two\n")
    found = workspace.versions.history("x")
    assert [(one["filename"], one["verb"]) for one in found["result"]] == [
        ("x.md", "update"),
        ("a.md", "rename"),
        ("a.md", "update"),
    ]
    assert found["current"] == workspace.memories.read("x")["version"]
    assert [one["became"] for one in found["result"]] == [
        found["current"],
        "",
        found["result"][1]["version"],
    ]
    assert workspace.versions.restore("x", found["result"][2]["version"])["status"] == "restored"
    assert workspace.memories.read("x")["content"] == "text of a\n"


def test_history_says_how_old_and_how_many_more(project: Project, workspace: Workspace) -> None:
    for number in range(5):
        workspace.memories.update("a", f"{number}\n")
    # History is written by the clock of the machine.
    versions = replace(workspace.versions, clock=lambda: datetime.now(UTC))
    found = versions.history("a", limit=2)
    assert (len(found["result"]), found["omitted"]) == (2, 3)
    assert found["result"][0]["age"].endswith("ago") or found["result"][0]["age"] == "just now"
    assert workspace.versions.history("b")["notes"]
    for name, error in (("gone", NotFoundError), ("../a", ValidationError)):
        with pytest.raises(error):
            workspace.versions.history(name)


# --- restore and diff ---


def test_a_version_is_named_by_its_first_digits(workspace: Workspace) -> None:
    versions = workspace.versions
    first = workspace.memories.read("a")["version"]
    workspace.memories.update("a", "one\n")
    workspace.memories.update("a", "two\n")
    assert versions.restore("a", first[:6].upper())["version"] == first
    assert versions.restore("a", first)["status"] == "unchanged"
    assert versions.restore("a")["status"] == "restored"
    assert workspace.memories.read("a")["content"] == "two\n"
    for version, error in (
        ("0" * 16, NotFoundError),
        (first[:3], ValidationError),
        ("../../x", NotFoundError),
    ):
        with pytest.raises(error):
            versions.restore("a", version)
    with pytest.raises(NotFoundError, match="no earlier text"):
        versions.restore("b")


def test_what_comes_back_has_the_very_bytes(project: Project, workspace: Workspace) -> None:
    place = project.root / ".memories/a.md"
    data = b"\xef\xbb\xbfcaf\xe9\r\nmixed\nlines"
    place.write_bytes(data)
    workspace.memories.update("a", "all\r\nof\r\nthem\r\n")
    workspace.versions.restore("a")
    assert place.read_bytes() == data
    workspace.memories.delete("a")
    workspace.versions.undo()
    assert place.read_bytes() == data


def test_a_secret_does_not_come_back(project: Project, workspace: Workspace) -> None:
    token = "ghp_" + "".join(chr(ord("a") + (7 * n) % 26) + str(n % 10) for n in range(18))
    project.memory("a.md", f"the token {token}\n")
    workspace.memories.update("a", "gone\n")
    assert workspace.versions.restore("a")["warnings"]
    assert token.encode() not in texts(project)["a.md"]


def test_a_diff_shows_what_changed(workspace: Workspace) -> None:
    first = workspace.memories.read("a")["version"]
    workspace.memories.update("a", "one\n")
    second = workspace.memories.read("a")["version"]
    workspace.memories.update("a", "two\n")
    assert workspace.versions.diff("a")["content"].split("\n")[2:] == [
        "@@ -1 +1 @@",
        "-one",
        "+two",
    ]
    assert workspace.versions.diff("a", first)["content"].split("\n")[3:] == ["-text of a", "+two"]
    assert workspace.versions.diff("a", first, second[:5])["content"].split("\n")[3:] == [
        "-text of a",
        "+one",
    ]
    assert workspace.versions.diff("a", second, second)["content"] == ""
    current = workspace.versions.history("a")["current"]
    assert workspace.versions.diff("a", first, current)["content"].split("\n")[3:] == [
        "-text of a",
        "+two",
    ]
    assert workspace.versions.diff("a", current[:6], current)["content"] == ""
    workspace.memories.delete("a")
    assert workspace.versions.diff("a")["content"].split("\n")[3:] == ["-two"]


# --- undo ---


def test_each_kind_of_change_is_taken_back_whole(project: Project, workspace: Workspace) -> None:
    memories = workspace.memories
    for change in (
        lambda: memories.create("new", "text", []),
        lambda: memories.update("a", "changed"),
        lambda: memories.append("a", "more"),
        lambda: workspace.edits.edit("a", Edit("TEXT", find="text")),
        lambda: memories.delete("a"),
        lambda: workspace.edits.rename("a", "folder/x"),
        lambda: workspace.merges.merge(["a", "b"], "all", "both"),
        lambda: workspace.merges.merge(["a", "b", "c"], "b", "all three"),
    ):
        before = texts(project)
        change()
        assert texts(project) != before
        assert workspace.versions.undo()["status"] == "undone"
        assert texts(project) == before
    assert workspace.memories.search("text of a")["result"]
    with pytest.raises(NotFoundError, match="nothing to undo"):
        workspace.versions.undo()


def test_undo_says_what_it_did(project: Project, workspace: Workspace) -> None:
    workspace.merges.merge(["a", "b"], "all", "both")
    answer = workspace.versions.undo()
    assert (answer["verb"], answer["restored"], answer["removed"]) == (
        "merge",
        ["a.md", "b.md"],
        ["all.md"],
    )
    assert Path(answer["moved_to"][0]).read_text().endswith("both")
    workspace.edits.rename("a", "x")
    answer = workspace.versions.undo()
    assert (sorted(answer["restored"]), answer["removed"]) == (["a.md", "links.md"], ["x.md"])
    assert answer["moved_to"] == []


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


def test_changes_after_an_undo_are_undone_first(project: Project, workspace: Workspace) -> None:
    workspace.memories.update("a", "one\n")
    workspace.versions.undo()
    workspace.memories.update("a", "one\n")
    workspace.memories.update("b", "two\n")
    for expected in ("b.md", "a.md"):
        assert workspace.versions.undo()["restored"] == [expected]
    with pytest.raises(NotFoundError):
        workspace.versions.undo()
    assert texts(project)["a.md"] == b"text of a\n"


def test_undo_refuses_when_a_file_changed_since(project: Project, workspace: Workspace) -> None:
    workspace.merges.merge(["a", "b"], "all", "both")
    project.memory("b.md", "a new file of the old name\n")
    before = texts(project)
    with pytest.raises(
        ConflictError,
        match=r"merge of .*cannot be undone: b\.md changed since; nothing was changed",
    ):
        workspace.versions.undo()
    assert texts(project) == before


def test_a_change_that_was_announced_and_never_made_is_passed_over(
    project: Project, workspace: Workspace
) -> None:
    workspace.memories.update("a", "one\n")
    workspace.memories.update("a", "two\n")
    project.memory(
        "a.md", "one\n"
    )  # as a process leaves it that ends between its record and its rename
    assert workspace.versions.undo()["restored"] == ["a.md"]
    assert texts(project)["a.md"] == b"text of a\n"


def test_a_record_from_a_clone_leads_nowhere(project: Project, workspace: Workspace) -> None:
    (project.root / "outside.md").write_text("precious")
    workspace.memories.update("a", "one\n")
    log = project.root / ".memories/.history/log.jsonl"
    for path in ("../outside.md", ".history/log.jsonl", "/etc/passwd", "a\x00.md"):
        line = (
            log.read_text()
            .splitlines()[-1]
            .replace('"a.md"', f'"{path}"'.replace("\x00", "\\u0000"))
        )
        log.write_text(f"{line}\n")
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
    monkeypatch.setattr(again.places["memory"].store, "_now", lambda: NOW + timedelta(days=900))
    again.memories.update("a", "last\n")
    assert [one["version"] for one in again.versions.history("a")["result"]] == [
        revision.version for revision in store.history("a.md")
    ]
    assert len(store.commits()) == 3
    assert len(list((project.root / ".memories/.history").glob("??/*"))) == 3
