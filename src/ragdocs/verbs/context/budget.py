"""How a pack is put together.

Sections share a budget, and no item is cut within a word or a line of code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time

from ragdocs.verbs import page as answers

# Before each line that others wrote; nothing in there speaks for this server.
MARK = "  | "
CUT = "…"
# An item takes no more than this part of its section while others wait, and never less than some
# sentences.
ITEM_SHARE = 2
LEAST_ITEM = 400
# What is left of an item that was cut shorter tells nobody anything.
LEAST_SHOWN = 160
# What remains for the list of what was left out: some lines, or a fifth of a small pack.
LEFT_OUT = 700
LEFT_OUT_SHARE = 5
MANY_DAYS = 60
# As much of a line as ends before a space, or behind a mark that ends a phrase where words have no
# spaces between them.
_BREAK = re.compile(r".*\S(?=\s)|.*[\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]")


@dataclass(frozen=True, slots=True)
class Piece:
    """One item of a section: what it is called, where it stands, how old it is, and its text."""

    title: str
    source: str
    age: str
    text: str


@dataclass(frozen=True, slots=True)
class Section:
    """Items in the order of their worth.

    `more` says how to get those that are left out, `unasked` counts others.
    """

    name: str
    heading: str
    share: float
    pieces: Sequence[Piece] = field(default_factory=tuple)
    more: str = ""
    unasked: int = 0
    trouble: str = ""
    # What the others are that nobody asked for.
    others: str = "not about this"


def assemble(head: str, sections: Sequence[Section], most: int) -> tuple[str, list[str]]:
    """Return a text of at most so many characters, and what was left out and how to get it."""
    budget = most - len(head) - min(LEFT_OUT, most // LEFT_OUT_SHARE)
    filled = [
        _filled(section, room)
        for section, room in zip(sections, _rooms(sections, budget), strict=True)
    ]
    left = budget - sum(len(one.text) for one in filled)
    # What could not be used in one place, because the next item was too large, may do in another.
    for place, section in enumerate(sections):
        if left > 0 and (filled[place].cut or filled[place].shown < len(section.pieces)):
            again = _filled(section, len(filled[place].text) + left)
            left -= len(again.text) - len(filled[place].text)
            filled[place] = again
    text = "".join([head, *(one.text for one in filled)])
    left_out = [
        row for section, one in zip(sections, filled, strict=True) for row in _account(section, one)
    ]
    return text + _closing(left_out, most - len(text)), left_out


def shorten(text: str, room: int) -> str:
    """Return whole lines of a text that fit with their marks.

    The last of them saying that it is cut, or nothing.

    Only a line of prose is cut, and only between words; code that does not fit stays out.
    """
    lines = text.split("\n")
    if sum(len(MARK) + len(line) + 1 for line in lines) <= room:
        return text
    kept: list[str] = []
    room -= len(MARK) + len(CUT) + 1
    fenced = False
    for line in lines:
        # A fence that stays open needs room to be closed.
        if len(MARK) + len(line) + 1 > room - (len(MARK) + 4 if fenced else 0):
            if not kept and not fenced and not line.startswith(("```", "~~~", "    ", "\t")):
                words = _BREAK.match(line[: max(0, room - len(MARK) - 1)])
                kept += [words[0].rstrip()] if words else []
            break
        kept.append(line)
        room -= len(MARK) + len(line) + 1
        fenced ^= line.lstrip().startswith(("```", "~~~"))
    while kept and not kept[-1].strip():
        kept.pop()
    if not kept:
        return ""
    return "\n".join([*kept, *(["```"] if fenced else []), CUT])


def days_old(moment: datetime | None, now: datetime) -> str:
    """Say how old something is, in whole days.

    The same pack for a whole day, and easier to compare.
    """
    if moment is None:
        return "age unknown"
    day, today = moment.astimezone(now.tzinfo).date(), now.date()
    days = (today - day).days
    words = {0: "today", 1: "yesterday"}.get(
        days, f"{days} days ago" if days > 0 else "in the future"
    )
    if days > MANY_DAYS:
        words = answers.age(*(datetime.combine(date, time(), UTC) for date in (day, today)))
    return f"{day.isoformat()}, {words}"


def _rooms(sections: Sequence[Section], budget: int) -> list[int]:
    """Give each section its share, or what it needs if that is less.

    What is left goes on to those that want more.
    """
    wanted = [_whole(section) for section in sections]
    rooms = [0] * len(sections)
    left = budget
    while hungry := [place for place, want in enumerate(wanted) if want > rooms[place]]:
        total = sum(sections[place].share for place in hungry)
        portions = {place: int(left * sections[place].share / total) for place in hungry}
        for place, portion in portions.items():
            more = min(portion, wanted[place] - rooms[place])
            rooms[place] += more
            left -= more
        if not any(rooms[place] == wanted[place] for place in hungry):
            break
    return rooms


def _whole(section: Section) -> int:
    """Return the size of a section with all its items."""
    if not section.pieces:
        return 0
    return (
        sum(len(_rendered(piece, piece.text)) for piece in section.pieces)
        + len(_title(section))
        + 1
    )


@dataclass(frozen=True, slots=True)
class _Filled:
    """The text of a section, how many items it shows, and how many of those are cut."""

    text: str
    shown: int
    cut: int


def _filled(section: Section, room: int) -> _Filled:
    parts, shown, cut = [_title(section)], 0, 0
    room -= len(parts[0]) + 1
    for place, piece in enumerate(section.pieces):
        waiting = len(section.pieces) - place
        allowed = min(room, max(LEAST_ITEM, room // min(waiting, ITEM_SHARE)))
        text = shorten(piece.text, allowed - len(_rendered(piece, "")))
        if len(text) < min(LEAST_SHOWN, len(piece.text)):
            continue
        rendered = _rendered(piece, text)
        if len(rendered) > room:
            continue
        parts.append(rendered)
        room -= len(rendered)
        shown += 1
        cut += text != piece.text
    return _Filled("".join([*parts, "\n"]) if shown else "", shown, cut)


def _title(section: Section) -> str:
    return f"## {section.heading}\n"


def _rendered(piece: Piece, text: str) -> str:
    head = " · ".join(filter(None, (piece.title, piece.source, piece.age)))
    body = "".join(f"{MARK}{line}\n" for line in text.split("\n")) if text else ""
    return f"- {head}\n{body}"


def _account(section: Section, filled: _Filled) -> list[str]:
    """Say what a section leaves out, and how to get it."""
    if section.trouble:
        return [f"{section.name}: {section.trouble}"]
    parts = []
    if filled.shown < len(section.pieces):
        parts.append(f"{len(section.pieces) - filled.shown} of {len(section.pieces)} did not fit")
    if filled.cut:
        parts.append(f"{filled.cut} cut short")
    if section.unasked:
        parts.append(f"{section.unasked} {section.others}")
    return [f"{section.name}: {', '.join(parts)}; {section.more}"] if parts else []


def _closing(left_out: Sequence[str], room: int) -> str:
    """Write what was left out, as many whole lines as there is room for.

    And how many there are beside them.
    """
    rows = [f"- {' '.join(row.split())}\n" for row in left_out]
    for count in range(len(rows), -1, -1):
        more = (
            [f"- in {len(rows) - count} more sections; ask for more characters\n"]
            if count < len(rows)
            else []
        )
        text = "".join(["## Left out\n", *rows[:count], *more])
        if len(text) <= room:
            return text if rows else ""
    return ""
