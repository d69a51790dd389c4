"""Conventions, decisions and notes of a repository.

Written, changed, found by file, deleted, scoped by branch.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.asking import ask
from tests.conftest import NOW
from tests.plain_git import plain_git

from ragdocs.errors import ConfigError, NotFoundError, ParseError, ValidationError
from ragdocs.verbs.context.repo import Repository
from ragdocs.workspace import Workspace

if TYPE_CHECKING:
    from tests.conftest import Project

SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


@pytest.fixture
def repository(project: Project) -> Repository:
    plain_git(project.root, "init")
    return project.open().repository


def texts(repository: Repository, kind: str, **more: str) -> dict[str, str]:
    """Return the texts of a kind by title; notes have their text for a title."""
    items = repository.get(kind, **more).items[kind]
    return {item.title if kind != "note" else item.body: item.body for item in items}


def steps(repository: Repository, **more: str) -> set[str]:
    return {record.text for record in repository.get(**more).summaries}


def test_a_convention_is_a_memory_with_the_fields_of_its_document(
    project: Project, repository: Repository
) -> None:
    text = "All packages live\nunder packages/."
    saved = repository.upsert_convention("Use pnpm workspaces", text, ["style"])
    path = Path(saved.location)
    expected = f".memories/repo/main/conventions/{saved.item.id}.md"
    assert path.relative_to(project.root).as_posix() == expected
    moment = "'2026-11-16T12:00:00Z'"
    assert path.read_text() == (
        f"---\ntype: convention\nstatus: active\ntags: [style]\ncreated_at: {moment}\n"
        f"title: Use pnpm workspaces\nbranch: main\nid: {saved.item.id}\nupdated_at: {moment}\n"
        f"---\n\n{text}\n"
    )
    assert saved.created
    assert texts(repository, "convention") == {"Use pnpm workspaces": text}
    # The ordinary search finds it as well.
    found = ask(project.open(), "search_memories", query="pnpm", filter_type="convention")
    assert [hit["title"] for hit in found["result"]] == ["Use pnpm workspaces"]


def test_all_kinds_are_upserted_read_and_deleted(repository: Repository) -> None:
    paths = ["src/", "docs/auth.md"]
    saved = {
        "convention": repository.upsert_convention("Tabs", "Two spaces."),
        "decision": repository.upsert_decision("Sessions", "They can be revoked.", paths),
        "note": repository.upsert_note("Needs Redis 7", "agent"),
    }
    known = repository.get()
    assert [item.id for items in known.items.values() for item in items] == [
        write.item.id for write in saved.values()
    ]
    assert known.items["decision"][0].paths == paths
    assert known.items["note"][0].source == "agent"
    assert (known.scope.branch, known.scope.policy) == ("main", "perBranch")
    assert len(known.scope.identity) == 32
    for kind, write in saved.items():
        assert list(map(len, repository.get(kind, write.item.id).items.values())) == [1]
        assert Path(repository.delete(kind, write.item.id).moved_to).exists()
        assert not repository.delete(kind, write.item.id).moved_to
        with pytest.raises(NotFoundError):
            repository.get(kind, write.item.id)
    assert not any(repository.get().items.values()), "what is deleted is not listed"


def test_an_upsert_changes_what_is_said_and_keeps_the_rest(
    project: Project, repository: Repository
) -> None:
    first = repository.upsert_decision("Sessions", "Because.", ["src/auth.py"])
    path = Path(first.location)
    reviewed = "status: active\nreviewer: Ada # for now"
    path.write_text(path.read_text().replace("status: active", reviewed))
    project.clock = lambda: NOW + timedelta(days=1)
    later = project.open().repository
    second = later.upsert_decision("Sessions", "Because they can be revoked.")
    assert (second.item.id, second.created, second.changed) == (first.item.id, False, True)
    assert second.item.paths == ["src/auth.py"]
    assert second.item.created == NOW
    assert second.item.updated == NOW + timedelta(days=1)
    assert "reviewer: Ada # for now" in path.read_text()
    later.upsert_decision("Sessions, not JWT", "Revocable.", item_id=first.item.id)
    assert texts(later, "decision") == {"Sessions, not JWT": "Revocable."}


def test_the_same_again_writes_nothing(repository: Repository) -> None:
    assert repository.upsert_note("Needs Redis 7").changed
    assert not repository.upsert_note("Needs Redis 7").changed
    assert len(repository.corpus.versioned.history()) == 0
    assert len(texts(repository, "note")) == 1


def test_titles_that_look_alike_are_different_conventions(repository: Repository) -> None:
    for title in ("Use C", "Use C++", "使用制表符", "USE c"):
        repository.upsert_convention(title, f"On {title}.")
    assert len(texts(repository, "convention")) == 3, "only case does not make another title"


def test_an_item_is_known_by_its_id_whatever_its_file_is_called(repository: Repository) -> None:
    first = repository.upsert_convention("Tabs", "Two.")
    path = Path(first.location)
    path.rename(path.with_name("style.md"))
    for text, item_id in (("Four.", ""), ("Eight.", first.item.id), ("Ten.", "style")):
        again = repository.upsert_convention("Tabs", text, item_id=item_id)
        assert (again.item.id, again.created) == (first.item.id, False)
        assert Path(again.location).name == "style.md"
    assert texts(repository, "convention", item_id=first.item.id) == {"Tabs": "Ten."}
    assert repository.delete("convention", first.item.id).moved_to
    assert not path.with_name("style.md").exists()


def test_a_title_or_text_that_was_given_up_is_free_for_another_item(
    repository: Repository,
) -> None:
    first = repository.upsert_convention("Tabs", "Two.").item.id
    repository.upsert_convention("Spaces", "Two.", item_id=first)
    assert repository.upsert_convention("Spaces", "Four.").item.id == first
    other = repository.upsert_convention("Tabs", "None.")
    assert other.created, "the renamed one is not overwritten"
    assert repository.upsert_convention("Tabs", "None.").item.id == other.item.id != first
    assert texts(repository, "convention") == {"Spaces": "Four.", "Tabs": "None."}
    note = repository.upsert_note("Needs Redis 7").item.id
    repository.upsert_note("Needs Redis 8", item_id=note)
    assert repository.upsert_note("Needs Redis 7").created
    assert repository.upsert_note("Needs Redis 8").item.id == note
    assert set(texts(repository, "note")) == {"Needs Redis 7", "Needs Redis 8"}


def test_files_that_people_copy_or_write_are_items_of_their_own(
    project: Project, repository: Repository
) -> None:
    first = repository.upsert_convention("Tabs", "Two.")
    path = Path(first.location)
    path.with_name("another.md").write_text(path.read_text().replace("Two.", "Four."))
    project.memory("repo/main/conventions/naming.md", "# Name things\n\nNo abbreviations.\n")
    items = {item.id: item for item in repository.get("convention").items["convention"]}
    assert items.keys() == {first.item.id, "another", "naming"}
    assert items["another"].body == "Four."
    assert items["naming"].title == "Name things"
    saved = repository.upsert_convention("Name things well", "None.", item_id="naming")
    assert saved.item.id == "naming"


def test_an_archived_item_is_listed_by_its_id_alone_and_active_when_written_again(
    project: Project, repository: Repository
) -> None:
    saved = repository.upsert_convention("Tabs", "Two zebras.")
    path = Path(saved.location)
    path.write_text(path.read_text().replace("status: active", "status: archived"))
    assert texts(repository, "convention") == {}
    assert repository.get().unlisted == 1
    assert texts(repository, "convention", item_id=saved.item.id) == {"Tabs": "Two zebras."}
    assert "zebras" not in ask(project.open(), "build_context")["context"]
    again = repository.upsert_convention("Tabs", "Two zebras.")
    assert (again.changed, again.created, again.revived) == (True, False, True)
    assert "status: active" in path.read_text()
    assert "zebras" in ask(project.open(), "build_context")["context"]
    expired = "status: active\nexpires_at: '2026-11-01'"
    path.write_text(path.read_text().replace("status: active", expired))
    assert "zebras" not in ask(project.open(), "build_context")["context"]


def test_a_file_finds_the_decisions_about_it_and_about_its_folders(
    project: Project, repository: Repository
) -> None:
    project.write("src/auth/login.py", "x = 1\n")
    repository.upsert_decision("Sessions", "Revocable.", ["src/auth"])
    repository.upsert_decision("Retries", "Twice.", ["src/net.py"])
    workspace = project.open()

    def linked(path: str) -> list[tuple[str, str]]:
        answer = ask(workspace, "search_linked_memories", query="", target_document=path)
        return [(hit["title"], hit["edge_type"]) for hit in answer["result"]]

    for path in ("src/auth/login.py", "src/auth/", "./src/auth"):
        assert list(texts(repository, "decision", path=path)) == ["Sessions"]
        assert linked(path) == [("Sessions", "impacts")]
    assert linked("src/net.py") == [("Retries", "impacts")]
    assert linked("src/other.py") == linked("src/authority.py") == []
    for kind in ("note", "convention", "summary"):
        with pytest.raises(ValidationError, match="only decisions have paths"):
            repository.get(kind, path="src/auth.py")


@pytest.mark.parametrize(
    "damaged", [b"---\ntype: [\n---\n\nx\n", b"---\n- a list\n---\n\nx\n", b"---\nx: \xff\n---\n"]
)
def test_a_malformed_file_is_a_parse_error_stays_untouched_and_stops_no_other(
    repository: Repository, damaged: bytes
) -> None:
    path = Path(repository.upsert_convention("Tabs", "Two.").location)
    path.write_bytes(damaged)
    for act in (repository.get, lambda: repository.upsert_convention("Tabs", "Four.")):
        with pytest.raises(ParseError, match=path.name):
            act()
    assert path.read_bytes() == damaged
    assert repository.upsert_convention("Spaces", "Two.").created


def test_no_secret_is_written_returned_or_made_a_name(
    project: Project, repository: Repository
) -> None:
    saved = [
        repository.upsert_convention(f"Token {SECRET}", f"Use {SECRET} here."),
        repository.upsert_decision("Keys", f"Because of {SECRET}.", ["src/a.py"]),
        repository.upsert_note(f"password={SECRET}"),
    ]
    assert all(write.written and write.written.removed for write in saved)
    assert SECRET not in repr((saved, repository.get()))
    for path in project.root.rglob("*"):
        assert SECRET not in str(path)
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


CONVENTIONS = {
    "title is empty": [{"title": " "}],
    "content is empty": [{"content": "\n"}],
    "longer than 200": [{"title": "x" * 201}],
    "cannot be an id": [{"item_id": "../x"}, {"item_id": "a/b"}],
    "is not a branch scope": [{"branch_scope": "mine"}],
}
SUMMARIES = {
    "summary is empty": [{"summary": " \n "}],
    "run_id is empty": [{"run_id": ""}],
    "step_id is empty": [{"step_id": ""}],
    "no text file can": [{"summary": "x\x00"}, {"summary": "x\ud800"}],
}
OUTSIDE = ["/etc/passwd", "../x", "src/../../x", "~/x", "", "C:/x", "a\nb"]


def test_what_cannot_be_meant_is_refused(repository: Repository) -> None:
    calls: list[tuple[Callable[..., object], dict[str, Any], dict[str, Any]]] = [
        (repository.upsert_convention, {"title": "x", "content": "x"}, CONVENTIONS),
        (repository.append_summary, {"run_id": "r", "step_id": "s", "summary": "x"}, SUMMARIES),
    ]
    for call, arguments, refused in calls:
        for complaint, changes in refused.items():
            for change in changes:
                with pytest.raises(ValidationError, match=complaint):
                    call(**{**arguments, **change})
    for path in OUTSIDE:
        with pytest.raises(ValidationError, match="not a path in this project"):
            repository.upsert_decision("x", "y", [path])
    known = repository.get()
    assert not any([*known.items.values(), known.summaries])


def test_a_long_memory_fits_the_budget_and_says_what_is_left_out(
    project: Project, repository: Repository
) -> None:
    for number in range(20):
        repository.upsert_convention(f"Rule {number}", "Long text. " * 100)
        repository.append_summary("run", str(number), "Short. " * 50)
    answer = ask(project.open(), "get_repo_memory")
    assert len(repr(answer)) < 11_000
    for kind in ("conventions", "summaries"):
        assert answer["omitted"][kind] + len(answer[kind]) == 20
    assert len(answer["remarks"]) == 2


# --- branches ---


def test_each_branch_has_its_own_memory_and_shared_ones_have_one(
    project: Project, repository: Repository
) -> None:
    plain_git(project.root, "commit", "--allow-empty", "-m", "first")
    repository.upsert_note("on main")
    repository.upsert_note("for all", branch_scope="sharedRepo")
    repository.append_summary("r", "s", "done on main")
    plain_git(project.root, "checkout", "-b", "feature/Login")
    assert (texts(repository, "note"), steps(repository)) == ({}, set())
    repository.upsert_note("on the branch")
    assert list(texts(repository, "note")) == ["on the branch"]
    assert list(texts(repository, "note", branch_scope="sharedRepo")) == ["for all"]
    plain_git(project.root, "checkout", "main")
    assert list(texts(repository, "note")) == ["on main"]
    assert steps(repository) == {"done on main"}
    plain_git(project.root, "checkout", "--detach")
    assert repository.get().scope.branch == plain_git(project.root, "rev-parse", "HEAD")
    assert texts(repository, "note") == {}


def test_the_scope_comes_from_the_call_then_the_environment_then_the_file(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain_git(project.root, "init")

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
    plain_git(project.root, "commit", "--allow-empty", "-m", "first")
    tree = project.root.parent / "tree"
    plain_git(project.root, "worktree", "add", "-b", "other", str(tree))
    repository.append_summary("r", "s", "seen from everywhere", branch_scope="sharedRepo")
    project.root = tree
    other = project.open().repository
    assert steps(other, branch_scope="sharedRepo") == {"seen from everywhere"}
    assert steps(other) == set()


def test_a_folder_without_git_has_one_memory_and_a_bank_keeps_repositories_apart(
    project: Project,
) -> None:
    saved = project.open().repository.upsert_note("x")
    assert "/repo/all-branches/notes/" in saved.location
    assert list(texts(project.open().repository, "note", branch_scope="sharedRepo")) == ["x"]
    project.flags["memory.storage_strategy"] = "user"
    for name in ("first", "second"):
        project.root = project.root.parent / name
        project.root.mkdir()
        plain_git(project.root, "init")
        repository = project.open().repository
        assert texts(repository, "note") == {}
        repository.upsert_note(f"of the {name}")


def test_a_branch_is_copied_to_another_which_keeps_what_it_has(
    project: Project, repository: Repository
) -> None:
    plain_git(project.root, "commit", "--allow-empty", "-m", "first")
    plain_git(project.root, "checkout", "-b", "topic")
    tabs = repository.upsert_convention("Tabs", "Two.").item.id
    sessions = repository.upsert_decision("Sessions", "Topic's reasons.").item.id
    repository.append_summary("r", "1", "on topic")
    plain_git(project.root, "checkout", "main")
    repository.upsert_decision("Sessions", "Main's reasons.")
    repository.append_summary("r", "2", "on main")
    # Another item's file has the name that the copy would have.
    project.memory(f"repo/main/conventions/{tabs}.md", "---\nid: other\n---\n\n# Other\n\nText.\n")
    copied = repository.copy("topic", "main")
    assert copied.copied == (f"repo/main/conventions/{tabs}-2.md",)
    assert copied.left == (f"repo/main/decisions/{sessions}.md",)
    assert copied.summaries == 1
    assert texts(repository, "convention") == {"Tabs": "Two.", "Other": "# Other\n\nText."}
    assert texts(repository, "decision") == {"Sessions": "Main's reasons."}
    assert steps(repository) == {"on topic", "on main"}
    assert repository.copy("topic", "main").summaries == 0
    with pytest.raises(ValidationError):
        repository.copy("main", "main")
    with pytest.raises(NotFoundError, match=r"nosuchbranch.*Branches with items: main"):
        repository.copy("nosuchbranch", "new")
    assert not list((project.root / ".memories/repo").glob("new*"))


def _upsert(root: str, number: int) -> None:
    from tests.conftest import Project

    project = Project(Path(root))
    project.flags["embedding.model"] = "none"
    repository = project.open().repository
    for turn in range(5):
        repository.upsert_note(f"note {number}-{turn}")
        repository.upsert_convention("One for all", f"as {number} has it, {turn}")


def test_processes_that_write_at_once_lose_nothing(project: Project) -> None:
    plain_git(project.root, "init")
    context = multiprocessing.get_context("spawn")
    with context.Pool(4) as pool:
        pool.starmap(_upsert, [(str(project.root), number) for number in range(4)])
    known = project.open().repository.get()
    assert len(known.items["note"]) == 20
    assert len(known.items["convention"]) == 1
