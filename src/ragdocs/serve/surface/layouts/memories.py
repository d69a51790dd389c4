"""What the verbs of memories return, laid out as answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, cast

from ragdocs.serve.surface import layouts
from ragdocs.serve.surface.flags import Flags
from ragdocs.serve.surface.shapes import (
    Cluster,
    ClusterDraft,
    ClusterMember,
    Clusters,
    Deleted,
    Difference,
    Edited,
    LinkedHit,
    LinkedHits,
    LinkShape,
    MemoryHit,
    MemoryHits,
    MemoryText,
    Merged,
    Renamed,
    Revisions,
    RevisionShape,
    Saved,
    Stats,
    Undone,
)
from ragdocs.types import Findings, Hit, Link, Revision, Written

if TYPE_CHECKING:
    # The verbs bring the engines with them: whoever answers has imported them.
    from ragdocs.verbs.memories.edit import EditedMemory, RenamedMemory
    from ragdocs.verbs.memories.find import MemoryCounts, MemorySource
    from ragdocs.verbs.memories.history import Comparison, History, UndoneChange
    from ragdocs.verbs.memories.merge import MergedMemory, Suggestions
    from ragdocs.verbs.memories.write import SavedMemory

# Of one memory in one answer; the text has them all.
MOST_LINKS = 8
# Link kinds that say least come last when one kind has to stand for several links.
VAGUE = ("mentions", "related_to")
# Lines shown above and below a change, and of a change: enough to see that it is the right place.
AROUND = 2
SHOWN_LINES = 12
SHOWN = 1200
# Fewer members of a group say nothing.
LEAST_MEMBERS = 2

# Returns the absolute path of a memory.
Locate = Callable[[str], str]


# --- finding and reading ---


def hits(
    findings: Findings,
    locate: Locate,
    room: int,
    now: datetime,
    flags: Flags,
    *,
    explain: bool = False,
) -> MemoryHits:
    """Lay out memories that a query found, each by its best passage."""

    def shape(hit: Hit) -> MemoryHit:
        laid_out = _hit(hit, locate, now, explain=explain)
        return cast("MemoryHit", flags.add(laid_out, hit.document))

    results, omitted, notes = layouts.fit(findings, shape, room)
    return MemoryHits(result=results, omitted=omitted, notes=notes)


def _hit(hit: Hit, locate: Locate, now: datetime, *, explain: bool) -> MemoryHit:
    document = hit.document
    result = MemoryHit(
        memory_id=document.id,
        score=round(hit.score, 3),
        content="",
        type=document.kind,
        status=document.status,
        tags=layouts.tags(document),
        file_path=locate(document.path),
        header_path=layouts.header(hit),
        title=layouts.title(document),
        lines=layouts.lines(hit),
        created_at=layouts.moment(document.created_at),
        age=layouts.age(document.created_at, now),
        why=layouts.why(hit),
    )
    if hit.successors:
        result["superseded_by"] = layouts.superseded(hit)
    if explain:
        result["signals"] = layouts.signals(hit)
    return cast("MemoryHit", {**result, **layouts.provenance(document)})


def linked(
    findings: Findings, locate: Locate, room: int, now: datetime, flags: Flags
) -> LinkedHits:
    """Lay out memories that link to a document."""

    def shape(hit: Hit) -> LinkedHit:
        laid_out = _linked_hit(hit, locate, now)
        return cast("LinkedHit", flags.add(laid_out, hit.document))

    results, omitted, notes = layouts.fit(findings, shape, room)
    for hit in findings.hits[: len(results)]:
        more = len(hit.links) - MOST_LINKS
        if more > 0:
            notes.append(f"{hit.document.id} has {more} more links to it")
    return LinkedHits(result=results, omitted=omitted, notes=notes)


def _linked_hit(hit: Hit, locate: Locate, now: datetime) -> LinkedHit:
    document = hit.document
    anchor = _anchor(hit.links)
    links = []
    for link in hit.links[:MOST_LINKS]:
        shape = LinkShape(edge_type=link.kind, anchor_context=link.context)
        links.append(shape)
    result = LinkedHit(
        memory_id=document.id,
        score=round(hit.score, 3),
        content="",
        anchor_context=anchor.context,
        edge_type=anchor.kind,
        file_path=locate(document.path),
        title=layouts.title(document),
        lines=layouts.lines(hit),
        created_at=layouts.moment(document.created_at),
        age=layouts.age(document.created_at, now),
        why=layouts.why(hit),
        links=links,
    )
    if hit.successors:
        result["superseded_by"] = layouts.superseded(hit)
    return cast("LinkedHit", {**result, **layouts.provenance(document)})


def _anchor(links: Sequence[Link]) -> Link:
    """Return the link that stands for all of them: the first whose kind says something."""
    if not links:
        return Link(target="", kind="related_to", context="")
    return min(links, key=lambda link: link.kind in VAGUE)


def text(memory: MemorySource, room: int) -> MemoryText:
    """Lay out the text of a memory, whole lines of it if it is long."""
    content, line_range, omitted = layouts.excerpt(memory.source.text, 1, memory.span, room)
    return MemoryText(
        filename=memory.path,
        content=content,
        path=memory.location,
        version=memory.source.version,
        lines=line_range,
        omitted=omitted,
    )


def stats(counts: MemoryCounts, room: int) -> Stats:
    """Lay out what a memory bank holds, with the most frequent tags and types."""
    tags = dict(layouts.within(counts.tags.items(), room // 2))
    kinds = dict(layouts.within(counts.kinds.items(), room // 4))
    notes = list(counts.notes)
    if len(tags) < len(counts.tags):
        notes.append(f"{len(counts.tags) - len(tags)} rarer tags are not listed")
    if len(kinds) < len(counts.kinds):
        notes.append(f"{len(counts.kinds) - len(kinds)} rarer types are not listed")
    return Stats(
        count=counts.count,
        total_size=layouts.size(counts.size),
        tags=tags,
        types=kinds,
        memory_path=counts.location,
        notes=notes,
    )


# --- writing ---


def saved(memory: SavedMemory) -> Saved:
    """Lay out that a memory was written."""
    return Saved(
        status=memory.status,
        filename=memory.path,
        path=memory.location,
        version=memory.written.version,
        warnings=[*memory.warnings, *layouts.removed(memory.written)],
    )


def deleted(written: Written) -> Deleted:
    """Lay out that a memory was moved to the trash."""
    return Deleted(status="deleted", filename=written.path, moved_to=written.moved_to)


def edited(memory: EditedMemory) -> Edited:
    """Lay out an edit: the new passage with the lines around it."""
    revised = memory.revised
    text = revised.text
    first = text.count("\n", 0, revised.start) + 1
    stop = max(revised.start, revised.stop - 1)
    last = first + text.count("\n", revised.start, stop)
    lines = text.replace("\r\n", "\n").split("\n")
    low = max(1, first - AROUND)
    high = min(len(lines), first + SHOWN_LINES, last + AROUND)
    content = ""
    # What was taken out of the file may not come back in the answer.
    if not memory.written.removed:
        visible = "\n".join(lines[low - 1 : high])
        content = layouts.cut(visible, SHOWN)
    return Edited(
        status=memory.status,
        filename=memory.path,
        path=memory.location,
        version=memory.written.version,
        places=revised.places,
        lines=f"{low}-{high}",
        content=content,
        warnings=layouts.removed(memory.written),
    )


def renamed(memory: RenamedMemory, room: int) -> Renamed:
    """Lay out a new name, and the memories in which links were rewritten."""
    warnings = list(memory.warnings)
    for written in memory.written:
        warnings += layouts.removed(written)
    files = dict(layouts.within(memory.links.items(), room // 2))
    if len(files) < len(memory.links):
        hidden = len(memory.links) - len(files)
        warnings.append(f"{hidden} more files with rewritten links are not listed")
    return Renamed(
        status="renamed",
        filename=memory.path,
        previous=memory.previous,
        path=memory.location,
        version=memory.written[0].version,
        links=sum(memory.links.values()),
        files=files,
        warnings=layouts.within(warnings, room // 4),
    )


# --- earlier texts ---


def revisions(history: History, room: int, now: datetime) -> Revisions:
    """Lay out earlier texts, as many as fit."""
    shapes = [_revision(revision, now) for revision in history.revisions]
    listed = layouts.within(shapes, room)
    notes = []
    if not history.total:
        notes.append("no earlier texts are kept: nothing was changed yet")
    return Revisions(
        result=listed,
        current=history.current,
        omitted=history.total - len(listed),
        notes=notes,
    )


def _revision(revision: Revision, now: datetime) -> RevisionShape:
    return RevisionShape(
        filename=revision.path,
        version=revision.version,
        at=layouts.iso(revision.at),
        age=layouts.age(revision.at, now),
        verb=revision.verb,
        size=revision.size,
        became=revision.after,
        author=revision.author,
    )


def difference(comparison: Comparison) -> Difference:
    """Lay out what differs between two texts."""
    return Difference(
        filename=comparison.path,
        before=comparison.before,
        after=comparison.after,
        content="\n".join(comparison.lines),
    )


def undone(undo: UndoneChange) -> Undone:
    """Lay out a change that was taken back, and what became of its memories."""
    answer = Undone(
        status="undone",
        verb=undo.change.verb,
        at=layouts.iso(undo.change.at),
        restored=[],
        removed=[],
        moved_to=[],
        warnings=[],
    )
    for written in undo.written:
        if written.version:
            answer["restored"].append(written.path)
        else:
            answer["removed"].append(written.path)
        if written.moved_to:
            answer["moved_to"].append(written.moved_to)
        answer["warnings"] += layouts.removed(written)
    return answer


# --- merging ---


def merged(memory: MergedMemory, room: int) -> Merged:
    """Lay out that memories became one, or what would change."""
    if memory.differences:
        return _merge_preview(memory, room)
    target, *sources = memory.written
    return Merged(
        status="merged",
        filename=memory.path,
        path=memory.location,
        version=target.version,
        merged=list(memory.sources),
        moved_to=[source.moved_to for source in sources],
        warnings=layouts.removed(target),
    )


def _merge_preview(memory: MergedMemory, room: int) -> Merged:
    lines: list[str] = []
    for difference in memory.differences:
        lines += difference.lines
    diff = "\n".join(lines)
    warnings = []
    if layouts.cost(diff) > room:
        diff = layouts.cut(diff, room)
        warnings.append(f"the diff is cut at {room} characters")
    return Merged(
        status="would merge",
        filename=memory.path,
        path=memory.location,
        version="",
        merged=list(memory.sources),
        moved_to=[],
        warnings=warnings,
        diff=diff,
    )


def clusters(suggestions: Suggestions, room: int) -> Clusters:
    """Lay out groups of similar memories, with as many members as fit."""
    result = []
    for number, group in enumerate(suggestions.groups):
        members = []
        for member in group.members:
            shape = ClusterMember(
                id=member.id,
                file_path=member.location,
                preview=layouts.preview(member.beginning),
            )
            members.append(shape)
        cluster = Cluster(
            cluster_id=number,
            score=round(group.score, 3),
            reason=f"High vector similarity (> {suggestions.threshold:g})",
            memory_count=group.count,
            memories=members,
        )
        result.append(cluster)
    notes = [*suggestions.notes, *_shrink(result, room)]
    notes += _add_drafts(result, suggestions, room)
    return Clusters(result=result, notes=notes)


def _add_drafts(clusters: list[Cluster], suggestions: Suggestions, room: int) -> list[str]:
    """Give clusters their drafts as far as there is room; return notes about the others."""
    notes = []
    left = room - layouts.cost(clusters)
    for cluster, group in zip(clusters, suggestions.groups, strict=False):
        if group.undrafted:
            notes.append(f"group {cluster['cluster_id']} has no draft: {group.undrafted}")
        if group.draft is None:
            continue
        opposed = [statement for statement in group.draft.statements if statement.contradicts]
        draft = ClusterDraft(
            target=group.draft.target,
            version=group.draft.version,
            content=group.draft.content,
            contradictions=len(opposed),
        )
        left -= layouts.cost(draft)
        if left < 0:
            notes.append(f"the draft of group {cluster['cluster_id']} did not fit")
        else:
            cluster["draft"] = draft
    return notes


def _shrink(clusters: list[Cluster], room: int) -> list[str]:
    """Drop members of the largest clusters, then clusters, until all fit.

    Return notes about what was dropped.
    """
    size = layouts.cost(clusters)
    count = len(clusters)
    while size > room and clusters:
        largest = max(clusters, key=lambda cluster: len(cluster["memories"]))
        if len(largest["memories"]) <= LEAST_MEMBERS:
            size -= layouts.cost(clusters.pop())
        else:
            size -= layouts.cost(largest["memories"].pop())
    notes = []
    if len(clusters) < count:
        notes.append(f"{count - len(clusters)} more groups did not fit in {room} characters")
    for cluster in clusters:
        hidden = cluster["memory_count"] - len(cluster["memories"])
        if hidden:
            notes.append(f"{hidden} more memories of group {cluster['cluster_id']} are not listed")
    return notes
