"""The texts of one lane of a project, on the rows of a team database."""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ragdocs import caller
from ragdocs.errors import (
    DisconnectedError,
    ForbiddenError,
    NotFoundError,
    RagdocsError,
    ReadOnlyError,
    UnavailableError,
    ValidationError,
)
from ragdocs.lanes import Lane
from ragdocs.stores.changes import (
    AnyChange,
    Exact,
    checked_name,
    checked_verb,
    decoded,
    not_found,
    readable_text,
)
from ragdocs.stores.files.globs import Rules
from ragdocs.stores.files.history import Step, exact_verb, version_of
from ragdocs.stores.files.spelling import folded
from ragdocs.stores.postgres import bodies, feed
from ragdocs.stores.postgres.change_set import ChangeSetDraft
from ragdocs.stores.postgres.pruning import prune
from ragdocs.stores.postgres.scopes import address
from ragdocs.system.postgres.database import HINT_AGAIN
from ragdocs.types import (
    Change,
    ChangeSet,
    Discard,
    Revision,
    Scan,
    Source,
    Verb,
    Written,
)

if TYPE_CHECKING:
    from ragdocs.system.postgres.database import Database, Session

# Seconds between tries of a change set whose connection was lost: a server that was killed is back
# after one, and a standby takes over within a few.
PAUSES = (0.0, 0.2, 0.5, 1.0, 2.0)
# Change sets of one server between two prunings.
PRUNE_EVERY = 1000
# Bytes of a path, which has to fit into an index.
LONGEST_PATH = 2000
HINT_UNKNOWN = "Read the text again before you change it once more"

_SCAN = "SELECT path, change_set, digest, modified_at FROM texts WHERE scope = %s ORDER BY path"
# 0 is the character after the slash.
_SCAN_SOME = """
SELECT t.path, change_set, digest, modified_at FROM unnest(%(names)s::text[]) AS name
JOIN texts t ON t.scope = %(scope)s AND t.path = name
UNION
SELECT t.path, change_set, digest, modified_at FROM unnest(%(names)s::text[]) AS name
JOIN texts t ON t.scope = %(scope)s
AND t.path >= name || '/' COLLATE "C" AND t.path < name || '0' COLLATE "C"
ORDER BY path
"""
_READ = """
SELECT data, change_set, digest, modified_at FROM texts JOIN bodies USING (scope, digest)
WHERE scope = %s AND path = %s
"""
_HISTORY = """
SELECT change_set, made_at, verb, author, path, before, after, size
FROM change_sets JOIN revisions USING (scope, change_set)
WHERE scope = %s
"""
_NEWEST_FIRST = " ORDER BY change_set DESC, position"


def _local_now() -> datetime:
    return caller.current().local(datetime.now(tz=UTC))


class RowStore:
    """The texts of one scope: readable, versioned, and shared by many servers."""

    def __init__(
        self,
        database: Database,
        scope: int,
        lane: Lane,
        *,
        writable: bool,
        now: Callable[[], datetime] = _local_now,
    ) -> None:
        self.database = database
        self.scope = scope
        self._lane = lane
        self._rules = Rules(lane)
        self._is_writable = writable
        self._now = now
        self._address = ""
        self._since_pruning = 0

    # --- reading ---

    def scan(self, paths: Iterable[str] | None = None) -> Scan:
        """Return a stamp for each text, or for these texts and those of these folders."""
        names = [""]
        if paths is not None:
            names = _names(paths)
        with self.database.reading() as session:
            if "" in names:
                cursor = session.execute(_SCAN, [self.scope], binary=True)
            else:
                values = {"scope": self.scope, "names": names}
                cursor = session.execute(_SCAN_SOME, values, binary=True)
            rows = cursor.fetchall()
        stamps = {}
        modified = {}
        for path, number, digest, modified_at in rows:
            stamps[path] = _stamp(number, digest)
            modified[path] = int(modified_at.timestamp() * 1_000_000) * 1000
        return Scan(stamps, modified=modified)

    def read(self, path: str) -> Source:
        """Read one text."""
        with self.database.reading() as session:
            if _is_text(path):
                row = session.execute(_READ, [self.scope, path], binary=True).fetchone()
            else:
                row = None
            if row is None:
                raise not_found(path, bodies.paths(session, self.scope))
        data, number, digest, modified_at = row
        text, problems = readable_text(path, data)
        return Source(
            path=path,
            text=text,
            version=version_of(data),
            stamp=_stamp(number, digest),
            size=len(data),
            modified_at=modified_at.astimezone(UTC),
            problems=problems,
        )

    def read_exactly(self, path: str) -> tuple[bytes, datetime]:
        """Return the bytes of one text, and when it was last changed."""
        with self.database.reading() as session:
            row = session.execute(_READ, [self.scope, path], binary=True).fetchone()
        if row is None:
            raise NotFoundError(f"{path} does not exist")
        return bytes(row[0]), row[3]

    def versions(self) -> dict[str, str]:
        """Map the path of each text to its version."""
        statement = "SELECT path, digest FROM texts WHERE scope = %s ORDER BY path"
        with self.database.reading() as session:
            rows = session.execute(statement, [self.scope], binary=True).fetchall()
        return {path: bodies.version(digest) for path, digest in rows}

    def locate(self, path: str) -> str:
        """Return the project and the path in it, such as team:shop/.memories/notes.md."""
        if not self._address:
            with self.database.reading() as session:
                self._learn_address(session)
        if not path:
            return self._address
        return f"{self._address}/{path}"

    def _learn_address(self, session: Session) -> None:
        if not self._address:
            name = address(session, self.scope)
            self._address = "/".join(filter(None, (name, self._lane.base)))

    # --- watching: nothing here is a file, and the feed tells of changes ---

    def watched(self) -> list[tuple[Path, bool]]:
        """Return nothing: there is no folder to watch."""
        return []

    def relative(self, path: str) -> str | None:  # noqa: ARG002 - of the protocol
        """Return None: no file concerns this store."""
        return None

    # --- revisions ---

    def history(self, path: str = "") -> list[Revision]:
        """List the revisions that have a text, newest first, of one path or all."""
        statement = f"{_HISTORY} AND before IS NOT NULL"
        values: list[object] = [self.scope]
        if path:
            statement += " AND path = %s"
            values.append(path)
        if not _is_text(path):
            return []
        with self.database.reading() as session:
            rows = session.execute(f"{statement}{_NEWEST_FIRST}", values, binary=True).fetchall()
        return [_revision(row) for row in rows]

    def is_own(self, change_set: ChangeSet, /) -> bool:
        """Tell whether the caller made a change set, with whatever program."""
        member = self.database.caller_name
        return change_set.author == member or change_set.author.startswith(f"{member} (")

    def recover(self, version: str) -> str:
        """Return a text that was ever here by its version."""
        with self.database.reading() as session:
            data = bodies.recover(session, self.scope, version)
        return decoded(version, data)[0]

    def commits(self) -> list[ChangeSet]:
        """List the change sets, newest first."""
        with self.database.reading() as session:
            statement = f"{_HISTORY}{_NEWEST_FIRST}"
            rows = session.execute(statement, [self.scope], binary=True).fetchall()
        steps: defaultdict[int, list[Revision]] = defaultdict(list)
        authors = {}
        for row in rows:
            number, _, _, author = row[:4]
            steps[number].append(_revision(row))
            authors[number] = author
        change_sets = []
        for number, revisions in steps.items():
            first = revisions[0]
            change_set = ChangeSet(first.at, first.verb, tuple(revisions), authors[number])
            change_sets.append(change_set)
        return change_sets

    # --- writing ---

    def commit(self, changes: Sequence[Change], verb: str = "update") -> list[Written]:
        """Make all these changes or none; the history keeps replaced and discarded texts."""
        self._check_writable()
        kind = checked_verb(verb)
        paths = [checked_name(change, self._rules, self._lane) for change in changes]
        return self._commit(changes, paths, kind)

    def commit_exactly(
        self, changes: Sequence[Exact | Discard], verb: str = "update"
    ) -> list[Written]:
        """Bring in texts as they are elsewhere, with any names that a folder can list."""
        self._check_writable()
        kind = checked_verb(verb)
        for change in changes:
            self._check_exact(change)
        return self._commit(changes, [change.path for change in changes], kind)

    def _commit(
        self, changes: Sequence[AnyChange], paths: Sequence[str], verb: Verb
    ) -> list[Written]:
        """Try until it is known whether the changes were made, for some seconds."""
        for path in paths:
            if len(folded(path).encode()) > LONGEST_PATH:
                raise ValidationError(f"{path[:80]!r} is too long a name", "Use a shorter one")
        token = uuid4()
        tries = _Tries()
        for pause in PAUSES:
            draft = ChangeSetDraft(
                self.scope, changes, paths, token, self._now(), self._lane.largest
            )
            try:
                self._make(draft, verb, tries)
                break
            except DisconnectedError as error:
                tries.loss = error
            except UnavailableError as error:
                if tries.loss is None or isinstance(error, ForbiddenError):
                    raise
            time.sleep(pause)
        else:
            raise tries.unknown()
        feed.ring(self.database, self.scope)
        self._prune_in_turn()
        return [self._written(step) for step in tries.steps or ()]

    def _make(self, draft: ChangeSetDraft, verb: Verb, tries: _Tries) -> None:
        with self.database.writing() as session:
            if draft.look(session):
                # An earlier try was made, and only the answer to it was lost.
                return
            tries.steps = None
            # Not after the change: it must not fail then.
            self._learn_address(session)
            steps = draft.plan(session)
            changed = [step for step in steps if step.before != step.after]
            if changed:
                if verb == "update":
                    verb = exact_verb(changed)
                draft.write(session, steps, verb, self._author())
            tries.steps = steps

    def _author(self) -> str:
        """Return the member who writes, and the program that the member uses for it."""
        member = self.database.caller_name
        program = caller.author.get()
        if not member or program in ("", member):
            return member or program
        return f"{member} ({program})"

    def prune(self) -> None:
        """Drop change sets that are too old, and what only they have."""
        prune(self.database, self.scope, self._now())

    def _prune_in_turn(self) -> None:
        """Prune once in a while; the change itself is made, whatever comes of it."""
        self._since_pruning += 1
        if self._since_pruning >= PRUNE_EVERY:
            self._since_pruning = 0
            with contextlib.suppress(RagdocsError):
                self.prune()

    def _check_writable(self) -> None:
        if not self._is_writable:
            raise ReadOnlyError(
                f"the {self._lane.name} lane is read-only", "Push it from where its files are"
            )

    def _check_exact(self, change: Exact | Discard) -> None:
        parts = change.path.split("/")
        is_plain = _is_text(change.path) and not {"", ".", ".."} & set(parts)
        if not is_plain or self._rules.hides_any(parts):
            raise ValidationError(f"{change.path[:80]!r} cannot be used as a name")
        if isinstance(change, Exact) and len(change.data) > self._lane.largest:
            raise ValidationError(
                f"{change.path} is larger than {self._lane.largest / 1e6:g} MB",
                "Split it into several files",
            )

    def _written(self, step: Step) -> Written:
        before = "" if step.before is None else version_of(step.before)
        if step.after is not None:
            return Written(step.path, version_of(step.after), before=before)
        if not step.trash:
            return Written(step.path, before=before)
        return Written(step.path, moved_to=self.locate(step.trash), before=before)


@dataclass(slots=True)
class _Tries:
    """The steps of the last try that may have been made, and how its connection was lost."""

    steps: list[Step] | None = None
    loss: DisconnectedError | None = None

    def unknown(self) -> RagdocsError:
        """Return the error for a change set that could not be tried to the end."""
        reason = self.loss.message if self.loss else ""
        if self.steps is None:
            return DisconnectedError(f"{reason}; nothing was written", HINT_AGAIN)
        return DisconnectedError(f"{reason}; the change may have been made or not", HINT_UNKNOWN)


def _stamp(number: int, digest: bytes) -> str:
    """Name the state of a text: the change set that made it, and its version."""
    return f"{number}-{bodies.version(digest)}"


def _names(paths: Iterable[str]) -> list[str]:
    """Return paths as texts are listed under them, without those that no text can have."""
    names = {path.rstrip("/").removeprefix("./") for path in paths}
    return sorted(filter(_is_text, names))


def _is_text(path: str) -> bool:
    """Return whether the database can hold a path: no NUL and no half characters."""
    return "\0" not in path and path.encode(errors="replace").decode() == path


def _revision(row: Sequence[Any]) -> Revision:
    _, made_at, verb, author, path, before, after, size = row
    at = caller.current().local(made_at)
    return Revision(path, bodies.version(before), at, verb, size, bodies.version(after), author)
