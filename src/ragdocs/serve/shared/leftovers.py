"""The files of servers: locks that only one process has, and what servers that are gone left."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path

# As the address of a server is named, in the folder that is this user's alone.
NAME = re.compile(r"[0-9a-f]{16}")
# Files of a server that was killed stay so long, because its log may say why.
KEEP_SECONDS = 3600.0
PAUSE_SECONDS = 0.02
# The lock of a running server comes last: whoever has it may remove the rest.
ENDINGS = (".sock", ".log", ".start", ".lock")


def take(path: str, seconds: float = 0.0) -> int | None:
    """Return the descriptor of a lock file that this process has locked, or nothing."""
    import fcntl

    deadline = time.monotonic() + seconds
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            if time.monotonic() >= deadline:
                return None
            time.sleep(PAUSE_SECONDS)
            continue
        if is_same_file(lock, path):
            return lock
        # It was removed in between, so another process may have locked another file.
        os.close(lock)


def is_same_file(descriptor: int, path: str) -> bool:
    """Tell whether an open file is still the one under its path."""
    try:
        return os.path.samestat(os.fstat(descriptor), Path(path).stat())
    except FileNotFoundError:
        return False


def sweep(own: str) -> None:
    """Remove what servers left that were killed some time ago, beside the server `own`."""
    for lock in Path(own).parent.glob("*.lock"):
        address = str(lock.with_suffix(""))
        if address == own or not NAME.fullmatch(lock.stem):
            continue
        with suppress(OSError):
            if time.time() - lock.stat().st_mtime > KEEP_SECONDS:
                _remove_dead(address)


def _remove_dead(address: str) -> None:
    """Remove the files of a server, unless it lives."""
    lock = take(f"{address}.lock")
    if lock is not None:
        remove(address)
        os.close(lock)


def remove(address: str) -> None:
    """Remove the files of a server whose lock this process has, unless a window starts another."""
    start = take(f"{address}.start")
    if start is None:
        return
    for ending in ENDINGS:
        Path(f"{address}{ending}").unlink(missing_ok=True)
    os.close(start)
