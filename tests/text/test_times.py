"""Words for a moment in the past."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from ragdocs.errors import ValidationError
from ragdocs.text import times

# A Thursday, in a zone that is not UTC.
NOW = datetime(2026, 3, 12, 15, 30, tzinfo=timezone(timedelta(hours=2)))


@pytest.mark.parametrize(
    ("text", "back"),
    [
        ("30m", timedelta(minutes=30)),
        ("12h", timedelta(hours=12)),
        ("1d", timedelta(days=1)),
        ("1w", timedelta(weeks=1)),
        ("2 weeks", timedelta(weeks=2)),
        ("3 Days Ago", timedelta(days=3)),
        ("an hour ago", timedelta(hours=1)),
        ("last 24 hours", timedelta(hours=24)),
        ("the past 10 minutes", timedelta(minutes=10)),
        ("since 2d", timedelta(days=2)),
        ("0d", timedelta()),
        ("two weeks ago", timedelta(weeks=2)),
        ("a couple of days ago", timedelta(days=2)),
        ("in the last twelve hours", timedelta(hours=12)),
        ("past three days", timedelta(days=3)),
        ("1 hr", timedelta(hours=1)),
    ],
)
def test_a_span_counts_back_from_now(text: str, back: timedelta) -> None:
    assert times.start(text, NOW) == NOW - back


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("today", (2026, 3, 12)),
        ("Yesterday", (2026, 3, 11)),
        ("this week", (2026, 3, 9)),
        ("last week", (2026, 3, 2)),
        ("last_week", (2026, 3, 2)),
        ("this month", (2026, 3, 1)),
        ("last month", (2026, 2, 1)),
        ("last year", (2025, 1, 1)),
        ("monday", (2026, 3, 9)),
        ("Wed", (2026, 3, 11)),
        ("thursday", (2026, 3, 5)),
        ("last friday", (2026, 3, 6)),
        (" 2026-02-04 ", (2026, 2, 4)),
        ("the day before yesterday", (2026, 3, 10)),
        ("last weekend", (2026, 3, 7)),
        ("last June", (2025, 6, 1)),
        ("last march", (2025, 3, 1)),
        ("march", (2026, 3, 1)),
        ("December 2024", (2024, 12, 1)),
        ("this morning", (2026, 3, 12)),
    ],
)
def test_a_day_begins_at_midnight_on_the_clock_of_whoever_asks(
    text: str, day: tuple[int, int, int]
) -> None:
    found = times.start(text, NOW)
    assert found == datetime(*day, tzinfo=NOW.tzinfo)


def test_a_weekday_is_the_last_one_before_today() -> None:
    for ahead in range(7):
        now = NOW + timedelta(days=ahead)
        for day in times.WEEKDAYS:
            found = times.start(day, now).astimezone(now.tzinfo)
            assert found.strftime("%A").lower() == day
            assert 1 <= (now.date() - found.date()).days <= 7


def test_a_time_with_an_offset_keeps_it() -> None:
    assert times.start("2026-02-04T09:00:00Z", NOW) == datetime(2026, 2, 4, 9, tzinfo=UTC)
    assert times.start("2026-02-04T09:00+05:30", NOW) == datetime(2026, 2, 4, 3, 30, tzinfo=UTC)
    assert times.start("2026-02-04T09:00", NOW) == datetime(2026, 2, 4, 7, tzinfo=UTC)


def test_longer_ago_than_there_are_dates_is_everything() -> None:
    assert times.start("999999999y", NOW).year == 2
    assert times.start("9999999d", NOW).year == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "last minute",
        "2027-01-01",
        "december 2026",
        "0001-01-01T00:00:00+23:00",
        "9999-12-31",
        "1x",
        "-1d",
        "tomorrow",
        "2026-13-01",
        "1e9d",
        "d",
        "٣d" * 3,
        "a" * 10_000,
    ],
)
def test_what_is_no_time_is_refused_with_the_forms_that_work(text: str) -> None:
    with pytest.raises(ValidationError, match="yesterday"):
        times.start(text, NOW)


def test_midnight_is_that_of_the_zone_in_summer_and_in_winter() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    now = datetime(2026, 4, 2, 12, tzinfo=berlin)
    assert times.start("2026-03-28", now) == datetime(2026, 3, 27, 23, tzinfo=UTC)
    assert times.start("2026-03-30", now) == datetime(2026, 3, 29, 22, tzinfo=UTC)
    assert times.start("last month", now) == datetime(2026, 2, 28, 23, tzinfo=UTC)
    # Hours are hours, also in the night that has only 23.
    assert times.start("24h", datetime(2026, 3, 29, 12, tzinfo=berlin)) == datetime(
        2026, 3, 28, 10, tzinfo=UTC
    )


def test_the_local_zone_knows_summer_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        now = datetime(2026, 4, 2, 10, tzinfo=UTC).astimezone(times.LOCAL)
        assert (now.hour, now.tzname()) == (12, "CEST")
        assert times.start("2026-03-28", now) == datetime(2026, 3, 27, 23, tzinfo=UTC)
    time.tzset()


@pytest.mark.parametrize(
    "words",
    [
        "today",
        "yesterday",
        "last week",
        "this month",
        "last month",
        "last friday",
        "last june",
        "2026-02-04",
    ],
)
def test_since_begins_where_a_query_with_the_same_words_does(words: str) -> None:
    span = times.span(f"what did we decide {words} about tokens", NOW)
    assert span is not None
    assert span[0] == times.start(words, NOW)


@pytest.mark.parametrize("words", ["two weeks ago", "3 days ago", "a month ago", "five hours ago"])
def test_a_query_means_some_time_around_what_since_begins_with(words: str) -> None:
    span = times.span(words, NOW)
    assert span is not None
    assert span[0] <= times.start(words, NOW) < span[1]
