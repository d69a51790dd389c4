"""How much one caller may ask for: the size of a request, its time, and how many at once."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragdocs.serve.http.access import is_public, principal_of

# Callers whose rate is remembered; the one that was silent for longest is forgotten first.
MOST_CALLERS = 10_000
PAYLOAD_TOO_LARGE = 413
TOO_MANY = 429
TIMEOUT = 408


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one server."""

    body_bytes: int = 4_000_000
    # Requests of one caller: so many a second in the long run, so many at once.
    requests_a_second: float = 50.0
    burst: int = 200
    # Calls of verbs that run at the same time, and those that may wait for them.
    running: int = 8
    waiting: int = 256
    # Seconds that a call may take.
    call_seconds: float = 30.0


class RefusedError(Exception):
    """A request beyond a limit; with the seconds after which it may be sent again."""

    def __init__(self, status: int, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after

    def response(self) -> JSONResponse:
        """Return the answer to the request."""
        hint = "Send less at once"
        headers = {}
        if self.retry_after:
            seconds = max(1, math.ceil(self.retry_after))
            hint = f"Try again in {seconds} s"
            headers["retry-after"] = str(seconds)
        return JSONResponse({"error": str(self), "hint": hint}, self.status, headers)


class Rates:
    """How many requests each caller may still send: a bucket that fills up in time."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        # What is left in each bucket, and when that was counted.
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, key: str, count: float = 1.0) -> float:
        """Take from a caller's bucket; return the seconds to wait if it is empty."""
        now = self._clock()
        left, counted_at = self._buckets.pop(key, (float(self._limits.burst), now))
        refilled = left + (now - counted_at) * self._limits.requests_a_second
        left = min(float(self._limits.burst), refilled)
        missing = count - left
        if missing <= 0:
            left -= count
        # Put back at the end, so that the first one is the one that was silent for longest.
        self._buckets[key] = (left, now)
        if len(self._buckets) > MOST_CALLERS:
            del self._buckets[next(iter(self._buckets))]
        return max(0.0, missing / self._limits.requests_a_second)


class Limiter:
    """Refuses requests that are too large or too many, before anything is done with them."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits
        self._rates = Rates(limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count the bytes that arrive."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            self._check_rate(scope)
            self._check_length(scope)
        except RefusedError as refused:
            await refused.response()(scope, receive, send)
            return
        started = False
        received = 0

        async def count_bytes() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._limits.body_bytes:
                raise self._too_large()
            return message

        async def note_start(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, count_bytes, note_start)
        except RefusedError as refused:
            if not started:
                await refused.response()(scope, receive, send)

    def _check_rate(self, scope: Scope) -> None:
        principal = principal_of(scope)
        if principal is not None:
            key = principal.key
        elif is_public(scope["path"]):
            key = f"address:{(scope.get('client') or ('unknown',))[0]}"
        else:
            return
        wait = self._rates.take(key)
        if wait:
            raise RefusedError(TOO_MANY, "too many requests", wait)

    def _check_length(self, scope: Scope) -> None:
        length = Headers(scope=scope).get("content-length", "0")
        if not length.isdecimal() or int(length) > self._limits.body_bytes:
            raise self._too_large()

    def _too_large(self) -> RefusedError:
        megabytes = self._limits.body_bytes / 1e6
        return RefusedError(PAYLOAD_TOO_LARGE, f"the request is larger than {megabytes:g} MB")


class Turnstile:
    """Lets so many calls run at once; a few may wait, the rest is refused."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._running = anyio.Semaphore(limits.running)
        self.waiting = 0

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a turn and hold it for as long as it takes."""
        if self.waiting >= self._limits.waiting:
            raise RefusedError(TOO_MANY, "the server is busy", 1.0)
        self.waiting += 1
        try:
            await self._running.acquire()
        finally:
            self.waiting -= 1
        try:
            yield
        finally:
            self._running.release()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn and hold it; a call that takes too long is given up."""
        async with self.slot():
            try:
                with anyio.fail_after(self._limits.call_seconds):
                    yield
            except TimeoutError:
                seconds = f"{self._limits.call_seconds:g}"
                raise RefusedError(TIMEOUT, f"the call took longer than {seconds} s") from None
