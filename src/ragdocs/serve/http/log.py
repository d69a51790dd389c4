"""One line of JSON for each request, without anything that a request keeps secret."""

from __future__ import annotations

import json
import logging
import time
from datetime import UTC, datetime

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragdocs.serve.http.access import principal_of
from ragdocs.serve.http.metrics import Metrics
from ragdocs.text.visible import line

logger = logging.getLogger("ragdocs.http")
LONGEST_PATH = 200
LONGEST_ADDRESS = 100


class Formatter(logging.Formatter):
    """Writes a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        moment = datetime.fromtimestamp(record.created, UTC)
        fields: dict[str, object] = {
            "time": moment.isoformat(timespec="milliseconds"),
            "level": record.levelname.casefold(),
            "message": line(record.getMessage()),
        }
        fields |= getattr(record, "fields", {})
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


class RequestLog:
    """Counts and logs every request once it is answered."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and note how it ended."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        # What a client that hangs up gets counted as.
        status = 499

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._metrics.begin_request()
        try:
            await self._app(scope, receive, note_status)
        finally:
            self._metrics.count_request(_method(scope), status)
            _log(scope, status, time.perf_counter() - started)


def _method(scope: Scope) -> str:
    """Return the method, as long as it is one that exists: a label must not grow without end."""
    method = str(scope["method"])
    if method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        return method
    return "other"


def _log(scope: Scope, status: int, seconds: float) -> None:
    principal = principal_of(scope)
    client = scope.get("client") or ("",)
    fields = {
        # Behind a proxy that is trusted, the address that it names.
        "address": line(str(client[0]))[:LONGEST_ADDRESS],
        "method": _method(scope),
        # Without the query: it holds what was searched for, and once the token of an address.
        "path": line(scope["path"])[:LONGEST_PATH],
        "status": status,
        "ms": round(seconds * 1000, 1),
        "caller": principal.key if principal else "",
    }
    logger.info("request", extra={"fields": fields})
