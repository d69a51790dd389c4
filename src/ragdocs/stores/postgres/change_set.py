"""One change set on its way into the database: locks, what is there, what is written."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from uuid import UUID

from ragdocs.errors import AlreadyExistsError, ValidationError
from ragdocs.stores.changes import (
    AnyChange,
    Exact,
    check_expectation,
    check_once,
    encoded,
    expects_text,
    not_found,
    spelled_path,
    trash_names,
)
from ragdocs.stores.files.history import Step
from ragdocs.stores.files.spelling import composed, folded
from ragdocs.stores.postgres import bodies
from ragdocs.system.postgres.columns import columns, first_column
from ragdocs.types import Discard, Put, Restore, Verb

if TYPE_CHECKING:
    from ragdocs.system.postgres.database import Session

_LOCK = """
SELECT CASE WHEN is_shared THEN pg_advisory_xact_lock_shared(key)
            ELSE pg_advisory_xact_lock(key) END
FROM unnest(%s::bigint[], %s::boolean[]) AS wanted (key, is_shared)
"""
_MADE = """
SELECT nextval('change_numbers'), EXISTS (SELECT FROM change_sets WHERE token = %s)
"""
_TEXTS = """
SELECT t.folded, t.path, b.data FROM texts t JOIN bodies b USING (scope, digest)
WHERE t.scope = %s AND t.folded = ANY (%s)
"""
_FOLDERS = "SELECT folded, path FROM folders WHERE scope = %s AND folded = ANY (%s)"
# 0 is the character after the slash.
_OCCUPIED = """
SELECT name FROM unnest(%s::text[]) AS name WHERE EXISTS (
    SELECT FROM texts
    WHERE scope = %s AND folded >= name || '/' COLLATE "C" AND folded < name || '0' COLLATE "C")
"""
_TRASHED = """
SELECT t.path FROM unnest(%s::text[]) AS name
JOIN trash t ON t.scope = %s AND t.path >= name COLLATE "C" AND t.path < name || '~' COLLATE "C"
"""
_MAKE_FOLDERS = """
INSERT INTO folders (scope, folded, path)
SELECT %s, * FROM unnest(%s::text[], %s::text[])
ON CONFLICT (scope, folded) DO UPDATE SET path = folders.path
RETURNING path
"""
_PUT = """
INSERT INTO texts (scope, change_set, path, folded, digest, size, modified_at)
SELECT %s, %s, * FROM unnest(%s::text[], %s::text[], %s::bytea[], %s::int[], %s::timestamptz[])
ON CONFLICT (scope, path) DO UPDATE SET change_set = excluded.change_set,
    digest = excluded.digest, size = excluded.size, modified_at = excluded.modified_at
"""
_REVISE = """
INSERT INTO revisions (scope, change_set, position, path, before, after, size)
SELECT %s, %s, * FROM unnest(%s::int[], %s::text[], %s::bytea[], %s::bytea[], %s::int[])
"""
_DISCARD = "DELETE FROM texts WHERE scope = %s AND path = ANY (%s)"
_THROW_AWAY = """
INSERT INTO trash (scope, discarded_at, path, original, digest)
SELECT %s, %s, * FROM unnest(%s::text[], %s::text[], %s::bytea[])
"""
_ANNOUNCE = "INSERT INTO feed (scope, path) SELECT %s, unnest(%s::text[])"


@dataclass(frozen=True, slots=True)
class _Text:
    path: str
    data: bytes


@dataclass(slots=True)
class ChangeSetDraft:
    """Changes of one scope that are made in one transaction, or not at all.

    `paths` has the checked path of each change. The `token` tells afterwards whether they were
    made.
    """

    scope: int
    changes: Sequence[AnyChange]
    paths: Sequence[str]
    token: UUID
    at: datetime
    largest: int
    _number: int = 0
    _texts: dict[str, _Text] = field(default_factory=dict)
    _folders: dict[str, str] = field(default_factory=dict)
    _occupied: set[str] = field(default_factory=set)
    _trashed: set[str] = field(default_factory=set)
    _restored: dict[str, bytes] = field(default_factory=dict)

    def look(self, session: Session) -> bool:
        """Lock all paths and read what is there; tell whether this change set was made already.

        Everybody locks in the order of the keys, so that nobody waits in a circle.
        """
        shared, own = self._keys()
        keys = sorted(shared | own)
        # First that of the token: an earlier try whose connection was lost may still go on.
        locks = [lock_key("token", self.token), lock_key("history", self.scope), *keys]
        is_shared = [False, True]
        for key in keys:
            is_shared.append(key not in own)
        names = []
        trashed = []
        above_paths: set[str] = set()
        for path in self.paths:
            name = folded(path)
            names.append(name)
            above_paths.update(_folders(name))
            trashed.append(_trash_stem(path, self.at))
        above = sorted(above_paths)
        with session.pipeline():
            session.execute(_LOCK, [locks, is_shared])
            made = session.execute(_MADE, [self.token])
            texts = session.execute(_TEXTS, [self.scope, [*names, *above]], binary=True)
            folders = session.execute(_FOLDERS, [self.scope, above])
            occupied = session.execute(_OCCUPIED, [names, self.scope])
            trash = session.execute(_TRASHED, [trashed, self.scope])
        for name, path, data in texts.fetchall():
            self._texts[name] = _Text(path, data)
        self._folders.update(folders.fetchall())
        self._occupied.update(first_column(occupied.fetchall()))
        self._trashed.update(first_column(trash.fetchall()))
        for change in self.changes:
            if isinstance(change, Restore):
                data = bodies.recover(session, self.scope, change.version)
                self._restored[change.version] = data
        (self._number, is_made) = made.fetchall()[0]
        return bool(is_made)

    def plan(self, session: Session) -> list[Step]:
        """Turn changes into steps, or refuse all of them."""
        steps = []
        for change, path in zip(self.changes, self.paths, strict=True):
            steps.append(self._step(change, path, session))
        check_once(steps)
        self._check_folders(steps)
        return steps

    def write(self, session: Session, steps: Sequence[Step], verb: Verb, author: str) -> None:
        """Write what differs; nothing is seen of it before the transaction ends."""
        new_folders = self._new_folders(steps)
        modified = {}
        for change, step in zip(self.changes, steps, strict=True):
            modified[step.path] = self._time(change)
        steps = [step for step in steps if step.before != step.after]
        puts = [step for step in steps if step.after is not None]
        number = self._number
        with session.pipeline():
            session.execute(
                "INSERT INTO change_sets VALUES (%s, %s, %s, %s, %s, %s)",
                [self.scope, number, self.token, self.at, verb, author],
            )
            folders = session.execute(
                _MAKE_FOLDERS, [self.scope, list(new_folders), list(new_folders.values())]
            )
            bodies.keep(session, self.scope, [step.after for step in puts])
            self._discard(session, steps)
            if puts:
                session.execute(_PUT, [self.scope, number, *_puts(puts, modified)])
            session.execute(_REVISE, [self.scope, number, *_revisions(steps)])
            session.execute(_ANNOUNCE, [self.scope, _paths(steps)])
        _check_spelling(new_folders, first_column(folders.fetchall()))

    # --- planning ---

    def _keys(self) -> tuple[set[int], set[int]]:
        """Return the keys of the folders, which others may use too, and of the texts."""
        shared = set()
        own = set()
        for path in self.paths:
            own.add(lock_key("text", self.scope, folded(path)))
            for folder in _folders(folded(path)):
                shared.add(lock_key("text", self.scope, folder))
        return shared, own

    def _step(self, change: AnyChange, path: str, session: Session) -> Step:
        path = spelled_path(change, composed(path), self._spelled(path))
        text = self._texts.get(folded(path))
        current = None
        if text is not None and text.path == path:
            current = text.data
        self._check_path(path, current)
        if current is not None:
            check_expectation(change, path, current)
        elif expects_text(change):
            raise not_found(path, bodies.paths(session, self.scope))
        if isinstance(change, Restore):
            return Step(path, current, self._restored[change.version])
        if isinstance(change, Put):
            return Step(path, current, encoded(change, current, self.largest))
        if isinstance(change, Exact):
            return Step(path, current, change.data)
        return Step(path, current, None, self._trash_name(change, path, current))

    def _spelled(self, path: str) -> str:
        """Return a path as existing texts and folders spell it."""
        text = self._texts.get(folded(path))
        if text is not None:
            return text.path
        parts = path.split("/")
        for depth in range(len(parts) - 1, 0, -1):
            folder = self._folders.get(folded("/".join(parts[:depth])))
            if folder is not None:
                return "/".join((folder, *parts[depth:]))
        return path

    def _check_path(self, path: str, current: bytes | None) -> None:
        for folder in _folders(path):
            if folded(folder) in self._texts:
                raise ValidationError(f"{folder} is a file, not a folder", "Use another name")
        if current is None and folded(path) in self._occupied:
            raise ValidationError(f"{path} is a folder, not a file", "Use another name")

    def _trash_name(self, change: Discard, path: str, current: bytes | None) -> str:
        if not change.trash or current is None:
            return ""
        names = trash_names(path, self.at)
        return next(name for name in names if name not in self._trashed)

    def _check_folders(self, steps: Sequence[Step]) -> None:
        """Refuse a change set that makes a file and a folder of one name."""
        made = {folded(step.path) for step in steps if step.after is not None}
        for step in steps:
            for folder in _folders(step.path):
                if folded(folder) in made:
                    raise ValidationError(f"{folder} is a file, not a folder", "Use another name")

    def _new_folders(self, steps: Sequence[Step]) -> dict[str, str]:
        """Map the folders that are not there yet, folded, to their spelling, in order."""
        folders = {}
        for step in steps:
            if step.after is not None:
                for folder in _folders(step.path):
                    if folded(folder) not in self._folders:
                        folders[folded(folder)] = folder
        return dict(sorted(folders.items()))

    def _time(self, change: AnyChange) -> datetime:
        if isinstance(change, Exact):
            return change.modified_at
        return self.at

    # --- writing ---

    def _discard(self, session: Session, steps: Sequence[Step]) -> None:
        gone = [step for step in steps if step.after is None]
        if gone:
            session.execute(_DISCARD, [self.scope, _paths(gone)])
        trashed = []
        for step in gone:
            if step.trash:
                trashed.append((step.trash, step.path, bodies.digest_of(step.before)))
        if trashed:
            session.execute(_THROW_AWAY, [self.scope, self.at, *columns(trashed, 3)])


def lock_key(*parts: object) -> int:
    """Return the number of a lock; two names share one only by the rarest chance."""
    name = "\0".join(map(str, ("ragdocs", *parts)))
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def _folders(path: str) -> list[str]:
    """List the folders that a path is in, the outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def _trash_stem(path: str, at: datetime) -> str:
    """Return how all names begin that a text can get in the trash at this moment."""
    return str(PurePosixPath(next(trash_names(path, at))).with_suffix(""))


def _paths(steps: Sequence[Step]) -> list[str]:
    return [step.path for step in steps]


def _puts(steps: Sequence[Step], modified: dict[str, datetime]) -> list[list[object]]:
    rows = []
    for step in steps:
        data = step.after or b""
        digest = bodies.digest_of(data)
        path = step.path
        rows.append((path, folded(path), digest, len(data), modified[path]))
    return columns(rows, 5)


def _revisions(steps: Sequence[Step]) -> list[list[object]]:
    rows = []
    for position, step in enumerate(steps):
        before = bodies.digest_of(step.before)
        after = bodies.digest_of(step.after)
        rows.append((position, step.path, before, after, len(step.before or b"")))
    return columns(rows, 5)


def _check_spelling(folders: dict[str, str], existing: Collection[str]) -> None:
    """Refuse a folder that somebody else has just made in another spelling."""
    for path in existing:
        wanted = folders[folded(path)]
        if composed(path) != composed(wanted):
            message = f"{wanted} differs only in upper and lower case from {path}, which exists"
            raise AlreadyExistsError(message, f"Use {path}, or another name")
