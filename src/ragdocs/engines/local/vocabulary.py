"""The different terms of a segment: how one is found, and those that are spelt alike."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Texts = Sequence[bytes]

# Every so many terms one is kept as an object: a search among these takes Python one call.
STEP = 32
# No term has this byte, so a text with it comes after all others that begin alike.
AFTER = b"\xff"
# Letters that a swap exchanges.
SWAPPED = 2
# Bytes of the longest character.
MOST_BYTES = 4
# Terms of other sizes are left out at once where there are more candidates than this.
MANY = 48


class Vocabulary:
    """Sorted terms, one text after the other, and their order by how they end.

    `backwards` has the numbers of all terms, those of one first byte together, and these in the
    order of their reversed texts. Whoever searches it finds the terms of an ending side by side.
    """

    def __init__(self, texts: bytes, starts: array[int], backwards: memoryview) -> None:
        self._texts = texts
        self._starts = starts
        self._backwards = backwards
        self._count = len(starts) - 1
        self._guides = [self.text(number) for number in range(0, self._count, STEP)]
        # Between which numbers the terms of a first byte are, for those asked for.
        self._bounds: dict[int, tuple[int, int]] = {}

    def __len__(self) -> int:
        return self._count

    def text(self, number: int) -> bytes:
        """Return the term of a number."""
        start = self._starts[number]
        end = self._starts[number + 1]
        return self._texts[start:end]

    def find(self, term: str) -> int:
        """Return the number of a term, -1 if it is not there."""
        wanted = term.encode()
        starts = self._starts
        number = self._from(wanted)
        if number < self._count and self._texts[starts[number] : starts[number + 1]] == wanted:
            return number
        return -1

    def near(self, term: str) -> Iterator[tuple[int, str]]:
        """Yield the terms that are one edit or one swap away and have its first letter.

        An edit leaves the beginning of a word as it is, or its end; only a swap in the middle
        changes both.
        """
        middle = len(term) // 2 + 1
        numbers = set(self._with_beginning(term, middle))
        numbers.update(self._with_end(term, middle))
        beginning = term[: middle - 1]
        pair = term[middle - 1 : middle + 1]
        end = term[middle + 1 :]
        numbers.add(self.find(beginning + pair[::-1] + end))
        numbers.discard(-1)
        for number in numbers:
            word = self.text(number).decode()
            if abs(len(word) - len(term)) <= 1 and _is_near(term, word):
                yield number, word

    def _with_beginning(self, term: str, size: int) -> Sequence[int]:
        """Return the terms of about the same length that share so many letters at the beginning."""
        beginning = term[:size].encode()
        low = self._from(beginning)
        high = low
        # The next ones are near in memory, and there are few.
        last = min(low + MANY, self._count)
        while high < last and self._begins(high, beginning):
            high += 1
        if high - low < MANY:
            return range(low, high)
        high = self._from(beginning + AFTER)
        every_start = np.frombuffer(self._starts, dtype=np.uint32)
        starts = every_start[low : high + 1].astype(np.int64)
        differences = np.diff(starts) - len(term.encode())
        # A letter takes one byte here, or up to four elsewhere.
        most = MOST_BYTES
        candidates = self._texts[starts[0] : starts[-1]]
        if term.isascii() and candidates.isascii():
            most = 1
        is_about_as_long = np.abs(differences) <= most
        chosen = low + np.flatnonzero(is_about_as_long)
        numbers: list[int] = chosen.tolist()
        return numbers

    def _begins(self, number: int, beginning: bytes) -> bool:
        starts = self._starts
        return self._texts.startswith(beginning, starts[number], starts[number + 1])

    def _with_end(self, term: str, size: int) -> Sequence[int]:
        """Return the terms of the same first byte that share what comes after so many letters."""
        first = term[0].encode()[0]
        bounds = self._bounds.get(first)
        if bounds is None:
            low = self._from(bytes((first,)))
            high = self._from(bytes((first + 1,)))
            bounds = (low, high)
            self._bounds[first] = bounds
        low, high = bounds
        end = term[size:].encode()
        starts = self._starts
        numbers = []
        for position in range(self._ending(end[::-1], low, high), high):
            number = self._backwards[position]
            if not self._texts.endswith(end, starts[number], starts[number + 1]):
                break
            numbers.append(number)
        return numbers

    def _ending(self, reverse: bytes, low: int, high: int) -> int:
        """Return the first position between two whose reversed text is not before this one."""
        backwards = self._backwards
        starts = self._starts
        texts = self._texts
        while low < high:
            middle = (low + high) // 2
            number = backwards[middle]
            if texts[starts[number] : starts[number + 1]][::-1] < reverse:
                low = middle + 1
            else:
                high = middle
        return low

    def _from(self, wanted: bytes) -> int:
        """Return the first term that is not before this one."""
        block = bisect_right(self._guides, wanted)
        if not block:
            return 0
        low = (block - 1) * STEP
        high = min(low + STEP, self._count)
        starts = self._starts
        texts = self._texts
        while low < high:
            middle = (low + high) // 2
            if texts[starts[middle] : starts[middle + 1]] < wanted:
                low = middle + 1
            else:
                high = middle
        return low


def backwards(texts: Texts) -> Numbers:
    """Return the numbers of sorted terms by their first bytes, and then by their reversed texts."""
    reversed_texts = [text[:1] + text[::-1] for text in texts]
    order = sorted(range(len(texts)), key=reversed_texts.__getitem__)
    return np.array(order, dtype=np.int64)


def _is_near(term: str, word: str) -> bool:
    """Tell whether one edit, or a swap of two neighbours, makes one word of the other.

    Both begin with the same letter.
    """
    shorter = min(len(term), len(word))
    start = 0
    while start < shorter and term[start] == word[start]:
        start += 1
    end = 0
    while end < shorter - start and term[-1 - end] == word[-1 - end]:
        end += 1
    middle = term[start : len(term) - end]
    other = word[start : len(word) - end]
    if start == 0:
        return False
    if len(middle) <= 1 and len(other) <= 1:
        return True
    return len(middle) == SWAPPED and middle == other[::-1]
