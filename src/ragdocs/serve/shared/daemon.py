"""The shared server of one project, for every window that connects to its socket."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
from anyio.abc import Listener, SocketAttribute, SocketStream, TaskGroup
from mcp.server.context import ServerMiddleware

from ragdocs.caller import Caller
from ragdocs.errors import RagdocsError
from ragdocs.serve.live import Live
from ragdocs.serve.mcp.intake import LONGEST_LINE, Line, Overlong
from ragdocs.serve.mcp.reload import Reload, open_project
from ragdocs.serve.mcp.server import ToolServer
from ragdocs.serve.shared import callers, leftovers, record
from ragdocs.serve.shared.client import METHOD
from ragdocs.serve.shared.page import Page
from ragdocs.serve.shared.shim import NOT_SHARED, PING, READY
from ragdocs.serve.source import server_source
from ragdocs.system import held_file, local_socket, platform, signals

if TYPE_CHECKING:
    from ragdocs.serve.cli.served import Commands

# A window that is closed and opened again finds the server warm; nobody who is gone keeps it alive.
IDLE_SECONDS = 60.0
# A window introduces itself as soon as it is connected.
INTRODUCTION_SECONDS = 30.0
TICK_SECONDS = 0.5
READ_AT_ONCE = 64 * 1024
# A server that ends still saves its index, while the next one may be starting.
LOCK_SECONDS = 5.0

Record = Callable[[], Coroutine[Any, Any, None]]


class Lines:
    """A socket as the line-wise files that the SDK's stdio transport reads and writes."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        # Bytes that were received after the end of a line.
        self._rest = b""

    async def __aiter__(self) -> AsyncIterator[Line]:
        while True:
            line = await self.next()
            if not line:
                return
            yield line

    async def next(self) -> Line | None:
        """Return the next line, only the ends of an overlong one, or nothing after the last."""
        parts: list[bytes] = []
        size = 0
        overlong: Overlong | None = None
        while True:
            data = self._rest or await self._receive()
            if not data:
                return None
            part, end, self._rest = data.partition(b"\n")
            size += len(part)
            if overlong:
                overlong.add(part)
            else:
                parts.append(part)
                if size > LONGEST_LINE:
                    overlong = Overlong(b"".join(parts))
                    parts.clear()
            if end:
                return overlong or b"".join((*parts, end))

    async def _receive(self) -> bytes:
        try:
            return await self._stream.receive(READ_AT_ONCE)
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return b""

    async def write(self, text: str) -> None:
        """Send a line; a client that is gone misses nothing."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._stream.send(text.encode())

    async def flush(self) -> None:
        """Do nothing, because lines are sent at once."""


class Shared:
    """One live project and the clients that are connected to it."""

    def __init__(self, server: ToolServer, reload: Reload, record: Record) -> None:
        self._server = server
        self._reload = reload
        self._record = record
        self._page = Page(lambda: self._server.live)
        for private in (self._command, self._page.intercept):
            self._server.middleware.insert(0, cast("ServerMiddleware[Any]", private))
        self._clients = 0
        # What windows must know where any process can connect.
        self._secret = ""

    async def _command(self, context: Any, call_next: Any) -> Any:
        """Answer a command; pass every other request on."""
        if context.method != METHOD:
            return await call_next(context)
        commands = await anyio.to_thread.run_sync(lambda: self._commands)
        return await commands.intercept(context, call_next)

    @cached_property
    def _commands(self) -> Commands:
        """The commands of the project, imported with the first one: most windows send none."""
        from ragdocs.serve.cli.served import Commands

        return Commands(lambda: self._server.live)

    async def run(self, path: str) -> None:
        """Listen until nobody has been connected for a while, or until a signal."""
        loop = asyncio.get_running_loop()
        async with (
            await self._listener(path) as listener,
            anyio.create_task_group() as tasks,
        ):
            with signals.called_at_end(loop, tasks.cancel_scope.cancel):
                await self._serve(listener, tasks)

    async def _listener(self, path: str) -> Listener[SocketStream]:
        if local_socket.has_unix_sockets():
            return await anyio.create_unix_listener(path, mode=0o600)
        self._secret = local_socket.new_secret()
        listener = await anyio.create_tcp_listener(local_host=local_socket.LOOPBACK)
        port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - of anyio
        local_socket.publish(path, port, self._secret)
        return listener

    async def _serve(self, listener: Listener[SocketStream], tasks: TaskGroup) -> None:
        tasks.start_soon(listener.serve, self._talk)
        tasks.start_soon(self._reload.run)
        tasks.start_soon(self._record)
        self._page.run_in(tasks)
        idle = 0.0
        while idle < IDLE_SECONDS:
            await anyio.sleep(TICK_SECONDS)
            idle += TICK_SECONDS
            if self._clients or self._page.is_used:
                idle = 0.0
        tasks.cancel_scope.cancel()

    async def _talk(self, stream: SocketStream) -> None:
        async with stream:
            lines = Lines(stream)
            client = None
            if await self._is_proven(lines):
                client = await self._introduced(lines)
            if client is None:
                return
            self._clients += 1
            try:
                # Whoever comes after an edit of the configuration is served by the new one.
                await self._reload.look()
                await self._server.talk(lines, client, lines)
            finally:
                self._clients -= 1

    async def _is_proven(self, lines: Lines) -> bool:
        """Tell whether the other side is a process of this user."""
        if not self._secret:
            return True
        proof = local_socket.Proof(self._secret)
        with anyio.move_on_after(INTRODUCTION_SECONDS):
            challenge = await lines.next()
            if isinstance(challenge, bytes):
                response, is_right = proof.respond(challenge)
                await lines.write(response.decode())
                answer = await lines.next()
                return isinstance(answer, bytes) and is_right(answer)
        return False

    async def _introduced(self, lines: Lines) -> Caller | None:
        """Return the caller behind a connection, or nothing for a ping or a stranger.

        The secrets of an unknown client could not be kept out of what it writes.
        """
        introduction: Line | None = None
        with anyio.move_on_after(INTRODUCTION_SECONDS):
            introduction = await lines.next()
        if not isinstance(introduction, bytes):
            return None
        client = None
        try:
            if introduction != PING:
                client = callers.read(introduction)
        except RagdocsError as error:
            await lines.write(f"{error}\n")
            return None
        await lines.write(READY.decode())
        return client


def main() -> None:
    """Serve the project of the arguments: the address, then the options of `ragdocs mcp`."""
    address, *arguments = sys.argv[1:]
    # One server for one address, for as long as this process lives.
    lock = held_file.take(f"{address}.lock", LOCK_SECONDS)
    if lock is None:
        sys.exit("another server is there already")
    held_file.write(lock, str(os.getpid()))
    path = Path(f"{address}{local_socket.ending()}")
    path.unlink(missing_ok=True)
    # Each window brings its own; those of the first window are not for all.
    for name in callers.PERSONAL:
        os.environ.pop(name, None)
    platform.read_zone_again()
    server = _serve(address, arguments)
    path.unlink(missing_ok=True)
    if server.live:
        server.live.stop()
    leftovers.remove(address, lock)
    sys.stderr.flush()
    os._exit(0)


def _serve(address: str, arguments: list[str]) -> ToolServer:
    """Serve until nobody is connected any more; return the server, which may have to be saved."""
    source = server_source(arguments)
    if source is None:
        sys.exit(f"unknown options: {' '.join(arguments)}")
    states = source.states()
    project = open_project(source)
    if isinstance(project, Live) and not project.config.server.shared:
        sys.exit(NOT_SHARED)
    server = ToolServer(project, source.folder)

    async def leave_answers() -> None:
        # A project that cannot be served may be mended before the next start.
        if server.live:
            await record.write(server, address, source.states())

    reload = Reload(server, source, states, leave_answers)
    leftovers.sweep(address)
    anyio.run(Shared(server, reload, leave_answers).run, f"{address}{local_socket.ending()}")
    return server


if __name__ == "__main__":
    main()
