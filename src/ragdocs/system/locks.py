"""A lock on a directory, across processes and threads, that ends with its holder."""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ragdocs.errors import LockAcquisitionError, RagdocsError
from ragdocs.system import files, platform, processes
from ragdocs.system.folder import open_directory

try:
    import fcntl
except ImportError:  # Windows has none; lock files take its place
    fcntl = None  # type: ignore[assignment]

LOCK_FILE = ".ragdocs-lock"
# A lock file cannot be waited for, only looked at; a commit holds it for some ten milliseconds.
POLL_SECONDS = 0.002
# No commit takes so long; an older lock file belongs to a machine that is gone or a process id that
# was reused.
STALE_SECONDS = 600.0
# File systems answer these where they cannot lock a directory (NFS wants it open for writing).
NO_FLOCK = frozenset({errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})

Release = Callable[[], None]

_held: set[int] = set()


def _forget_locks_in_child() -> None:
    # A child made by fork shares the lock and would keep it after its parent is killed.
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks_in_child)


@contextlib.contextmanager
def lock(directory: Path, timeout: float = 5.0, shared: bool = False) -> Iterator[None]:
    """Hold a directory against other processes and threads; several may hold it shared.

    Not re-entrant.
    """
    deadline = time.monotonic() + timeout
    release = _try_lock(directory, shared, deadline)
    while release is None:
        if time.monotonic() >= deadline:
            raise _timeout_error(directory, timeout)
        release = _try_lock(directory, shared, deadline)
    try:
        yield
    finally:
        release()


def _timeout_error(directory: Path, timeout: float) -> LockAcquisitionError:
    holder = _holder(directory)
    pronoun = "it"
    if not holder:
        holder = "another program"
        pronoun = "that program"
    return LockAcquisitionError(
        f"{directory} was locked by {holder} for more than {timeout:g} seconds",
        f"Nothing was written. Wait until {pronoun} is done, or end it, and try again. "
        "Reading and searching go on meanwhile",
    )


def _try_lock(directory: Path, shared: bool, deadline: float) -> Release | None:
    if fcntl is None or platform.is_portable():
        return _try_lock_file(directory)
    with files.explained("lock", directory):
        descriptor = open_directory(directory)
        _held.add(descriptor)
        operation = fcntl.LOCK_EX
        if shared:
            operation = fcntl.LOCK_SH
        try:
            fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            if not _Waiter(descriptor, operation).got_it(deadline):
                return None
        except OSError as error:
            _release(descriptor)
            if error.errno in NO_FLOCK:
                return _try_lock_file(directory)
            raise
        try:
            # The directory may have been removed and made anew (a checkout) since it was opened.
            if os.path.samestat(os.fstat(descriptor), directory.stat()):
                return functools.partial(_release, descriptor)
        except OSError:
            _release(descriptor)
            raise
        _release(descriptor)
        return None


class _Waiter(threading.Thread):
    """Waits in the kernel's queue, in a thread of its own because flock has no timeout.

    Whoever polls instead may be overtaken until it gives up.
    """

    def __init__(self, descriptor: int, operation: int) -> None:
        super().__init__(name="ragdocs-lock", daemon=True)
        self._descriptor = descriptor
        self._operation = operation
        self._turn = threading.Lock()
        self._left = False
        self._got: bool | None = None

    def got_it(self, deadline: float) -> bool:
        """Wait until the lock is held or the deadline has passed.

        A lock that comes after the deadline is released at once.
        """
        patience = deadline - time.monotonic()
        if patience > 0:
            self.start()
            self.join(patience)
            with self._turn:
                self._left = self._got is None
            if self._left or self._got:
                return bool(self._got)
        _release(self._descriptor)
        return False

    def run(self) -> None:
        """Wait for the lock."""
        got = False
        with contextlib.suppress(OSError):
            fcntl.flock(self._descriptor, self._operation)
            got = True
        with self._turn:
            self._got = got
            if self._left:
                _release(self._descriptor)


def _holder(directory: Path) -> str:
    """Name the process that holds a directory, where the system tells, or nothing."""
    with contextlib.suppress(OSError, RagdocsError, ValueError, KeyError, TypeError):
        if (directory / LOCK_FILE).exists():
            record = json.loads(files.read_bytes(directory / LOCK_FILE))
            return f"process {int(record['pid'])} on {str(record['host'])[:80]}"
        status = directory.stat()
        device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
        inode = f"{device}:{status.st_ino}"
        for line in Path("/proc/locks").read_text(encoding="utf-8").splitlines():
            # As in "1: FLOCK  ADVISORY  WRITE 4711 fe:00:123 0 EOF"; a waiter has an arrow for a
            # second word.
            words = line.split()
            if words[1:2] == ["FLOCK"] and inode in words:
                return _process(int(words[words.index(inode) - 1]))
    return ""


def _process(pid: int) -> str:
    if pid == os.getpid():
        return "another call to this server"
    name = processes.name(pid)[:40]
    if not name:
        # A process of another container has no number here.
        return ""
    return f"process {pid} ({name})"


def _release(descriptor: int) -> None:
    if descriptor in _held:
        _held.discard(descriptor)
        # The lock is gone with the descriptor, even if closing it fails.
        with contextlib.suppress(OSError):
            os.close(descriptor)


def _try_lock_file(directory: Path) -> Release | None:
    """Take the lock by creating a file; every holder is exclusive here."""
    holder = {
        "pid": os.getpid(),
        "host": platform.host_name(),
        "at": time.time(),
        "token": os.urandom(8).hex(),
    }
    record = json.dumps(holder).encode()
    with files.explained("lock", directory), files.Folder(directory) as folder:
        try:
            descriptor = folder.open(LOCK_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            _break_stale(folder)
            time.sleep(POLL_SECONDS)
            return None
        except PermissionError:
            if not platform.is_windows():
                raise
            # A file that is being removed keeps its name there for as long as somebody reads it.
            time.sleep(POLL_SECONDS)
            return None
        try:
            files.write_all(descriptor, record)
        except OSError:
            # On a full disk, an empty lock file would keep everybody out until it is stale.
            _close_and_remove(folder, descriptor)
            raise
        os.close(descriptor)
    return functools.partial(_release_file, directory, record)


def _close_and_remove(folder: files.Folder, descriptor: int) -> None:
    """Take back a lock file that could not be written."""
    with contextlib.suppress(OSError):
        os.close(descriptor)
    with contextlib.suppress(OSError):
        folder.unlink(LOCK_FILE)


def _release_file(directory: Path, record: bytes) -> None:
    with contextlib.suppress(OSError), files.Folder(directory) as folder:
        _remove_if(folder, record)


def _remove_if(folder: files.Folder, record: bytes) -> None:
    """Remove a lock file if it still holds this record; another holder's goes back to its place."""
    aside = f".{os.urandom(8).hex()}{files.TEMPORARY}"
    with contextlib.suppress(OSError):
        folder.replace(LOCK_FILE, aside)
        if files.read_from(folder, aside)[0] != record:
            with contextlib.suppress(FileExistsError):
                folder.link(aside, LOCK_FILE)
        folder.unlink(aside)


def _break_stale(folder: files.Folder) -> None:
    try:
        record, status = files.read_from(folder, LOCK_FILE)
        holder = json.loads(record)
        here = holder["host"] == platform.host_name()
        dead = here and not processes.is_alive(int(holder["pid"]))
    except FileNotFoundError:
        return
    except (ValueError, KeyError, TypeError):  # its holder has not written it yet, or never will
        dead = False
    if dead or time.time() - status.st_mtime > STALE_SECONDS:
        _remove_if(folder, record)
