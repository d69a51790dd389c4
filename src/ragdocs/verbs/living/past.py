"""Earlier contents and names of files, from the history of the project's repository."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ragdocs.errors import RagdocsError, UnavailableError
from ragdocs.system import git
from ragdocs.system.git import Terms
from ragdocs.system.refs import Refs

if TYPE_CHECKING:
    from ragdocs.verbs.file_history import EditedFile

# A larger file is data: it is not compared line by line.
LARGEST = 1_000_000
# Commits that are looked at for a moment or a rename.
MOST_COMMITS = 100_000
MOST_RENAMING = 5_000
# Files of a tree that are looked through for a content.
MOST_FILES = 50_000
SECONDS = 20.0
OUTPUT = 64_000_000
# A name that no object has.
NOTHING = "-"
_TERMS = Terms(seconds=SECONDS, most=OUTPUT)


class Moment(NamedTuple):
    """A commit of the branch that is checked out, and when it was made."""

    seconds: int
    commit: str


class Past:
    """What the repository of a folder knows; without one, nothing."""

    def __init__(self, root: Path, refs: Refs) -> None:
        self._root = root
        self._refs = refs
        self._prefix = git.prefix(root)
        # For one state of HEAD.
        self._commit = ""
        self._moments: list[Moment] = []
        self._renames: dict[str, list[EditedFile]] = {}

    def at(self, moment: datetime) -> str:
        """Return the commit that the branch was at, or the first one if it is younger."""
        moments = self._history()
        if not moments:
            return ""
        seconds = int(moment.timestamp())
        number = bisect_right(moments, seconds, key=lambda entry: entry.seconds)
        return moments[max(0, number - 1)].commit

    def contents(self, wanted: Sequence[tuple[str, str]]) -> list[bytes | None]:
        """Return files of commits, each given by commit and path; None for what is not there."""
        names = []
        for commit, path in wanted:
            is_plain = git.is_hash(commit) and "\n" not in path
            name = NOTHING
            if is_plain:
                name = f"{commit}:{self._prefix}{path}"
            names.append(name)
        return self._objects(names)

    def blob(self, name: str) -> bytes | None:
        """Return the content with this name, if the repository has it."""
        return self.blobs([name])[0]

    def blobs(self, names: Sequence[str]) -> list[bytes | None]:
        """Return the contents with these names, None for what the repository does not have."""
        wanted = []
        for name in names:
            wanted.append(name)
            if not git.is_hash(name):
                wanted[-1] = NOTHING
        return self._objects(wanted)

    def first(self, path: str, after: datetime) -> str:
        """Return the first commit after a moment that has a change of this path."""
        options = ["log", "--first-parent", "--reverse", "--format=%H", f"--since={_iso(after)}"]
        try:
            output = git.run(self._root, options, ["HEAD"], paths=[path], terms=_TERMS)
        except UnavailableError:
            return ""
        return output.decode().partition("\n")[0]

    def renamed(self, path: str, since: str) -> str:
        """Return the name that a file of a commit has now by the renames between, or "" for none.

        Renames that only the other branch has are taken back first.
        """
        if not git.is_hash(since):
            return ""
        name = path
        for old, new in reversed(self._renames_in(f"HEAD..{since}")):
            if new == name:
                name = old
        for old, new in self._renames_in(f"{since}..HEAD"):
            if old == name:
                name = new
        if name == path:
            return ""
        return name

    def files(self) -> list[str]:
        """List the files of the working tree that git does not ignore, from the root."""
        return self._names(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])

    def changed_since(self, commit: str) -> list[str]:
        """List the files of the working tree that differ from a commit or are new."""
        if not git.is_hash(commit):
            return []
        changed = self._names(["diff-index", "--name-only", "--relative", "-z"], [commit])
        return changed + self._names(["ls-files", "--others", "--exclude-standard", "-z"])

    def _names(self, options: Sequence[str], revisions: Sequence[str] = ()) -> list[str]:
        """Return the paths that git lists; none without a repository or an answer."""
        if self._refs.top is None:
            return []
        try:
            output = git.run(self._root, options, revisions, terms=_TERMS)
        except UnavailableError:
            return []
        names = output.decode(errors="surrogateescape").split("\0")
        return list(filter(None, names[:MOST_FILES]))

    def _history(self) -> list[Moment]:
        """Return the commits of the branch, the oldest first, by times that only rise."""
        self._refresh()
        if self._moments or not self._commit:
            return self._moments
        options = ["log", "--first-parent", "--format=%ct %H", f"--max-count={MOST_COMMITS}"]
        try:
            output = git.run(self._root, options, ["HEAD"], terms=_TERMS)
        except UnavailableError:
            return []
        latest = 0
        for line in reversed(output.decode().splitlines()):
            seconds, _, commit = line.partition(" ")
            # Clocks of several people differ: what comes later in the history was made later.
            latest = max(latest, int(seconds))
            self._moments.append(Moment(latest, commit))
        return self._moments

    def _renames_in(self, revisions: str) -> list[EditedFile]:
        """Return the renames in a range of commits, the oldest first."""
        self._refresh()
        if not self._commit:
            return []
        if revisions not in self._renames:
            from ragdocs.verbs import file_history

            options = ["--topo-order", f"--max-count={MOST_RENAMING}"]
            try:
                renames = file_history.renames(self._root, options, [revisions])
            except RagdocsError:
                # The commit is gone, as after a rebase.
                renames = []
            self._renames[revisions] = renames
        return self._renames[revisions]

    def _refresh(self) -> None:
        commit = self._refs.head().commit
        if commit != self._commit:
            self._commit = commit
            self._moments = []
            self._renames = {}

    def _objects(self, names: Sequence[str]) -> list[bytes | None]:
        """Return the blobs of these names; of those that are too large only the size counts."""
        if not names or self._refs.top is None:
            return [None] * len(names)
        sizes = self._sizes(names)
        small = [name for name, size in zip(names, sizes, strict=True) if 0 <= size <= LARGEST]
        blobs: dict[str, bytes] = {}
        batch: list[str] = []
        room = OUTPUT // 2
        for name in dict.fromkeys(small):
            batch.append(name)
            room -= LARGEST
            if room < 0:
                blobs |= self._read(batch)
                batch = []
                room = OUTPUT // 2
        blobs |= self._read(batch)
        for name, size in zip(names, sizes, strict=True):
            if size > LARGEST:
                blobs[name] = only_size(size)
        return [blobs.get(name) for name in names]

    def _sizes(self, names: Sequence[str]) -> list[int]:
        """Return the size of each blob, or -1 for what is none."""
        sizes = []
        stdin = "\n".join([*names, ""]).encode(errors="surrogateescape")
        options = ["cat-file", "--batch-check=%(objecttype) %(objectsize)"]
        try:
            output = git.run(self._root, options, stdin=stdin, terms=_TERMS)
        except UnavailableError:
            return [-1] * len(names)
        for line in output.decode(errors="replace").splitlines():
            kind, _, size = line.partition(" ")
            sizes.append(-1)
            if kind == "blob" and size.isdigit():
                sizes[-1] = int(size)
        if len(sizes) != len(names):
            return [-1] * len(names)
        return sizes

    def _read(self, names: Sequence[str]) -> dict[str, bytes]:
        if not names:
            return {}
        stdin = "\n".join([*names, ""]).encode(errors="surrogateescape")
        try:
            output = git.run(self._root, ["cat-file", "--batch"], stdin=stdin, terms=_TERMS)
        except UnavailableError:
            return {}
        blobs = {}
        start = 0
        for name in names:
            end = output.find(b"\n", start)
            size = output[start:end].rpartition(b" ")[2]
            if end < 0 or not size.isdigit():
                break
            begin = end + 1
            blobs[name] = output[begin : begin + int(size)]
            start = begin + int(size) + 1
        return blobs


def only_size(size: int) -> bytes:
    """Return what stands for the content of a file that is too large to be compared."""
    return b"%d" % size


def blob_name(data: bytes) -> str:
    """Return the name that git gives to a content."""
    return hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")
