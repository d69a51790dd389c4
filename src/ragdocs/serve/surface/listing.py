"""Listing memories for people: a table that is filtered and sorted without a query."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

from ragdocs.serve.surface import Arg, Ask, layouts, present, verb
from ragdocs.serve.surface.parameters import AnyTag, MemoryType, Since
from ragdocs.serve.surface.shapes import MemoryRow, MemoryRows

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragdocs.types import Document
    from ragdocs.verbs.memories.browse import MemoryList

Sort = Literal["newest", "oldest", "name", "size"]


def _text(answer: MemoryRows) -> str:
    """Write one memory a line."""
    rows = []
    for row in present.inline(answer)["result"]:
        tags = present.joined(row["tags"])
        rows.append(f"{row['filename']} · {row['title']} · {row['type']}, {row['age']} · {tags}")
    if not rows:
        rows.append("no memories found")
    if answer["omitted"]:
        rows.append(f"{answer['omitted']} more memories are not listed; raise --limit to see them")
    return "\n".join([*rows, *present.note_lines(answer["notes"])])


@verb(
    command="memory list",
    toolset="memory",
    title="List memories",
    effect="read",
    tool=False,
    lanes=("memory",),
    text=_text,
    columns=("filename", "type", "status", "tags", "age", "size", "title"),
    usual_format="table",
    about="list memories, filtered and sorted",
    examples=(
        {"kind": "plan", "tags": ["auth"], "since": "last week"},
        {"status": "all", "sort": "size", "limit": 10},
    ),
    shell_examples=("ragdocs memory list --json | jq -r '.result[].filename'",),
)
def list_memories(
    ask: Ask,
    kind: MemoryType = None,
    tags: AnyTag = None,
    since: Since = None,
    status: Annotated[
        str | None,
        Arg(help='only of this status; "all" for archived and expired ones too'),
    ] = None,
    path: Annotated[str, Arg(help="only memories below this folder")] = "",
    sort: Annotated[Sort, Arg(help="in which order")] = "newest",
    limit: Annotated[int | None, Arg(help="how many at most (default: all)")] = None,
) -> MemoryRows:
    """List memories by type, tag, age, status or folder, without a query."""
    from ragdocs.verbs.memories.browse import Browse, Selection

    browse = Browse(ask.workspace.corpus("memory"), ask.workspace.clock)
    selection = Selection(
        kind=kind or "",
        tags=tags or (),
        since=since or "",
        status=status or "",
        path=path,
    )
    memories = browse.list_memories(selection, sort, limit)
    return _rows(memories, browse.corpus.store.locate, ask.room, ask.now)


def _rows(
    memories: MemoryList, locate: Callable[[str], str], room: int, now: datetime
) -> MemoryRows:
    rows = [_row(document, locate, now) for document in memories.documents]
    listed = layouts.within(rows, room)
    omitted = memories.omitted + len(rows) - len(listed)
    return MemoryRows(result=listed, omitted=omitted, notes=[])


def _row(document: Document, locate: Callable[[str], str], now: datetime) -> MemoryRow:
    return MemoryRow(
        filename=document.path,
        memory_id=document.id,
        title=layouts.title(document),
        type=document.kind,
        status=document.status,
        tags=layouts.tags(document),
        created_at=layouts.moment(document.created_at),
        age=layouts.age(document.created_at, now),
        bytes=document.size,
        size=layouts.size(document.size),
        file_path=locate(document.path),
    )
