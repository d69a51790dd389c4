"""The files beside a repository, which follow its branch but never overwrite a person's edits."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ragdocs.errors import NotFoundError, RagdocsError, UnavailableError
from ragdocs.system import files, git

# Says that a write is under way; whoever finds it under the lock knows that the writer was killed.
MARKER = "ragdocs-writing"
# Locks that git leaves behind when it is killed; no command on a journal takes so long.
LOCKS = ("index.lock", "HEAD.lock", "packed-refs.lock")
STALE_SECONDS = 60.0
# Files that git has while a person merges or rebases by hand.
UNFINISHED = ("MERGE_HEAD", "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD")
SHA1_DIGITS = 40
FILE_MODE = "100644"
# Characters that have a meaning in a pattern of an ignore file.
PATTERN_SIGNS = "\\*?[ !#"

logger = logging.getLogger("ragdocs")


@dataclass(frozen=True, slots=True)
class Move:
    """One file of a commit.

    `before` and `after` are the objects it was and is now, "" where there is no file.
    """

    path: str
    before: str
    after: str
    data: bytes


class Checkout:
    """The working tree and the index of one repository."""

    def __init__(self, root: Path, terms: git.Terms) -> None:
        self._root = root
        self._terms = terms
        self._git_folder = root / ".git"
        self._marker = self._git_folder / MARKER
        self._looked = False

    def refuse_link(self) -> None:
        """Refuse a repository behind a link: git would follow it and write elsewhere."""
        with files.explained("write", self._root), files.Folder(self._git_folder):
            return

    def refuse_unfinished(self) -> None:
        """Refuse to write while a person merges or rebases by hand."""
        if not any((self._git_folder / name).exists() for name in UNFINISHED):
            return
        hint = (
            f"In {self._root}, finish it with git, "
            "or give it up (git merge --abort, git rebase --abort)"
        )
        raise UnavailableError(
            "somebody is in the middle of a merge or a rebase in the journal", hint
        )

    def begin(self) -> None:
        """Note that a write is under way."""
        with files.explained("write", self._marker), files.Folder(self._git_folder) as folder:
            folder.touch(MARKER)

    def move(self, commit: str, moves: Sequence[Move]) -> None:
        """Bring files from what they were to what they became.

        The commit is made, so that a failure here is only logged.
        """
        try:
            for move in moves:
                self._bring(move)
            self._list(commit, [(move.path, move.after) for move in moves])
        except (RagdocsError, OSError) as error:
            # The marker stays, and the next write mends the files.
            logger.warning("the files of the journal are behind its commits: %s", error)
            return
        self._end()

    def edited(self, path: str, name: str) -> bool:
        """Return whether a person has changed a file since it was committed as this object."""
        present = self._present(path, name)
        if present in {"", name}:
            return False
        return not self._is_earlier(path, present)

    def heal(self, head: str) -> None:
        """Mend what a killed write left behind.

        Without a marker, look only once in the life of a process.
        """
        was_killed = self._marker.exists()
        if self._looked and not was_killed:
            return
        self._looked = True
        if was_killed:
            self._sweep()
        if head:
            self._mend(head)
        self._end()

    def ignore(self, project: Path) -> None:
        """Have the project's own repository ignore this folder.

        The line goes into the one ignore file that is not committed.
        """
        top = git.top(project)
        shared = git.common_dir(project)
        if top is None or shared is None or not self._root.is_relative_to(top):
            return
        line = _ignore_line(self._root.relative_to(top).as_posix())
        exclude = Path(os.path.realpath(shared)) / "info" / "exclude"
        with suppress(RagdocsError, OSError):
            present = ""
            if exclude.exists():
                present = exclude.read_text(encoding="utf-8", errors="replace")
            if line not in present.split("\n"):
                files.make_directories(exclude.parent)
                files.append_line(exclude, line.encode())

    def _end(self) -> None:
        """Remove the marker; if a power cut brings it back, the next write only looks in vain."""
        with files.explained("write", self._marker), files.Folder(self._git_folder) as folder:
            if folder.status(MARKER) is not None:
                folder.unlink(MARKER)

    def _bring(self, move: Move) -> None:
        present = self._present(move.path, move.after or move.before)
        if present == move.after:
            return
        if present != move.before and not self._is_earlier(move.path, present):
            return
        path = files.contained(self._root, move.path, follow=False)
        if move.after:
            files.make_directories(path.parent)
            files.write_atomic(path, move.data)
        else:
            with suppress(NotFoundError):
                files.remove(path, missing_ok=True)

    def _list(self, commit: str, names: Sequence[tuple[str, str]]) -> None:
        """Write paths and their objects into git's index; those without an object leave it."""
        no_object = "0" * len(commit)
        rows = []
        for path, name in names:
            entry = f"{FILE_MODE} {name}" if name else f"0 {no_object}"
            rows.append(f"{entry}\t{path}\0")
        options = ["update-index", "--add", "-z", "--index-info"]
        git.run(self._root, options, stdin="".join(rows).encode(), terms=self._terms)

    def _present(self, path: str, like: str) -> str:
        """Return the name that the present file would have as an object, or "" without a file."""
        with suppress(NotFoundError):
            data = files.read_bytes(files.contained(self._root, path, follow=False))
            return blob_name(data, like)
        return ""

    def _is_earlier(self, path: str, name: str) -> bool:
        """Return whether some commit had a file like this: then it is old, but nobody edited it."""
        if not name:
            return False
        options = ["log", "--max-count=1", "--format=%H", f"--find-object={name}"]
        with suppress(RagdocsError):
            out = git.run(self._root, options, ["HEAD"], paths=[path], terms=self._terms)
            return bool(out.strip())
        return False

    def _mend(self, head: str) -> None:
        """Bring files and git's index up to a commit, where nobody has edited them."""
        tree = self._tree(["ls-tree", "-r", "-z", "--full-tree"], [head])
        listed = self._tree(["ls-files", "--stage", "-z"], [])
        late = [path for path, name in tree.items() if self._is_late(path, name, listed)]
        for path in late:
            name = tree[path]
            data = git.run(self._root, ["cat-file", "blob"], [name], terms=self._terms)
            self._bring(Move(path, self._present(path, name), name, data))
        stale = []
        for path, name in tree.items():
            listed_name = listed.get(path, "")
            if listed_name == name:
                continue
            if path in late or self._is_earlier(path, listed_name):
                stale.append((path, name))
        if stale:
            self._list(head, stale)

    def _is_late(self, path: str, name: str, listed: Mapping[str, str]) -> bool:
        """Return whether a file was not brought along with its commit."""
        with suppress(RagdocsError):
            present = self._present(path, name)
            if present == name:
                return False
            if present:
                return self._is_earlier(path, present)
            # A person removed a file that git's index lists; one that is not listed was never
            # brought.
            return path not in listed
        return False

    def _tree(self, options: Sequence[str], operands: Sequence[str]) -> dict[str, str]:
        """Map the paths of sections to their objects, as git lists them."""
        out = git.run(self._root, options, operands, terms=self._terms).decode(errors="replace")
        objects = {}
        for row in out.split("\0"):
            header, _, path = row.partition("\t")
            if not header.startswith("100") or not path.endswith(".md"):
                continue
            # Both commands print the mode first; the object is the only long word.
            for word in header.split(" ")[1:]:
                if len(word) >= SHA1_DIGITS:
                    objects[path] = word
                    break
        return objects

    def _sweep(self) -> None:
        """Remove what killed processes left behind: locks of git, and unfinished files."""
        for lock_file in self._lock_files():
            with suppress(RagdocsError):
                files.sweep(lock_file, STALE_SECONDS)
        for leftover in self._leftovers():
            with suppress(NotFoundError):
                files.remove(leftover, missing_ok=True)

    def _lock_files(self) -> Iterator[Path]:
        for name in LOCKS:
            yield self._git_folder / name
        yield from (self._git_folder / "refs" / "heads").rglob("*.lock")

    def _leftovers(self) -> list[Path]:
        leftovers = list(self._git_folder.glob("fast_import_crash_*"))
        for path in self._root.rglob(f".*{files.TEMPORARY}"):
            if self._git_folder not in path.parents:
                leftovers.append(path)
        return leftovers


def blob_name(data: bytes, like: str) -> str:
    """Return git's name for a content, by the same hash function as another name."""
    kind = "sha256" if len(like) > SHA1_DIGITS else "sha1"
    content = f"blob {len(data)}\0".encode() + data
    return hashlib.new(kind, content, usedforsecurity=False).hexdigest()


def _ignore_line(name: str) -> str:
    """Return the line of an ignore file for one folder from the top."""
    signs = []
    for sign in name:
        if sign in PATTERN_SIGNS:
            signs.append("\\")
        signs.append(sign)
    return f"/{''.join(signs)}/"
