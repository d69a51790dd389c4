"""A walk through a tree that lists the files of a lane, guided by its globs and ignore files."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ragdocs.errors import NotFoundError, RagdocsError
from ragdocs.stores.files.globs import Rules
from ragdocs.stores.files.patterns import IgnoreFile, ignore_file
from ragdocs.system import files, git
from ragdocs.types import FRESH

# Larger than any ignore file a person writes; compiling more would only serve an attacker.
IGNORE_LIMIT = 65_536
# Comparisons that all ignore files together may cost for one path; a hundred times the usual.
MOST_STEPS = 1_000
# A clone may hold thousands of links to one large folder, each of which would be walked.
LINKED_FOLDERS = 100
# Whoever reads hundreds of texts would look at their repository hundreds of times: what was seen so
# long ago still says what may be read.
RECENT_SECONDS = 1.0
# No write takes so long: an older temporary file belongs to a process that was killed.
LEFTOVER_SECONDS = 3600
# File times move in ticks of up to some ten milliseconds: two writes within one tick look the same
# to a scan.
RACY_SECONDS = 0.05


def stamp(status: os.stat_result) -> str:
    """Name the state of a file without reading it."""
    return f"{status.st_size}-{status.st_mtime_ns}-{status.st_ctime_ns}-{status.st_ino}"


def stamp_as_read(status: os.stat_result, moment: float) -> str:
    """Stamp what was read; a file that has just changed gets a stamp that no scan gives.

    A second write within the same tick of the file system's clock, of the same length, would leave
    size and times as they were: the change would never be seen. With a stamp of its own the file is
    simply read again next time.
    """
    # The change time moves with every write and cannot be set by hand; a time in the far future is
    # not racy.
    age = min(abs(moment - status.st_mtime), abs(moment - status.st_ctime))
    if age < RACY_SECONDS:
        return f"{FRESH}{stamp(status)}"
    return stamp(status)


@dataclass(frozen=True, slots=True)
class _Ignores:
    """An ignore file that reaches a folder.

    `skip` and `above` make a path relative to the file's own folder.
    """

    file: IgnoreFile
    skip: int
    above: tuple[str, ...] = ()

    def decides(self, path: Sequence[str], is_folder: bool) -> bool | None:
        """Return whether the path is ignored, or None if no pattern matches it."""
        return self.file.decides((*self.above, *path[self.skip :]), is_folder)


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder still to be looked into.

    If a link at depth `link` led here, `real` is the folder's own path.
    """

    parts: tuple[str, ...] = ()
    ignores: tuple[_Ignores, ...] = ()
    link: int = 0
    real: tuple[str, ...] = ()

    def ignored(self, path: Sequence[str], *, is_folder: bool) -> bool:
        """Return whether a path is ignored; the ignore file nearest to it decides."""
        for ignores in reversed(self.ignores):
            verdict = ignores.decides(path, is_folder)
            if verdict is not None:
                return verdict
        return False


class IgnoresAbove:
    """The ignore files of a repository that reach a root inside it.

    These are its exclude file and those of the folders on the way.
    """

    def __init__(self, root: Path) -> None:
        self.start = _Folder()
        self.unreadable: dict[str, str] = {}
        self._looked_at = time.monotonic()
        top = _repository_above(root)
        if top is None:
            return
        below = root.relative_to(top).parts
        # That of a repository that cannot be trusted is not read.
        excludes = git.exclude_file(top)
        if excludes is not None:
            self._add(root, excludes, below)
        for depth in range(len(below)):
            path = top.joinpath(*below[:depth], ".gitignore")
            self._add(root, path, below[depth:])

    @property
    def is_recent(self) -> bool:
        """Whether a text may be read by what was seen here."""
        return time.monotonic() - self._looked_at < RECENT_SECONDS

    def _add(self, root: Path, path: Path, above: tuple[str, ...]) -> None:
        self.start = _with_ignores(str(root), self.start, path, 0, self.unreadable, above)


class Walk:
    """One look at a tree, whole or in parts.

    It collects the `stamps` of files, and what was `unreadable` with the reason.
    """

    def __init__(self, root: Path, rules: Rules, above: IgnoresAbove | None) -> None:
        self.stamps: dict[str, str] = {}
        self.modified: dict[str, int] = {}
        self.unreadable: dict[str, str] = {}
        self._rules = rules
        self._root = str(root).rstrip("/")
        self._leftovers: list[str] = []
        self._linked = 0
        self._start = _Folder()
        if above is not None:
            self._start = above.start
            self.unreadable |= above.unreadable

    def look(self, path: str = "") -> None:
        """Look at a file, at a folder and all below it, or at the whole tree."""
        wanted = path.split("/") if path else []
        pending = [self._start]
        while pending:
            folder = pending.pop()
            depth = len(folder.parts)
            only = wanted[depth : depth + 1]
            names = only or self._names(folder)
            if self._rules.gitignore and (only or ".gitignore" in names):
                folder = self._with_own_ignores(folder)
            is_last = depth + 1 >= len(wanted)
            for name in names:
                if not name or self._rules.hides(name, depth == 0):
                    continue
                below = self._entry(folder, name, is_last)
                if below is not None:
                    pending.append(below)

    def sweep(self) -> None:
        """Remove temporary files that killed processes left behind."""
        for leftover in self._leftovers:
            with contextlib.suppress(RagdocsError):
                files.sweep(Path(leftover), LEFTOVER_SECONDS)

    def _names(self, folder: _Folder) -> list[str]:
        directory = "/".join((self._root, *folder.parts)) or "/"
        try:
            with os.scandir(directory) as entries:
                all_names = sorted(entry.name for entry in entries)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self.unreadable["/".join(folder.parts)] = error.strerror or str(error)
            return []
        names = []
        for name in all_names:
            if not _is_text(name):
                readable = name.encode("utf-8", "replace").decode()
                path = "/".join((*folder.parts, readable))
                self.unreadable[path] = "its name is not valid text"
                continue
            names.append(name)
            if name.endswith(files.TEMPORARY):
                self._leftovers.append(f"{directory}/{name}")
        return names

    # --- ignore files ---

    def _with_own_ignores(self, folder: _Folder) -> _Folder:
        path = Path("/".join((self._root, *folder.parts, ".gitignore")))
        return _with_ignores(self._root, folder, path, len(folder.parts), self.unreadable)

    # --- files and folders ---

    def _entry(self, folder: _Folder, name: str, is_last: bool) -> _Folder | None:
        """Take note of a file, or return a folder that is to be looked into."""
        parts = (*folder.parts, name)
        path = f"{self._root}/{'/'.join(parts)}"
        try:
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                linked = self._through_link(folder, parts, path)
                if linked is None:
                    return None
                folder = linked
                status = Path(path).stat()
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None
        except OSError as error:
            if self._rules.wants(parts) or self._rules.enters(parts):
                self.unreadable["/".join(parts)] = error.strerror or str(error)
            return None
        if stat.S_ISDIR(status.st_mode):
            if self._rules.enters(parts) and not folder.ignored(parts, is_folder=True):
                return _Folder(parts, folder.ignores, folder.link, folder.real)
        elif is_last and stat.S_ISREG(status.st_mode) and self._rules.wants(parts):
            self._file(folder, parts, path, status)
        return None

    def _file(
        self, folder: _Folder, parts: tuple[str, ...], path: str, status: os.stat_result
    ) -> None:
        # A text that is listed under its own name is not listed again under that of a link.
        if folder.link:
            own_name = "/".join((*folder.real, *parts[folder.link :]))
            if self._rules.lists(own_name):
                return
        if folder.ignored(parts, is_folder=False):
            return
        name = "/".join(parts)
        if os.access(path, os.R_OK):
            self.stamps[name] = stamp(status)
            self.modified[name] = status.st_mtime_ns
        else:
            self.unreadable[name] = "permission denied"

    def _through_link(self, folder: _Folder, parts: tuple[str, ...], path: str) -> _Folder | None:
        """Follow a link that stays inside, and only one on any path.

        Otherwise links could form cycles, or multiply the files without end.
        """
        if folder.link:
            return None
        # Compared part by part, because Windows writes paths with another separator.
        real = Path(os.path.realpath(path))
        is_inside = real.is_relative_to(self._root) and real != Path(self._root)
        leads_to_parent = Path(path).is_relative_to(real)
        if leads_to_parent or not is_inside:
            return None
        real_parts = real.relative_to(self._root).parts
        if self._rules.hides_any(real_parts):
            return None
        if real.is_dir():
            self._linked += 1
            if self._linked > LINKED_FOLDERS:
                self.unreadable["/".join(parts)] = f"more than {LINKED_FOLDERS} linked folders"
                return None
        return _Folder(folder.parts, folder.ignores, len(parts), real_parts)


def _with_ignores(
    root: str,
    folder: _Folder,
    path: Path,
    skip: int,
    unreadable: dict[str, str],
    above: tuple[str, ...] = (),
) -> _Folder:
    """Return a folder with one more ignore file, as far as all of them are cheap to follow."""
    name = os.path.relpath(path, root)
    try:
        file = ignore_file(files.read_bytes(path, IGNORE_LIMIT))
    except NotFoundError:
        return folder
    except RagdocsError as error:  # git goes on without it too
        unreadable[name] = f"its patterns are not followed: {error.message}"
        return folder
    room = MOST_STEPS - sum(ignores.file.steps for ignores in folder.ignores)
    followed = file.limited(room)
    if followed is not file:
        part = "none of its patterns"
        if followed.globs:
            part = f"only the last {len(followed.globs)} of its globs"
        unreadable[name] = f"{part} are followed: there are more than {MOST_STEPS} for one folder"
    return replace(folder, ignores=(*folder.ignores, _Ignores(followed, skip, above)))


def _repository_above(root: Path) -> Path | None:
    for folder in (root, *root.parents):
        if os.path.lexists(folder / ".git"):
            return folder
    return None


def _is_text(name: str) -> bool:
    """Return whether a file name can be written in an answer.

    Bytes that are no text stand in it as half characters.
    """
    if name.isascii():
        return True
    return not any("\ud800" <= character <= "\udfff" for character in name)
