"""A running server follows its configuration: a mended or new config.toml needs no restart."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

import anyio
import anyio.to_thread

from ragdocs.errors import RagdocsError
from ragdocs.serve.live import Live
from ragdocs.serve.mcp import instructions
from ragdocs.serve.mcp.server import ToolServer
from ragdocs.serve.source import Source, States

logger = logging.getLogger("ragdocs")

# How often the configuration files are looked at, which costs a few calls of the system.
LOOK_SECONDS = 0.5


def open_project(source: Source) -> Live | RagdocsError:
    """Return the project of a source, or the error that keeps it from being served."""
    try:
        return Live(source.load())
    except RagdocsError as error:
        return error


class Follower(Protocol):
    """Gives a server another project when there is one, so that its clients need not come back."""

    async def run(self) -> None:
        """Look again and again, for as long as the server runs."""

    async def look(self) -> None:
        """Look now."""


class Follow:
    """Gives a server the project that somebody else keeps live."""

    def __init__(
        self,
        server: ToolServer,
        live: Callable[[], Live | None],
        changed: Callable[[], Awaitable[None]],
    ) -> None:
        self._server = server
        self._live = live
        self._changed = changed

    async def run(self) -> None:
        """Look again and again, for as long as the server runs."""
        while True:
            await anyio.sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Take the project that is live now, if it is another one."""
        live = self._live()
        if live is None or live is self._server.live:
            return
        self._server.adopt(live)
        await self._changed()
        await self._server.announce()


class Reload:
    """Gives a server another project whenever the configuration has changed."""

    def __init__(
        self,
        server: ToolServer,
        source: Source,
        states: States,
        changed: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Compare with `states`, which were read before the server's configuration was."""
        self._server = server
        self._source = source
        self._states = states
        self._changed = changed
        self._lock = anyio.Lock()

    async def run(self) -> None:
        """Look at the files again and again, for as long as the server runs."""
        while True:
            await anyio.sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Read the configuration again if a file of it has changed."""
        async with self._lock:
            states = self._source.states()
            if states != self._states:
                self._states = states
                project = await anyio.to_thread.run_sync(open_project, self._source)
                await self._take(project)

    async def _take(self, project: Live | RagdocsError) -> None:
        before = self._server.live
        if before is not None and not isinstance(project, Live):
            # A file that is being edited does not take the tools away.
            warning = instructions.for_old_settings(project)
            logger.warning("%s", warning)
            self._server.instruct(instructions.for_project(before.config, warning))
            return
        if before is not None and isinstance(project, Live) and before.config == project.config:
            self._server.instruct(instructions.for_project(before.config))
            return
        self._server.adopt(project)
        await self._server.announce()
        if before is not None:
            await anyio.to_thread.run_sync(before.stop)
        if self._changed:
            await self._changed()
