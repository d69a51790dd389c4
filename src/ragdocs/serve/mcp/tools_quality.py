"""The `quality` toolset: one tool that tells why a search found a document, or why it did not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from mcp_types import CallToolResult

from ragdocs.serve.cli.explain import text
from ragdocs.serve.live import Live
from ragdocs.serve.mcp.tools_docs import READ
from ragdocs.serve.surface import present as render
from ragdocs.verbs.shapes import Explained

if TYPE_CHECKING:
    from ragdocs.serve.mcp.server import ToolServer


def register(server: ToolServer, live: Live) -> None:
    """Add the tool of this set to the server."""

    @server.tool(title="Explain a search", annotations=READ)
    def explain_search(
        query: str, path: str, lane: Literal["docs", "memory"] = "docs", limit: int = 5
    ) -> Annotated[CallToolResult, Explained]:
        """Tell why a search finds a document, or at which stage it drops out: not indexed, filtered, other words,
        not a candidate, below the floor, cut by limit. Call it when a result that you expected is missing.
        Returns the stage, the reason, its place and score, and what words and meaning say of its best passage.
        Example: {"query": "how are tokens refreshed", "path": "docs/auth.md"}"""
        found = live.workspace().explain(lane).explain(query, path, limit)
        return render.result(found, text(found))
