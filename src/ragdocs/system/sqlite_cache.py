"""A small database of the user beside the files, whose contents can be made again."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Self, TypeVar

Answer = TypeVar("Answer")


class SideFile:
    """One SQLite file for all processes of a user; where it cannot be used, all works without."""

    def __init__(self, path: Path, tables: str, *, name: str, wait_seconds: float) -> None:
        self._path = path
        self._tables = tables
        self._name = name
        self._wait_seconds = wait_seconds
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._usable = True

    def ask(self, action: Callable[[sqlite3.Connection], Answer]) -> Answer | None:
        """Return the result of an action on the database, or None where it cannot be used."""
        with self._lock:
            if not self._usable:
                return None
            try:
                if self._connection is None:
                    self._connection = self._open()
                    # One that nobody closed ends with its owner.
                    weakref.finalize(self, self._connection.close)
                return action(self._connection)
            except (sqlite3.Error, OSError) as error:
                if not _is_busy(error):
                    import logging

                    self._usable = False
                    logging.getLogger(__name__).warning(
                        "No %s: %s: %s. Delete the file to have a new one.",
                        self._name,
                        self._path,
                        error,
                    )
                return None

    def close(self) -> None:
        """Close the database; whoever asks afterwards opens it again."""
        with self._lock:
            connection = self._connection
            self._connection = None
        if connection is not None:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _create(self._path)
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


def _create(path: Path) -> None:
    """Create the file if there is none.

    It shows what somebody wrote or searched for, so only its owner may read it and the files that
    SQLite puts beside it. A file that exists is not opened: closing it again would take away the
    locks that another connection of this process has on it.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    os.close(descriptor)


def _is_busy(error: Exception) -> bool:
    """Tell whether another process is writing, so that only this one call does without."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
