"""The shapes of answers, shared by the tools and the command line."""

from __future__ import annotations

from typing import NotRequired

# Pydantic reads nested TypedDicts of the standard library only from Python 3.12 on.
from typing_extensions import TypedDict


class SignalShape(TypedDict):
    """One contribution to a score."""

    probe: str
    source: str
    rank: int
    raw: float
    share: float


class LinkShape(TypedDict):
    """One link from a memory to the document that was asked about."""

    edge_type: str
    anchor_context: str


class Provenance(TypedDict, total=False):
    """Where a memory comes from, as far as it says so."""

    author: str
    source: str
    branch: str
    commit: str


class MemoryHit(Provenance):
    """A memory that answers a query, by its best passage."""

    memory_id: str
    score: float
    content: str
    type: str
    status: str
    tags: list[str]
    file_path: str
    header_path: str
    title: str
    lines: str
    created_at: str | None
    age: str
    why: str
    signals: NotRequired[list[SignalShape]]


class LinkedHit(Provenance):
    """A memory that links to the document that was asked about."""

    memory_id: str
    score: float
    content: str
    anchor_context: str
    edge_type: str
    file_path: str
    title: str
    lines: str
    created_at: str | None
    age: str
    why: str
    links: list[LinkShape]


class DocHit(TypedDict):
    """A passage of the documentation."""

    path: str
    score: float
    content: str
    title: str
    header_path: str
    lines: str
    tags: list[str]
    modified_at: str | None
    why: str
    signals: NotRequired[list[SignalShape]]


class MemoryHits(TypedDict):
    """Memories, best first; `omitted` counts what also matched."""

    result: list[MemoryHit]
    omitted: int
    notes: list[str]


class LinkedHits(TypedDict):
    """Linked memories, best first; `omitted` counts what also matched."""

    result: list[LinkedHit]
    omitted: int
    notes: list[str]


class DocHits(TypedDict):
    """Passages, best first; `omitted` counts what also matched."""

    result: list[DocHit]
    omitted: int
    notes: list[str]


class Saved(TypedDict):
    """A memory that was written."""

    status: str
    filename: str
    path: str
    version: str
    warnings: list[str]


class Deleted(TypedDict):
    """A memory that was moved to the trash."""

    status: str
    filename: str
    moved_to: str


class MemoryText(TypedDict):
    """A memory as it stands in its file."""

    filename: str
    content: str
    path: str
    version: str
    lines: str
    omitted: str


class DocText(TypedDict):
    """A document or a part of it."""

    path: str
    title: str
    content: str
    lines: str
    headings: list[str]
    omitted: str


class Stats(TypedDict):
    """What a memory bank holds."""

    count: int
    total_size: str
    tags: dict[str, int]
    types: dict[str, int]
    memory_path: str
    notes: list[str]


class Merged(TypedDict):
    """Memories that became one."""

    status: str
    filename: str
    path: str
    version: str
    merged: list[str]
    moved_to: list[str]
    warnings: list[str]


class ClusterMember(TypedDict):
    """One memory of a cluster."""

    id: str
    file_path: str
    preview: str


class Cluster(TypedDict):
    """Memories that say nearly the same."""

    cluster_id: int
    score: float
    reason: str
    memory_count: int
    memories: list[ClusterMember]


class Clusters(TypedDict):
    """Clusters, tightest first."""

    result: list[Cluster]
    notes: list[str]


class LaneStatus(TypedDict):
    """The state of one lane's index against its files."""

    lane: str
    root: str
    documents: int
    chunks: int
    vectors: int
    links: int
    embedder: str
    vector_search: str
    problems: dict[str, str]
    notes: list[str]


class Status(TypedDict):
    """The state of a project's server."""

    project: str
    version: str
    ready: bool
    watcher: str
    heartbeat: str | None
    lanes: list[LaneStatus]


class Remembered(TypedDict):
    """A memory that was written under the moment it was made."""

    id: str
    path: str
    warnings: list[str]


class GitShape(TypedDict):
    """The state of the working tree when a memory was written.

    `files_total` is there when not all are listed.
    """

    branch: str
    commit: str
    dirty: bool
    files_changed: list[str]
    files_total: NotRequired[int]


class RecalledMemory(TypedDict):
    """A memory with when and where it was written.

    `project` is there when all projects were asked.
    """

    id: str
    timestamp: int
    tags: list[str]
    content: str
    git: GitShape | None
    age: str
    path: str
    project: NotRequired[str]


class Recalled(TypedDict):
    """Memories, newest first or best first; `omitted` counts what also matched."""

    result: list[RecalledMemory]
    omitted: int
    notes: list[str]


class Edited(TypedDict):
    """A memory of which a part was changed.

    `content` is the new passage with the lines around it.
    """

    status: str
    filename: str
    path: str
    version: str
    places: int
    lines: str
    content: str
    warnings: list[str]


class Renamed(TypedDict):
    """A memory under its new name; `files` counts the links that were rewritten in each memory."""

    status: str
    filename: str
    previous: str
    path: str
    version: str
    links: int
    files: dict[str, int]
    warnings: list[str]


class RevisionShape(TypedDict):
    """An earlier text of a memory, the change that replaced it.

    And the version it became ("" where it was removed).
    """

    filename: str
    version: str
    at: str
    age: str
    verb: str
    size: int
    became: str


class Revisions(TypedDict):
    """Earlier texts, newest first; `current` is the version now, where one memory was asked for."""

    result: list[RevisionShape]
    current: str
    omitted: int
    notes: list[str]


class Difference(TypedDict):
    """What differs between two texts of a memory."""

    filename: str
    before: str
    after: str
    content: str


class Undone(TypedDict):
    """A change that was taken back.

    The memories that are as before it, and the new ones that went away.
    """

    status: str
    verb: str
    at: str
    restored: list[str]
    removed: list[str]
    moved_to: list[str]
    warnings: list[str]


class Explained(TypedDict):
    """Where a document stands for a query.

    The stage it reached, and what is said of its best passage.
    """

    query: str
    path: str
    stage: str
    why: str
    place: int
    score: float
    lines: str
    words: list[str]
    missing: list[str]
    keyword: float
    keyword_rank: int
    meaning: float
    meaning_rank: int
    signals: list[SignalShape]


class VerifiedLane(TypedDict):
    """How an index stands to its files, and the first thing that differs from one built anew.

    The paths are those that changed since they were indexed, are not indexed, or are gone.
    """

    compared: dict[str, int]
    difference: str
    stale: list[str]
    missing: list[str]
    extra: list[str]


class Verified(TypedDict):
    """Each lane's index against its files alone."""

    identical: bool
    lanes: dict[str, VerifiedLane]
