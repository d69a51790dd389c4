"""Real server processes on one team database, as clients see them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mcp_types.version import LATEST_HANDSHAKE_VERSION

# Under heavy load everything takes its time.
PATIENCE_SECONDS = 60.0


class ServerProcess:
    """`ragdocs mcp` in a process of its own, asked over its pipes."""

    def __init__(self, root: Path, **environ: str) -> None:
        words = [sys.executable, "-P", "-m", "ragdocs", "mcp", "--project", str(root)]
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=root,
            env={**os.environ, **environ},
        )
        self._number = 0
        client = {"name": "test", "version": "1"}
        hello = {"protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": {}}
        self._ask("initialize", {**hello, "clientInfo": client})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=PATIENCE_SECONDS)
        finally:
            self._process.kill()
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool and return its structured answer, or the text of its error."""
        result = self._ask("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            return result["content"][0]["text"]
        return result["structuredContent"]

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        number = self._number
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            if message.get("id") == number and "method" not in message:
                assert "result" in message, message
                return message["result"]
        raise AssertionError("the server ended")

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()


def until(look: Callable[[], Any]) -> Any:
    """Look until there is something to see."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        seen = look()
        if seen:
            return seen
        assert time.monotonic() < deadline, "nothing came"
        time.sleep(0.05)
