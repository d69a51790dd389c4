"""The shapes of answers about the journal and about commits.

The names are those of the journal's document.
"""

from __future__ import annotations

from typing import Any, NotRequired

# Pydantic reads nested TypedDicts of the standard library only from Python 3.12 on.
from typing_extensions import TypedDict


class JournalText(TypedDict):
    """What a section says now, or one entry; `version` is the commit that it was read at."""

    id: str
    type: str
    content: str
    lines: str
    version: str
    timestamp: str | None
    entry_count: int
    exists: bool
    omitted: str
    notes: list[str]


class JournalWritten(TypedDict):
    """An entry that was committed.

    `rebased` tells that others had written since the section was read.
    """

    id: str
    path: str
    commit: str
    entry_count: int
    overview_changed: bool
    rebased: bool
    warnings: list[str]


class Contents(TypedDict):
    """A section, a folder of sections or the whole journal.

    And what lies below as far as it was asked for.
    """

    id: str
    type: str
    last_updated: str | None
    entry_count: int
    subsections: NotRequired[list[dict[str, Any]]]
    notes: list[str]


class ListedEntry(TypedDict):
    """One entry in a list."""

    id: str
    timestamp: str
    summary: str


class ListedEntries(TypedDict):
    """Entries of one section, newest first."""

    result: list[ListedEntry]
    total: int
    notes: list[str]


class JournalHit(TypedDict):
    """An entry that answers a search, with what each of its two dimensions says."""

    id: str
    content: str
    work_context_score: float
    content_score: float
    combined_score: float
    timestamp: str | None
    age: str


class JournalHits(TypedDict):
    """Entries, best first."""

    result: list[JournalHit]
    omitted: int
    notes: list[str]


class Synthesis(TypedDict):
    """Two versions of a section put together.

    `draft` by line, `synthesis` by the client's model if it was asked.
    """

    section: str
    draft: str
    disagreements: int
    synthesis: str
    model: str
    instructions: str


class Exchanged(TypedDict):
    """What came from a remote and what went there."""

    remote: str
    branch: str
    received: int
    sent: int
    merged: list[str]
    notes: list[str]


class CommitHit(TypedDict):
    """A commit of the project that answers a search.

    `paths_total` is there when not all paths are listed.
    """

    commit: str
    subject: str
    content: str
    author: str
    timestamp: str | None
    age: str
    paths: list[str]
    paths_total: NotRequired[int]
    score: float
    why: str


class CommitHits(TypedDict):
    """Commits, best first, or newest first where nothing was looked for."""

    result: list[CommitHit]
    omitted: int
    notes: list[str]
