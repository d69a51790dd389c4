"""What is remembered about the use of memories, also when it cannot be."""

from __future__ import annotations

import functools
import logging
import sqlite3
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ragdocs.stores import access
from ragdocs.stores.access import SqliteAccessLog

from .access_contract import AccessLogContract, Open

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "access.sqlite"


class TestSqliteAccessLog(AccessLogContract):
    @pytest.fixture
    def open_log(self, path: Path) -> Open:
        return functools.partial(SqliteAccessLog, path)


def test_what_was_searched_for_is_for_its_owner_only_and_cut(path: Path) -> None:
    log = SqliteAccessLog(path, "shop")
    log.note("search", [("mem_a", 1.0)], NOW, "x" * 1000)
    assert len(log.recent()[0][4]) == 200
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


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
