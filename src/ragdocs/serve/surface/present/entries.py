"""Answers about entries, which are single facts, as text."""

from __future__ import annotations

from datetime import UTC, datetime

from ragdocs.serve.surface.present import (
    counts,
    inline,
    joined,
    listing,
    note_lines,
    provenance,
    quote,
    whole,
    with_notes,
)
from ragdocs.serve.surface.shapes.entries import (
    EntryAdded,
    EntryDeleted,
    EntryFound,
    EntryHit,
    EntryHits,
    EntryStats,
    EntryText,
    Expired,
    Reviewed,
)
from ragdocs.text.visible import line


def entry_added(answer: EntryAdded) -> str:
    """Confirm an entry, or name the one with the same content."""
    outcome = "nothing was written, the same content is there already:"
    if answer["created"]:
        outcome = "added"
    return with_notes(f"{outcome} {answer['id']} at {answer['path']}", answer["warnings"])


def entries(answer: EntryHits) -> str:
    """Write entries."""
    blocks = []
    for number, hit in enumerate(inline(answer)["results"], start=1):
        blocks.append(
            f"{number}. {_entry_head(hit)} · score {hit['score']:.2f}, by {hit['matchedBy']}\n"
            f"{quote(hit['content'])}"
        )
    return listing(blocks, answer["total"] - len(blocks), answer["notes"], "entries")


def entry(answer: EntryFound) -> str:
    """Write one entry with what is known about its use."""
    text = inline(answer)["entry"]
    if text is None:
        return answer["message"]
    rows = [
        _entry_head(text),
        f"   accesses: {counts(text['accesses'])} · last: {_time(text['lastAccessedAt'])}",
        whole(text["content"]),
    ]
    if answer["message"]:
        rows += note_lines([answer["message"]])
    return "\n".join(rows)


def entry_stats(answer: EntryStats) -> str:
    """Write the counts of entries."""
    answer = inline(answer)
    importance = f"{answer['averageImportance']:g}"
    confidence = f"{answer['averageConfidence']:g}"
    rows = [
        f"{answer['total']} entries, {answer['expired']} of them expired",
        f"types: {counts(answer['byType']) or 'none'}",
        f"average importance {importance}, confidence {confidence}",
        f"accesses: {counts(answer['accesses'])}",
        f"oldest: {_time(answer['oldest'])}, newest: {_time(answer['newest'])}",
    ]
    return with_notes("\n".join(rows), answer["notes"])


def entry_deleted(answer: EntryDeleted) -> str:
    """Say whether an entry was deleted."""
    return line(answer["message"])


def expired(answer: Expired) -> str:
    """List expired entries, and what became of them."""
    rows = []
    for item in inline(answer)["result"]:
        path = item["movedTo"] or item["path"]
        rows.append(f"{item['id']} · over since {item['expiredAt']} · {path}")
        rows.append(quote(item["preview"]))
    if answer["moved"]:
        rows.append(f"{answer['moved']} moved to the trash")
    else:
        rows.append(f"{len(answer['result'])} are over; nothing was moved")
    return "\n".join([*rows, *note_lines(answer["notes"])])


def reviewed(answer: Reviewed) -> str:
    """List entries that somebody might look at."""
    blocks = []
    for item in inline(answer)["result"]:
        blocks.append(
            f"{item['id']} · {item['age']} · {'; '.join(item['reasons'])}\n"
            f"   file: {item['path']}\n"
            f"{quote(item['preview'])}"
        )
    return listing(blocks, answer["omitted"], answer["notes"], "old, unused or superseded entries")


def _entry_head(text: EntryHit | EntryText) -> str:
    weight = f"importance {text['importance']:g}, confidence {text['confidence']:g}"
    expiry = f"expires {_time(text['expiresAt'], 'never')}"
    rows = [
        f"{text['id']} · {text['entryType']}, {provenance(text)}, {weight}, {expiry}",
        f"   file: {text['path']} · tags: {joined(text['tags'])}",
    ]
    if text["context"]:
        rows.append(f"   context | {text['context']}")
    return "\n".join(rows)


def _time(milliseconds: int | None, absent: str = "none") -> str:
    """Write a time as people read it."""
    if milliseconds is None:
        return absent
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
