"""The files of a Whoosh segment, written at once from sorted postings.

Whoosh's own writer takes several Python calls for every posting and for every term. Here numpy
makes whatever has a fixed size.
"""

from __future__ import annotations

import pickle
import secrets
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from ragdocs.engines.local.words import (
    FIELDS,
    Bytes,
    Numbers,
    Part,
    Postings,
    Words,
    is_first_of_run,
)
from ragdocs.system.turns import give_way

# Python has warnings about the source of Whoosh where it compiles it.
with warnings.catch_warnings(action="ignore", category=SyntaxWarning):
    from whoosh.codec.whoosh3 import (
        LENGTHS_COLUMN,
        WHOOSH3_HEADER_MAGIC,
        W3Codec,
        W3FieldWriter,
        _lenfield,
    )
    from whoosh.columns import NumericColumn
    from whoosh.filedb.filetables import HashWriter, OrderedHashWriter
    from whoosh.system import pack_ushort
    from whoosh.util.numeric import byte_to_length

# Whoosh stores a length as one byte, roughly.
LENGTHS = np.array([0, *map(byte_to_length, range(1, 256))], dtype=np.int64)
# The row of a document.
ROW = NumericColumn("Q")
# Posting lists of at least so many bytes are compressed, as Whoosh compresses them.
COMPRESSED = 200
# Whoosh looks a term up by its CRC: that is the second of the hashes that it knows.
CRC = 1
TABLES = 256

# What a posting list begins with: a mark, minus its size in bytes, and a pickled tuple of its
# count, its last document, the highest weight, the compression and the lengths it is between.
_HEAD = np.dtype(
    [
        ("magic", "S4"),
        ("size", ">i4"),
        ("opening", "S4"),
        ("count", "<i4"),
        ("last_mark", "S1"),
        ("last", "<i4"),
        ("most_mark", "S1"),
        ("most", ">f8"),
        ("compression_mark", "S1"),
        ("compression", "u1"),
        ("shortest_mark", "S1"),
        ("shortest", "u1"),
        ("longest_mark", "S1"),
        ("longest", "u1"),
        ("closing", "S2"),
    ]
)
_HEAD_MARKS = {
    "magic": WHOOSH3_HEADER_MAGIC,
    "opening": b"\x80\x02(J",
    "last_mark": b"J",
    "most_mark": b"G",
    "compression_mark": b"K",
    "shortest_mark": b"K",
    "longest_mark": b"K",
    "closing": b"t.",
}
_OUTSIDE = 8
# The pickled postings of a term that stands once in one document.
_SINGLE = np.dtype([("opening", "S3"), ("number", "<i4"), ("middle", "S4"), ("rest", "S6")])
_SINGLE_MARKS = {
    "opening": b"\x80\x03J",
    "middle": b"\x85NC\x04",
    "rest": b"\0\0\0\x01\x87.",
}
# What Whoosh knows of a term without reading its postings, and where they are.
_INFO = np.dtype(
    [
        ("is_inlined", "u1"),
        ("weight", ">f4"),
        ("count", ">u4"),
        ("shortest", "u1"),
        ("longest", "u1"),
        ("most", ">f4"),
        ("first", ">u4"),
        ("last", ">u4"),
        ("offset", ">i8"),
        ("size", ">i4"),
    ]
)
_SIZES = np.dtype([("key", ">i4"), ("value", ">i4")])
_SLOT = np.dtype([("hash", ">u4"), ("position", ">i8")])


class _TermTable(OrderedHashWriter):  # type: ignore[misc] # whoosh has no types
    """A file of terms, written field by field and hashed all at once."""

    def __init__(self, dbfile: Any) -> None:
        HashWriter.__init__(self, dbfile, hashtype=CRC)
        self._hashes: list[int] = []
        self._positions: list[Numbers] = []

    def add_sorted(self, keys: Sequence[bytes], values: Part) -> None:
        """Add terms that come after all that are here."""
        sizes = np.empty(len(keys), dtype=_SIZES)
        sizes["key"] = np.fromiter(map(len, keys), dtype=np.int64)
        sizes["value"] = values.dtype.itemsize
        totals = sizes["key"].astype(np.int64) + sizes["value"] + _SIZES.itemsize
        self._positions.append(self.dbfile.tell() + np.cumsum(totals) - totals)
        self._hashes += map(zlib.crc32, keys)
        records = zip(_pieces(sizes), keys, _pieces(values), strict=True)
        self.dbfile.write(b"".join(chain.from_iterable(records)))

    def _write_hashes(self) -> None:
        """Write tables that are half full, each term in the first free slot from its own on."""
        hashes = np.array(self._hashes, dtype=np.int64)
        positions = np.concatenate([np.empty(0, dtype=np.int64), *self._positions])
        tables = hashes % TABLES
        counts = np.bincount(tables, minlength=TABLES)
        slots = 2 * counts
        begins = np.cumsum(slots) - slots
        # Here with room behind each table, so that no run reaches into the next one.
        roomy = begins + np.cumsum(counts) - counts
        homes = roomy[tables] + (hashes >> 8) % slots[tables]
        order = np.argsort(homes)
        own_tables = tables[order]
        free_slots = _free_slots(homes[order]) - roomy[own_tables]
        content = np.zeros(int(slots.sum()), dtype=_SLOT)
        is_inside = free_slots < slots[own_tables]
        inside = order[is_inside]
        inside_slots = begins[tables[inside]] + free_slots[is_inside]
        content["hash"][inside_slots] = hashes[inside]
        content["position"][inside_slots] = positions[inside]
        for number in order[~is_inside].tolist():
            # Behind the last slot comes the first.
            slot = int(begins[tables[number]])
            while content["position"][slot]:
                slot += 1
            content[slot] = (hashes[number], positions[number])
        start = self.dbfile.tell()
        self.dbfile.write(content.tobytes())
        begins = start + begins * _SLOT.itemsize
        self.directory = list(zip(begins.tolist(), slots.tolist(), strict=True))

    def _write_extras(self) -> None:
        positions = np.concatenate([np.empty(0, dtype=np.int64), *self._positions])
        self.extras["indextype"] = "q"
        self.extras["indexlen"] = len(positions)
        HashWriter._write_extras(self)  # noqa: SLF001 - what OrderedHashWriter does
        self.dbfile.write(positions.astype(">i8").tobytes())


class Codec(W3Codec):  # type: ignore[misc] # whoosh has no types
    """Writes terms in bulk, and names segments by the system's randomness.

    Whoosh's own names repeat when somebody seeds the random module.
    """

    def new_segment(self, storage: Any, indexname: str) -> Any:
        """Return a segment with a name of its own."""
        segment = super().new_segment(storage, indexname)
        segment.segid = secrets.token_hex(8)
        return segment

    def field_writer(self, storage: Any, segment: Any) -> Any:
        """Return a writer of fields that adds all terms of one at once."""
        writer = W3FieldWriter(self, storage, segment)
        # The table that it has made is never closed, and so never kept.
        table = _TermTable(segment.create_file(storage, W3Codec.TERMS_EXT))
        table.extras["fieldmap"] = writer._fieldmap  # noqa: SLF001 - there is no public way
        writer._tindex = table  # noqa: SLF001 - likewise
        return writer


@dataclass(frozen=True, slots=True)
class NewSegment:
    """A segment to be written: its words, the row of each document, and lengths by field."""

    words: Words
    rows: Numbers
    lengths: Bytes


def fill(writer: Any, new: NewSegment) -> None:
    """Give a writer of Whoosh's its whole segment."""
    documents = writer.perdocwriter
    _add_column(documents, "row", ROW, new.rows.astype(">u8"))
    postings = new.words.postings()
    texts = new.words.terms()
    for field, column in sorted(zip(FIELDS, new.lengths, strict=True)):
        if column.any():
            _add_column(documents, _lenfield(field), LENGTHS_COLUMN, column)
            total = int(LENGTHS[column].sum())
            documents._fieldlengths[field] = total  # noqa: SLF001 - there is no public way
            _write_field(writer, field, postings.of_field(field), texts, column)
    documents._doccount = writer.docnum = len(new.rows)  # noqa: SLF001 - likewise
    # Whoosh writes the segment because of this, and has no postings of its own to add.
    writer._added = True  # noqa: SLF001 - likewise


def _add_column(documents: Any, name: str, kind: Any, values: Part) -> None:
    documents._create_column(name, kind)  # noqa: SLF001 - one number at a time takes long
    column = documents._get_column(name)  # noqa: SLF001
    column._dbfile.write(values.tobytes())  # noqa: SLF001
    column._count = len(values)  # noqa: SLF001


def _write_field(
    writer: Any, field: str, postings: Postings, texts: Sequence[bytes], lengths: Bytes
) -> None:
    """Write the posting lists of a field, each as one block, and its terms."""
    target = writer.fieldwriter
    target.start_field(field, writer.schema[field])
    terms, _, numbers, counts = postings
    is_first = is_first_of_run(terms)
    starts = np.flatnonzero(is_first)
    ends = np.append(starts[1:], len(terms))
    gaps = np.where(is_first, numbers, np.diff(numbers, prepend=0))
    blocks, is_compressed = _blocks(gaps, counts, starts, ends)
    info = _info(postings, lengths, starts, ends)
    sizes = _HEAD.itemsize + np.fromiter(map(len, blocks), dtype=np.int64)
    info["size"] = sizes
    file = target._postfile  # noqa: SLF001 - there is no public way
    info["offset"] = file.tell() + np.cumsum(sizes) - sizes
    heads = _pieces(_heads(info, is_compressed))
    records = zip(heads, blocks, strict=True)
    file.write(b"".join(chain.from_iterable(records)))
    prefix = pack_ushort(target._fieldid)  # noqa: SLF001 - likewise
    keys = [prefix + texts[term] for term in terms[starts].tolist()]
    target._tindex.add_sorted(keys, info)  # noqa: SLF001 - likewise
    target.finish_field()


def _info(postings: Postings, lengths: Bytes, starts: Numbers, ends: Numbers) -> Part:
    """Return what is known of each term without reading its postings."""
    numbers = postings.numbers
    counts = postings.counts
    field_lengths = lengths[numbers]
    info = np.zeros(len(starts), dtype=_INFO)
    info["weight"] = np.add.reduceat(counts, starts)
    info["count"] = ends - starts
    info["shortest"] = np.minimum.reduceat(field_lengths, starts)
    info["longest"] = np.maximum.reduceat(field_lengths, starts)
    info["most"] = np.maximum.reduceat(counts, starts)
    info["first"] = numbers[starts]
    info["last"] = numbers[ends - 1]
    return info


def _heads(info: Part, is_compressed: Sequence[bool]) -> Part:
    heads = np.zeros(len(info), dtype=_HEAD)
    for name, mark in _HEAD_MARKS.items():
        heads[name] = mark
    for name in ("count", "last", "most", "shortest", "longest"):
        heads[name] = info[name]
    heads["compression"] = is_compressed
    # The last block of a list, here the only one, has a negative size.
    heads["size"] = _OUTSIDE - info["size"].astype(np.int64)
    return heads


def _blocks(
    gaps: Numbers, counts: Numbers, starts: Numbers, ends: Numbers
) -> tuple[list[bytes], list[bool]]:
    """Pickle the gaps, weights and values of each term, and say which of them are compressed."""
    is_single = (ends - starts == 1) & (counts[starts] == 1)
    singles = np.zeros(int(np.count_nonzero(is_single)), dtype=_SINGLE)
    for name, mark in _SINGLE_MARKS.items():
        singles[name] = mark
    singles["number"] = gaps[starts[is_single]]
    ready = iter(_pieces(singles))
    weights = counts.astype(np.float64)
    values = counts.astype(">u4").tobytes()
    is_plain = (np.maximum.reduceat(counts, starts) == 1).tolist()
    bounds = zip(starts.tolist(), ends.tolist(), is_single.tolist(), is_plain, strict=True)
    blocks = []
    is_compressed = []
    for start, end, single, plain in bounds:
        if single:
            block = next(ready)
        else:
            own_weights = None
            if not plain:
                own_weights = tuple(weights[start:end].tolist())
            own_gaps = tuple(gaps[start:end].tolist())
            own_values = values[4 * start : 4 * end]
            postings = (own_gaps, own_weights, own_values)
            block = pickle.dumps(postings, 3)
            give_way()
        compresses = len(block) >= COMPRESSED
        if compresses:
            block = zlib.compress(block, 1)
        blocks.append(block)
        is_compressed.append(compresses)
    return blocks, is_compressed


def _free_slots(homes: Numbers) -> Numbers:
    """Return the first free slot from each home on; homes are in order."""
    steps = np.arange(len(homes))
    free_slots: Numbers = steps + np.maximum.accumulate(homes - steps)
    return free_slots


def _pieces(records: Part) -> list[bytes]:
    """Return the bytes of each record."""
    size = records.dtype.itemsize
    data = records.tobytes()
    return [data[start : start + size] for start in range(0, len(data), size)]
