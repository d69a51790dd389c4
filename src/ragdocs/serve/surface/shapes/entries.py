"""The shapes of answers about entries.

Their names are those of the document that describes these tools.
"""

from __future__ import annotations

from typing import NotRequired

# Pydantic reads nested TypedDicts of the standard library only from Python 3.12 on.
from typing_extensions import TypedDict


class EntryAdded(TypedDict):
    """An entry that was written, or the one that says the same already."""

    id: str
    created: bool
    duplicate: bool
    path: str
    warnings: list[str]


class EntryFields(TypedDict):
    """What an entry says of itself; times are milliseconds since 1970."""

    id: str
    content: str
    entryType: str
    source: str
    context: str
    confidence: float
    importance: float
    tags: list[str]
    createdAt: int | None
    expiresAt: int | None
    age: str
    path: str
    # As in a search of memories.
    drift: NotRequired[str]
    branch_state: NotRequired[str]


class EntryHit(EntryFields):
    """An entry that answers a query, and what found it: `vector`, `keyword`, `both` or `link`."""

    score: float
    matchedBy: str


class EntryHits(TypedDict):
    """Entries, best first; `total` counts all matches among the candidates."""

    results: list[EntryHit]
    total: int
    notes: list[str]


class EntryText(EntryFields):
    """One entry as it stands in its file, and how often it was shown, read and used."""

    updatedAt: int | None
    expired: bool
    accesses: dict[str, int]
    lastAccessedAt: int | None


class EntryFound(TypedDict):
    """The entry that was asked for, or what to do where there is none."""

    found: bool
    entry: EntryText | None
    message: str


class EntryStats(TypedDict):
    """What the entries are, on the whole."""

    total: int
    byType: dict[str, int]
    averageImportance: float
    averageConfidence: float
    accesses: dict[str, int]
    oldest: int | None
    newest: int | None
    expired: int
    notes: list[str]


class EntryDeleted(TypedDict):
    """Whether an entry was moved to the trash, and where to."""

    id: str
    deleted: bool
    message: str
    movedTo: str


class ExpiredEntry(TypedDict):
    """An entry whose time is over."""

    id: str
    path: str
    expiredAt: str
    preview: str
    movedTo: str


class Expired(TypedDict):
    """Entries whose time is over; `moved` counts those that went to the trash."""

    result: list[ExpiredEntry]
    moved: int
    notes: list[str]


class ReviewedEntry(TypedDict):
    """An entry that somebody might look at, and why."""

    id: str
    path: str
    reasons: list[str]
    age: str
    preview: str
    supersededBy: str


class Reviewed(TypedDict):
    """Entries to look at, those with most reasons first; nothing was changed."""

    result: list[ReviewedEntry]
    omitted: int
    notes: list[str]
