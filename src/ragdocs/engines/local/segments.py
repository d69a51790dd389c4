"""Whoosh's files, held in memory and read without copies.

And its segments: their columns, and their words in a form that is searched.
"""

from __future__ import annotations

import math
import os
import struct
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pickle import PickleError
from typing import Any

import numpy as np
import numpy.typing as npt

from ragdocs.engines.local.inversion import invert, merge
from ragdocs.engines.local.whoosh_files import LENGTHS, ROW, Codec, NewSegment, fill
from ragdocs.engines.local.words import FIELDS, Bytes, Words, every_posting
from ragdocs.search.fields import FieldTerms
from ragdocs.system import files as fsio

# Python has warnings about the source of Whoosh where it compiles it.
with warnings.catch_warnings(action="ignore", category=SyntaxWarning):
    from whoosh import fields
    from whoosh.analysis import IDAnalyzer
    from whoosh.codec.whoosh3 import LENGTHS_COLUMN, _lenfield
    from whoosh.filedb.filestore import RamStorage
    from whoosh.filedb.filetables import FileFormatError
    from whoosh.filedb.structfile import BufferFile
    from whoosh.index import IndexError as WhooshError
    from whoosh.reading import SegmentReader

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
# Merging takes about a tenth of a millisecond and four kilobytes a row: a few rows at any time,
# many only when there is much to gain, and never more than this at once.
FEW_MERGED = 5_000
MOST_MERGED = 50_000
WORTHWHILE = 4
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


@dataclass(frozen=True, slots=True)
class Merged:
    """A segment made of others, which it takes the place of when it is adopted.

    `stored` is Whoosh's record of it.
    """

    sources: Mapping[str, Segment]
    stored: Any
    files: Mapping[str, bytes]
    segment: Segment


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
        # What is written and not shown yet.
        self._ready: dict[str, Segment] = {}
        self.refresh()
        for data in self._storage.files.values():
            # Searches read the words beside Whoosh's files, and of those files nothing.
            fsio.release(data)

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
        name = writer.newsegment.segment_id()
        # Beside the other files of the segment, with which Whoosh removes them.
        self._storage.files[name + WORDS] = words.dump()
        self._ready[name] = self._opened(self._storage, writer.newsegment)

    def merge(self) -> Iterator[Merged]:
        """Merge segments of like size beside them, if there are many.

        Others may search and write meanwhile.
        """
        opened = self.opened
        if len(opened) <= MOST_SEGMENTS:
            return
        for names in _alike(opened):
            yield self._merged({name: opened[name] for name in names})

    def adopt(self, merged: Merged) -> bool:
        """Put a merged segment in the place of its sources.

        Unless they are gone; tell whether it was done.
        """
        if not merged.sources.keys() <= self.opened.keys():
            return False
        sources = merged.sources.values()
        living = np.concatenate([source.rows[source.alive] for source in sources])
        # What was removed while they were merged.
        is_gone = ~np.isin(merged.segment.rows, living)
        merged.segment.alive[is_gone] = False
        for number in np.flatnonzero(is_gone).tolist():
            merged.stored.delete_document(number)
        self._storage.files.update(merged.files)
        self._writer().commit(mergetype=_instead(merged))
        self._ready[merged.stored.segment_id()] = merged.segment
        self.refresh()
        return True

    def _merged(self, sources: Mapping[str, Segment]) -> Merged:
        new = _joined(list(sources.values()))
        storage = _Memory()
        writer = storage.create_index(self._index.schema).writer(codec=Codec(), limitmb=UNLIMITED)
        fill(writer, new)
        writer.commit(merge=False)
        stored = writer.newsegment
        name = stored.segment_id()
        storage.files[name + WORDS] = new.words.dump()
        files = {}
        for file, data in storage.files.items():
            if file.startswith(name):
                files[file] = data
        return Merged(sources, stored, files, self._opened(storage, stored))

    def _writer(self) -> Any:
        return self._index.writer(codec=Codec(), limitmb=UNLIMITED)

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

    def rest(self) -> None:
        """Let go of what was read of mapped words."""
        for segment in self.opened.values():
            fsio.release(segment.words.buffer)

    def dump(self) -> dict[str, Buffer]:
        """Return the files of the Whoosh index, those that are mapped as they are."""
        return dict(self._storage.files)

    def refresh(self) -> None:
        """Show the segments that the last commit wrote.

        Those that were there before cost nothing.
        """
        opened: dict[str, Segment] = {}
        for stored in self._index._segments():  # noqa: SLF001 - there is no public way
            name = stored.segment_id()
            segment = self.opened.get(name) or self._ready.get(name)
            opened[name] = segment or self._opened(self._storage, stored)
        self.opened = opened
        self._ready = {}

    def _opened(self, storage: _Memory, stored: Any) -> Segment:
        reader = SegmentReader(storage, self._index.schema, stored)
        words = Words.restore(memoryview(storage.files[stored.segment_id() + WORDS]))
        return _open(reader, words)


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


def _alike(segments: Mapping[str, Segment]) -> list[list[str]]:
    """Return which are merged with each other: those of one class of sizes.

    A row moves once for each class it grows through.
    """
    classes: dict[int, list[str]] = {}
    for name, segment in segments.items():
        size = int(math.log(max(1, len(segment.rows)), SIZE_CLASS))
        classes.setdefault(size, []).append(name)
    chosen = []
    for names in classes.values():
        group: list[str] = []
        total = 0
        for name in names:
            count = len(segments[name].rows)
            if total + count > MOST_MERGED:
                chosen.append((total, group))
                group = []
                total = 0
            group.append(name)
            total += count
        chosen.append((total, group))
    merged = []
    for total, group in chosen:
        fewest = 2 if total <= FEW_MERGED else WORTHWHILE
        if len(group) >= fewest:
            merged.append(group)
    return merged


def _joined(segments: Sequence[Segment]) -> NewSegment:
    """Return what is alive in several segments as one, in the order of rows."""
    # Others may remove rows meanwhile.
    living = [segment.alive.copy() for segment in segments]
    pairs = list(zip(segments, living, strict=True))
    rows = np.concatenate([segment.rows[alive] for segment, alive in pairs])
    order = np.argsort(rows)
    numbers = np.empty(len(rows), dtype=np.int64)
    numbers[order] = np.arange(len(rows))
    parts = []
    begin = 0
    for segment, alive in pairs:
        new = np.full(len(segment.rows), -1, dtype=np.int64)
        end = begin + int(np.count_nonzero(alive))
        new[alive] = numbers[begin:end]
        parts.append((segment.words, new))
        begin = end
    lengths = np.concatenate([segment.lengths[:, alive] for segment, alive in pairs], axis=1)
    lengths = lengths[:, order]
    return NewSegment(merge(parts, lengths), rows[order], lengths)


def _instead(merged: Merged) -> Any:
    """Return what chooses the segments that a commit keeps: the merged one for its sources."""

    def chosen(_: Any, segments: Sequence[Any]) -> list[Any]:
        others = []
        for segment in segments:
            if segment.segment_id() not in merged.sources:
                others.append(segment)
        return [*others, merged.stored]

    return chosen


def _same(ours: tuple[Rows, Rows], theirs: tuple[Rows, Rows]) -> bool:
    return np.array_equal(ours[0], theirs[0]) and np.array_equal(ours[1], theirs[1])
