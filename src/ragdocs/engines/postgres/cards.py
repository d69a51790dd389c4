"""Documents as they are stored in rows, and text as PostgreSQL can hold it."""

from __future__ import annotations

import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from ragdocs.types import Document, GitContext, Link

# A search shows dozens of documents, and the next one often the same.
KEPT_CARDS = 4096
# The character 0 and half characters, which a text of PostgreSQL cannot hold, and the mark that
# stands for them.
_FOREIGN = re.compile("[\x00\ud800-\udfff\ufffd]")
_SPELLED = re.compile("\ufffd([0-9a-f]{4})")


def stored(text: str) -> str:
    """Return a text under which another is stored and looked up.

    It is the same text unless PostgreSQL cannot hold it.
    """
    if text.isascii() and "\x00" not in text:
        return text
    return _FOREIGN.sub(_spelled, text)


def all_stored(texts: Iterable[str]) -> list[str]:
    """Return the texts under which these are stored."""
    return [stored(text) for text in texts]


def restored(text: str) -> str:
    """Return the text that is stored under another."""
    if text.isascii():
        return text
    return _SPELLED.sub(lambda match: chr(int(match.group(1), 16)), text)


def _spelled(match: re.Match[str]) -> str:
    return f"\ufffd{ord(match.group()):04x}"


def encoded(text: str) -> bytes:
    """Return the bytes of any text."""
    return text.encode("utf-8", "surrogatepass")


def decoded(data: bytes) -> str:
    """Return the text of bytes that `encoded` returned."""
    return data.decode("utf-8", "surrogatepass")


def document_number(scope: int, path: str) -> int:
    """Return the number of a document, which is the same whenever it is indexed."""
    named = f"{scope}:{path}"
    digest = hashlib.blake2b(encoded(named), digest_size=8).digest()
    return int.from_bytes(digest) >> 1


def document_numbers(scope: int, paths: Iterable[str]) -> list[int]:
    """Return the numbers of the documents at these paths."""
    return [document_number(scope, path) for path in paths]


def as_bytes(value: Any) -> bytes:
    """Return a value as JSON."""
    return json.dumps(value, separators=(",", ":"), default=str).encode()


def from_document(document: Document) -> bytes:
    """Return everything that a document says of itself, in the order of its fields."""
    git = None
    if document.git is not None:
        state = document.git
        git = (state.branch, state.commit, state.dirty, state.files_changed, state.files_total)
    links = []
    for link in document.links:
        links.append((link.target, link.kind, link.context, link.heading))
    return as_bytes(
        (
            document.id,
            document.lane,
            document.path,
            document.title,
            document.version,
            document.kind,
            document.status,
            document.tags,
            document.aliases,
            _written(document.created_at),
            _written(document.modified_at),
            _written(document.expires_at),
            links,
            document.importance,
            document.confidence,
            document.source,
            git,
            document.size,
            dict(document.extra),
            document.problems,
            document.format,
            document.anchors,
        )
    )


class Cards:
    """Makes documents of stored cards, and keeps those that were made last."""

    def __init__(self) -> None:
        self._made: OrderedDict[bytes, Document] = OrderedDict()

    def document(self, card: bytes) -> Document:
        """Return the document of a card; two that are equal are made once."""
        document = self._made.get(card)
        if document is None:
            document = to_document(card)
            self._made[card] = document
            if len(self._made) > KEPT_CARDS:
                self._made.popitem(last=False)
        return document


def to_document(card: bytes) -> Document:
    """Return the document of a card."""
    values = json.loads(card)
    identity, lane, path, title, version, kind, status, tags, aliases = values[:9]
    created, modified, expires, links, importance, confidence, source, git = values[9:17]
    size, extra, problems, text_format, anchors = values[17:]
    state = None
    if git is not None:
        branch, commit, dirty, changed, total = git
        state = GitContext(branch, commit, dirty, tuple(changed), total)
    return Document(
        id=identity,
        lane=lane,
        path=path,
        title=title,
        version=version,
        kind=kind,
        status=status,
        tags=tuple(tags),
        aliases=tuple(aliases),
        created_at=_read(created),
        modified_at=_read(modified),
        expires_at=_read(expires),
        links=tuple(Link(*link) for link in links),
        importance=importance,
        confidence=confidence,
        source=source,
        git=state,
        size=size,
        extra=extra,
        problems=tuple(problems),
        format=text_format,
        anchors=tuple(anchors),
    )


def _written(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat()


def _read(moment: str | None) -> datetime | None:
    if moment is None:
        return None
    return datetime.fromisoformat(moment)
