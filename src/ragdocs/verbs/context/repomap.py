"""The source files of a project and what they define, read once for each content."""

from __future__ import annotations

import hashlib
import math
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ragdocs.errors import RagdocsError
from ragdocs.lanes import Lane
from ragdocs.project import folders
from ragdocs.protocols import Store
from ragdocs.system.sqlite_cache import SideFile
from ragdocs.text.outline import GRAMMARS, OUTLINER, is_generated, outline
from ragdocs.text.redaction.redact import Redactor

# Source code as a lane: what to include. A larger file is data or was made by a machine; a larger
# tree than that is looked at from the top, and the answer says so.
CODE = Lane(
    name="code",
    include=tuple(f"**/*{suffix}" for suffix in GRAMMARS),
    gitignore=True,
    largest=400_000,
)
MOST_FILES = 10_000
# Outlines that are written down at once: a killed process loses no more.
BATCH = 200
# Outlines in the cache, of all projects together and of other branches: about a kilobyte each.
MOST_OUTLINES = 100_000
# Stands in the cache for the outline of a file that a machine made: no definition begins like this.
GENERATED = "\x1fgenerated"
UNREADABLE = "not readable as text"
TABLES = """
CREATE TABLE IF NOT EXISTS outlines (digest BLOB PRIMARY KEY, lines TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS files (
    project TEXT, path TEXT, stamp TEXT NOT NULL, digest BLOB NOT NULL,
    PRIMARY KEY (project, path)) WITHOUT ROWID;
"""
FILE_ROWS = "SELECT path, stamp, lines FROM files JOIN outlines USING (digest) WHERE project = ?"
FORGET_FILE = "DELETE FROM files WHERE project = ? AND path = ?"
OUTLINE = "SELECT lines FROM outlines WHERE digest = ?"
WRITE_OUTLINE = "INSERT OR REPLACE INTO outlines VALUES (?, ?)"
WRITE_FILE = "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)"
DROP_OLDEST = "DELETE FROM outlines WHERE rowid <= (SELECT MAX(rowid) FROM outlines) - ?"
# What a reason to look at a file is worth. To be named beats all else; a rare word of the task in a
# path says more than one in a definition, and as much as several links; a file that is called like
# that word, more than any links.
NAMED, NEAR, LINKED, IN_PATH, IN_LINES, CALLED = 100.0, 4.0, 2.0, 6.0, 3.0, 12.0
# Tests, examples and copies of other people's code explain a repository last.
ASIDE = frozenset(
    {"test", "tests", "testing", "bench", "benchmarks", "example", "examples"}
    | {"vendor", "third_party"}
)
ASIDE_COST = 2.0
_WORD = re.compile(r"[^\W\d_][\w]{2,40}")
# Rare in code, and yet no names.
_EMPTY = frozenset(
    """
    about after all and are been before but can could does each fix for from has have how into its
    make more must not one only other our out should some such than that the their them then there
    these they this two use was what when where which while why will with without would you your
    """.split()  # noqa: SIM905 - a table reads better without quotes
)


# The definitions of each file, line by line.
Outlines = Mapping[str, str]


def open_cache() -> SideFile:
    """Return what is known about source files of all projects of this user."""
    path = folders.cache_dir() / "outlines.sqlite"
    return SideFile(path, TABLES, name="cache of outlines", wait_seconds=1.0)


@dataclass(frozen=True, slots=True)
class Map:
    """Files and their definitions, how many were parsed for it, and how many left out and why."""

    files: Outlines
    parsed: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RepoMap:
    """Reads the source files below a root; `project` is its name in the cache."""

    store: Store
    cache: SideFile
    redactor: Redactor
    project: str

    def read(self) -> Map:
        """Return all files with their definitions, parsing only contents that are new."""
        stamps = self.store.scan().stamps
        paths = _highest(stamps)
        outlines, changed = self._from_cache(paths, stamps)
        skipped: dict[str, int] = {}
        parsed = 0
        for start in range(0, len(changed), BATCH):
            parsed += self._learn(changed[start : start + BATCH], outlines, skipped)
        if len(stamps) > MOST_FILES:
            skipped[f"beyond the first {MOST_FILES} files"] = len(stamps) - MOST_FILES
        generated = [path for path, lines in outlines.items() if lines == GENERATED]
        for path in generated:
            del outlines[path]
        if generated:
            skipped["made by a machine"] = len(generated)
        return Map(outlines, parsed, skipped)

    def _from_cache(
        self, paths: Sequence[str], stamps: Mapping[str, str]
    ) -> tuple[dict[str, str], list[str]]:
        """Return the outlines of files that did not change, and the files that did."""
        cached = {}
        for path, stamp, lines in self.cache.ask(self._rows) or ():
            cached[path] = (stamp, lines)
        outlines: dict[str, str] = {}
        changed = []
        for path in paths:
            stamp, lines = cached.get(path, ("", ""))
            if stamp == stamps[path]:
                outlines[path] = lines
            else:
                changed.append(path)
        gone = cached.keys() - stamps.keys()
        if gone:
            self.cache.ask(lambda connection: self._forget(connection, gone))
        return outlines, changed

    def _learn(
        self, paths: Sequence[str], outlines: dict[str, str], skipped: dict[str, int]
    ) -> int:
        """Read files, parse those whose content is new, and write down what they define."""
        rows = []
        texts = {}
        for path in paths:
            try:
                source = self.store.read(path)
            except RagdocsError:
                skipped[UNREADABLE] = skipped.get(UNREADABLE, 0) + 1
                continue
            data = source.text.encode(errors="replace")
            digest = _digest(path, data)
            rows.append((self.project, path, source.stamp, digest))
            texts[digest] = (path, data)
        by_digest = self.cache.ask(lambda connection: _cached(connection, texts)) or {}
        fresh = {}
        for digest, (path, data) in texts.items():
            if digest not in by_digest:
                fresh[digest] = self._outline(path, data)
        by_digest |= fresh
        for _, path, _, digest in rows:
            outlines[path] = by_digest[digest]
        self.cache.ask(lambda connection: _write(connection, rows, fresh))
        return len(fresh)

    def _outline(self, path: str, data: bytes) -> str:
        if is_generated(data):
            return GENERATED
        # A default value may be a secret, and the cache outlives the file.
        return self.redactor.redact("\n".join(outline(path, data))).text

    def _rows(self, connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
        return connection.execute(FILE_ROWS, (self.project,)).fetchall()

    def _forget(self, connection: sqlite3.Connection, paths: Iterable[str]) -> None:
        with connection:
            connection.executemany(FORGET_FILE, [(self.project, path) for path in paths])


def _highest(stamps: Mapping[str, str]) -> list[str]:
    """Return the files to look at: all, or those highest up in a tree with too many."""
    paths = list(stamps)
    if len(paths) > MOST_FILES:
        paths.sort(key=lambda path: (path.count("/"), path))
    return paths[:MOST_FILES]


def _digest(path: str, data: bytes) -> bytes:
    """Name a content; the same text in another language has another outline."""
    key = f"{OUTLINER}{PurePosixPath(path).suffix}".encode()
    return hashlib.blake2b(data, digest_size=16, key=key).digest()


def _cached(connection: sqlite3.Connection, digests: Iterable[bytes]) -> dict[bytes, str]:
    outlines = {}
    for digest in digests:
        row = connection.execute(OUTLINE, (digest,)).fetchone()
        if row:
            outlines[digest] = row[0]
    return outlines


def _write(
    connection: sqlite3.Connection, rows: Sequence[tuple[object, ...]], fresh: Mapping[bytes, str]
) -> None:
    with connection:
        connection.executemany(WRITE_OUTLINE, fresh.items())
        connection.executemany(WRITE_FILE, rows)
        connection.execute(DROP_OLDEST, (MOST_OUTLINES,))


def words(text: str) -> list[str]:
    """Return the words of a task that may name something in the code, each once."""
    distinct = dict.fromkeys(map(str.casefold, _WORD.findall(text)))
    return [word for word in distinct if word not in _EMPTY]


def ranked(
    files: Outlines, task: str, named: Sequence[str], linked: Mapping[str, float]
) -> list[str]:
    """Return files, those first at which the caller, the task and the graph point most."""
    scores = {}
    texts = {}
    for path, lines in files.items():
        scores[path] = _standing(path, lines) + _pointed(path, named)
        texts[path] = f"{path}\n{lines}".casefold()
    for path in linked.keys() & files.keys():
        scores[path] += math.log2(1 + linked[path]) * LINKED
    for word in words(task):
        holding = [path for path, text in texts.items() if word in text]
        rarity = _rarity(len(holding), len(texts))
        for path in holding:
            definitions = texts[path][len(path) :]
            scores[path] += rarity * _worth(word, path, definitions)
    return sorted(files, key=lambda path: (-scores[path], path))


def _rarity(holding: int, total: int) -> float:
    """Return 0 to 1 for a word in so many files: one that is everywhere tells nothing apart."""
    share = (1 + total) / (1 + holding)
    return math.log(share) / math.log(2 + total)


def _worth(word: str, path: str, definitions: str) -> float:
    """Return what a word of the task is worth that stands in a path or in definitions."""
    worth = 0.0
    in_path = word in path.casefold()
    if in_path:
        worth += IN_PATH
    if not in_path or word in definitions:
        worth += IN_LINES
    name = PurePosixPath(path).stem.casefold()
    if word.rstrip("s") == name.rstrip("s"):
        worth += CALLED
    return worth


def _standing(path: str, lines: str) -> float:
    """Order what nobody points at.

    What defines more says more, what lies higher up is more general.
    """
    folders = path.split("/")[:-1]
    standing = math.log2(2 + lines.count("\n")) / 4 - len(folders) / 8
    if not ASIDE.isdisjoint(folders):
        standing -= ASIDE_COST
    return standing


def _pointed(path: str, named: Sequence[str]) -> float:
    """Return what it is worth to be named, or to lie beside or below what is named."""
    folder = path.rpartition("/")[0]
    worth = 0.0
    for name in named:
        if path == name or path.startswith(f"{name}/"):
            worth += NAMED
        if name.rpartition("/")[0] == folder:
            worth += NEAR
    return worth


def chosen_definitions(lines: str, most: int) -> list[str]:
    """Return as many definitions as wanted, in their order.

    Public ones first, and outer ones before members.
    """
    if not lines:
        return []
    definitions = lines.split("\n")
    numbers = range(len(definitions))
    by_worth = sorted(numbers, key=lambda number: _retirement(definitions[number]))
    rows = [definitions[number] for number in sorted(by_worth[:most])]
    if len(definitions) > most:
        rows.append(f"… {len(definitions) - most} more")
    return rows


def _retirement(line: str) -> tuple[bool, int]:
    """Order definitions: those with a leading underscore last, members behind outer ones."""
    is_private = " _" in line.partition("(")[0]
    return is_private, len(line) - len(line.lstrip())
