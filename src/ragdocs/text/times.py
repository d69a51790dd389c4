"""The time that a query means: "yesterday", "two weeks ago", "last Saturday", "in the past three months"."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import datetime, timedelta

Span = tuple[datetime, datetime]

# A time is named in a question, not in a page that was pasted.
LONGEST = 1000
_DAY = timedelta(days=1)
_UNITS = {"day": 1.0, "week": 7.0, "month": 30.44, "year": 365.25}
_COUNTED = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBERS = {word: number for number, word in enumerate(_COUNTED, start=1)}
_NUMBERS |= {"a": 1, "an": 1, "the": 1, "couple": 2, "few": 3, "several": 4}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
# What people count is what they remember: two weeks ago is some day of that week, and three months ago any of thirty.
_SLACK = 0.15

_COUNT = rf"(\d{{1,3}}|{'|'.join(_NUMBERS)})"
_OF = r"\s+(?:of\s+)?(?:the\s+)?"
_AGO = re.compile(rf"\b{_COUNT}{_OF}(day|week|month|year)s?\s+(?:ago|earlier|back)\b")
_PAST = re.compile(rf"\b(past|last|previous)\s+(?:{_COUNT}{_OF})?(day|week|month|year)(s?)\b")
_THIS = re.compile(r"\bthis\s+(week|month|year)\b")
_NAMED = re.compile(rf"\blast\s+({'|'.join((*_WEEKDAYS, *_MONTHS))}|night|weekend)\b")
_NEAR = re.compile(r"\b(the day before yesterday|yesterday|today|tonight|this (?:morning|afternoon|evening))\b")


def span(text: str, now: datetime) -> Span | None:
    """Return the days that a query speaks of, seen from now, or nothing if it names none or a date of its own."""
    lowered = text[:LONGEST].casefold()
    for pattern, read in ((_AGO, _ago), (_NEAR, _near), (_NAMED, _named), (_THIS, _this), (_PAST, _past)):
        if found := pattern.search(lowered):
            return read(found, now.replace(hour=0, minute=0, second=0, microsecond=0))
    return None


def _ago(found: re.Match[str], today: datetime) -> Span:
    days = _number(found[1]) * _UNITS[found[2]]
    slack = max(1.0, _UNITS[found[2]] / 2, days * _SLACK)
    if found[1] in ("few", "several", "couple"):
        slack = max(slack, days * 0.7)
    middle = today - timedelta(days=days)
    return middle - timedelta(days=slack), middle + timedelta(days=slack + 1)


def _near(found: re.Match[str], today: datetime) -> Span:
    back = {"the day before yesterday": 2, "yesterday": 1}.get(found[1], 0)
    return today - back * _DAY, today - (back - 1) * _DAY


def _named(found: re.Match[str], today: datetime) -> Span:
    name = found[1]
    if name in _MONTHS:
        month = _MONTHS.index(name) + 1
        year = today.year - (month >= today.month)
        return _month(today.replace(year=year, month=month, day=1))
    if name == "night":
        return today - _DAY, today + _DAY / 2
    weekday, length = (5, 2) if name == "weekend" else (_WEEKDAYS.index(name), 1)
    start = today - ((today.weekday() - weekday - 1) % 7 + 1) * _DAY
    return start, start + length * _DAY


def _this(found: re.Match[str], today: datetime) -> Span:
    starts = {
        "week": today - today.weekday() * _DAY,
        "month": today.replace(day=1),
        "year": today.replace(month=1, day=1),
    }
    return starts[found[1]], today + _DAY


def _past(found: re.Match[str], today: datetime) -> Span:
    which, count, unit, plural = found.groups()
    if count or plural or which == "past":
        # "In the last few months" and "in the past month" reach until now.
        many = _number(count or ("few" if plural else "one"))
        return today - timedelta(days=(many + 0.5) * _UNITS[unit]), today + _DAY
    if unit == "month":
        return _month((today.replace(day=1) - _DAY).replace(day=1))
    if unit == "year":
        return today.replace(year=today.year - 1, month=1, day=1), today.replace(month=1, day=1)
    if unit == "day":
        return today - _DAY, today + _DAY
    return today - (today.weekday() + 7) * _DAY, today - today.weekday() * _DAY


def _month(first: datetime) -> Span:
    return first, first + monthrange(first.year, first.month)[1] * _DAY


def _number(written: str) -> int:
    return int(written) if written.isdecimal() else _NUMBERS[written]
