"""Who computes when several threads want to.

One Python thread runs at a time, and one that never pauses gives its place away only every five
milliseconds: a search that calls FAISS or numpy five times would wait five times for it. So work
that nobody waits for lets the answers that somebody waits for go first.

Answers give their place away in every such call, and each time one of the others wakes up, mostly
to find it taken again. So they rank one after the other, and encode beside each other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

# Whoever gives way does so for this long, and then works for as long, also where answers follow
# each other without a pause.
PATIENCE = 0.05


class _Turns:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answering: dict[int, int] = {}
        self._is_quiet = threading.Event()
        self._is_quiet.set()
        self._impatient_until = 0.0

    def begin(self, thread: int) -> None:
        with self._lock:
            self._answering[thread] = self._answering.get(thread, 0) + 1
            self._is_quiet.clear()

    def end(self, thread: int) -> None:
        with self._lock:
            self._answering[thread] -= 1
            if not self._answering[thread]:
                del self._answering[thread]
            if not self._answering:
                self._is_quiet.set()

    def give_way(self) -> None:
        if self._is_quiet.is_set() or threading.get_ident() in self._answering:
            return
        if time.monotonic() < self._impatient_until:
            return
        if not self._is_quiet.wait(PATIENCE):
            self._impatient_until = time.monotonic() + PATIENCE


_TURNS = _Turns()


class RankingTurn:
    """The turn of one answer to rank, from when it is taken until it ends."""

    def __init__(self) -> None:
        self._is_held = False

    def take(self) -> None:
        """Wait until no other thread has the turn; after a while go on without.

        One that has it may wait for something else.
        """
        if not self._is_held:
            self._is_held = _RANKING.acquire(timeout=PATIENCE)

    def end(self) -> None:
        """Let the next one rank."""
        if self._is_held:
            self._is_held = False
            _RANKING.release()


_RANKING = threading.Lock()


def is_somebody_ranking() -> bool:
    """Tell whether any thread has the turn to rank."""
    return _RANKING.locked()


@contextmanager
def ranking() -> Iterator[RankingTurn]:
    """Yield a turn that whoever begins to rank may take; it ends here."""
    turn = RankingTurn()
    try:
        yield turn
    finally:
        turn.end()


@contextmanager
def answering() -> Iterator[None]:
    """Say that somebody waits for what this thread does."""
    thread = threading.get_ident()
    _TURNS.begin(thread)
    try:
        yield
    finally:
        _TURNS.end(thread)


def give_way() -> None:
    """Let answers go first; called between two small steps of long work, never under a lock.

    A lock, that is, which an answer needs.
    """
    _TURNS.give_way()
