"""The `entries` toolset: five tools for facts that need no file name; the names are those of their document."""

# ruff: noqa: N803, PLR0917 - parameters are those of the document, as it spells them

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from mcp_types import CallToolResult

from ragdocs.serve import render
from ragdocs.serve.live import Live
from ragdocs.serve.tools_docs import READ
from ragdocs.serve.tools_memory import ADD, REMOVE
from ragdocs.verbs.entry_shapes import EntryAdded, EntryDeleted, EntryFound, EntryHits, EntryStats

if TYPE_CHECKING:
    from ragdocs.serve.server import ToolServer

EntryType = Literal["fact", "preference", "event", "insight", "task", "relationship"]


def register(server: ToolServer, live: Live) -> None:
    """Add the tools of this set to the server."""
    _register_adding(server, live)
    _register_finding(server, live)
    _register_upkeep(server, live)


def _register_adding(server: ToolServer, live: Live) -> None:
    @server.tool(title="Add an entry", annotations=ADD)
    def memory_add(
        content: str,
        entryType: EntryType = "fact",
        source: str = "manual",
        context: str | None = None,
        confidence: float = 1.0,
        importance: int = 5,
        tags: list[str] | None = None,
        expiresAt: int | str | None = None,
    ) -> Annotated[CallToolResult, EntryAdded]:
        """Keep one thing worth knowing: what somebody prefers, a fact, an insight, a task. Call it when you learn it.
        `context` is searched too; after `expiresAt` it is not found any more. The same content again returns the id
        that it has and changes nothing. Example: {"content": "User prefers dark mode", "entryType": "preference",
        "importance": 7, "tags": ["ui"]}"""
        from ragdocs.verbs.entry_rules import NewEntry

        added = live.workspace().entries.add(
            NewEntry(
                content=content,
                kind=entryType,
                source=source,
                context=context or "",
                confidence=confidence,
                importance=importance,
                tags=tags or (),
                expires_at=expiresAt,
            )
        )
        return render.result(added, render.entry_added(added))


def _register_finding(server: ToolServer, live: Live) -> None:
    @server.tool(title="Search entries", annotations=READ)
    def memory_search(
        query: str,
        mode: Literal["hybrid", "vector", "keyword"] = "hybrid",
        limit: int = 10,
        entryTypes: list[EntryType] | None = None,
        minImportance: float | None = None,
        minConfidence: float | None = None,
        tags: list[str] | None = None,
    ) -> Annotated[CallToolResult, EntryHits]:
        """Find entries and other memories by meaning, words or both, before you ask or assume. Returns content, score,
        what matched, age and id. Say with memory_get and used=true which one helped: being found earns nothing.
        Example: {"query": "which theme does the user like", "entryTypes": ["preference"], "minImportance": 5}"""
        from ragdocs.verbs.entry_rules import Wanted

        wanted = Wanted(
            kinds=entryTypes or (), min_importance=minImportance, min_confidence=minConfidence, tags=tags or ()
        )
        found = live.workspace().entries.search(query, mode, limit, wanted)
        return render.result(found, render.entries(found))

    @server.tool(title="Read an entry", annotations=ADD)
    def memory_get(id: str, used: bool = False) -> Annotated[CallToolResult, EntryFound]:  # noqa: A002 - the document's name
        """Read one entry whole, by its id. Set `used` when it really helped you: entries that were of use rank a little
        higher among near equals. Example: {"id": "mem_3f2a9b8c7d6e", "used": true}"""
        found = live.workspace().entries.get(id, used=used)
        return render.result(found, render.entry(found))


def _register_upkeep(server: ToolServer, live: Live) -> None:
    @server.tool(title="Count entries", annotations=READ)
    def memory_stats() -> Annotated[CallToolResult, EntryStats]:
        """Count entries by type, their average importance and confidence, how often they were found, read and used,
        and tell the oldest and the newest."""
        stats = live.workspace().entries.stats()
        return render.result(stats, render.entry_stats(stats))

    @server.tool(title="Delete an entry", annotations=REMOVE)
    def memory_delete(id: str) -> Annotated[CallToolResult, EntryDeleted]:  # noqa: A002 - the document's name
        """Move an entry that is wrong or no longer true to the trash folder. Returns whether there was one.
        Example: {"id": "mem_3f2a9b8c7d6e"}"""
        deleted = live.workspace().entries.delete(id)
        return render.result(deleted, render.entry_deleted(deleted))
