"""Findings become answers that fit.

Dates, ages, reasons, and a size budget with an account of what is left out.
"""

from __future__ import annotations

import bisect
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from ragdocs.errors import ValidationError
from ragdocs.text.sections import STEP, TITLE_MARK
from ragdocs.types import Document, Findings, Hit, Written
from ragdocs.verbs.shapes import Provenance, SignalShape

MOST_RESULTS = 50
MOST_TAGS = 30
LONGEST_TITLE = 200
LONGEST_ORIGIN = 80
# The mark that text answers put before each quoted line.
QUOTE_MARK = 5
# Less than this tells a reader nothing.
LEAST_CONTENT = 160
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


def check_limit(limit: int) -> int:
    """Refuse a number of results that cannot be meant."""
    if not 1 <= limit <= MOST_RESULTS:
        raise ValidationError(f"limit is {limit}", f"Ask for 1 to {MOST_RESULTS} results")
    return limit


def cost(value: Any) -> int:
    """Return the size of a value in an answer.

    Written as JSON, or quoted line by line, whichever is longer.
    """
    written = len(_write(value))
    quoted = len(value) + QUOTE_MARK * (1 + value.count("\n")) if isinstance(value, str) else 0
    return max(written, quoted)


# Made once: `json.dumps` makes a new encoder at every call that asks for other than ASCII.
_write = json.JSONEncoder(ensure_ascii=False).encode


def fit(
    findings: Findings, shape: Callable[[Hit], Shape], budget: int
) -> tuple[list[Shape], int, list[str]]:
    """Shape hits so that together they stay within the budget.

    Return them, how many matched besides, and notes.

    `shape` leaves the content empty: what room is left is shared out for it.
    """
    hits = findings.hits
    shaped = [shape(hit) for hit in hits]
    bare = [cost(one) for one in shaped]
    most = len(hits)
    while most > 1 and sum(bare[:most]) + most * LEAST_CONTENT > budget:
        most -= 1
    allowance = max(LEAST_CONTENT, (budget - sum(bare[:most])) // max(1, most))
    notes = list(findings.notes)
    if len(hits) > most:
        notes.append(
            f"{len(hits) - most} more results did not fit in {budget} characters; ask for fewer or be specific"
        )
    for one, hit in zip(shaped[:most], hits, strict=False):
        one["content"] = cut(hit.chunk.text, allowance)
    if any(one["content"] != hit.chunk.text for one, hit in zip(shaped[:most], hits, strict=False)):
        notes.append("contents ending in … are cut; read the file at the given lines for the rest")
    return shaped[:most], findings.omitted + len(hits[most:]), notes


def within(items: Iterable[Item], budget: int) -> list[Item]:
    """Return the first items that together stay within the budget."""
    kept = []
    for item in items:
        budget -= cost(item) + 2
        if budget < 0:
            break
        kept.append(item)
    return kept


def cut(text: str, length: int) -> str:
    """Shorten a text at the end of a line or word, so that it costs no more than this."""
    if cost(text) <= length:
        return text
    fitting = bisect.bisect_right(
        range(min(len(text), length)), length, key=lambda size: cost(text[:size] + "…")
    )
    head = text[: max(1, fitting - 1)]
    newline, space = head.rfind("\n"), head.rfind(" ")
    at = newline if newline > len(head) // 2 else space if space > len(head) // 2 else len(head)
    return head[:at].rstrip() + "…"


def title(document: Document) -> str:
    """Return a title of reasonable length."""
    return cut(document.title, LONGEST_TITLE)


def tags(document: Document) -> list[str]:
    """Return a document's tags; a sign at the end tells that there are more."""
    return [*document.tags[:MOST_TAGS], *(["…"] if len(document.tags) > MOST_TAGS else [])]


def lines(hit: Hit) -> str:
    """Return the line range of a hit."""
    return f"{hit.chunk.start_line}-{hit.chunk.end_line}"


def header(hit: Hit) -> str:
    """Return the heading path of a hit."""
    return STEP.join(hit.chunk.headings)


def place(title: str, header_path: str) -> str:
    """Return a title and a heading path below it.

    A path that begins with the title says it already.
    """
    if not header_path or header_path == title or header_path.startswith(f"{title}{STEP}"):
        return header_path or title
    # Not joined like headings: a title in front would make a path that may be another section's.
    return f"{title}{TITLE_MARK}{header_path}"


def why(hit: Hit) -> str:
    """Say in words why a hit was found."""
    reasons = []
    sources = {signal.source: signal for signal in hit.signals}
    if hit.words:
        shown = ", ".join(hit.words[:8])
        reasons.append(f"words: {cut(shown, LONGEST_TITLE)}")
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
    return "; ".join(reasons) or "links to the document"


def signals(hit: Hit) -> list[SignalShape]:
    """Return every contribution to a hit's score."""
    return [
        SignalShape(
            probe=s.probe,
            source=s.source,
            rank=s.rank,
            raw=round(s.raw, 4),
            share=round(s.share, 4),
        )
        for s in hit.signals
    ]


def age(moment: datetime | None, now: datetime) -> str:
    """Say how long ago something was, in the largest unit that fits."""
    if moment is None:
        return "age unknown"
    seconds = (now - moment).total_seconds()
    # Clocks of two machines differ a little.
    if seconds < -MINUTE:
        return "in the future"
    for unit, length in UNITS:
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now" if seconds < MINUTE else f"{int(seconds // MINUTE)} min ago"


def provenance(document: Document) -> Provenance:
    """Say who wrote a memory, from where.

    And at which state of the code, as far as the memory says so.
    """
    git = document.git
    said = {
        "author": document.extra.get("author") or "",
        "source": document.source,
        "branch": git.branch if git else "",
        "commit": git.commit if git else "",
    }
    return cast(
        "Provenance",
        {name: cut(str(value), LONGEST_ORIGIN) for name, value in said.items() if value},
    )


def moment(value: datetime | None) -> str | None:
    """Return a date as it is written in an answer, if there is one."""
    return iso(value) if value else None


def iso(value: datetime) -> str:
    """Write a moment as answers have it: in UTC, to the second, with a Z."""
    return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def excerpt(
    text: str, first: int, span: tuple[int, int] | None, budget: int
) -> tuple[str, str, str]:
    """Cut whole lines out of a text: (content, line range, what was left out and how to get it)."""
    every = text.split("\n")
    start, end = span or (first, first + len(every) - 1)
    last = first + len(every) - 1
    if start > last or end < start or start < first:
        raise ValidationError(
            f"lines {start}-{end} are outside {first}-{last}",
            f'Ask for lines within "{first}-{last}"',
        )
    end = min(end, last)
    chosen = every[start - first : end - first + 1]
    size, count = 0, 0
    for line in chosen:
        # As in JSON, where the two quotes stand for the escaped end of the line.
        size += len(_write(line))
        if size > budget and count:
            break
        count += 1
    content = "\n".join(chosen[:count])
    shown = f"{start}-{start + count - 1}"
    if count < len(chosen):
        return (
            content,
            shown,
            f'lines {start + count}-{end} are left out; ask for lines="{start + count}-{end}"',
        )
    if size > budget:
        return (
            cut(content, budget),
            shown,
            f"line {start} is longer than {budget} characters and is cut",
        )
    return content, shown, ""


def parse_lines(text: str | None) -> tuple[int, int] | None:
    """Read a line range such as "10-40" or "12"."""
    if text is None or not text.strip():
        return None
    start, _, end = text.strip().partition("-")
    if not start.strip().isdecimal() or (end and not end.strip().isdecimal()):
        raise ValidationError(f'"{text[:40]}" is not a line range', 'Write it as "10-40" or "12"')
    return int(start), int(end or start)


def removed(written: Written) -> list[str]:
    """Say which secrets were kept out of a text that was written, and what went wrong beside it."""
    secrets = [f"a secret was replaced by a placeholder: {what}" for what in written.removed]
    return [*secrets, *written.notes]


def tally(values: Sequence[str]) -> dict[str, int]:
    """Count values, the most frequent first."""
    counts: dict[str, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def size(count: int) -> str:
    """Return a number of bytes as a person reads it."""
    if count < 1024:  # noqa: PLR2004 - bytes in a kilobyte
        return f"{count}B"
    return f"{count / 1024:.1f}KB" if count < 1024**2 else f"{count / 1024**2:.1f}MB"
