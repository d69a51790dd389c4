"""What a window answered before its server was there, and what of it proves to be different."""

from __future__ import annotations

import json
from collections.abc import Callable

from ragdocs.serve.shared.prepared import LISTS, META, Prepared

# The ids of the window's own requests to the server begin like this.
CHECK = "ragdocs:"
CHECK_ANSWER = b'{"jsonrpc":"2.0","id":"ragdocs:'
ACKNOWLEDGED = b'"notifications/subscriptions/acknowledged"'
SUBSCRIPTION = f"{META}subscriptionId"


class Early:
    """The answers that one client has had from its window."""

    def __init__(self, load: Callable[[], Prepared | None]) -> None:
        """Answer with what is loaded when it is first needed: most servers are there already."""
        self._load = load
        self._answers: Prepared | None = None
        self._is_loaded = False
        # Whether the client has had an answer to its handshake.
        self.has_greeted = False
        # The client may be told of changes once it says that it is ready.
        self._is_ready = False
        # The lists that the client was given, with the requests for them.
        self._given: dict[str, tuple[dict[str, object], object]] = {}
        self._changed: set[str] = set()
        # The streams on which a client of the stateless era wants to be told, by the id as JSON.
        self._streams: dict[str, dict[str, object]] = {}
        self._acknowledged: set[str] = set()
        self._is_used = False

    @property
    def is_used(self) -> bool:
        """Whether the client has had any answer."""
        return self._is_used

    def answer(self, message: dict[str, object]) -> bytes:
        """Return the answer to a request, or nothing if only the server can answer it."""
        number = message.get("id")
        method = message.get("method")
        is_request = isinstance(number, int | str) and not isinstance(number, bool)
        if not is_request or not isinstance(method, str):
            return b""
        if not self._is_loaded:
            self._answers = self._load()
            self._is_loaded = True
        if self._answers is None:
            return b""
        if method == "ping" and self.has_greeted:
            return _line({"jsonrpc": "2.0", "id": number, "result": {}})
        result = self._answers.answer(message)
        if result is None:
            return b""
        self._is_used = True
        self.has_greeted |= method == "initialize"
        if method in LISTS:
            self._given[method] = (message, result)
        return _line({"jsonrpc": "2.0", "id": number, "result": result})

    def end(self) -> None:
        """Let go of the answers, because the server is there."""
        self._answers = None
        self._is_loaded = True

    def checks(self) -> bytes:
        """Return requests to the server for the lists that the client was given."""
        lines = []
        for method, (request, _) in self._given.items():
            lines.append(_line({**request, "id": f"{CHECK}{method}"}))
        return b"".join(lines)

    def notice(self, message: dict[str, object]) -> bytes:
        """Look at a message of the client; return what it can be told from now on."""
        method = message.get("method")
        if method == "notifications/initialized":
            self._is_ready = True
            return self._announcements()
        params = message.get("params")
        if method == "subscriptions/listen" and isinstance(params, dict):
            wanted = params.get("notifications")
            if isinstance(wanted, dict):
                self._streams[json.dumps(message.get("id"))] = wanted
        return b""

    def passed_on(self, line: bytes) -> bytes:
        """Return what the client gets of a line of the server."""
        if self._given and line.startswith(CHECK_ANSWER):
            return self._compare(line)
        if self._streams and ACKNOWLEDGED in line:
            return line + self._acknowledge(line)
        return line

    def _compare(self, line: bytes) -> bytes:
        """Take the server's own answer; return announcements if it is another."""
        answer = json.loads(line)
        method = answer["id"].removeprefix(CHECK)
        if method not in self._given:
            return b""
        _, result = self._given.pop(method)
        if answer.get("result") != result:
            self._changed.add(LISTS[method])
        return self._announcements()

    def _acknowledge(self, line: bytes) -> bytes:
        params = json.loads(line).get("params", {})
        stream = json.dumps(params.get("_meta", {}).get(SUBSCRIPTION))
        if stream not in self._streams:
            return b""
        self._acknowledged.add(stream)
        return self._on_stream(stream)

    def _announcements(self) -> bytes:
        """Return the notifications of changes that the client can be sent now."""
        if not self.has_greeted:
            return b"".join(map(self._on_stream, sorted(self._acknowledged)))
        if not self._is_ready:
            return b""
        lines = []
        for kind in sorted(self._changed):
            lines.append(_line({"jsonrpc": "2.0", "method": _change(kind)}))
        self._changed.clear()
        return b"".join(lines)

    def _on_stream(self, stream: str) -> bytes:
        """Return the notifications of changes for one stream of the stateless era."""
        lines = []
        for kind in sorted(self._changed):
            if self._streams[stream].get(f"{kind}ListChanged"):
                # Once is enough.
                self._streams[stream] = {**self._streams[stream], f"{kind}ListChanged": False}
                params = {"_meta": {SUBSCRIPTION: json.loads(stream)}}
                lines.append(_line({"jsonrpc": "2.0", "method": _change(kind), "params": params}))
        return b"".join(lines)


def _change(kind: str) -> str:
    return f"notifications/{kind}/list_changed"


def _line(message: dict[str, object]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
