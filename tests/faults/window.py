"""A server process and one client of it, as an IDE window.

Requests in, answers out, one at a time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
SETTINGS = (
    "--set",
    "embedding.model=hash",
    "--set",
    "memory.enabled=true",
    "--set",
    "watch.enabled=false",
)


class Window:
    """The standard input and output of a server, and the log it keeps."""

    def __init__(
        self,
        root: Path,
        log: Path,
        settings: Sequence[str] = SETTINGS,
        *,
        command: Sequence[str] = (),
        cwd: Path | None = None,
    ) -> None:
        self.log = log
        command = command or [sys.executable, "-P", "-m", "ragdocs", "mcp", "--project", str(root)]
        self._count = 0
        with log.open("w", encoding="utf-8") as stderr:
            self.process = subprocess.Popen(
                [*command, *settings],
                cwd=cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=dict(os.environ),
            )

    def __enter__(self) -> Self:
        self.ask("initialize", HELLO)
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its whole answer, result or error."""
        assert self.process.stdin
        assert self.process.stdout
        self._count += 1
        request = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self._count:
                return dict(answer)
        raise AssertionError(self.log.read_text(encoding="utf-8"))

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its result, which may be an error."""
        return dict(self.ask("tools/call", {"name": tool, "arguments": arguments})["result"])
