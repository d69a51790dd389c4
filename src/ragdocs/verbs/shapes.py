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


class MemoryHit(TypedDict):
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


class LinkedHit(TypedDict):
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


class RevisionShape(TypedDict):
    """An earlier text of a memory."""

    filename: str
    version: str
    at: str
    verb: str
    size: int


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
