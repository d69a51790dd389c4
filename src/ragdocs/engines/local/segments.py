"""Whoosh's files, held in memory and read without copies.

And its segments: their columns, and their words in a form that is searched.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pickle import PickleError
from typing import Any

import numpy as np
import numpy.typing as npt
from whoosh import fields
from whoosh.analysis import IDAnalyzer
from whoosh.codec.whoosh3 import LENGTHS_COLUMN, _lenfield
from whoosh.filedb.filestore import RamStorage
from whoosh.filedb.filetables import FileFormatError
from whoosh.filedb.structfile import BufferFile
from whoosh.index import IndexError as WhooshError
from whoosh.reading import SegmentReader

from ragdocs.engines.local.inversion import invert, merge
from ragdocs.engines.local.whoosh_files import LENGTHS, ROW, Codec, NewSegment, fill
from ragdocs.engines.local.words import FIELDS, Bytes, Words, every_posting
from ragdocs.search.fields import FieldTerms
from ragdocs.system import files as fsio

Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]
Buffer = bytes | memoryview

# Whoosh would put postings beyond its limit into a temporary file that a storage in memory does not
# keep.
UNLIMITED = 1 << 20
PEEKED = 256
# More segments than this are merged when there is time.
MOST_SEGMENTS = 12
SIZE_CLASS = 8
# Merging takes about a tenth of a millisecond a row, during which nobody can search: a few rows at
# any time, many only when there is much to gain, and never most of a large index.
FEW_MERGED = 5_000
MOST_MERGED = 40_000
# What lies beside the files of a Whoosh segment: its words as they are searched.
WORDS = ".words"


class _Cursor:
    """Reads a piece of memory from where it stands, as a file does."""

    def __init__(self, view: memoryview) -> None:
        self._view = view
        self._at = 0

    def read(self, size: int = -1) -> bytes:
        rest = self._view[self._at :]
        if size >= 0:
            rest = rest[:size]
        piece = bytes(rest)
        self._at += len(piece)
        return piece

    def readline(self) -> bytes:
        end = bytes(self._view[self._at :]).find(b"\n")
        if end < 0:
            return self.read()
        return self.read(end + 1)

    def peek(self, _: int = 0) -> bytes:
        """Show what comes next: pickle would read byte after byte without it.

        Whoosh's headers are short.
        """
        return bytes(self._view[self._at : self._at + PEEKED])

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + (0, self._at, len(self._view))[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        """Do nothing: the memory belongs to somebody else."""


class _View(BufferFile):  # type: ignore[misc] # whoosh has no types
    """A file over memory that is not copied.

    Whoosh's own copies it whole at every opening, and again for each part.
    """

    def __init__(self, buf: memoryview, name: str | None = None) -> None:
        self._buf = buf
        self._name = name
        self.file = _Cursor(buf)
        self.onclose = None
        self.is_real = self.is_closed = False

    def subset(self, position: int, length: int, name: str | None = None) -> _View:
        return _View(self._buf[position : position + length], name)


class _Memory(RamStorage):  # type: ignore[misc] # whoosh has no types
    """Whoosh files in memory.

    RamStorage itself keeps its work files under a fixed name in the temporary directory.
    """

    def open_file(self, name: str, **_: Any) -> _View:
        if name not in self.files:
            raise NameError(name)
        return _View(memoryview(self.files[name]), name)

    def temp_storage(self, name: str | None = None) -> _Memory:  # noqa: ARG002 - Whoosh's signature
        return _Memory()


@dataclass(frozen=True, slots=True)
class Segment:
    """What one commit wrote: a row for each Whoosh document, its lengths by field, and words."""

    reader: Any
    rows: Rows
    alive: Mask
    lengths: Bytes
    words: Words

    def stored(self) -> Iterator[tuple[str, bytes, Rows, Rows]]:
        """Yield every field and term with its documents and counts, as Whoosh keeps them."""
        for field, term in self.reader.all_terms():
            yield field, term, *self._decode(field, term)

    def differences(self) -> Iterator[tuple[str, bytes, Rows, Rows]]:
        """Yield the postings of the words that Whoosh has otherwise, and the other way round."""
        stored = {}
        for field, term, numbers, counts in self.stored():
            stored[field, term] = (numbers, counts)
        for field, term, numbers, counts in every_posting(self.words):
            theirs = stored.pop((field, term), None)
            if theirs is None or not _same((numbers, counts), theirs):
                yield field, term, numbers, counts
        for (field, term), (numbers, counts) in stored.items():
            yield field, term, numbers, counts

    def _decode(self, field: str, term: bytes) -> tuple[Rows, Rows]:
        """Read a posting list block by block.

        Whoosh's public matcher takes a Python step for every posting.
        """
        posting_format = self.reader.schema[field].format
        terms = self.reader._terms  # noqa: SLF001 - the reason is above
        matcher = terms.matcher(field, term, posting_format)
        numbers: list[int] = []
        weights: list[float] = []
        while matcher.is_active():
            matcher._read_ids()  # noqa: SLF001
            matcher._read_weights()  # noqa: SLF001
            numbers.extend(matcher._ids)  # noqa: SLF001
            weights.extend(matcher._weights)  # noqa: SLF001
            matcher._next_block()  # noqa: SLF001
        return np.asarray(numbers, dtype=np.int64), np.asarray(weights, dtype=np.int64)


class Segments:
    """A Whoosh index in memory, seen as its segments by name."""

    def __init__(self, files: Mapping[str, Buffer] | None = None) -> None:
        self._storage = _Memory()
        if files is None:
            # Terms arrive ready-made as lists, so Whoosh's analyser has nothing to do.
            text = {name: fields.TEXT(analyzer=IDAnalyzer(), phrase=False) for name in FIELDS}
            schema = fields.Schema(row=fields.COLUMN(ROW), **text)
            self._index: Any = self._storage.create_index(schema)
        else:
            self._storage.files = dict(files)
            try:
                self._index = self._storage.open_index()
            except (
                WhooshError,
                fields.FieldConfigurationError,
                FileFormatError,
                PickleError,
                struct.error,
            ) as error:
                raise ValueError(f"the stored keywords cannot be read: {error}") from error
        self.opened: dict[str, Segment] = {}
        self.refresh()

    def write(self, passages: Sequence[FieldTerms], first: int, removed: Rows) -> None:
        """Add passages under numbers from the first on, and remove numbers, in one commit.

        Which `refresh` opens.
        """
        writer = self._writer()
        if len(removed):
            self._remove(writer, removed)
        if not passages:
            writer.commit(merge=False)
            return
        words, lengths = invert(passages, LENGTHS)
        rows = np.arange(first, first + len(passages))
        fill(writer, NewSegment(words, rows, lengths))
        writer.commit(merge=False)
        self._keep(writer, words)

    def merge(self) -> bool:
        """Merge segments of like size if there are many; tell whether anything was done."""
        if len(self.opened) <= MOST_SEGMENTS:
            return False
        for names in self._alike():
            writer = self._writer()
            merged = _merged([self.opened[name] for name in names])
            fill(writer, merged)
            writer.commit(mergetype=_without(names))
            self._keep(writer, merged.words)
        self.refresh()
        return True

    def _writer(self) -> Any:
        return self._index.writer(codec=Codec(), limitmb=UNLIMITED)

    def _keep(self, writer: Any, words: Words) -> None:
        """Put the words of a segment beside its other files, with which Whoosh removes them."""
        self._storage.files[writer.newsegment.segment_id() + WORDS] = words.dump()

    def _remove(self, writer: Any, removed: Rows) -> None:
        # A writer counts documents through all segments.
        count = 0
        for stored in writer.segments:
            # What was written last may not be opened yet; nothing of it is removed.
            segment = self.opened.get(stored.segment_id())
            if segment is not None:
                is_removed = np.isin(segment.rows, removed) & segment.alive
                for number in np.flatnonzero(is_removed).tolist():
                    writer.delete_document(count + number)
                segment.alive[is_removed] = False
            count += stored.doc_count_all()

    def _alike(self) -> list[list[str]]:
        """Return the segments that are merged with each other: those of one class of sizes.

        A row moves once for each class it grows through.
        """
        classes: dict[int, list[str]] = {}
        for name, segment in self.opened.items():
            size = int(math.log(max(1, len(segment.rows)), SIZE_CLASS))
            classes.setdefault(size, []).append(name)
        merged = []
        for names in classes.values():
            total = sum(len(self.opened[name].rows) for name in names)
            most = FEW_MERGED
            if len(names) >= SIZE_CLASS:
                most = MOST_MERGED
            if len(names) > 1 and total <= most:
                merged.append(names)
        return merged

    def rest(self) -> None:
        """Let go of what was read of mapped words."""
        for segment in self.opened.values():
            fsio.release(segment.words.buffer)

    def dump(self) -> dict[str, bytes]:
        """Return the files of the Whoosh index."""
        dumped = {}
        for name, data in self._storage.files.items():
            dumped[name] = bytes(data)
            fsio.release(data)
        return dumped

    def refresh(self) -> None:
        """Open the segments that the last commit wrote.

        Those that were there before cost nothing.
        """
        segments = self._index._segments()  # noqa: SLF001 - there is no public way
        found = {segment.segment_id(): segment for segment in segments}
        for name in self.opened.keys() - found.keys():
            del self.opened[name]
        for name in found.keys() - self.opened.keys():
            reader = SegmentReader(self._storage, self._index.schema, found[name])
            words = Words.restore(memoryview(self._storage.files[name + WORDS]))
            self.opened[name] = _open(reader, words)


def _open(reader: Any, words: Words) -> Segment:
    count = reader.doc_count_all()
    alive = np.ones(count, dtype=np.bool_)
    alive[list(reader.segment().deleted_docs())] = False
    # Column by column: asking Whoosh for one number after the other took most of the time of
    # opening an index.
    lengths = np.zeros((len(FIELDS), count), dtype=np.uint8)
    for column, field in zip(lengths, FIELDS, strict=True):
        column[:] = _column(reader, _lenfield(field), LENGTHS_COLUMN, np.dtype(np.uint8), count)
    rows = _column(reader, "row", ROW, np.dtype(">u8"), count)
    return Segment(reader, rows.astype(np.int64), alive, lengths, words)


def _column(
    reader: Any, name: str, kind: Any, dtype: np.dtype[Any], count: int
) -> npt.NDArray[Any]:
    """Read one number for each document; Whoosh writes nothing after the last that is not zero."""
    perdoc = reader._perdoc  # noqa: SLF001 - the reason is at `_open`
    values = np.zeros(count, dtype=dtype)
    if perdoc.has_column(name):
        column = perdoc.column_reader(name, kind)
        size = column._count * dtype.itemsize  # noqa: SLF001 - the reason is at `_open`
        content = column._dbfile.get(column._basepos, size)  # noqa: SLF001 - likewise
        written = np.frombuffer(content, dtype)
        values[: len(written)] = written
    return values


def _merged(segments: Sequence[Segment]) -> NewSegment:
    """Return what is alive in several segments as one, in the order of rows."""
    rows = np.concatenate([segment.rows[segment.alive] for segment in segments])
    order = np.argsort(rows)
    numbers = np.empty(len(rows), dtype=np.int64)
    numbers[order] = np.arange(len(rows))
    parts = []
    begin = 0
    for segment in segments:
        new = np.full(len(segment.rows), -1, dtype=np.int64)
        end = begin + int(np.count_nonzero(segment.alive))
        new[segment.alive] = numbers[begin:end]
        parts.append((segment.words, new))
        begin = end
    lengths = np.concatenate([segment.lengths[:, segment.alive] for segment in segments], axis=1)
    lengths = lengths[:, order]
    return NewSegment(merge(parts, lengths), rows[order], lengths)


def _without(names: Sequence[str]) -> Any:
    """Return what chooses the segments that a commit keeps."""

    def kept(_: Any, segments: Sequence[Any]) -> list[Any]:
        return [segment for segment in segments if segment.segment_id() not in names]

    return kept


def _same(ours: tuple[Rows, Rows], theirs: tuple[Rows, Rows]) -> bool:
    return np.array_equal(ours[0], theirs[0]) and np.array_equal(ours[1], theirs[1])
