"""A real MCP client on a real server in this process: tests call tools as an agent does."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, TextContent, Tool
from tests.faults.nursery import shared_nursery
from tests.serve.windows import servers, until

from ragdocs.serve.cli import app as cli
from ragdocs.serve.live import Live
from ragdocs.serve.mcp.server import ToolServer

if TYPE_CHECKING:
    from tests.conftest import Project

    Connect = Callable[..., "Session"]
    Run = Callable[..., tuple[int, str, str]]


class Session:
    """A connected client; every method waits for its answer."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal = portal
        self._client = client

    def ask(self, method: str, *arguments: Any, **named: Any) -> Any:
        """Call any method of the client."""
        return self._portal.call(lambda: getattr(self._client, method)(*arguments, **named))

    def raw(self, tool: str, /, **arguments: Any) -> CallToolResult:
        """Call a tool and return whatever comes back."""
        result = self.ask("call_tool", tool, arguments)
        assert isinstance(result, CallToolResult)
        return result

    def call(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool that must succeed and return its structured answer."""
        result = self.raw(tool, **arguments)
        assert not result.is_error, text_of(result)
        return result.structured_content

    def text(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool that must succeed and return its text."""
        result = self.raw(tool, **arguments)
        assert not result.is_error, text_of(result)
        return text_of(result)

    def error(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool that must fail and return what it says."""
        result = self.raw(tool, **arguments)
        assert result.is_error, text_of(result)
        assert result.structured_content is None
        return text_of(result)

    def settle(self) -> Session:
        """Wait until every passage has its vector, which a background thread gives them."""
        until(
            lambda: all(
                lane["vectors"] == lane["chunks"] for lane in self.call("index_status")["lanes"]
            )
        )
        return self

    def tools(self) -> list[Tool]:
        return list(self.ask("list_tools").tools)

    def listed(self, names: Collection[str]) -> dict[str, dict[str, Any]]:
        """Return the tools of these names as a client reads them.

        With the `defaults` of their parameters.
        """
        tools = [
            tool.model_dump(by_alias=True, exclude_none=True)
            for tool in self.tools()
            if tool.name in names
        ]
        for tool in tools:
            required = tool["inputSchema"].get("required", [])
            tool["defaults"] = {
                name: None
                if name in required
                else "null"
                if field["default"] is None
                else field["default"]
                for name, field in tool["inputSchema"]["properties"].items()
            }
        return {tool["name"]: tool for tool in tools}

    @property
    def instructions(self) -> str:
        return self._client.instructions or ""


def text_of(result: CallToolResult) -> str:
    assert len(result.content) == 1
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


@pytest.fixture
def launch(project: Project) -> Iterator[Connect]:
    """Start the server as a process, as an IDE does, and connect to it."""
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())

        def start(mode: str = "auto", **flags: object) -> Session:
            settings = [f"--set={key}={value}" for key, value in {**project.flags, **flags}.items()]
            parameters = StdioServerParameters(
                command=sys.executable,
                args=["-P", "-m", "ragdocs", "mcp", "--project", str(project.root), *settings],
                env={
                    name: value
                    for name, value in os.environ.items()
                    if name.startswith(("XDG_", "RAGDOCS_"))
                },
            )
            client = Client(parameters, mode=mode, read_timeout_seconds=30)
            return Session(portal, stack.enter_context(portal.wrap_async_context_manager(client)))

        yield start


@pytest.fixture
def connect(project: Project) -> Iterator[Connect]:
    """Serve the project as it is now and connect to it once its files are read.

    A server that is still reading answers with what it has, and how much that is is chance. Flags
    are settings, `lends` is a model.
    """
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())

        def open_session(mode: str = "auto", lends: Any = None, **flags: object) -> Session:
            live = Live(project.config(**{"watch.enabled": False, **flags}))
            stack.callback(live.stop)
            client = Client(
                ToolServer(live), mode=mode, raise_exceptions=True, sampling_callback=lends
            )
            entered = stack.enter_context(portal.wrap_async_context_manager(client))
            live.start()
            until(lambda: live.settled)
            return Session(portal, entered)

        yield open_session


@pytest.fixture
def run(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Run commands in the project of the test; return exit code, output and errors."""

    def run(*words: str, stdin: str = "", root: Path = project.root) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        code = cli.main([*words, "--project", str(root), "--set", "embedding.model=hash"])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def answer(result: tuple[int, str, str]) -> Any:
    """Return what a command printed as JSON; it must have succeeded."""
    assert result[0] == 0, result[2]
    return json.loads(result[1])


@pytest.fixture
def runtime(sockets: Path) -> Iterator[Path]:
    """Give the servers of one test a folder of their own, and end them with it."""
    folder = sockets / f"ragdocs-{os.getuid()}"
    yield folder
    for server in servers(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(server, signal.SIGKILL)


@pytest.fixture
def quick_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a nursery fork the servers that windows start; they are started cold elsewhere."""
    monkeypatch.setenv("PYTHONPATH", shared_nursery().stand_in())


@pytest.fixture
def served(project: Project) -> Project:
    project.write("config.toml", "[memory]\nenabled = true\n")
    project.doc("guide.md", "# Guide\n\nTokens are refreshed every quarter of an hour.\n")
    return project
