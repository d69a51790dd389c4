"""The shapes of answers about documentation."""

from __future__ import annotations

from typing import NotRequired

# Pydantic reads nested TypedDicts of the standard library only from Python 3.12 on.
from typing_extensions import TypedDict

from ragdocs.serve.surface.shapes import SignalShape


class Sibling(TypedDict):
    """The same page in another language or version."""

    path: str
    language: NotRequired[str]
    version: NotRequired[str]


class DocHit(TypedDict):
    """A passage of the documentation, with the section around it as far as there is room."""

    path: str
    score: float
    content: str
    title: str
    header_path: str
    lines: str
    tags: list[str]
    modified_at: str | None
    why: str
    # Beyond the project: the name of the source, and its version.
    source: NotRequired[str]
    version: NotRequired[str]
    siblings: NotRequired[list[Sibling]]
    # The lines that matched, where more of their section is shown.
    matched: NotRequired[str]
    signals: NotRequired[list[SignalShape]]


class DocHits(TypedDict):
    """Passages, best first; `omitted` counts what also matched."""

    result: list[DocHit]
    omitted: int
    notes: list[str]


class DocText(TypedDict):
    """A document or a part of it."""

    path: str
    title: str
    content: str
    lines: str
    headings: list[str]
    omitted: str


class SourceShape(TypedDict):
    """Documentation beyond the project; a source that cannot be read has a problem."""

    name: str
    line: str
    version: str
    documents: int
    location: str
    note: str
    problem: str


class SourceList(TypedDict):
    """All sources that are configured."""

    result: list[SourceShape]
