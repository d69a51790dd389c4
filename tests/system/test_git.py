"""git, asked with a time limit and without letting the repository decide what runs."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest
from tests.plain_git import plain_git as plain

from ragdocs.errors import UnavailableError, ValidationError
from ragdocs.system import git
from ragdocs.types import GitContext


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a busy machine take its time where time is not what is tested."""
    monkeypatch.setattr(git, "CONTEXT_SECONDS", 20)
    monkeypatch.setattr(git, "HEAD_SECONDS", 20)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    (root / "src").mkdir(parents=True)
    plain(root, "init")
    (root / "src" / "a.py").write_text("a = 1\n")
    (root / "b.md").write_text("b\n")
    plain(root, "add", ".")
    plain(root, "commit", "-m", "first")
    return root


def context(root: Path) -> GitContext:
    found = git.context(root)
    assert found is not None
    return found


def test_the_context_names_branch_commit_and_changed_files(repository: Path) -> None:
    commit = plain(repository, "rev-parse", "HEAD")
    assert context(repository) == GitContext("main", commit[: git.SHORT_HASH], dirty=False)
    (repository / "src" / "a.py").write_text("a = 2\n")
    (repository / "src" / "né w.py").write_text("new\n")
    (repository / "b.md").unlink()
    (repository / ".memories").mkdir()
    (repository / ".memories" / "m.md").write_text(
        "what is written down is not what is worked on\n"
    )
    found = context(repository)
    assert found.dirty
    assert set(found.files_changed) == {"src/a.py", "src/né w.py", "b.md"}


def test_a_project_below_the_top_sees_its_own_files_only(repository: Path) -> None:
    (repository / "src" / "a.py").write_text("a = 2\n")
    (repository / "b.md").write_text("changed\n")
    assert context(repository / "src").files_changed == ("a.py",)


def test_moved_and_conflicting_files_are_changes(repository: Path) -> None:
    plain(repository, "mv", "b.md", "c.md")
    assert set(context(repository).files_changed) == {"b.md", "c.md"}
    plain(repository, "commit", "-m", "moved")
    plain(repository, "checkout", "-b", "other", "HEAD~1")
    (repository / "src" / "a.py").write_text("other\n")
    plain(repository, "commit", "-am", "other")
    plain(repository, "checkout", "main")
    (repository / "src" / "a.py").write_text("main\n")
    plain(repository, "commit", "-am", "main")
    plain(repository, "merge", "other", check=False)
    assert "src/a.py" in context(repository).files_changed


def test_a_detached_head_has_no_branch_and_an_empty_repository_no_commit(repository: Path) -> None:
    plain(repository, "checkout", "--detach")
    assert context(repository).branch == ""
    assert context(repository).commit
    plain(repository.parent, "init", "empty")
    assert context(repository.parent / "empty") == GitContext("main", "", dirty=False)


@pytest.mark.parametrize(
    "head", ["", "nonsense\n", "ref: refs/heads/../../x\n", "ref: refs/heads/main/x\n"]
)
def test_a_broken_head_gives_no_context_and_no_exception(repository: Path, head: str) -> None:
    (repository / ".git" / "HEAD").write_text(head)
    found = git.context(repository)
    assert found is None or found.commit == ""


@pytest.mark.parametrize("pointer", ["", "gitdir: nowhere\n", "gitdir: .\n", "\0" * 99])
def test_a_damaged_pointer_to_a_repository_gives_no_context(tmp_path: Path, pointer: str) -> None:
    (tmp_path / ".git").write_text(pointer)
    assert git.context(tmp_path) is None
    assert git.common_dir(tmp_path) is None
    assert git.remote(tmp_path) == ""


def test_outside_a_repository_git_is_not_even_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    assert git.context(tmp_path) is None
    assert git.remote(tmp_path) == ""
    assert git.common_dir(tmp_path) is None


def test_without_git_there_is_no_context_and_a_call_says_why(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert git.context(repository) is None
    with pytest.raises(UnavailableError, match="git is not installed"):
        git.run(repository, ["rev-parse", "HEAD"])


def test_worktrees_share_a_common_folder_and_have_their_own_branch(repository: Path) -> None:
    tree = repository.parent / "tree"
    plain(repository, "worktree", "add", "-b", "topic", str(tree))
    assert git.common_dir(tree) == git.common_dir(repository) == repository / ".git"
    assert context(tree).branch == "topic"
    (tree / "b.md").write_text("changed\n")
    assert context(tree).files_changed == ("b.md",)
    assert context(repository).files_changed == ()


def test_the_remote_is_origin_or_else_the_first(repository: Path) -> None:
    assert git.remote(repository) == ""
    plain(repository, "remote", "add", "fork", "https://example.org/fork")
    assert git.remote(repository) == "https://example.org/fork"
    plain(repository, "remote", "add", "origin", "git@example.org:a/b.git")
    assert git.remote(repository) == "git@example.org:a/b.git"


def test_what_git_writes_is_returned_and_what_it_is_given_is_read(repository: Path) -> None:
    large, terms = bytes(range(256)) * 4000, git.Terms(seconds=60, most=30_000_000)
    name = (
        git.run(repository, ["hash-object", "-w", "--stdin"], stdin=large, terms=terms)
        .decode()
        .strip()
    )
    assert git.is_hash(name)
    assert git.run(repository, ["cat-file", "blob"], [name], terms=terms) == large
    for _ in range(2):
        asked = f"{name}\n".encode() * 20
        assert len(git.run(repository, ["cat-file", "--batch"], stdin=asked, terms=terms)) > 2e7


def test_a_failure_is_told_without_credentials(repository: Path) -> None:
    with pytest.raises(UnavailableError, match="git failed") as caught:
        git.run(repository, ["fetch"], ["https://user:hunter2@127.0.0.1:9/x"])
    assert "hunter2" not in str(caught.value)
    assert git.run(repository, ["config", "--get", "no.thing"], terms=git.Terms(codes=(1,))) == b""


@pytest.mark.parametrize(
    "text", ["", "HEAD", "abc", "-abcd", "ABCD", "abcd\n", "0" * 65, "abcd^{commit}", "\u0663abc"]
)
def test_only_hexadecimal_digits_are_a_hash(text: str) -> None:
    assert not git.is_hash(text)
    assert git.is_hash("abcd")


@pytest.mark.parametrize("name", ["--output=x", "-O", "", "a\nb", "a\0b"])
def test_a_name_that_could_be_an_option_is_refused(repository: Path, name: str) -> None:
    with pytest.raises(ValidationError, match="not a name"):
        git.run(repository, ["log"], [name])


def test_a_path_is_a_path_whatever_it_looks_like(repository: Path) -> None:
    names = ["--output=x", ":(top)b.md", "*.md", ":!src"]
    for name in names:
        (repository / name).write_text("x\n")
    plain(repository, "add", "-A", ".")
    for name in names:
        assert git.run(repository, ["ls-files", "-z"], paths=[name]) == name.encode() + b"\0"


def test_an_unknown_command_is_not_run_and_too_much_output_ends_the_call(repository: Path) -> None:
    with pytest.raises(ValueError, match="submodule"):
        git.run(repository, ["submodule"])
    with pytest.raises(UnavailableError, match="printed more than"):
        git.run(repository, ["ls-files"], terms=git.Terms(most=3))


def slow_git(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a git in the way that never ends, nor its child; return where it notes their ids."""
    folder.mkdir()
    pids = folder / "pids"
    program = folder / "git"
    program.write_text(f'#!/bin/sh\necho $$ >> "{pids}"\nsleep 600 &\necho $! >> "{pids}"\nwait\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return pids


@pytest.mark.skipif(os.name != "posix", reason="groups of processes are those of POSIX")
def test_a_call_that_takes_too_long_is_killed_with_its_children(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    assert git.CONTEXT_SECONDS + git.HEAD_SECONDS < 1
    # Enough for a busy machine to start the program, which sleeps for ten minutes.
    monkeypatch.setattr(git, "CONTEXT_SECONDS", 2.0)
    monkeypatch.setattr(git, "HEAD_SECONDS", 2.0)
    pids = slow_git(tmp_path / "slow", monkeypatch)
    threads = threading.active_count()
    started = time.monotonic()
    assert git.context(repository) is None
    assert time.monotonic() - started < 60
    numbers = [int(line) for line in pids.read_text().split()]
    assert len(numbers) == 4
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{number}/status").exists() and is_running(number) for number in numbers):
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)
    assert threading.active_count() == threads


def is_running(number: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{number}/status").read_text()
    except OSError:
        return False


def test_a_git_in_the_repository_itself_is_not_found(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = repository / "git"
    planted.write_text("#!/bin/sh\ntouch fired\n")
    planted.chmod(0o755)
    monkeypatch.chdir(repository)
    subprocess.run("PATH=.:$PATH git status", shell=True, check=True)
    assert (repository / "fired").exists(), "the trap works"
    (repository / "fired").unlink()
    for path in (".", "", "src/.."):
        monkeypatch.setenv("PATH", os.pathsep.join((path, "/usr/bin", "/bin")))
        assert git.context(repository) is not None
    assert not (repository / "fired").exists()
