"""A lock that readers share."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class SharedLock:
    """Held by any number of readers or by one writer, for whom new readers wait.

    Whoever holds it may read once more inside.
    """

    def __init__(self) -> None:
        self._gate = threading.Condition()
        self._readers = 0
        self._waiting = 0
        self._has_writer = False
        self._own = threading.local()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read beside others; nothing changes meanwhile."""
        if self._is_held():
            yield
            return
        with self._gate:
            while self._has_writer or self._waiting:
                self._gate.wait()
            self._readers += 1
        self._own.is_held = True
        try:
            yield
        finally:
            self._own.is_held = False
            with self._gate:
                self._readers -= 1
                self._gate.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Change something while nobody reads."""
        if self._is_held():
            raise RuntimeError("what is being read cannot be changed by its reader")
        with self._gate:
            self._waiting += 1
            try:
                while self._has_writer or self._readers:
                    self._gate.wait()
                self._has_writer = True
            finally:
                self._waiting -= 1
                self._gate.notify_all()
        self._own.is_held = True
        try:
            yield
        finally:
            self._own.is_held = False
            with self._gate:
                self._has_writer = False
                self._gate.notify_all()

    def _is_held(self) -> bool:
        return getattr(self._own, "is_held", False)
