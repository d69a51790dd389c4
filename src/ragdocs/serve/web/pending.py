"""Answers that may take seconds: a page takes those that are there in time."""

from __future__ import annotations

import asyncio
import contextvars
import math
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Pending:
    """Work that goes on in the background, and its last result while nothing has changed."""

    def __init__(
        self,
        work: Callable[[], Any],
        state: Callable[[], Hashable],
        holds_seconds: float = math.inf,
    ) -> None:
        self._work = work
        # Says whether the last result still holds, as it does for so long at most.
        self._state = state
        self._holds_seconds = holds_seconds
        self._state_of_result: Hashable = None
        self._result: Future[Any] | None = None
        self._ended_at = 0.0
        self._lock = threading.Lock()
        self._worker = ThreadPoolExecutor(1)

    async def within(self, seconds: float) -> Any | None:
        """Return the result, or nothing if it takes longer; a failure is raised.

        Whoever asks again later gets the result of the same work.
        """
        result = asyncio.wrap_future(self._begun())
        done, _ = await asyncio.wait([result], timeout=seconds)
        if not done:
            # Nobody listens to a failure any more; whoever asks next does.
            result.add_done_callback(_ignore)
            return None
        return result.result()

    def _begun(self) -> Future[Any]:
        with self._lock:
            state = self._state()
            result = self._result
            if result is None or (result.done() and not self._holds(result, state)):
                self._state_of_result = state
                context = contextvars.copy_context()
                result = self._result = self._worker.submit(context.run, self._work)
                result.add_done_callback(self._note_end)
            return result

    def _holds(self, result: Future[Any], state: Hashable) -> bool:
        is_young = time.monotonic() - self._ended_at <= self._holds_seconds
        return is_young and state == self._state_of_result and not result.exception()

    def _note_end(self, result: Future[Any]) -> None:
        del result
        self._ended_at = time.monotonic()


def _ignore(result: asyncio.Future[Any]) -> None:
    if not result.cancelled():
        result.exception()
