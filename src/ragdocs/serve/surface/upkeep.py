"""Upkeep: one search over everything, the state of the index, problems in texts, and proof that the
index is right.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ragdocs.serve.surface import Arg, Ask, present_quality, verb
from ragdocs.serve.surface.docs import search_docs
from ragdocs.serve.surface.memories import search_memories
from ragdocs.serve.surface.parameters import AnyTag, Explain, Limit, MemoryType, Query
from ragdocs.verbs.shapes import Status

LANES = ("docs", "memory", "journal", "commits")
LaneName = Literal["docs", "memory"]


@verb(
    command="search",
    toolset="docs",
    title="Search a lane",
    effect="read",
    tool=False,
    lanes=("docs", "memory"),
    meaning=True,
    text=present_quality.hits,
    about="search the documentation or the memories",
    examples=(
        {"query": "how are tokens refreshed"},
        {"query": "auth", "lane": "memory", "explain": True},
    ),
)
def search(
    ask: Ask,
    query: Query,
    lane: Annotated[LaneName, Arg(help="where to look")] = "docs",
    limit: Limit = 5,
    tags: AnyTag = None,
    kind: MemoryType = None,
    path: Annotated[str, Arg(help="only documents below this folder")] = "",
    archived: Annotated[bool, Arg(help="archived memories too")] = False,
    explain: Explain = False,
) -> dict[str, Any]:
    """Search the documentation or the memories by meaning, words and links."""
    searches = {
        "docs": lambda: search_docs(ask, query, limit, path, tags, explain),
        "memory": lambda: search_memories(ask, query, limit, tags, kind, archived, explain),
    }
    return dict(searches[lane]())


@verb(
    command="status",
    toolset="docs",
    title="State of the index",
    effect="read",
    lanes=LANES,
    current=False,
    text=present_quality.status,
    about="what is indexed, what is not, and why",
)
def index_status(ask: Ask) -> Status:
    """Tell how complete and how fresh the index is. Call it when results are missing or look old.
    Returns documents, passages and vectors for each lane, the embedding model, and files with
    problems.
    """
    status = ask.workspace.status()
    if ask.state is not None:
        status["ready"] = ask.state.ready
        status["watcher"] = ask.state.watcher
        status["heartbeat"] = ask.state.heartbeat
    return status
