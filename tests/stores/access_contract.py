"""What every log of accesses promises."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ragdocs.stores import access

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
# Opens the log of a project.
Open = Callable[[str], Any]


class AccessLogContract:
    """A test of a log gives an `open_log` fixture."""

    @pytest.fixture
    def open_log(self) -> Open:
        raise NotImplementedError

    def test_accesses_are_counted_by_kind_and_listed_with_score_and_query(
        self, open_log: Open
    ) -> None:
        log = open_log("shop")
        assert log.note("search", [("mem_a", 0.9), ("mem_b", 0.4)], NOW, "dark theme")
        assert log.note("get", [("mem_a", None)], NOW + timedelta(seconds=1))
        assert log.note("used", [("mem_a", None)], NOW + timedelta(seconds=2))
        assert log.note("used", [("mem_a", None)], NOW + timedelta(seconds=1))
        assert log.counts("used") == {"mem_a": 2}
        assert log.counts("search") == {"mem_a": 1, "mem_b": 1}
        assert log.totals() == {"get": 1, "search": 2, "used": 2}
        assert log.of("mem_a") == ({"get": 1, "search": 1, "used": 2}, NOW + timedelta(seconds=2))
        assert log.of("mem_c") == ({"get": 0, "search": 0, "used": 0}, None)
        moment = int(NOW.timestamp() * 1000)
        assert log.recent()[-2:] == [
            ("mem_b", moment, "search", 0.4, "dark theme"),
            ("mem_a", moment, "search", 0.9, "dark theme"),
        ]

    def test_projects_share_the_file_and_nothing_else(self, open_log: Open) -> None:
        shop, other = open_log("shop"), open_log("other")
        shop.note("used", [("mem_a", None)], NOW)
        assert open_log("shop").counts("used") == {"mem_a": 1}, "the next start knows it"
        assert other.totals() == {"get": 0, "search": 0, "used": 0}
        assert other.recent() == []
        assert other.counts("used") == {}

    def test_the_list_is_bounded_and_the_counts_are_kept(
        self, open_log: Open, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(access, "MOST_ROWS", 5)
        log = open_log("shop")
        for _ in range(4):
            log.note("search", [("mem_a", 1.0), ("mem_b", 0.5)], NOW)
        assert len(log.recent()) == 5
        assert log.totals()["search"] == 8

    def test_several_writers_lose_nothing(self, open_log: Open) -> None:
        logs = [open_log("shop") for _ in range(4)]
        done: list[bool] = []

        def write(log: Any) -> None:
            done.extend(log.note("used", [("mem_a", None)], NOW) for _ in range(25))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, logs))
        assert logs[0].counts("used") == {"mem_a": sum(done)}
        assert all(done)
