"""Entries: single facts with importance, confidence and expiry, known by their ids."""

from __future__ import annotations

from typing import Annotated, Literal

from ragdocs.serve.surface import Arg, Ask, verb
from ragdocs.serve.surface.flags import compared, flags_of
from ragdocs.serve.surface.layouts import entries as layout_entries
from ragdocs.serve.surface.parameters import AnyTag, Limit, Query, Tags
from ragdocs.serve.surface.present import entries as present_entries
from ragdocs.serve.surface.shapes.entries import (
    EntryAdded,
    EntryDeleted,
    EntryFound,
    EntryHits,
    EntryStats,
)

EntryType = Literal["fact", "preference", "event", "insight", "task", "relationship"]
EntryId = Annotated[str, Arg(help="the entry's id", positional=True)]


@verb(
    command="entry add",
    toolset="entries",
    title="Add an entry",
    situation="one short fact with importance or an end date",
    effect="add",
    role="writer",
    lanes=("memory",),
    text=present_entries.entry_added,
    about="write a single fact, such as a preference or an event",
    examples=(
        {
            "content": "User prefers dark mode",
            "entryType": "preference",
            "importance": 7,
            "tags": ["ui"],
        },
    ),
)
def memory_add(
    ask: Ask,
    content: Annotated[str, Arg(help="what is worth knowing", positional=True, text=True)],
    entryType: Annotated[EntryType, Arg(help="what kind of thing it is", flag="--type")] = "fact",
    source: Annotated[str, Arg(help="where it comes from")] = "manual",
    context: Annotated[str | None, Arg(help="how it came up; searched too")] = None,
    confidence: Annotated[float, Arg(help="how sure it is, 0 to 1")] = 1.0,
    importance: Annotated[int, Arg(help="how much it matters, 1 to 10")] = 5,
    tags: Tags = None,
    expiresAt: Annotated[
        int | str | None,
        Arg(help="ISO 8601 or Unix milliseconds", flag="--expires", metavar="TIME"),
    ] = None,
) -> EntryAdded:
    """Keep one thing worth knowing: what somebody prefers, a fact, an insight, a task. Call it when
    you learn it. `context` is searched too; after `expiresAt` it is not found any more. The same
    content again returns the id that it has and changes nothing.
    """
    from ragdocs.verbs.memories.entry_rules import NewEntry

    entry = NewEntry(
        content=content,
        kind=entryType,
        source=source,
        context=context or "",
        confidence=confidence,
        importance=importance,
        tags=tags or (),
        expires_at=expiresAt,
    )
    return layout_entries.added(ask.workspace.entries.add(entry))


@verb(
    command="entry search",
    toolset="entries",
    title="Search entries",
    situation="facts and preferences",
    effect="read",
    lanes=("memory",),
    meaning=True,
    text=present_entries.entries,
    about="find entries by meaning, words or both",
    examples=(
        {
            "query": "which theme does the user like",
            "entryTypes": ["preference"],
            "minImportance": 5,
        },
    ),
)
def memory_search(
    ask: Ask,
    query: Query,
    mode: Annotated[
        Literal["hybrid", "vector", "keyword"], Arg(help="by meaning, by words or both")
    ] = "hybrid",
    limit: Limit = 10,
    entryTypes: Annotated[
        list[EntryType] | None, Arg(help="only these kinds", flag="--type")
    ] = None,
    minImportance: Annotated[
        float | None, Arg(help="only as important as this", flag="--min-importance")
    ] = None,
    minConfidence: Annotated[
        float | None, Arg(help="only as sure as this", flag="--min-confidence")
    ] = None,
    tags: AnyTag = None,
) -> EntryHits:
    """Find entries and other memories by meaning, words or both, before you ask or assume. Returns
    content, score, what matched, age and id. When an entry helped, call memory_get with used=true;
    only that raises its rank.
    """
    from ragdocs.verbs.memories.entry_rules import Wanted

    wanted = Wanted(
        kinds=entryTypes or (),
        min_importance=minImportance,
        min_confidence=minConfidence,
        tags=tags or (),
    )
    findings = ask.workspace.entries.search(query, mode, limit, wanted)
    flags = flags_of(ask, [entry.card.document for entry in findings.entries])
    return layout_entries.hits(findings, ask.room, ask.now, flags)


@verb(
    command="entry get",
    toolset="entries",
    title="Read an entry",
    situation="one entry that helped",
    effect="add",
    lanes=("memory",),
    text=present_entries.entry,
    about="print one entry",
    examples=({"id": "mem_3f2a9b8c7d6e", "used": True},),
)
def memory_get(
    ask: Ask,
    id: EntryId,
    used: Annotated[bool, Arg(help="it really helped")] = False,
) -> EntryFound:
    """Read one entry whole, by its id. Set `used` when it really helped you: entries that were of
    use rank a little higher among near equals.
    """
    entry = ask.workspace.entries.get(id, used=used)
    documents = []
    if entry.details is not None:
        documents.append(entry.details.card.document)
    return layout_entries.read(entry, ask.room, ask.now, compared(ask, documents))


@verb(
    command="entry stats",
    toolset="entries",
    title="Count entries",
    situation="counts of entries",
    effect="read",
    lanes=("memory",),
    text=present_entries.entry_stats,
    about="count entries by type, with averages and use",
)
def memory_stats(ask: Ask) -> EntryStats:
    """Count entries by type, their average importance and confidence, how often they were found,
    read and used, and tell the oldest and the newest.
    """
    return layout_entries.stats(ask.workspace.entries.stats(), ask.room)


@verb(
    command="entry delete",
    toolset="entries",
    title="Delete an entry",
    situation="an entry that is no longer true",
    effect="remove",
    role="writer",
    lanes=("memory",),
    text=present_entries.entry_deleted,
    about="move an entry to the trash",
    examples=({"id": "mem_3f2a9b8c7d6e"},),
)
def memory_delete(ask: Ask, id: EntryId) -> EntryDeleted:
    """Move an entry that is wrong or no longer true to the trash folder. Returns whether there was
    one.
    """
    return layout_entries.deleted(ask.workspace.entries.delete(id))
