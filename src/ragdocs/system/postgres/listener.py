"""One connection that waits for what other servers announce on a channel."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict

# How long an answer to "go on?" takes at most, and how long a lost connection is left alone.
TURN_SECONDS = 0.5
AGAIN_SECONDS = 1.0

logger = logging.getLogger("ragdocs")


class Listener:
    """Wakes up those who wait for a word on a channel; one thread for all of them.

    A word may be missed while the connection is lost: whoever waits must look by itself, too.
    """

    def __init__(self, address: str, channel: str) -> None:
        self._address = address
        self._channel = channel
        self._changed = threading.Condition()
        # How often each word was heard; every word may have been said when a connection begins.
        self._heard: defaultdict[str, int] = defaultdict(int)
        self._connections = 0
        self._is_closed = False
        self._thread = threading.Thread(target=self._listen, name="ragdocs-listener", daemon=True)
        self._thread.start()

    def count(self, word: str) -> int:
        """Return how often a word may have been said so far."""
        with self._changed:
            return self._heard[word] + self._connections

    def wait(self, word: str, seconds: float, since: int) -> bool:
        """Wait until a word was said more often than that; return whether it was."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self._is_closed or self._heard[word] + self._connections > since, seconds
            )

    def close(self) -> None:
        """End the thread and wake up everybody."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join(timeout=2 * TURN_SECONDS)

    def _listen(self) -> None:
        import psycopg

        while not self._is_closed:
            try:
                self._follow()
            except psycopg.Error as error:
                logger.debug("no announcements of the team database: %s", type(error).__name__)
                with self._changed:
                    self._changed.wait_for(lambda: self._is_closed, AGAIN_SECONDS)

    def _follow(self) -> None:
        import psycopg
        from psycopg import sql

        with psycopg.connect(
            self._address, autocommit=True, connect_timeout=5, application_name="ragdocs"
        ) as session:
            session.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
            with self._changed:
                self._connections += 1
                self._changed.notify_all()
            while not self._is_closed:
                for notice in session.notifies(timeout=TURN_SECONDS):
                    with self._changed:
                        self._heard[notice.payload] += 1
                        self._changed.notify_all()
