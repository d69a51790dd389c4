"""Who asks this server: each client with its calls and the last of them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from ragdocs.caller import NOBODY, Caller

# Requests over HTTP come without a connection that lasts: a client counts as there for this long.
PRESENT = timedelta(minutes=5)
# Records that are kept; the oldest go first.
MOST_CLIENTS = 200
LONGEST_NAME = 80
# The name of whoever opened the page on the machine that serves it.
OWNER = "owner"
# Where clients without a handshake name themselves in each request.
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"


@dataclass(slots=True)
class Client:
    """What is known about one client."""

    session: str
    user: str
    # Of the program, such as claude-code; "" where it did not say.
    program: str = ""
    project: str = ""
    calls: int = 0
    verb: str = ""
    last_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    caller: weakref.ref[Caller] | None = None

    def is_present(self, now: datetime) -> bool:
        """Whether its connection is open, or was used a moment ago."""
        is_connected = self.caller is not None and self.caller() is not None
        return is_connected or now - self.last_at < PRESENT


class Clients:
    """The clients of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clients: dict[str, Client] = {}

    def greet(self, caller: Caller, params: Mapping[str, Any] | None) -> None:
        """Note the program that a client says it is."""
        params = params or {}
        meta = params.get("_meta") or {}
        information = params.get("clientInfo") or meta.get(CLIENT_INFO)
        if not isinstance(information, Mapping):
            return
        with self._lock:
            client = self._client_of(caller)
            client.program = str(information.get("name", ""))[:LONGEST_NAME]

    def note(self, caller: Caller, project: str, verb: str) -> None:
        """Note a call."""
        with self._lock:
            client = self._client_of(caller)
            client.project = project
            client.calls += 1
            client.verb = verb
            client.last_at = datetime.now(UTC)

    def leave(self, caller: Caller) -> None:
        """Note that a connection has ended."""
        with self._lock:
            self._clients.pop(caller.session, None)

    def author(self, caller: Caller) -> str:
        """Return who writes for a caller: its program, else the person, as far as that is known."""
        client = self._clients.get(caller.session)
        # Programs introduce themselves on a connection, and each connection has its own caller.
        if client is not None and client.program and caller is not NOBODY:
            return client.program
        if caller.name == OWNER:
            return caller.member or caller.name
        return caller.name

    def present(self, project: str) -> list[Client]:
        """Return the clients of a project that are there, the latest first."""
        now = datetime.now(UTC)
        with self._lock:
            clients = list(self._clients.values())
        present = []
        for client in clients:
            # One that has not asked yet may be anybody's.
            if client.project in ("", project) and client.is_present(now):
                present.append(client)
        return sorted(present, key=lambda client: client.last_at, reverse=True)

    def _client_of(self, caller: Caller) -> Client:
        client = self._clients.get(caller.session)
        if client is None:
            if len(self._clients) >= MOST_CLIENTS:
                oldest = min(self._clients.values(), key=lambda client: client.last_at)
                del self._clients[oldest.session]
            client = Client(caller.session, caller.name)
            self._clients[caller.session] = client
        client.caller = weakref.ref(caller)
        return client


CLIENTS = Clients()
