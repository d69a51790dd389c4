"""Whether a memory was written on another branch, and what became of that branch."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragdocs.errors import UnavailableError
from ragdocs.system import git
from ragdocs.system.git import Terms
from ragdocs.system.refs import Refs
from ragdocs.types import Document

# Commits that are asked about at once; each is a few bytes.
MOST_COMMITS = 10_000
_TERMS = Terms(seconds=10.0)


@dataclass(frozen=True, slots=True)
class OtherBranch:
    """The branch that a memory was written on, where another one is checked out.

    `merged` says whether the commit it was written at is part of what is checked out; None where
    that is not known. `gone` says that there is no such branch any more.
    """

    branch: str
    merged: bool | None
    gone: bool


class Branches:
    """What can be asked about branches; git is asked once for each state of HEAD."""

    def __init__(self, root: Path, refs: Refs) -> None:
        self._root = root
        self._refs = refs
        self._head = ""
        # Whether each commit, as memories name it, is an ancestor of HEAD.
        self._merged: dict[str, bool | None] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def other(self, documents: Sequence[Document]) -> dict[str, OtherBranch]:
        """Return the memories that were written on another branch, by id."""
        return self._others(documents, wait=True)

    def cached(self, documents: Sequence[Document]) -> dict[str, OtherBranch]:
        """Return what is known without asking git; the rest is asked behind the answer."""
        return self._others(documents, wait=False)

    def settle(self) -> None:
        """Wait until git has answered what was asked behind an answer."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _others(self, documents: Sequence[Document], *, wait: bool) -> dict[str, OtherBranch]:
        head = self._refs.head()
        if not head.commit and not head.branch:
            return {}
        foreign: list[tuple[Document, str, str]] = []
        for document in documents:
            branch, commit = origin(document)
            if branch and branch != head.branch:
                foreign.append((document, branch, commit))
        if not foreign:
            return {}
        commits = {commit for _, _, commit in foreign if git.is_hash(commit)}
        self._learn(commits, head.commit, wait=wait)
        others = {}
        for document, branch, commit in foreign:
            merged = self._merged.get(commit)
            gone = not self._refs.has_branch(branch)
            others[document.id] = OtherBranch(branch, merged, gone)
        return others

    def _learn(self, commits: Iterable[str], head: str, *, wait: bool) -> None:
        with self._lock:
            if head != self._head:
                self._head = head
                self._merged = {}
            unknown = sorted(set(commits) - self._merged.keys())[:MOST_COMMITS]
            if not unknown or not head:
                return
            if wait:
                self._merged.update(self._ask(unknown, head))
                return
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._learn, args=(unknown, head), kwargs={"wait": True}, daemon=True
                )
                self._thread.start()

    def _ask(self, commits: Sequence[str], head: str) -> dict[str, bool | None]:
        """Ask git which of these commits are ancestors of another one."""
        unknown: dict[str, bool | None] = dict.fromkeys(commits)
        stdin = "".join(f"{commit}^{{commit}}\n" for commit in commits).encode()
        try:
            check = git.run(
                self._root, ["cat-file", "--batch-check=%(objectname)"], stdin=stdin, terms=_TERMS
            )
            names = {}
            for commit, line in zip(commits, check.decode().splitlines(), strict=True):
                if git.is_hash(line):
                    names[commit] = line
            wanted = "".join(f"{name}\n" for name in set(names.values()))
            listing = b""
            if wanted:
                stdin = f"{wanted}^{head}\n".encode()
                listing = git.run(self._root, ["rev-list", "--stdin"], stdin=stdin, terms=_TERMS)
        except (UnavailableError, ValueError):
            return unknown
        # What leads to a commit that HEAD does not lead to is not merged.
        apart = set(listing.decode().split())
        merged: dict[str, bool | None] = {}
        for commit, name in names.items():
            merged[commit] = name not in apart
        return unknown | merged


def origin(document: Document) -> tuple[str, str]:
    """Return the branch and the commit that a memory says it was written at."""
    if document.git is not None:
        return document.git.branch, document.git.commit
    branch = document.extra.get("branch")
    return str(branch or ""), ""
