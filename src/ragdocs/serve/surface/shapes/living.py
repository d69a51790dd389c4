"""The shapes of answers about what became of what texts are about."""

from __future__ import annotations

from typing import NotRequired

# Pydantic reads nested TypedDicts of the standard library only from Python 3.12 on.
from typing_extensions import TypedDict


class DriftedLink(TypedDict):
    """A link whose target is not what it was: `state` is changed, moved or missing."""

    target: str
    state: str
    words: str
    since: str | None
    added: int | None
    removed: int | None
    moved_to: str
    # What changed in the target since, as a diff.
    content: str


class DriftedShape(TypedDict):
    """A memory whose links are not what they were."""

    filename: str
    memory_id: str
    title: str
    type: str
    age: str
    # Importance times change, from 0 to 1.
    weight: float
    verified: str
    links: list[DriftedLink]


class DriftReview(TypedDict):
    """Memories to look at, worst first; `omitted` counts those that are not listed."""

    result: list[DriftedShape]
    omitted: int
    notes: list[str]


class VerifiedShape(TypedDict):
    """A memory that was found to be still true; `links` are those that still deviate."""

    status: str
    filename: str
    verified: str
    links: list[str]
    warnings: list[str]


class RelinkedShape(TypedDict):
    """A memory whose links lead to where their targets are now; `links` are as old and new."""

    status: str
    filename: str
    version: str
    links: list[list[str]]
    warnings: list[str]


class AffectedShape(TypedDict):
    """A passage that speaks about what changed."""

    lane: str
    path: str
    location: str
    line: int
    title: str
    type: str
    header_path: str
    weight: float
    reasons: list[str]
    # Whether the same change touches this file, too.
    changed: bool


class AffectedAnswer(TypedDict):
    """Passages that speak about what changed, the surest first."""

    result: list[AffectedShape]
    omitted: int
    files: int
    notes: list[str]
    # The same as Markdown or SARIF, where that was asked for.
    report: NotRequired[str]
