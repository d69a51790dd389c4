"""Where users and models meet the program: a client and the command line."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceTemplateReference

from ragdocs import config
from ragdocs.__main__ import main
from ragdocs.serve.live import Live
from ragdocs.serve.mcp.server import ToolServer

WRONG_USAGE = 2


@dataclass(frozen=True)
class Answer:
    """What came back from one call."""

    text: str
    structured: Any = None
    failed: bool = False


class Connection:
    """A client of a server in this process; every call waits until the index is complete."""

    def __init__(self, live: Live, portal: BlockingPortal, client: Client) -> None:
        self._live = live
        self._portal = portal
        self._client = client

    def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool, `prompt:NAME`, `resource:URI` or `complete:URI`."""
        self._live.workspace().embed()
        kind, colon, rest = name.partition(":")
        if not colon:
            result = self.ask("call_tool", name, dict(arguments))
            text = "\n".join(part.text for part in result.content)
            return Answer(text, result.structured_content, result.is_error)
        ways: dict[str, Callable[[], str]] = {
            "prompt": lambda: self._prompt(rest, arguments),
            "resource": lambda: str(self.ask("read_resource", rest).contents[0].text),
            "complete": lambda: self._completion(rest, arguments),
        }
        try:
            return Answer(ways[kind]())
        except MCPError as error:
            return Answer(str(error), failed=True)

    def ask(self, method: str, *arguments: Any) -> Any:
        """Call any method of the client."""
        return self._portal.call(lambda: getattr(self._client, method)(*arguments))

    def lists(self) -> dict[str, Any]:
        """Return what the server tells about itself."""
        listed = {
            "tools": self.ask("list_tools").tools,
            "prompts": self.ask("list_prompts").prompts,
            "resources": self.ask("list_resources").resources,
            "resource_templates": self.ask("list_resource_templates").resource_templates,
        }
        dumped: dict[str, Any] = {"instructions": (self._client.instructions or "").split("\n")}
        for name, values in listed.items():
            dumped[name] = [value.model_dump(by_alias=True, exclude_none=True) for value in values]
        return dumped

    def _prompt(self, name: str, arguments: Mapping[str, Any]) -> str:
        result = self.ask("get_prompt", name, dict(arguments))
        return "\n".join(message.content.text for message in result.messages)

    def _completion(self, uri: str, arguments: Mapping[str, Any]) -> str:
        reference = ResourceTemplateReference(uri=uri)
        result = self.ask("complete", reference, {"name": "path", "value": arguments["path"]})
        return "\n".join(result.completion.values)


@contextmanager
def connect(
    root: Path, flags: Mapping[str, Any], *, everything: bool = True
) -> Iterator[Connection]:
    """Serve a project in this process and connect to it; `everything` switches all toolsets on."""
    toolsets = {"server.toolsets": (*config.TOOLSETS, *config.MORE_TOOLSETS)} if everything else {}
    live = Live(config.load(root, project=root, flags={**toolsets, **flags}))
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        stack.callback(live.stop)
        client = Client(ToolServer(live), raise_exceptions=True)
        connection = Connection(
            live, portal, stack.enter_context(portal.wrap_async_context_manager(client))
        )
        _wait_for_heartbeat(live)
        yield connection


def _wait_for_heartbeat(live: Live) -> None:
    """Wait until the background thread has been round once: index_status tells about it."""
    live.start()
    deadline = time.monotonic() + 60
    while live.heartbeat is None and time.monotonic() < deadline:
        time.sleep(0.005)
    assert live.heartbeat is not None, "the server did not open the project"


@dataclass(frozen=True)
class Run:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str


def command(words: Sequence[str], stdin: str = "") -> Run:
    """Run a command line as the installed program does, in this process."""
    out, err = io.StringIO(), io.StringIO()
    arguments, reading = sys.argv, sys.stdin
    sys.argv, sys.stdin = ["ragdocs", *words], io.StringIO(stdin)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main()
            except SystemExit as exit_:
                code = int(exit_.code or 0)
    finally:
        sys.argv, sys.stdin = arguments, reading
    return Run(code, out.getvalue(), err.getvalue())


def parsed(text: str) -> Any:
    """Read the output of a command with --json; what is no JSON stays text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
