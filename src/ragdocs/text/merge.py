"""Two changes of one text put together, line by line.

Where they overlap, both stand between marks.
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import SequenceMatcher

from ragdocs.errors import ConflictError, RagdocsError
from ragdocs.protocols import Versioned

THEIRS = "<<<<<<< theirs"
BETWEEN = "======="
YOURS = ">>>>>>> yours"
# Between two lines that anchor the comparison, more pairs than this are not compared one by one: a
# text of half a million equal lines would keep a server busy for minutes, and nobody reads such a
# difference.
PAIRS = 250_000

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
Lines = Sequence[str]


@dataclass(frozen=True, slots=True)
class Merge:
    """A text made of two changes, and in how many places they overlap."""

    text: str
    overlaps: int


@contextmanager
def proposing(store: Versioned, expected: str | None) -> Iterator[None]:
    """Let a conflict tell also the text that both sides started from, if it is kept.

    And how the two go together.
    """
    try:
        yield
    except ConflictError as error:
        if expected and error.yours:
            with suppress(RagdocsError):
                propose(error, store.recover(expected))
        raise


def propose(error: ConflictError, base: str) -> None:
    """Let a conflict tell the text that both sides started from, and how the two go together."""
    error.base = base
    texts = [text.replace("\r\n", "\n") for text in (base, error.theirs, error.yours)]
    merged = merge(*texts)
    error.merged = merged.text
    error.overlaps = merged.overlaps


def merge(base: str, theirs: str, yours: str) -> Merge:
    """Put two changes of a base together.

    A region that one side left alone is taken from the other.
    """
    old, left, right = (_LINE.findall(text) for text in (base, theirs, yours))
    to_left, to_right = _matches(old, left), _matches(old, right)
    merged: list[str] = []
    overlaps = 0
    done = (0, 0, 0)
    # Lines that all three have are fixed points; what lies between two of them is decided as a
    # whole.
    fixed = (
        (n, to_left[n], to_right[n])
        for n in range(len(old))
        if to_left[n] >= 0 and to_right[n] >= 0
    )
    for point in (*fixed, (len(old), len(left), len(right))):
        parts = [
            lines[start:stop]
            for lines, start, stop in zip((old, left, right), done, point, strict=True)
        ]
        chosen = _chosen(*parts)
        overlaps += chosen is None
        merged += _marked(parts[1], parts[2]) if chosen is None else chosen
        merged += old[point[0] : point[0] + 1]
        done = (point[0] + 1, point[1] + 1, point[2] + 1)
    return Merge("".join(merged), overlaps)


def common(left: str, right: str) -> str:
    """Return the lines that two texts share, in order: the least that both can have come from."""
    old, new = _LINE.findall(left), _LINE.findall(right)
    return "".join(line for line, place in zip(old, _matches(old, new), strict=True) if place >= 0)


def _chosen(old: Lines, left: Lines, right: Lines) -> Lines | None:
    if left in (old, right):
        return right
    return left if right == old else None


def _marked(left: Lines, right: Lines) -> list[str]:
    def closed(lines: Lines) -> list[str]:
        # A mark needs a line of its own, also behind the last line of a file.
        return (
            [*lines[:-1], lines[-1] if lines[-1].endswith("\n") else f"{lines[-1]}\n"]
            if lines
            else []
        )

    return [f"{THEIRS}\n", *closed(left), f"{BETWEEN}\n", *closed(right), f"{YOURS}\n"]


def _matches(old: Lines, new: Lines) -> list[int]:
    """Map each old line to the new line it became, or to -1; the order of lines is kept."""
    found = [-1] * len(old)
    shortest = min(len(old), len(new))
    head = next((n for n in range(shortest) if old[n] != new[n]), shortest)
    tail = next((n for n in range(shortest - head) if old[-1 - n] != new[-1 - n]), shortest - head)
    found[:head] = range(head)
    found[len(old) - tail :] = range(len(new) - tail, len(new))
    before = (head, head)
    for anchor in (*_anchors(old, new, head, tail), (len(old) - tail, len(new) - tail)):
        (start, other), (stop, until) = before, anchor
        if 0 < (stop - start) * (until - other) <= PAIRS:
            matcher = SequenceMatcher(None, old[start:stop], new[other:until], autojunk=False)
            for block in matcher.get_matching_blocks():
                first = start + block.a
                found[first : first + block.size] = range(
                    other + block.b, other + block.b + block.size
                )
        if stop < len(old) - tail:
            found[stop] = until
        before = (stop + 1, until + 1)
    return found


def _anchors(old: Lines, new: Lines, head: int, tail: int) -> list[tuple[int, int]]:
    """Return the longest run of lines, in order in both texts, that each text has only once."""
    mine, other = old[head : len(old) - tail], new[head : len(new) - tail]
    counts, others = Counter(mine), Counter(other)
    places = {line: head + n for n, line in enumerate(other) if others[line] == 1}
    pairs = [
        (head + n, places[line])
        for n, line in enumerate(mine)
        if counts[line] == 1 and line in places
    ]
    ends: list[int] = []
    last: list[int] = []
    previous: list[int] = []
    for number, (_, place) in enumerate(pairs):
        at = bisect.bisect_left(ends, place)
        previous.append(last[at - 1] if at else -1)
        ends[at : at + 1] = [place]
        last[at : at + 1] = [number]
    chain: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        chain.append(pairs[number])
        number = previous[number]
    return chain[::-1]
