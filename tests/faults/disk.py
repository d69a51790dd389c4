"""File calls that can be counted, stopped and failed, and a disk that forgets."""

from __future__ import annotations

import errno
import fcntl
import functools
import itertools
import os
import random
import shutil
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

# Calls that change something, and calls that only look; those that ask for a file's state are left
# out to save time.
CHANGES = (
    "open", "write", "pwrite", "writev", "sendfile", "copy_file_range", "fsync", "fdatasync",
    "replace", "rename", "link", "symlink", "unlink", "remove", "mkdir", "rmdir", "truncate",
    "ftruncate", "posix_fallocate", "fchmod", "chmod", "fchown", "chown", "lchown", "utime",
    "mkfifo", "mknod", "setxattr",
)  # fmt: skip
LOOKS = ("read", "scandir", "listdir", "close", "flock")

Go = Callable[[], Any]
Blow = Callable[["Call"], Any]


class KilledError(BaseException):
    """Stands for the end of the process: whoever catches it finds that no call works any more."""


class Call:
    """One file call: its number, its name, how to make it, and the folder it is made in."""

    def __init__(
        self,
        number: int,
        name: str,
        go: Callable[..., Any],
        arguments: Sequence[Any],
        folder: int | None = None,
    ) -> None:
        self.number = number
        self.name = name
        self._go = go
        self.arguments = arguments
        self._folder = folder

    @property
    def path(self) -> Path:
        """The file that the call names first."""
        return Path(
            "" if self._folder is None else f"/proc/self/fd/{self._folder}", self.arguments[0]
        )

    def go(self) -> Any:
        return self._go(*self.arguments)

    def half(self) -> Any:
        """Write only the first half of what is to be written."""
        descriptor, data = self.arguments
        return self._go(descriptor, bytes(data)[: (len(data) + 1) // 2])


@contextmanager
def struck(blow: Blow, calls: Sequence[str] = CHANGES) -> Iterator[list[str]]:
    """Let `blow` decide on every file call of this thread; give the names of the calls."""
    log: list[str] = []
    own = threading.get_ident()
    # Folders on the way to another one: passing through them changes nothing, and every call has
    # many of them.
    passed: set[int] = set()

    def guarded(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if threading.get_ident() != own:
                return original(*arguments, **options)
            if name == "open" and arguments[1] & os.O_PATH:
                passed.add(descriptor := original(*arguments, **options))
                return descriptor
            if name == "close" and arguments[0] in passed:
                passed.discard(arguments[0])
                return original(*arguments)
            log.append(name)
            go = functools.partial(original, **options)
            return blow(Call(len(log), name, go, arguments, options.get("dir_fd")))

        return call

    with pytest.MonkeyPatch.context() as patched:
        for name in calls:
            home = fcntl if name == "flock" else os
            if hasattr(home, name):
                patched.setattr(home, name, guarded(name, getattr(home, name)))
        yield log


def kill(at: int, *, torn: bool = False) -> Blow:
    """End the process before a call, or in the middle of what it writes."""

    def blow(call: Call) -> Any:
        if call.number < at:
            return call.go()
        if torn and call.number == at:
            call.half()
        raise KilledError

    return blow


def fail(at: int, code: int, *, lasting: bool = False) -> Blow:
    """Let one call fail, or every call that changes something from there on."""

    def blow(call: Call) -> Any:
        if call.number == at or (
            lasting and call.number > at and call.name in CHANGES and not _only_reads(call)
        ):
            if call.name == "close":
                # The descriptor is gone even when closing tells of an error.
                call.go()
            raise OSError(code, os.strerror(code))
        return call.go()

    return blow


def _only_reads(call: Call) -> bool:
    return call.name == "open" and not call.arguments[1] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)


def shorten(at: int, *, full: bool) -> Blow:
    """Let one write take half of its bytes; the next one finds the disk full, or goes on."""

    def blow(call: Call) -> Any:
        if call.number == at:
            return call.half()
        if full and call.number > at and call.name == "write":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return call.go()

    return blow


class Platter:
    """What a disk holds of a folder when the power fails: names and bytes of the last sync."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._numbers = itertools.count()
        # A file system gives an inode that was freed to the next file, which is another file.
        self._own: dict[int, int] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._bytes: dict[int, bytes] = {}
        for folder, _, files in os.walk(root):
            self._sync(Path(folder))
            for name in files:
                self._sync(Path(folder, name))

    def watch(self, blow: Blow) -> Blow:
        """Follow the calls that come through."""

        def blown(call: Call) -> Any:
            new = call.name in {"open", "mkdir"} and not os.path.lexists(call.path)
            result = blow(call)
            if new and os.path.lexists(call.path):
                self._own[os.lstat(call.path).st_ino] = next(self._numbers)
            if call.name in {"fsync", "fdatasync"}:
                self._sync(Path(f"/proc/self/fd/{call.arguments[0]}").readlink())
            return result

        return blown

    def unsynced(self) -> list[str]:
        """List the files and folders that a power cut would take away or change."""
        lost = []
        for place in [path for path in self._root.rglob("*") if not path.is_symlink()]:
            status = place.stat()
            number = self._number(status.st_ino)
            named = self._names[self._number(place.parent.stat().st_ino)].get(place.name) == number
            if not named or (
                stat.S_ISREG(status.st_mode) and self._bytes.get(number) != place.read_bytes()
            ):
                lost.append(place.relative_to(self._root).as_posix())
        return lost

    def restart(self, target: Path, chooser: random.Random | None = None) -> Path:
        """Make what the disk holds anew; a chooser adds any part of what was not synced."""
        shutil.rmtree(target, ignore_errors=True)
        self._restore(target, self._number(self._root.stat().st_ino), self._root, chooser)
        return target

    def _restore(
        self, target: Path, number: int, now: Path | None, chooser: random.Random | None
    ) -> None:
        target.mkdir()
        durable = self._names.get(number, {})
        present = (
            {e.name: self._number(e.inode()) for e in os.scandir(now)}
            if now and now.is_dir()
            else {}
        )
        for name in sorted({*durable, *present}):
            late = chooser is not None and chooser.random() < 0.5
            chosen = (present if late else durable).get(name)
            if chosen is None:
                continue
            here = now / name if now and present.get(name) == chosen else None
            if chosen in self._names or (here and here.is_dir()):
                self._restore(target / name, chosen, here, chooser)
            else:
                written = here is not None and chooser is not None and chooser.random() < 0.5
                data = here.read_bytes() if here and written else self._bytes.get(chosen, b"")
                (target / name).write_bytes(data)

    def _sync(self, place: Path) -> None:
        number = self._number(place.lstat().st_ino)
        if place.is_dir():
            self._names[number] = {
                entry.name: self._number(entry.inode()) for entry in os.scandir(place)
            }
        else:
            self._bytes[number] = place.read_bytes()

    def _number(self, inode: int) -> int:
        if inode not in self._own:
            self._own[inode] = next(self._numbers)
        return self._own[inode]
