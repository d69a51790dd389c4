"""Real servers that are started, talked to in raw lines and killed at any moment."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.faults.nursery import Nursery

# Nothing here takes so long; a server that is silent for longer hangs.
PATIENCE = 60.0
SETTINGS = ("embedding.model=hash", "memory.enabled=true", "server.answer_chars=40000")
RAGDOCS = (sys.executable, "-P", "-m", "ragdocs")
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "faults", "version": "1"},
}


def readable(descriptor: int, seconds: float) -> bool:
    """Wait until there is something to read, or the other side has ended.

    `select` cannot look at the high numbers that descriptors get late in a long run.
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1000))


class LineError(Exception):
    """The server refused, ended or hangs."""


class RefusedError(LineError):
    """The server answered with an error."""


class EndedError(LineError):
    """The server is gone."""


class HangingError(LineError):
    """The server says nothing."""


class Line:
    """A client's line to one server process."""

    def __init__(
        self, pid: int, to: int, back: int, log: Path, process: subprocess.Popen[bytes] | None
    ) -> None:
        self.pid = pid
        self.log = log
        self._to = to
        self._back = back
        self._process = process
        # A number may be given to another process; this stays with the one that was started.
        self._handle: int | None = None
        with contextlib.suppress(ProcessLookupError):
            self._handle = os.pidfd_open(pid)
        self._buffer = b""
        self._number = 0
        # What the server sent without being asked.
        self.notifications: list[dict[str, Any]] = []

    def greet(self, patience: float = PATIENCE) -> Self:
        """Shake hands."""
        self.wait_for(self.send("initialize", **HELLO), patience)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, wait, and return its structured answer."""
        return answer_of(self.wait_for(self.send_call(tool, **arguments)))

    def send_call(self, tool: str, **arguments: Any) -> int:
        return self.send("tools/call", name=tool, arguments=arguments)

    def send(self, method: str, **params: Any) -> int:
        """Send a request and return its number."""
        self._number += 1
        self._write({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._number

    def wait_for(self, number: int, patience: float = PATIENCE) -> dict[str, Any]:
        """Return the answer to one request; answers to others on the way are dropped."""
        deadline = time.monotonic() + patience
        while True:
            message = self.receive(deadline)
            if message is None:
                raise HangingError(f"no answer in {patience:g} seconds; {self.last_words()}")
            if message["id"] == number:
                return message

    def receive(self, deadline: float) -> dict[str, Any] | None:
        """Return the next answer, or nothing if none came in time."""
        while True:
            while b"\n" in self._buffer:
                line, _, self._buffer = self._buffer.partition(b"\n")
                # Some servers greet people on the protocol's own stream.
                if not line.lstrip().startswith(b"{"):
                    continue
                message: dict[str, Any] = json.loads(line)
                if "id" in message and "method" not in message:
                    return message
                if "id" not in message:
                    self.notifications.append(message)
            left = deadline - time.monotonic()
            if left <= 0 or not readable(self._back, left):
                return None
            part = os.read(self._back, 1 << 16)
            if not part:
                raise EndedError(self.last_words())
            self._buffer += part

    def hang_up(self) -> None:
        """Close the input, as an IDE does when it ends."""
        if self._to >= 0:
            os.close(self._to)
            self._to = -1

    def kill(self) -> list[dict[str, Any]]:
        """Kill the process and return the answers that it had given by then."""
        if self._handle is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        heard: list[dict[str, Any]] = []
        if self._back < 0:
            return heard
        with contextlib.suppress(EndedError):
            while message := self.receive(time.monotonic() + PATIENCE):
                heard.append(message)
        self._tidy()
        return heard

    def close(self, patience: float = PATIENCE) -> None:
        """Hang up and wait until the process has ended."""
        self.hang_up()
        if self._handle is not None and not readable(self._handle, patience):
            self.kill()
            raise HangingError(f"it did not end; {self.last_words()}")
        self._tidy()

    def last_words(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return " / ".join(lines[-3:])[-400:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _tidy(self) -> None:
        self.hang_up()
        for descriptor in (self._back, self._handle):
            if descriptor is not None and descriptor >= 0:
                os.close(descriptor)
        self._back, self._handle = -1, None
        if self._process:
            self._process.wait()

    def _write(self, message: Mapping[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self._to, data) :]
        except OSError:
            raise EndedError(self.last_words()) from None


def answer_of(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the structured answer of a tool call, or raise what the server said instead."""
    if "error" in message:
        raise RefusedError(str(message["error"].get("message", "")))
    result = message["result"]
    if result.get("isError"):
        raise RefusedError(str(result["content"][0].get("text", "")))
    content: dict[str, Any] = result["structuredContent"]
    return content


@contextlib.contextmanager
def _pipes(log: Path) -> Iterator[tuple[int, int, list[int]]]:
    """Give our two ends of a line, and the three descriptors that become the server's."""
    theirs_in, to = os.pipe()
    back, theirs_out = os.pipe()
    words = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        yield to, back, [theirs_in, theirs_out, words]
    finally:
        for descriptor in (theirs_in, theirs_out, words):
            os.close(descriptor)


def open_line(
    command: Sequence[str], log: Path, environment: Mapping[str, str], cwd: Path | None = None
) -> Line:
    """Start a program that serves MCP on its standard input and output."""
    with _pipes(log) as (to, back, (stdin, stdout, stderr)):
        process = subprocess.Popen(
            command, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr, env=environment
        )
    return Line(process.pid, to, back, log, process)


@dataclass
class Yard:
    """Where servers are started: a scratch folder, a nursery, and the settings they all get."""

    work: Path
    nursery: Nursery
    settings: tuple[str, ...] = ()
    started: int = field(default=0)

    def project(self, name: str) -> Path:
        """Make an empty project."""
        root = self.work / name
        (root / ".memories").mkdir(parents=True)
        return root

    def start(
        self,
        root: Path,
        *settings: str,
        cold: bool = False,
        environment: Mapping[str, str] | None = None,
        within: Sequence[str] = (),
    ) -> Line:
        """Start a server that serves alone: forked, or `cold` as a program, maybe `within` one."""
        arguments = ["mcp", "--project", str(root)]
        for setting in (*SETTINGS, *self.settings, *settings):
            arguments += ["--set", setting]
        own = {**os.environ, "RAGDOCS_SERVER_SHARED": "false", **(environment or {})}
        self.started += 1
        log = self.work / f"server-{self.started}.log"
        if cold or within:
            return open_line([*within, *RAGDOCS, *arguments], log, own)
        with _pipes(log) as (to, back, theirs):
            return Line(self.nursery.fork(arguments, own, theirs), to, back, log, None)
