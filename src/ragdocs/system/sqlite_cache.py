"""A small database of the user beside the files.

What it holds can be made again or done without.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")


class SideFile:
    """One SQLite file for every process of a user.

    Where it cannot be used, everything goes on without it.
    """

    def __init__(self, path: Path, tables: str, *, name: str, wait_seconds: float) -> None:
        self._path = path
        self._tables = tables
        self._name = name
        self._wait_seconds = wait_seconds
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._usable = True

    def ask(self, action: Callable[[sqlite3.Connection], Answer]) -> Answer | None:
        """Return what the action makes of the database, or None where it cannot be used.

        Now or at all.
        """
        with self._lock:
            if not self._usable:
                return None
            try:
                if self._connection is None:
                    self._connection = self._open()
                    # Closes with its owner, so that whoever holds one need not know that it has a
                    # file.
                    weakref.finalize(self, self._connection.close)
                return action(self._connection)
            except (sqlite3.Error, OSError) as error:
                # Somebody else is writing: do without it this once.
                busy = getattr(error, "sqlite_errorcode", 0) & 0xFF in (
                    sqlite3.SQLITE_BUSY,
                    sqlite3.SQLITE_LOCKED,
                )
                if not busy:
                    self._usable = False
                    log.warning(
                        "No %s: %s: %s. Delete the file to have a new one.",
                        self._name,
                        self._path,
                        error,
                    )
                return None

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # It tells what somebody wrote or searched for: for its owner only, as are the files SQLite
        # puts beside it.
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = sqlite3.connect(
            self._path, timeout=self._wait_seconds, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(self._tables)
        except sqlite3.Error:
            connection.close()
            raise
        return connection
