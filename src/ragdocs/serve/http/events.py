"""What changed, told to the pages that are open: server-sent events."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass

import anyio
from starlette.requests import Request
from starlette.responses import StreamingResponse

# Changes that a page which was away for a moment still gets.
MOST_CHANGES = 500
# A page reloads everything rather than taking more news at once.
MOST_AT_ONCE = 50
POLL_SECONDS = 0.25
# Proxies close connections that are silent for longer.
SILENCE_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class News:
    """A document that was written, changed or removed."""

    lane: str
    path: str
    title: str
    kind: str
    change: str


class Feed:
    """The latest changes of one project, numbered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._news: deque[tuple[int, News]] = deque(maxlen=MOST_CHANGES)
        self.last = 0

    def add(self, news: Sequence[News]) -> None:
        """Take changes; called from the thread that indexed them."""
        with self._lock:
            for item in news:
                self.last += 1
                self._news.append((self.last, item))

    def since(self, number: int) -> list[tuple[int, News]]:
        """Return the changes after a number, the oldest first."""
        if number == self.last:
            return []
        with self._lock:
            return [(at, item) for at, item in self._news if at > number]

    def response(self, request: Request) -> StreamingResponse:
        """Return a stream of what changes from now on, or since the event that a page saw last."""
        seen = request.headers.get("last-event-id", "")
        start = int(seen) if seen.isdecimal() else self.last
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(
            self._lines(min(start, self.last)), media_type="text/event-stream", headers=headers
        )

    async def _lines(self, number: int) -> AsyncIterator[str]:
        yield "retry: 2000\n\n"
        silence = 0.0
        while True:
            changes = self.since(number)
            if changes:
                number = changes[-1][0]
                silence = 0.0
                for text in _events(changes):
                    yield text
            await anyio.sleep(POLL_SECONDS)
            silence += POLL_SECONDS
            if silence >= SILENCE_SECONDS:
                silence = 0.0
                yield ": still here\n\n"


def _events(changes: Sequence[tuple[int, News]]) -> list[str]:
    last = changes[-1][0]
    if len(changes) > MOST_AT_ONCE:
        return [f"id: {last}\nevent: many\ndata: {len(changes)}\n\n"]
    events = []
    for number, news in changes:
        data = json.dumps(asdict(news), ensure_ascii=False)
        events.append(f"id: {number}\nevent: change\ndata: {data}\n\n")
    return events
