"""Remembering and recalling.

What is written, what is found again, and what other projects contribute.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.asking import ask
from tests.plain_git import plain_git

from ragdocs.errors import UnavailableError, ValidationError
from ragdocs.system import platform
from ragdocs.system.git import MOST_FILES
from ragdocs.text import frontmatter
from ragdocs.verbs.memories import banks as elsewhere
from ragdocs.verbs.memories import record

if TYPE_CHECKING:
    from tests.conftest import Project

    from ragdocs.verbs.memories.recall import Recollection, RememberedMemory
    from ragdocs.workspace import Workspace

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
# Put together here, so that no scanner takes this file for a leak.
TOKEN = "ghp_" + "".join(chr(ord("a") + (7 * n) % 26) + str(n % 10) for n in range(18))


@pytest.fixture(autouse=True)
def home(own_directories: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(own_directories))
    return own_directories


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def sibling(project: Project, name: str) -> Project:
    """Another project beside this one."""
    root = project.root.parent / name
    root.mkdir(parents=True, exist_ok=True)
    return type(project)(root)


def repository(root: Path, branch: str = "main") -> None:
    plain_git(root, "init", "-q", "-b", branch)
    plain_git(root, "commit", "-q", "--allow-empty", "-m", "first")


def contents(recollection: Recollection) -> list[str]:
    return recollection.texts(100_000)


def paths(recollection: Recollection) -> list[str]:
    return [memory.hit.document.path for memory in recollection.memories]


def text_of(project: Project, memory: RememberedMemory) -> str:
    return (project.root / memory.path).read_text(encoding="utf-8")


def dated(project: Project, name: str, days: float, text: str, more: str = "") -> Path:
    moment = (NOW - timedelta(days=days)).isoformat()
    return project.memory(name, f"---\ncreated_at: '{moment}'\n{more}---\n\n{text}\n")


def saved(project: Project, *texts: str) -> Workspace:
    """Remember texts in a project and leave its index behind, as a server that ends does."""
    workspace = project.open()
    for text in texts:
        workspace.recall.remember(text)
    workspace.save()
    return workspace


def state(root: Path) -> dict[str, tuple[int, bytes]]:
    """Everything in a folder, with the times of its files and folders.

    Where locks are files, a folder has one while it is read, and so another time.
    """
    states = {}
    for path in (root, *root.rglob("*")):
        data = path.read_bytes() if path.is_file() else b""
        is_lockable = platform.is_portable() and path.is_dir()
        changed = 0 if is_lockable else path.stat().st_mtime_ns
        states[str(path)] = (changed, data)
    return states


# --- remember ---


@pytest.mark.usefixtures("new_york")
def test_a_memory_is_named_by_local_time_and_carries_the_moment(project: Project) -> None:
    text = "## Chose OAuth2\n\nSessions must be revocable."
    memory = project.open().recall.remember(text, ["auth", "#Auth", " design "])
    assert re.fullmatch(r"mem_[0-9a-f]{12}", memory.id)
    assert memory.path == f".memories/2026-11-16/070000_{memory.id[4:8]}.md"
    assert memory.warnings == []
    assert text_of(project, memory) == (
        "---\ntags: [auth, design]\ncreated_at: '2026-11-16T07:00:00-05:00'\n"
        f"id: {memory.id}\ntimestamp: 1794830400\n---\n\n{text}\n"
    )
    assert project.open().recall.recall().memories[0].hit.document.git is None


def test_a_hostile_repository_runs_nothing(project: Project) -> None:
    repository(project.root)
    mark = project.root.parent / "ran"
    script = project.write("evil.sh", f"#!/bin/sh\ntouch {mark}\n")
    script.chmod(0o755)
    settings = ("core.fsmonitor", "core.pager", "diff.external", "filter.x.clean")
    for key in (*settings, "core.sshCommand"):
        plain_git(project.root, "config", key, str(script))
    project.write(".gitattributes", "* filter=x diff=x\n")
    (project.root / ".git/hooks").mkdir(exist_ok=True)
    shutil.copy(script, project.root / ".git/hooks/post-index-change")
    project.open().recall.remember("x")
    assert not mark.exists()


def test_a_copied_block_does_not_bring_its_identity_along(project: Project) -> None:
    workspace = project.open()
    first = workspace.recall.remember("First.", ["a"])
    copied = text_of(project, first).replace("---\n\nFirst", "type: fact\nticket: 12\n---\n\nFirst")
    second = workspace.recall.remember(copied, ["b"])
    text = text_of(project, second)
    assert (text.count("---\n"), text.count(second.id), text.count(first.id)) == (2, 1, 0)
    for line in ("type: fact\n", "ticket: 12\n", "tags: [a, b]\n"):
        assert line in text


def test_secrets_are_not_remembered_and_ids_are_not_taken_for_secrets(project: Project) -> None:
    repository(project.root)
    workspace = project.open()
    memory = workspace.recall.remember(f"The token is {TOKEN} today.")
    assert "line" in memory.written.removed[0]
    assert TOKEN not in text_of(project, memory)
    for _ in range(30):
        memory = workspace.recall.remember("Nothing to hide.")
        assert memory.written.removed == ()
        assert f"id: {memory.id}\n" in text_of(project, memory)


def test_a_name_that_is_taken_makes_another(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = iter(["aaaa00000001", "aaaa00000002", "aaaa00000003", "bbbb00000004"])
    draw = secrets.token_hex

    def token_hex(size: int) -> str:
        if size == record.ID_DIGITS // 2:
            return next(drawn)
        return draw(size)

    monkeypatch.setattr(secrets, "token_hex", token_hex)
    recall = project.open().recall
    assert recall.remember("one").id == "mem_aaaa00000001"
    assert recall.remember("two").id == "mem_bbbb00000004"
    assert sorted(contents(recall.recall())) == ["one", "two"]


def test_empty_contents_and_odd_tags_are_refused(project: Project) -> None:
    workspace = project.open()
    for content, tags in (("", []), (" \n", []), ("a\0b", []), ("x", ["two\nlines"])):
        with pytest.raises(ValidationError):
            workspace.recall.remember(content, tags)
    assert not (project.root / ".memories").exists()


def test_a_registry_that_cannot_be_kept_does_not_stop_a_memory(
    project: Project, home: Path
) -> None:
    file = home / "data/ragdocs/registry.json"
    file.parent.mkdir(parents=True)
    file.write_text("not a registry")
    recall = project.open().recall
    assert "registry" in recall.remember("text").warnings[0]
    everywhere = recall.recall(scope="global")
    assert contents(recall.recall()) == contents(everywhere) == ["text"]
    assert any("registry" in note for note in everywhere.notes)


# --- recall in one project ---


def test_without_arguments_the_newest_come_first(project: Project) -> None:
    for days in (3, 1, 400, 2):
        dated(project, f"{days}.md", days, f"{days} days")
    dated(project, "archived.md", 0, "no", "status: archived\n")
    over = f"expires_at: '{(NOW - timedelta(hours=1)).isoformat()}'\n"
    dated(project, "expired.md", 0, "no", over)
    dated(project, "future.md", -400, "a date that is not yet")
    project.memory("undated.md", "no date\n")
    dated(project, "2026-11-15/090000_ab12.md", 1.2, "in a folder of a day")
    recall = project.open().recall
    found = contents(recall.recall())
    assert found[:5] == ["1 days", "in a folder of a day", "2 days", "3 days", "400 days"]
    assert sorted(found[5:]) == ["a date that is not yet", "no date"]
    assert recall.recall().omitted == 0
    assert contents(recall.recall(since="1w")) == found[:4]


def test_a_query_forgives_spelling_and_filters_first(project: Project) -> None:
    dated(project, "a.md", 9, "The authentication service revokes sessions.", "tags: [auth]\n")
    for number in range(60):
        dated(project, f"b{number}.md", 1, f"Authentication of guest number {number}.")
    recall = project.open(**{"embedding.model": "none"}).recall
    assert paths(recall.recall("authentcation sesions", limit=1)) == ["a.md"]
    assert paths(recall.recall("authentication", tags=["Auth"])) == ["a.md"]
    assert "a.md" not in paths(recall.recall("authentication sessions", since="1w"))


def test_a_memory_in_the_form_of_the_document_is_recalled_with_its_time_and_branch(
    project: Project,
) -> None:
    text = "## Chose OAuth2 over JWT\n\n### Decision\nOAuth2 with refresh tokens."
    state = {
        "branch": "feature/oauth",
        "commit": "abc1234",
        "dirty": True,
        "files_changed": ["src/auth/oauth.ts", "src/middleware/session.ts"],
    }
    card = {"id": "mem_a1b2c3d4e5f6", "timestamp": 1738680652, "tags": ["auth", "api"]}
    path = ".memories/2025-02-04/143052_a1b2.md"
    project.write(path, frontmatter.render({**card, "git": state}, f"{text}\n"))
    workspace = project.open()
    asked = {"query": "oauth", "since": "2025-02-04", "tags": ["api"]}
    (memory,) = ask(workspace, "recall", **asked)["result"]
    assert memory.pop("score") > 0
    assert memory == {**card, "content": text, "git": state, "age": "1 year ago", "path": path}
    (hit,) = workspace.memories.linked("", "src/middleware/session.ts").hits
    assert hit.document.title == "Chose OAuth2 over JWT"


PARTS = [f"## Part {n}\n\n{'A sentence of some words. ' * 60}" for n in range(3)]
BODIES = [
    "One line.",
    "# A\n\ntext\n\n\n\nmore\n\n## B\n- one\n- two\n\n  indented\n\n```py\nx = 1\n\n\ny = 2\n```\nend",
    "intro\n\n" + "\n\n".join(PARTS).strip(),
    "> quoted\n> lines\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n<!-- a comment -->\n\nlast",
    "日本語の文章がここにあります。" * 200,
]


def test_the_whole_body_comes_back(project: Project) -> None:
    recall = project.open().recall
    for body in BODIES:
        remembered = recall.remember(body)
        recollection = recall.recall()
        paths = [memory.path for memory in recollection.memories]
        found = recollection.texts(100_000)[paths.index(remembered.path)]
        assert found.split() == body.split()
        if max(map(len, body.split("\n"))) < 900:
            assert found == body


def test_a_long_memory_shows_what_was_found_and_says_that_it_is_a_part(project: Project) -> None:
    filler = "\n\n".join(f"## Part {n}\n\n" + "Words that fill a section. " * 30 for n in range(30))
    project.memory("long.md", f"{filler}\n\n## Deep\n\nThe xylophone is here.\n\n{filler}\n")
    workspace = project.open()
    found = ask(workspace, "recall", query="xylophone")
    content = found["result"][0]["content"]
    assert content.startswith("…\n## Deep\n\nThe xylophone is here.")
    newest = ask(workspace, "recall")
    content = newest["result"][0]["content"]
    assert content.startswith("## Part 0")
    assert content.endswith("…")
    for answer in (found, newest):
        assert sum("parts" in note for note in answer["notes"]) == 1
        assert len(json.dumps(answer, ensure_ascii=False)) < 10_000


def test_changed_files_are_listed_as_far_as_they_fit_and_the_rest_is_counted(
    project: Project,
) -> None:
    repository(project.root)
    for number in range(MOST_FILES + 7):
        project.write(f"src/{number:03}.py", "x\n")
    workspace = project.open()
    workspace.recall.remember("A large change.")
    (memory,) = ask(workspace, "recall")["result"]
    names = memory["git"]["files_changed"]
    assert (len(names), memory["git"]["files_total"]) == (MOST_FILES, MOST_FILES + 7)
    assert workspace.memories.linked("", names[-1]).hits
    for number in range(9):
        workspace.recall.remember(f"Another, {number}.")
    for memory in ask(project.open(), "recall")["result"]:
        listed = memory["git"]["files_changed"]
        assert listed == names[: len(listed)], "paths only, in their order"
        assert 8 < len(listed) < MOST_FILES < memory["git"]["files_total"]


# --- recall in all projects ---


def everywhere(workspace: Workspace, query: str = "", limit: int = 10) -> Recollection:
    return workspace.recall.recall(query, scope="global", limit=limit)


def projects(recollection: Recollection) -> dict[str, str]:
    names = [memory.project for memory in recollection.memories]
    return dict(zip(recollection.texts(1000), names, strict=True))


def test_all_projects_are_asked_and_named(project: Project) -> None:
    saved(project, "Zebras live at home.")
    for name in ("koi", "miller"):
        saved(sibling(project, name), f"Zebras were seen in {name}.", f"And elephants, {name}.")
    workspace = project.open()
    found = everywhere(workspace, "zebras", limit=3)
    assert projects(found) == {
        "Zebras were seen in koi.": "koi",
        "Zebras were seen in miller.": "miller",
        "Zebras live at home.": "project",
    }
    assert list(found.notes) == []
    assert len(everywhere(workspace).memories) == 5
    assert "project" not in ask(workspace, "recall")["result"][0]
    for memory in found.memories:
        is_relative = memory.path.startswith(".memories/")
        assert is_relative == (memory.project == "project")
        assert (project.root / memory.path).is_file()


def test_other_projects_are_only_read_and_what_cannot_be_is_named(project: Project) -> None:
    saved(project, "home")
    names = ("good", "corrupt", "bare", "linked")
    good, corrupt, bare, linked = (sibling(project, name).root for name in names)
    for name in (*names, "gone"):
        saved(sibling(project, name), f"a note in {name}")
    shutil.rmtree(project.root.parent / "gone")
    shutil.rmtree(bare / ".memories/indices")
    for file in corrupt.glob(".memories/indices/*/vector/docstore.json"):
        file.write_bytes(file.read_bytes()[:-9])
    (linked / ".memories").rename(project.root.parent / "moved")
    (linked / ".memories").symlink_to(project.root.parent / "moved")
    sibling(project, "good").memory(".history/intent.json", "{}")
    before = [state(root) for root in (good, corrupt, bare)]
    found = everywhere(project.open())
    assert sorted(contents(found)) == ["a note in good", "home"]
    notes = {note.partition(" was left out")[0]: note for note in found.notes}
    assert notes.keys() == {"corrupt", "bare", "linked"}
    assert "damaged" in notes["corrupt"]
    assert f"ragdocs index --project {bare}" in notes["bare"]
    assert "symbolic link" in notes["linked"]
    assert [state(root) for root in (good, corrupt, bare)] == before


def test_an_index_that_somebody_else_made_is_not_opened(
    project: Project, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    saved(project, "home")
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "somebody-else"))
    saved(sibling(project, "other"), "foreign")
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    found = everywhere(project.open())
    assert contents(found) == ["home"]
    (note,) = found.notes
    assert note.startswith("other was left out")
    assert "not made here by you" in note


def test_worktrees_of_one_repository_are_one_project(project: Project) -> None:
    saved(project, "home")
    main = sibling(project, "koi")
    repository(main.root)
    saved(main, "in both")
    plain_git(main.root, "add", "-f", *[str(path) for path in main.root.glob(".memories/*/*.md")])
    plain_git(main.root, "commit", "-q", "-m", "memories")
    plain_git(main.root, "worktree", "add", "-q", str(project.root.parent / "feature"))
    worktree = sibling(project, "feature")
    saved(worktree, "in the worktree")
    expected = {"home": "project", "in both": "koi", "in the worktree": "koi"}
    for workspace in (project.open(), worktree.open()):
        for query in ("", "home in both the worktree"):
            found = everywhere(workspace, query)
            assert projects(found) == expected, "each under the name of the repository"
            assert len(found.memories) == 3, "and once"


def test_files_that_changed_since_the_index_was_saved_are_told_and_a_new_index_is_taken_up(
    project: Project,
) -> None:
    saved(project, "home")
    other = sibling(project, "other")
    saved(other, "first", "second")
    workspace = project.open()
    assert list(everywhere(workspace).notes) == []
    other.memory("by-hand.md", "third\n")
    next(other.root.glob(".memories/2*/*.md")).write_text("edited by hand\n")
    found = everywhere(workspace)
    assert len(found.memories) == 3
    assert found.notes[0].startswith("other: 2 files changed")
    other.open().save()
    found = everywhere(workspace)
    assert (len(found.memories), list(found.notes)) == (4, [])


def test_two_projects_of_one_name_are_told_apart(project: Project) -> None:
    saved(project, "home")
    roots = {}
    for owner in ("ann", "ben"):
        other = sibling(project, f"{owner}/api")
        saved(other, f"of {owner}")
        roots[f"of {owner}"] = str(other.root)
    assert projects(everywhere(project.open())) == {"home": "project", **roots}


def test_a_project_without_memory_can_ask_the_others(project: Project) -> None:
    saved(sibling(project, "other"), "elsewhere")
    workspace = project.open(**{"memory.enabled": False})
    found = everywhere(workspace)
    assert contents(found) == ["elsewhere"]
    assert any("switched off" in note for note in found.notes)
    for action in (workspace.recall.recall, lambda: workspace.recall.remember("x")):
        with pytest.raises(UnavailableError, match="enabled = true"):
            action()
    with pytest.raises(ValidationError):
        workspace.recall.recall(scope="everything")


def test_memories_of_the_users_own_bank_say_which_project_they_are_of(
    project: Project, home: Path
) -> None:
    user = {"memory.storage_strategy": "user"}
    workspace = project.open(**user)
    memory = workspace.recall.remember("in the bank")
    workspace.save()
    assert Path(memory.path).is_relative_to(home / "data/ragdocs/memories")
    other = sibling(project, "other")
    saved(other, "in a folder")
    for opened in (other.open(), project.open(**user)):
        found = everywhere(opened)
        assert projects(found) == {"in the bank": "project", "in a folder": "other"}


def test_another_projects_settings_and_hidden_statuses_do_not_leak(project: Project) -> None:
    saved(project, "home")
    other = sibling(project, "other")
    dated(other, "archived.md", 0, "archived elsewhere", "status: archived\n")
    over = f"expires_at: '{(NOW - timedelta(days=1)).isoformat()}'\n"
    dated(other, "expired.md", 3, "expired elsewhere", over)
    saved(other, "visible")
    other.write("config.toml", "[memory]\nenabled = false\n[nonsense]\n")
    assert sorted(contents(everywhere(project.open()))) == ["home", "visible"]


def test_no_more_projects_are_kept_open_than_that(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(project, "home")
    for number in range(4):
        saved(sibling(project, f"p{number}"), f"note {number}")
    monkeypatch.setattr(elsewhere, "MOST_OPEN", 2)
    workspace = project.open()
    for _ in range(2):
        assert len(everywhere(workspace).memories) == 5
        assert len(workspace.elsewhere._opened) == 2
    monkeypatch.setattr(elsewhere, "MOST_BANKS", 3)
    found = everywhere(workspace)
    assert len(found.memories) == 4
    assert any(note.startswith("1 projects") for note in found.notes)


# --- many at once ---


REMEMBER = """
import sys
from pathlib import Path
from ragdocs import config
from ragdocs.workspace import Workspace
root, number = Path(sys.argv[1]), sys.argv[2]
flags = {"embedding.model": "none", "memory.enabled": "true"}
verbs = Workspace(config.load(root, project=root, flags=flags)).recall
for turn in range(10):
    memory = verbs.remember(f"A decision {number}-{turn} of this process.", ["crowd"])
    print(memory.id, memory.path, f"{number}-{turn}")
"""


def test_eight_processes_remember_at_once_and_nothing_is_lost(project: Project) -> None:
    command = [sys.executable, "-P", "-c", REMEMBER, str(project.root)]
    crowd = []
    for number in range(8):
        crowd.append(subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE, text=True))
    answers = []
    for process in crowd:
        answers += [line.split() for line in process.communicate()[0].splitlines()]
    ids = {own_id for own_id, _, _ in answers}
    assert len(ids) == 80
    assert len(list(project.root.glob(".memories/*/*.md"))) == 80
    for own_id, path, mark in answers:
        text = (project.root / path).read_text(encoding="utf-8")
        assert f"id: {own_id}\n" in text
        assert f"A decision {mark} of" in text
    recalled = project.open().recall.recall(limit=50).memories
    assert {memory.hit.document.extra["id"] for memory in recalled} <= ids
