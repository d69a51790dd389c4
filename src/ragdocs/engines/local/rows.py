"""What a search asks of all rows at once: arrays, made when something first asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ragdocs.engines.local.columns import Column

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

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


def side_by_side(families: Sequence[range]) -> Siblings:
    """Return the rows of documents, which follow one another, in one array."""
    firsts = np.array([family.start for family in families], dtype=np.int64)
    sizes = np.array([len(family) for family in families], dtype=np.int64)
    starts = np.cumsum(sizes) - sizes
    rows = np.arange(sizes.sum()) + np.repeat(firsts - starts, sizes)
    return Siblings(rows, starts)


class RowArrays:
    """For each row that was ever given, whether it holds a passage, and the slot of its document.

    Apart from the rest of a passage, because every filter walks over them.
    """

    def __init__(self, count: int, slot_rows: Iterable[tuple[int, range]]) -> None:
        """Take so many rows, and those that each slot has."""
        self._alive = Column.of(np.zeros(count, dtype=np.bool_), blank=False)
        self._slot_of = Column.of(np.zeros(count, dtype=np.int32), 0)
        alive = self.alive
        slot_of = self._slot_of.values
        for slot, rows in slot_rows:
            alive[rows.start : rows.stop] = True
            slot_of[rows.start : rows.stop] = slot
        self._lone: float | None = None

    @property
    def alive(self) -> Mask:
        """Tell for each row whether it holds a passage."""
        return self._alive.values

    def add(self, slot: int, rows: range) -> None:
        """Give a slot the rows behind the last."""
        self._lone = None
        self._alive.extend(np.ones(len(rows), dtype=np.bool_))
        self._slot_of.extend(np.full(len(rows), slot, dtype=np.int32))

    def remove(self, rows: range) -> None:
        """Note that these hold nothing any more."""
        self._lone = None
        self.alive[rows.start : rows.stop] = False

    def slots_at(self, rows: Sequence[int] | Rows) -> list[int]:
        """Return the slots of the documents that have these rows."""
        slots: list[int] = self._slot_of.values[np.asarray(rows, dtype=np.int64)].tolist()
        return slots

    def mask(self, slots: bytes) -> Mask:
        """Tell for each row whether it holds a passage of a chosen slot."""
        if 0 not in slots:
            return self.alive
        is_chosen = np.frombuffer(slots, dtype=np.bool_)
        chosen: Mask = self.alive & is_chosen[self._slot_of.values]
        return chosen

    def lone_share(self) -> float:
        """Return the share of documents with a single passage."""
        if self._lone is None:
            sizes = np.bincount(self._slot_of.values[self.alive])
            lone = int(np.count_nonzero(sizes == 1))
            self._lone = lone / max(1, int(np.count_nonzero(sizes)))
        return self._lone
