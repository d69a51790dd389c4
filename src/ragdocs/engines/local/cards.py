"""What a snapshot keeps of a document: everything but its links, which the graph has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from sys import intern
from typing import Any

from ragdocs.types import Document, GitContext, Link

# Texts that many documents have the same of, each of which is kept once.
_SHARED = ("lane", "kind", "status", "format")
_DATES = ("created_at", "modified_at", "expires_at")


def every_card(documents: Iterable[tuple[Document, str, range]]) -> Iterator[dict[str, Any]]:
    """Yield what a snapshot keeps of documents with these stamps and rows."""
    for document, stamp, rows in documents:
        yield {**_plain(document), "stamp": stamp, "rows": [rows.start, rows.stop]}


def _plain(document: Document) -> dict[str, Any]:
    names = (
        "id",
        "lane",
        "path",
        "title",
        "version",
        "kind",
        "status",
        "tags",
        "aliases",
        "importance",
        "source",
        "confidence",
        "format",
        "anchors",
    )
    card: dict[str, Any] = {name: getattr(document, name) for name in (*names, "size", "problems")}
    for name in _DATES:
        moment = getattr(document, name)
        if moment:
            card[name] = moment.isoformat()
    card["extra"] = dict(document.extra)
    if document.git:
        state = document.git
        card["git"] = [
            state.branch,
            state.commit,
            state.dirty,
            list(state.files_changed),
            state.files_total,
        ]
    return card


def document_of(card: Mapping[str, Any], links: tuple[Link, ...]) -> Document:
    """Return the document of a card."""
    values = dict(card)
    del values["rows"], values["stamp"]
    git = values.pop("git", None)
    for name in ("tags", "aliases", "problems", "anchors"):
        values[name] = tuple(values[name])
    for name in _SHARED:
        values[name] = intern(values[name])
    for name in _DATES:
        if name in values:
            values[name] = datetime.fromisoformat(values[name]).astimezone(UTC)
    if git is not None:
        # A snapshot of an earlier version has no total.
        branch, commit, dirty, changed, *total = git
        values["git"] = GitContext(branch, commit, dirty, tuple(changed), *total)
    return Document(links=links, **values)
