"""What all summaries of steps promise, wherever they are."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from ragdocs.errors import ValidationError
from ragdocs.protocols import Summaries
from ragdocs.stores.summaries import Limits

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
LIMITS = Limits(shown=10, entries=100, size=1_000_000)
SECRET = "ghp_" + "a1B2c3D4e5F6" * 3
# Opens the summaries of a scope of this name.
Open = Callable[[str, Limits], Summaries]


def steps(summaries: Summaries) -> list[str]:
    return [record.step_id for record in summaries.newest()]


class SummariesContract:
    """A test of summaries gives an `open_summaries` fixture."""

    @pytest.fixture
    def open_summaries(self) -> Open:
        raise NotImplementedError

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            (("r", "s", "x" * 65_537, ()), "larger than 64 KB"),
            (("r", "s", "ä" * 32_769, ()), "larger than 64 KB"),
            (("r", "s" * 201, "x", ()), "step_id is longer"),
        ],
    )
    def test_what_is_no_summary_is_refused(
        self, open_summaries: Open, arguments: tuple[str, str, str, tuple[()]], complaint: str
    ) -> None:
        summaries = open_summaries("a", LIMITS)
        with pytest.raises(ValidationError, match=complaint):
            summaries.append(*arguments, NOW)
        assert summaries.newest() == []
        summaries.append("r", "s", "x" * 65_536, (), NOW)
        assert len(summaries.newest()[0].text) == 65_536

    def test_the_oldest_leave_when_there_are_too_many_or_too_much(
        self, open_summaries: Open
    ) -> None:
        few = open_summaries("few", replace(LIMITS, entries=3))
        for number in range(5):
            answer = few.append("r", str(number), "x", (), NOW)
        assert (answer.total, answer.pruned) == (3, 1)
        assert steps(few) == ["4", "3", "2"]
        small = open_summaries("small", replace(LIMITS, size=1000))
        for number in range(20):
            answer = small.append("r", str(number), "y" * 100, (), NOW)
        assert 3 < answer.total < 8
        assert steps(small)[0] == "19"
        small.append("r", "large", "z" * 5000, (), NOW)
        assert steps(small) == ["large"], "the newest stays, whatever its size"

    def test_a_summary_is_read_as_it_was_written(self, open_summaries: Open) -> None:
        summaries = open_summaries("a", LIMITS)
        text = "Added caching.\r\nNext: tests \U0001f600 \\n \x1f"
        written = summaries.append(" run  1 ", "step-1", text, ["cache", "x,y", "{}"], NOW)
        assert summaries.newest() == [written.summary]
        record = written.summary
        assert (record.run_id, record.timestamp) == ("run 1", "2026-11-16T12:00:00.000Z")
        assert (record.text, record.tags) == (text, ("cache", "x,y", "{}"))
        assert written.path.endswith(summaries.name)
        assert summaries.shown == LIMITS.shown

    def test_the_newest_come_first_and_none_is_lost(self, open_summaries: Open) -> None:
        summaries = open_summaries("a", LIMITS)
        minutes = (3, 0, 5, 3, 3, 1, 0)
        for number, minute in enumerate(minutes):
            summaries.append("r", str(number), "x", (), NOW + timedelta(minutes=minute))
        assert steps(summaries) == ["2", "4", "3", "0", "5", "6", "1"]
        assert summaries.newest(2) == summaries.newest()[:2]

    def test_no_secret_is_written(self, open_summaries: Open) -> None:
        summaries = open_summaries("a", LIMITS)
        answer = summaries.append(f"run {SECRET}", SECRET, f"used {SECRET}", [SECRET], NOW)
        assert SECRET not in repr(summaries.newest())
        assert SECRET not in repr(answer)
        assert answer.redacted

    def test_several_writers_lose_nothing(self, open_summaries: Open) -> None:
        limits = replace(LIMITS, entries=1000)

        def write(number: int) -> None:
            summaries = open_summaries("a", limits)
            for step in range(10):
                summaries.append(f"run {number}", str(step), "x", (), NOW)

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(write, range(4)))
        found = {(record.run_id, record.step_id) for record in open_summaries("a", limits).newest()}
        assert len(found) == 40

    def test_what_another_branch_has_comes_in_the_order_of_time(self, open_summaries: Open) -> None:
        one = open_summaries("one", LIMITS)
        other = open_summaries("other", replace(LIMITS, entries=3))
        assert other.take(one) == 0
        for number in range(3):
            one.append("one", str(number), "x", (), NOW + timedelta(minutes=2 * number))
            other.append("other", str(number), "x", (), NOW + timedelta(minutes=2 * number + 1))
        assert other.take(one) == 3
        order = [(record.run_id, record.step_id) for record in other.newest()]
        assert order == [("other", "2"), ("one", "2"), ("other", "1")], (
            "the oldest leave, whoever had them"
        )
        assert one.take(one) == 0
