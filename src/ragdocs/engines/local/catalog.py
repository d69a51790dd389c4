"""The cards of all documents, the rows of their passages, and what filters are answered from.

Listing needs no numpy, whose import costs a command more than all the rest of such an answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import compress
from math import inf
from typing import TYPE_CHECKING, Any

from ragdocs.engines.local.cards import document_of
from ragdocs.engines.local.passages import Buffer, Passages
from ragdocs.engines.local.ranges import Ranges
from ragdocs.types import (
    UNSAID_CONFIDENCE,
    UNSAID_IMPORTANCE,
    Chunk,
    Document,
    Filter,
    IndexedDocument,
    Link,
)

if TYPE_CHECKING:
    from ragdocs.engines.local.rows import RowArrays, Rows

# A document with its stamp and the rows of its passages.
DocumentRows = tuple[Document, str, range]
# For each slot, whether its document is chosen; there is one in each that is.
Slots = bytes

# A search has one filter, and one more where what is recent is asked for by itself.
KEPT_FILTERS = 4


class Catalog:
    """Documents have slots, passages have rows.

    Rows are never used twice within one life of the catalog.
    """

    def __init__(self, passages: Passages | None = None) -> None:
        self.passages = passages or Passages()
        self.stamps: dict[str, tuple[str, str]] = {}
        self._documents: dict[str, Document] = {}
        self._by_path: dict[str, str] = {}
        self._slots: dict[str, int] = {}
        self._ids: list[str] = []
        # For each slot, whether there is a document in it.
        self._living = bytearray()
        # The same cards by slot: a search looks up dozens of them by row.
        self._cards: dict[int, Document] = {}
        self._rows: dict[str, range] = {}
        self._count = 0
        self._arrays: RowArrays | None = None
        # The slots in the order of what ranges are asked for by, made when first asked for.
        self._ranges: dict[str, Ranges] = {}
        self._words: dict[tuple[str, str], set[int]] = defaultdict(set)
        # What passes the filters that were asked for last: a search asks several times.
        self._passing: dict[Filter, Slots] = {}

    @classmethod
    def of(cls, documents: Iterable[DocumentRows], passages: Passages) -> Catalog:
        """Return a catalog of documents whose passages have their rows already."""
        catalog = cls(passages)
        for document, stamp, rows in documents:
            catalog._register(document, stamp)
            catalog._rows[document.id] = rows
            catalog._count += len(rows)
        return catalog

    @classmethod
    def restore(
        cls,
        cards: Iterable[Mapping[str, Any]],
        records: Buffer,
        texts: Buffer,
        links: Callable[[str], tuple[Link, ...]],
    ) -> Catalog:
        """Rebuild a catalog from the cards, table and texts of a dump, and the links of each id.

        The headings come with `Passages.name_headings`.
        """

        def stored() -> Iterator[DocumentRows]:
            for card in cards:
                yield document_of(card, links(card["id"])), card["stamp"], range(*card["rows"])

        return cls.of(stored(), Passages(records, texts))

    @property
    def arrays(self) -> RowArrays:
        """What a search asks of all rows at once."""
        # Searches share a lock, so several may make the same.
        if self._arrays is None:
            from ragdocs.engines.local.rows import RowArrays

            slot_rows = []
            for doc_id, rows in self._rows.items():
                slot_rows.append((self._slots[doc_id], rows))
            self._arrays = RowArrays(len(self.passages), slot_rows)
        return self._arrays

    @property
    def passage_count(self) -> int:
        """The number of passages, without those of the dead."""
        return self._count

    def __len__(self) -> int:
        return len(self._documents)

    def add(self, entry: IndexedDocument) -> range:
        """Add a document that is not there and return the rows of its chunks."""
        self._passing.clear()
        slot = self._register(entry.document, entry.stamp)
        rows = self.passages.add(entry.chunks)
        self._rows[entry.document.id] = rows
        self._count += len(rows)
        if self._arrays is not None:
            self._arrays.add(slot, rows)
        return rows

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
        self._passing.clear()
        slot = self._slots[doc_id]
        document = self._documents.pop(doc_id)
        del self._cards[slot]
        self._living[slot] = False
        for word in _words(document):
            self._words[word].discard(slot)
        for name, ranges in self._ranges.items():
            ranges.remove(_NUMBERS[name](document), slot)
        rows = self._rows.pop(doc_id)
        self._count -= len(rows)
        self.passages.drop(rows)
        if self._arrays is not None:
            self._arrays.remove(rows)
        return doc_id

    def restamp(self, path: str, stamp: str) -> None:
        """Remember that the source was looked at and is the same."""
        self.stamps[path] = (stamp, self.stamps[path][1])

    def document(self, doc_id: str) -> Document | None:
        """Return one card, if there is such a document."""
        return self._documents.get(doc_id)

    def at_path(self, path: str) -> Document | None:
        """Return the card of the document at a path, if there is one."""
        return self._documents.get(self._by_path.get(path, ""))

    def documents(self, slots: Slots | None = None) -> list[Document]:
        """List cards in the order of their paths, or those of chosen slots."""
        chosen = list(self._documents.values())
        if slots is not None:
            chosen = list(map(self._documents.__getitem__, compress(self._ids, slots)))
        return sorted(chosen, key=lambda document: document.path)

    def document_rows(self) -> Iterator[DocumentRows]:
        """Yield all documents in the order of their paths, with their stamps and rows."""
        for document in self.documents():
            yield document, self.stamps[document.path][0], self._rows[document.id]

    def count(self, slots: Slots) -> int:
        """Count the documents of chosen slots."""
        return slots.count(True)

    def rows(self, doc_id: str) -> range:
        """Return the rows of one document's chunks, in order."""
        return self._rows.get(doc_id, range(0))

    def every_row(self) -> list[int]:
        """List the rows that hold a passage, in order."""
        all_rows: list[int] = []
        for rows in sorted(self._rows.values(), key=lambda rows: rows.start):
            all_rows.extend(rows)
        return all_rows

    def families(self, rows: Rows) -> list[range]:
        """Return all rows of each of the documents that have these, in order."""
        slots = set(self.arrays.slots_at(rows))
        families = [self.rows(self._ids[slot]) for slot in slots]
        return sorted(families, key=lambda family: family.start)

    def owner(self, row: int) -> Document:
        """Return the card of the document that has a row."""
        return self.owners([row])[0]

    def owners(self, rows: Sequence[int] | Rows) -> list[Document]:
        """Return the cards of the documents that have these rows."""
        return [self._cards[slot] for slot in self.arrays.slots_at(rows)]

    def chunk(self, row: int) -> tuple[Document, Chunk]:
        """Return the chunk of a row and the card of its document."""
        document = self.owner(row)
        number = row - self._rows[document.id].start
        return document, self.passages.get(document.id, number, row)

    def beginning(self, doc_id: str, room: int) -> list[Chunk]:
        """Return the first chunk of a document, and more up to so many characters."""
        return self.passages.beginning(doc_id, self.rows(doc_id), room)

    def slots(self, where: Filter, linked: Iterable[str] | None = None) -> Slots:
        """Tell for each document slot whether it passes.

        `linked` are the ids that satisfy `where.linked_to`.
        """
        # Others may put filters there and forget them meanwhile.
        passing = self._passing.get(where)
        if linked is None and passing is not None:
            return passing
        slots = bytes(self._filtered(where, linked))
        if linked is None:
            if len(self._passing) >= KEPT_FILTERS:
                self._passing.clear()
            self._passing[where] = slots
        return slots

    def _filtered(self, where: Filter, linked: Iterable[str] | None) -> bytearray:
        passing = bytearray(self._living)
        for field, words in (
            ("kind", where.kinds),
            ("tag", where.tags),
            ("status", where.statuses),
        ):
            if words:
                passing = _among(passing, self._having(field, words))
        if where.hidden:
            _drop(passing, self._having("status", where.hidden))
        if linked is not None:
            passing = _among(passing, self._slots_of(linked))
        if where.prefix:
            below = []
            for path, doc_id in self._by_path.items():
                if path.startswith(where.prefix):
                    below.append(doc_id)
            passing = _among(passing, self._slots_of(below))
        if where.without:
            left_out = [self._by_path[path] for path in where.without if path in self._by_path]
            _drop(passing, self._slots_of(left_out))
        if where.alive_at:
            expired = self._ranked("expires").within(-inf, where.alive_at.timestamp())
            passing = _without(passing, expired)
        return self._in_range(passing, where)

    def _in_range(self, passing: bytearray, where: Filter) -> bytearray:
        """Keep the slots whose importance, confidence and time of creation are asked for."""
        if where.min_importance:
            passing = _both(passing, self._ranked("importance").within(where.min_importance))
        if where.min_confidence:
            passing = _both(passing, self._ranked("confidence").within(where.min_confidence))
        if where.since:
            passing = _both(passing, self._ranked("created").within(where.since.timestamp()))
        if where.until:
            passing = _both(passing, self._ranked("created").within(-inf, where.until.timestamp()))
        return passing

    def _ranked(self, name: str) -> Ranges:
        """Return the slots in the order of the number of this name."""
        # Searches share a lock, so several may make the same.
        ranges = self._ranges.get(name)
        if ranges is None:
            number = _NUMBERS[name]
            numbers = ((number(document), slot) for slot, document in self._cards.items())
            ranges = Ranges(len(self._ids), numbers)
            self._ranges[name] = ranges
        return ranges

    def _slots_of(self, doc_ids: Iterable[str]) -> set[int]:
        """Return the slots of the documents that are known."""
        return {self._slots[doc_id] for doc_id in doc_ids if doc_id in self._slots}

    def passes(self, doc_id: str, slots: Slots) -> bool:
        """Tell whether a document is here and chosen."""
        return doc_id in self._documents and bool(slots[self._slots[doc_id]])

    def _register(self, document: Document, stamp: str) -> int:
        """Give a document a slot, or its old one back, with what filters compare."""
        slot = self._slots.get(document.id)
        if slot is None:
            slot = self._slots[document.id] = len(self._ids)
            self._ids.append(document.id)
            self._living.append(True)
        for name, ranges in self._ranges.items():
            ranges.add(_NUMBERS[name](document), slot)
        self._documents[document.id] = document
        self._cards[slot] = document
        self._living[slot] = True
        self._by_path[document.path] = document.id
        self.stamps[document.path] = (stamp, document.version)
        for word in _words(document):
            self._words[word].add(slot)
        return slot

    def _having(self, field: str, words: Sequence[str]) -> set[int]:
        """Return the slots that have one of these words; the set is not to be changed."""
        having = [self._words.get((field, word.casefold()), set()) for word in words]
        if len(having) == 1:
            return having[0]
        return set().union(*having)


def _created(document: Document) -> float | None:
    # Without a date, it is neither before nor after anything.
    return _timestamp(document.created_at)


def _expires(document: Document) -> float | None:
    return _timestamp(document.expires_at)


def _timestamp(moment: datetime | None) -> float | None:
    if moment is None:
        return None
    return moment.timestamp()


def _importance(document: Document) -> float:
    return _or_default(document.importance, UNSAID_IMPORTANCE)


def _confidence(document: Document) -> float:
    return _or_default(document.confidence, UNSAID_CONFIDENCE)


def _or_default(value: float | None, default: float) -> float:
    if value is None:
        return default
    return value


_NUMBERS: dict[str, Callable[[Document], float | None]] = {
    "created": _created,
    "expires": _expires,
    "importance": _importance,
    "confidence": _confidence,
}


def _among(passing: bytearray, slots: Iterable[int]) -> bytearray:
    """Return what passes and is among these slots."""
    among = bytearray(len(passing))
    for slot in slots:
        among[slot] = passing[slot]
    return among


def _both(passing: bytearray, others: bytearray) -> bytearray:
    """Return what is in both; as whole numbers, because bytes know no `and`."""
    both = int.from_bytes(passing, "little") & int.from_bytes(others, "little")
    return bytearray(both.to_bytes(len(passing), "little"))


def _without(passing: bytearray, others: bytearray) -> bytearray:
    """Return what passes and is not in the others."""
    own = int.from_bytes(passing, "little")
    rest = own & ~int.from_bytes(others, "little")
    return bytearray(rest.to_bytes(len(passing), "little"))


def _drop(passing: bytearray, slots: Iterable[int]) -> None:
    for slot in slots:
        passing[slot] = 0


def _words(document: Document) -> list[tuple[str, str]]:
    words = [("kind", document.kind.casefold()), ("status", document.status.casefold())]
    for tag in document.tags:
        words.append(("tag", tag.casefold()))
    return words
