"""The stores in git fulfil the contracts of their protocols, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.plain_git import plain_git as git

from ragdocs.errors import ReadOnlyError, UnavailableError
from ragdocs.lanes import COMMITS
from ragdocs.protocols import Versioned
from ragdocs.search.corpus import Corpus
from ragdocs.stores.git.commits import CommitStore
from ragdocs.stores.git.journal import JournalStore
from ragdocs.system import git as git_program
from ragdocs.types import Put

from .contract import Library, ReadableContract, VersionedContract, WatchedContract, write


class Repository(Library):
    """A project whose commits are read."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        git(root, "init", "--quiet", "--initial-branch=main")
        super().__init__(root)

    def open(self) -> CommitStore:
        return CommitStore(self.root)

    def add(self, name: str, text: str) -> None:
        path = self.root / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        count = len(list(self.root.rglob("*.py")))
        path.write_text(f"{text} {count}\n", encoding="utf-8")
        git(self.root, "add", "--all")
        git(self.root, "commit", "--quiet", "--allow-empty", f"--message={text}")


class Journal(Library):
    """A journal whose entries are read, and whose sections are written."""

    def open(self) -> JournalStore:
        return JournalStore(self.root, auto_gc=False)

    def add(self, name: str, text: str) -> None:
        self.open().commit([Put(f"{name}.md", f"# {name}", note=text)])


class TestCommitStore(ReadableContract, WatchedContract):
    @pytest.fixture
    def library(self, tmp_path: Path) -> Repository:
        return Repository(tmp_path / "project")


class TestJournalStore(ReadableContract, WatchedContract, VersionedContract):
    @pytest.fixture
    def library(self, tmp_path: Path) -> Journal:
        return Journal(tmp_path / "journal")


def test_a_lane_of_commits_refuses_to_be_written(tmp_path: Path) -> None:
    store = Repository(tmp_path / "project").open()
    assert not isinstance(store, Versioned)
    corpus = Corpus(COMMITS, store, object(), None)  # type: ignore[arg-type]  # never reached
    with pytest.raises(ReadOnlyError, match="commits lane is read-only"):
        corpus.commit([Put("a.md", "x")])


def test_a_journal_whose_order_could_not_be_read_reads_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "journal"
    store = JournalStore(root)
    write(store, "a.md", "first")
    assert len(store.commits()) == 1
    write(JournalStore(root), "a.md", "second")
    run = git_program.run

    def fail(folder: Path, options: list[str], *rest: Any, **terms: Any) -> bytes:
        if options[0] == "rev-list":
            raise UnavailableError("git timed out")
        return run(folder, options, *rest, **terms)

    with monkeypatch.context() as patch:
        patch.setattr(git_program, "run", fail)
        with pytest.raises(UnavailableError):
            store.commits()
    assert len(store.commits()) == 2
