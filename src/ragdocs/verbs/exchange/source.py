"""Reading the files of other tools: bounded, without following links, and never changing them."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ragdocs.errors import NotFoundError, ParseError, RagdocsError, ValidationError
from ragdocs.system import files
from ragdocs.text.checks import LONGEST_TEXT

# More is an archive, which nobody reads as memories.
MOST_NOTES = 5_000
# Of a file with many memories in it, and of a database.
LARGEST_FILE = 64_000_000
LARGEST_DATABASE = 1_000_000_000
# Bytes of a file with one memory in it.
LARGEST_NOTE = 4 * LONGEST_TEXT
# Files and folders of any kind that are looked at for texts.
MOST_FILES = 200_000
# Steps of SQLite's machine; a million take less than a second.
MOST_STEPS = 300
_STEP = 1_000_000
_MAGIC = b"SQLite format 3\x00"


def check_exists(path: Path) -> None:
    """Refuse a path at which nothing is."""
    if not path.exists():
        raise NotFoundError(f"there is no file or folder {path}", "Check its spelling")


def is_database(path: Path) -> bool:
    """Tell whether a file is an SQLite database."""
    if not path.is_file():
        return False
    with files.explained("read", path), path.open("rb") as opened:
        return opened.read(len(_MAGIC)) == _MAGIC


def texts(root: Path, suffixes: Sequence[str] = (".md",)) -> list[tuple[str, Path]]:
    """List the texts below a folder with their relative paths; hidden ones and links are left out.

    A file is listed by its name.
    """
    check_exists(root)
    if root.is_file():
        return [(root.name, root)]
    listed = []
    count = 0
    for folder, folders, names in os.walk(root, onerror=_refuse):
        count += len(folders) + len(names)
        if count > MOST_FILES:
            raise ValidationError(f"{root} holds more than {MOST_FILES} files", "Name a part of it")
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(folder, name)
            is_text = path.suffix.lower() in suffixes and not name.startswith(".")
            if not is_text or path.is_symlink():
                continue
            listed.append((path.relative_to(root).as_posix(), path))
            if len(listed) > MOST_NOTES:
                raise ValidationError(
                    f"{root} holds more than {MOST_NOTES} texts", "Import its folders one by one"
                )
    if not listed:
        raise NotFoundError(f"{root} holds no {' or '.join(suffixes)} files", "Name another folder")
    return listed


def _refuse(error: OSError) -> None:
    """Say which folder cannot be listed, instead of leaving out what is in it."""
    raise files.explain(error, "read", str(error.filename)) from error


def read_text(path: Path) -> tuple[str, str]:
    """Return the text of one file, and why it cannot be read."""
    if path.is_symlink():
        return "", f"it is a link; name the file itself, {path.resolve()}"
    try:
        return files.read_bytes(path, LARGEST_NOTE).decode("utf-8-sig"), ""
    except UnicodeDecodeError:
        return "", "it is not UTF-8"
    except RagdocsError as error:
        return "", error.message


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a file of JSON lines, or of one list, with their numbers."""
    check_exists(path)
    try:
        whole = files.read_bytes(path, LARGEST_FILE).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ParseError(f"{path} is not UTF-8", "Nothing was imported") from error
    for count, (number, record) in enumerate(_records(path, whole)):
        if not isinstance(record, dict):
            raise broken(path, number, "not an object")
        if count >= 10 * MOST_NOTES:
            raise ValidationError(f"{path} has more than {10 * MOST_NOTES} lines", "Split it")
        yield number, record


def _records(path: Path, whole: str) -> Iterator[tuple[int, Any]]:
    """Yield the values of a text; many tools export one list instead of lines."""
    if whole.lstrip().startswith("["):
        try:
            yield from enumerate(json.loads(whole), 1)
        except (ValueError, RecursionError) as error:
            raise ParseError(f"{path} is not valid JSON", "Nothing was imported") from error
        return
    for number, line in enumerate(whole.split("\n"), 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise broken(path, number, "not valid JSON") from error


def broken(path: Path, line: int, reason: str) -> ParseError:
    """Return the error of a line that cannot be read."""
    return ParseError(f"{path}, line {line}: {reason}", "Nothing was imported; correct the line")


@contextmanager
def database(path: Path) -> Iterator[sqlite3.Connection]:
    """Open an SQLite database that nothing is written to, not even beside it."""
    check_exists(path)
    if not is_database(path):
        raise ParseError(f"{path} is not an SQLite database", "Nothing was imported")
    if path.stat().st_size > LARGEST_DATABASE:
        raise ValidationError(f"{path} is larger than {LARGEST_DATABASE / 1e9:g} GB")
    with tempfile.TemporaryDirectory(prefix="ragdocs-") as folder:
        opened = _settled(path, Path(folder))
        mode = "ro&immutable=1" if opened == path else "rwc"
        uri = f"file:{quote(str(opened.absolute()))}?mode={mode}"
        connection = sqlite3.connect(uri, uri=True)
        try:
            _restrain(connection)
            yield connection
        except sqlite3.Error as error:
            raise ParseError(f"{path} cannot be read: {error}", "Nothing was imported") from error
        finally:
            connection.close()


def _settled(path: Path, folder: Path) -> Path:
    """Return the database, or a copy where its newest rows are still in a file beside it."""
    log = path.with_name(f"{path.name}-wal")
    if not log.is_file() or not log.stat().st_size:
        return path
    if log.stat().st_size > LARGEST_DATABASE:
        raise ValidationError(f"{log} is larger than {LARGEST_DATABASE / 1e9:g} GB")
    with files.explained("read", path):
        shutil.copyfile(path, folder / path.name)
        shutil.copyfile(log, folder / log.name)
    return folder / path.name


def _restrain(connection: sqlite3.Connection) -> None:
    """Keep a database from running functions of its own and from taking for ever."""
    steps = 0

    def is_too_long() -> bool:
        nonlocal steps
        steps += 1
        return steps > MOST_STEPS

    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_FILE)
    connection.set_progress_handler(is_too_long, _STEP)
    connection.text_factory = _decoded
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA query_only = ON")


def _decoded(data: bytes) -> str:
    return data.decode(errors="replace")


def tables(connection: sqlite3.Connection) -> set[str]:
    """Return the names of the tables, without views, which could be anything."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {str(row[0]) for row in rows}


def columns(connection: sqlite3.Connection, table: str) -> set[str]:
    """Return the names of the columns of a table."""
    rows = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
    return {str(row[0]) for row in rows}


def rows(connection: sqlite3.Connection, table: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table, oldest first."""
    # The name is one of ours, and is in the list of tables.
    cursor = connection.execute(f'SELECT * FROM "{table}" ORDER BY rowid')  # noqa: S608
    for count, row in enumerate(cursor):
        if count >= 10 * MOST_NOTES:
            raise ValidationError(f"the table {table} has more than {10 * MOST_NOTES} rows")
        yield {name: _value(row[name]) for name in row.keys()}  # noqa: SIM118 - not a mapping


def _value(value: object) -> object:
    """Return a value of a row; a text may be stored as bytes."""
    if isinstance(value, bytes):
        return _decoded(value)
    return value


def words(value: object) -> tuple[str, ...]:
    """Return the words of a list in JSON, or with commas between them."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return ()
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list):
        return ()
    listed = []
    for word in value:
        if isinstance(word, str | int | float) and str(word).strip():
            listed.append(" ".join(str(word).split()))
    return tuple(listed)
