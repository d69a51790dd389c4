"""The `edit` toolset: earlier texts of memories, the way back to them, and new names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from mcp_types import CallToolResult

from ragdocs.serve.live import Live
from ragdocs.serve.mcp.tools_docs import READ
from ragdocs.serve.mcp.tools_memory import REMOVE, REPLACE
from ragdocs.serve.surface import present as render
from ragdocs.verbs.shapes import Renamed, Revisions, Saved

if TYPE_CHECKING:
    from ragdocs.serve.mcp.server import ToolServer


def register(server: ToolServer, live: Live) -> None:
    """Add the tools of this set to the server."""

    @server.tool(title="List earlier texts", annotations=READ)
    def memory_history(filename: str | None = None, limit: int = 10) -> Annotated[CallToolResult, Revisions]:
        """List the earlier texts of a memory, also under names it had before, or the latest changes of all memories.
        Call it before restore_memory, or to see what was changed and deleted lately. Returns for each change: when,
        which verb, the version that was replaced and the one it became.
        Example: {"filename": "auth-plan.md"}"""
        revisions = live.workspace().versions.history(filename or "", limit)
        return render.result(revisions, render.revisions(revisions))

    @server.tool(title="Restore an earlier text", annotations=REPLACE)
    def restore_memory(filename: str, version: str | None = None) -> Annotated[CallToolResult, Saved]:
        """Bring back an earlier text of a memory, or a deleted memory: the version from memory_history, or the text
        before the last change. What is there now is kept in history too.
        Example: {"filename": "auth-plan.md", "version": "3f2a9b8c7d6e5f4a"}"""
        saved = live.workspace().versions.restore(filename, version)
        return render.result(saved, render.saved(saved))

    @server.tool(title="Rename a memory", annotations=REMOVE)
    def rename_memory(
        filename: str, new_name: str, expected_version: str | None = None
    ) -> Annotated[CallToolResult, Renamed]:
        """Give a memory another name or folder and rewrite the links to it in all memories; either everything happens
        or nothing. Fails if the new name is taken. Returns how many links were rewritten in which files.
        Example: {"filename": "notes.md", "new_name": "auth/session-notes.md"}"""
        renamed = live.workspace().edits.rename(filename, new_name, expected_version)
        return render.result(renamed, render.renamed(renamed))
