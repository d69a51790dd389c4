"""What is remembered about the use of memories, by several processes.

And what happens when it cannot be.
"""

from __future__ import annotations

import logging
import sqlite3
import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ragdocs.stores import access
from ragdocs.stores.access import SqliteAccessLog

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "access.sqlite"


def test_accesses_are_counted_by_kind_and_listed_with_score_and_query(path: Path) -> None:
    log = SqliteAccessLog(path, "shop")
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


def test_projects_share_the_file_and_nothing_else(path: Path) -> None:
    shop, other = SqliteAccessLog(path, "shop"), SqliteAccessLog(path, "other")
    shop.note("used", [("mem_a", None)], NOW)
    assert other.totals() == {"get": 0, "search": 0, "used": 0}
    assert other.recent() == []
    assert other.counts("used") == {}


def test_the_next_start_knows_what_was_noted(path: Path) -> None:
    SqliteAccessLog(path, "shop").note("used", [("mem_a", None)], NOW)
    assert SqliteAccessLog(path, "shop").counts("used") == {"mem_a": 1}


def test_what_was_searched_for_is_for_its_owner_only_and_cut(path: Path) -> None:
    log = SqliteAccessLog(path, "shop")
    log.note("search", [("mem_a", 1.0)], NOW, "x" * 1000)
    assert len(log.recent()[0][4]) == 200
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_list_is_bounded_and_the_counts_are_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "MOST_ROWS", 5)
    log = SqliteAccessLog(path, "shop")
    for _ in range(4):
        log.note("search", [("mem_a", 1.0), ("mem_b", 0.5)], NOW)
    assert len(log.recent()) == 5
    assert log.totals()["search"] == 8


def test_several_writers_lose_nothing(path: Path) -> None:
    logs = [SqliteAccessLog(path, "shop") for _ in range(4)]
    done: list[bool] = []

    def write(log: SqliteAccessLog) -> None:
        done.extend(log.note("used", [("mem_a", None)], NOW) for _ in range(25))

    threads = [threading.Thread(target=write, args=(log,)) for log in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert logs[0].counts("used") == {"mem_a": sum(done)}
    assert all(done)


def test_a_log_that_is_held_by_somebody_is_done_without_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "WAIT_SECONDS", 0.01)
    log = SqliteAccessLog(path, "shop")
    assert log.note("get", [("mem_a", None)], NOW)
    holder = sqlite3.connect(path)
    holder.execute("BEGIN IMMEDIATE")
    assert not log.note("get", [("mem_a", None)], NOW)
    holder.close()
    assert log.note("get", [("mem_a", None)], NOW)
    assert log.totals()["get"] == 2


def test_a_damaged_log_is_told_once_and_left_alone(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database at all" * 100)
    log = SqliteAccessLog(path, "shop")
    with caplog.at_level(logging.WARNING):
        assert not log.note("used", [("mem_a", None)], NOW)
        assert log.counts("used") == {}
        assert log.of("mem_a")[1] is None
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["No access log"]
    assert path.read_bytes() == b"not a database at all" * 100


def test_where_no_file_can_be_made_nothing_is_noted(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file in the way")
    log = SqliteAccessLog(tmp_path / "state" / "access.sqlite", "shop")
    assert not log.note("used", [("mem_a", None)], NOW)
    assert log.totals() == {"get": 0, "search": 0, "used": 0}
