"""Files that survive and stay inside: atomic writes, checked names, contained paths."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from ragdocs.errors import (
    NotFoundError,
    RagdocsError,
    ReadOnlyError,
    RenameError,
    StorageError,
    ValidationError,
)
from ragdocs.names import relative_name

# Names and containment are asked for in one place, though the rules for names fill a module of their own.
__all__ = [
    "TEMPORARY",
    "append_line",
    "contained",
    "explain",
    "explained",
    "make_directories",
    "move",
    "read_bytes",
    "read_end",
    "read_file",
    "relative_name",
    "sync_directory",
    "write_atomic",
]

# Unfinished writes are told from everything else by this ending, so that leftovers of a killed process can be swept.
TEMPORARY = ".ragdocs-tmp"
SIZE_LIMIT = 10_000_000
# What is done to a change that is in place already; when it fails, a loss of power may still take the change back.
SYNC = "make durable"

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NO_PERMISSION = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})
# Each flag is missing on some platform, where nothing takes its place.
OPEN = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)


def explain(error: OSError, action: str, path: Path | str) -> RagdocsError:
    """Turn a refusal of the operating system into an error that says what to do."""
    what = f"cannot {action} {path}: {error.strerror or error}"
    left = "It has the old text or the new one: read it" if action == SYNC else "What was there before is untouched"
    if error.errno in _NO_SPACE:
        return StorageError(what, f"{left}. Free some space and try again")
    if error.errno in _NO_PERMISSION:
        kind = StorageError if action == "read" else ReadOnlyError
        return kind(what, "Check the permissions of the folder and whether its file system is mounted read-only")
    if error.errno in _ABSENT:
        return NotFoundError(what)
    if error.errno == errno.ELOOP:
        return StorageError(what, "It is a symbolic link; name the file itself")
    return StorageError(what, left)


@contextlib.contextmanager
def explained(action: str, path: Path | str) -> Iterator[None]:
    """Turn any OSError of the block into one of ours."""
    try:
        yield
    except OSError as error:
        raise explain(error, action, path) from error


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    if sys.platform == "win32":  # a directory cannot be opened there, and NTFS journals names by itself
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directories(path: Path, mode: int = 0o777) -> None:
    """Create a directory and its missing parents, durably."""
    with explained("create", path):
        missing = []
        while not path.exists():
            missing.append(path)
            path = path.parent
        for folder in reversed(missing):
            with contextlib.suppress(FileExistsError):
                folder.mkdir(mode)
            sync_directory(folder.parent)


def write_atomic(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Replace a file by these bytes, durably: at every moment it holds the old bytes or the new ones.

    An existing file keeps its permissions and owner; `mode` is for a new one.
    """
    with explained("write", path):
        try:
            before = path.lstat()
        except FileNotFoundError:
            before = None
        temporary = path.with_name(f".{secrets.token_hex(8)}{TEMPORARY}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | OPEN
        descriptor = os.open(temporary, flags, 0o666 if mode is None else mode)
        try:
            try:
                write_all(descriptor, data)
                if before is not None and stat.S_ISREG(before.st_mode):
                    _keep_permissions(descriptor, before)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            _rename_into_place(temporary, path)
        except (OSError, RagdocsError):  # what an interrupted write leaves is swept like that of a killed one
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        with explained(SYNC, path):
            sync_directory(path.parent)


def write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _keep_permissions(descriptor: int, before: os.stat_result) -> None:
    if not hasattr(os, "fchown"):  # Windows: the folder decides
        return
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        # Only the superuser may give files away; for anyone else the new owner is the one who wrote.
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


def _rename_into_place(temporary: Path, path: Path) -> None:
    try:
        temporary.replace(path)
    except OSError as error:
        if error.errno in _NO_PERMISSION:
            raise
        # Also EXDEV, when the file itself is a mount point: writing it in place could be torn, so nothing is written.
        hint = "What was there before is untouched; a file that is a mount point of its own cannot be replaced"
        raise RenameError(f"cannot move the new text into place at {path}: {error.strerror}", hint) from error


def move(source: Path, target: Path) -> None:
    """Move a file durably; between file systems it is copied and checked before the old one goes.

    The caller has made sure, under a lock, that nothing is at the target.
    """
    with explained("move", source):
        try:
            source.rename(target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            data = read_bytes(source, limit=sys.maxsize)
            write_atomic(target, data, mode=stat.S_IMODE(source.lstat().st_mode))
            if read_bytes(target, limit=sys.maxsize) != data:
                raise RenameError(f"the copy of {source} at {target} differs", "The original is untouched") from error
            source.unlink()
        with explained(SYNC, source):
            sync_directory(target.parent)
            sync_directory(source.parent)


def append_line(path: Path, line: bytes, *, mode: int = 0o666) -> None:
    """Append one line durably in one write, on a line of its own even after a torn one."""
    with explained("append to", path):
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | OPEN | _NONBLOCK, mode)
        try:
            size = os.fstat(descriptor).st_size
            torn = False
            if size:
                os.lseek(descriptor, size - 1, os.SEEK_SET)
                torn = os.read(descriptor, 1) != b"\n"
            record = (b"\n" if torn else b"") + line + b"\n"
            # A second write after a short one could land behind another process's line.
            if os.write(descriptor, record) != len(record):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if not size:
            sync_directory(path.parent)


def read_file(path: Path, limit: int = SIZE_LIMIT) -> tuple[bytes, os.stat_result]:
    """Read a regular file without following a link at its end, and its state before it was read."""
    with explained("read", path):
        # Without O_NONBLOCK, opening a pipe waits for a writer that may never come.
        descriptor = os.open(path, os.O_RDONLY | OPEN | _NONBLOCK)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise StorageError(f"cannot read {path}: it is not a regular file")
            parts = []
            left = limit + 1
            while left > 0 and (part := os.read(descriptor, min(left, 1 << 20))):
                parts.append(part)
                left -= len(part)
        finally:
            os.close(descriptor)
    if left <= 0:
        raise StorageError(f"cannot read {path}: it is larger than {limit / 1e6:g} MB", "Split it into smaller files")
    return b"".join(parts), status


def read_bytes(path: Path, limit: int = SIZE_LIMIT) -> bytes:
    """Read a regular file of at most `limit` bytes."""
    return read_file(path, limit)[0]


def read_end(path: Path, limit: int) -> tuple[bytes, bool]:
    """Read the last bytes of a regular file, `limit` at most, and tell whether there are more before them."""
    with explained("read", path):
        descriptor = os.open(path, os.O_RDONLY | OPEN | _NONBLOCK)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise StorageError(f"cannot read {path}: it is not a regular file")
            start = max(0, status.st_size - limit)
            os.lseek(descriptor, start, os.SEEK_SET)
            parts = []
            left = status.st_size - start
            while left > 0 and (part := os.read(descriptor, min(left, 1 << 20))):
                parts.append(part)
                left -= len(part)
        finally:
            os.close(descriptor)
    return b"".join(parts), start > 0


def map_file(path: Path, limit: int = SIZE_LIMIT) -> memoryview:
    """Return the bytes of a file that is replaced as a whole and never changed; pages come into memory when read."""
    with explained("read", path):
        descriptor = os.open(path, os.O_RDONLY | OPEN | _NONBLOCK)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
                raise StorageError(f"cannot read {path}: it is not a file of at most {limit / 1e6:g} MB")
            # Nothing cannot be mapped.
            return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) if status.st_size else b"")
        finally:
            os.close(descriptor)


def release(view: bytes | memoryview) -> None:
    """Let go of the pages of a mapped file that have been read; they come back from the file when read again."""
    if isinstance(view, memoryview) and isinstance(view.obj, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        view.obj.madvise(mmap.MADV_DONTNEED)


def contained(root: Path, relative: str, *, follow: bool = True) -> Path:
    """Resolve a path below a root that is resolved already, and refuse what leads outside.

    Links that stay inside are followed, or refused as well without `follow`.
    """
    named = root / relative
    try:
        path = Path(os.path.realpath(named))
    except ValueError:  # a NUL in the middle
        path = root
    if path == root or not path.is_relative_to(root):
        raise ValidationError(f"{relative[:80]!r} leads outside {root}", "Name a file inside it")
    if not follow and path != named:
        own = path.relative_to(root).as_posix()
        raise ValidationError(f"{relative[:80]!r} leads through a symbolic link", f"Use {own} itself")
    return path
