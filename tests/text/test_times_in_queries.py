"""The time that a query names, seen from the day it is asked."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from ragdocs.text.times import span

# A Wednesday.
NOW = datetime(2026, 5, 20, 15, 30, tzinfo=UTC)


def day(month: int, number: int, year: int = 2026) -> datetime:
    return datetime(year, month, number, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "inside", "outside"),
    [
        ("what did we decide yesterday", [day(5, 19)], [day(5, 18), day(5, 20)]),
        ("the day before yesterday we met", [day(5, 18)], [day(5, 17), day(5, 19)]),
        ("what broke this morning", [day(5, 20)], [day(5, 19)]),
        ("what did I buy 10 days ago", [day(5, 10), day(5, 9)], [day(5, 6), day(5, 14)]),
        ("which book did I finish a week ago", [day(5, 13), day(5, 11)], [day(5, 8), day(5, 18)]),
        ("the milestone of four weeks ago", [day(4, 22), day(4, 19)], [day(4, 10), day(5, 4)]),
        ("a couple of days ago I cooked", [day(5, 18), day(5, 17)], [day(5, 14), day(5, 20)]),
        ("two months ago the index was slow", [day(3, 20), day(3, 10)], [day(2, 20), day(5, 1)]),
        (
            "what was the plan a year ago",
            [day(5, 20, 2025), day(2, 1, 2025)],
            [day(5, 1), day(5, 1, 2024)],
        ),
        ("who came last Saturday", [day(5, 16)], [day(5, 9), day(5, 17)]),
        ("last Wednesday's talk", [day(5, 13)], [day(5, 20), day(5, 6)]),
        ("where were we last weekend", [day(5, 16), day(5, 17)], [day(5, 15), day(5, 18)]),
        ("what did we ship last week", [day(5, 11), day(5, 17)], [day(5, 10), day(5, 18)]),
        ("which shoes did I clean last month", [day(4, 1), day(4, 30)], [day(3, 31), day(5, 1)]),
        ("what did I do last June", [day(6, 15, 2025)], [day(6, 15, 2024), day(5, 15)]),
        ("what did we spend last year", [day(1, 1, 2025), day(12, 31, 2025)], [day(1, 1)]),
        ("what I earned this month", [day(5, 1), day(5, 20)], [day(4, 30)]),
        ("dinners in the past month", [day(4, 25), day(5, 20)], [day(4, 1)]),
        ("trips of the last three months", [day(3, 1), day(5, 20)], [day(1, 20)]),
        ("what we said on 2026-05-04", [day(5, 4)], [day(5, 3), day(5, 5)]),
        (
            "what broke two hours ago",
            [datetime(2026, 5, 20, 13, 30, tzinfo=UTC)],
            [day(5, 20), day(5, 19)],
        ),
        ("errors of the last 12 hours", [day(5, 20)], [day(5, 19)]),
        ("videos in the past few weeks", [day(5, 1), day(5, 20)], [day(4, 1)]),
    ],
)
def test_a_span_holds_what_people_mean(
    query: str, inside: list[datetime], outside: list[datetime]
) -> None:
    found = span(query, NOW)
    assert found is not None
    assert all(found[0] <= moment < found[1] for moment in inside)
    assert not any(found[0] <= moment < found[1] for moment in outside)


@pytest.mark.parametrize(
    "query",
    [
        "how many days ago did I buy a smoker",
        "what was my last name",
        "in the past I played chess",
        "what did we decide in May 2026",
        "the last three commits",
        "last minute changes",
        "the page of 2026-13-40",
        "",
    ],
)
def test_a_query_that_names_no_span_has_none(query: str) -> None:
    assert span(query, NOW) is None


def test_counts_that_reach_far_back_are_still_dates() -> None:
    found = span("999 years ago and 999 months ago", NOW)
    assert found is not None
    assert found[0] < found[1] < NOW


def test_days_are_those_of_whoever_asks() -> None:
    tokyo = ZoneInfo("Asia/Tokyo")
    # It is the 21st there already.
    found = span("what did we decide yesterday", NOW.astimezone(tokyo))
    assert found == (datetime(2026, 5, 20, tzinfo=tokyo), datetime(2026, 5, 21, tzinfo=tokyo))
