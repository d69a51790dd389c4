"""The `journal` toolset: six tools whose names and parameters are those of their document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any
from weakref import WeakKeyDictionary

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Resolve, Sample
from mcp_types import CallToolResult, CreateMessageResult, SamplingMessage, TextContent, ToolAnnotations

from ragdocs.serve import render, render_journal
from ragdocs.serve.live import Live
from ragdocs.serve.sessions import Session, current
from ragdocs.serve.tools_docs import READ
from ragdocs.serve.tools_memory import ADD
from ragdocs.verbs.journal_shapes import Contents, JournalHits, JournalText, JournalWritten, ListedEntries, Synthesis

if TYPE_CHECKING:
    from ragdocs.serve.server import ToolServer

# A draft is made here, but the client's model may be asked.
DRAFT = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=True)
# Of the model's answer; an overview is shorter.
MOST_TOKENS = 4000

Sessions = WeakKeyDictionary[Session, Any]


def register(server: ToolServer, live: Live) -> None:
    """Add the tools of this set to the server; what each session has read is kept as long as it is connected."""
    sessions: Sessions = WeakKeyDictionary()
    _register_reading(server, live, sessions)
    _register_listing(server, live)
    _register_writing(server, live, sessions)
    _register_synthesis(server, live)


def _register_reading(server: ToolServer, live: Live, sessions: Sessions) -> None:
    @server.tool(title="Search the journal", annotations=READ)
    def journal_search(
        work_context: str, content: str, salience_threshold: float = live.config.journal.default_salience_threshold
    ) -> Annotated[CallToolResult, JournalHits]:
        """Find journal entries by the kind of work they came from and by what they say. Call it when you begin
        something that may have been tried before. Old entries must match better than fresh ones; a lower
        `salience_threshold` (0 to 1) lets more of them through. Returns entries with both scores.
        Example: {"work_context": "debugging memory retrieval", "content": "async pattern fails"}"""
        found = live.workspace().journal.search(work_context, content, salience_threshold)
        return render.result(found, render_journal.hits(found))

    @server.tool(title="Read the journal", annotations=READ)
    def journal_read(id: str, lines: str | None = None) -> Annotated[CallToolResult, JournalText]:  # noqa: A002 - the document's name
        """Read what a journal section says now, or one entry of it. Call it before journal_write: the server remembers
        what you have seen.
        Example: {"id": "project-alpha/api-design"} or {"id": "project-alpha/api-design#abc123d"}"""
        found = live.workspace().journal.read(id, lines, sessions.setdefault(current(), {}))
        return render.result(found, render_journal.text(found))


def _register_listing(server: ToolServer, live: Live) -> None:
    @server.tool(title="Contents of the journal", annotations=READ)
    def journal_toc(id: str = "", depth: int = 1) -> Annotated[CallToolResult, Contents]:  # noqa: A002 - the document's name
        """List the sections of the journal with their number of entries and last change: all at the top, or those below
        one section from depth 2 on. Example: {"id": "project-alpha", "depth": 2}"""
        found = live.workspace().journal.contents(id, depth)
        return render.result(found, render_journal.contents(found))

    @server.tool(title="List journal entries", annotations=READ)
    def journal_list_entries(path: str, start: int = 0, length: int = 10) -> Annotated[CallToolResult, ListedEntries]:
        """List the entries of a journal section, newest first, with id, time and summary; journal_read shows one whole.
        Example: {"path": "project-alpha", "start": 10, "length": 10}"""
        found = live.workspace().journal.entries(path, start, length)
        return render.result(found, render_journal.listed(found))


def _register_writing(server: ToolServer, live: Live, sessions: Sessions) -> None:
    @server.tool(title="Write to the journal", annotations=ADD)
    def journal_write(
        path: str,
        entry: str,
        overview: str | None = None,
        summary: str | None = None,
        work_context: str | None = None,
    ) -> Annotated[CallToolResult, JournalWritten]:
        """Add an entry about what changed or was learned; it is committed at once. Give `overview` only when the
        understanding as a whole has shifted: it replaces the section's text. `work_context` says what kind of work
        this was. Needs a journal_read of the section before. A path that does not exist yet makes a section.
        Example: {"path": "project-alpha/api-design", "entry": "Retries need a jitter, because ...",
        "work_context": "debugging the client"}"""
        from ragdocs.verbs.journal import NewEntry

        new = NewEntry(entry, overview, summary or "", work_context or "")
        written = live.workspace().journal.write(path, new, sessions.setdefault(current(), {}))
        return render.result(written, render_journal.written(written))


def _register_synthesis(server: ToolServer, live: Live) -> None:
    @server.tool(title="Synthesize two overviews", annotations=DRAFT)
    def journal_synthesize_conflict(
        section: str,
        version_a: str,
        version_b: str,
        work_context: str,
        sampled: Annotated[CreateMessageResult | None, Resolve(_ask)],
    ) -> Annotated[CallToolResult, Synthesis]:
        """Put two conflicting overviews of a section together after journal_write reported a conflict. Returns a draft
        in which disagreements are marked, and, if your client lends its model, a text that this model wrote.
        Example: {"section": "project-alpha", "version_a": "# One", "version_b": "# Two", "work_context": "design"}"""
        from ragdocs.verbs.synthesis import draft

        redact = live.workspace().redactor.redact
        answer = draft(*(redact(text).text for text in (section, version_a, version_b, work_context)))
        if sampled is not None and isinstance(sampled.content, TextContent):
            answer["synthesis"], answer["model"] = redact(sampled.content.text).text, sampled.model
        return render.result(answer, render_journal.synthesis(answer))


def _ask(section: str, version_a: str, version_b: str, work_context: str, context: Context[Any, Any]) -> Sample | None:
    """Ask the client's model, if the client lends it."""
    from ragdocs.verbs.synthesis import question

    capabilities = context.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        return None
    asked = TextContent(type="text", text=question(section, version_a, version_b, work_context))
    return Sample([SamplingMessage(role="user", content=asked)], max_tokens=MOST_TOKENS)
