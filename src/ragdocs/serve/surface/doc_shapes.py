"""The shapes of answers about documentation."""

from __future__ import annotations

from typing import NotRequired

# Pydantic reads nested TypedDicts of the standard library only from Python 3.12 on.
from typing_extensions import TypedDict

from ragdocs.serve.surface.shapes import SignalShape


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
