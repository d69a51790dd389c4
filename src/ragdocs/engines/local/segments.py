"""Whoosh's files, held in memory and read without copies.

And the columns and postings of its segments.
"""

from __future__ import annotations

import functools
import math
import os
import secrets
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pickle import PickleError
from typing import Any

import numpy as np
import numpy.typing as npt
from whoosh import fields
from whoosh.analysis import IDAnalyzer
from whoosh.codec.whoosh3 import LENGTHS_COLUMN, W3Codec, _lenfield
from whoosh.filedb.filestore import RamStorage
from whoosh.filedb.filetables import FileFormatError, md5_hash
from whoosh.filedb.structfile import BufferFile
from whoosh.index import IndexError as WhooshError
from whoosh.reading import SegmentReader, TermNotFound
from whoosh.system import pack_ushort
from whoosh.util.numeric import byte_to_length

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
# Merging costs about a millisecond a row, during which nobody can search: a few rows at any time,
# many only when there is much to gain, and never most of a large index.
FEW_MERGED = 500
MOST_MERGED = 4000


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


class _Codec(W3Codec):  # type: ignore[misc] # whoosh has no types
    """Names segments by the system's randomness.

    Whoosh's own names repeat when somebody seeds the random module.
    """

    def new_segment(self, storage: Any, indexname: str) -> Any:
        segment = super().new_segment(storage, indexname)
        segment.segid = secrets.token_hex(8)
        return segment


@dataclass(frozen=True, slots=True)
class Segment:
    """What one commit wrote.

    A row and field lengths for each Whoosh document, and the postings of each term.
    """

    reader: Any
    rows: Rows
    alive: Mask
    lengths: Mapping[str, Floats]

    def postings(self, field: str, term: str) -> tuple[Rows, Floats] | None:
        """Return the documents that have a term in a field, by their numbers here.

        And how often.
        """
        known = term.encode()
        try:
            if self._may_have(field, known):
                return self._decode(field, known)
        except TermNotFound:
            return None
        return None

    def everything(self) -> Iterator[tuple[str, str, Rows, Floats]]:
        """Yield every field and term with its postings."""
        for field, term in self.reader.all_terms():
            if field in self.lengths:
                yield field, term.decode(), *self._decode(field, term)

    def near(self, field: str, term: str) -> set[str]:
        """Return the terms of a field that are one edit or one swap away."""
        found = set(self.reader.terms_within(field, term, maxdist=1, prefix=1))
        # Two letters swapped are the commonest slip, and to Whoosh they are two edits.
        for i in range(1, len(term) - 1):
            swapped = term[:i] + term[i + 1] + term[i] + term[i + 2 :]
            if (field, swapped.encode()) in self.reader:
                found.add(swapped)
        return found

    def _may_have(self, field: str, term: bytes) -> bool:
        """Tell whether the hash of a term is here.

        Most terms are in few fields, which Whoosh is slow to find out.
        """
        terms = self.reader._terms  # noqa: SLF001 - there is no public way to any of this
        number = terms._fieldmap.get(field)  # noqa: SLF001
        if number is None:
            return False
        table, buffer = terms._tindex, terms._dbfile._buf  # noqa: SLF001
        wanted = _hash(number, term)
        start, slots = table.tables[wanted & 255]
        for step in range(slots):
            found, place = _SLOT.unpack_from(
                buffer, start + ((wanted >> 8) + step) % slots * _SLOT.size
            )
            if found == wanted or not place:
                return bool(place)
        return False

    def _decode(self, field: str, term: bytes) -> tuple[Rows, Floats]:
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
        return np.asarray(numbers, dtype=np.int64), np.asarray(weights, dtype=np.float32)


class Segments:
    """A Whoosh index in memory with these text fields, seen as its segments by name."""

    def __init__(self, names: Sequence[str], files: Mapping[str, Buffer] | None = None) -> None:
        self._storage = _Memory()
        self._fields = tuple(names)
        if files is None:
            # Terms arrive ready-made as lists, so Whoosh's analyser has nothing to do.
            text = {name: fields.TEXT(analyzer=IDAnalyzer(), phrase=False) for name in names}
            # Unsigned, so that Whoosh stores the number itself.
            row = fields.NUMERIC(int, bits=64, signed=False, sortable=True)
            self._index: Any = self._storage.create_index(fields.Schema(row=row, **text))
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

    def write(self, added: Mapping[int, Mapping[str, list[str]]], removed: Rows) -> None:
        """Add rows with the terms of each field, and remove rows, in one commit.

        Which `refresh` opens.
        """
        writer = self._index.writer(codec=_Codec(), limitmb=UNLIMITED)
        # A writer counts documents through all segments.
        bases = {}
        count = 0
        for segment in writer.segments:
            bases[segment.segment_id()] = count
            count += segment.doc_count_all()
        if len(removed):
            for name, segment in self.opened.items():
                is_removed = np.isin(segment.rows, removed) & segment.alive
                for number in np.flatnonzero(is_removed).tolist():
                    writer.delete_document(bases[name] + number)
                segment.alive[is_removed] = False
        for row, terms in added.items():
            writer.add_document(row=row, **terms)
        writer.commit(merge=False)

    def merge(self) -> bool:
        """Merge segments of like size if there are many; tell whether anything was done."""
        if len(self.opened) <= MOST_SEGMENTS:
            return False
        self._index.writer(codec=_Codec(), limitmb=UNLIMITED).commit(mergetype=_merge_alike)
        self.refresh()
        return True

    def rest(self) -> None:
        """Let go of what was read of mapped files."""
        # A list, because another thread may be writing a segment.
        for file in list(self._storage.files.values()):
            fsio.release(file)

    def dump(self) -> dict[str, bytes]:
        """Return the files of the Whoosh index."""
        return {name: bytes(data) for name, data in self._storage.files.items()}

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
            self.opened[name] = _open(reader, self._fields)


def _open(reader: Any, names: Sequence[str]) -> Segment:
    count = reader.doc_count_all()
    alive = np.ones(count, dtype=np.bool_)
    alive[list(reader.segment().deleted_docs())] = False
    # Column by column: asking Whoosh for one number after the other took most of the time of
    # opening an index.
    lengths = {
        name: _LENGTHS[_column(reader, _lenfield(name), LENGTHS_COLUMN, np.dtype(np.uint8), count)]
        for name in names
    }
    rows = _column(reader, "row", reader.schema["row"].column_type, np.dtype(">u8"), count)
    return Segment(reader, rows.astype(np.int64), alive, lengths)


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


@functools.lru_cache(maxsize=1024)
def _hash(field: int, term: bytes) -> int:
    """Return what Whoosh looks a term up by, which is the same in all segments."""
    return int(md5_hash(pack_ushort(field) + term))


# A hash and the place of what it stands for, 0 where the slot is empty.
_SLOT = struct.Struct("!Iq")

# Whoosh stores a length as one byte, roughly.
_LENGTHS = np.array([0, *(byte_to_length(number) for number in range(1, 256))], dtype=np.float32)


def _merge_alike(writer: Any, segments: Sequence[Any]) -> list[Any]:
    """Merge the segments of each size class that has several.

    A row moves once for each class it grows through.
    """
    classes: dict[int, list[Any]] = {}
    for segment in segments:
        classes.setdefault(int(math.log(max(1, segment.doc_count_all()), SIZE_CLASS)), []).append(
            segment
        )
    kept = []
    for alike in classes.values():
        total = sum(segment.doc_count_all() for segment in alike)
        most = FEW_MERGED
        if len(alike) >= SIZE_CLASS:
            most = MOST_MERGED
        if len(alike) == 1 or total > most:
            kept += alike
            continue
        for segment in alike:
            reader = SegmentReader(writer.storage, writer.schema, segment)
            writer.add_reader(reader)
            reader.close()
    return kept
