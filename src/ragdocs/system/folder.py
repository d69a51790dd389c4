"""A directory that is held open, reached without following a link.

A path may lead elsewhere between a check and a write: `git pull` can put a link in the place of a
folder. A descriptor leads to the same directory for as long as it is open.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from ragdocs.system import platform

# Each flag is missing on some platform, where nothing takes its place.
OPEN = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_DIRECTORY = OPEN | getattr(os, "O_DIRECTORY", 0)
# A folder on the way need not be readable: passing through it is enough.
_PASS_THROUGH = _DIRECTORY | getattr(os, "O_PATH", 0)
# Windows has neither descriptors of folders nor this flag; links are looked for by name there.
_HAS_DESCRIPTORS = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
# Windows neither replaces nor removes a file that somebody has open, be it for a moment.
OPEN_SECONDS = 2.0
_PAUSE_SECONDS = 0.01
_JUNCTION = getattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", -1)


class Folder:
    """A directory without a link anywhere in its path; an OSError (ELOOP) names a link.

    Callers that trust a link, because it is in the user's own folders, resolve it before.
    """

    def __init__(self, path: Path, make: int | None = None) -> None:
        """Open the folder; with the mode `make`, durably create it and its missing parents."""
        self.path = path
        self._descriptor: int | None = None
        if platform.is_portable() or not _HAS_DESCRIPTORS:
            _refuse_links(path, make)
        else:
            self._descriptor = _opened(path, make)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the directory; an error in that loses nothing."""
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
        if self._descriptor is None:
            return sorted(path.name for path in self.path.iterdir())
        return sorted(os.listdir(self._descriptor))  # noqa: PTH208 - a descriptor

    def replace(self, name: str, new_name: str) -> None:
        """Give an entry another name here; what had that name before is gone."""
        _patiently(
            lambda: os.replace(
                self._named(name),
                self._named(new_name),
                src_dir_fd=self._descriptor,
                dst_dir_fd=self._descriptor,
            )
        )

    def move(self, name: str, target: Folder, new_name: str) -> None:
        """Move an entry to another folder of the same file system."""
        _patiently(
            lambda: os.rename(
                self._named(name),
                target._named(new_name),
                src_dir_fd=self._descriptor,
                dst_dir_fd=target._descriptor,
            )
        )

    def link(self, name: str, new_name: str) -> None:
        """Give a file a second name here, unless something has it already."""
        os.link(
            self._named(name),
            self._named(new_name),
            src_dir_fd=self._descriptor,
            dst_dir_fd=self._descriptor,
        )

    def unlink(self, name: str) -> None:
        """Remove a file, or a link itself."""
        _patiently(lambda: os.unlink(self._named(name), dir_fd=self._descriptor))

    def touch(self, name: str) -> None:
        """Make an empty file, unless there is a file of that name."""
        os.close(self.open(name, os.O_WRONLY | os.O_CREAT))

    def remove_tree(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it; links are never followed."""
        status = self.status(name)
        if status is None:
            return
        if stat.S_ISDIR(status.st_mode):
            import shutil

            shutil.rmtree(self._named(name), dir_fd=self._descriptor)
        else:
            self.unlink(name)

    def sync(self) -> None:
        """Make the names here durable."""
        # Windows needs no such call, because NTFS journals names by itself.
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def _named(self, name: str) -> str:
        if self._descriptor is None:
            return str(self.path / name)
        return name


def _patiently(action: Callable[[], None]) -> None:
    """Do something to a file that may be open elsewhere; where that hinders, try for a while."""
    deadline = time.monotonic()
    if platform.is_windows() or platform.is_portable():
        deadline += OPEN_SECONDS
    while True:
        try:
            return action()
        except PermissionError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(_PAUSE_SECONDS)


def open_directory(path: Path) -> int:
    """Return a descriptor of a directory that has no link in its path; the caller closes it."""
    return _opened(path)


def _opened(path: Path, mode: int | None = None) -> int:
    """Walk down to a directory, one folder after the other; with `mode`, create missing ones."""
    anchor, *names = path.absolute().parts
    if not names:
        return os.open(anchor, _DIRECTORY)
    descriptor = os.open(anchor, _PASS_THROUGH)
    flags = _PASS_THROUGH
    for number, name in enumerate(names, start=1):
        if number == len(names):
            flags = _DIRECTORY
        try:
            below = _step(descriptor, name, flags, mode)
        except OSError as error:
            if _is_link(descriptor, name):
                raise _link_error(Path(anchor, *names[:number])) from error
            raise
        finally:
            os.close(descriptor)
        descriptor = below
    return descriptor


def _link_error(path: Path) -> OSError:
    return OSError(errno.ELOOP, f"{path} is a symbolic link", str(path))


def _step(descriptor: int, name: str, flags: int, mode: int | None) -> int:
    """Open a folder in an open one, and make it if it is missing and there is a mode."""
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
        status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISLNK(status.st_mode)


def _refuse_links(path: Path, make: int | None) -> None:
    """Refuse a path with a link or a junction in it, as far as names can tell."""
    whole = path.absolute()
    for folder in (*reversed(whole.parents), whole):
        if make is not None and not os.path.lexists(folder):
            with contextlib.suppress(FileExistsError):
                folder.mkdir(make)
        status = folder.lstat()
        is_junction = getattr(status, "st_reparse_tag", 0) == _JUNCTION
        if stat.S_ISLNK(status.st_mode) or is_junction:
            raise _link_error(folder)
