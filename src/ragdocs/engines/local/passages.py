"""The passages of an index by row: their texts, lines and headings, read where they lie.

Single passages are read without numpy, whose import costs a command that lists memories more than
all the rest of its work.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Any

from ragdocs.system import files as fsio
from ragdocs.types import Chunk

Buffer = bytes | memoryview

# One record for each row that was ever given, also for those that hold no passage any more: first
# and last line, number of the headings, begin and size of the text, digest.
RECORD = Struct("=iiiqq32s")
_SPAN = Struct("=12xqq32x")

# Reads of mapped texts before their pages are given back. Pages that are needed again soon cost a
# search a twentieth of its time: one reads its hits and then the texts around them.
READS_BEFORE_REST = 2
PORTION = 32


class Passages:
    """Rows of passages, never used twice within one life of the index.

    A passage is made when it is asked for: thousands of them as objects would cost seconds to load
    and be mostly idle.
    """

    def __init__(self, records: Buffer = b"", texts: Buffer = b"") -> None:
        """Take over the records and texts of a snapshot, which stay where they lie."""
        _check(records, texts)
        self.stored_records = records
        self.stored_texts = memoryview(texts)
        self._stored_rows = len(records) // RECORD.size
        # What came since: records behind the stored ones, and texts by row.
        self.fresh_records = bytearray()
        self.fresh_texts: dict[int, str] = {}
        self.headings: list[tuple[str, ...]] = []
        # Made when something is added.
        self._heading_numbers: dict[tuple[str, ...], int] = {}
        self._reads = 0

    def __len__(self) -> int:
        """Count the rows that were ever given."""
        return self._stored_rows + len(self.fresh_records) // RECORD.size

    def add(self, chunks: Iterable[Chunk]) -> range:
        """Add the passages of a document and return their rows."""
        first = len(self)
        row = first
        for chunk in chunks:
            number = self.number(chunk.headings)
            digest = chunk.digest.encode()
            self.fresh_records += RECORD.pack(
                chunk.start_line, chunk.end_line, number, 0, 0, digest
            )
            self.fresh_texts[row] = chunk.text
            row += 1
        return range(first, row)

    def drop(self, rows: Iterable[int]) -> None:
        """Let go of what is in memory of these rows."""
        for row in rows:
            self.fresh_texts.pop(row, None)

    def get(self, document_id: str, number: int, row: int) -> Chunk:
        """Return the passage of a row, which has this number in its document."""
        start, end, headings, at, size, digest = self._record(row)
        text = self.fresh_texts.get(row)
        if text is None:
            text = str(self.stored_texts[at : at + size], "utf-8", "surrogatepass")
        passage_id = f"{document_id}#{number}"
        steps = self.headings[headings]
        return Chunk(passage_id, document_id, steps, text, start, end, _digest(digest))

    def beginning(self, document_id: str, rows: range, room: int) -> list[Chunk]:
        """Return the first of the rows of a document, and more up to so many characters."""
        passages: list[Chunk] = []
        size = 0
        for row in rows:
            if size > room or (passages and not room):
                break
            passages.append(self.get(document_id, len(passages), row))
            size += len(passages[-1].text)
        return passages

    def digests(self, rows: Iterable[int]) -> list[str]:
        """Return the digests of these rows."""
        return [_digest(self._record(row)[-1]) for row in rows]

    def rest(self) -> None:
        """Let go of what was read of mapped texts and of their table, now and then."""
        self._reads = (self._reads + 1) % READS_BEFORE_REST
        if self._reads == 0:
            fsio.release(self.stored_texts)
            fsio.release(self.stored_records)

    def name_headings(self, headings: Iterable[Sequence[str]]) -> None:
        """Take over the headings that the records of a snapshot have the numbers of."""
        self.headings = [tuple(steps) for steps in headings]

    def number(self, headings: tuple[str, ...]) -> int:
        """Return the number of headings, which get one if they have none."""
        if len(self._heading_numbers) < len(self.headings):
            self._heading_numbers = {
                headings: number for number, headings in enumerate(self.headings)
            }
        number = self._heading_numbers.setdefault(headings, len(self.headings))
        if number == len(self.headings):
            self.headings.append(headings)
        return number

    def _record(self, row: int) -> tuple[Any, ...]:
        if row < self._stored_rows:
            return RECORD.unpack_from(self.stored_records, row * RECORD.size)
        return RECORD.unpack_from(self.fresh_records, (row - self._stored_rows) * RECORD.size)


def _check(records: Buffer, texts: Buffer) -> None:
    """Refuse records that are cut, or that name spans outside the texts."""
    end = len(texts)
    is_outside = len(records) % RECORD.size > 0
    if not is_outside:
        for at, size in _SPAN.iter_unpack(records):
            if at < 0 or at + size > end:
                is_outside = True
    if is_outside:
        raise ValueError("the stored passages do not fit their table")


def _digest(stored: bytes) -> str:
    return stored.rstrip(b"\0").decode()
