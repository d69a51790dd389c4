"""What remember and recall return, laid out as answers."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from ragdocs.serve.surface import layouts
from ragdocs.serve.surface.flags import Flags
from ragdocs.serve.surface.shapes import GitShape, Recalled, RecalledMemory, Remembered
from ragdocs.system.names import own_id
from ragdocs.types import GitContext

if TYPE_CHECKING:
    # The verbs bring the engines with them: whoever answers has imported them.
    from ragdocs.verbs.memories.recall import BankHit, Recollection, RememberedMemory

# About what a result takes beside its content.
BESIDE_CONTENT = 350
# Names of changed files that are looked at.
MOST_FILES = 100
CUT = "contents that begin or end with … are parts; the file at the given path has the whole"


def remembered(memory: RememberedMemory) -> Remembered:
    """Lay out that something is remembered."""
    warnings = [*layouts.removed(memory.written), *memory.warnings]
    return Remembered(id=memory.id, path=memory.path, warnings=warnings)


def recalled(recollection: Recollection, room: int, now: datetime, flags: Flags) -> Recalled:
    """Lay out memories with when and where they were written."""
    memories = recollection.memories
    count = max(1, len(memories))
    shapes = []
    contents = []
    texts = recollection.texts(max(room, layouts.LEAST_CONTENT))
    for memory, text in zip(memories, texts, strict=True):
        shape = _memory(memory, now, room // (2 * count))
        if recollection.is_search:
            shape["score"] = round(memory.hit.score, 3)
        if memory.hit.successors:
            shape["superseded_by"] = layouts.superseded(memory.hit)
        if recollection.everywhere:
            shape["project"] = layouts.cut(memory.project, layouts.LONGEST_TITLE)
        if memory.bank.home:
            flags.add(shape, memory.hit.document)
        shapes.append(shape)
        content = text
        if recollection.is_search and len(text) > room // count - BESIDE_CONTENT:
            content = _around_passage(text, memory.hit.chunk.text)
        contents.append(content)
    results, notes = layouts.share_room(shapes, contents, room)
    notes = [*recollection.notes, *notes]
    if any(_is_part(memory["content"]) for memory in results):
        notes.append(CUT)
    omitted = recollection.omitted + len(memories) - len(results)
    return Recalled(result=results, omitted=omitted, notes=notes)


def _around_passage(content: str, passage: str) -> str:
    """Return the passage that was found, unless a content that is too long begins with it."""
    if content.startswith(passage):
        return content
    return f"…\n{passage}"


def _is_part(content: str) -> bool:
    return content.startswith(layouts.ELLIPSIS) or content.endswith(layouts.ELLIPSIS)


def _memory(memory: BankHit, now: datetime, files_room: int) -> RecalledMemory:
    document = memory.hit.document
    timestamp = 0
    written_at = document.created_at or document.modified_at
    if written_at is not None:
        timestamp = int(written_at.timestamp())
    return RecalledMemory(
        id=own_id(document),
        timestamp=timestamp,
        tags=layouts.tags(document),
        content="",
        git=_git(document.git, files_room),
        age=layouts.age(document.created_at, now),
        path=memory.path,
    )


def _git(state: GitContext | None, room: int) -> GitShape | None:
    """Return the state of the working tree, with the changed files that fit and their number."""
    if state is None:
        return None
    changed = state.files_changed[:MOST_FILES]
    files = [layouts.cut(path, layouts.LONGEST_TITLE) for path in changed]
    shape = GitShape(
        branch=layouts.cut(state.branch, layouts.LONGEST_TITLE),
        commit=layouts.cut(state.commit, layouts.LONGEST_TITLE),
        dirty=state.dirty,
        files_changed=layouts.within(files, room),
    )
    total = max(state.files_total, len(state.files_changed))
    if total > len(shape["files_changed"]):
        shape["files_total"] = total
    return shape
