"""The shapes of answers about the state of an index and about searches."""

from __future__ import annotations

from typing import NotRequired

# Pydantic reads nested TypedDicts of the standard library only from Python 3.12 on.
from typing_extensions import TypedDict

from ragdocs.serve.surface.shapes import SignalShape


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


class ProblemShape(TypedDict):
    """What is wrong with a text, and in which line, where one can be named.

    A note is for a person to decide, and no fault.
    """

    path: str
    line: int | None
    problem: str
    rule: str
    level: str


class Linted(TypedDict):
    """Problems of texts by path, and how many more there are.

    `repairs` says what was repaired or could be, `diff` shows it.
    """

    result: list[ProblemShape]
    omitted: int
    repairs: NotRequired[list[ProblemShape]]
    diff: NotRequired[str]
    is_repaired: NotRequired[bool]
    notes: list[str]


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
