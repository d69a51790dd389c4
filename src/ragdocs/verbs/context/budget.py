"""Which items of a context pack there is room for: sections share a budget of characters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    # Layouts of packs are imported before the engines are.
    from ragdocs.verbs.living.drift import LinkState

# An item takes no more than this part of its section while others wait, and never less than some
# sentences.
ITEM_SHARE = 2
LEAST_ITEM = 400
# An item that was cut shorter than this tells nobody anything.
LEAST_SHOWN = 160


@dataclass(frozen=True, slots=True)
class Piece:
    """One item of a section: its name, where it stands, since when, and its text."""

    title: str
    text: str
    # The path of its file in the project; "" for a source file, whose path is its title.
    path: str = ""
    at: datetime | None = None
    # Of a passage: the headings above it, and its first and last line.
    headings: tuple[str, ...] = ()
    lines: tuple[int, int] | None = None
    # Of a decision: the files and folders that it is about.
    impacts: tuple[str, ...] = ()
    # Of a memory: what became of the files that it links to.
    links: tuple[LinkState, ...] = ()
    # Of a memory: the ids of those that supersede it.
    superseded_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """Items in the order of their worth.

    `more` says how to get those that are left out, `unasked` counts others.
    """

    name: str
    heading: str
    share: float
    pieces: Sequence[Piece] = ()
    more: str = ""
    unasked: int = 0
    trouble: str = ""
    # What the others are that nobody asked for.
    others: str = "not about this"


@dataclass(frozen=True, slots=True)
class Filled:
    """The text of a section, how many items it shows, and how many of those are cut."""

    text: str
    shown: int
    cut: int


class Writer(Protocol):
    """Writes the parts of a pack, whose sizes decide what there is room for."""

    def heading(self, section: Section) -> str:
        """Write what stands above the items of a section."""

    def item(self, piece: Piece, text: str) -> str:
        """Write an item with as much of its text as this."""

    def shorten(self, text: str, room: int) -> str:
        """Return as much of a text as fits, or nothing."""


def fill(sections: Sequence[Section], budget: int, writer: Writer) -> list[Filled]:
    """Fill each section up to its share, then those that want more with what is left."""
    filled = []
    for section, room in zip(sections, _rooms(sections, budget, writer), strict=True):
        filled.append(_filled(section, room, writer))
    left = budget - sum(len(part.text) for part in filled)
    # Room that one section could not use, because its next item was too large, may do in another.
    for position, section in enumerate(sections):
        before = filled[position]
        wants_more = before.cut or before.shown < len(section.pieces)
        if left > 0 and wants_more:
            after = _filled(section, len(before.text) + left, writer)
            left -= len(after.text) - len(before.text)
            filled[position] = after
    return filled


def _rooms(sections: Sequence[Section], budget: int, writer: Writer) -> list[int]:
    """Give each section its share, or what it needs if that is less.

    What is left goes on to those that want more.
    """
    needs = [_whole(section, writer) for section in sections]
    rooms = [0] * len(sections)
    left = budget
    while True:
        hungry = [number for number, need in enumerate(needs) if need > rooms[number]]
        if not hungry:
            return rooms
        shares = sum(sections[number].share for number in hungry)
        available = left
        has_filled = False
        for number in hungry:
            portion = int(available * sections[number].share / shares)
            portion = min(portion, needs[number] - rooms[number])
            rooms[number] += portion
            left -= portion
            has_filled = has_filled or rooms[number] == needs[number]
        if not has_filled:
            return rooms


def _whole(section: Section, writer: Writer) -> int:
    """Return the size of a section with all its items."""
    if not section.pieces:
        return 0
    size = len(writer.heading(section)) + 1
    for piece in section.pieces:
        size += len(writer.item(piece, piece.text))
    return size


def _filled(section: Section, room: int, writer: Writer) -> Filled:
    """Write as many items of a section as there is room for."""
    heading = writer.heading(section)
    room -= len(heading) + 1
    parts = [heading]
    cut = 0
    for position, piece in enumerate(section.pieces):
        waiting = len(section.pieces) - position
        share = room // min(waiting, ITEM_SHARE)
        allowed = min(room, max(LEAST_ITEM, share))
        text = writer.shorten(piece.text, allowed - len(writer.item(piece, "")))
        if len(text) < min(LEAST_SHOWN, len(piece.text)):
            continue
        item = writer.item(piece, text)
        if len(item) > room:
            continue
        parts.append(item)
        room -= len(item)
        cut += text != piece.text
    count = len(parts) - 1
    if not count:
        return Filled("", 0, 0)
    return Filled("".join([*parts, "\n"]), count, cut)
