"""The refs and the objects of a journal's repository."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ragdocs.errors import UnavailableError
from ragdocs.stores.git.ledger import Refs
from ragdocs.system import git

BRANCH = "main"
# With more loose refs than this, reading their files tells nothing for sure.
MOST_LOOSE_REFS = 200
# Files of commits that stay in memory.
MOST_CACHED = 64
# Refs that lead to no entries.
OTHER_REFS = ("refs/stash", "refs/replace/")
_REF_FORMAT = "%(HEAD)%00%(objecttype)%(*objecttype)%00%(objectname)%00%(refname)"


class Blob(NamedTuple):
    """The content of a file, and the name that git gives to it."""

    name: str
    data: bytes


class Blobs:
    """Reads files of commits; the last ones stay in memory, because a commit never changes."""

    def __init__(self, root: Path, terms: git.Terms) -> None:
        self._root = root
        self._terms = terms
        self._cached: dict[tuple[str, str], Blob | None] = {}

    def of(self, commit: str, path: str) -> Blob | None:
        """Return a file of a commit, if there are both."""
        if not commit:
            return None
        try:
            return self._cached[commit, path]
        except KeyError:
            blob = self.all_of(commit, [path])[0]
            self.cache(commit, path, blob)
            return blob

    def all_of(self, commit: str, paths: Sequence[str]) -> list[Blob | None]:
        """Return each of these files of a commit, if there are both."""
        if not commit:
            return [None] * len(paths)
        return self._read([f"{commit}:{path}" for path in paths])

    def named(self, name: str) -> Blob | None:
        """Return the content with this name, if the repository has it."""
        return self._read([name])[0]

    def several(self, names: Sequence[str]) -> list[Blob | None]:
        """Return the contents with these names, as far as the repository has them."""
        return self._read(names)

    def cache(self, commit: str, path: str, blob: Blob | None) -> None:
        """Keep a file of a commit in memory, for the next one who reads it."""
        excess = len(self._cached) - MOST_CACHED + 1
        for key in list(self._cached)[: max(excess, 0)]:
            self._cached.pop(key, None)
        self._cached[commit, path] = blob

    def _read(self, names: Sequence[str]) -> list[Blob | None]:
        if not names:
            return []
        stdin = "".join(f"{name}\n" for name in names).encode()
        out = git.run(self._root, ["cat-file", "--batch"], stdin=stdin, terms=self._terms)
        blobs: list[Blob | None] = []
        for _ in names:
            header, _, out = out.partition(b"\n")
            words = header.split(b" ")
            is_object = git.is_hash(words[0].decode(errors="replace"))
            if not is_object or not words[-1].isdigit():
                blobs.append(None)
                continue
            size = int(words[-1])
            blob = None
            if words[-2] == b"blob":
                blob = Blob(words[0].decode(), out[:size])
            blobs.append(blob)
            out = out[size + 1 :]
        return blobs


def written_refs(folder: Path) -> dict[str, bytes] | None:
    """Return the files of a repository's refs, or None where they do not tell all."""
    contents = {}
    try:
        if (folder / "reftable").exists():
            return None
        loose = islice(_files_below(folder / "refs"), MOST_LOOSE_REFS)
        for path in (folder / "HEAD", folder / "packed-refs", *loose):
            if path.exists():
                contents[path.relative_to(folder).as_posix()] = path.read_bytes()
    except OSError:
        return None
    if len(contents) >= MOST_LOOSE_REFS:
        return None
    return contents


def read_refs(root: Path, terms: git.Terms) -> Refs:
    """Return the branch, its head, and where all refs point that may lead to entries."""
    if not (root / ".git").is_dir():
        return Refs()
    branch = head = ""
    tips = set()
    for row in _ask(root, ["for-each-ref", f"--format={_REF_FORMAT}"], terms).splitlines():
        mark, kind, name, ref = row.split("\0")
        if not kind.endswith("commit") or ref.startswith(OTHER_REFS):
            continue
        tips.add(name)
        if mark == "*":
            branch = ref
            head = name
    if not head:
        options = ["rev-parse", "--verify", "--quiet", "HEAD"]
        head = _ask(root, options, replace(terms, codes=(0, 1)))
    if head:
        tips.add(head)
    else:
        # Either nothing was committed yet, or the repository is damaged, which must not pass for
        # an empty journal.
        first_branch(root, terms)
    return Refs(branch, head, frozenset(tips))


def first_branch(root: Path, terms: git.Terms) -> str:
    """Return the branch that the first entry creates; a head without a branch is refused."""
    branch = _ask(root, ["symbolic-ref", "--quiet", "HEAD"], replace(terms, codes=(0, 1)))
    if not branch:
        raise UnavailableError(
            "the journal is on no branch", f"Run `git switch {BRANCH}` in {root}"
        )
    if (root / ".git" / branch).exists():
        hint = f"Look at {root / '.git' / branch}; `git reflog` knows what it said"
        raise UnavailableError(f"{branch} of the journal is damaged", hint)
    return branch


def _files_below(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        for name in names:
            yield Path(parent, name)


def _ask(root: Path, options: Sequence[str], terms: git.Terms) -> str:
    try:
        return git.run(root, options, terms=terms).decode(errors="replace").strip("\n")
    except UnavailableError as error:
        if error.hint:
            raise
        hint = f"Look at {root / '.git'}: HEAD should say ref: refs/heads/{BRANCH}"
        raise UnavailableError(
            f"the journal is not a repository that git can read ({error.message})", hint
        ) from error
