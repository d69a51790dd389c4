"""The `repo` toolset: what a repository knows about itself, and packs of it for the start of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from mcp_types import CallToolResult

from ragdocs.serve.live import Live
from ragdocs.serve.mcp.tools_docs import READ
from ragdocs.serve.mcp.tools_memory import ADD, REMOVE, REPLACE
from ragdocs.serve.surface import present as render
from ragdocs.serve.surface import present_repo as render_repo
from ragdocs.verbs.context.shapes import (
    Appended,
    Pack,
    RepoDeleted,
    RepoMemory,
    SavedConvention,
    SavedDecision,
    SavedNote,
)

if TYPE_CHECKING:
    from ragdocs.serve.mcp.server import ToolServer

Kind = Literal["convention", "decision", "note"]
BranchScope = Literal["perBranch", "sharedRepo"]


def register(server: ToolServer, live: Live) -> None:
    """Add the tools of this set to the server."""
    _register_writing(server, live)
    _register_reading(server, live)


def _register_writing(server: ToolServer, live: Live) -> None:
    @server.tool(title="Write a convention", annotations=REPLACE)
    def upsert_convention(
        title: str,
        content: str,
        tags: list[str] | None = None,
        id: str | None = None,  # noqa: A002 - the document's name
        branch_scope: BranchScope | None = None,
    ) -> Annotated[CallToolResult, SavedConvention]:
        """Write down how something is done in this repository, for every later run. The same title, or `id`, changes
        the convention that there is; tags that are not given stay.
        Example: {"title": "Use pnpm workspaces", "content": "All packages live under packages/.", "tags": ["build"]}"""
        saved = live.workspace().repository.upsert_convention(title, content, tags, id or "", branch_scope)
        return render.result(saved, render_repo.saved(saved))

    @server.tool(title="Write a decision", annotations=REPLACE)
    def upsert_decision(
        summary: str,
        rationale: str,
        impacted_paths: list[str] | None = None,
        id: str | None = None,  # noqa: A002 - the document's name
        branch_scope: BranchScope | None = None,
    ) -> Annotated[CallToolResult, SavedDecision]:
        """Write down what was chosen and why, with the files and folders it is about: search_linked_memories finds it
        for each of them. The same summary, or `id`, changes the decision that there is.
        Example: {"summary": "Sessions instead of JWT", "rationale": "They can be revoked at once.",
        "impacted_paths": ["src/auth/", "docs/auth.md"]}"""
        saved = live.workspace().repository.upsert_decision(summary, rationale, impacted_paths, id or "", branch_scope)
        return render.result(saved, render_repo.saved(saved))

    @server.tool(title="Write a note", annotations=REPLACE)
    def upsert_note(
        content: str,
        source: Literal["manual", "agent", "tool"] = "manual",
        id: str | None = None,  # noqa: A002 - the document's name
        branch_scope: BranchScope | None = None,
    ) -> Annotated[CallToolResult, SavedNote]:
        """Write down something about this repository that is neither rule nor choice; `id` changes an earlier note.
        Example: {"content": "The integration tests need Redis 7", "source": "agent"}"""
        saved = live.workspace().repository.upsert_note(content, source, id or "", branch_scope)
        return render.result(saved, render_repo.saved(saved))

    @server.tool(title="Append a summary", annotations=ADD)
    def append_summary(
        run_id: str,
        step_id: str,
        summary: str,
        tags: list[str] | None = None,
        branch_scope: BranchScope | None = None,
    ) -> Annotated[CallToolResult, Appended]:
        """At the end of a step, say in one paragraph what happened, what came out and what is left to do; the next
        step's build_context has it. At most 64 KB; the oldest summaries leave.
        Example: {"run_id": "release-42", "step_id": "2-tests", "summary": "Fixed the race in the lock; CI is green"}"""
        appended = live.workspace().repository.append_summary(run_id, step_id, summary, tags or (), branch_scope)
        return render.result(appended, render_repo.appended(appended))


def _register_reading(server: ToolServer, live: Live) -> None:
    @server.tool(title="Read the repository's memory", annotations=READ)
    def get_repo_memory(
        kind: Literal["convention", "decision", "note", "summary"] | None = None,
        id: str | None = None,  # noqa: A002 - the document's name
        path: str | None = None,
        branch_scope: BranchScope | None = None,
    ) -> Annotated[CallToolResult, RepoMemory]:
        """Read conventions, decisions, notes and summaries of this branch, the last changed first; or one kind, one
        item whole, or the decisions about a path and the folders it is in.
        Examples: {} or {"kind": "decision", "id": "sessions-not-jwt-1a2b3c4d"} or {"path": "src/auth/login.py"}"""
        found = live.workspace().repository.get(kind or "", id or "", path or "", branch_scope)
        return render.result(found, render_repo.repository(found))

    @server.tool(title="Delete from the repository's memory", annotations=REMOVE)
    def delete_repo_memory(
        kind: Kind,
        id: str,  # noqa: A002 - the document's name
        branch_scope: BranchScope | None = None,
    ) -> Annotated[CallToolResult, RepoDeleted]:
        """Move a convention, decision or note that no longer holds to the trash folder. Returns whether there was one.
        Example: {"kind": "note", "id": "note-3f2a9b8c"}"""
        deleted = live.workspace().repository.delete(kind, id, branch_scope)
        return render.result(deleted, render_repo.deleted(deleted))

    @server.tool(title="Build a context pack", annotations=READ)
    def build_context(
        max_chars: int = 8000,
        task: str | None = None,
        files: list[str] | None = None,
        branch_scope: BranchScope | None = None,
    ) -> Annotated[CallToolResult, Pack]:
        """Call it when a run or a step begins: conventions, decisions about the task or the files, the latest
        summaries, memories and documentation that bear on it, and an outline of the source files, never longer than
        `max_chars`. Each item has its source and age; what was left out is listed with how to get it.
        Example: {"task": "revoke sessions on logout", "files": ["src/auth/login.py"]}"""
        pack = live.workspace().packs.build(max_chars, task or "", files or (), branch_scope)
        return render.result(pack, pack["context"])
