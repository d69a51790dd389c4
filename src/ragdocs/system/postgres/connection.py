"""A connection that does not wait for ever."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import psycopg

# More than a server allows a statement: only a network or a machine that stands still is so slow.
ANSWER_SECONDS = 35.0
# A peer that is gone is noticed while a connection is idle, and while something is sent to it.
KEEPALIVE = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": int(ANSWER_SECONDS * 1000),
}


class PatientConnection(psycopg.Connection[Any]):
    """Waits for an answer for some time, and is lost then."""

    # Whether work goes on that may take any time; a peer that is gone is still noticed.
    is_building = False

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
        """Wait for the next answer of the server."""
        if self.is_building:
            return super().wait(gen, *args, **options)
        try:
            return super().wait(_bounded(gen), *args, **options)
        except _NoAnswerError as error:
            # Nobody can tell what the answer to the next question would belong to.
            self.pgconn.finish()
            raise psycopg.OperationalError(
                f"no answer within {ANSWER_SECONDS:g} seconds"
            ) from error


class _NoAnswerError(Exception):
    """The server was waited for long enough."""


def _bounded(gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Go on with a generator of the driver, which is asked several times a second."""
    deadline = time.monotonic() + ANSWER_SECONDS
    try:
        state = next(gen)
        while True:
            ready = yield state
            if not ready and time.monotonic() > deadline:
                raise _NoAnswerError
            state = gen.send(ready)
    except StopIteration as end:
        return end.value
