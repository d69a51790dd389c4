"""Remembering and recalling.

What is written, what is found again, and what other projects contribute.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from ragdocs.errors import UnavailableError, ValidationError
from ragdocs.system.git import MOST_FILES
from ragdocs.verbs.memories import banks as elsewhere
from ragdocs.verbs.memories import record

if TYPE_CHECKING:
    from tests.conftest import Project

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


def git(root: Path, *words: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    subprocess.run(["git", "-C", str(root), *identity, *words], check=True, capture_output=True)


def repository(root: Path, branch: str = "main") -> None:
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", branch)
    git(root, "commit", "-q", "--allow-empty", "-m", "first")


def ids(answer: Any) -> list[str]:
    return [memory["id"] for memory in answer["result"]]


def contents(answer: Any) -> list[str]:
    return [memory["content"] for memory in answer["result"]]


def text_of(project: Project, answer: Any) -> str:
    path: Path = project.root / answer["path"]
    return path.read_text(encoding="utf-8")


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
    """Everything in a folder, with the times of its files and folders."""
    paths = [root, *root.rglob("*")]
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in paths
    }


# --- remember ---


@pytest.mark.usefixtures("new_york")
def test_a_memory_is_named_by_local_time_and_carries_the_moment(project: Project) -> None:
    kept = project.open().recall.remember(
        "## Chose OAuth2\n\nSessions must be revocable.", ["auth", "#Auth", " design "]
    )
    assert re.fullmatch(r"mem_[0-9a-f]{12}", kept["id"])
    assert kept["path"] == f".memories/2026-11-16/070000_{kept['id'][4:8]}.md"
    assert kept["warnings"] == []
    assert text_of(project, kept) == (
        "---\ntags: [auth, design]\ncreated_at: '2026-11-16T07:00:00-05:00'\n"
        f"id: {kept['id']}\ntimestamp: 1794830400\n---\n\n## Chose OAuth2\n\nSessions must be revocable.\n"
    )


@pytest.mark.usefixtures("new_york")
def test_the_day_is_that_of_the_clock_on_the_wall(project: Project) -> None:
    project.clock = lambda: datetime(2026, 7, 2, 2, 30, 5, tzinfo=UTC)
    kept = project.open().recall.remember("late")
    assert kept["path"].startswith(".memories/2026-07-01/223005_")
    project.memory(
        "before.md", "---\ncreated_at: '2026-07-01T03:30:00Z'\n---\n\nthe evening before\n"
    )
    recall = project.open().recall
    assert contents(recall.recall(since="today")) == ["late"]
    assert contents(recall.recall(since="yesterday")) == ["late", "the evening before"]


def test_the_state_of_the_working_tree_is_noted(project: Project) -> None:
    repository(project.root, "feature/oauth")
    project.write("src/auth.py", "x\n")
    workspace = project.open()
    workspace.recall.remember("Chose OAuth2.")
    (memory,) = workspace.recall.recall()["result"]
    assert memory["git"]
    assert memory["git"]["branch"] == "feature/oauth"
    assert re.fullmatch("[0-9a-f]{7,12}", memory["git"]["commit"])
    assert memory["git"]["dirty"] is True
    assert memory["git"]["files_changed"] == ["src/auth.py"]


def test_more_changed_files_than_are_noted_are_counted(project: Project) -> None:
    repository(project.root)
    for number in range(MOST_FILES + 7):
        project.write(f"src/{number}.py", "x\n")
    workspace = project.open()
    workspace.recall.remember("A large change.")
    for recall in (workspace.recall, project.open().recall):
        (memory,) = recall.recall()["result"]
        assert memory["git"]
        assert memory["git"]["files_total"] == MOST_FILES + 7
        assert len(memory["git"]["files_changed"]) == MOST_FILES


def test_files_that_were_being_changed_lead_to_the_memory(project: Project) -> None:
    repository(project.root)
    project.write("src/auth.py", "x\n")
    workspace = project.open()
    workspace.recall.remember("Chose OAuth2.")
    (hit,) = workspace.memories.linked("", "src/auth.py")["result"]
    assert hit["edge_type"] == "touches"
    assert "on main" in hit["anchor_context"]
    assert workspace.memories.linked("", "auth.py")["result"] == []


def test_outside_git_there_is_no_git_block_and_no_error(project: Project) -> None:
    workspace = project.open()
    kept = workspace.recall.remember("x")
    assert "git" not in text_of(project, kept)
    assert workspace.recall.recall()["result"][0]["git"] is None


def test_a_hostile_repository_runs_nothing(project: Project) -> None:
    repository(project.root)
    mark = project.root.parent / "ran"
    script = project.write("evil.sh", f"#!/bin/sh\ntouch {mark}\n")
    script.chmod(0o755)
    for key in (
        "core.fsmonitor",
        "core.pager",
        "diff.external",
        "filter.x.clean",
        "core.sshCommand",
    ):
        git(project.root, "config", key, str(script))
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
    assert second["id"] != first["id"]
    text = text_of(project, second)
    assert text.count("---\n") == 2
    assert text.count(second["id"]) == 1
    assert first["id"] not in text
    assert "type: fact\n" in text
    assert "ticket: 12\n" in text
    assert "tags: [a, b]\n" in text


def test_secrets_are_not_remembered_and_ids_are_not_taken_for_secrets(project: Project) -> None:
    repository(project.root)
    workspace = project.open()
    kept = workspace.recall.remember(f"The token is {TOKEN} today.")
    assert "line" in kept["warnings"][0]
    assert TOKEN not in text_of(project, kept)
    for _ in range(30):
        kept = workspace.recall.remember("Nothing to hide.")
        assert kept["warnings"] == []
        assert f"id: {kept['id']}\n" in text_of(project, kept)


def test_a_name_that_is_taken_makes_another(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = iter(["aaaa00000001", "aaaa00000002", "aaaa00000003", "bbbb00000004"])
    monkeypatch.setattr(record, "secrets", SimpleNamespace(token_hex=lambda _: next(drawn)))
    workspace = project.open()
    kept = [workspace.recall.remember(text) for text in ("one", "two")]
    assert [one["id"] for one in kept] == ["mem_aaaa00000001", "mem_bbbb00000004"]
    assert sorted(contents(workspace.recall.recall())) == ["one", "two"]


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
    workspace = project.open()
    kept = workspace.recall.remember("kept")
    assert "registry" in kept["warnings"][0]
    assert contents(workspace.recall.recall()) == ["kept"]
    found = workspace.recall.recall(scope="global")
    assert contents(found) == ["kept"]
    assert any("registry" in note for note in found["notes"])


# --- recall in one project ---


def test_without_arguments_the_newest_come_first(project: Project) -> None:
    for days in (3, 1, 400, 2):
        dated(project, f"{days}.md", days, f"{days} days")
    dated(project, "archived.md", 0, "no", "status: archived\n")
    dated(
        project, "expired.md", 0, "no", f"expires_at: '{(NOW - timedelta(hours=1)).isoformat()}'\n"
    )
    dated(project, "future.md", -400, "a date that is not yet")
    project.memory("undated.md", "no date\n")
    project.memory(
        "2026-11-15/090000_ab12.md",
        "---\ncreated_at: '2026-11-15T09:00:00Z'\n---\n\nin a folder of a day\n",
    )
    found = project.open().recall.recall()
    assert contents(found)[:5] == ["1 days", "in a folder of a day", "2 days", "3 days", "400 days"]
    assert sorted(contents(found)[5:]) == ["a date that is not yet", "no date"]
    assert found["result"][0]["age"] == "1 day ago"
    assert contents(project.open().recall.recall(since="1w")) == contents(found)[:4]
    assert found["omitted"] == 0


def test_what_does_not_fit_the_limit_is_counted(project: Project) -> None:
    for days in range(15):
        dated(
            project, f"{days}.md", days, f"{days} days", "tags: [Even]\n" if days % 2 == 0 else ""
        )
    recall = project.open().recall
    assert len(recall.recall()["result"]) == 10
    found = recall.recall(tags=["even", "absent"], since="1w", limit=2)
    assert contents(found) == ["0 days", "2 days"]
    assert found["omitted"] == 2
    for limit in (0, 51):
        with pytest.raises(ValidationError):
            recall.recall(limit=limit)


def test_since_takes_words_and_dates(project: Project) -> None:
    for days in (0.01, 0.4, 1.4, 6.5, 20, 50):
        dated(project, f"{days}.md", days, f"{days}")
    recall = project.open().recall
    counts = {
        "30m": 1,
        "12h": 2,
        "1d": 2,
        "yesterday": 3,
        "1w": 4,
        "last month": 5,
        "2026-09-01": 6,
        "2026-11-16T11:50:00Z": 0,
    }
    counts["2026-11-16T11:40:00Z"] = 1
    for since, count in counts.items():
        assert len(recall.recall(since=since)["result"]) == count, since
    for since in ("whenever", "0001-01-01"):
        with pytest.raises(ValidationError, match="yesterday"):
            recall.recall(since=since)


def test_a_query_forgives_spelling_and_filters_first(project: Project) -> None:
    dated(project, "a.md", 9, "The authentication service revokes sessions.", "tags: [auth]\n")
    for number in range(60):
        dated(project, f"b{number}.md", 1, f"Authentication of guest number {number}.")
    recall = project.open(**{"embedding.model": "none"}).recall
    assert ids(recall.recall("authentcation sesions", limit=1)) == ["memory:a"]
    assert ids(recall.recall("authentication", tags=["Auth"])) == ["memory:a"]
    assert "memory:a" not in ids(recall.recall("authentication sessions", since="1w"))


def test_an_id_stays_with_its_memory(project: Project) -> None:
    workspace = saved(project, "A zebra was seen.")
    (own_id,) = ids(workspace.recall.recall())
    (path,) = project.root.glob(".memories/*/*.md")
    path.rename(project.root / ".memories/zebra.md")
    assert ids(project.open().recall.recall("zebra")) == [own_id], "renamed"
    shutil.rmtree(project.root / ".memories/indices")
    assert ids(project.open().recall.recall("zebra")) == [own_id], "built anew"
    project.memory("plain.md", "Another zebra.\n")
    project.memory("odd.md", "---\nid: [not, one]\n---\n\nAn odd zebra.\n")
    assert sorted(ids(project.open().recall.recall("zebra"))) == [
        own_id,
        "memory:odd",
        "memory:plain",
    ]


def test_a_memory_in_the_form_of_the_document_is_recalled_with_its_time_and_branch(
    project: Project,
) -> None:
    project.memory(
        "2025-02-04/143052_a1b2.md",
        """
        ---
        id: mem_a1b2c3d4e5f6
        timestamp: 1738680652
        tags:
          - auth
          - architecture
        git:
          branch: feature/oauth
          commit: abc1234
          dirty: true
          files_changed:
            - src/auth/oauth.ts
            - src/middleware/session.ts
        ---

        ## Chose OAuth2 over JWT for session management

        ### Decision
        OAuth2 with refresh tokens stored server-side.
        """,
    )
    workspace = project.open()
    (memory,) = workspace.recall.recall("oauth", since="2025-02-04", tags=["architecture"])[
        "result"
    ]
    assert memory == {
        "id": "mem_a1b2c3d4e5f6",
        "timestamp": 1738680652,
        "tags": ["auth", "architecture"],
        "content": "## Chose OAuth2 over JWT for session management\n\n### Decision\n"
        "OAuth2 with refresh tokens stored server-side.",
        "git": {
            "branch": "feature/oauth",
            "commit": "abc1234",
            "dirty": True,
            "files_changed": ["src/auth/oauth.ts", "src/middleware/session.ts"],
        },
        "age": "1 year ago",
        "path": ".memories/2025-02-04/143052_a1b2.md",
    }
    (hit,) = workspace.memories.linked("", "src/middleware/session.ts")["result"]
    assert hit["title"] == "Chose OAuth2 over JWT for session management", "a time is no title"


BODIES = [
    "One line.",
    "# A\n\ntext\n\n\n\nmore\n\n## B\n- one\n- two\n\n  indented\n\n```py\nx = 1\n\n\ny = 2\n```\nend",
    "intro\n\n"
    + "\n\n".join(f"## Part {n}\n\n" + "A sentence of some words. " * 60 for n in range(3)).strip(),
    "> quoted\n> lines\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n<!-- a comment -->\n\nlast",
    "日本語の文章がここにあります。" * 200,
]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_the_whole_body_comes_back(project: Project, body: str) -> None:
    workspace = project.open()
    workspace.recall.remember(body)
    recall = replace(workspace.recall, budget=100_000)
    (found,) = contents(recall.recall())
    assert found.split() == body.split()
    if max(map(len, body.split("\n"))) < 900:
        assert found == body


def test_a_long_memory_shows_what_was_found_and_says_that_it_is_a_part(project: Project) -> None:
    filler = "\n\n".join(f"## Part {n}\n\n" + "Words that fill a section. " * 30 for n in range(30))
    project.memory("long.md", f"{filler}\n\n## Deep\n\nThe xylophone is here.\n\n{filler}\n")
    recall = project.open().recall
    found = recall.recall("xylophone")
    assert contents(found)[0].startswith("…\n## Deep\n\nThe xylophone is here.")
    newest = recall.recall()
    assert contents(newest)[0].startswith("## Part 0")
    assert contents(newest)[0].endswith("…")
    for answer in (found, newest):
        assert sum("parts" in note for note in answer["notes"]) == 1
        assert len(json.dumps(answer, ensure_ascii=False)) < 10_000


def test_changed_files_are_listed_as_far_as_they_fit_and_the_rest_is_counted(
    project: Project,
) -> None:
    names = [f"src/{n}.py" for n in range(60)]
    state = f"git: {{branch: b, commit: c, dirty: yes, files_changed: [{', '.join(names)}]}}"
    project.memory("a.md", f"---\n{state}\n---\n\nx\n")
    workspace = project.open()
    (memory,) = workspace.recall.recall()["result"]
    assert memory["git"] is not None
    assert memory["git"]["files_changed"] == names
    assert "files_total" not in memory["git"]
    for number in range(9):
        project.memory(f"more{number}.md", f"---\n{state}\n---\n\nx\n")
    for memory in project.open().recall.recall()["result"]:
        assert memory["git"] is not None
        shown = memory["git"]["files_changed"]
        assert shown == names[: len(shown)], "paths only, in their order"
        assert 8 < len(shown) < memory["git"]["files_total"] == 60
    assert ids(workspace.recall.recall()) == ["memory:a"]
    assert workspace.memories.linked("", "src/59.py")["result"]


# --- recall in all projects ---


def test_all_projects_are_asked_and_named(project: Project) -> None:
    saved(project, "Zebras live at home.")
    for name in ("koi", "miller"):
        saved(sibling(project, name), f"Zebras were seen in {name}.", f"And elephants, {name}.")
    workspace = project.open()
    found = workspace.recall.recall("zebras", scope="global", limit=3)
    assert sorted((m["project"], m["content"]) for m in found["result"]) == [
        ("koi", "Zebras were seen in koi."),
        ("miller", "Zebras were seen in miller."),
        ("project", "Zebras live at home."),
    ]
    assert found["notes"] == []
    assert len(workspace.recall.recall(scope="global")["result"]) == 5
    assert [m.get("project", "none") for m in workspace.recall.recall()["result"]] == ["none"]
    paths = {m["project"]: m["path"] for m in found["result"]}
    assert paths["project"].startswith(".memories/")
    assert Path(paths["koi"]).is_file()


def test_other_projects_are_only_read_and_what_cannot_be_is_named(
    project: Project, home: Path
) -> None:
    saved(project, "home")
    good, corrupt, bare, linked = (
        sibling(project, name) for name in ("good", "corrupt", "bare", "linked")
    )
    for other in (good, corrupt, bare, linked, sibling(project, "gone")):
        saved(other, f"a note in {other.root.name}")
    shutil.rmtree(project.root.parent / "gone")
    shutil.rmtree(bare.root / ".memories/indices")
    for file in corrupt.root.glob(".memories/indices/*/vector/docstore.json"):
        file.write_bytes(file.read_bytes()[:-9])
    (linked.root / ".memories").rename(project.root.parent / "moved")
    (linked.root / ".memories").symlink_to(project.root.parent / "moved")
    good.memory(".history/intent.json", "{}")
    before = {root.name: state(root) for root in (good.root, corrupt.root, bare.root)}
    found = project.open().recall.recall(scope="global")
    assert sorted(contents(found)) == ["a note in good", "home"]
    told = {
        name: [note for note in found["notes"] if note.startswith(f"{name} was left out")]
        for name in before
    }
    assert [len(notes) for notes in told.values()] == [0, 1, 1]
    assert "damaged" in told["corrupt"][0]
    assert f"ragdocs index --project {bare.root}" in told["bare"][0]
    assert any(
        note.startswith("linked was left out") and "symbolic link" in note
        for note in found["notes"]
    )
    assert not any("gone" in note for note in found["notes"])
    assert {root.name: state(root) for root in (good.root, corrupt.root, bare.root)} == before


def test_an_index_that_somebody_else_made_is_not_opened(
    project: Project, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    saved(project, "home")
    other = sibling(project, "other")
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "somebody-else"))
    saved(other, "foreign")
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    found = project.open().recall.recall(scope="global")
    assert contents(found) == ["home"]
    assert any(
        note.startswith("other was left out") and "not made here by you" in note
        for note in found["notes"]
    )


def test_worktrees_of_one_repository_are_one_project(project: Project) -> None:
    saved(project, "home")
    main = sibling(project, "koi")
    repository(main.root)
    saved(main, "in both")
    git(main.root, "add", "-f", *[str(path) for path in main.root.glob(".memories/*/*.md")])
    git(main.root, "commit", "-q", "-m", "memories")
    git(main.root, "worktree", "add", "-q", str(project.root.parent / "feature"))
    saved(sibling(project, "feature"), "in the worktree")
    workspace = project.open()
    for query in ("", "in both the worktree"):
        found = workspace.recall.recall(query, scope="global")
        koi = [memory["content"] for memory in found["result"] if memory["project"] == "koi"]
        assert sorted(koi) == ["in both", "in the worktree"], (
            "each once, under the name of the repository"
        )
    from_worktree = sibling(project, "feature").open().recall.recall(scope="global")
    assert {memory["project"] for memory in from_worktree["result"]} == {"koi", "project"}
    assert len(from_worktree["result"]) == 3


def test_files_that_changed_since_the_index_was_saved_are_told_and_a_new_index_is_taken_up(
    project: Project,
) -> None:
    saved(project, "home")
    other = sibling(project, "other")
    saved(other, "first", "second")
    workspace = project.open()
    assert workspace.recall.recall(scope="global")["notes"] == []
    other.memory("by-hand.md", "third\n")
    next(other.root.glob(".memories/2*/*.md")).write_text("edited by hand\n")
    found = workspace.recall.recall(scope="global")
    assert len(found["result"]) == 3
    assert [note for note in found["notes"] if note.startswith("other: 2 files changed")]
    other.open().save()
    found = workspace.recall.recall(scope="global")
    assert len(found["result"]) == 4
    assert found["notes"] == []


def test_two_projects_of_one_name_are_told_apart(project: Project) -> None:
    saved(project, "home")
    roots = [sibling(project, f"{owner}/api").root for owner in ("ann", "ben")]
    for root in roots:
        saved(type(project)(root), f"of {root.parent.name}")
    found = project.open().recall.recall(scope="global")
    assert sorted(m["project"] for m in found["result"]) == sorted(["project", *map(str, roots)])


def test_a_project_without_memory_can_ask_the_others(project: Project) -> None:
    saved(sibling(project, "other"), "elsewhere")
    recall = project.open(**{"memory.enabled": False}).recall
    found = recall.recall(scope="global")
    assert contents(found) == ["elsewhere"]
    assert any("switched off" in note for note in found["notes"])
    for action in (recall.recall, lambda: recall.remember("x")):
        with pytest.raises(UnavailableError, match="enabled = true"):
            action()
    with pytest.raises(ValidationError):
        recall.recall(scope="everything")


def test_memories_of_the_users_own_bank_say_which_project_they_are_of(
    project: Project, home: Path
) -> None:
    kept = project.open(**{"memory.storage_strategy": "user"})
    answer = kept.recall.remember("in the bank")
    kept.save()
    assert Path(answer["path"]).is_relative_to(home / "data/ragdocs/memories")
    other = sibling(project, "other")
    saved(other, "in a folder")
    for workspace in (other.open(), project.open(**{"memory.storage_strategy": "user"})):
        found = workspace.recall.recall(scope="global")
        assert {m["content"]: m["project"] for m in found["result"]} == {
            "in the bank": "project",
            "in a folder": "other",
        }


def test_another_projects_settings_and_hidden_statuses_do_not_leak(project: Project) -> None:
    saved(project, "home")
    other = sibling(project, "other")
    dated(other, "archived.md", 0, "archived elsewhere", "status: archived\n")
    dated(
        other,
        "expired.md",
        3,
        "expired elsewhere",
        f"expires_at: '{(NOW - timedelta(days=1)).isoformat()}'\n",
    )
    other.write("config.toml", "[memory]\nenabled = false\n[nonsense]\n")
    other.flags["memory.enabled"] = True
    (other.root / "config.toml").rename(other.root / "config.off")
    saved(other, "shown")
    (other.root / "config.off").rename(other.root / "config.toml")
    assert sorted(contents(project.open().recall.recall(scope="global"))) == ["home", "shown"]


def test_no_more_projects_are_kept_open_than_that(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(project, "home")
    for number in range(4):
        saved(sibling(project, f"p{number}"), f"note {number}")
    monkeypatch.setattr(elsewhere, "MOST_OPEN", 2)
    workspace = project.open()
    for _ in range(2):
        assert len(workspace.recall.recall(scope="global")["result"]) == 5
        assert len(workspace.elsewhere._opened) == 2
    monkeypatch.setattr(elsewhere, "MOST_BANKS", 3)
    found = workspace.recall.recall(scope="global")
    assert len(found["result"]) == 4
    assert any(note.startswith("1 projects") for note in found["notes"])


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
    answer = verbs.remember(f"A decision {number}-{turn} of this process.", ["crowd"])
    print(answer["id"], answer["path"], f"{number}-{turn}")
"""


def test_eight_processes_remember_at_once_and_nothing_is_lost(project: Project) -> None:
    command = [sys.executable, "-P", "-c", REMEMBER, str(project.root)]
    crowd = [
        subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE, text=True)
        for number in range(8)
    ]
    answers = [line.split() for one in crowd for line in one.communicate()[0].splitlines()]
    assert len({own_id for own_id, _, _ in answers}) == 80
    assert len(list(project.root.glob(".memories/*/*.md"))) == 80
    for own_id, path, mark in answers:
        text = (project.root / path).read_text(encoding="utf-8")
        assert f"id: {own_id}\n" in text
        assert f"A decision {mark} of" in text
    recalled = project.open().recall.recall(limit=50)["result"]
    assert {memory["id"] for memory in recalled} <= {own_id for own_id, _, _ in answers}
