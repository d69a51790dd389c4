"""Resources for documents and memories, completion of their paths, and prompts people would use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio.to_thread
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp_types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)

from ragdocs.errors import NotFoundError, RagdocsError
from ragdocs.serve.live import Live

if TYPE_CHECKING:
    from mcp.server import MCPServer

# Lists are never paginated by clients: a template and completion serve any number of documents.
LANES = {
    "docs": ("document", "ragdocs://docs/{+path}"),
    "memory": ("memory", "ragdocs://memory/{+path}"),
}
MOST_COMPLETIONS = 100


def register(server: MCPServer[Any], live: Live) -> None:
    """Add resources, completion and prompts."""
    for lane in live.config.server.toolsets:
        if lane in LANES:
            _register_lane(server, live, lane)

    @server.completion()  # type: ignore[no-untyped-call, untyped-decorator] # the SDK has no types here
    async def complete(
        reference: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        _context: CompletionContext | None,
    ) -> Completion | None:
        lane = next(
            (name for name, (_, uri) in LANES.items() if uri == getattr(reference, "uri", None)),
            None,
        )
        if lane is None or argument.name != "path":
            return None
        # In a thread, because the first index may have to be waited for.
        known = await anyio.to_thread.run_sync(_paths, live, lane)
        paths = [path for path in known if argument.value.casefold() in path.casefold()]
        shown = paths[:MOST_COMPLETIONS]
        return Completion(values=shown, total=len(paths), has_more=len(paths) > len(shown))

    @server.prompt(title="Start with context")
    async def start_with_context(task: str = "", files: str = "") -> str:
        """Begin a session with what the repository knows.

        Rules, choices, what happened last, what is where.
        """
        named = [path.strip() for path in files.split(",") if path.strip()]
        # In a thread, because the first index may have to be waited for.
        return await anyio.to_thread.run_sync(_context, live, task, named)

    @server.prompt(title="Recall before work")
    def recall_before_work(task: str) -> str:
        """Gather what the documentation and the memories say about a task, before starting it."""
        return (
            f"I am about to work on this: {task}\n\n"
            "Search the documentation with search_docs and the memories with search_memories for what bears on it; for "
            "each file that I will probably change, call search_linked_memories. Then tell me in a short list what was "
            "decided before, what is known to go wrong, and which documents apply, each with its path and age. Say "
            "plainly where nothing was found."
        )

    @server.prompt(title="Write the session journal")
    def write_session_journal(topic: str = "") -> str:
        """Save what this session did, decided and learned as a memory."""
        about = f" about {topic}" if topic else ""
        return (
            f"Write down this session{about} as a memory. Search first with search_memories: if there is a journal "
            "that this continues, use append_memory, otherwise create_memory with a dated filename. Record what was "
            "done, what was decided and why, what was learned the hard way, and what is left, linking every file and "
            "document as [[path]]. Leave out what the code or the commit history already says, and leave out secrets."
        )


def _context(live: Live, task: str, files: list[str]) -> str:
    about = f"I am about to work on this: {task}\n\n" if task.strip() else ""
    try:
        pack = live.indexed().packs.build(task=task, files=files)["context"]
    except RagdocsError as error:
        # A prompt has no errors of its own that a client would show.
        pack = f"No context could be made: {error}"
    return (
        f"{about}Take this into account, and say so where it is contradicted by the code:\n\n{pack}"
    )


def _register_lane(server: MCPServer[Any], live: Live, lane: str) -> None:
    what, uri = LANES[lane]

    @server.resource(uri, name=what, title=f"A {what} by its path", mime_type="text/markdown")
    def read(path: str) -> str:
        try:
            place = live.indexed().places.get(lane)
            if place is None:
                raise ResourceNotFoundError(f"the {lane} lane is switched off")
            if path not in place.index.stamps():
                raise ResourceNotFoundError(f"there is no {what} {path!r}")
            return place.store.read(path).text
        except NotFoundError as error:
            raise ResourceNotFoundError(str(error)) from error
        except RagdocsError as error:
            raise ResourceError(str(error)) from error


def _paths(live: Live, lane: str) -> list[str]:
    try:
        place = live.indexed().places.get(lane)
    except RagdocsError:
        # Nobody reads an error in a completion; the next tool call tells what is wrong.
        return []
    return sorted(place.index.stamps()) if place else []
