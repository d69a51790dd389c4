"""Words for a time, seen from now: "12h", "yesterday", "two weeks ago", "last June", "2026-02-04".

A query may name a time among other words, and means the days around it; `since` is such a time and
nothing else, and means its beginning. Days are those of the zone that `now` is given in.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo

from ragdocs.errors import ValidationError
from ragdocs.system.patterns import later

Span = tuple[datetime, datetime]

HINT = (
    'Write it as "30m", "12h", "1d", "today", "yesterday", "monday", "two weeks ago", '
    '"last week", "last June" or "2026-02-04"'
)
# A time is named in a question, not in a page that was pasted.
LONGEST = 1000
# Clocks of two machines differ, by minutes or by a zone that was set wrong; what is further ahead
# is in the future.
SKEW = timedelta(days=1)

_DAY = timedelta(days=1)
# Months and years as people count back: nobody means an hour of them.
_UNITS = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": _DAY,
    "week": 7 * _DAY,
    "month": 30.44 * _DAY,
    "year": 365.25 * _DAY,
}
_SHORT = {
    "min": "minute",
    "mo": "month",
    "hr": "hour",
    "wk": "week",
    "yr": "year",
    "m": "minute",
    "h": "hour",
    "d": "day",
    "w": "week",
    "y": "year",
}
_COUNTED = (
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
_NUMBERS = dict(zip(_COUNTED, range(1, 13), strict=True))
_NUMBERS |= {"a": 1, "an": 1, "the": 1, "couple": 2, "few": 3, "several": 4}
_VAGUE = frozenset({"couple", "few", "several"})
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
# What people count is what they remember: two weeks ago is some day of that week, and three months
# ago any of thirty.
_SLACK = 0.15
_VAGUE_SLACK = 0.7

_COUNT = rf"(?:an? )?(\d{{1,9}}|{'|'.join(_NUMBERS)})"
_OF = r"\s+(?:of\s+)?(?:the\s+)?"
_UNIT = "(minute|hour|day|week|month|year)"
_AGO = later(rf"\b{_COUNT}{_OF}{_UNIT}s?\s+(?:ago|earlier|back)\b")
_PAST = later(
    rf"\b(past|last|previous)\s+(?:{_COUNT}{_OF})?(?:(day|week|month|year)|(hour|minute))(s?)\b"
)
_THIS = later(r"\bthis\s+(week|month|year)\b")
_NAMED = later(rf"\blast\s+({'|'.join((*WEEKDAYS, *_MONTHS))}|night|weekend)\b")
_NEAR = later(
    r"\b(the day before yesterday|yesterday|today|tonight|this (?:morning|afternoon|evening))\b"
)
_DATE = later(r"\b(\d{4})-(\d\d)-(\d\d)\b(?!-)")

# Only where nothing but a time is asked for: "12h" in a question is rarely one, and a month stands
# in the date itself.
_COUNTED_BACK = later(
    rf"(?:(?:the )?(?:last|past|previous) )?(?:{_COUNT}(?: of)? ?)"
    rf"(minute|hour|day|week|month|year|{'|'.join(_SHORT)})s?(?: ago| earlier| back)?"
)
_WEEKDAY = later(rf"(?:last )?({'|'.join(WEEKDAYS)}|mon|tue|wed|thu|fri|sat|sun)")
_MONTH = later(rf"({'|'.join(_MONTHS)})(?: (\d{{4}}))?")
_LEADING = later(r"^(?:since|from|in|on) (?:the )?|^the (?=last|past|previous)")


class _LocalZone(tzinfo):
    """The zone of the clock on the wall, with its summer time.

    `astimezone()` gives one offset for all days.
    """

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        if not moment:
            return None
        return moment.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, moment: datetime | None) -> timedelta | None:
        del moment
        return None

    def tzname(self, moment: datetime | None) -> str | None:
        if not moment:
            return None
        return moment.replace(tzinfo=None).astimezone().tzname()

    def fromutc(self, moment: datetime) -> datetime:
        return moment.replace(tzinfo=UTC).astimezone().replace(tzinfo=self)


LOCAL: tzinfo = _LocalZone()


def span(text: str, now: datetime) -> Span | None:
    """Return the time that a query speaks of, or nothing if it names none."""
    lowered = text[:LONGEST].casefold()
    for pattern, read in _READERS:
        match = pattern.search(lowered)
        if match:
            try:
                return read(match, now)
            except (OverflowError, ValueError):
                # A date that there is not, or one before all dates.
                return None
    return None


def start(text: str, now: datetime) -> datetime:
    """Return the moment at which a time begins; a weekday is the last one before today.

    Minutes, hours and counted days reach back from now; all others begin at midnight.
    """
    words = " ".join(text.casefold().replace("_", " ").split())
    words = _LEADING.sub("", words, count=1)
    try:
        begin = _start(words, text, now).astimezone(UTC)
    except (OverflowError, ValueError, OSError):
        message = f"{text[:60]!r} is not a time that can be searched for"
        raise ValidationError(message, HINT) from None
    if begin > now + SKEW:
        raise ValidationError(f"{text[:60]!r} is in the future", HINT)
    return begin


def stamp(moment: datetime) -> str:
    """Write a moment of UTC with all its digits, so that two of one second keep their order."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def written(value: object) -> datetime | None:
    """Read a time of a field; one without a zone is in UTC."""
    try:
        moment = datetime.fromisoformat(str(value))
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _start(words: str, text: str, now: datetime) -> datetime:
    counted = _COUNTED_BACK.fullmatch(words)
    if counted:
        unit = _SHORT.get(counted[2], counted[2])
        return _back(_number(counted[1]), _UNITS[unit], now)
    weekday = _WEEKDAY.fullmatch(words)
    if weekday:
        return _last_weekday(weekday[1][:3], _midnight(now))
    month = _MONTH.fullmatch(words)
    if month:
        return _first_of_month(month[1], month[2], _midnight(now))
    for pattern, read in _READERS:
        match = pattern.fullmatch(words)
        if match:
            return read(match, now)[0]
    written = datetime.fromisoformat(text.strip())
    if written.tzinfo:
        return written
    return written.replace(tzinfo=now.tzinfo)


def _back(count: int, unit: timedelta, now: datetime) -> datetime:
    try:
        return now.astimezone(UTC) - count * unit
    except OverflowError:
        # Longer ago than there are dates: everything.
        return datetime(2, 1, 1, tzinfo=UTC)


# --- what each pattern means ---


def _ago(match: re.Match[str], now: datetime) -> Span:
    unit = _UNITS[match[2]]
    back = _number(match[1]) * unit
    slack = max(unit / 2, back * _SLACK)
    if match[1] in _VAGUE:
        slack = max(slack, back * _VAGUE_SLACK)
    if unit < _DAY:
        middle = now.astimezone(UTC) - back
        return middle - slack, middle + slack
    slack = max(_DAY, slack)
    middle = _midnight(now) - back
    return middle - slack, middle + slack + _DAY


def _near(match: re.Match[str], now: datetime) -> Span:
    day = _midnight(now)
    if match[1] == "yesterday":
        day -= _DAY
    elif match[1] == "the day before yesterday":
        day -= 2 * _DAY
    return day, day + _DAY


def _named(match: re.Match[str], now: datetime) -> Span:
    name = match[1]
    today = _midnight(now)
    if name in _MONTHS:
        month = _MONTHS.index(name) + 1
        year = today.year - (month >= today.month)
        return _whole_month(today.replace(year=year, month=month, day=1))
    if name == "night":
        return today - _DAY, today + _DAY / 2
    if name == "weekend":
        saturday = _last_weekday("sat", today)
        return saturday, saturday + 2 * _DAY
    day = _last_weekday(name[:3], today)
    return day, day + _DAY


def _this(match: re.Match[str], now: datetime) -> Span:
    today = _midnight(now)
    if match[1] == "week":
        begin = _monday(today)
    elif match[1] == "month":
        begin = today.replace(day=1)
    else:
        begin = today.replace(month=1, day=1)
    return begin, today + _DAY


def _past(match: re.Match[str], now: datetime) -> Span:
    which, written, unit, brief, plural = match.groups()
    count = 1
    if written:
        count = _number(written)
    elif plural:
        count = _NUMBERS["few"]
    if brief:
        # "Last minute" alone is a manner of speaking.
        if brief == "minute" and not written:
            raise ValueError(match[0])
        end = now.astimezone(UTC)
        return end - (count + 0.5) * _UNITS[brief], end + _DAY
    today = _midnight(now)
    if written or plural or which == "past":
        # "In the last few months" and "in the past month" reach until now.
        return today - (count + 0.5) * _UNITS[unit], today + _DAY
    return _last(unit, today)


def _last(unit: str, today: datetime) -> Span:
    """Return the whole day, week, month or year before this one; the last day reaches until now."""
    if unit == "month":
        last_day = today.replace(day=1) - _DAY
        return _whole_month(last_day.replace(day=1))
    if unit == "year":
        new_year = today.replace(month=1, day=1)
        return new_year.replace(year=today.year - 1), new_year
    if unit == "day":
        return today - _DAY, today + _DAY
    monday = _monday(today)
    return monday - 7 * _DAY, monday


def _dated(match: re.Match[str], now: datetime) -> Span:
    year, month, day = map(int, match.groups())
    begin = datetime(year, month, day, tzinfo=now.tzinfo)
    return begin, begin + _DAY


_READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], datetime], Span]], ...] = (
    (_AGO, _ago),
    (_NEAR, _near),
    (_NAMED, _named),
    (_THIS, _this),
    (_PAST, _past),
    (_DATE, _dated),
)


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _monday(today: datetime) -> datetime:
    return today - today.weekday() * _DAY


def _last_weekday(short: str, today: datetime) -> datetime:
    """Return the last day of this name before today."""
    day = today - _DAY
    while not WEEKDAYS[day.weekday()].startswith(short):
        day -= _DAY
    return day


def _first_of_month(name: str, year: str | None, today: datetime) -> datetime:
    """Return the beginning of a month: without a year, of the last one that has begun."""
    month = _MONTHS.index(name) + 1
    if year:
        return today.replace(year=int(year), month=month, day=1)
    last_year = today.year - (month > today.month)
    return today.replace(year=last_year, month=month, day=1)


def _whole_month(first: datetime) -> Span:
    _, days = monthrange(first.year, first.month)
    return first, first + days * _DAY


def _number(written: str) -> int:
    if written.isdecimal():
        return int(written)
    return _NUMBERS[written]
