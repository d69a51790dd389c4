"""The passages of a catalog as a snapshot keeps them, and with new numbers for their rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ragdocs.engines.local.cards import every_card
from ragdocs.engines.local.catalog import Catalog, DocumentRows
from ragdocs.engines.local.passages import Buffer, Passages
from ragdocs.engines.local.rows import Rows
from ragdocs.system.turns import give_way

# Texts that are joined at once when a snapshot is made.
TEXTS_IN_A_PIECE = 256

# As in `passages.RECORD`.
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
Table = npt.NDArray[Any]


def dump(catalog: Catalog) -> tuple[dict[str, Any], bytes, list[Buffer]]:
    """Return the cards without the links, which the graph keeps; the table; and the texts.

    Cards are made ready for JSON as they are read, and the texts come in pieces.
    """
    alive = catalog.arrays.alive
    passages = catalog.passages
    records = _table(passages)
    table = np.zeros_like(records)
    table[alive] = records[alive]
    used, table["headings"][alive] = np.unique(table["headings"][alive], return_inverse=True)
    is_stored = alive.copy()
    is_stored[_fresh_rows(passages)] = False
    texts = _move_stored(passages, table, np.flatnonzero(is_stored))
    texts += _move_fresh(passages, table, sum(map(len, texts)))
    headings = [passages.headings[number] for number in used.tolist()]
    cards = every_card(catalog.document_rows())
    return {"documents": cards, "headings": headings}, table.tobytes(), texts


def compacted(catalog: Catalog) -> tuple[Catalog, Rows]:
    """Return a catalog without the rows and slots of the dead.

    And the new row of each row, -1 for the dead.
    """
    alive = catalog.arrays.alive
    old = catalog.passages
    moved = np.full(len(alive), -1, dtype=np.int64)
    moved[alive] = np.arange(np.count_nonzero(alive))
    table = _table(old)[alive]
    used, table["headings"] = np.unique(table["headings"], return_inverse=True)
    passages = Passages(table.tobytes(), old.stored_texts)
    passages.name_headings(old.headings[number] for number in used.tolist())
    for row, text in old.fresh_texts.items():
        passages.fresh_texts[int(moved[row])] = text
    return Catalog.of(_moved(catalog, moved), passages), moved


def _moved(catalog: Catalog, moved: Rows) -> Iterator[DocumentRows]:
    """Yield the documents of a catalog with the new numbers of their rows."""
    for document, stamp, rows in catalog.document_rows():
        first = 0
        if rows:
            first = int(moved[rows.start])
        yield document, stamp, range(first, first + len(rows))


def _table(passages: Passages) -> Table:
    """Return a copy of all records."""
    records = b"".join([passages.stored_records, passages.fresh_records])
    return np.frombuffer(records, dtype=_ROW).copy()


def _fresh_rows(passages: Passages) -> Rows:
    """Return the rows whose texts came since the last snapshot."""
    return np.fromiter(passages.fresh_texts, dtype=np.int64)


def _move_stored(passages: Passages, table: Table, rows: Rows) -> list[Buffer]:
    """Give the texts of the last snapshot their offsets in the next, and return them.

    What is left of it goes there as it lies, in as few pieces as there are gaps.
    """
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
    return [passages.stored_texts[begin:end] for begin, end in spans]


def _move_fresh(passages: Passages, table: Table, at: int) -> list[Buffer]:
    """Give the texts that came since the last snapshot their offsets from `at` on."""
    rows = _fresh_rows(passages)
    texts: list[Buffer] = []
    sizes: list[int] = []
    for start in range(0, len(rows), TEXTS_IN_A_PIECE):
        portion = []
        for row in rows[start : start + TEXTS_IN_A_PIECE].tolist():
            portion.append(_encoded(passages.fresh_texts[row]))
        sizes += map(len, portion)
        texts.append(b"".join(portion))
        give_way()
    table["size"][rows] = sizes
    table["at"][rows] = at + np.cumsum(sizes, dtype=np.int64) - sizes
    return texts


def _encoded(text: str) -> bytes:
    # A file name need not be text: half characters stand for its other bytes.
    return text.encode("utf-8", "surrogatepass")
