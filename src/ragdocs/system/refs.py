"""Where HEAD is and which branches there are, read from the files of git, without a process."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ragdocs.errors import UnavailableError
from ragdocs.system import git
from ragdocs.system.patterns import later
from ragdocs.system.repository import Repository

_HASH = later("[0-9a-f]{40}(?:[0-9a-f]{24})?")
_HEADS = "refs/heads/"
_REMOTES = "refs/remotes/"
# As git itself refuses names of branches; nothing else is looked for among the files.
_ODD_NAME = later(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|//|^[/.-]|/\.|[/.]$|\.lock(?:/|$)|@\{")
_LONGEST_NAME = 250
_LARGEST_FILE = 50_000_000

Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Head:
    """The branch that is checked out, "" if none is, and its commit, "" before the first one."""

    branch: str
    commit: str


class Refs:
    """The refs of one repository; what did not change on disk is not read again."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._repository: Repository | None = git.find(root)
        self._packed: dict[str, str] = {}
        self._packed_stamp: Stamp | None = None
        # Of a repository that keeps its refs in tables.
        self._has_tables = False
        self._tables_stamp: Stamp | None = None
        self._tables_head = Head("", "")
        if self._repository is not None:
            self._has_tables = (self._repository.shared / "reftable").is_dir()
        # What HEAD was when these two files and the packed refs had these stamps.
        self._head = Head("", "")
        self._head_files: tuple[str, ...] = ()
        self._head_stamps: tuple[Stamp | None, ...] = ()

    @property
    def top(self) -> Path | None:
        """The folder of the working tree, or None without a repository."""
        if self._repository is None:
            return None
        return self._repository.top

    def head(self) -> Head:
        """Return what is checked out."""
        repository = self._repository
        if repository is None:
            return Head("", "")
        if self._has_tables:
            self._read_tables(repository)
            return self._tables_head
        if self._head_files and tuple(map(file_stamp, self._head_files)) == self._head_stamps:
            return self._head
        return self._read_head(repository)

    def _read_head(self, repository: Repository) -> Head:
        written = _line(repository.own / "HEAD")
        ref = written.removeprefix("ref: ")
        paths = (repository.own / "HEAD", repository.shared / "packed-refs")
        names = list(map(str, paths))
        if ref == written or _ODD_NAME.search(ref):
            head = Head("", _commit(written))
        else:
            names.append(str(repository.shared / ref))
            head = Head(ref.removeprefix(_HEADS), "")
        stamps = tuple(map(file_stamp, names))
        if head.branch:
            head = Head(head.branch, self._commit_of(repository, ref))
        self._head_files = tuple(names)
        self._head_stamps = stamps
        self._head = head
        return head

    def has_branch(self, name: str) -> bool:
        """Tell whether there is a branch of this name, here or at a remote as last seen."""
        repository = self._repository
        is_odd = not name or len(name) > _LONGEST_NAME or _ODD_NAME.search(name)
        if repository is None or is_odd:
            return False
        if self._has_tables:
            self._read_tables(repository)
        else:
            self._read_packed(repository)
            if self._is_loose(repository, name):
                return True
        if f"{_HEADS}{name}" in self._packed:
            return True
        ending = f"/{name}"
        for ref in self._packed:
            if ref.startswith(_REMOTES) and ref.endswith(ending):
                remote = ref.removeprefix(_REMOTES).removesuffix(ending)
                if "/" not in remote:
                    return True
        return False

    def _is_loose(self, repository: Repository, name: str) -> bool:
        if (repository.shared / _HEADS / name).is_file():
            return True
        try:
            for remote in (repository.shared / _REMOTES).iterdir():
                if (remote / name).is_file():
                    return True
        except OSError:
            return False
        return False

    def _commit_of(self, repository: Repository, ref: str) -> str:
        loose = _commit(_line(repository.shared / ref))
        if loose:
            return loose
        self._read_packed(repository)
        return self._packed.get(ref, "")

    def _read_packed(self, repository: Repository) -> None:
        path = repository.shared / "packed-refs"
        stamp = file_stamp(path)
        if stamp == self._packed_stamp:
            return
        self._packed = {}
        self._packed_stamp = stamp
        if stamp is None or stamp[1] > _LARGEST_FILE:
            return
        for line in path.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
            commit, _, ref = line.partition(" ")
            if _HASH.fullmatch(commit):
                self._packed[ref] = commit

    def _read_tables(self, repository: Repository) -> None:
        """Ask git about refs in tables, once for each state of them."""
        stamp = file_stamp(repository.own / "reftable" / "tables.list")
        shared = file_stamp(repository.shared / "reftable" / "tables.list")
        if stamp == self._tables_stamp and shared == self._packed_stamp:
            return
        options = ["for-each-ref", "--format=%(objectname) %(refname)"]
        try:
            listing = git.run(self._root, options).decode(errors="surrogateescape")
            context = git.head(self._root)
            commit = git.run(self._root, ["rev-parse", "--verify", "--quiet", "HEAD"])
        except UnavailableError:
            return
        self._packed = {}
        for line in listing.splitlines():
            name, _, ref = line.partition(" ")
            self._packed[ref] = name
        branch = ""
        if context is not None:
            branch = context.branch
        self._tables_head = Head(branch, commit.decode().strip())
        self._tables_stamp = stamp
        self._packed_stamp = shared


def file_stamp(path: Path | str) -> Stamp | None:
    """Return what changes whenever a file does, or None where there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - called for every link of every answer
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(1_000).decode(errors="surrogateescape").strip()
    except (OSError, ValueError):
        return ""


def _commit(text: str) -> str:
    if _HASH.fullmatch(text):
        return text
    return ""
