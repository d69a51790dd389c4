"""The documents in one revision of a git repository, read without a checkout."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ragdocs.errors import NotFoundError, StorageError, TooSlowError, UnavailableError
from ragdocs.lanes import Lane
from ragdocs.project.copies import Copies
from ragdocs.project.documentation import BUILT, THEMES, documentation_format
from ragdocs.project.formats import format_of, is_installed
from ragdocs.stores.changes import readable_text
from ragdocs.stores.files.history import version_of
from ragdocs.stores.git.ledger import moved_ref
from ragdocs.stores.git.plumbing import Blobs
from ragdocs.system import git, repository
from ragdocs.types import Scan, Source

LIST_SECONDS = 30.0
LIST_BYTES = 64_000_000
# Blobs that are read at once, because each call of git takes longer than the reading.
MOST_AHEAD = 64
BYTES_AHEAD = 4_000_000
# Copies that nobody means to search; translations and versions are shown as one page.
LEFT_OUT = ("generated", "test data", "no prose")
_REGULAR = ("100644", "100755")
_UNWANTED = frozenset({*BUILT, *THEMES})


@dataclass(frozen=True, slots=True)
class _Listed:
    """A file of the revision: the name of its content, and its size."""

    blob: str
    size: int


class GitTree:
    """The documents in a revision of a repository; nothing is checked out or fetched."""

    def __init__(self, root: Path, revision: str, folder: str, lane: Lane) -> None:
        self.root = root
        self._revision = revision
        self._folder = folder
        self._lane = lane
        is_bare = repository.is_bare(root)
        self._terms = git.Terms(seconds=LIST_SECONDS, most=LIST_BYTES, bare=is_bare)
        self._git_folder = root
        if not is_bare:
            known_repository = repository.find(root)
            if known_repository is None:
                raise UnavailableError(f"{root} is not in a git repository")
            self._git_folder = known_repository.shared
        self._blobs = Blobs(root, self._terms)
        self.commit = ""
        self._at: datetime | None = None
        self._files: dict[str, _Listed] = {}
        # Contents that were read together with another one.
        self._ahead: dict[str, bytes] = {}
        # A search may read while the files are being indexed.
        self._turn = threading.RLock()

    def scan(self, paths: Iterable[str] | None = None) -> Scan:
        """Return the documents of the revision as it is now, or those at or below these paths."""
        with self._turn:
            self._refresh()
        stamps = {}
        unreadable = {}
        for path, listed in self._files.items():
            if listed.size > self._lane.largest:
                unreadable[path] = f"larger than {self._lane.largest / 1e6:g} MB"
            else:
                stamps[path] = listed.blob
        if paths is None:
            return Scan(stamps, unreadable)
        wanted = [path.rstrip("/") for path in paths]
        return Scan(
            {path: stamps[path] for path in stamps if _is_below(path, wanted)},
            {path: unreadable[path] for path in unreadable if _is_below(path, wanted)},
        )

    def read(self, path: str) -> Source:
        """Read one document."""
        with self._turn:
            if not self.commit:
                self._refresh()
            listed = self._files.get(path)
            if listed is None:
                raise NotFoundError(f"there is no document {path[:200]!r} at {self._revision}")
            data = self._content(path, listed)
        text, problems = readable_text(path, data)
        return Source(
            path=path,
            text=text,
            version=version_of(data),
            stamp=listed.blob,
            size=len(data),
            modified_at=self._at,
            problems=problems,
        )

    def locate(self, path: str) -> str:
        """Return the repository, the revision and the path in it."""
        if not path:
            return f"{self.root}@{self._revision}"
        return f"{self.root}@{self._revision}:{self._inside(path)}"

    def watched(self) -> list[tuple[Path, bool]]:
        """List the folders where refs are moved."""
        folders = [(self._git_folder, False), (self._git_folder / "refs", True)]
        return [(folder, is_deep) for folder, is_deep in folders if folder.is_dir()]

    def relative(self, path: str) -> str | None:
        """Return "", which stands for everything, if a file moves refs; else None."""
        return moved_ref(path, self._git_folder)

    def _refresh(self) -> None:
        """List the files again if the revision is another commit than before."""
        commit, seconds = self._head()
        if commit == self.commit:
            return
        options = ["ls-tree", "-r", "-z", "-l", "--full-tree"]
        rows = git.run(self.root, options, [commit], terms=self._terms)
        self._files = self._documents(rows.decode(errors="surrogateescape"))
        self._ahead.clear()
        self._at = datetime.fromtimestamp(int(seconds), UTC)
        self.commit = commit

    def _head(self) -> tuple[str, str]:
        """Return the commit that the revision is now, and its time."""
        options = ["log", "-1", "--format=%H %ct"]
        try:
            output = git.run(self.root, options, [self._revision], terms=self._terms)
        except TooSlowError:
            raise
        except UnavailableError as error:
            raise UnavailableError(
                f"{self.root} has no revision {self._revision} that git can read",
                error.hint or "Is it spelled right, and fetched?",
            ) from error
        commit, _, seconds = output.decode().strip().partition(" ")
        return commit, seconds

    def _documents(self, rows: str) -> dict[str, _Listed]:
        prefix = f"{self._folder}/" if self._folder else ""
        listed = {}
        for row in rows.split("\0"):
            terms, _, path = row.partition("\t")
            # Links and submodules lead elsewhere.
            if not terms.startswith(_REGULAR) or not path.startswith(prefix):
                continue
            path = path.removeprefix(prefix)
            if self._is_wanted(path):
                _, _, blob, size = terms.split()
                listed[path] = _Listed(blob, int(size))
        if self._folder and not listed:
            raise UnavailableError(
                f"{self.root} has no documents in {self._folder} at {self._revision}"
            )
        copies = Copies(listed)
        wanted = {}
        for path, file in sorted(listed.items()):
            copy = copies.find(path)
            if copy is None or copy.kind not in LEFT_OUT:
                wanted[path] = file
        return wanted

    def _is_wanted(self, path: str) -> bool:
        kind = documentation_format(path)
        if kind is None and self._folder and not path.startswith(".") and "/." not in path:
            # Whoever names a folder means everything in it.
            kind = format_of(path)
        if kind is None or not is_installed(kind.extra) or not path.isprintable():
            return False
        return _UNWANTED.isdisjoint(path.split("/")[:-1])

    def _content(self, path: str, listed: _Listed) -> bytes:
        data = self._ahead.pop(listed.blob, None)
        if data is not None:
            return data
        names = self._names_from(path)
        for name, blob in zip(names, self._blobs.several(names), strict=True):
            if blob is not None:
                self._ahead[name] = blob.data
        data = self._ahead.pop(listed.blob, None)
        if data is None:
            raise StorageError(
                f"the repository does not have the content of {path}",
                "A partial clone has only some: run git fetch --refetch there",
            )
        return data

    def _names_from(self, path: str) -> list[str]:
        """Return the names of this content and of those that are read after it."""
        self._ahead.clear()
        names: dict[str, None] = {}
        room = BYTES_AHEAD
        is_reached = False
        for other, listed in self._files.items():
            is_reached = is_reached or other == path
            if not is_reached or listed.size > self._lane.largest:
                continue
            room -= listed.size
            if names and (room < 0 or len(names) >= MOST_AHEAD):
                break
            names[listed.blob] = None
        return list(names)

    def _inside(self, path: str) -> str:
        return f"{self._folder}/{path}" if self._folder else path


def _is_below(path: str, wanted: Iterable[str]) -> bool:
    for folder in wanted:
        if folder in {"", path} or path.startswith(f"{folder}/"):
            return True
    return False
