"""Words for a moment in the past: "1d", "yesterday", "last week", "monday", "2026-02-04"."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta

from ragdocs import caller
from ragdocs.errors import ValidationError

HINT = 'Write it as "30m", "12h", "1d", "1w", "today", "yesterday", "monday", "last week", "last month" or "2026-02-04"'
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# Months and years as people count back: nobody means an hour of them.
UNITS = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "mo": 2_629_800, "y": 31_557_600}

_SPAN = re.compile(
    r"(?:(?:the )?(?:last|past) )?(?P<count>\d{1,9}|an?) ?"
    r"(?:(?P<m>m|mins?|minutes?)|(?P<h>h|hrs?|hours?)|(?P<d>d|days?)|(?P<w>w|wks?|weeks?)|(?P<mo>mo|months?)|"
    r"(?P<y>y|yrs?|years?))(?: ago)?"
)


def since(text: str, now: datetime) -> datetime:
    """Return in UTC the moment that an expression means on the clock of the current caller."""
    asking = caller.current()
    return asking.universal(start(text, asking.local(now)))


def start(text: str, now: datetime) -> datetime:
    """Return the moment that an expression means; one without an offset is on the clock of whoever asks.

    `now` has an offset. A day, a week (from Monday) and a month begin at midnight; a weekday is the last one before
    today.
    """
    words = " ".join(text.casefold().replace("_", " ").split()).removeprefix("since ")
    span = _SPAN.fullmatch(words)
    try:
        if span and span.lastgroup:
            count = 1 if span["count"].startswith("a") else int(span["count"])
            # In UTC, because hours on a clock are not all there when it is set to summer time.
            return now.astimezone(UTC) - timedelta(seconds=count * UNITS[span.lastgroup])
        day = _day(words, now.date())
        return datetime.combine(day, time.min) if day else datetime.fromisoformat(text.strip())
    except OverflowError:
        # Longer ago than there are dates: everything.
        return datetime.min.replace(year=2, tzinfo=now.tzinfo)
    except ValueError:
        raise ValidationError(f"{text[:60]!r} is not a time", HINT) from None


def _day(words: str, today: date) -> date | None:
    monday = today - timedelta(days=today.weekday())
    first = today.replace(day=1)
    named = {
        "today": today,
        "yesterday": today - timedelta(days=1),
        "this week": monday,
        "last week": monday - timedelta(days=7),
        "this month": first,
        "last month": (first - timedelta(days=1)).replace(day=1),
        "this year": first.replace(month=1),
        "last year": first.replace(year=today.year - 1, month=1),
    }
    name = words.removeprefix("last ")
    weekday = next((n for n, day in enumerate(DAYS) if name in {day, day[:3]}), None)
    if weekday is not None:
        return today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1)
    return named.get(words)
