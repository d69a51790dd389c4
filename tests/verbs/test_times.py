"""Words for a moment in the past."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from ragdocs.errors import ValidationError
from ragdocs.verbs import times

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
    ],
)
def test_a_day_begins_at_midnight_on_the_clock_of_whoever_asks(text: str, day: tuple[int, int, int]) -> None:
    found = times.start(text, NOW)
    assert found == datetime(*day)  # noqa: DTZ001 - no offset is the point
    assert found.tzinfo is None


def test_a_weekday_is_the_last_one_before_today() -> None:
    for ahead in range(7):
        now = NOW + timedelta(days=ahead)
        for day in times.DAYS:
            found = times.start(day, now)
            assert found.strftime("%A").lower() == day
            assert 1 <= (now.date() - found.date()).days <= 7


def test_a_time_with_an_offset_keeps_it() -> None:
    assert times.start("2026-02-04T09:00:00Z", NOW) == datetime(2026, 2, 4, 9, tzinfo=UTC)
    assert times.start("2026-02-04T09:00+05:30", NOW).utcoffset() == timedelta(hours=5, minutes=30)
    assert times.start("2026-02-04T09:00", NOW).tzinfo is None


def test_longer_ago_than_there_are_dates_is_everything() -> None:
    assert times.start("999999999y", NOW).year == 2
    assert times.start("9999999d", NOW).year == 2


@pytest.mark.parametrize(
    "text", ["", "soon", "1x", "-1d", "tomorrow", "2026-13-01", "1e9d", "d", "٣d" * 3, "a" * 10_000]
)
def test_what_is_no_time_is_refused_with_the_forms_that_work(text: str) -> None:
    with pytest.raises(ValidationError, match="yesterday"):
        times.start(text, NOW)
