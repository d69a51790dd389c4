"""The files beside a repository.

Brought along with its branch, and never over what a person has edited.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ragdocs.errors import NotFoundError, RagdocsError
from ragdocs.system import files as fsio
from ragdocs.system import git

# Says that a write is under way; who finds it under the lock knows that it was killed.
MARKER = "ragdocs-writing"
# Locks that git leaves behind when it is killed; no command on a journal takes so long.
LOCKS = ("index.lock", "HEAD.lock", "packed-refs.lock")
STALE_SECONDS = 60.0
SHA1_DIGITS = 40
FILE_MODE = "100644"

logger = logging.getLogger("ragdocs")


@dataclass(frozen=True, slots=True)
class Move:
    """One file of a commit.

    The object it was, the object it became ("" where there is none), and its content.
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
        self._looked = False

    @property
    def _marker(self) -> Path:
        return self._root / ".git" / MARKER

    def refuse_link(self) -> None:
        """Refuse a repository behind a link that was not there before.

        Git would follow it and write elsewhere.
        """
        with fsio.explained("write", self._root), fsio.Folder(self._root / ".git"):
            return

    def begin(self) -> None:
        """Note that a write is under way."""
        with fsio.explained("write", self._marker), fsio.Folder(self._marker.parent) as folder:
            os.close(folder.open(MARKER, os.O_WRONLY | os.O_CREAT))

    def move(self, commit: str, moves: Sequence[Move]) -> None:
        """Bring files from what they were to what they became.

        The commit is made, so nothing here fails it.
        """
        try:
            for move in moves:
                self._bring(move)
            self._list(commit, [(move.path, move.after) for move in moves])
        except (RagdocsError, OSError) as error:
            # The mark stays, and the next write looks after it.
            logger.warning("the files of the journal are behind its commits: %s", error)
            return
        self._end()

    def _end(self) -> None:
        """Take the note back; a power cut may bring it again, which costs one look at the files."""
        with fsio.explained("write", self._marker), fsio.Folder(self._marker.parent) as folder:
            if folder.status(MARKER) is not None:
                folder.unlink(MARKER)

    def edited(self, path: str, name: str) -> bool:
        """Tell whether a person has changed a file since it was committed as this object."""
        found = self._present(path, name)
        return found not in {"", name} and not self._is_earlier(path, found)

    def heal(self, head: str) -> None:
        """Bring along what a killed write left behind.

        Look once in the life of a process even without a mark.
        """
        killed = self._marker.exists()
        if self._looked and not killed:
            return
        self._looked = True
        if killed:
            self._sweep()
        if head:
            self._mend(head)
        self._end()

    def ignore(self, project: Path | None) -> None:
        """Have the project's own repository leave this folder alone.

        In the one file that is not committed.
        """
        place = git.top(project) if project else None
        shared = git.common_dir(project) if project and place else None
        if place is None or shared is None or not self._root.is_relative_to(place):
            return
        name = self._root.relative_to(place).as_posix()
        line = "/" + "".join(f"\\{sign}" if sign in "\\*?[ !#" else sign for sign in name) + "/"
        exclude = Path(os.path.realpath(shared)) / "info" / "exclude"
        with suppress(RagdocsError, OSError):
            known = (
                exclude.read_text(encoding="utf-8", errors="replace") if exclude.exists() else ""
            )
            if line not in known.split("\n"):
                fsio.make_directories(exclude.parent)
                fsio.append_line(exclude, line.encode())

    def _bring(self, move: Move) -> None:
        found = self._present(move.path, move.after or move.before)
        if found == move.after or (found != move.before and not self._is_earlier(move.path, found)):
            return
        place = fsio.contained(self._root, move.path, follow=False)
        if move.after:
            fsio.make_directories(place.parent)
            fsio.write_atomic(place, move.data)
        else:
            with suppress(NotFoundError):
                fsio.remove(place, missing_ok=True)

    def _list(self, commit: str, names: Sequence[tuple[str, str]]) -> None:
        gone = f"0 {'0' * len(commit)}"
        rows = [
            f"{FILE_MODE} {name}\t{path}" if name else f"{gone}\t{path}" for path, name in names
        ]
        stdin = "".join(f"{row}\0" for row in rows).encode()
        git.run(
            self._root,
            ["update-index", "--add", "-z", "--index-info"],
            stdin=stdin,
            terms=self._terms,
        )

    def _present(self, path: str, like: str) -> str:
        """Return the name that the file there now would have as an object.

        Or nothing where there is none.
        """
        with suppress(NotFoundError):
            return blob_name(fsio.read_bytes(fsio.contained(self._root, path, follow=False)), like)
        return ""

    def _is_earlier(self, path: str, name: str) -> bool:
        """Tell whether a file is as some commit had it: nobody edited it, it was left behind."""
        if not name:
            return False
        options = ["log", "--max-count=1", "--format=%H", f"--find-object={name}"]
        with suppress(RagdocsError):
            return bool(
                git.run(self._root, options, ["HEAD"], paths=[path], terms=self._terms).strip()
            )
        return False

    def _mend(self, head: str) -> None:
        tree = self._tree(["ls-tree", "-r", "-z", "--full-tree"], [head])
        listed = self._tree(["ls-files", "--stage", "-z"], [])
        late = [path for path, name in tree.items() if self._is_late(path, name, listed)]
        for path in late:
            data = git.run(self._root, ["cat-file", "blob"], [tree[path]], terms=self._terms)
            before = self._present(path, tree[path])
            self._bring(Move(path, before, tree[path], data))
        stale = [path for path, name in tree.items() if listed.get(path) != name]
        stale = [
            path for path in stale if path in late or self._is_earlier(path, listed.get(path, ""))
        ]
        if stale:
            self._list(head, [(path, tree[path]) for path in stale])

    def _is_late(self, path: str, name: str, listed: dict[str, str]) -> bool:
        with suppress(RagdocsError):
            found = self._present(path, name)
            # A file that is listed and gone was removed by a person; one that is neither was never
            # brought.
            return found != name and (
                self._is_earlier(path, found) if found else path not in listed
            )
        return False

    def _tree(self, options: Sequence[str], operands: Sequence[str]) -> dict[str, str]:
        out = git.run(self._root, options, operands, terms=self._terms).decode(errors="replace")
        rows = (row.partition("\t") for row in out.split("\0") if row)
        # Both commands say mode first; the object is the only long word.
        return {
            path: next(word for word in head.split(" ")[1:] if len(word) >= SHA1_DIGITS)
            for head, _, path in rows
            if head.startswith("100") and path.endswith(".md")
        }

    def _sweep(self) -> None:
        folder = self._root / ".git"
        for place in (
            *(folder / name for name in LOCKS),
            *(folder / "refs" / "heads").rglob("*.lock"),
        ):
            with suppress(RagdocsError):
                fsio.sweep(place, STALE_SECONDS)
        unfinished = (
            place
            for place in self._root.rglob(f".*{fsio.TEMPORARY}")
            if folder not in place.parents
        )
        for leftover in (*folder.glob("fast_import_crash_*"), *unfinished):
            with suppress(NotFoundError):
                fsio.remove(leftover, missing_ok=True)


def blob_name(data: bytes, like: str) -> str:
    """Return the name that git gives to a file's content, in the kind of names that this one is."""
    kind = "sha256" if len(like) > SHA1_DIGITS else "sha1"
    return hashlib.new(
        kind, f"blob {len(data)}\0".encode() + data, usedforsecurity=False
    ).hexdigest()
