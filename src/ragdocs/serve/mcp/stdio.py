"""A server for one client, on the standard input and output of this process."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from queue import SimpleQueue

import anyio

from ragdocs.caller import Caller
from ragdocs.serve.mcp.intake import LONGEST_LINE, Line, Overlong
from ragdocs.serve.mcp.reload import Reload, open_project
from ragdocs.serve.mcp.server import ToolServer
from ragdocs.serve.source import Source
from ragdocs.system import processes, signals

# Bytes of an overlong line that are read at once.
READ_AT_ONCE = 64 * 1024
# Lines that are read before the first of them is taken, and lines that wait to be written.
LINES_AHEAD = 2
ANSWERS_AHEAD = 8
# How long a client that goes away is waited for, if it has not read its last answers.
LAST_SECONDS = 5.0


class Requests:
    """Standard input, line by line, read by a thread of its own."""

    def __init__(self) -> None:
        self._lines: asyncio.Queue[Line | None] = asyncio.Queue()
        self._room = threading.Semaphore(LINES_AHEAD)

    async def __aiter__(self) -> AsyncIterator[Line]:
        loop = asyncio.get_running_loop()
        threading.Thread(
            target=self._read, args=(loop,), name="ragdocs-requests", daemon=True
        ).start()
        while True:
            line = await self._lines.get()
            if not line:
                return
            self._room.release()
            yield line

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        line: Line | None = b""
        # A loop that has ended takes no more lines.
        with suppress(RuntimeError):
            while line is not None:
                self._room.acquire()
                line = _read_line()
                loop.call_soon_threadsafe(self._lines.put_nowait, line)


class Answers:
    """Standard output, line by line, written by a thread of its own.

    The stream of the SDK hands each line to a thread twice and waits for it, which a search can
    feel.
    """

    def __init__(self) -> None:
        self._output = processes.take_output()
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._room = threading.Semaphore(ANSWERS_AHEAD)
        self._failure: OSError | None = None
        self._thread = threading.Thread(target=self._write, name="ragdocs-answers", daemon=True)
        self._thread.start()

    async def write(self, text: str) -> None:
        """Take a line, as soon as the client has read most of those before it."""
        if not self._room.acquire(blocking=False):
            await anyio.to_thread.run_sync(self._room.acquire)
        if self._failure is not None:
            raise self._failure
        self._lines.put(text.encode())

    async def flush(self) -> None:
        """Do nothing: every line is written whole."""

    def close(self) -> None:
        """Wait until the last line is written."""
        self._lines.put(None)
        self._thread.join(LAST_SECONDS)

    def _write(self) -> None:
        try:
            while line := self._lines.get():
                self._output.write(line)
                self._output.flush()
                self._room.release()
        except OSError as error:
            # The client has closed its end: whoever answers next is told.
            self._failure = error
            self._room.release(ANSWERS_AHEAD)


def _read_line() -> Line | None:
    """Read a line of standard input; of one that is too long, keep only its ends."""
    source = sys.stdin.buffer
    line = source.readline(LONGEST_LINE + 1)
    if len(line) <= LONGEST_LINE:
        return line or None
    overlong = Overlong(line)
    while line and not line.endswith(b"\n"):
        line = source.readline(READ_AT_ONCE)
        overlong.add(line)
    return overlong


def serve(source: Source) -> None:
    """Serve a project over standard input and output until the client goes away."""
    states = source.states()
    server = ToolServer(open_project(source), source.folder)
    reload = Reload(server, source, states)
    # A buffered print of some library would otherwise land on the wire when the process ends.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    anyio.run(_talk_until_signalled, server, reload)
    _leave(server)


async def _talk_until_signalled(server: ToolServer, reload: Reload) -> None:
    def leave() -> None:
        threading.Thread(target=_leave, args=(server,), daemon=True).start()

    loop = asyncio.get_running_loop()
    answers = Answers()
    with signals.called_at_end(loop, leave):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reload.run)
            await server.talk(Requests(), Caller(), answers)
            tasks.cancel_scope.cancel()
    answers.close()


def _leave(server: ToolServer) -> None:
    """Save and end at once, even if threads still wait for events or models."""
    if server.live:
        server.live.stop()
    sys.stderr.flush()
    os._exit(0)
