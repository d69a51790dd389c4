"""The page of a shared server: opened when a person asks for it, served from the same index."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from anyio.abc import TaskGroup

from ragdocs.serve.live import Live
from ragdocs.serve.shared.client import PAGE_METHOD

if TYPE_CHECKING:
    # A server that nobody looks at in a browser needs none of it.
    from ragdocs.serve.site import Server


class Page:
    """The HTTP side of a shared server, which most of them never have."""

    def __init__(self, live: Callable[[], Live | None]) -> None:
        self._find_live = live
        self._server: Server | None = None
        self._tasks: TaskGroup | None = None

    def run_in(self, tasks: TaskGroup) -> None:
        """Take the tasks among which the page is served."""
        self._tasks = tasks

    @property
    def is_used(self) -> bool:
        """Whether somebody has the page open, or is about to."""
        return self._server is not None and self._server.is_used

    async def intercept(self, context: Any, call_next: Any) -> Any:
        """Answer the question for an address; pass every other request on."""
        if context.method != PAGE_METHOD:
            return await call_next(context)
        return {"address": self._open().invitation()}

    def _open(self) -> Server:
        from ragdocs.serve.site import Limits, Listening, Opened, Server

        if self._server is None:
            limits = Limits()
            opened = Opened({}, limits)
            opened.follow("", self._find_live)
            # The port says nothing to anybody, so that any will do.
            self._server = Server(opened, Listening(port=0), limits)
            assert self._tasks is not None
            self._tasks.start_soon(self._server.run)
        return self._server
