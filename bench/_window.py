"""A client of any MCP server on standard input and output, in raw lines, as an IDE starts one."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from bench._measure import TreeClock, process_seconds, tree

# Some peers index everything inside one call.
PATIENCE = 1800.0


class WindowError(Exception):
    """The server ended, kept silent, or refused."""


class Window:
    """One running server and the line to it."""

    def __init__(
        self, command: Sequence[str], cwd: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.started = time.perf_counter()
        self._log = (cwd / "server.log").open("wb")
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self.clock = TreeClock(self.process.pid)
        self._number = 0
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._log_path = cwd / "server.log"
        threading.Thread(target=self._listen, daemon=True).start()

    def greet(self) -> float:
        """Shake hands; return the seconds since the process was started."""
        info = {"name": "bench", "version": "1"}
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=info)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return time.perf_counter() - self.started

    def tools(self) -> list[str]:
        return [tool["name"] for tool in self.ask("tools/list")["tools"]]

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self.ask("tools/call", name=tool, arguments=arguments)
        if result.get("isError"):
            raise WindowError(f"{tool}: {result['content'][0].get('text', '')[:300]}")
        return result

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        self._write({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            try:
                line = self._lines.get(timeout=PATIENCE)
            except queue.Empty:
                raise WindowError(f"no answer to {method} in {PATIENCE:.0f} s") from None
            if not line:
                raise WindowError(f"the server ended: {self._last_words()}")
            message = json.loads(line)
            if message.get("id") == self._number and "method" not in message:
                if "error" in message:
                    raise WindowError(f"{method}: {message['error'].get('message', '')[:300]}")
                result: dict[str, Any] = message["result"]
                return result

    def close(self, *, with_children: bool = False) -> None:
        """Close the line as an IDE does; end what this window started if it stays."""
        below = tree(self.process.pid)[1:]
        with contextlib.suppress(OSError):
            assert self.process.stdin
            self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if with_children:
            _end(below)
        self._log.close()

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise WindowError(f"the server ended: {self._last_words()}") from None

    def _listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            # Some servers greet people on the protocol's own stream.
            if line.lstrip().startswith(b"{"):
                self._lines.put(line)
        self._lines.put(b"")

    def _last_words(self) -> str:
        lines = self._log_path.read_text(errors="replace").strip().splitlines()
        return " / ".join(lines[-3:])[-400:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close(with_children=True)


def _end(pids: Sequence[int]) -> None:
    """Ask processes to end and wait for it, so that what starts next meets none of them."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and any(
        process_seconds(pid) and not is_zombie(pid) for pid in pids
    ):
        time.sleep(0.02)


def is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True
