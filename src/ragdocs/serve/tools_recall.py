"""The `recall` toolset: the two memory tools an agent reaches for without thinking of names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from mcp_types import CallToolResult

from ragdocs.serve import render
from ragdocs.serve.live import Live
from ragdocs.serve.tools_docs import READ
from ragdocs.serve.tools_memory import ADD
from ragdocs.verbs.shapes import Recalled, Remembered

if TYPE_CHECKING:
    from ragdocs.serve.server import ToolServer


def register(server: ToolServer, live: Live) -> None:
    """Add the tools of this set to the server."""

    @server.tool(title="Remember", annotations=ADD)
    def remember(content: str, tags: list[str] | None = None) -> Annotated[CallToolResult, Remembered]:
        """Keep what you just did, decided or found out, so that the next session starts where this one ends. Call it
        yourself, no need to ask: when a task or milestone is done, a choice is made, a bug turns out to have a reason,
        or you learn how this code really works. Write markdown: what, why, what was rejected, which files, what to
        watch out for. Time, branch, commit and changed files are added for you, and no file name is needed.
        Example: {"content": "Chose OAuth2 over JWT: sessions must be revocable at once, see …", "tags": ["auth"]}"""
        kept = live.workspace().recall.remember(content, tags or ())
        return render.result(kept, render.remembered(kept))

    @server.tool(title="Recall", annotations=READ)
    def recall(
        query: str | None = None,
        tags: list[str] | None = None,
        since: str | None = None,
        limit: int = 10,
        scope: Literal["project", "global"] = "project",
    ) -> Annotated[CallToolResult, Recalled]:
        """Pick up where earlier sessions left off. Call it first thing in every session, and again before you
        investigate something that may have been solved already: without arguments it returns the latest memories, with
        `query` the best matches, typos included. scope "global" asks all projects, for stand-ups. Each memory says how
        old it is and on which branch it was written: check old ones against the code.
        Examples: {} or {"query": "auth"} or {"scope": "global", "since": "yesterday"}"""
        found = live.workspace().recall.recall(
            query or "", tags=tags or (), since=since or "", limit=limit, scope=scope
        )
        return render.result(found, render.recalled(found))
