"""The source files of a project and what they define.

Read once and known again by their content.
"""

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
# Outlines that are kept, of all projects together and of other branches: about a kilobyte each.
MOST_KEPT = 100_000
TABLES = """
CREATE TABLE IF NOT EXISTS outlines (digest BLOB PRIMARY KEY, lines TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS files (project TEXT, path TEXT, stamp TEXT NOT NULL, digest BLOB NOT NULL,
    PRIMARY KEY (project, path)) WITHOUT ROWID;
"""
# What a reason to look at a file is worth. To be named beats all else; a rare word of the task in a
# path says more than one in a definition, and as much as several links; a file that is called like
# that word, more than any links.
NAMED, NEAR, LINKED, IN_PATH, IN_LINES, CALLED = 100.0, 4.0, 2.0, 6.0, 3.0, 12.0
# Tests, examples and copies of other people's code explain a repository last.
ASIDE = frozenset(
    {
        "test",
        "tests",
        "testing",
        "bench",
        "benchmarks",
        "example",
        "examples",
        "vendor",
        "third_party",
    }
)
ASIDE_COST = 2.0
_WORD = re.compile(r"[^\W\d_][\w]{2,40}")
# Rare in code, and yet no names.
_EMPTY = frozenset(
    """
    about after all and are been before but can could does each fix for from has have how into its make more must not
    one only other our out should some such than that the their them then there these they this two use was what when
    where which while why will with without would you your
    """.split()  # noqa: SIM905 - a table reads better without quotes
)


@dataclass(frozen=True, slots=True)
class Map:
    """Files and their definitions, line by line.

    How many were parsed for it, and how many were left out and why.
    """

    files: Mapping[str, str]
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
        """Return all files with their definitions, parsing only what was never seen."""
        stamps = self.store.scan().stamps
        paths = (
            sorted(stamps, key=lambda path: (path.count("/"), path))
            if len(stamps) > MOST_FILES
            else list(stamps)
        )
        known = {path: (stamp, lines) for path, stamp, lines in self.cache.ask(self._rows) or ()}
        found: dict[str, str] = {}
        skipped: dict[str, int] = {}
        changed = []
        for path in paths[:MOST_FILES]:
            stamp, lines = known.get(path, ("", ""))
            if stamp == stamps[path]:
                found[path] = lines
            else:
                changed.append(path)
        parsed = 0
        for start in range(0, len(changed), BATCH):
            parsed += self._learn(changed[start : start + BATCH], found, skipped)
        gone = known.keys() - stamps.keys()
        if gone:
            self.cache.ask(lambda connection: self._forget(connection, gone))
        if len(paths) > MOST_FILES:
            skipped[f"beyond the first {MOST_FILES} files"] = len(paths) - MOST_FILES
        generated = [path for path, lines in found.items() if lines == GENERATED]
        for path in generated:
            del found[path]
        if generated:
            skipped["made by a machine"] = len(generated)
        return Map(found, parsed, skipped)

    def _learn(self, paths: Sequence[str], found: dict[str, str], skipped: dict[str, int]) -> int:
        """Read files, parse those whose content is new, and keep what they define."""
        rows, texts = [], {}
        for path in paths:
            try:
                source = self.store.read(path)
            except RagdocsError:
                skipped["not readable as text"] = skipped.get("not readable as text", 0) + 1
                continue
            data = source.text.encode(errors="replace")
            suffix = PurePosixPath(path).suffix
            digest = hashlib.blake2b(
                data, digest_size=16, key=f"{OUTLINER}{suffix}".encode()
            ).digest()
            rows.append((self.project, path, source.stamp, digest))
            texts[digest] = (path, data)
        kept = self.cache.ask(lambda connection: _kept(connection, texts)) or {}
        fresh = {digest: self._outline(*texts[digest]) for digest in texts if digest not in kept}
        lines = kept | fresh
        for _, path, _, digest in rows:
            found[path] = lines[digest]
        self.cache.ask(lambda connection: _keep(connection, rows, fresh))
        return len(fresh)

    def _outline(self, path: str, data: bytes) -> str:
        if is_generated(data):
            return GENERATED
        # A default value may be a secret, and what is kept outlives the file.
        return self.redactor.redact("\n".join(outline(path, data))).text

    def _rows(self, connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
        question = (
            "SELECT path, stamp, lines FROM files JOIN outlines USING (digest) WHERE project = ?"
        )
        return connection.execute(question, (self.project,)).fetchall()

    def _forget(self, connection: sqlite3.Connection, paths: Iterable[str]) -> None:
        with connection:
            statement = "DELETE FROM files WHERE project = ? AND path = ?"
            connection.executemany(statement, [(self.project, path) for path in paths])


# Kept in the place of an outline: no definition begins like this.
GENERATED = "\x1fgenerated"


def _kept(connection: sqlite3.Connection, digests: Iterable[bytes]) -> dict[bytes, str]:
    found = {}
    for digest in digests:
        row = connection.execute(
            "SELECT lines FROM outlines WHERE digest = ?", (digest,)
        ).fetchone()
        if row:
            found[digest] = row[0]
    return found


def _keep(
    connection: sqlite3.Connection, rows: Sequence[tuple[object, ...]], fresh: Mapping[bytes, str]
) -> None:
    with connection:
        connection.executemany("INSERT OR REPLACE INTO outlines VALUES (?, ?)", fresh.items())
        connection.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)", rows)
        connection.execute(
            "DELETE FROM outlines WHERE rowid <= (SELECT MAX(rowid) FROM outlines) - ?",
            (MOST_KEPT,),
        )


def words(text: str) -> list[str]:
    """Return the words of a task that may name something in the code, each once."""
    found = dict.fromkeys(match[0].casefold() for match in _WORD.finditer(text))
    return [word for word in found if word not in _EMPTY]


def ranked(
    files: Mapping[str, str], task: str, named: Sequence[str], linked: Mapping[str, float]
) -> list[str]:
    """Return files, those first at which the caller, the task and the graph point most."""
    scores = {path: _standing(path, lines) + _pointed(path, named) for path, lines in files.items()}
    for path in linked.keys() & files.keys():
        scores[path] += math.log2(1 + linked[path]) * LINKED
    texts = {path: f"{path}\n{lines}".casefold() for path, lines in files.items()}
    for word in words(task):
        holding = [path for path, text in texts.items() if word in text]
        # From 0 to 1: a word that is everywhere tells nothing apart.
        rare = math.log((1 + len(texts)) / (1 + len(holding))) / math.log(2 + len(texts))
        for path in holding:
            in_path = word in path.casefold()
            scores[path] += rare * (
                IN_PATH * in_path + IN_LINES * (not in_path or word in texts[path][len(path) :])
            )
            scores[path] += (
                rare
                * CALLED
                * (word.rstrip("s") == PurePosixPath(path).stem.casefold().rstrip("s"))
            )
    return sorted(files, key=lambda path: (-scores[path], path))


def _standing(path: str, lines: str) -> float:
    """Order what nobody points at.

    What defines more says more, what lies higher up is more general.
    """
    folders = path.split("/")[:-1]
    aside = ASIDE_COST if not ASIDE.isdisjoint(folders) else 0.0
    return math.log2(2 + lines.count("\n")) / 4 - len(folders) / 8 - aside


def _pointed(path: str, named: Sequence[str]) -> float:
    """Say what it is worth to be named, or to lie beside or below what is named."""
    folder = path.rpartition("/")[0]
    covered = sum(NAMED for name in named if path == name or path.startswith(f"{name}/"))
    return covered + sum(NEAR for name in named if name.rpartition("/")[0] == folder)


def shown(lines: str, most: int) -> list[str]:
    """Return as many definitions as wanted, in their order.

    Public ones first, and outer ones before members.
    """
    definitions = lines.split("\n") if lines else []
    chosen = sorted(
        range(len(definitions)), key=lambda place: (*_retirement(definitions[place]), place)
    )[:most]
    more = [f"… {len(definitions) - most} more"] if len(definitions) > most else []
    return [*(definitions[place] for place in sorted(chosen)), *more]


def _retirement(line: str) -> tuple[bool, int]:
    """Order definitions: those with a leading underscore say of themselves that they are nobody's business."""
    return " _" in line.partition("(")[0], len(line) - len(line.lstrip())
