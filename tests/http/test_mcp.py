"""MCP over HTTP, in both eras, with roles and sessions of their own."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.http.site import make_token, serving
from tests.serve.conftest import Session

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.http.conftest import World

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
ACCEPT = {"accept": "application/json, text/event-stream", "content_type": "application/json"}


@contextmanager
def connected(world: World, token: str, mode: str) -> Iterator[Session]:
    address = f"http://{world.site.host}/mcp"
    http = httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"})
    client: Any = Client(streamable_http_client(address, http_client=http), mode=mode)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(http),
        portal.wrap_async_context_manager(client) as entered,
    ):
        yield Session(portal, entered)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_finds_and_calls_the_tools(world: World, mode: str) -> None:
    with connected(world, world.writer, mode) as session:
        names = [tool.name for tool in session.tools()]
        assert "search_docs" in names
        found = session.call("search_docs", query="refreshed")
        assert found["result"][0]["path"] == "docs/guide.md"
        name = f"over-http-{mode}.md"
        session.call("create_memory", filename=name, content="written over HTTP", tags=[])
        assert (world.project.root / ".memories" / name).exists()
        session.call("append_memory", filename=name, content="and changed")
    history = world.site.ask("/api/memory_history", {"filename": name}, token=world.writer).json
    # The program that introduced itself, not the token.
    assert [revision["author"] for revision in history["result"]] == ["mcp"]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_reader_cannot_write_over_mcp(world: World, mode: str) -> None:
    with connected(world, world.reader, mode) as session:
        refusal = session.error("create_memory", filename="r.md", content="x", tags=[])
        assert "you are a reader" in refusal


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_what_a_client_read_is_remembered_until_it_writes(world: World, mode: str) -> None:
    section = f"read-{mode}"
    with connected(world, world.writer, mode) as session:
        session.call("journal_read", id=section)
        first = session.call("journal_write", path=section, entry="The mill turns.", overview="A")
        # Without sessions, clients are told apart by their tokens.
        token = world.writer
        if mode == "auto":
            token = world.colleague
        with connected(world, token, mode) as other:
            other.call("journal_read", id=section)
            other.call("journal_write", path=section, entry="It stands.", overview="B")
        error = session.error("journal_write", path=section, entry="x", overview="C")
    assert first["id"].startswith(section)
    assert "since you read it" in error


def test_a_session_belongs_to_the_token_that_began_it(world: World) -> None:
    begun = world.site.ask("/mcp", HELLO, token=world.writer, **ACCEPT)
    assert begun.status == 200
    session = {"mcp_session_id": begun.headers["mcp-session-id"]}
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
    own = world.site.ask("/mcp", listing, token=world.writer, **ACCEPT, **session)
    assert own.status == 200
    stolen = world.site.ask("/mcp", listing, token=world.reader, **ACCEPT, **session)
    assert stolen.status == 404


def test_calls_beyond_the_limit_wait_for_their_turn(project: Project) -> None:
    project.write("config.toml", "")
    project.doc("guide.md", "# Guide\n\nTokens.\n")
    token = make_token(project.root)
    with serving(project.root, "--max-running", "1") as site:
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "search_docs", "arguments": {"query": "tokens"}, "_meta": ENVELOPE},
        }
        headers = {
            "mcp_protocol_version": "2026-07-28",
            "mcp_method": "tools/call",
            "mcp_name": "search_docs",
        }

        def ask(_: int) -> bool:
            answer = site.ask("/mcp", call, token=token, **ACCEPT, **headers)
            return answer.status == 200 and "guide.md" in answer.text

        with ThreadPoolExecutor(12) as clients:
            assert all(clients.map(ask, range(48)))


def test_a_stranger_is_told_where_to_get_a_token(world: World) -> None:
    refused = world.site.ask("/mcp", HELLO, **ACCEPT)
    assert refused.status == 401
    assert refused.headers["www-authenticate"] == 'Bearer realm="ragdocs"'
