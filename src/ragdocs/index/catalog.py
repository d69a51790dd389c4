"""The cards of all documents and the rows of all chunks, with the columns that filters are answered from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from ragdocs.types import Chunk, Document, Entry, Filter, GitContext, Link

Mask = npt.NDArray[np.bool_]


class _Column:
    """A numpy array that grows by doubling."""

    def __init__(self, dtype: npt.DTypeLike, blank: float) -> None:
        self._values: npt.NDArray[Any] = np.full(64, blank, dtype=dtype)
        self._blank = blank
        self._length = 0

    def __setitem__(self, position: int, value: float) -> None:
        while position >= len(self._values):
            extra = np.full(len(self._values), self._blank, dtype=self._values.dtype)
            self._values = np.concatenate([self._values, extra])
        self._length = max(self._length, position + 1)
        self._values[position] = value

    @property
    def values(self) -> npt.NDArray[Any]:
        return self._values[: self._length]


class Catalog:
    """Documents have slots, chunks have rows; rows are never used twice within one life of the catalog."""

    def __init__(self) -> None:
        self.stamps: dict[str, tuple[str, str]] = {}
        self._documents: dict[str, Document] = {}
        self._by_path: dict[str, str] = {}
        self._slots: dict[str, int] = {}
        self._ids: list[str] = []
        self._rows: dict[str, tuple[int, ...]] = {}
        self._chunks: dict[int, Chunk] = {}
        self._slot_of = _Column(np.int64, 0)
        self._alive = _Column(np.bool_, 0)
        self._created = _Column(np.float64, np.nan)
        self._expires = _Column(np.float64, np.inf)
        self._words: dict[tuple[str, str], set[int]] = defaultdict(set)
        self._next_row = 0

    @property
    def alive(self) -> Mask:
        """Tell for each row whether it holds a chunk."""
        return self._alive.values

    def __len__(self) -> int:
        return len(self._documents)

    def add(self, entry: Entry, rows: Sequence[int] | None = None) -> tuple[int, ...]:
        """Add a document that is not there and return the rows of its chunks."""
        document = entry.document
        slot = self._slots.get(document.id)
        if slot is None:
            slot = self._slots[document.id] = len(self._ids)
            self._ids.append(document.id)
        self._documents[document.id] = document
        self._by_path[document.path] = document.id
        self.stamps[document.path] = (entry.stamp, document.version)
        self._created[slot] = document.created_at.timestamp() if document.created_at else np.nan
        self._expires[slot] = document.expires_at.timestamp() if document.expires_at else np.inf
        for word in _words(document):
            self._words[word].add(slot)
        if rows is None:
            rows = range(self._next_row, self._next_row + len(entry.chunks))
        for row, chunk in zip(rows, entry.chunks, strict=True):
            self._chunks[row] = chunk
            self._slot_of[row] = slot
            self._alive[row] = True
            self._next_row = max(self._next_row, row + 1)
        self._rows[document.id] = tuple(rows)
        return self._rows[document.id]

    def remove(self, path: str) -> tuple[str, tuple[int, ...]] | None:
        """Drop the document at this path; return its id and the rows it had."""
        doc_id = self._by_path.pop(path, None)
        if doc_id is None:
            return None
        self.stamps.pop(path, None)
        document, slot = self._documents.pop(doc_id), self._slots[doc_id]
        for word in _words(document):
            self._words[word].discard(slot)
        rows = self._rows.pop(doc_id)
        for row in rows:
            del self._chunks[row]
            self._alive[row] = False
        return doc_id, rows

    def restamp(self, path: str, stamp: str) -> None:
        """Remember that the source was looked at and is the same."""
        self.stamps[path] = (stamp, self.stamps[path][1])

    def document(self, doc_id: str) -> Document:
        """Return one card."""
        return self._documents[doc_id]

    def documents(self, slots: Mask | None = None) -> list[Document]:
        """List cards in the order of their paths, or those of the slots in the mask."""
        chosen = (d for d in self._documents.values() if slots is None or slots[self._slots[d.id]])
        return sorted(chosen, key=lambda document: document.path)

    def rows(self, doc_id: str) -> tuple[int, ...]:
        """Return the rows of one document's chunks, in order."""
        return self._rows.get(doc_id, ())

    def chunk(self, row: int) -> tuple[Document, Chunk]:
        """Return the chunk of a row and the card of its document."""
        chunk = self._chunks[row]
        return self._documents[chunk.doc_id], chunk

    def slots(self, where: Filter, linked: Iterable[str] | None = None) -> Mask:
        """Tell for each document slot whether it passes; `linked` are the ids that satisfy `where.linked_to`."""
        mask = np.ones(len(self._ids), dtype=np.bool_)
        for field, words in (("kind", where.kinds), ("tag", where.tags), ("status", where.statuses)):
            if words:
                mask &= self._having(field, words)
        if where.hidden:
            mask &= ~self._having("status", where.hidden)
        if linked is not None:
            mask &= _chosen(len(mask), {self._slots[doc_id] for doc_id in linked if doc_id in self._slots})
        if where.prefix:
            below = (self._slots[d] for path, d in self._by_path.items() if path.startswith(where.prefix))
            mask &= _chosen(len(mask), set(below))
        if where.alive_at:
            mask &= self._expires.values > where.alive_at.timestamp()
        if where.since:
            mask &= self._created.values >= where.since.timestamp()
        if where.until:
            mask &= self._created.values <= where.until.timestamp()
        return mask

    def passes(self, doc_id: str, slots: Mask) -> bool:
        """Tell whether a document is here and chosen."""
        return doc_id in self._documents and bool(slots[self._slots[doc_id]])

    def mask(self, slots: Mask) -> Mask:
        """Tell for each row whether it holds a chunk of a chosen document."""
        result: Mask = self.alive & slots[self._slot_of.values] if len(slots) else self.alive.copy()
        return result

    def dump(self) -> dict[str, Any]:
        """Return everything but the links, which the graph keeps, as JSON-ready values."""
        return {
            "documents": [
                {
                    **_plain(document),
                    "stamp": self.stamps[document.path][0],
                    "rows": list(self._rows[document.id]),
                    "chunks": [
                        [list(c.headings), c.text, c.start_line, c.end_line, c.digest]
                        for c in (self._chunks[row] for row in self._rows[document.id])
                    ],
                }
                for document in self.documents()
            ],
            "next_row": self._next_row,
        }

    @classmethod
    def restore(cls, data: Mapping[str, Any], links: Callable[[str], tuple[Link, ...]]) -> Catalog:
        """Rebuild a catalog from what `dump` returned, and the links of each document id."""
        catalog = cls()
        if data["next_row"]:
            # The keyword index still names rows of the dead: the columns reach as far as rows were ever given.
            catalog._alive[data["next_row"] - 1] = False
            catalog._slot_of[data["next_row"] - 1] = 0
        for card in data["documents"]:
            document = _document(card, links(card["id"]))
            chunks = tuple(
                Chunk(f"{document.id}#{n}", document.id, tuple(headings), text, start, end, digest)
                for n, (headings, text, start, end, digest) in enumerate(card["chunks"])
            )
            catalog.add(Entry(document, chunks, card["stamp"]), card["rows"])
        catalog._next_row = data["next_row"]
        return catalog

    def _having(self, field: str, words: Iterable[str]) -> Mask:
        slots: set[int] = set()
        for word in words:
            slots |= self._words.get((field, word.casefold()), set())
        return _chosen(len(self._ids), slots)


def _chosen(length: int, slots: set[int]) -> Mask:
    mask = np.zeros(length, dtype=np.bool_)
    mask[np.fromiter(slots, dtype=np.int64, count=len(slots))] = True
    return mask


def _words(document: Document) -> set[tuple[str, str]]:
    words = {("kind", document.kind.casefold()), ("status", document.status.casefold())}
    return words | {("tag", tag.casefold()) for tag in document.tags}


_DATES = ("created_at", "modified_at", "expires_at")


def _plain(document: Document) -> dict[str, Any]:
    names = ("id", "lane", "path", "title", "version", "kind", "status", "tags", "aliases", "importance", "source")
    card: dict[str, Any] = {name: getattr(document, name) for name in (*names, "size", "problems")}
    card |= {name: moment.isoformat() for name in _DATES if (moment := getattr(document, name))}
    card["extra"] = dict(document.extra)
    if document.git:
        card["git"] = [document.git.branch, document.git.commit, document.git.dirty, list(document.git.files_changed)]
    return card


def _document(card: Mapping[str, Any], links: tuple[Link, ...]) -> Document:
    values = {name: value for name, value in card.items() if name not in ("rows", "chunks", "stamp", "git")}
    values |= {name: tuple(values[name]) for name in ("tags", "aliases", "problems")}
    values |= {name: datetime.fromisoformat(values[name]).astimezone(UTC) for name in _DATES if name in values}
    if "git" in card:
        branch, commit, dirty, changed = card["git"]
        values["git"] = GitContext(branch, commit, dirty, tuple(changed))
    return Document(links=links, **values)
