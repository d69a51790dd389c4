"""What the verbs of entries return, laid out as answers."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from ragdocs.serve.surface import layouts
from ragdocs.serve.surface.flags import Flags
from ragdocs.serve.surface.shapes.entries import (
    EntryAdded,
    EntryDeleted,
    EntryFields,
    EntryFound,
    EntryHit,
    EntryHits,
    EntryStats,
    EntryText,
    Expired,
    ExpiredEntry,
    Reviewed,
    ReviewedEntry,
)

if TYPE_CHECKING:
    # The verbs bring the engines with them: whoever answers has imported them.
    from ragdocs.verbs.memories.care import Doubts, Expiry, Review
    from ragdocs.verbs.memories.entry_outcomes import (
        AddedEntry,
        DeletedEntry,
        EntryCard,
        EntryCounts,
        EntryDetails,
        EntryFindings,
        FieldDifference,
        ReadEntry,
    )

# Of the context of an entry among others; one that is read alone has the whole.
SHOWN_CONTEXT = 300
# What an entry takes in an answer beside its content.
BESIDE_CONTENT = 3000


def added(entry: AddedEntry) -> EntryAdded:
    """Lay out that an entry was written, or which one says the same already."""
    warnings = []
    if entry.revived:
        warnings.append(
            f"this content was there and {entry.revived}; it is live again with these fields,"
            " history has the earlier text"
        )
    if entry.differing:
        differences = "; ".join(map(_difference, entry.differing))
        warnings.append(
            f"the entry was there and is unchanged; not taken over: {differences}."
            " Edit the fields of its file to change them"
        )
    if entry.written is not None:
        warnings += layouts.removed(entry.written)
    return EntryAdded(
        id=entry.id,
        created=entry.written is not None,
        duplicate=entry.written is None,
        path=entry.location,
        warnings=warnings,
    )


def _difference(field: FieldDifference) -> str:
    text = f"{field.name} {field.given} (it has {field.value or 'none'})"
    return layouts.cut(text, layouts.LONGEST_TITLE)


def hits(findings: EntryFindings, room: int, now: datetime, flags: Flags) -> EntryHits:
    """Lay out entries that a query found."""
    shapes = []
    for entry in findings.entries:
        fields = _fields(entry.card, now, SHOWN_CONTEXT)
        score = round(entry.hit.score, 3)
        shape = EntryHit(**fields, score=score, matchedBy=entry.matched_by)
        shapes.append(flags.add(shape, entry.card.document))
    contents = [entry.hit.chunk.text for entry in findings.entries]
    results, notes = layouts.share_room(shapes, contents, room, layouts.CUT)
    total = len(findings.entries) + findings.omitted
    return EntryHits(results=results, total=total, notes=[*findings.notes, *notes])


def read(entry: ReadEntry, room: int, now: datetime, flags: Flags) -> EntryFound:
    """Lay out one entry, or what to do where there is none."""
    details = entry.details
    if details is None:
        return EntryFound(found=False, entry=None, message=_absent(entry.name))
    content = layouts.cut(details.content, max(layouts.LEAST_CONTENT, room - BESIDE_CONTENT))
    notes = []
    if details.is_expired:
        notes.append(f"it expired {layouts.age(details.card.document.expires_at, now)}")
    if content != details.content:
        notes.append("the content is cut; the file at path has the rest")
    if not details.is_noted:
        notes.append("the use could not be noted")
    text = _text(details, now, room)
    text["content"] = content
    text = flags.add(text, details.card.document)
    return EntryFound(found=True, entry=text, message="; ".join(notes))


def _text(details: EntryDetails, now: datetime, room: int) -> EntryText:
    return EntryText(
        **_fields(details.card, now, room // 4),
        updatedAt=_milliseconds(details.card.document.modified_at),
        expired=details.is_expired,
        accesses=dict(details.accesses),
        lastAccessedAt=_milliseconds(details.last_access),
    )


def _fields(card: EntryCard, now: datetime, context_room: int) -> EntryFields:
    document = card.document
    return EntryFields(
        id=card.id,
        content="",
        entryType=layouts.cut(document.kind, layouts.LONGEST_TITLE),
        source=layouts.cut(card.source, layouts.LONGEST_TITLE),
        context=layouts.cut(card.context, context_room),
        confidence=card.confidence,
        importance=card.importance,
        tags=layouts.tags(document),
        createdAt=_milliseconds(document.created_at),
        expiresAt=_milliseconds(document.expires_at),
        age=layouts.age(document.created_at, now),
        path=card.location,
    )


def stats(counts: EntryCounts, room: int) -> EntryStats:
    """Lay out what the entries are, with the most frequent types."""
    kinds = dict(layouts.within(counts.kinds.items(), room // 2))
    notes = []
    if len(kinds) < len(counts.kinds):
        notes.append(f"{len(counts.kinds) - len(kinds)} rarer types are not listed")
    return EntryStats(
        total=counts.total,
        byType=kinds,
        averageImportance=round(counts.mean_importance, 2),
        averageConfidence=round(counts.mean_confidence, 2),
        accesses=dict(counts.accesses),
        oldest=_milliseconds(counts.oldest),
        newest=_milliseconds(counts.newest),
        expired=counts.expired,
        notes=notes,
    )


def deleted(entry: DeletedEntry) -> EntryDeleted:
    """Lay out whether an entry was moved to the trash, and where to."""
    is_deleted = bool(entry.moved_to)
    message = _absent(entry.name)
    if is_deleted:
        message = f"deleted; it is kept at {entry.moved_to}"
    return EntryDeleted(id=entry.name, deleted=is_deleted, message=message, movedTo=entry.moved_to)


def _absent(name: str) -> str:
    return f"there is no entry {name!r}; <search entries> finds the ids that there are"


def _milliseconds(moment: datetime | None) -> int | None:
    """Return a moment in milliseconds since 1970, as the clients of entries expect it."""
    if moment is None:
        return None
    return round(moment.timestamp() * 1000)


# --- looking after entries ---


def expired(expiry: Expiry) -> Expired:
    """Lay out the memories whose time is over."""
    result = []
    for memory in expiry.memories:
        shape = ExpiredEntry(
            id=memory.id,
            path=memory.location,
            expiredAt=layouts.iso(memory.expired_at),
            preview=layouts.preview(memory.beginning),
            movedTo=memory.moved_to,
        )
        result.append(shape)
    moved = sum(bool(memory.moved_to) for memory in expiry.memories)
    return Expired(result=result, moved=moved, notes=list(expiry.notes))


def reviewed(review: Review, now: datetime) -> Reviewed:
    """Lay out the entries that somebody might look at, and why."""
    result = []
    for entry in review.entries:
        shape = ReviewedEntry(
            id=entry.id,
            path=entry.location,
            reasons=_reasons(entry.doubts),
            age=layouts.age(entry.created_at, now),
            preview=layouts.preview(entry.beginning),
            supersededBy=entry.doubts.newer,
        )
        result.append(shape)
    return Reviewed(result=result, omitted=review.omitted, notes=list(review.notes))


def _reasons(doubts: Doubts) -> list[str]:
    reasons = []
    if doubts.newer:
        reasons.append(f"superseded by {doubts.newer}, similarity {doubts.similarity:.2f}")
    if doubts.is_unused:
        reasons.append("never used")
    if doubts.older_than_days:
        reasons.append(f"older than {doubts.older_than_days} days")
    return reasons
