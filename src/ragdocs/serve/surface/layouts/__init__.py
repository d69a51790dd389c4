"""How answers are laid out: dates, ages, reasons, and contents cut to the room of an answer."""

from __future__ import annotations

import bisect
import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from json.encoder import encode_basestring
from typing import Any, TypeVar, cast

from ragdocs.errors import ValidationError
from ragdocs.serve.surface.shapes import Provenance, SignalShape
from ragdocs.text.headings import STEP, TITLE_MARK
from ragdocs.types import Document, Findings, Hit, Written

MOST_TAGS = 30
LONGEST_TITLE = 200
LONGEST_ORIGIN = 80
# Words of a query that are named as the reason of a hit.
MOST_WORDS = 8
# The mark that text answers put before each quoted line.
QUOTE_MARK = 5
# Less than this tells a reader nothing.
LEAST_CONTENT = 160
ELLIPSIS = "…"
CUT = "contents ending in … are cut; read the file at the given lines for the rest"
# Of a text in a list.
PREVIEW = 160
KILOBYTE = 1024
MINUTE = 60
UNITS = (
    ("year", 31_557_600),
    ("month", 2_629_800),
    ("week", 604_800),
    ("day", 86_400),
    ("hour", 3_600),
)

Shape = TypeVar("Shape", bound=Any)
Item = TypeVar("Item")
# Results, how many matched besides, and notes.
Page = tuple[list[Shape], int, list[str]]


def fit(findings: Findings, shape: Callable[[Hit], Shape], room: int) -> Page[Shape]:
    """Shape hits so that together they fit into the room of an answer.

    `shape` leaves the content empty: the room that is left is shared out for it.
    """
    hits = findings.hits
    shapes = [shape(hit) for hit in hits]
    contents = [hit.chunk.text for hit in hits]
    results, notes = share_room(shapes, contents, room, CUT)
    omitted = findings.omitted + len(hits) - len(results)
    return results, omitted, [*findings.notes, *notes]


def share_room(
    shapes: Sequence[Shape], contents: Sequence[str], room: int, cut_note: str = ""
) -> tuple[list[Shape], list[str]]:
    """Give shapes without contents their contents, and return those that fit into the room.

    And notes: how many did not fit, and `cut_note` if a content was cut.
    """
    count, left = _fitting([cost(shape) for shape in shapes], room)
    notes = []
    unfit = len(shapes) - count
    if unfit:
        advice = "ask for fewer or be specific"
        notes.append(f"{unfit} more results did not fit in {room} characters; {advice}")
    is_cut = False
    results = list(shapes[:count])
    sizes = [cost(content) for content in contents[:count]]
    allowances = _allowances(sizes, left)
    for result, content, size, allowance in zip(results, contents, sizes, allowances, strict=False):
        result["content"] = content
        if size > allowance:
            result["content"] = cut(content, allowance)
            is_cut = True
    if is_cut and cut_note:
        notes.append(cut_note)
    return results, notes


def _fitting(costs: Sequence[int], room: int) -> tuple[int, int]:
    """Return how many results fit, and the room that is left for their contents."""
    count = len(costs)
    while count > 1 and sum(costs[:count]) + count * LEAST_CONTENT > room:
        count -= 1
    return count, room - sum(costs[:count])


def _allowances(sizes: Sequence[int], room: int) -> list[int]:
    """Return how much each content may have; a short one leaves its room to the longer ones."""
    allowances = [LEAST_CONTENT] * len(sizes)
    by_size = sorted(range(len(sizes)), key=sizes.__getitem__)
    for number, position in enumerate(by_size):
        share = max(LEAST_CONTENT, room // (len(sizes) - number))
        allowances[position] = share
        room -= min(share, sizes[position])
    return allowances


def cost(value: Any) -> int:
    """Return the size of a value in an answer.

    Written as JSON, or quoted line by line, whichever is longer.
    """
    if not isinstance(value, str):
        return len(_write(value))
    written = len(encode_basestring(value))
    lines_of_text = 1 + value.count("\n")
    return max(written, len(value) + QUOTE_MARK * lines_of_text)


# Made once: `json.dumps` makes a new encoder at every call that asks for other than ASCII.
_write = json.JSONEncoder(ensure_ascii=False).encode


def within(items: Iterable[Item], room: int) -> list[Item]:
    """Return the first items that together fit into the room."""
    fitting = []
    for item in items:
        room -= cost(item) + 2
        if room < 0:
            break
        fitting.append(item)
    return fitting


def cut(text: str, length: int) -> str:
    """Shorten a text at the end of a line or word, so that it costs no more than this."""
    if cost(text) <= length:
        return text
    lengths = range(min(len(text), length))
    fitting = bisect.bisect_right(lengths, length, key=lambda end: cost(text[:end] + ELLIPSIS))
    head = text[: max(1, fitting - 1)]
    for separator in ("\n", " "):
        end = head.rfind(separator)
        if end > len(head) // 2:
            head = head[:end]
            break
    return head.rstrip() + ELLIPSIS


def preview(beginning: str) -> str:
    """Shorten the beginning of a text to what is shown in a list."""
    return cut(beginning, PREVIEW)


def title(document: Document) -> str:
    """Return a title of reasonable length."""
    return cut(document.title, LONGEST_TITLE)


def tags(document: Document) -> list[str]:
    """Return a document's tags; a sign at the end tells that there are more."""
    names = list(document.tags[:MOST_TAGS])
    if len(document.tags) > MOST_TAGS:
        names.append(ELLIPSIS)
    return names


def lines(hit: Hit) -> str:
    """Return the line range of a hit."""
    return f"{hit.chunk.start_line}-{hit.chunk.end_line}"


def header(hit: Hit) -> str:
    """Return the heading path of a hit."""
    return STEP.join(hit.chunk.headings)


def heading_of(title: str, header_path: str) -> str:
    """Return a title and a heading path below it; the title stands there once."""
    if not header_path:
        return title
    if header_path == title or header_path.startswith(f"{title}{STEP}"):
        return header_path
    # Not joined like headings: a title in front would make a path that may be another section's.
    return f"{title}{TITLE_MARK}{header_path}"


def why(hit: Hit) -> str:
    """Say in words why a hit was found."""
    reasons = []
    sources = {signal.source: signal for signal in hit.signals}
    if hit.words:
        words = ", ".join(hit.words[:MOST_WORDS])
        reasons.append(f"words: {cut(words, LONGEST_TITLE)}")
    elif "keyword" in sources:
        reasons.append("similar words")
    if "vector" in sources:
        reasons.append(f"meaning {sources['vector'].raw:.2f}")
    if "graph" in sources:
        reasons.append("linked with another result")
    if "time" in sources:
        reasons.append("of the time that was asked for")
    if "recency" in sources:
        reasons.append("recent")
    if "succession" in sources:
        reasons.append("supersedes another result")
    return "; ".join(reasons) or "links to the document"


def signals(hit: Hit) -> list[SignalShape]:
    """Return every contribution to a hit's score."""
    shapes = []
    for signal in hit.signals:
        shape = SignalShape(
            probe=signal.probe,
            source=signal.source,
            rank=signal.rank,
            raw=round(signal.raw, 4),
            share=round(signal.share, 4),
        )
        shapes.append(shape)
    return shapes


def age(moment: datetime | None, now: datetime) -> str:
    """Say how long ago something was, in the largest unit that fits."""
    if moment is None:
        return "age unknown"
    seconds = (now - moment).total_seconds()
    # Clocks of two machines differ a little.
    if seconds < -MINUTE:
        return "in the future"
    if seconds < MINUTE:
        return "just now"
    for unit, length in UNITS:
        count = int(seconds // length)
        if count == 1:
            return f"1 {unit} ago"
        if count > 1:
            return f"{count} {unit}s ago"
    return f"{int(seconds // MINUTE)} min ago"


def provenance(document: Document) -> Provenance:
    """Say who wrote a memory, from where and at which commit, as far as the memory says so."""
    origin = {"author": document.extra.get("author") or "", "source": document.source}
    if document.git:
        origin |= {"branch": document.git.branch, "commit": document.git.commit}
    stated = {}
    for name, value in origin.items():
        if value:
            stated[name] = cut(str(value), LONGEST_ORIGIN)
    return cast("Provenance", stated)


def superseded(hit: Hit) -> list[str]:
    """Name what supersedes a hit."""
    return [successor.id for successor in hit.successors]


def moment(value: datetime | None) -> str | None:
    """Return a date as it is written in an answer, if there is one."""
    if value is None:
        return None
    return iso(value)


def iso(value: datetime) -> str:
    """Write a moment as answers have it: in UTC, to the second, with a Z."""
    return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def excerpt(text: str, first: int, span: tuple[int, int] | None, room: int) -> tuple[str, str, str]:
    """Cut whole lines out of a text: (content, line range, what was left out and how to get it)."""
    lines = text.split("\n")
    last = first + len(lines) - 1
    start, end = span or (first, last)
    if start > last or end < start or start < first:
        raise ValidationError(
            f"lines {start}-{end} are outside {first}-{last}",
            f'Ask for lines within "{first}-{last}"',
        )
    end = min(end, last)
    chosen = lines[start - first : end - first + 1]
    count, is_long = _fitting_lines(chosen, room)
    content = "\n".join(chosen[:count])
    lines_shown = f"{start}-{start + count - 1}"
    if count < len(chosen):
        rest = f"{start + count}-{end}"
        return content, lines_shown, f'lines {rest} are left out; ask for lines="{rest}"'
    if is_long:
        remark = f"line {start} is longer than {room} characters and is cut"
        return cut(content, room), lines_shown, remark
    return content, lines_shown, ""


def numbered_excerpt(
    text: str, numbers: Sequence[int], span: tuple[int, int] | None, room: int
) -> tuple[str, str, str]:
    """Cut lines out of a text as `excerpt` does; `numbers` are those that its lines are called by.

    Numbers may be left out, and several lines may have the same one.
    """
    first = numbers[0]
    last = numbers[-1]
    start, end = span or (first, last)
    begin = bisect_left(numbers, start)
    stop = bisect_right(numbers, end)
    if begin == len(numbers) or end < start:
        raise ValidationError(
            f"lines {start}-{end} are outside {first}-{last}",
            f'Ask for lines within "{first}-{last}"',
        )
    chosen = text.split("\n")[begin:stop]
    if not chosen:
        return "", f"{start}-{end}", ""
    count, is_long = _fitting_lines(chosen, room)
    content = "\n".join(chosen[:count])
    lines_shown = f"{numbers[begin]}-{numbers[begin + count - 1]}"
    if count < len(chosen):
        rest = f"{numbers[begin + count]}-{numbers[stop - 1]}"
        return content, lines_shown, f'lines {rest} are left out; ask for lines="{rest}"'
    if is_long:
        remark = f"line {numbers[begin]} is longer than {room} characters and is cut"
        return cut(content, room), lines_shown, remark
    return content, lines_shown, ""


def _fitting_lines(lines_of_text: Sequence[str], room: int) -> tuple[int, bool]:
    """Return how many lines fit, at least one, and whether even that one is too long."""
    used = 0
    for count, line in enumerate(lines_of_text):
        # As in JSON, where the two quotes stand for the escaped end of the line.
        used += len(_write(line))
        if used > room and count:
            return count, used > room
    return len(lines_of_text), used > room


def removed(written: Written) -> list[str]:
    """Say which secrets were kept out of a text that was written, and what went wrong beside it."""
    secrets = [f"a secret was replaced by a placeholder: {rule}" for rule in written.removed]
    return [*secrets, *written.notes]


def size(count: int) -> str:
    """Return a number of bytes as a person reads it."""
    if count < KILOBYTE:
        return f"{count}B"
    if count < KILOBYTE**2:
        return f"{count / KILOBYTE:.1f}KB"
    return f"{count / KILOBYTE**2:.1f}MB"
