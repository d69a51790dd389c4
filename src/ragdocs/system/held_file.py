"""A file that one process holds for as long as it lives; the system lets go of it afterwards.

`ragdocs mcp` uses this before it is connected, so little is imported.
"""

from __future__ import annotations

import os
import sys
import time

from ragdocs.system import platform

PAUSE_SECONDS = 0.01
# Far behind the content, which others may read: Windows keeps them from the bytes that are locked.
_LOCKED_BYTE = 1 << 30


def take(path: str, seconds: float = 0.0) -> int | None:
    """Return the descriptor of a file that this process holds now, or nothing in that time."""
    deadline = time.monotonic() + seconds
    while True:
        # Descriptors of Python are not passed on to other programs.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if _lock(descriptor) and _is_same_file(descriptor, path):
                return descriptor
        except OSError:
            os.close(descriptor)
            raise
        # Another process has it, or has removed it in between, so that a third may have a new one.
        os.close(descriptor)
        if time.monotonic() >= deadline and os.path.exists(path):
            return None
        time.sleep(PAUSE_SECONDS)


def let_go(descriptor: int) -> None:
    """Let another process have the file."""
    os.close(descriptor)


def write(descriptor: int, text: str) -> None:
    """Replace the content of a file that is held."""
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, text.encode())


def remove(path: str, descriptor: int) -> None:
    """Remove a file that is held, and let go of it."""
    try:
        is_removed = _unlinked(path)
    finally:
        os.close(descriptor)
    if not is_removed:
        # Windows removes no open file. Whoever has it by now keeps it there.
        _unlinked(path)


def _unlinked(path: str) -> bool:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return True
    except PermissionError:
        return False
    return True


def _is_same_file(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _lock(descriptor: int) -> bool:
    """Tell whether this process could lock the file."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True
    import fcntl

    try:
        if platform.is_portable():
            _lock_byte(descriptor)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _lock_byte(descriptor: int) -> None:
    """Lock one byte as Windows does: for this open file, and not for the whole process."""
    import fcntl
    import struct

    command = getattr(fcntl, "F_OFD_SETLK", None)
    if command is None:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _LOCKED_BYTE)
        return
    record = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, _LOCKED_BYTE, 1, 0)
    fcntl.fcntl(descriptor, command, record)
