"""A client of any MCP server on standard input and output, in raw lines, as an IDE starts one."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from bench._measure import TreeClock
from tests.faults.processes import is_zombie, process_seconds, tree
from tests.faults.servers import HangingError, RefusedError, open_line

# Some peers index everything inside one call.
PATIENCE = 1800.0


class Window:
    """One running server and the line to it."""

    def __init__(
        self, command: Sequence[str], cwd: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.started = time.perf_counter()
        variables = {**os.environ, **(environment or {})}
        self._line = open_line(command, cwd / "server.log", variables, cwd)
        self.pid = self._line.pid
        self.clock = TreeClock(self.pid)

    def greet(self) -> float:
        """Shake hands; return the seconds since the process was started."""
        self._line.greet(PATIENCE)
        return time.perf_counter() - self.started

    def tools(self) -> list[str]:
        return [tool["name"] for tool in self._ask("tools/list")["tools"]]

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self._ask("tools/call", name=tool, arguments=arguments)
        if result.get("isError"):
            raise RefusedError(f"{tool}: {result['content'][0].get('text', '')[:300]}")
        return result

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        answer = self._line.wait_for(self._line.send(method, **params), PATIENCE)
        if "error" in answer:
            raise RefusedError(f"{method}: {answer['error'].get('message', '')[:300]}")
        result: dict[str, Any] = answer["result"]
        return result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the line as an IDE does, and end what stays."""
        below = tree(self.pid)[1:]
        with contextlib.suppress(HangingError):
            self._line.close(5)
        _end(below)


def _end(pids: Sequence[int]) -> None:
    """Ask processes to end and wait for it, so that what starts next meets none of them."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if not any(process_seconds(pid) and not is_zombie(pid) for pid in pids):
            return
        time.sleep(0.02)
