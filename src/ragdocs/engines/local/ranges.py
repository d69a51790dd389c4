"""Slots of documents by a number that they have: a range is found without a look at each."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from math import inf

# Slots with like numbers form groups, each with a code of one byte: Python translates bytes a
# hundred times as fast as it compares numbers.
MOST_GROUPS = 250
NO_NUMBER = 255


class Ranges:
    """The slots in the order of their numbers, in groups of about the same size."""

    def __init__(self, count: int, numbers: Iterable[tuple[float | None, int]]) -> None:
        """Take the numbers of some of so many slots."""
        ordered: list[tuple[float, int]] = []
        for number, slot in numbers:
            if number is not None:
                ordered.append((number, slot))
        self._ordered = sorted(ordered)
        step = len(ordered) // MOST_GROUPS + 1
        # Each group but the first begins with one of these numbers.
        self._bounds = sorted({number for number, _ in self._ordered[::step]})
        self._codes = bytearray([NO_NUMBER]) * count
        for number, slot in ordered:
            self._codes[slot] = bisect_right(self._bounds, number)

    def add(self, number: float | None, slot: int) -> None:
        """Put a slot in its place; a new slot is behind the last."""
        if slot == len(self._codes):
            self._codes.append(NO_NUMBER)
        if number is not None:
            insort(self._ordered, (number, slot))
            self._codes[slot] = bisect_right(self._bounds, number)

    def remove(self, number: float | None, slot: int) -> None:
        """Take out a slot that was added with this number."""
        if number is not None:
            del self._ordered[bisect_left(self._ordered, (number, slot))]
            self._codes[slot] = NO_NUMBER

    def within(self, first: float, last: float = inf) -> bytearray:
        """Tell for each slot whether its number is neither smaller nor larger."""
        start = bisect_left(self._ordered, (first, -1))
        end = bisect_right(self._ordered, (last, inf))
        low = bisect_right(self._bounds, first)
        high = bisect_right(self._bounds, last)
        is_within = bytearray(256)
        is_within[low + 1 : high] = b"\1" * (high - low - 1)
        single: list[tuple[float, int]] = []
        # The first and the last group may be in the range in part only.
        for group in {low, high}:
            begin = self._start(group)
            stop = self._start(group + 1)
            if start <= begin and stop <= end:
                is_within[group] = True
            else:
                single += self._ordered[max(start, begin) : min(end, stop)]
        chosen = self._codes.translate(is_within)
        for _, slot in single:
            chosen[slot] = True
        return chosen

    def _start(self, group: int) -> int:
        """Return where a group begins in the order."""
        if group == 0:
            return 0
        if group > len(self._bounds):
            return len(self._ordered)
        return bisect_left(self._ordered, (self._bounds[group - 1], -1))
