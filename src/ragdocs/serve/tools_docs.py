"""The `docs` toolset: searching and reading the documentation, and the state of the index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from mcp_types import CallToolResult, ToolAnnotations

from ragdocs.serve import render, render_journal
from ragdocs.serve.live import Live
from ragdocs.verbs.journal_shapes import CommitHits
from ragdocs.verbs.shapes import DocHits, DocText, Status

if TYPE_CHECKING:
    from ragdocs.serve.server import ToolServer

READ = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)


def register(server: ToolServer, live: Live) -> None:
    """Add the tools of this set to the server."""

    @server.tool(title="Search documentation", annotations=READ)
    def search_docs(
        query: str, limit: int = 5, path: str = "", tags: list[str] | None = None, explain: bool = False
    ) -> Annotated[CallToolResult, DocHits]:
        """Find passages of this project's documentation by meaning and by words. Call it before answering a question
        about the project or changing its code.
        Returns passages with path, heading, lines, score and why they matched.
        Example: {"query": "how are tokens refreshed"}"""
        found = live.workspace().documents.search(query, limit, path=path, tags=tags or (), explain=explain)
        return render.result(found, render.documents(found))

    @server.tool(title="Read a document", annotations=READ)
    def read_doc(path: str, heading: str | None = None, lines: str | None = None) -> Annotated[CallToolResult, DocText]:
        """Read a document found by search_docs, or only one section or some lines of it.
        Returns the text, its lines, and how to get what was left out.
        Example: {"path": "docs/guide.md", "heading": "Tokens"} or {"path": "docs/guide.md", "lines": "10-40"}"""
        text = live.workspace().documents.read(path, heading, lines)
        return render.result(text, render.document(text))

    @server.tool(title="State of the index", annotations=READ)
    def index_status() -> Annotated[CallToolResult, Status]:
        """Tell how complete and how fresh the index is. Call it when results are missing or look old.
        Returns documents, passages and vectors for each lane, the embedding model, and files with problems."""
        state = live.status()
        return render.result(state, render.status(state))

    if live.config.docs.commits:
        _register_commits(server, live)


def _register_commits(server: ToolServer, live: Live) -> None:
    @server.tool(title="Search commits", annotations=READ)
    def search_commits(
        query: str,
        paths: list[str] | None = None,
        since: str | None = None,
        author: str | None = None,
        limit: int = 5,
    ) -> Annotated[CallToolResult, CommitHits]:
        """Find out why something is as it is: commits of this project by what their messages say and which files they
        changed.
        With an empty query the newest come first. Example: {"query": "why are retries few", "paths": ["src/net"]}"""
        found = live.workspace().commits.search(query, paths or (), since or "", author or "", limit)
        return render.result(found, render_journal.commits(found))
