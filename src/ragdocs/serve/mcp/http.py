"""MCP over Streamable HTTP for one project."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import Receive, Scope, Send

from ragdocs.caller import current
from ragdocs.serve.mcp.reload import Follower
from ragdocs.serve.mcp.server import ToolServer


class Endpoint:
    """The server behind one address; the guard in front of it has checked who asks."""

    def __init__(self, server: ToolServer, follower: Follower, body_bytes: int) -> None:
        self._follower = follower
        # The guard knows the names of this server and checks them for all paths alike.
        unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        self._sessions = StreamableHTTPSessionManager(
            server.lowlevel,
            security_settings=unchecked,
            max_request_body_size=body_bytes,
        )

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Return the context in which requests are answered and the project is followed."""
        async with self._sessions.run(), anyio.create_task_group() as tasks:
            tasks.start_soon(self._follower.run)
            yield
            tasks.cancel_scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of the caller; a session belongs to the credential that began it."""
        caller = current()
        credential = AccessToken(
            token=caller.session, client_id=caller.session, scopes=[caller.role]
        )
        scope["user"] = AuthenticatedUser(credential)
        await self._sessions.handle_request(scope, receive, send)
