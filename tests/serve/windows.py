"""Windows as an IDE opens them, and the servers behind them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from tests.conftest import Project

# Far above what anything takes; only what hangs is waited for so long.
PATIENCE = 120.0
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "window", "version": "1"},
}
RAGDOCS = (sys.executable, "-P", "-m", "ragdocs")


class Window:
    """A client that speaks to `ragdocs mcp` in raw lines, as an IDE does."""

    def __init__(self, project: Project, *options: str, **variables: str) -> None:
        command = [*RAGDOCS, "mcp", "--project", str(project.root), *options]
        self.start([*command, "--set", "embedding.model=hash"], subprocess.PIPE, None, variables)

    def start(
        self,
        command: Sequence[str],
        stderr: int | IO[str],
        cwd: Path | None,
        variables: Mapping[str, str],
    ) -> None:
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**os.environ, **variables},
        )
        self.number = 0
        # The methods of notifications that came between answers.
        self.announced: list[str] = []

    def send(self, method: str, **params: Any) -> int:
        self.number += 1
        self._write({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        return self.number

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout
        while line := self.process.stdout.readline():
            message: dict[str, Any] = json.loads(line)
            if "id" in message and "method" not in message:
                return message
            self.announced.append(message["method"])
        raise AssertionError("the window was closed")

    def tools(self) -> list[str]:
        """Return the names of the tools that the window offers now."""
        return [tool["name"] for tool in self.ask("tools/list")["result"]["tools"]]

    def wait_for(self, method: str) -> None:
        """Wait for a notification, which comes between the answers to pings."""
        until(lambda: method in self.announced or not self.ask("ping"))

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        number = self.send(method, **params)
        answer = self.receive()
        assert answer["id"] == number
        return answer

    def greet(self) -> Self:
        """Shake hands, and wait until the server itself answers."""
        self.hello()
        # Windows answer no call by themselves.
        self.ask("tools/call", name="no such tool", arguments={})
        return self

    def hello(self) -> dict[str, Any]:
        """Shake hands; the window may answer before there is a server."""
        answer = self.ask("initialize", **HELLO)
        assert answer["result"]["serverInfo"]["name"] == "ragdocs"
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        result: dict[str, Any] = answer["result"]
        return result

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = self.ask("tools/call", name=tool, arguments=arguments)
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def refuse(self, tool: str, **arguments: Any) -> str:
        """Call a tool that must fail and return what it says."""
        result = self.call(tool, **arguments)
        assert result["isError"], result
        text: str = result["content"][0]["text"]
        return text

    def write(self, line: bytes) -> None:
        """Send any bytes."""
        assert self.process.stdin
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def close(self) -> int:
        with contextlib.suppress(BrokenPipeError):
            assert self.process.stdin
            self.process.stdin.close()
        code = self.process.wait(PATIENCE)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe:
                pipe.close()
        return code

    def _write(self, message: dict[str, Any]) -> None:
        self.write(json.dumps(message).encode() + b"\n")


def servers(runtime: Path) -> list[int]:
    """List the processes that hold a lock in the folder and are alive."""
    found = [int(text) for lock in runtime.glob("*.lock") if (text := lock.read_text())]
    return [number for number in found if is_alive(number)]


def is_alive(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def thread_states(number: int) -> list[str]:
    """Return the state of each thread of a process, "T" for one that is stopped."""
    states = []
    for path in Path(f"/proc/{number}/task").iterdir():
        states.append((path / "stat").read_text().rsplit(")", 1)[1].split()[0])
    return states


def until(condition: Callable[[], object], what: str = "") -> None:
    """Look until something is so, and fail when it takes too long."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"never happened: {what or condition}"
        time.sleep(0.02)
