"""Where the refs of a journal point, and what files and objects say there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ragdocs.errors import UnavailableError
from ragdocs.system import git

BRANCH = "main"
# More of them are not looked at one by one.
MOST_LOOSE_REFS = 200


def written_refs(folder: Path) -> dict[str, bytes] | None:
    """Return what the files of a repository's refs say, or nothing where that does not tell all."""
    found = {}
    try:
        if (folder / "reftable").exists():
            return None
        files = (
            Path(place, name) for place, _, names in os.walk(folder / "refs") for name in names
        )
        for file in (folder / "HEAD", folder / "packed-refs", *islice(files, MOST_LOOSE_REFS)):
            if file.exists():
                found[file.relative_to(folder).as_posix()] = file.read_bytes()
    except OSError:
        return None
    return found if len(found) < MOST_LOOSE_REFS else None


def read_refs(root: Path, terms: git.Terms) -> tuple[str, str, frozenset[str]]:
    """Return the branch, its head, and where all refs point that may lead to entries."""
    if not (root / ".git").is_dir():
        return "", "", frozenset()
    form = "%(HEAD)%00%(objecttype)%(*objecttype)%00%(objectname)%00%(refname)"
    rows = [
        row.split("\0")
        for row in _ask(root, ["for-each-ref", f"--format={form}"], terms).splitlines()
    ]
    refs = [
        row
        for row in rows
        if row[1].endswith("commit") and not row[3].startswith(("refs/stash", "refs/replace/"))
    ]
    branch, head = next(((row[3], row[2]) for row in refs if row[0] == "*"), ("", ""))
    if not head:
        head = _ask(
            root, ["rev-parse", "--verify", "--quiet", "HEAD"], replace(terms, codes=(0, 1))
        )
    if not head:
        # Either nothing was committed yet, or something is damaged: that must not pass for an empty
        # journal.
        first_branch(root, terms)
    return branch, head, frozenset({*(row[2] for row in refs), *([head] if head else [])})


def first_branch(root: Path, terms: git.Terms) -> str:
    """Return the branch that the first entry makes.

    Where there is a head without a branch, none can be made.
    """
    branch = _ask(root, ["symbolic-ref", "--quiet", "HEAD"], replace(terms, codes=(0, 1)))
    if not branch:
        raise UnavailableError(
            "the journal is on no branch", f"Run `git switch {BRANCH}` in {root}"
        )
    if (root / ".git" / branch).exists():
        hint = f"Look at {root / '.git' / branch}; `git reflog` knows what it said"
        raise UnavailableError(f"{branch} of the journal is damaged", hint)
    return branch


def _ask(root: Path, options: Sequence[str], terms: git.Terms) -> str:
    try:
        return git.run(root, options, terms=terms).decode(errors="replace").strip("\n")
    except UnavailableError as error:
        if error.hint:
            raise
        hint = f"Look at {root / '.git'}: HEAD should say ref: refs/heads/{BRANCH}"
        raise UnavailableError(
            f"the journal is no repository that git can read ({error.message})", hint
        ) from error


def read_blobs(
    root: Path, terms: git.Terms, commit: str, names: Sequence[str]
) -> list[tuple[str, bytes] | None]:
    """Return the name and content of each of these files in a commit, or of these objects."""
    asked = "".join(f"{commit}:{name}\n" if commit else f"{name}\n" for name in names)
    out = git.run(root, ["cat-file", "--batch"], stdin=asked.encode(), terms=terms)
    found: list[tuple[str, bytes] | None] = []
    for _ in names:
        head, _, out = out.partition(b"\n")
        words = head.split(b" ")
        if not words[-1].isdigit() or not git.is_hash(words[0].decode(errors="replace")):
            found.append(None)
            continue
        size = int(words[-1])
        found.append((words[0].decode(), out[:size]) if words[-2] == b"blob" else None)
        out = out[size + 1 :]
    return found
