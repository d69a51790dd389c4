"""What the verbs of entries return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ragdocs.types import Document, Hit, Written


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryCard:
    """What an entry says of itself; what it does not say is filled in."""

    id: str
    document: Document
    source: str
    context: str
    confidence: float
    importance: float
    location: str


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """A field that was given for an entry that is there already and has another value."""

    name: str
    given: object
    value: object


@dataclass(frozen=True, slots=True)
class AddedEntry:
    """An entry that was written, or the one that says the same already.

    `revived` tells what an entry was that is live again: archived or expired. Without `written`
    nothing was, and `differing` are the fields that were not taken over.
    """

    id: str
    location: str
    written: Written | None = None
    revived: str = ""
    differing: Sequence[FieldDifference] = ()


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """An entry that answers a query, and what found it: `vector`, `keyword`, `both` or `link`."""

    card: EntryCard
    hit: Hit
    matched_by: str


@dataclass(frozen=True, slots=True)
class EntryFindings:
    """Entries, best first, how many more matched, and what was missing while looking."""

    entries: Sequence[FoundEntry]
    omitted: int
    notes: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryDetails:
    """One entry as it stands in its file, and how often it was found, read and used.

    `is_noted` says whether this use of it could be noted.
    """

    card: EntryCard
    content: str
    is_expired: bool
    accesses: Mapping[str, int]
    last_access: datetime | None
    is_noted: bool


@dataclass(frozen=True, slots=True)
class ReadEntry:
    """The entry that was asked for, if there is one; the name is safe to repeat."""

    name: str
    details: EntryDetails | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryCounts:
    """What the entries are, on the whole; frequent kinds come first."""

    total: int
    kinds: Mapping[str, int]
    mean_importance: float
    mean_confidence: float
    accesses: Mapping[str, int]
    oldest: datetime | None
    newest: datetime | None
    expired: int


@dataclass(frozen=True, slots=True)
class DeletedEntry:
    """The entry that was to be deleted, and its path in the trash if there was one."""

    name: str
    moved_to: str = ""
