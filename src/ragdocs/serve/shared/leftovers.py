"""The files that servers left that are gone."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path

from ragdocs.system import held_file

# As the address of a server is named, in the folder that is this user's alone.
NAME = re.compile(r"[0-9a-f]{16}")
# Files of a server that was killed stay so long, because its log may say why.
KEEP_SECONDS = 3600.0
# Of the files beside the locks: how a server is found, and what it printed.
ENDINGS = (".sock", ".port", ".log")


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
    lock = held_file.take(f"{address}.lock")
    if lock is not None:
        remove(address, lock)


def remove(address: str, lock: int) -> None:
    """Remove the files of a server whose lock this process has, unless a window starts another.

    The lock comes last: whoever has it may remove the rest.
    """
    start = held_file.take(f"{address}.start")
    if start is None:
        held_file.let_go(lock)
        return
    for ending in ENDINGS:
        # Windows keeps the log of a server that runs.
        with suppress(OSError):
            Path(f"{address}{ending}").unlink(missing_ok=True)
    held_file.remove(f"{address}.start", start)
    held_file.remove(f"{address}.lock", lock)
