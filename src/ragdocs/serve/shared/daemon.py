"""The shared server of one project, for every window that connects to its socket."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import anyio
from anyio.abc import SocketStream

from ragdocs.caller import Caller
from ragdocs.errors import RagdocsError
from ragdocs.serve.live import Live
from ragdocs.serve.mcp.intake import LONGEST_LINE, Line, Overlong
from ragdocs.serve.mcp.server import ToolServer
from ragdocs.serve.shared import callers
from ragdocs.serve.shared.shim import PING, READY
from ragdocs.serve.start import server_config

# A window that is closed and opened again finds the server warm; nobody who is gone keeps it alive.
IDLE_SECONDS = 60.0
# A window introduces itself as soon as it is connected.
INTRODUCTION_SECONDS = 30.0
TICK_SECONDS = 0.5
READ_AT_ONCE = 64 * 1024


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

    def __init__(self, live: Live) -> None:
        self._live = live
        self._server = ToolServer(live)
        self._clients = 0

    async def run(self, socket: str) -> None:
        """Listen until nobody has been connected for a while, or until a signal."""
        async with (
            await anyio.create_unix_listener(socket, mode=0o600) as listener,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(listener.serve, self._talk)
            tasks.start_soon(self._obey_signals, tasks.cancel_scope)
            idle = 0.0
            while idle < IDLE_SECONDS:
                await anyio.sleep(TICK_SECONDS)
                idle += TICK_SECONDS
                if self._clients:
                    idle = 0.0
            tasks.cancel_scope.cancel()

    async def _talk(self, stream: SocketStream) -> None:
        async with stream:
            lines = Lines(stream)
            client = await self._introduced(lines)
            if client is None:
                return
            self._clients += 1
            try:
                await self._server.talk(lines, client, lines)
            finally:
                self._clients -= 1

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

    async def _obey_signals(self, scope: anyio.CancelScope) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                scope.cancel()


def main() -> None:
    """Serve the project of the arguments: the address, then the options of `ragdocs mcp`."""
    import fcntl

    address, *arguments = sys.argv[1:]
    # One server for one address, for as long as this process lives.
    lock = os.open(f"{address}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit("another server is there already")
    os.ftruncate(lock, 0)
    os.write(lock, str(os.getpid()).encode())
    socket = Path(f"{address}.sock")
    socket.unlink(missing_ok=True)
    # Each window brings its own; those of the first window are not for all.
    for name in callers.PERSONAL:
        os.environ.pop(name, None)
    time.tzset()
    config = server_config(arguments)
    if not config.server.shared:
        sys.exit("server.shared is false")
    live = Live(config)
    anyio.run(Shared(live).run, str(socket))
    socket.unlink(missing_ok=True)
    live.stop()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
