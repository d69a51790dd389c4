"""A directory that is held open.

Reached without following a link, and changed by names relative to it.

What a path leads to may change between a check and a write: `git pull` can put a link in the place
of a folder. A descriptor leads to the same directory for as long as it is open.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from pathlib import Path
from typing import Self

# Each flag is missing on some platform, where nothing takes its place.
OPEN = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_DIRECTORY = OPEN | getattr(os, "O_DIRECTORY", 0)
# A folder on the way need not be readable: passing through it is enough.
_PASS_THROUGH = _DIRECTORY | getattr(os, "O_PATH", 0)
# Windows has neither descriptors of folders nor this flag; links are looked for by name there.
_BY_DESCRIPTOR = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")


class Folder:
    """A directory without a link anywhere in its path.

    Where there is one, an OSError (ELOOP) names it.

    Whoever trusts a link, because it is in the user's own folders, resolves it before.
    """

    def __init__(self, path: Path, make: int | None = None) -> None:
        """Open the folder; with the mode `make`, create it and its missing parents before.

        Durably.
        """
        self.path = path
        self._descriptor: int | None = None
        if _BY_DESCRIPTOR:
            self._descriptor = _opened(path, make)
        else:
            _look_at(path, make)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the directory, through which nothing was written that closing it could lose."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """Open a file here, which may not be a link, and return its descriptor."""
        return os.open(self._named(name), flags | OPEN, mode, dir_fd=self._descriptor)

    def status(self, name: str) -> os.stat_result | None:
        """Return the state of an entry itself, or nothing where there is none."""
        try:
            return os.stat(self._named(name), dir_fd=self._descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def names(self) -> list[str]:
        """List the names of all entries, in order."""
        return sorted(os.listdir(self.path if self._descriptor is None else self._descriptor))  # noqa: PTH208 - a descriptor

    def replace(self, name: str, new_name: str) -> None:
        """Give an entry another name here; what had that name before is gone."""
        source, target = self._named(name), self._named(new_name)
        os.replace(source, target, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def move(self, name: str, target: Folder, new_name: str) -> None:
        """Move an entry to another folder of the same file system."""
        source, destination = self._named(name), target._named(new_name)
        os.rename(source, destination, src_dir_fd=self._descriptor, dst_dir_fd=target._descriptor)

    def link(self, name: str, new_name: str) -> None:
        """Give a file a second name here, unless something has it already."""
        source, target = self._named(name), self._named(new_name)
        os.link(source, target, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def unlink(self, name: str) -> None:
        """Remove a file, or a link itself."""
        os.unlink(self._named(name), dir_fd=self._descriptor)

    def remove_tree(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it.

        Links are removed and never followed.
        """
        status = self.status(name)
        if status is not None and stat.S_ISDIR(status.st_mode):
            shutil.rmtree(self._named(name), dir_fd=self._descriptor)
        elif status is not None:
            self.unlink(name)

    def sync(self) -> None:
        """Make the names here durable.

        Windows needs no such call, because NTFS journals names by itself.
        """
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def _named(self, name: str) -> str:
        return name if self._descriptor is not None else str(self.path / name)


def open_directory(path: Path) -> int:
    """Return a descriptor of a directory that has no link in its path; the caller closes it."""
    return _opened(path)


def _opened(path: Path, mode: int | None = None) -> int:
    """Walk down to a directory, one folder after the other.

    With `mode`, create those that are missing.
    """
    anchor, *names = path.absolute().parts
    descriptor = os.open(anchor, _PASS_THROUGH if names else _DIRECTORY)
    for number, name in enumerate(names, start=1):
        flags = _DIRECTORY if number == len(names) else _PASS_THROUGH
        try:
            below = _step(descriptor, name, flags, mode)
        except OSError as error:
            if _is_link(descriptor, name):
                linked = Path(anchor, *names[:number])
                raise OSError(errno.ELOOP, f"{linked} is a symbolic link", str(linked)) from error
            raise
        finally:
            os.close(descriptor)
        descriptor = below
    return descriptor


def _step(descriptor: int, name: str, flags: int, mode: int | None) -> int:
    try:
        return os.open(name, flags, dir_fd=descriptor)
    except FileNotFoundError:
        if mode is None:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, mode, dir_fd=descriptor)
    # A descriptor that only passes through cannot be synced.
    readable = os.open(".", _DIRECTORY, dir_fd=descriptor)
    try:
        os.fsync(readable)
    finally:
        os.close(readable)
    return os.open(name, flags, dir_fd=descriptor)


def _is_link(descriptor: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _look_at(path: Path, make: int | None) -> None:
    """Refuse a path with a link or a junction in it, as far as names can tell."""
    whole = path.absolute()
    for place in (*reversed(whole.parents), whole):
        if make is not None and not os.path.lexists(place):
            with contextlib.suppress(FileExistsError):
                place.mkdir(make)
        status = place.lstat()
        junction = getattr(status, "st_reparse_tag", 0) == getattr(
            stat, "IO_REPARSE_TAG_MOUNT_POINT", -1
        )
        if stat.S_ISLNK(status.st_mode) or junction:
            raise OSError(errno.ELOOP, f"{place} is a symbolic link", str(place))
