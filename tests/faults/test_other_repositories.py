"""A `.git` that leads into another project gives nothing of it out and changes nothing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.plain_git import plain_git as plain

from ragdocs.errors import UnavailableError
from ragdocs.project import folders as project
from ragdocs.project import registry
from ragdocs.project.identity import repository_id
from ragdocs.serve.cli import app as cli
from ragdocs.stores.git.commits import CommitStore
from ragdocs.stores.git.journal import JournalStore
from ragdocs.system import git
from ragdocs.types import Put

from .window import SETTINGS, Window

# What only the victim has: in a commit, a branch, a file, a remote and a summary.
CANARY = "canary"
SET = ("--set", "docs.commits=true", "--set", "journal.enabled=true")
COMMANDS = (
    ("index",), ("status",), ("search", CANARY[:-1]), ("commits",), ("commits", "why"), ("remember", "a fact"),
    ("recall",), ("context",), ("context", "--json"), ("repo", "show"),
    ("repo", "summary", "--run", "r", "--step", "s", "--content", "x"),
    ("journal", "toc"), ("journal", "search", "why"), ("journal", "entries", "a"),
    ("journal", "write", "a", "--entry", "an entry"), ("journal", "read", "a"), ("journal", "sync"), ("verify",),
)  # fmt: skip
TOOLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("remember", {"content": "a fact"}), ("recall", {}), ("search_commits", {"query": ""}), ("index_status", {}),
    ("append_summary", {"run_id": "r", "step_id": "s", "summary": "x"}), ("get_repo_memory", {}), ("build_context", {}),
    ("journal_toc", {}), ("journal_read", {"id": "a"}), ("journal_write", {"path": "a", "entry": "x"}),
    ("journal_search", {"query": "why"}), ("journal_list_entries", {"path": "a"}),
)  # fmt: skip


def run(root: Path, *words: str) -> int:
    return cli.main([*words, "--project", str(root), *SETTINGS, *SET])


def made(root: Path, text: str = "own") -> Path:
    """Make a repository with a commit, on a branch and with a remote of this name."""
    root.mkdir(parents=True)
    plain(root, "init", "-q", "-b", f"{text}-branch")
    (root / f"{text}-file.md").write_text(f"{text}\n")
    plain(root, "add", ".")
    plain(root, "commit", "-q", "-m", f"{text} commit")
    plain(root, "remote", "add", "origin", f"https://host.invalid/{text}-remote")
    return root


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    root = made(tmp_path / "home" / "victim", CANARY)
    plain(root, "worktree", "add", "-q", "-b", f"{CANARY}-topic", str(tmp_path / "home" / "tree"))
    assert (
        run(root, "repo", "summary", "--run", "r", "--step", "s", "--content", f"{CANARY} summary")
        == 0
    )
    return root


def bytes_of(*folders: Path) -> dict[Path, bytes]:
    files = (path for folder in folders for path in folder.rglob("*"))
    return {path: path.read_bytes() for path in files if path.is_file()}


# --- the shapes of a `.git`; each is given the folder that it is to be in ---


Shape = Callable[[Path, Path], None]


def gitfile(below: str = "") -> Shape:
    def shape(root: Path, victim: Path) -> None:
        (root / ".git").write_text(f"gitdir: {victim}/.git{below}\n")

    return shape


def relative_gitfile(root: Path, victim: Path) -> None:
    (root / ".git").write_text(f"gitdir: {os.path.relpath(victim / '.git', root)}\n")


def chain(root: Path, victim: Path) -> None:
    (root / "inner").write_text(f"gitdir: {victim}/.git\n")
    (root / ".git").write_text("gitdir: inner\n")


def link(target: str = ".git") -> Shape:
    return lambda root, victim: (root / ".git").symlink_to(victim / target)


def relative_link(root: Path, victim: Path) -> None:
    (root / ".git").symlink_to(os.path.relpath(victim / ".git", root))


def common_folder(root: Path, victim: Path) -> None:
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_text(f"ref: refs/heads/{CANARY}-branch\n")
    (root / ".git" / "commondir").write_text(os.path.relpath(victim / ".git", root / ".git") + "\n")


def pretended_worktree(root: Path, victim: Path) -> None:
    inner = root / "inner"
    inner.mkdir()
    (inner / "HEAD").write_text(f"ref: refs/heads/{CANARY}-branch\n")
    (inner / "commondir").write_text(f"{victim}/.git\n")
    (inner / "gitdir").write_text(f"{root}/.git\n")
    (root / ".git").write_text("gitdir: inner\n")


def returning_gitfile(root: Path, victim: Path) -> None:
    """Name a folder that names this one back, and says that it is part of the victim."""
    pretended_worktree(root, victim)
    (root / "inner" / "config").write_text(f"[core]\nworktree = {root}\n")


def begun(root: Path) -> Path:
    plain(root, "init", "-q", "-b", "own-branch")
    return root / ".git"


def alternates(root: Path, victim: Path) -> None:
    """Borrow the victim's objects, by a name that somebody has seen."""
    folder = begun(root)
    (folder / "objects" / "info" / "alternates").write_text(f"{victim}/.git/objects\n")
    (folder / "refs" / "heads" / "own-branch").write_text(plain(victim, "rev-parse", "HEAD") + "\n")


def linked(*names: str) -> Shape:
    def shape(root: Path, victim: Path) -> None:
        folder = begun(root)
        head = plain(victim, "rev-parse", "HEAD")
        (folder / "refs" / "heads" / "own-branch").write_text(f"{head}\n")
        for name in names:
            place = folder / name
            shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
            place.symlink_to(victim / ".git" / name)

    return shape


def linked_objects_one_by_one(root: Path, victim: Path) -> None:
    folder = begun(root)
    (folder / "refs" / "heads" / "own-branch").write_text(plain(victim, "rev-parse", "HEAD") + "\n")
    for place in (victim / ".git" / "objects").glob("??/*"):
        copy = folder / "objects" / place.parent.name / place.name
        copy.parent.mkdir(exist_ok=True)
        copy.symlink_to(place)


def included(root: Path, victim: Path) -> None:
    folder = begun(root)
    with (folder / "config").open("a") as file:
        file.write(f"[include]\npath = {victim}/.git/config\n")


def other_working_tree(root: Path, victim: Path) -> None:
    begun(root)
    plain(root, "config", "core.worktree", str(victim))


def other_refs(root: Path, victim: Path) -> None:
    folder = begun(root)
    with (folder / "config").open("a") as file:
        file.write(f"[extensions]\nrefStorage = files://{victim}/.git\n")
    plain_config = (folder / "config").read_text().replace("version = 0", "version = 1")
    (folder / "config").write_text(plain_config)


SHAPES: dict[str, Shape] = {
    "gitfile": gitfile(),
    "relative gitfile": relative_gitfile,
    "gitfile to the folder of a worktree": gitfile("/worktrees/tree"),
    "chain of gitfiles": chain,
    "link": link(),
    "relative link": relative_link,
    "link to a gitfile": link("../tree/.git"),
    "folder with commondir": common_folder,
    "pretended worktree": pretended_worktree,
    "gitfile that is named back": returning_gitfile,
    "alternates": alternates,
    "linked objects": linked("objects"),
    "linked refs and objects": linked("refs", "objects"),
    "linked index": linked("index"),
    "linked configuration": linked("config"),
    "linked head": linked("HEAD", "refs"),
    "objects linked one by one": linked_objects_one_by_one,
    "included configuration": included,
    "working tree elsewhere": other_working_tree,
    "refs elsewhere": other_refs,
}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    root = tmp_path / "home" / "downloads" / "clone"
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "a.md").write_text("# A\n\nHonest text.\n")
    return root


def outside(root: Path) -> tuple[object, ...]:
    """Return all that our own modules say of a folder's repository."""
    store = CommitStore(root)
    texts = [store.read(path).text for path in store.scan().stamps]
    known = (git.context(root), git.head(root), git.branch(root), git.remote(root))
    return (*known, store.watched(), texts)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("where", [".", "docs"])
def test_a_project_never_passes_for_another_one(
    clone: Path, victim: Path, name: str, where: str
) -> None:
    before = bytes_of(victim.parent / "victim", victim.parent / "tree")
    SHAPES[name](clone, victim)
    root = clone / where
    assert CANARY not in str(outside(root))
    assert registry.main_worktree(root) == root
    assert not {str(victim), str(victim / ".git")} & {
        str(path) for path, _ in CommitStore(root).watched()
    }
    identities = {
        repository_id(place, branch)
        for place in (victim, victim / "docs")
        for branch in ("", "main")
    }
    assert repository_id(root) not in identities
    assert bytes_of(victim.parent / "victim", victim.parent / "tree") == before


@pytest.mark.parametrize("name", SHAPES)
def test_no_command_in_a_hostile_clone_reads_or_changes_another_project(
    clone: Path, victim: Path, own_directories: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    SHAPES[name](clone, victim)
    summaries = project.data_dir() / "repos"
    before = bytes_of(victim, victim.parent / "tree", summaries)
    capfd.readouterr()
    codes = {words: run(clone, *words) for words in COMMANDS}
    shown = "".join(capfd.readouterr())
    assert CANARY not in shown.replace(f"search {CANARY[:-1]}", "")
    assert before.items() <= bytes_of(victim, victim.parent / "tree", summaries).items()
    assert bytes_of(victim, victim.parent / "tree").keys() <= before.keys()
    assert codes["remember", "a fact"] == 0, "what needs no repository works"
    assert not [words for words, code in codes.items() if code == 2]


@pytest.mark.parametrize("name", ["gitfile", "folder with commondir", "linked refs and objects"])
def test_no_tool_in_a_hostile_clone_reads_or_changes_another_project(
    clone: Path, victim: Path, tmp_path: Path, name: str
) -> None:
    SHAPES[name](clone, victim)
    (clone / "journal-data").mkdir()
    SHAPES[name](clone / "journal-data", victim)
    summaries = project.data_dir() / "repos"
    before = bytes_of(victim, victim.parent / "tree", summaries)
    toolsets = ("--set", "server.toolsets=docs,memory,recall,repo,journal")
    with Window(clone, tmp_path / "log", (*SETTINGS, *SET, *toolsets)) as window:
        answers = {tool: window.call(tool, **arguments) for tool, arguments in TOOLS}
    assert CANARY not in json.dumps(answers) + (tmp_path / "log").read_text()
    assert "Unknown tool" not in json.dumps(answers)
    assert answers["journal_write"]["isError"]
    assert "git is not used here" in (tmp_path / "log").read_text(), "the log says why"
    assert before.items() <= bytes_of(victim, victim.parent / "tree", summaries).items()
    assert bytes_of(victim, victim.parent / "tree").keys() <= before.keys()


@pytest.mark.parametrize("name", SHAPES)
def test_a_journal_is_a_whole_repository_of_its_own_or_refused(
    clone: Path, victim: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    place = clone / "journal-data"
    place.mkdir()
    SHAPES[name](place, victim)
    before = bytes_of(victim, victim.parent / "tree")
    store = JournalStore(place)
    assert CANARY not in str(store.scan())
    assert store.scan().stamps == {}
    with pytest.raises(UnavailableError) as caught:
        store.commit([Put("a.md", "# A", note="an entry")])
    assert caught.value.hint, "it says what to do"
    capfd.readouterr()
    for words in COMMANDS:
        # A search finds nothing, and says so.
        if words[0] == "journal":
            assert run(clone, *words) == (0 if "search" in words else 1), words
    shown = "".join(capfd.readouterr())
    assert CANARY not in shown
    assert bytes_of(victim, victim.parent / "tree") == before


def test_a_repository_that_borrows_objects_still_has_a_branch_and_an_identity(
    tmp_path: Path,
) -> None:
    main = made(tmp_path / "main")
    plain(tmp_path, "clone", "-q", "--shared", str(main), "borrowing")
    root = tmp_path / "borrowing"
    assert git.branch(root) == "own-branch"
    state = git.context(root)
    assert state is not None
    assert (state.branch, state.files_changed) == ("own-branch", ())
    assert "alternates" in str(CommitStore(root).scan().unreadable)
    plain(root, "repack", "-a", "-d")
    identity = repository_id(root)
    (root / ".git" / "objects" / "info" / "alternates").unlink()
    assert len(CommitStore(root).scan().stamps) == 1
    assert repository_id(root) == identity


def test_a_link_below_the_main_worktree_does_not_lend_an_identity(
    clone: Path, victim: Path
) -> None:
    """A main worktree with a link in the place of a folder that its other worktree really has."""
    main = made(clone / "main")
    plain(main, "worktree", "add", "-q", "--detach", str(clone / "tree"))
    (main / "sub").symlink_to(victim)
    (clone / "tree" / "sub").mkdir()
    root = clone / "tree" / "sub"
    for repository in (main, victim):
        plain(repository, "remote", "remove", "origin")
    assert repository_id(root) != repository_id(victim)
    assert registry.main_worktree(root) == root


# --- repositories that are to work ---


def of_repository(root: Path) -> tuple[str, str]:
    state = git.context(root)
    assert state is not None, root
    return state.branch, repository_id(root)


def test_worktrees_agree_wherever_they_were_moved_to(tmp_path: Path) -> None:
    main = made(tmp_path / "main")
    tree = tmp_path / "tree"
    plain(main, "worktree", "add", "-q", "-b", "topic", str(tree))
    (tree / "below").mkdir()
    (main / "below").mkdir()
    identity = repository_id(main)
    assert of_repository(tree) == ("topic", identity)
    assert of_repository(tree / "below") == ("topic", repository_id(main / "below"))
    moved = tree.rename(tmp_path / "moved")
    assert git.context(moved) is None
    assert "git worktree repair" in str(CommitStore(moved).scan().unreadable)
    plain(main, "worktree", "repair", str(moved))
    assert of_repository(moved) == ("topic", identity)
    plain(main, "worktree", "move", str(moved), str(tree))
    assert of_repository(tree) == ("topic", identity)
    assert len(CommitStore(tree).scan().stamps) == 1
    # As newer versions of git write it.
    (tree / ".git").write_text("gitdir: ../main/.git/worktrees/tree\n")
    (main / ".git" / "worktrees" / "tree" / "gitdir").write_text("../../../../tree/.git\n")
    assert of_repository(tree) == ("topic", identity)


def test_a_worktree_has_the_exclude_file_of_its_repository_and_a_clone_has_no_other(
    tmp_path: Path, clone: Path, victim: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    main = made(tmp_path / "main")
    plain(main, "worktree", "add", "-q", "--detach", str(tmp_path / "tree"))
    link()(clone, victim)
    for repository in (main, victim):
        (repository / ".git" / "info" / "exclude").write_text("hidden.md\n")
    for root, count in ((main, 0), (tmp_path / "tree", 0), (clone, 1)):
        (root / "docs").mkdir(exist_ok=True)
        (root / "docs" / "hidden.md").write_text("# Hidden\n\nzebra\n")
        capfd.readouterr()
        run(root, "search", "zebra", "--json")
        assert capfd.readouterr().out.count('"path": "docs/hidden.md"') == count, root


def test_the_worktrees_of_a_bare_repository_agree(tmp_path: Path) -> None:
    made(tmp_path / "main")
    plain(tmp_path, "clone", "-q", "--bare", str(tmp_path / "main"), "bare.git")
    for name in ("one", "two"):
        plain(tmp_path / "bare.git", "worktree", "add", "-q", "-b", name, str(tmp_path / name))
    one, two = (of_repository(tmp_path / name) for name in ("one", "two"))
    assert (one[0], two[0]) == ("one", "two")
    assert one[1] == two[1] != repository_id(tmp_path / "main")
    assert registry.main_worktree(tmp_path / "one") == tmp_path / "bare"


def test_submodules_are_repositories_of_their_own(tmp_path: Path) -> None:
    inner = made(tmp_path / "inner", "inner")
    main = made(tmp_path / "main")
    plain(main, "submodule", "add", "-q", str(inner), "odd; name/sub")
    plain(main, "commit", "-q", "-m", "with a submodule")
    sub = main / "odd; name" / "sub"
    branch, identity = of_repository(sub)
    assert branch == "inner-branch"
    assert identity not in {repository_id(main), repository_id(inner)}
    (sub / "below").mkdir()
    assert git.top(sub / "below") == sub
    plain(main, "worktree", "add", "-q", "-b", "topic", str(tmp_path / "tree"))
    plain(tmp_path / "tree", "submodule", "update", "--init", "-q")
    assert git.context(tmp_path / "tree" / "odd; name" / "sub") is not None
    plain(sub, "worktree", "add", "-q", "-b", "of-sub", str(tmp_path / "of-sub"))
    assert of_repository(tmp_path / "of-sub") == ("of-sub", identity)


def test_a_separate_git_folder_must_name_its_working_tree(tmp_path: Path) -> None:
    root = made(tmp_path / "root")
    plain(root, "init", "-q", f"--separate-git-dir={tmp_path / 'apart'}")
    assert git.context(root) is None
    problem = str(CommitStore(root).scan().unreadable)
    assert "core.worktree" in problem
    plain(root, "config", "core.worktree", str(root))
    assert of_repository(root)[0] == "own-branch"
    assert len(CommitStore(root).scan().stamps) == 1


def test_links_that_stay_inside_or_are_never_read_do_no_harm(tmp_path: Path) -> None:
    root = made(tmp_path / "root")
    folder = root / ".git"
    shutil.rmtree(folder / "hooks")
    (tmp_path / "hooks").mkdir()
    (folder / "hooks").symlink_to(tmp_path / "hooks")
    (folder / "HEAD").unlink()
    (folder / "HEAD").symlink_to("refs/heads/own-branch")
    assert of_repository(root)[0] == "own-branch"


def test_a_link_that_is_put_in_later_is_seen(tmp_path: Path, victim: Path) -> None:
    root = made(tmp_path / "root")
    assert git.context(root) is not None
    (root / ".git" / "objects" / "zz").symlink_to(victim)
    assert "symbolic link" in str(CommitStore(root).scan().unreadable)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners are those of POSIX")
def test_a_repository_of_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = made(tmp_path / "root")
    monkeypatch.delenv("SUDO_UID", raising=False)
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert git.context(root) is None
    assert "belongs to another user" in str(CommitStore(root).scan().unreadable)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", str(owner))
    assert git.context(root) is not None
