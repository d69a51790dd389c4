"""Files that survive and stay inside: atomic writes, checked names, contained paths."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from ragdocs.errors import (
    NotFoundError,
    RagdocsError,
    ReadOnlyError,
    RenameError,
    StorageError,
    ValidationError,
)
from ragdocs.system import platform
from ragdocs.system.folder import OPEN, Folder
from ragdocs.system.names import relative_name

# Names and folders have modules of their own, but callers import all of it from here.
__all__ = [
    "OPEN",
    "TEMPORARY",
    "Folder",
    "append_line",
    "contained",
    "create",
    "cut",
    "explain",
    "explained",
    "make_directories",
    "move",
    "read_bytes",
    "read_end",
    "read_file",
    "read_from",
    "relative_name",
    "remove",
    "rename",
    "sweep",
    "sync_names",
    "write_atomic",
]

# The ending of unfinished files, by which the leftovers of a killed process are swept.
TEMPORARY = ".ragdocs-tmp"
SIZE_LIMIT = 10_000_000
# The action on a change that is in place already; when it fails, a loss of power may still undo the
# change.
SYNC = "make durable"
PERMISSION_HINT = (
    "Check the permissions of the folder and whether its file system is mounted read-only"
)
LONG_PATH_HINT = (
    "Its path may be too long for Windows: use a shorter one, or set LongPathsEnabled to 1 under "
    r"HKLM\SYSTEM\CurrentControlSet\Control\FileSystem in the registry"
)
# Bytes that are read at once.
_PORTION = 1 << 20
# Bytes of a file from which on a private copy of it is mapped: each takes a descriptor.
_WORTH_A_COPY = 1 << 18

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NO_PERMISSION = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)


def explain(error: OSError, action: str, path: Path | str) -> RagdocsError:
    """Turn a refusal of the operating system into an error that says what to do."""
    message = f"cannot {action} {path}: {error.strerror or error}"
    outcome = "What was there before is untouched"
    if action == SYNC:
        outcome = "It has the old text or the new one: read it"
    if error.errno in _NO_SPACE:
        return StorageError(message, f"{outcome}. Free some space and try again")
    if error.errno in _NO_PERMISSION and action != "read":
        return ReadOnlyError(message, PERMISSION_HINT)
    if error.errno in _NO_PERMISSION:
        return StorageError(message, PERMISSION_HINT)
    if error.errno in _ABSENT:
        hint = ""
        if platform.is_too_long(str(path)):
            hint = LONG_PATH_HINT
        return NotFoundError(message, hint)
    if error.errno == errno.ELOOP:
        hint = "Nothing is written through a link: replace it by a folder and try again"
        if action == "read":
            hint = "It is a symbolic link; name the file itself"
        return StorageError(message, hint)
    return StorageError(message, outcome)


@contextlib.contextmanager
def explained(action: str, path: Path | str) -> Iterator[None]:
    """Turn any OSError of the block into one of ours."""
    try:
        yield
    except OSError as error:
        raise explain(error, action, path) from error


def make_directories(path: Path, mode: int = 0o777) -> None:
    """Create a directory and its missing parents, durably."""
    with explained("create", path):
        Folder(path, make=mode).close()


def write_atomic(
    path: Path, *data: bytes | memoryview, mode: int | None = None, durable_name: bool = True
) -> None:
    """Replace a file by these bytes, durably: at every moment it holds the old ones or the new.

    An existing file keeps its permissions and owner; `mode` is for a new one. Who writes many
    files calls `sync_names` once instead of having each name made durable.
    """
    if mode is None:
        mode = 0o666
    with explained("write", path), Folder(path.parent) as folder:
        _write_into(folder, path.name, data, mode)
        if durable_name:
            with explained(SYNC, path):
                folder.sync()


def sync_names(paths: Iterable[Path]) -> None:
    """Make the names of files durable, each folder once."""
    for folder in sorted({path.parent for path in paths}):
        with explained(SYNC, folder), Folder(folder) as opened:
            opened.sync()


def _write_into(folder: Folder, name: str, pieces: Iterable[bytes | memoryview], mode: int) -> None:
    before = folder.status(name)
    temporary = f".{os.urandom(8).hex()}{TEMPORARY}"
    descriptor = folder.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        try:
            for piece in pieces:
                write_all(descriptor, piece)
            if before is not None and stat.S_ISREG(before.st_mode):
                _keep_permissions(descriptor, before)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        _rename_into_place(folder, temporary, name)
    except (OSError, RagdocsError):
        # The leftovers of an interrupt are swept later, like those of a killed process.
        with contextlib.suppress(OSError):
            folder.unlink(temporary)
        raise


def create(path: Path, data: bytes) -> bool:
    """Write a new file and return True; leave an existing one as it is and return False."""
    with explained("write", path), Folder(path.parent) as folder:
        try:
            descriptor = folder.open(path.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        folder.sync()
        return True


def create_whole(path: Path, data: bytes, *, mode: int) -> bool:
    """Write a new file that appears with all its bytes; of two writers at once the first wins."""
    with explained("write", path), Folder(path.parent) as folder:
        draft = f".{os.urandom(8).hex()}{TEMPORARY}"
        _write_into(folder, draft, [data], mode)
        try:
            folder.link(draft, path.name)
        except FileExistsError:
            return False
        except OSError:
            # A file system without second names.
            folder.replace(draft, path.name)
        finally:
            with contextlib.suppress(FileNotFoundError):
                folder.unlink(draft)
        folder.sync()
        return True


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all bytes to a descriptor."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _keep_permissions(descriptor: int, before: os.stat_result) -> None:
    if not hasattr(os, "fchown"):  # Windows: the folder decides
        return
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        # Only the superuser may give files away; for anyone else the new owner is the one who
        # wrote.
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))


def _rename_into_place(folder: Folder, temporary: str, name: str) -> None:
    try:
        folder.replace(temporary, name)
    except OSError as error:
        if error.errno in _NO_PERMISSION:
            raise
        # Also EXDEV, when the file itself is a mount point: writing it in place could be torn, so
        # nothing is written.
        raise RenameError(
            f"cannot move the new text into place at {folder.path / name}: {error.strerror}",
            "What was there before is untouched; "
            "a file that is a mount point of its own cannot be replaced",
        ) from error


def move(source: Path, target: Path) -> None:
    """Move a file durably; between file systems it is copied and checked before the old one goes.

    The caller has made sure, under a lock, that nothing is at the target.
    """
    with explained("move", source), Folder(source.parent) as old, Folder(target.parent) as new:
        try:
            old.move(source.name, new, target.name)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _copy(old, source.name, new, target.name)
            new.sync()
            old.unlink(source.name)
        with explained(SYNC, source):
            new.sync()
            old.sync()


def _copy(old: Folder, name: str, new: Folder, new_name: str) -> None:
    """Copy a file between folders and compare the copy."""
    data, status = read_from(old, name, sys.maxsize)
    _write_into(new, new_name, [data], stat.S_IMODE(status.st_mode))
    copy, _ = read_from(new, new_name, sys.maxsize)
    if copy != data:
        message = f"the copy of {old.path / name} at {new.path / new_name} differs"
        raise RenameError(message, "The original is untouched")


def rename(path: Path, name: str) -> None:
    """Give a file another name in its folder, durably; what had that name before is gone."""
    with explained("write", path.with_name(name)), Folder(path.parent) as folder:
        folder.replace(path.name, name)
        folder.sync()


def remove(*paths: Path, missing_ok: bool = False) -> None:
    """Remove files of one folder, or links themselves, durably."""
    with explained("remove", paths[0]), Folder(paths[0].parent) as folder:
        for path in paths:
            try:
                folder.unlink(path.name)
            except FileNotFoundError:
                if not missing_ok:
                    raise
        folder.sync()


def sweep(path: Path, seconds: float) -> None:
    """Remove what an unfinished write left, if it was not touched for so long."""
    with explained("remove", path), Folder(path.parent) as folder:
        status = folder.status(path.name)
        if status is not None and time.time() - status.st_mtime > seconds:
            folder.unlink(path.name)


def cut(path: Path, size: int) -> None:
    """Shorten a file to a size, if it is longer."""
    with explained("append to", path), Folder(path.parent) as folder:
        status = folder.status(path.name)
        if status is None or status.st_size <= size:
            return
        descriptor = folder.open(path.name, os.O_WRONLY | _NONBLOCK)
        try:
            os.ftruncate(descriptor, size)
        finally:
            os.close(descriptor)


def append_line(path: Path, line: bytes, *, mode: int = 0o666) -> None:
    """Append one line durably in one write, on a line of its own even after a torn one."""
    with explained("append to", path), Folder(path.parent) as folder:
        descriptor = folder.open(path.name, os.O_RDWR | os.O_APPEND | os.O_CREAT | _NONBLOCK, mode)
        try:
            size = os.fstat(descriptor).st_size
            record = line + b"\n"
            if size:
                os.lseek(descriptor, size - 1, os.SEEK_SET)
                is_torn = os.read(descriptor, 1) != b"\n"
                if is_torn:
                    record = b"\n" + record
            # A second write after a short one could land behind another process's line.
            if os.write(descriptor, record) != len(record):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if not size:
            folder.sync()


def read_file(path: Path, limit: int = SIZE_LIMIT) -> tuple[bytes, os.stat_result]:
    """Read a regular file without following a link at its end, and its state before it was read."""
    with explained("read", path):
        # Without O_NONBLOCK, opening a pipe waits for a writer that may never come.
        return _read(os.open(path, os.O_RDONLY | OPEN | _NONBLOCK), path, limit)


def read_from(folder: Folder, name: str, limit: int = SIZE_LIMIT) -> tuple[bytes, os.stat_result]:
    """Read a regular file of a folder, and its state before it was read."""
    return _read(folder.open(name, os.O_RDONLY | _NONBLOCK), folder.path / name, limit)


def _read(descriptor: int, path: Path, limit: int) -> tuple[bytes, os.stat_result]:
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise StorageError(f"cannot read {path}: it is not a regular file")
        data = _read_up_to(descriptor, limit + 1)
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise StorageError(
            f"cannot read {path}: it is larger than {limit / 1e6:g} MB",
            "Split it into smaller files",
        )
    return data, status


def _read_up_to(descriptor: int, limit: int) -> bytes:
    parts = []
    while limit > 0:
        part = os.read(descriptor, min(limit, _PORTION))
        if not part:
            break
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)


def read_bytes(path: Path, limit: int = SIZE_LIMIT) -> bytes:
    """Read a regular file of at most `limit` bytes."""
    return read_file(path, limit)[0]


def read_end(path: Path, limit: int) -> tuple[bytes, bool]:
    """Read the last bytes of a regular file, and tell whether there are more before them."""
    with explained("read", path):
        descriptor = os.open(path, os.O_RDONLY | OPEN | _NONBLOCK)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise StorageError(f"cannot read {path}: it is not a regular file")
            start = max(0, status.st_size - limit)
            os.lseek(descriptor, start, os.SEEK_SET)
            data = _read_up_to(descriptor, status.st_size - start)
        finally:
            os.close(descriptor)
    return data, start > 0


def map_file(path: Path, limit: int = SIZE_LIMIT) -> memoryview:
    """Map a file that is replaced as a whole and never changed; its pages load when read."""
    with explained("read", path):
        descriptor = os.open(path, os.O_RDONLY | OPEN | _NONBLOCK)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
                raise StorageError(
                    f"cannot read {path}: it is not a file of at most {limit / 1e6:g} MB"
                )
            if status.st_size == 0:
                # An empty file cannot be mapped.
                return memoryview(b"")
            return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
        finally:
            os.close(descriptor)


def map_copy(path: Path, folder: Path, limit: int = SIZE_LIMIT) -> memoryview:
    """Map a private copy of a file that others may change; a small file is read.

    The copy has no name in its folder and goes with the memory that shows it.
    """
    data = read_bytes(path, limit)
    if len(data) < _WORTH_A_COPY:
        return memoryview(data)
    try:
        make_directories(folder, 0o700)
        with _nameless_file(folder) as copy:
            copy.write(data)
            copy.flush()
            return memoryview(mmap.mmap(copy.fileno(), len(data), access=mmap.ACCESS_READ))
    except (OSError, StorageError):
        # Without room for a copy, what was read stays in memory.
        return memoryview(data)


def _nameless_file(folder: Path) -> IO[bytes]:
    """Open a file that has no name and goes when it is closed."""
    try:
        return open(os.open(folder, os.O_RDWR | os.O_TMPFILE | OPEN, 0o600), "r+b")  # noqa: PTH123
    except (AttributeError, OSError):
        # Not every system has such files; this import costs a command 2 ms.
        import tempfile

        return tempfile.TemporaryFile(dir=folder)


def release(view: bytes | memoryview) -> None:
    """Free the pages of a mapped file; they load from the file when read again."""
    if not isinstance(view, memoryview) or not hasattr(mmap, "MADV_DONTNEED"):
        return
    if isinstance(view.obj, mmap.mmap):
        view.obj.madvise(mmap.MADV_DONTNEED)


def contained(root: Path, relative: str, *, follow: bool = True) -> Path:
    """Resolve a path below a root that is resolved already, and refuse what leads outside.

    Links that stay inside are followed, or refused as well without `follow`.
    """
    # Every read and write asks this several times, and texts are joined and compared faster than
    # paths.
    inside = os.path.join(root, "")  # noqa: PTH118
    name = os.path.join(inside, relative)  # noqa: PTH118
    try:
        real = os.path.realpath(name)
    except ValueError:  # a NUL in the middle
        real = str(root)
    named = Path(name)
    if real == name and real.startswith(inside):
        return named
    path = Path(real)
    if path == root or not path.is_relative_to(root):
        raise ValidationError(f"{relative[:80]!r} leads outside {root}", "Name a file inside it")
    if not follow and path != named:
        own = path.relative_to(root).as_posix()
        raise ValidationError(
            f"{relative[:80]!r} leads through a symbolic link", f"Use {own} itself"
        )
    return path
