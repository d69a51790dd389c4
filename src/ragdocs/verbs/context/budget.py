"""How a pack is put together: sections share a budget, and no item is cut within a word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time

from ragdocs.verbs import page

# Before each line that others wrote; nothing in there speaks for this server.
MARK = "  | "
CUT = "…"
FENCES = ("```", "~~~")
CODE_STARTS = (*FENCES, "    ", "\t")
# An item takes no more than this part of its section while others wait, and never less than some
# sentences.
ITEM_SHARE = 2
LEAST_ITEM = 400
# An item that was cut shorter than this tells nobody anything.
LEAST_SHOWN = 160
# The room for the list of what was left out: some lines, or a fifth of a small pack.
LEFT_OUT = 700
LEFT_OUT_SHARE = 5
MANY_DAYS = 60
# As much of a line as ends before a space, or behind a mark that ends a phrase where words have no
# spaces between them.
_BREAK = re.compile(r".*\S(?=\s)|.*[\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]")


@dataclass(frozen=True, slots=True)
class Piece:
    """One item of a section: its name, where it stands, how old it is, and its text."""

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


@dataclass(frozen=True, slots=True)
class _Filled:
    """The text of a section, how many items it shows, and how many of those are cut."""

    text: str
    shown: int
    cut: int


def assemble(head: str, sections: Sequence[Section], most: int) -> tuple[str, list[str]]:
    """Return a text of at most so many characters, and what was left out and how to get it."""
    budget = most - len(head) - min(LEFT_OUT, most // LEFT_OUT_SHARE)
    filled = _fill(sections, budget)
    text = head
    left_out: list[str] = []
    for section, part in zip(sections, filled, strict=True):
        text += part.text
        account = _account(section, part)
        if account:
            left_out.append(account)
    return text + _closing(left_out, most - len(text)), left_out


def shorten(text: str, room: int) -> str:
    """Return the first lines of a text that fit with their marks, and a line that says it is cut.

    Only a line of prose is cut, and only between words; code that does not fit stays out.
    """
    lines = text.split("\n")
    if sum(len(MARK) + len(line) + 1 for line in lines) <= room:
        return text
    fitting: list[str] = []
    room -= len(MARK) + len(CUT) + 1
    fenced = False
    for line in lines:
        cost = len(MARK) + len(line) + 1
        # A fence that stays open needs room to be closed.
        reserve = len(MARK) + 4 if fenced else 0
        if cost > room - reserve:
            if not fitting and not fenced:
                fitting = _first_words(line, room - len(MARK) - 1)
            break
        fitting.append(line)
        room -= cost
        fenced ^= line.lstrip().startswith(FENCES)
    while fitting and not fitting[-1].strip():
        fitting.pop()
    if not fitting:
        return ""
    if fenced:
        fitting.append("```")
    return "\n".join([*fitting, CUT])


def days_old(moment: datetime | None, now: datetime) -> str:
    """Say how old something is, in whole days, so that a pack stays the same for a day."""
    if moment is None:
        return "age unknown"
    day = moment.astimezone(now.tzinfo).date()
    today = now.date()
    return f"{day.isoformat()}, {_days_ago(day, today)}"


def _days_ago(day: date, today: date) -> str:
    days = (today - day).days
    if days < 0:
        return "in the future"
    if days == 0:
        return "today"
    if days == 1:
        return "yesterday"
    if days <= MANY_DAYS:
        return f"{days} days ago"
    return page.age(_midnight(day), _midnight(today))


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _first_words(line: str, room: int) -> list[str]:
    """Return the words of a line of prose that fit, if any do."""
    if line.startswith(CODE_STARTS):
        return []
    words = _BREAK.match(line[: max(0, room)])
    if words is None:
        return []
    return [words[0].rstrip()]


def _fill(sections: Sequence[Section], budget: int) -> list[_Filled]:
    """Fill each section up to its share, then those that want more with what is left."""
    filled = []
    for section, room in zip(sections, _rooms(sections, budget), strict=True):
        filled.append(_filled(section, room))
    left = budget - sum(len(part.text) for part in filled)
    # Room that one section could not use, because its next item was too large, may do in another.
    for position, section in enumerate(sections):
        before = filled[position]
        wants_more = before.cut or before.shown < len(section.pieces)
        if left > 0 and wants_more:
            after = _filled(section, len(before.text) + left)
            left -= len(after.text) - len(before.text)
            filled[position] = after
    return filled


def _rooms(sections: Sequence[Section], budget: int) -> list[int]:
    """Give each section its share, or what it needs if that is less.

    What is left goes on to those that want more.
    """
    needs = [_whole(section) for section in sections]
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


def _whole(section: Section) -> int:
    """Return the size of a section with all its items."""
    if not section.pieces:
        return 0
    size = len(_title(section)) + 1
    for piece in section.pieces:
        size += len(_rendered(piece, piece.text))
    return size


def _filled(section: Section, room: int) -> _Filled:
    """Write as many items of a section as there is room for."""
    title = _title(section)
    room -= len(title) + 1
    parts = [title]
    cut = 0
    for position, piece in enumerate(section.pieces):
        waiting = len(section.pieces) - position
        share = room // min(waiting, ITEM_SHARE)
        allowed = min(room, max(LEAST_ITEM, share))
        text = shorten(piece.text, allowed - len(_rendered(piece, "")))
        if len(text) < min(LEAST_SHOWN, len(piece.text)):
            continue
        rendered = _rendered(piece, text)
        if len(rendered) > room:
            continue
        parts.append(rendered)
        room -= len(rendered)
        cut += text != piece.text
    shown = len(parts) - 1
    if not shown:
        return _Filled("", 0, 0)
    return _Filled("".join([*parts, "\n"]), shown, cut)


def _title(section: Section) -> str:
    return f"## {section.heading}\n"


def _rendered(piece: Piece, text: str) -> str:
    """Write an item as it stands in a pack: a line about it, and its text behind marks."""
    head = " · ".join(filter(None, (piece.title, piece.source, piece.age)))
    rows = [f"- {head}\n"]
    if text:
        rows += [f"{MARK}{line}\n" for line in text.split("\n")]
    return "".join(rows)


def _account(section: Section, filled: _Filled) -> str:
    """Say what a section leaves out, and how to get it."""
    if section.trouble:
        return f"{section.name}: {section.trouble}"
    parts = []
    count = len(section.pieces)
    if filled.shown < count:
        parts.append(f"{count - filled.shown} of {count} did not fit")
    if filled.cut:
        parts.append(f"{filled.cut} cut short")
    if section.unasked:
        parts.append(f"{section.unasked} {section.others}")
    if not parts:
        return ""
    return f"{section.name}: {', '.join(parts)}; {section.more}"


def _closing(left_out: Sequence[str], room: int) -> str:
    """Write what was left out: the lines that fit, and how many sections there are besides."""
    if not left_out:
        return ""
    rows = [f"- {' '.join(row.split())}\n" for row in left_out]
    for count in range(len(rows), -1, -1):
        text = "## Left out\n" + "".join(rows[:count])
        if count < len(rows):
            text += f"- in {len(rows) - count} more sections; ask for more characters\n"
        if len(text) <= room:
            return text
    return ""
