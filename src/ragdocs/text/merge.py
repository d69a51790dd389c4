"""The three-way merge of two changes of one text, line by line; overlaps stand between marks."""

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
# Spaces belong to the word before them: alone they would match anywhere.
_WORD = re.compile(r"\w+[^\S\n]*|[^\w\s][^\S\n]*|\s")
# Longer regions are compared as a whole, not word by word.
LONGEST_REGION = 20_000
Lines = Sequence[str]


@dataclass(frozen=True, slots=True)
class Merge:
    """A text made of two changes, and in how many places they overlap."""

    text: str
    overlaps: int


@dataclass(frozen=True, slots=True)
class Region:
    """Lines of three texts that stand between the same neighbours; `line` is that in the base."""

    line: int
    base: str
    theirs: str
    yours: str

    @property
    def origin(self) -> str:
        """Who changed it: nobody, one side, both alike, or both differently."""
        if self.theirs == self.yours:
            if self.base == self.yours:
                return "same"
            return "both"
        if self.theirs == self.base:
            return "yours"
        if self.yours == self.base:
            return "theirs"
        return "overlap"


@contextmanager
def proposing(store: Versioned, expected: str | None) -> Iterator[None]:
    """Add to a conflict the text that both sides started from, if it is kept, and a merge."""
    try:
        yield
    except ConflictError as error:
        if expected and error.yours:
            with suppress(RagdocsError):
                propose(error, store.recover(expected))
        raise


def propose(error: ConflictError, base: str) -> None:
    """Add to a conflict the text that both sides started from, and how the two go together."""
    error.base = base
    texts = [text.replace("\r\n", "\n") for text in (base, error.theirs, error.yours)]
    proposal = merge(*texts)
    error.merged = proposal.text
    error.overlaps = proposal.overlaps


def merge(base: str, theirs: str, yours: str) -> Merge:
    """Put two changes of a base together; what one side left alone is taken from the other."""
    old = _LINE.findall(base)
    left = _LINE.findall(theirs)
    right = _LINE.findall(yours)
    merged: list[str] = []
    overlaps = 0
    old_done = left_done = right_done = 0
    for old_stop, left_stop, right_stop in _fixed_points(old, left, right):
        old_part = old[old_done:old_stop]
        left_part = left[left_done:left_stop]
        right_part = right[right_done:right_stop]
        part = _decided(old_part, left_part, right_part)
        if part is None:
            overlaps += 1
            part = _marked(left_part, right_part)
        merged += part
        merged += old[old_stop : old_stop + 1]
        old_done = old_stop + 1
        left_done = left_stop + 1
        right_done = right_stop + 1
    return Merge("".join(merged), overlaps)


def regions(base: str, theirs: str, yours: str) -> Iterator[Region]:
    """Yield the three texts region by region, those that are the same in all three included."""
    old = _LINE.findall(base)
    left = _LINE.findall(theirs)
    right = _LINE.findall(yours)
    same: list[str] = []
    old_done = left_done = right_done = 0
    for old_stop, left_stop, right_stop in _fixed_points(old, left, right):
        parts = (
            "".join(old[old_done:old_stop]),
            "".join(left[left_done:left_stop]),
            "".join(right[right_done:right_stop]),
        )
        if any(parts):
            yield from _same_region(same, old_done)
            same = []
            yield Region(old_done + 1, *parts)
        same += old[old_stop : old_stop + 1]
        old_done = old_stop + 1
        left_done = left_stop + 1
        right_done = right_stop + 1
    yield from _same_region(same, len(old))


def _same_region(lines: Lines, stop: int) -> Iterator[Region]:
    if lines:
        text = "".join(lines)
        yield Region(stop - len(lines) + 1, text, text, text)


def merged_words(region: Region) -> str:
    """Propose one text for a region that both sides changed, word by word.

    Words that both sides added at one place stand one after the other. Where both replaced the same
    words no mixture makes sense: then all lines of theirs come before all of yours.
    """
    in_turn = "".join([*_closed([region.theirs]), region.yours])
    if max(map(len, (region.base, region.theirs, region.yours))) > LONGEST_REGION:
        return in_turn
    old = _WORD.findall(region.base)
    left = _WORD.findall(region.theirs)
    right = _WORD.findall(region.yours)
    merged: list[str] = []
    old_done = left_done = right_done = 0
    for old_stop, left_stop, right_stop in _fixed_points(old, left, right):
        old_part = old[old_done:old_stop]
        left_part = left[left_done:left_stop]
        right_part = right[right_done:right_stop]
        part = _decided(old_part, left_part, right_part)
        if part is None:
            if old_part:
                return in_turn
            part = [*left_part, *right_part]
        merged += part
        merged += old[old_stop : old_stop + 1]
        old_done = old_stop + 1
        left_done = left_stop + 1
        right_done = right_stop + 1
    return "".join(merged)


def added_words(old: str, new: str) -> list[tuple[str, bool]]:
    """Return a text in pieces, each with whether it is new against an older text."""
    if max(len(old), len(new)) > LONGEST_REGION:
        return [(new, True)]
    words = _WORD.findall(new)
    present = set(_matches(_WORD.findall(old), words))
    pieces: list[tuple[str, bool]] = []
    for position, word in enumerate(words):
        is_new = position not in present
        if pieces and pieces[-1][1] == is_new:
            word = pieces.pop()[0] + word  # noqa: PLW2901 - the piece grows by the word
        pieces.append((word, is_new))
    return pieces


def draft(version_a: str, version_b: str) -> Merge:
    """Put two versions together line by line, without the text that both came from.

    Where they differ, both stand between marks.
    """
    merged = merge(common(version_a, version_b), version_a, version_b)
    text = merged.text.replace(f"{THEIRS}\n", "<<<<<<< version_a\n")
    text = text.replace(f"{YOURS}\n", ">>>>>>> version_b\n")
    return Merge(text, merged.overlaps)


def common(left: str, right: str) -> str:
    """Return the lines that two texts share, in order: the least that both can have come from."""
    old = _LINE.findall(left)
    shared = []
    for line, position in zip(old, _matches(old, _LINE.findall(right)), strict=True):
        if position >= 0:
            shared.append(line)
    return "".join(shared)


def _fixed_points(old: Lines, left: Lines, right: Lines) -> Iterator[tuple[int, int, int]]:
    """Yield the lines that all three have, by their positions, and the ends of the three.

    What lies between two of them is decided as a whole.
    """
    to_left = _matches(old, left)
    to_right = _matches(old, right)
    for position in range(len(old)):
        if to_left[position] >= 0 and to_right[position] >= 0:
            yield position, to_left[position], to_right[position]
    yield len(old), len(left), len(right)


def _decided(old: Lines, left: Lines, right: Lines) -> Lines | None:
    """Return what a region becomes if one side left it alone, or both changed it alike."""
    if left in (old, right):
        return right
    if right == old:
        return left
    return None


def _marked(left: Lines, right: Lines) -> list[str]:
    return [
        f"{THEIRS}\n",
        *_closed(left),
        f"{BETWEEN}\n",
        *_closed(right),
        f"{YOURS}\n",
    ]


def _closed(lines: Lines) -> Lines:
    """End the last line: a mark needs a line of its own, also at the end of a file."""
    if not lines or lines[-1].endswith("\n"):
        return lines
    return [*lines[:-1], f"{lines[-1]}\n"]


def _matches(old: Lines, new: Lines) -> list[int]:
    """Map each old line to the new line it became, or to -1; the order of lines is kept."""
    positions = [-1] * len(old)
    head = _equal_lines(old, new)
    # The same from the end, where no line of the head is counted again.
    tail = _equal_lines(old[head:][::-1], new[head:][::-1])
    old_end = len(old) - tail
    new_end = len(new) - tail
    positions[:head] = range(head)
    positions[old_end:] = range(new_end, len(new))
    old_start = new_start = head
    anchors = _anchors(old[head:old_end], new[head:new_end])
    for old_offset, new_offset in anchors:
        old_stop = head + old_offset
        new_stop = head + new_offset
        _match_between(positions, old, new, (old_start, old_stop), (new_start, new_stop))
        positions[old_stop] = new_stop
        old_start = old_stop + 1
        new_start = new_stop + 1
    _match_between(positions, old, new, (old_start, old_end), (new_start, new_end))
    return positions


def _equal_lines(old: Lines, new: Lines) -> int:
    """Count the lines with which both texts begin."""
    count = 0
    for old_line, new_line in zip(old, new, strict=False):
        if old_line != new_line:
            break
        count += 1
    return count


def _match_between(
    positions: list[int],
    old: Lines,
    new: Lines,
    old_range: tuple[int, int],
    new_range: tuple[int, int],
) -> None:
    """Match the lines between two anchors, if there are not too many pairs to compare."""
    old_lines = old[slice(*old_range)]
    new_lines = new[slice(*new_range)]
    if not 0 < len(old_lines) * len(new_lines) <= PAIRS:
        return
    matcher = SequenceMatcher(None, old_lines, new_lines, autojunk=False)
    for block in matcher.get_matching_blocks():
        old_start = old_range[0] + block.a
        new_start = new_range[0] + block.b
        new_positions = range(new_start, new_start + block.size)
        positions[old_start : old_start + block.size] = new_positions


def _anchors(old: Lines, new: Lines) -> list[tuple[int, int]]:
    """Return the longest run of lines, in order in both texts, that each text has only once."""
    pairs = _unique_pairs(old, new)
    # Patience sorting: `ends` has the smallest new position at which a run of each length ends,
    # `last` the pair that ends it, and `previous` the pair before each pair in its run.
    ends: list[int] = []
    last: list[int] = []
    previous: list[int] = []
    for number, (_, position) in enumerate(pairs):
        length = bisect.bisect_left(ends, position)
        previous.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [position]
        last[length : length + 1] = [number]
    run: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        run.append(pairs[number])
        number = previous[number]
    run.reverse()
    return run


def _unique_pairs(old: Lines, new: Lines) -> list[tuple[int, int]]:
    """Return the positions of the lines that each text has exactly once."""
    new_positions = _unique_lines(new)
    pairs = []
    for line, position in _unique_lines(old).items():
        if line in new_positions:
            pairs.append((position, new_positions[line]))
    return pairs


def _unique_lines(lines: Lines) -> dict[str, int]:
    counts = Counter(lines)
    return {line: position for position, line in enumerate(lines) if counts[line] == 1}
