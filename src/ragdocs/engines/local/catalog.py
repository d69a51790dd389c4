"""The cards of all documents and the rows of all chunks.

With the columns that filters are answered from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragdocs.engines.local.cards import document_of, every_card
from ragdocs.engines.local.columns import Column
from ragdocs.system import files as fsio
from ragdocs.system.turns import give_way
from ragdocs.types import (
    UNSAID_CONFIDENCE,
    UNSAID_IMPORTANCE,
    Chunk,
    Document,
    Filter,
    IndexedDocument,
    Link,
)

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Buffer = bytes | memoryview

# Reads of mapped texts before their pages are given back. Pages that are needed again soon cost a
# search a twentieth of its time: one reads its hits and then the texts around them.
READS_BEFORE_REST = 2
PORTION = 32

# Texts that are joined at once when a snapshot is made.
TEXTS_IN_A_PIECE = 256

# Takes rows and their scores and returns the permutation that puts the best first.
BestFirst = Callable[[Rows, Floats], Rows]


def by_row(rows: Rows, scores: Floats) -> Rows:
    """Order rows by score, equal ones by row."""
    order: Rows = np.lexsort((rows, -scores))
    return order


class Siblings(NamedTuple):
    """All rows of some documents, side by side, and where each document begins among them."""

    rows: Rows
    starts: Rows


# A search has one filter, and one more where what is recent is asked for by itself.
KEPT_FILTERS = 4

# One record for each row that was ever given, also for those that hold no chunk any more.
_ROW = np.dtype(
    [
        ("start_line", np.int32),
        ("end_line", np.int32),
        ("headings", np.int32),
        ("at", np.int64),
        ("size", np.int64),
        ("digest", "S32"),
    ]
)


class Catalog:
    """Documents have slots, chunks have rows.

    Rows are never used twice within one life of the catalog.

    A chunk is made when it is asked for: thousands of them as objects would cost seconds to load
    and be mostly idle.
    """

    def __init__(self) -> None:
        self.stamps: dict[str, tuple[str, str]] = {}
        self._documents: dict[str, Document] = {}
        self._by_path: dict[str, str] = {}
        self._slots: dict[str, int] = {}
        self._ids: list[str] = []
        # The same cards by slot: a search looks up dozens of them by row.
        self._cards: dict[int, Document] = {}
        self._rows: dict[str, range] = {}
        # Apart from the rest, because every filter walks over them.
        self._alive = Column(np.bool_, blank=False)
        self._slot_of = Column(np.int32, 0)
        self._table = Column(_ROW, np.zeros((), dtype=_ROW))
        # Texts that came with a snapshot, one after the other, and those that came since.
        self._stored = memoryview(b"")
        self._stored_table: Buffer = b""
        self._reads = 0
        self._fresh: dict[int, str] = {}
        self._headings: list[tuple[str, ...]] = []
        # Made when something is added.
        self._heading_numbers: dict[tuple[str, ...], int] = {}
        self._created = Column(np.float64, np.nan)
        self._expires = Column(np.float64, np.inf)
        self._importance = Column(np.float64, UNSAID_IMPORTANCE)
        self._confidence = Column(np.float64, UNSAID_CONFIDENCE)
        self._words: dict[tuple[str, str], set[int]] = defaultdict(set)
        # What passes the filters that were asked for last: a search asks several times.
        self._passing: dict[Filter, Mask] = {}
        self._lone: float | None = None

    @property
    def alive(self) -> Mask:
        """Tell for each row whether it holds a chunk."""
        return self._alive.values

    def __len__(self) -> int:
        return len(self._documents)

    def add(self, entry: IndexedDocument) -> range:
        """Add a document that is not there and return the rows of its chunks."""
        self._changed()
        slot = self._place(entry.document, entry.stamp)
        first = len(self._table.values)
        records = []
        for row, chunk in enumerate(entry.chunks, start=first):
            number = self._number(chunk.headings)
            digest = chunk.digest.encode()
            records.append((chunk.start_line, chunk.end_line, number, 0, 0, digest))
            self._fresh[row] = chunk.text
        count = len(records)
        self._table.extend(np.array(records, dtype=_ROW))
        self._alive.extend(np.ones(count, dtype=np.bool_))
        self._slot_of.extend(np.full(count, slot, dtype=np.int32))
        self._rows[entry.document.id] = range(first, first + count)
        return self._rows[entry.document.id]

    def rows_at(self, paths: Iterable[str]) -> list[int]:
        """Return the rows of the documents at these paths."""
        rows: list[int] = []
        for path in dict.fromkeys(paths):
            rows += self.rows(self._by_path.get(path, ""))
        return rows

    def remove(self, path: str) -> str | None:
        """Drop the document at this path, if there is one, and return its id."""
        doc_id = self._by_path.pop(path, None)
        if doc_id is None:
            return None
        self.stamps.pop(path, None)
        self._changed()
        slot = self._slots[doc_id]
        document = self._documents.pop(doc_id)
        del self._cards[slot]
        for word in _words(document):
            self._words[word].discard(slot)
        rows = self._rows.pop(doc_id)
        self._alive.values[rows.start : rows.stop] = False
        for row in rows:
            self._fresh.pop(row, None)
        return doc_id

    def _changed(self) -> None:
        self._passing.clear()
        self._lone = None

    def restamp(self, path: str, stamp: str) -> None:
        """Remember that the source was looked at and is the same."""
        self.stamps[path] = (stamp, self.stamps[path][1])

    def document(self, doc_id: str) -> Document | None:
        """Return one card, if there is such a document."""
        return self._documents.get(doc_id)

    def at_path(self, path: str) -> Document | None:
        """Return the card of the document at a path, if there is one."""
        return self._documents.get(self._by_path.get(path, ""))

    def documents(self, slots: Mask | None = None) -> list[Document]:
        """List cards in the order of their paths, or those of the slots in the mask."""
        chosen = list(self._documents.values())
        if slots is not None:
            chosen = [self._cards[slot] for slot in self._living(slots)]
        return sorted(chosen, key=lambda document: document.path)

    def count(self, slots: Mask) -> int:
        """Count the documents of the slots in the mask."""
        return len(self._living(slots))

    def _living(self, slots: Mask) -> list[int]:
        """Return the slots in the mask that have a document."""
        return [slot for slot in np.flatnonzero(slots).tolist() if slot in self._cards]

    def rows(self, doc_id: str) -> range:
        """Return the rows of one document's chunks, in order."""
        return self._rows.get(doc_id, range(0))

    def siblings(self, rows: Rows) -> Siblings:
        """Return all rows of the documents that have these."""
        slots = self._slot_of.values
        # Rows of the dead name the first slot, which there may not be.
        chosen = np.zeros(max(1, len(self._ids)), dtype=np.bool_)
        chosen[slots[rows]] = True
        # The rows of a document follow one another.
        every = np.flatnonzero(chosen[slots] & self.alive)
        owners = slots[every]
        is_first = np.ones(len(owners), dtype=np.bool_)
        is_first[1:] = owners[1:] != owners[:-1]
        return Siblings(every, np.flatnonzero(is_first))

    def lone_share(self) -> float:
        """Return the share of documents with a single passage."""
        if self._lone is not None:
            return self._lone
        sizes = np.bincount(self._slot_of.values[self.alive])
        lone = int(np.count_nonzero(sizes == 1))
        every = int(np.count_nonzero(sizes))
        self._lone = lone / max(1, every)
        return self._lone

    def best_first(self, rows: Rows, scores: Floats) -> Rows:
        """Return the permutation that puts the highest scores first, equal ones by path and row.

        The rows of a document are in the order of its text.
        """
        order: Rows = np.argsort(-scores)
        ordered = scores[order]
        if not (ordered[1:] == ordered[:-1]).any():
            return order
        # Two stable sorts: by path, which keeps the order of rows, and then by score.
        paths = [document.path for document in self.owners(rows)]
        by_path = sorted(np.argsort(rows).tolist(), key=paths.__getitem__)
        order = np.array(by_path, dtype=np.int64)
        return order[np.argsort(-scores[order], kind="stable")]

    def owner(self, row: int) -> Document:
        """Return the card of the document that has a row."""
        return self._cards[int(self._slot_of.values[row])]

    def owners(self, rows: Sequence[int] | Rows) -> list[Document]:
        """Return the cards of the documents that have these rows."""
        slots = self._slot_of.values[np.asarray(rows, dtype=np.int64)].tolist()
        return [self._cards[slot] for slot in slots]

    def digests(self, rows: Sequence[int]) -> list[str]:
        """Return the digests of these rows."""
        found: list[bytes] = self._table.values["digest"][np.asarray(rows, dtype=np.int64)].tolist()
        return [digest.decode() for digest in found]

    def chunk(self, row: int) -> tuple[Document, Chunk]:
        """Return the chunk of a row and the card of its document."""
        document = self.owner(row)
        number = row - self._rows[document.id].start
        return document, self._chunk(document.id, number, row, self._table.values[row].item())

    def beginning(self, doc_id: str, room: int) -> list[Chunk]:
        """Return the first chunk of a document, and more up to so many characters."""
        rows = self.rows(doc_id)
        chunks: list[Chunk] = []
        size = 0
        for first in range(0, len(rows), PORTION):
            portion = rows[first : first + PORTION]
            # Single rows of a table cost more than all of a portion.
            cells = self._table.values[portion.start : portion.stop].tolist()
            for row, values in zip(portion, cells, strict=True):
                if size > room or (chunks and not room):
                    return chunks
                chunks.append(self._chunk(doc_id, len(chunks), row, values))
                size += len(chunks[-1].text)
        return chunks

    def _chunk(self, doc_id: str, number: int, row: int, values: tuple[Any, ...]) -> Chunk:
        start, end, headings, at, size, digest = values
        text = self._fresh.get(row)
        if text is None:
            text = str(self._stored[at : at + size], "utf-8", "surrogatepass")
        chunk_id = f"{doc_id}#{number}"
        names = self._headings[headings]
        return Chunk(chunk_id, doc_id, names, text, start, end, digest.decode())

    def rest(self) -> None:
        """Let go of what was read of mapped texts and of their table, now and then."""
        self._reads = (self._reads + 1) % READS_BEFORE_REST
        if self._reads == 0:
            fsio.release(self._stored)
            fsio.release(self._stored_table)

    def slots(self, where: Filter, linked: Iterable[str] | None = None) -> Mask:
        """Tell for each document slot whether it passes.

        `linked` are the ids that satisfy `where.linked_to`.
        """
        # Others may put filters there and forget them meanwhile.
        known = self._passing.get(where)
        if linked is None and known is not None:
            return known
        slots = self._filtered(where, linked)
        if linked is None:
            if len(self._passing) >= KEPT_FILTERS:
                self._passing.clear()
            self._passing[where] = slots
        return slots

    def _filtered(self, where: Filter, linked: Iterable[str] | None) -> Mask:
        mask = np.ones(len(self._ids), dtype=np.bool_)
        for field, words in (
            ("kind", where.kinds),
            ("tag", where.tags),
            ("status", where.statuses),
        ):
            if words:
                mask &= self._having(field, words)
        if where.hidden:
            mask &= ~self._having("status", where.hidden)
        if linked is not None:
            mask &= self._slots_of(linked)
        if where.prefix:
            below = []
            for path, doc_id in self._by_path.items():
                if path.startswith(where.prefix):
                    below.append(doc_id)
            mask &= self._slots_of(below)
        if where.without:
            left_out = [self._by_path[path] for path in where.without if path in self._by_path]
            mask &= ~self._slots_of(left_out)
        if where.alive_at:
            mask &= self._expires.values > where.alive_at.timestamp()
        return mask & self._in_range(where)

    def _in_range(self, where: Filter) -> Mask:
        """Choose the slots whose importance, confidence and time of creation are asked for."""
        mask = np.ones(len(self._ids), dtype=np.bool_)
        if where.min_importance:
            mask &= self._importance.values >= where.min_importance
        if where.min_confidence:
            mask &= self._confidence.values >= where.min_confidence
        if where.since:
            mask &= self._created.values >= where.since.timestamp()
        if where.until:
            mask &= self._created.values <= where.until.timestamp()
        return mask

    def _slots_of(self, doc_ids: Iterable[str]) -> Mask:
        """Choose the slots of the documents that are known."""
        slots = {self._slots[doc_id] for doc_id in doc_ids if doc_id in self._slots}
        return _chosen(len(self._ids), slots)

    def passes(self, doc_id: str, slots: Mask) -> bool:
        """Tell whether a document is here and chosen."""
        return doc_id in self._documents and bool(slots[self._slots[doc_id]])

    def mask(self, slots: Mask) -> Mask:
        """Tell for each row whether it holds a chunk of a chosen document."""
        if slots.all():
            return self.alive
        chosen: Mask = self.alive & slots[self._slot_of.values]
        return chosen

    def dump(self) -> tuple[dict[str, Any], bytes, list[Buffer]]:
        """Return the cards without the links, which the graph keeps; the table; and the texts.

        Cards are made ready for JSON as they are read, and the texts come in pieces.
        """
        table = np.zeros_like(self._table.values)
        table[self.alive] = self._table.values[self.alive]
        used, table["headings"][self.alive] = np.unique(
            table["headings"][self.alive], return_inverse=True
        )
        texts = self._place_stored(table)
        texts += self._place_fresh(table, sum(map(len, texts)))
        placed = []
        for document in self.documents():
            placed.append((document, self.stamps[document.path][0], self._rows[document.id]))
        headings = [self._headings[number] for number in used.tolist()]
        return {"documents": every_card(placed), "headings": headings}, table.tobytes(), texts

    def _place_stored(self, table: npt.NDArray[Any]) -> list[Buffer]:
        """Give the texts of the last snapshot their places in the next, and return them.

        What is left of it goes there as it lies, in as few pieces as there are gaps.
        """
        is_stored = self.alive.copy()
        is_stored[np.fromiter(self._fresh, dtype=np.int64)] = False
        rows = np.flatnonzero(is_stored)
        rows = rows[np.argsort(table["at"][rows], kind="stable")]
        begins = table["at"][rows]
        sizes = table["size"][rows]
        ends = begins + sizes
        table["at"][rows] = np.cumsum(sizes) - sizes
        is_after_gap = np.ones(len(rows), dtype=np.bool_)
        is_after_gap[1:] = begins[1:] != ends[:-1]
        firsts = np.flatnonzero(is_after_gap)
        lasts = np.append(firsts[1:], len(rows)) - 1
        spans = zip(begins[firsts].tolist(), ends[lasts[: len(firsts)]].tolist(), strict=True)
        return [self._stored[begin:end] for begin, end in spans]

    def _place_fresh(self, table: npt.NDArray[Any], at: int) -> list[Buffer]:
        """Give the texts that came since the last snapshot their places from `at` on."""
        rows = np.fromiter(self._fresh, dtype=np.int64)
        texts: list[Buffer] = []
        sizes: list[int] = []
        for start in range(0, len(rows), TEXTS_IN_A_PIECE):
            portion = []
            for row in rows[start : start + TEXTS_IN_A_PIECE].tolist():
                portion.append(_encoded(self._fresh[row]))
            sizes += map(len, portion)
            texts.append(b"".join(portion))
            give_way()
        table["size"][rows] = sizes
        table["at"][rows] = at + np.cumsum(sizes, dtype=np.int64) - sizes
        return texts

    @classmethod
    def restore(
        cls,
        cards: Iterable[Mapping[str, Any]],
        table: Buffer,
        texts: Buffer,
        links: Callable[[str], tuple[Link, ...]],
    ) -> Catalog:
        """Rebuild a catalog from the cards, table and texts of a dump, and the links of each id.

        The headings come with `name_headings`.
        """
        catalog = cls()
        rows = np.frombuffer(table, dtype=_ROW)
        if len(rows) and (
            int((rows["at"] + rows["size"]).max()) > len(texts) or int(rows["at"].min()) < 0
        ):
            raise ValueError("the stored passages do not fit their table")
        # The keyword index still names rows of the dead: the table reaches as far as rows were ever
        # given.
        catalog._table = Column.over(rows, np.zeros((), dtype=_ROW))
        catalog._stored = memoryview(texts)
        catalog._stored_table = table
        catalog._alive = Column.of(np.zeros(len(rows), dtype=np.bool_), blank=False)
        catalog._slot_of = Column.of(np.zeros(len(rows), dtype=np.int32), 0)
        slot_of = catalog._slot_of.values
        alive = catalog._alive.values
        for card in cards:
            document = document_of(card, links(card["id"]))
            first, end = card["rows"]
            slot_of[first:end] = catalog._register(document, card["stamp"])
            alive[first:end] = True
            catalog._rows[document.id] = range(first, end)
        catalog._fill_columns()
        return catalog

    def name_headings(self, headings: Iterable[Sequence[str]]) -> None:
        """Take over the headings that the table of a snapshot has the numbers of."""
        self._headings = [tuple(steps) for steps in headings]

    def compacted(self) -> tuple[Catalog, Rows]:
        """Return a catalog without the rows and slots of the dead.

        And the new row of each row, -1 for the dead.
        """
        alive = self.alive
        count = int(np.count_nonzero(alive))
        moved = np.full(len(alive), -1, dtype=np.int64)
        moved[alive] = np.arange(count)
        new = Catalog()
        new._table = Column.of(self._table.values[alive], np.zeros((), dtype=_ROW))
        new._alive = Column.of(np.ones(count, dtype=np.bool_), blank=False)
        new._slot_of = Column.of(np.zeros(count, dtype=np.int32), 0)
        new._stored = self._stored
        new._fresh = {int(moved[row]): text for row, text in self._fresh.items()}
        used, new._table.values["headings"] = np.unique(
            new._table.values["headings"], return_inverse=True
        )
        for number in used.tolist():
            new._number(self._headings[number])
        for doc_id, rows in self._rows.items():
            document = self._documents[doc_id]
            first = 0
            if rows:
                first = int(moved[rows.start])
            new._rows[doc_id] = range(first, first + len(rows))
            new._slot_of.values[first : first + len(rows)] = new._register(
                document, self.stamps[document.path][0]
            )
        new._fill_columns()
        return new, moved

    def _place(self, document: Document, stamp: str) -> int:
        """Give a document a slot, or its old one back, with what filters compare."""
        slot = self._register(document, stamp)
        self._created[slot] = _seconds(document.created_at, np.nan)
        self._expires[slot] = _seconds(document.expires_at, np.inf)
        self._importance[slot] = _said(document.importance, UNSAID_IMPORTANCE)
        self._confidence[slot] = _said(document.confidence, UNSAID_CONFIDENCE)
        return slot

    def _fill_columns(self) -> None:
        """Set what filters compare for all slots at once; each has a document."""
        created = []
        expires = []
        importance = []
        confidence = []
        for document in self._cards.values():
            created.append(_seconds(document.created_at, np.nan))
            expires.append(_seconds(document.expires_at, np.inf))
            importance.append(_said(document.importance, UNSAID_IMPORTANCE))
            confidence.append(_said(document.confidence, UNSAID_CONFIDENCE))
        self._created.extend(np.array(created))
        self._expires.extend(np.array(expires))
        self._importance.extend(np.array(importance))
        self._confidence.extend(np.array(confidence))

    def _register(self, document: Document, stamp: str) -> int:
        slot = self._slots.get(document.id)
        if slot is None:
            slot = self._slots[document.id] = len(self._ids)
            self._ids.append(document.id)
        self._documents[document.id] = document
        self._cards[slot] = document
        self._by_path[document.path] = document.id
        self.stamps[document.path] = (stamp, document.version)
        for word in _words(document):
            self._words[word].add(slot)
        return slot

    def _number(self, headings: tuple[str, ...]) -> int:
        if len(self._heading_numbers) < len(self._headings):
            self._heading_numbers = {known: number for number, known in enumerate(self._headings)}
        number = self._heading_numbers.setdefault(headings, len(self._headings))
        if number == len(self._headings):
            self._headings.append(headings)
        return number

    def _having(self, field: str, words: Iterable[str]) -> Mask:
        slots: set[int] = set()
        for word in words:
            slots |= self._words.get((field, word.casefold()), set())
        return _chosen(len(self._ids), slots)


def _seconds(moment: datetime | None, unsaid: float) -> float:
    if moment is None:
        return unsaid
    return moment.timestamp()


def _said(value: float | None, unsaid: float) -> float:
    if value is None:
        return unsaid
    return value


def _encoded(text: str) -> bytes:
    # A file name need not be text: half characters stand for its other bytes.
    return text.encode("utf-8", "surrogatepass")


def _chosen(length: int, slots: set[int]) -> Mask:
    mask = np.zeros(length, dtype=np.bool_)
    mask[np.fromiter(slots, dtype=np.int64, count=len(slots))] = True
    return mask


def _words(document: Document) -> list[tuple[str, str]]:
    words = [("kind", document.kind.casefold()), ("status", document.status.casefold())]
    for tag in document.tags:
        words.append(("tag", tag.casefold()))
    return words
