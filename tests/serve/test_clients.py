"""Who is listed as a client of a server."""

from __future__ import annotations

import asyncio

from tests.conftest import Project

from ragdocs.serve.live import Live
from ragdocs.serve.mcp.server import ToolServer
from ragdocs.serve.shared import record
from ragdocs.serve.surface.clients import CLIENTS


def test_what_a_server_asks_itself_is_no_client(project: Project) -> None:
    before = {client.session for client in CLIENTS.present("")}
    server = ToolServer(Live(project.config()))
    by_version = asyncio.run(record.versions(server, record.Table()))
    assert by_version
    assert {client.session for client in CLIENTS.present("")} <= before
