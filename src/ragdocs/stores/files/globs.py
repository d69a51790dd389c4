"""Which files of a tree belong to a lane? Globs, ignore files, and a walk that follows both."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ragdocs.errors import NotFoundError, RagdocsError
from ragdocs.lanes import Lane
from ragdocs.stores.files.patterns import IgnoreFile, Pattern, glob_segments, ignore_file
from ragdocs.system import files as fsio
from ragdocs.system import git
from ragdocs.system.names import INTERNAL

# Other people's packages and machine-made files; nobody means them by docs/**.
SKIPPED = frozenset({"node_modules", "site-packages", "venv", "__pycache__"})
# Larger than any ignore file a person keeps; compiling more would only serve an attacker.
IGNORE_LIMIT = 65_536
# What all ignore files together may cost for one path; a hundred times what a repository has.
MOST_STEPS = 1_000
# A clone may hold thousands of links to one large folder, each of which would be walked.
LINKED_FOLDERS = 100
# No write takes so long: an older temporary file belongs to a process that was killed.
LEFTOVER_SECONDS = 3600
# File times move in ticks of up to some ten milliseconds: two writes within one tick look the same
# to a scan.
RACY_SECONDS = 0.05


class Rules:
    """What a lane includes, by name alone."""

    def __init__(self, lane: Lane) -> None:
        self.gitignore = lane.gitignore
        self._globs = lane.include
        self._internal = INTERNAL if lane.writable else frozenset()
        self._include = [Pattern(glob_segments(glob)) for glob in lane.include]
        self._exclude = [Pattern(glob_segments(glob)) for glob in lane.exclude]

    def places(self) -> list[tuple[str, bool]]:
        """List the folders that the globs begin in, and whether each glob reaches further down."""
        found = []
        for names in (glob.split("/") for glob in self._globs):
            fixed = list(
                itertools.takewhile(lambda name: not re.search(r"[*?[\\]", name), names[:-1])
            )
            found.append(("/".join(fixed), len(names) > len(fixed) + 1))
        return list(dict.fromkeys(found))

    def hides(self, name: str, top: bool) -> bool:
        """Tell whether a name is never looked at; `top` says that it is in the root itself."""
        return (
            name.startswith(".") or name in SKIPPED or (top and name.casefold() in self._internal)
        )

    def enters(self, folder: Sequence[str]) -> bool:
        """Tell whether files below this folder can be wanted."""
        return any(glob.may_match_below(folder) for glob in self._include) and not self._excludes(
            folder
        )

    def wants(self, path: Sequence[str]) -> bool:
        """Tell whether a file is wanted, its folders being entered."""
        return any(glob.matches(path) for glob in self._include) and not self._excludes(path)

    def lists(self, path: str) -> bool:
        """Tell whether a walk lists a file at this path, as far as names decide."""
        parts = path.split("/")
        return (
            not any(self.hides(name, index == 0) for index, name in enumerate(parts))
            and all(self.enters(parts[:depth]) for depth in range(1, len(parts)))
            and self.wants(parts)
        )

    def _excludes(self, path: Sequence[str]) -> bool:
        return any(glob.matches(path) for glob in self._exclude)


def stamp(status: os.stat_result) -> str:
    """Tell one state of a file from the next without reading it."""
    return f"{status.st_size}-{status.st_mtime_ns}-{status.st_ctime_ns}-{status.st_ino}"


def stamp_as_read(status: os.stat_result, moment: float) -> str:
    """Stamp what was read; a file that has just changed gets a stamp that no scan gives.

    A second write within the same tick of the file system's clock, of the same length, would leave
    size and times as they were: the change would never be seen. With a stamp of its own the file is
    simply read again next time.
    """
    # The change time moves with every write and cannot be set by hand; a time in the far future is
    # not racy.
    racy = any(abs(moment - at) < RACY_SECONDS for at in (status.st_mtime, status.st_ctime))
    return f"racy-{stamp(status)}" if racy else stamp(status)


@dataclass(frozen=True, slots=True)
class _Ignores:
    """An ignore file that reaches a folder.

    `skip` and `above` make a path relative to the file's own folder.
    """

    file: IgnoreFile
    skip: int
    above: tuple[str, ...] = ()

    def decides(self, path: Sequence[str], folder: bool) -> bool | None:
        """Tell whether the path is ignored, or nothing if no pattern speaks of it."""
        return self.file.decides((*self.above, *path[self.skip :]), folder)


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder still to be looked into.

    `real` is its own place, if a link at depth `link` led here.
    """

    parts: tuple[str, ...] = ()
    ignores: tuple[_Ignores, ...] = ()
    link: int = 0
    real: tuple[str, ...] = ()


class Walk:
    """One look at a tree, whole or in parts.

    `stamps` of files, and what was `unreadable` and why.
    """

    def __init__(self, root: Path, rules: Rules) -> None:
        self.stamps: dict[str, str] = {}
        self.unreadable: dict[str, str] = {}
        self._rules = rules
        self._root = str(root).rstrip("/")
        self._leftovers: list[str] = []
        self._linked = 0
        self._start = self._ignores_above(root) if rules.gitignore else _Folder()

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
                folder = self._with_ignores(folder)
            for name in names:
                if name and not self._rules.hides(name, depth == 0):
                    found = self._entry(folder, name, depth + 1 >= len(wanted))
                    if found is not None:
                        pending.append(found)

    def sweep(self) -> None:
        """Remove temporary files that killed processes left behind."""
        for leftover in self._leftovers:
            with contextlib.suppress(RagdocsError):
                fsio.sweep(Path(leftover), LEFTOVER_SECONDS)

    def _names(self, folder: _Folder) -> list[str]:
        place = "/".join((self._root, *folder.parts)) or "/"
        try:
            with os.scandir(place) as entries:
                found = sorted(entry.name for entry in entries)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            self.unreadable["/".join(folder.parts)] = error.strerror or str(error)
            return []
        names = [name for name in found if _is_text(name)]
        for name in set(found) - set(names):
            shown = name.encode("utf-8", "replace").decode()
            self.unreadable["/".join((*folder.parts, shown))] = "its name is not valid text"
        self._leftovers += [f"{place}/{name}" for name in names if name.endswith(fsio.TEMPORARY)]
        return names

    def _with_ignores(self, folder: _Folder) -> _Folder:
        place = Path("/".join((self._root, *folder.parts, ".gitignore")))
        return self._extended(folder, place, len(folder.parts))

    def _extended(
        self, folder: _Folder, place: Path, skip: int, above: tuple[str, ...] = ()
    ) -> _Folder:
        """Return a folder with one more ignore file.

        As far as all of them together are cheap to follow.
        """
        shown = os.path.relpath(place, self._root)
        try:
            file = ignore_file(fsio.read_bytes(place, IGNORE_LIMIT))
        except NotFoundError:
            return folder
        except RagdocsError as error:  # git goes on without it too
            self.unreadable[shown] = f"its patterns are not followed: {error.message}"
            return folder
        room = MOST_STEPS - sum(ignores.file.steps for ignores in folder.ignores)
        followed = file.limited(room)
        if followed is not file:
            part = (
                f"only the last {len(followed.globs)} of its globs"
                if followed.globs
                else "none of its patterns"
            )
            self.unreadable[shown] = (
                f"{part} are followed: there are more than {MOST_STEPS} for one folder"
            )
        ignores = (*folder.ignores, _Ignores(followed, skip, above))
        return _Folder(folder.parts, ignores, folder.link, folder.real)

    def _ignores_above(self, root: Path) -> _Folder:
        """Collect the rules of a repository that reach a root inside it.

        Its exclude file, the folders on the way.
        """
        folder = _Folder()
        top = next(
            (place for place in (root, *root.parents) if os.path.lexists(place / ".git")), None
        )
        if top is None:
            return folder
        below = root.relative_to(top).parts
        # Worktrees share one exclude file; that of a repository that cannot be believed is not
        # read.
        shared = git.common_dir(top)
        if shared is not None:
            folder = self._extended(folder, shared / "info" / "exclude", 0, below)
        for depth in range(len(below)):
            folder = self._extended(
                folder, top.joinpath(*below[:depth], ".gitignore"), 0, below[depth:]
            )
        return folder

    def _entry(self, folder: _Folder, name: str, last: bool) -> _Folder | None:
        parts = (*folder.parts, name)
        path = "/".join(parts)
        place = f"{self._root}/{path}"
        try:
            status = os.lstat(place)
            if stat.S_ISLNK(status.st_mode):
                linked = self._through_link(folder, parts, place)
                if linked is None:
                    return None
                folder = linked
                status = Path(place).stat()
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None
        except OSError as error:
            if self._rules.wants(parts) or self._rules.enters(parts):
                self.unreadable[path] = error.strerror or str(error)
            return None
        if stat.S_ISDIR(status.st_mode):
            enter = self._rules.enters(parts) and not _ignored(folder, parts, is_folder=True)
            return _Folder(parts, folder.ignores, folder.link, folder.real) if enter else None
        if last and stat.S_ISREG(status.st_mode) and self._rules.wants(parts):
            self._file(folder, parts, place, status)
        return None

    def _file(
        self, folder: _Folder, parts: tuple[str, ...], place: str, status: os.stat_result
    ) -> None:
        # A text that is listed under its own name is not listed again under that of a link.
        if folder.link and self._rules.lists("/".join((*folder.real, *parts[folder.link :]))):
            return
        if _ignored(folder, parts, is_folder=False):
            return
        if os.access(place, os.R_OK):
            self.stamps["/".join(parts)] = stamp(status)
        else:
            self.unreadable["/".join(parts)] = "permission denied"

    def _through_link(self, folder: _Folder, parts: tuple[str, ...], place: str) -> _Folder | None:
        """Follow a link that stays inside, once on any path.

        So that there are neither cycles nor explosions.
        """
        real = os.path.realpath(place)
        inside = real.startswith(f"{self._root}/")
        if folder.link or not inside or f"{place}/".startswith(f"{real}/"):
            return None
        own = tuple(real[len(self._root) + 1 :].split("/"))
        if any(self._rules.hides(name, index == 0) for index, name in enumerate(own)):
            return None
        if Path(real).is_dir():
            self._linked += 1
            if self._linked > LINKED_FOLDERS:
                self.unreadable["/".join(parts)] = f"more than {LINKED_FOLDERS} linked folders"
                return None
        return _Folder(folder.parts, folder.ignores, len(parts), own)


def _is_text(name: str) -> bool:
    """Tell whether a file name can be written in an answer.

    Other bytes stand in it as half characters.
    """
    return name.isascii() or not any("\ud800" <= character <= "\udfff" for character in name)


def _ignored(folder: _Folder, parts: Sequence[str], is_folder: bool) -> bool:
    verdicts = (ignores.decides(parts, is_folder) for ignores in reversed(folder.ignores))
    return bool(next((verdict for verdict in verdicts if verdict is not None), False))
