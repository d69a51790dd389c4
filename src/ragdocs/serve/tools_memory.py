"""The `memory` toolset: the ten tools of the memory lane, and one that changes a part of a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp_types import CallToolResult, ToolAnnotations

from ragdocs.serve import render
from ragdocs.serve.live import Live
from ragdocs.serve.tools_docs import READ
from ragdocs.verbs.revise import Edit
from ragdocs.verbs.shapes import Clusters, Deleted, Edited, LinkedHits, MemoryHits, MemoryText, Merged, Saved, Stats

if TYPE_CHECKING:
    from ragdocs.serve.server import ToolServer

ADD = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
REPLACE = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
REMOVE = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False)


def register(server: ToolServer, live: Live) -> None:
    """Add the tools of this set to the server."""
    _register_writing(server, live)
    _register_finding(server, live)
    _register_upkeep(server, live)


def _register_writing(server: ToolServer, live: Live) -> None:
    @server.tool(title="Create a memory", annotations=ADD)
    def create_memory(
        filename: str, content: str, tags: list[str], memory_type: str = "journal"
    ) -> Annotated[CallToolResult, Saved]:
        """Save something worth knowing later: a decision and its reasons, a plan, a fact, the cause of a bug. Call it
        at milestones without being asked. Link files and documents as [[src/auth.py]]. Fails if the file exists.
        Example: {"filename": "auth-plan.md", "content": "Move [[src/auth.py]] to JWT because …", "tags": ["auth"],
        "memory_type": "plan"}"""
        saved = live.workspace().memories.create(filename, content, tags, memory_type)
        return render.result(saved, render.saved(saved))

    @server.tool(title="Replace a memory", annotations=REPLACE)
    def update_memory(
        filename: str, content: str, expected_version: str | None = None
    ) -> Annotated[CallToolResult, Saved]:
        """Replace the whole text of a memory, frontmatter included: read it first and keep what should stay.
        `expected_version` (from read_memory) refuses the write if somebody changed the memory meanwhile."""
        saved = live.workspace().memories.update(filename, content, expected_version)
        return render.result(saved, render.saved(saved))

    @server.tool(title="Append to a memory", annotations=ADD)
    def append_memory(
        filename: str, content: str, expected_version: str | None = None
    ) -> Annotated[CallToolResult, Saved]:
        """Add a paragraph to the end of a memory, such as today's progress to a running journal.
        Example: {"filename": "session.md", "content": "- fixed the token refresh in [[src/auth.py]]"}"""
        saved = live.workspace().memories.append(filename, content, expected_version)
        return render.result(saved, render.saved(saved))

    @server.tool(title="Change a part of a memory", annotations=REMOVE)
    def edit_memory(
        filename: str,
        text: str | None = None,
        find: str | None = None,
        section: str | None = None,
        mode: Literal["replace", "replace_all", "append", "prepend"] = "replace",
        *,
        fields: dict[str, Any] | None = None,
        expected_version: str | None = None,
    ) -> Annotated[CallToolResult, Edited]:
        """Change a part of a memory instead of rewriting it: put `text` in place of (or before, behind) the one passage
        that `find` quotes, or of the section under a heading; `fields` sets frontmatter, null removes. The rest stays
        as it is. Returns the changed lines.
        Examples: {"filename": "plan.md", "find": "in May", "text": "in June"} or {"filename": "plan.md", "section":
        "Done", "mode": "append", "text": "- shipped"} or {"filename": "plan.md", "fields": {"status": "archived"}}"""
        edit = Edit(text, find, section, mode, fields)
        edited = live.workspace().edits.edit(filename, edit, expected_version)
        return render.result(edited, render.edited(edited))

    @server.tool(title="Delete a memory", annotations=REMOVE)
    def delete_memory(filename: str, expected_version: str | None = None) -> Annotated[CallToolResult, Deleted]:
        """Move a memory that is wrong or no longer needed to the trash folder; the answer says where it went."""
        deleted = live.workspace().memories.delete(filename, expected_version)
        return render.result(deleted, render.deleted(deleted))


def _register_finding(server: ToolServer, live: Live) -> None:
    @server.tool(title="Read a memory", annotations=READ)
    def read_memory(filename: str, lines: str | None = None) -> Annotated[CallToolResult, MemoryText]:
        """Read a memory as it stands in its file, with frontmatter and the version that update_memory can check.
        Example: {"filename": "auth-plan.md"}"""
        text = live.workspace().memories.read(filename, lines)
        return render.result(text, render.memory(text))

    @server.tool(title="Search memories", annotations=READ)
    def search_memories(
        query: str,
        limit: int = 5,
        filter_tags: list[str] | None = None,
        filter_type: str | None = None,
        include_archived: bool = False,
        explain: bool = False,
    ) -> Annotated[CallToolResult, MemoryHits]:
        """Find what was decided, planned or learned before, by meaning, words and links. Call it when you start a task.
        A time in the query, such as "last week", counts.
        Returns memories with score, age, lines and why they matched.
        Example: {"query": "token handling", "filter_tags": ["auth"], "filter_type": "plan"}"""
        found = live.workspace().memories.search(
            query, limit, tags=filter_tags or (), kind=filter_type, archived=include_archived, explain=explain
        )
        return render.result(found, render.memories(found))

    @server.tool(title="Search memories about a file", annotations=READ)
    def search_linked_memories(
        query: str, target_document: str, limit: int = 5
    ) -> Annotated[CallToolResult, LinkedHits]:
        """Find memories that link to a source file or document. Call it before you change that file.
        Returns memories with the words around the link and the kind of link.
        Example: {"query": "plans and known problems", "target_document": "src/auth.py"}"""
        found = live.workspace().memories.linked(query, target_document, limit)
        return render.result(found, render.linked(found))


def _register_upkeep(server: ToolServer, live: Live) -> None:
    @server.tool(title="Count memories", annotations=READ)
    def get_memory_stats() -> Annotated[CallToolResult, Stats]:
        """Count the memories, their tags and types. Call it to see which tags exist before you filter or write."""
        stats = live.workspace().memories.stats()
        return render.result(stats, render.stats(stats))

    @server.tool(title="Merge memories", annotations=REMOVE)
    def merge_memories(
        source_files: list[str], target_file: str, summary_content: str, expected_version: str | None = None
    ) -> Annotated[CallToolResult, Merged]:
        """Replace several memories by one that says what they say: read the sources, write the summary yourself.
        The sources go to the trash folder; either everything happens or nothing.
        Example: {"source_files": ["a.md", "b.md"], "target_file": "auth.md", "summary_content": "# Auth …"}"""
        merged = live.workspace().merges.merge(source_files, target_file, summary_content, expected_version)
        return render.result(merged, render.merged(merged))

    @server.tool(title="Suggest merges", annotations=READ)
    def suggest_memory_merges(
        threshold: float = 0.85, limit: int = 5, filter_type: str | None = "journal"
    ) -> Annotated[CallToolResult, Clusters]:
        """List groups of memories that say nearly the same and could become one; filter_type null means every type.
        Changes nothing: merge_memories does the merging."""
        found = live.workspace().merges.suggest(threshold, limit, filter_type)
        return render.result(found, render.clusters(found))
