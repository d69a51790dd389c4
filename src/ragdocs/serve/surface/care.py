"""Care: the graph of links, what could be tidied, what happened when, and who is connected."""

from __future__ import annotations

from typing import Annotated, Literal

from ragdocs.errors import ValidationError
from ragdocs.serve.surface import Arg, Ask, verb
from ragdocs.serve.surface.clients import CLIENTS
from ragdocs.serve.surface.layouts import care as layout_care
from ragdocs.serve.surface.layouts import handover as layout_handover
from ragdocs.serve.surface.parameters import AnyTag, MemoryType, Since
from ragdocs.serve.surface.present import care as present_care
from ragdocs.serve.surface.shapes.care import (
    ConflictingMemories,
    ConnectedClients,
    DocsSuggestions,
    DocumentationGaps,
    HandoverPage,
    LinkGraph,
    LinkReview,
    MemoryTimeline,
    MergeDraftShape,
)

LANES = ("docs", "memory")


@verb(
    command="graph",
    toolset="memory",
    title="Show the graph of links",
    effect="read",
    tool=False,
    page=True,
    lanes=LANES,
    text=present_care.graph,
    about="list memories, documents and their links, around one of them or by a filter",
    examples=({}, {"around": "auth-plan.md"}, {"tags": ["auth"], "limit": 40}),
)
def link_graph(
    ask: Ask,
    around: Annotated[
        str | None, Arg(help="the text or link target in the middle", positional=True)
    ] = None,
    steps: Annotated[int, Arg(help="how many links away, 1 to 4")] = 2,
    tags: AnyTag = None,
    kind: MemoryType = None,
    path: Annotated[str, Arg(help="only texts below this folder")] = "",
    ghosts: Annotated[
        Literal["show", "hide"], Arg(help="whether targets that are not indexed are shown")
    ] = "show",
    limit: Annotated[int, Arg(help="how many nodes, at most 300")] = 80,
) -> LinkGraph:
    """Return memories, documents and link targets as nodes with the links between them: around one
    text, those that pass a filter with their neighbours, or the most linked ones.
    """
    from ragdocs.types import Filter

    where = Filter(tags=tuple(tags or ()), prefix=path)
    if kind:
        where = Filter(tags=where.tags, prefix=path, kinds=(kind,))
    links = ask.workspace.links
    graph = links.graph(
        around or "", steps=steps, where=where, ghosts=ghosts == "show", limit=limit
    )
    return layout_care.graph(graph, links.notes(), ask.now)


@verb(
    command="memory links",
    toolset="memory",
    title="Review links",
    effect="read",
    tool=False,
    page=True,
    lanes=LANES,
    text=present_care.links,
    about="list broken and ambiguous links of memories, and gaps in the documentation",
    shell_examples=("ragdocs memory links", "ragdocs memory links --json | jq '.gaps'"),
)
def review_links(ask: Ask) -> LinkReview:
    """List links of memories that lead nowhere or to several texts, and targets that several
    memories name and no document covers.
    """
    links = ask.workspace.links
    return layout_care.link_review(links.problems(), links.notes())


@verb(
    command="gaps",
    toolset="quality",
    title="Find gaps in the documentation",
    situation="what should be documented next",
    effect="read",
    page=True,
    lanes=LANES,
    text=present_care.gaps,
    about="list gaps of the documentation: missing pages and answers, unlinked pages, repetitions",
    examples=({}, {"limit": 50}),
    shell_examples=("ragdocs gaps --json | jq -r '.targets[].target'",),
)
def documentation_gaps(
    ask: Ask, limit: Annotated[int, Arg(help="how many of each kind")] = 20
) -> DocumentationGaps:
    """List what the documentation lacks: files that several memories explain and no document does,
    questions that found nothing, documents that nothing links to, sections that repeat each other.
    """
    from ragdocs.verbs import page

    page.check_limit(limit)
    missing = ask.workspace.tidying.gaps.find()
    return layout_care.gaps(missing, ask.workspace.links.notes(), limit, ask.room)


@verb(
    command="memory conflicts",
    toolset="memory",
    title="Review conflicting memories",
    effect="read",
    tool=False,
    page=True,
    lanes=("memory",),
    text=present_care.conflicts,
    about="list memories that contradict each other, and those that others supersede",
    shell_examples=("ragdocs memory conflicts", "ragdocs memory conflicts --json"),
)
def review_conflicts(ask: Ask) -> ConflictingMemories:
    """List memories that contradict each other, because they say so or by their numbers and
    negations, and memories that others supersede. Which of them holds is for a person to decide.
    """
    conflicts = ask.workspace.tidying.contradictions
    notes = conflicts.corpus.notes()
    return layout_care.conflicts(conflicts.find(), conflicts.superseded(), notes, ask.room)


@verb(
    command="memory docs",
    toolset="quality",
    title="Compare memories with the documentation",
    situation="memories that repeat the documentation, or belong into it",
    effect="read",
    page=True,
    lanes=LANES,
    text=present_care.docs_changes,
    about="list memories that a page restates, and those that a page should have, as diffs",
    examples=({}, {"limit": 3}),
)
def suggest_docs_changes(
    ask: Ask, limit: Annotated[int, Arg(help="how many of each kind")] = 10
) -> DocsSuggestions:
    """List memories that restate a section of the documentation, with a link in their place, and
    memories that are used often and stable, as a patch for a page. Returns diffs, changes nothing.
    """
    from ragdocs.verbs import page

    page.check_limit(limit)
    return layout_care.docs_changes(ask.workspace.tidying.restating.suggest(limit), ask.room)


@verb(
    command="handover",
    toolset="memory",
    title="Hand over",
    effect="read",
    tool=False,
    page=True,
    lanes=("docs", "memory", "journal"),
    text=present_care.handover,
    about="write a hand-over page: plans, decisions, changed pages, questions, next steps",
    examples=({}, {"since": "2w"}),
    shell_examples=("ragdocs handover --since 2026-02-04 > handover.md",),
)
def write_handover(
    ask: Ask,
    since: Since = None,
    max_chars: Annotated[int, Arg(help="the longest page, in characters")] = 6000,
) -> HandoverPage:
    """Write one page for whoever takes over: open plans, decisions since then, documentation that
    changed, unanswered questions, and next steps found in memories and journals, with sources.
    """
    if not layout_handover.LEAST_CHARS <= max_chars <= layout_handover.MOST_CHARS:
        bounds = f"{layout_handover.LEAST_CHARS} to {layout_handover.MOST_CHARS}"
        raise ValidationError(f"max_chars is {max_chars}", f"Ask for {bounds} characters")
    handover = ask.workspace.tidying.handovers.write(since or "")
    return layout_handover.page(handover, ask.workspace.config.root.name, max_chars)


@verb(
    command="memory draft",
    toolset="memory",
    title="Draft a merge",
    effect="read",
    tool=False,
    page=True,
    lanes=("memory",),
    text=present_care.draft,
    about="propose one text for several memories, without changing any",
    examples=({"source_files": ["a.md", "b.md"]},),
)
def draft_memory_merge(
    ask: Ask,
    source_files: Annotated[list[str], Arg(help="the memories to compare", positional=True)],
) -> MergeDraftShape:
    """Compare memories statement by statement and propose one text that has each statement once."""
    return layout_care.merge_draft(ask.workspace.tidying.drafts.draft(source_files), ask.now)


@verb(
    command="memory timeline",
    toolset="memory",
    title="Show the timeline",
    effect="read",
    tool=False,
    page=True,
    lanes=("memory",),
    text=present_care.timeline,
    about="list what was written, changed, merged and removed, by days and sessions",
    examples=({"since": "last week"},),
)
def memory_timeline(
    ask: Ask,
    since: Since = None,
    until: Annotated[
        str | None, Arg(help="the last day, such as yesterday or 2026-02-04", metavar="TIME")
    ] = None,
    limit: Annotated[int, Arg(help="how many changes")] = 50,
    offset: Annotated[int, Arg(help="how many of the latest to leave out")] = 0,
) -> MemoryTimeline:
    """List what was written, changed, merged and removed in the memories, by days and sessions of
    work, with who did it and on which branch as far as the memories say so.
    """
    from ragdocs.verbs.memories.timeline import SESSION_GAP

    events = ask.workspace.tidying.timeline.events(
        since or "", until or "", limit=limit, offset=offset
    )
    return layout_care.timeline(events, SESSION_GAP.total_seconds(), ask.now)


@verb(
    command="clients",
    toolset="docs",
    title="List connected clients",
    effect="read",
    tool=False,
    page=True,
    current=False,
    text=present_care.clients,
    about="list the clients of this project's server",
)
def connected_clients(ask: Ask) -> ConnectedClients:
    """List the clients that are connected to this server, with their last call."""
    clients = []
    for client in CLIENTS.present(str(ask.workspace.config.root)):
        # A command is gone before anybody reads of it.
        if ask.rim == "command" and client.session == ask.caller.session:
            continue
        clients.append(layout_care.client(client, ask.caller.session, ask.now))
    return ConnectedClients(result=clients)
