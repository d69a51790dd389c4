"""The small databases that all processes of a user share."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

from ragdocs.system.sqlite_cache import SideFile

TABLES = "CREATE TABLE IF NOT EXISTS notes (text TEXT NOT NULL);"
# Leaving the write-ahead log needs the file alone: it is refused while anybody else has it open.
TAKE_OVER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0)
try:
    print(connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0])
except sqlite3.OperationalError as error:
    print(error)
"""


def side_file(path: Path) -> SideFile:
    return SideFile(path, TABLES, name="notes", wait_seconds=1.0)


def add_note(connection: sqlite3.Connection) -> int:
    with connection:
        connection.execute("INSERT INTO notes VALUES ('one')")
    return len(connection.execute("SELECT text FROM notes").fetchall())


def test_a_second_user_in_the_process_keeps_the_locks_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "notes.sqlite"
    first = side_file(path)
    second = side_file(path)
    assert first.ask(add_note) == 1
    assert second.ask(add_note) == 2
    del second
    taken = subprocess.run(
        [sys.executable, "-P", "-c", TAKE_OVER, str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert taken.stdout.strip() == "database is locked"
    assert first.ask(add_note) == 3


def test_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "caches" / "notes.sqlite"
    assert side_file(path).ask(add_note) == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_closed_file_is_opened_again_by_whoever_asks(tmp_path: Path) -> None:
    with side_file(tmp_path / "notes.sqlite") as notes:
        assert notes.ask(add_note) == 1
    # The last connection takes the log of SQLite away with it.
    assert [path.name for path in tmp_path.iterdir()] == ["notes.sqlite"]
    assert notes.ask(add_note) == 2
