"""Conventions, decisions and notes of a repository.

Written, changed, found by file, deleted, scoped by branch.
"""

from __future__ import annotations

import multiprocessing
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ragdocs.errors import ConfigError, NotFoundError, ParseError, ValidationError
from ragdocs.verbs.context import scope
from ragdocs.verbs.context.repo import Repository
from ragdocs.workspace import Workspace

if TYPE_CHECKING:
    from tests.conftest import Project

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


def git(root: Path, *words: str) -> None:
    who = ["-c", "user.name=T", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", "-C", str(root), *who, *words], check=True, capture_output=True)


@pytest.fixture
def repository(project: Project) -> Repository:
    git(project.root, "init")
    return project.open().repository


def test_a_convention_is_a_memory_with_the_fields_of_its_document(
    project: Project, repository: Repository
) -> None:
    saved = repository.upsert_convention(
        "Use pnpm workspaces", "All packages live\nunder packages/.", ["style"]
    )
    path = Path(saved["path"])
    assert (
        path.relative_to(project.root).as_posix()
        == f".memories/repo/main/conventions/{saved['id']}.md"
    )
    assert path.read_text() == (
        "---\ntype: convention\nstatus: active\ntags: [style]\ncreated_at: '2026-11-16T12:00:00Z'\n"
        f"title: Use pnpm workspaces\nbranch: main\nid: {saved['id']}\nupdated_at: '2026-11-16T12:00:00Z'\n---\n\n"
        "All packages live\nunder packages/.\n"
    )
    assert saved["created"]
    convention = repository.get()["conventions"][0]
    assert convention == {
        "id": saved["id"],
        "title": "Use pnpm workspaces",
        "content": "All packages live\nunder packages/.",
        "tags": ["style"],
        "createdAt": "2026-11-16T12:00:00Z",
        "updatedAt": "2026-11-16T12:00:00Z",
    }


def test_all_kinds_are_upserted_read_and_deleted(project: Project, repository: Repository) -> None:
    convention = repository.upsert_convention("Tabs", "Two spaces.")
    decision = repository.upsert_decision(
        "Sessions", "They can be revoked.", ["src/", "docs/auth.md"]
    )
    note = repository.upsert_note("Needs Redis 7", "agent")
    found = repository.get()
    assert [len(found[kind]) for kind in ("conventions", "decisions", "notes", "summaries")] == [
        1,
        1,
        1,
        0,
    ]
    assert found["decisions"][0]["impactedPaths"] == ["src/", "docs/auth.md"]
    assert found["notes"][0]["source"] == "agent"
    assert (found["branch"], found["branchScope"], len(found["repoHash"])) == (
        "main",
        "perBranch",
        32,
    )
    for kind, item in (("convention", convention), ("decision", decision), ("note", note)):
        only = repository.get(kind, str(item["id"]))
        assert [len(only[name]) for name in ("conventions", "decisions", "notes")].count(1) == 1
        deleted = repository.delete(kind, str(item["id"]))
        assert deleted["deleted"]
        assert Path(deleted["movedTo"]).exists()
        assert not repository.delete(kind, str(item["id"]))["deleted"]
        with pytest.raises(NotFoundError):
            repository.get(kind, str(item["id"]))
    assert repository.get()["decisions"] == []


@pytest.mark.parametrize(
    ("run_id", "step_id", "summary", "complaint"),
    [
        ("r", "s", "", "summary is empty"),
        ("r", "s", " \n ", "summary is empty"),
        ("", "s", "x", "run_id is empty"),
        ("r", "", "x", "step_id is empty"),
        ("r", "s", "x\x00", "no text file can"),
        ("r", "s", "x\ud800", "no text file can"),
    ],
)
def test_a_summary_that_says_nothing_or_is_no_text_is_refused(
    repository: Repository, run_id: str, step_id: str, summary: str, complaint: str
) -> None:
    with pytest.raises(ValidationError, match=complaint):
        repository.append_summary(run_id, step_id, summary)
    assert repository.get()["summaries"] == []


def test_an_upsert_changes_what_is_said_and_keeps_the_rest(
    project: Project, repository: Repository
) -> None:
    first = repository.upsert_decision("Sessions", "Because.", ["src/auth.py"])
    path = Path(first["path"])
    path.write_text(
        path.read_text().replace("status: active", "status: active\nreviewer: Ada # for now")
    )
    project.clock = lambda: NOW + timedelta(days=1)
    later = project.open().repository
    second = later.upsert_decision("Sessions", "Because they can be revoked.")
    assert (second["id"], second["created"], second["changed"]) == (first["id"], False, True)
    assert second["impactedPaths"] == ["src/auth.py"]
    assert (second["createdAt"], second["updatedAt"]) == (
        "2026-11-16T12:00:00Z",
        "2026-11-17T12:00:00Z",
    )
    assert "reviewer: Ada # for now" in path.read_text()
    renamed = later.upsert_decision(
        "Sessions, not JWT", "Because they can be revoked.", item_id=first["id"]
    )
    assert (renamed["id"], renamed["summary"]) == (first["id"], "Sessions, not JWT")
    assert len(later.get()["decisions"]) == 1


def test_the_same_again_writes_nothing(repository: Repository) -> None:
    for _ in range(2):
        saved = repository.upsert_note("Needs Redis 7")
    assert not saved["changed"]
    assert len(repository.corpus.versioned.history()) == 0
    assert len(repository.get()["notes"]) == 1


def test_titles_that_look_alike_are_different_conventions(repository: Repository) -> None:
    for title in ("Use C", "Use C++", "使用制表符", "USE c"):
        repository.upsert_convention(title, f"On {title}.")
    assert len(repository.get()["conventions"]) == 3, "only case does not make another title"


def test_an_item_is_known_by_its_id_whatever_its_file_is_called(
    project: Project, repository: Repository
) -> None:
    first = repository.upsert_convention("Tabs", "Two.")
    path = Path(first["path"])
    path.rename(path.with_name("style.md"))
    for again in (
        repository.upsert_convention("Tabs", "Four."),
        repository.upsert_convention("Tabs", "Eight.", item_id=str(first["id"])),
        repository.upsert_convention("Tabs", "Ten.", item_id="style"),
    ):
        assert (again["id"], again["created"], Path(again["path"]).name) == (
            first["id"],
            False,
            "style.md",
        )
    assert [one["content"] for one in repository.get()["conventions"]] == ["Ten."]
    assert len(repository.get("convention", str(first["id"]))["conventions"]) == 1
    assert repository.delete("convention", str(first["id"]))["deleted"]
    assert not path.with_name("style.md").exists()


def test_a_title_that_was_given_up_is_free_for_another_item(repository: Repository) -> None:
    first = repository.upsert_convention("Tabs", "Two.")
    repository.upsert_convention("Spaces", "Two.", item_id=str(first["id"]))
    assert repository.upsert_convention("Spaces", "Four.")["id"] == first["id"], (
        "no second item of this title"
    )
    other = repository.upsert_convention("Tabs", "None.")
    assert (other["created"], other["id"] != first["id"]) == (True, True), (
        "the renamed one is not overwritten"
    )
    assert {one["title"]: one["content"] for one in repository.get()["conventions"]} == {
        "Spaces": "Four.",
        "Tabs": "None.",
    }
    assert repository.upsert_convention("Tabs", "None.")["id"] == other["id"]


def test_a_note_that_was_changed_is_not_overwritten_by_its_first_text(
    repository: Repository,
) -> None:
    first = repository.upsert_note("Needs Redis 7")
    repository.upsert_note("Needs Redis 8", item_id=str(first["id"]))
    assert repository.upsert_note("Needs Redis 7")["created"]
    assert repository.upsert_note("Needs Redis 8")["id"] == first["id"]
    assert {one["content"] for one in repository.get()["notes"]} == {
        "Needs Redis 7",
        "Needs Redis 8",
    }


def test_a_copied_file_is_an_item_of_its_own(repository: Repository) -> None:
    first = repository.upsert_convention("Tabs", "Two.")
    path = Path(first["path"])
    path.with_name("another.md").write_text(path.read_text().replace("Two.", "Four."))
    assert {one["id"]: one["content"] for one in repository.get()["conventions"]} == {
        first["id"]: "Two.",
        "another": "Four.",
    }


def test_a_malformed_file_keeps_no_other_item_from_being_written(
    project: Project, repository: Repository
) -> None:
    project.memory("repo/main/conventions/broken.md", "---\ntype: [\n---\n\nx\n")
    assert repository.upsert_convention("Tabs", "Two.")["created"]


def test_an_archived_item_is_listed_by_its_id_alone_and_active_when_written_again(
    project: Project, repository: Repository
) -> None:
    saved = repository.upsert_convention("Tabs", "Two zebras.")
    path = Path(saved["path"])
    path.write_text(path.read_text().replace("status: active", "status: archived"))
    found = repository.get()
    assert found["conventions"] == []
    assert "1 archived" in found["remarks"][0]
    assert (
        repository.get("convention", str(saved["id"]))["conventions"][0]["content"] == "Two zebras."
    )
    assert "zebras" not in project.open().packs.build(4000)["context"]
    again = repository.upsert_convention("Tabs", "Two zebras.")
    assert (again["changed"], again["created"]) == (True, False)
    assert "active again" in again["warnings"][0]
    assert "status: active" in path.read_text()
    assert "zebras" in project.open().packs.build(4000)["context"]


def test_an_expired_item_is_in_no_pack(project: Project, repository: Repository) -> None:
    path = Path(repository.upsert_decision("Zebra", "Until Monday.")["path"])
    path.write_text(
        path.read_text().replace("status: active", "status: active\nexpires_at: '2026-11-01'")
    )
    assert "Zebra" not in project.open().packs.build(4000)["context"]


def test_a_branch_without_items_cannot_be_copied(project: Project, repository: Repository) -> None:
    repository.upsert_note("on main")
    with pytest.raises(NotFoundError, match="nosuchbranch") as caught:
        repository.copy("nosuchbranch", "topic")
    assert "Branches with items: main" in str(caught.value)
    assert not list((project.root / ".memories/repo").glob("topic*"))


def test_a_copy_takes_another_name_where_its_own_is_taken(
    project: Project, repository: Repository
) -> None:
    saved = repository.upsert_convention("Tabs", "Two.")
    project.memory(
        f"repo/topic/conventions/{saved['id']}.md", "---\nid: other\n---\n\n# Other\n\nText.\n"
    )
    copied = repository.copy("main", "topic")
    assert copied["copied"] == [f"repo/topic/conventions/{saved['id']}-2.md"]
    assert copied["left"] == []


def test_a_file_finds_the_decisions_about_it_and_about_its_folders(
    project: Project, repository: Repository
) -> None:
    project.write("src/auth/login.py", "x = 1\n")
    repository.upsert_decision("Sessions", "Revocable.", ["src/auth"])
    repository.upsert_decision("Retries", "Twice.", ["src/net.py"])
    workspace = project.open()
    for path in ("src/auth/login.py", "src/auth/", "./src/auth"):
        assert [one["summary"] for one in repository.get(path=path)["decisions"]] == ["Sessions"]
        linked = workspace.memories.linked("", path)["result"]
        assert [(one["title"], one["edge_type"]) for one in linked] == [("Sessions", "impacts")]
    assert [one["title"] for one in workspace.memories.linked("", "src/net.py")["result"]] == [
        "Retries"
    ]
    assert workspace.memories.linked("", "src/other.py")["result"] == []
    assert workspace.memories.linked("", "src/authority.py")["result"] == []


@pytest.mark.parametrize("kind", ["note", "convention", "summary"])
def test_only_decisions_are_asked_for_by_a_path(repository: Repository, kind: str) -> None:
    with pytest.raises(ValidationError, match="only decisions are about paths"):
        repository.get(kind, path="src/auth.py")


def test_everything_is_found_by_the_ordinary_search(
    project: Project, repository: Repository
) -> None:
    repository.upsert_convention("Axolotl naming", "Modules are named after amphibians.")
    found = project.open().memories.search("axolotl", kind="convention")["result"]
    assert [hit["title"] for hit in found] == ["Axolotl naming"]


def test_a_missing_store_is_empty(repository: Repository) -> None:
    found = repository.get()
    assert (found["conventions"], found["decisions"], found["notes"], found["summaries"]) == (
        [],
        [],
        [],
        [],
    )


@pytest.mark.parametrize(
    "damaged", [b"---\ntype: [\n---\n\nx\n", b"---\n- a list\n---\n\nx\n", b"---\nx: \xff\n---\n"]
)
def test_a_malformed_file_is_a_parse_error_and_stays_untouched(
    project: Project, repository: Repository, damaged: bytes
) -> None:
    path = Path(repository.upsert_convention("Tabs", "Two.")["path"])
    path.write_bytes(damaged)
    for act in (repository.get, lambda: repository.upsert_convention("Tabs", "Four.")):
        with pytest.raises(ParseError, match=path.name):
            act()
    assert path.read_bytes() == damaged


def test_a_file_written_by_hand_counts(project: Project, repository: Repository) -> None:
    project.memory("repo/main/conventions/naming.md", "# Name things\n\nNo abbreviations.\n")
    found = repository.get("convention")["conventions"][0]
    assert (found["id"], found["title"]) == ("naming", "Name things")
    assert (
        repository.upsert_convention("Name things well", "None.", item_id="naming")["id"]
        == "naming"
    )


def test_no_secret_is_written_returned_or_made_a_name(
    project: Project, repository: Repository
) -> None:
    convention = repository.upsert_convention(f"Token {SECRET}", f"Use {SECRET} here.")
    decision = repository.upsert_decision("Keys", f"Because of {SECRET}.", ["src/a.py"])
    note = repository.upsert_note(f"password={SECRET}")
    assert all(one["warnings"] for one in (convention, decision, note))
    assert SECRET not in repr((convention, decision, note, repository.get()))
    for path in project.root.rglob("*"):
        assert SECRET not in str(path)
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"title": " ", "content": "x"}, "title is empty"),
        ({"title": "x", "content": "\n"}, "content is empty"),
        ({"title": "x" * 201, "content": "x"}, "longer than 200"),
        ({"title": "x", "content": "x", "item_id": "../x"}, "cannot be an id"),
        ({"title": "x", "content": "x", "item_id": "a/b"}, "cannot be an id"),
        ({"title": "x", "content": "x", "branch_scope": "mine"}, "is not a branch scope"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    repository: Repository, arguments: dict[str, str], complaint: str
) -> None:
    with pytest.raises(ValidationError, match=complaint):
        repository.upsert_convention(**arguments)


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "src/../../x", "~/x", "", "C:/x", "a\nb"])
def test_a_decision_is_about_paths_of_the_project_only(repository: Repository, path: str) -> None:
    with pytest.raises(ValidationError, match="not a path in this project"):
        repository.upsert_decision("x", "y", [path])


def test_a_long_memory_fits_the_budget_and_says_what_is_left_out(repository: Repository) -> None:
    for number in range(20):
        repository.upsert_convention(f"Rule {number}", "Long text. " * 100)
        repository.append_summary("run", str(number), "Short. " * 50)
    found = repository.get()
    assert len(repr(found)) < 11_000
    assert found["omitted"]["conventions"] + len(found["conventions"]) == 20
    assert found["omitted"]["summaries"] + len(found["summaries"]) == 20
    assert len(found["remarks"]) == 2


# --- branches ---


def test_each_branch_has_its_own_memory_and_shared_ones_have_one(
    project: Project, repository: Repository
) -> None:
    git(project.root, "commit", "--allow-empty", "-m", "first")
    repository.upsert_note("on main")
    repository.upsert_note("for all", branch_scope="sharedRepo")
    repository.append_summary("r", "s", "done on main")
    git(project.root, "checkout", "-b", "feature/Login")
    assert repository.get()["notes"] == []
    assert repository.get()["summaries"] == []
    repository.upsert_note("on the branch")
    assert [note["content"] for note in repository.get()["notes"]] == ["on the branch"]
    assert [note["content"] for note in repository.get(branch_scope="sharedRepo")["notes"]] == [
        "for all"
    ]
    git(project.root, "checkout", "main")
    assert [note["content"] for note in repository.get()["notes"]] == ["on main"]
    assert repository.get()["summaries"][0]["summary"] == "done on main"
    commit = subprocess.check_output(
        ["git", "-C", str(project.root), "rev-parse", "HEAD"], text=True
    ).strip()
    git(project.root, "checkout", "--detach")
    assert repository.get()["branch"] == commit
    assert repository.get()["notes"] == []


def test_the_scope_comes_from_the_call_then_the_environment_then_the_file(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(project.root, "init")

    def policy(given: str | None = None) -> str:
        return Workspace(project.config()).scope(given).policy

    assert policy() == "perBranch"
    project.write("config.toml", '[memory]\nbranch_scope = "sharedRepo"\n')
    assert policy() == "sharedRepo"
    monkeypatch.setenv("MEMORY_BRANCH_SCOPE", "perBranch")
    assert policy() == "perBranch"
    assert policy("sharedRepo") == "sharedRepo"
    assert project.config().origin("memory.branch_scope") == "environment MEMORY_BRANCH_SCOPE"
    monkeypatch.setenv("MEMORY_BRANCH_SCOPE", "mine")
    with pytest.raises(ConfigError, match="environment MEMORY_BRANCH_SCOPE"):
        project.config()


def test_worktrees_share_the_summaries_of_a_shared_repository(
    project: Project, repository: Repository
) -> None:
    git(project.root, "commit", "--allow-empty", "-m", "first")
    tree = project.root.parent / "tree"
    git(project.root, "worktree", "add", "-b", "other", str(tree))
    repository.append_summary("r", "s", "seen from everywhere", branch_scope="sharedRepo")
    project.root = tree
    other = project.open().repository
    assert other.get(branch_scope="sharedRepo")["summaries"][0]["summary"] == "seen from everywhere"
    assert other.get()["summaries"] == []


def test_a_folder_without_git_has_one_memory(project: Project) -> None:
    repository = project.open().repository
    saved = repository.upsert_note("x")
    assert "/repo/all-branches/notes/" in saved["path"]
    assert repository.get(branch_scope="sharedRepo")["notes"][0]["id"] == saved["id"]


def test_one_bank_for_all_projects_keeps_repositories_apart(project: Project) -> None:
    git(project.root, "init")
    project.flags["memory.storage_strategy"] = "user"
    project.open().repository.upsert_note("of the first")
    project.root = project.root.parent / "second"
    project.root.mkdir()
    git(project.root, "init")
    second = project.open().repository
    assert second.get()["notes"] == []


def test_a_branch_is_copied_to_another_which_keeps_what_it_has(
    project: Project, repository: Repository
) -> None:
    git(project.root, "commit", "--allow-empty", "-m", "first")
    git(project.root, "checkout", "-b", "topic")
    repository.upsert_convention("Tabs", "Two.")
    kept = repository.upsert_decision("Sessions", "Topic's reasons.")
    repository.append_summary("r", "1", "on topic")
    git(project.root, "checkout", "main")
    repository.upsert_decision("Sessions", "Main's reasons.")
    repository.append_summary("r", "2", "on main")
    copied = repository.copy("topic", "main")
    assert (len(copied["copied"]), copied["summaries"]) == (1, 1)
    assert copied["left"] == [f"repo/main/decisions/{kept['id']}.md"]
    found = repository.get()
    assert found["conventions"][0]["title"] == "Tabs"
    assert found["decisions"][0]["rationale"] == "Main's reasons."
    assert {one["summary"] for one in found["summaries"]} == {"on topic", "on main"}
    assert repository.copy("topic", "main")["summaries"] == 0
    with pytest.raises(ValidationError):
        repository.copy("main", "main")


def test_every_branch_has_a_folder_of_its_own() -> None:
    names = [
        "main",
        "Main",
        "feature/x",
        "feature-x",
        "all-branches",
        "",
        "con",
        "nul",
        "ä",
        "ö",
        "a" * 300,
        "a" * 301,
    ]
    labels = [scope.label(name) for name in names]
    assert len({label.casefold() for label in labels}) == len(names)
    assert labels[0] == "main"
    assert labels[5] == "all-branches"


def _upsert(root: str, number: int) -> None:
    from tests.conftest import Project

    project = Project(Path(root))
    project.flags["embedding.model"] = "none"
    repository = project.open().repository
    for turn in range(5):
        repository.upsert_note(f"note {number}-{turn}")
        repository.upsert_convention("One for all", f"as {number} has it, {turn}")


def test_processes_that_write_at_once_lose_nothing(project: Project) -> None:
    git(project.root, "init")
    context = multiprocessing.get_context("spawn")
    with context.Pool(4) as pool:
        pool.starmap(_upsert, [(str(project.root), number) for number in range(4)])
    repository = project.open().repository
    assert len(repository.items(repository.scope(None, None), "note")) == 20
    assert len(repository.get("convention")["conventions"]) == 1
