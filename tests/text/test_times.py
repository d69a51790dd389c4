"""Words for a moment in the past, and the time that a query names."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from tests.text.cases import table

from ragdocs.errors import ValidationError
from ragdocs.text import times

CASES = table("times")
# A Thursday, in a zone that is not UTC.
NOW = datetime(2026, 3, 12, 15, 30, tzinfo=timezone(timedelta(hours=2)))
# A Wednesday.
QUERY_TIME = datetime(2026, 5, 20, 15, 30, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(("text", "back"), CASES["back"].items())
def test_a_span_counts_back_from_now(text: str, back: dict[str, int]) -> None:
    assert times.start(text, NOW) == NOW - timedelta(**back)


@pytest.mark.parametrize(("text", "day"), CASES["day"].items())
def test_a_day_begins_at_midnight_on_the_clock_of_whoever_asks(text: str, day: date) -> None:
    assert times.start(text, NOW) == datetime(day.year, day.month, day.day, tzinfo=NOW.tzinfo)


def test_a_weekday_is_the_last_one_before_today() -> None:
    for ahead in range(7):
        now = NOW + timedelta(days=ahead)
        for day in times.WEEKDAYS:
            start = times.start(day, now).astimezone(now.tzinfo)
            assert start.strftime("%A").lower() == day
            assert 1 <= (now.date() - start.date()).days <= 7


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-02-04T09:00:00Z", datetime(2026, 2, 4, 9, tzinfo=UTC)),
        ("2026-02-04T09:00+05:30", datetime(2026, 2, 4, 3, 30, tzinfo=UTC)),
        ("2026-02-04T09:00", datetime(2026, 2, 4, 7, tzinfo=UTC)),
    ],
)
def test_a_time_with_an_offset_keeps_it(text: str, moment: datetime) -> None:
    assert times.start(text, NOW) == moment


def test_longer_ago_than_there_are_dates_is_everything() -> None:
    assert times.start("999999999y", NOW).year == 2
    assert times.start("9999999d", NOW).year == 2


@pytest.mark.parametrize("text", [*CASES["refused"], "a" * 10_000])
def test_what_is_no_time_is_refused_with_the_forms_that_work(text: str) -> None:
    with pytest.raises(ValidationError, match="yesterday"):
        times.start(text, NOW)


def test_midnight_is_that_of_the_zone_in_summer_and_in_winter() -> None:
    now = datetime(2026, 4, 2, 12, tzinfo=BERLIN)
    assert times.start("2026-03-28", now) == datetime(2026, 3, 27, 23, tzinfo=UTC)
    assert times.start("2026-03-30", now) == datetime(2026, 3, 29, 22, tzinfo=UTC)
    assert times.start("last month", now) == datetime(2026, 2, 28, 23, tzinfo=UTC)
    # Hours are hours, also in the night that has only 23.
    short_day = datetime(2026, 3, 29, 12, tzinfo=BERLIN)
    assert times.start("24h", short_day) == datetime(2026, 3, 28, 10, tzinfo=UTC)


def test_the_local_zone_knows_summer_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        now = datetime(2026, 4, 2, 10, tzinfo=UTC).astimezone(times.LOCAL)
        assert (now.hour, now.tzname()) == (12, "CEST")
        assert times.start("2026-03-28", now) == datetime(2026, 3, 27, 23, tzinfo=UTC)
    time.tzset()


def noon(day: date) -> datetime:
    """Return the noon of a day, or the moment itself."""
    if isinstance(day, datetime):
        return day.replace(tzinfo=UTC)
    return datetime(day.year, day.month, day.day, 12, tzinfo=UTC)


@pytest.mark.parametrize(("query", "days"), CASES["query"].items())
def test_the_span_of_a_query_holds_what_people_mean(query: str, days: list[list[date]]) -> None:
    span = times.span(query, QUERY_TIME)
    assert span is not None
    inside, outside = days
    assert all(span[0] <= noon(day) < span[1] for day in inside)
    assert not any(span[0] <= noon(day) < span[1] for day in outside)


@pytest.mark.parametrize("query", CASES["queries_without_a_time"])
def test_a_query_that_names_no_span_has_none(query: str) -> None:
    assert times.span(query, QUERY_TIME) is None


def test_counts_that_reach_far_back_are_still_dates() -> None:
    span = times.span("999 years ago and 999 months ago", QUERY_TIME)
    assert span is not None
    assert span[0] < span[1] < QUERY_TIME


def test_days_are_those_of_whoever_asks() -> None:
    tokyo = ZoneInfo("Asia/Tokyo")
    # It is the 21st there already.
    span = times.span("what did we decide yesterday", QUERY_TIME.astimezone(tokyo))
    assert span == (datetime(2026, 5, 20, tzinfo=tokyo), datetime(2026, 5, 21, tzinfo=tokyo))


SAME_DAY = ["today", "yesterday", "last week", "this month", "last month", "last friday"]


@pytest.mark.parametrize("words", [*SAME_DAY, "last june", "2026-02-04"])
def test_since_begins_where_a_query_with_the_same_words_does(words: str) -> None:
    span = times.span(f"what did we decide {words} about tokens", NOW)
    assert span is not None
    assert span[0] == times.start(words, NOW)


@pytest.mark.parametrize("words", ["two weeks ago", "3 days ago", "a month ago", "five hours ago"])
def test_a_query_means_some_time_around_what_since_begins_with(words: str) -> None:
    span = times.span(words, NOW)
    assert span is not None
    assert span[0] <= times.start(words, NOW) < span[1]
