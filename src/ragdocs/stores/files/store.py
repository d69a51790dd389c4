"""A directory tree as a store: read as it is, changed whole or not at all."""

from __future__ import annotations

import contextlib
import difflib
import itertools
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import cast

from ragdocs import caller
from ragdocs.errors import (
    AlreadyExistsError,
    ConflictError,
    LockAcquisitionError,
    NotFoundError,
    ParseError,
    RagdocsError,
    ReadOnlyError,
    StorageError,
    UnavailableError,
    ValidationError,
)
from ragdocs.lanes import Lane
from ragdocs.stores.files.globs import Rules
from ragdocs.stores.files.history import FOLDER, VERBS, History, Step, version_of
from ragdocs.stores.files.spelling import Spelling, composed, folded
from ragdocs.stores.files.walk import Walk, stamp_as_read
from ragdocs.system import files as fsio
from ragdocs.system.locks import lock
from ragdocs.types import (
    Change,
    ChangeSet,
    Discard,
    Expect,
    Put,
    Restore,
    Revision,
    Scan,
    Source,
    Verb,
    Written,
)

TRASH = ".trash"
# Of a file that is to be replaced or moved: more than any lane reads.
SIZE_LIMIT = 10_000_000
# Text has no NUL; git looks at as many bytes to tell binary files.
BINARY_PROBE = 8192
# What a reader waits for a commit of another process, and how long it leaves a lock alone that was
# not given.
FINISH_SECONDS = 0.1
FINISH_PAUSE_SECONDS = 5.0
BOM = b"\xef\xbb\xbf"


def _local_now() -> datetime:
    return caller.current().local(datetime.now(tz=UTC))


class FileStore:
    """The files of one lane below a root.

    Without `trusted_root`, a root that is a link out of its parent folder is refused: it may have
    come with a clone.
    """

    def __init__(
        self,
        root: Path,
        lane: Lane,
        *,
        trusted_root: bool = False,
        now: Callable[[], datetime] = _local_now,
    ) -> None:
        self._given = root.absolute()
        self.root = Path(os.path.realpath(self._given))
        self._lane = lane
        self._rules = Rules(lane)
        self._history = History(self.root)
        self._spelling = Spelling(str(self.root))
        self._now = now
        parent = os.path.realpath(self._given.parent)
        self._refused = lane.writable and not trusted_root and not self.root.is_relative_to(parent)
        # Why the history could not be pruned, until it could.
        self._unpruned = ""
        # When a reader may next try to complete what a killed process began.
        self._finish_after = 0.0
        self._finish_if_pending()

    # --- looking ---

    def scan(self, paths: Iterable[str] | None = None) -> Scan:
        """Look at the whole tree, or at these files and folders only."""
        if not self._exists():
            return Scan({})
        self._finish_if_pending()
        walk = Walk(self.root, self._rules)
        for path in [""] if paths is None else paths:
            walk.look(path.rstrip("/").removeprefix("./"))
        if "" in walk.unreadable:
            raise UnavailableError(
                f"{self.root} cannot be read: {walk.unreadable['']}", "Check its permissions"
            )
        if paths is None and self._lane.writable:
            walk.sweep()
        if self._unpruned:
            walk.unreadable[FOLDER] = self._unpruned
        return Scan(walk.stamps, walk.unreadable)

    def read(self, path: str) -> Source:
        """Read one text; what a scan does not list is not found."""
        scan = self.scan([path])
        if path not in scan.stamps and composed(spelled := self._spelling.find(path)) == composed(
            path
        ):
            path = spelled
            scan = self.scan([path])
        if path in scan.unreadable:
            raise StorageError(
                f"{path} cannot be read: {scan.unreadable[path]}", "Check its permissions"
            )
        if path not in scan.stamps:
            raise self._not_found(path)
        moment = time.time()
        data, status = fsio.read_file(fsio.contained(self.root, path), self._lane.largest)
        text, problems = _decoded(path, data)
        return Source(
            path=path,
            text=text,
            version=version_of(data),
            stamp=stamp_as_read(status, moment),
            size=len(data),
            modified_at=datetime.fromtimestamp(status.st_mtime, UTC),
            problems=problems,
        )

    def locate(self, path: str) -> str:
        """Tell the absolute path of a file that this store named, or of the root."""
        return f"{self.root}{os.sep}{path}" if path else str(self.root)

    def watched(self) -> list[tuple[Path, bool]]:
        """List the folders in which a change can matter.

        And whether everything below them counts.
        """
        places = ((self.root / prefix, deep) for prefix, deep in self._rules.folders())
        # A folder that is not there yet will appear in its parent.
        there = [
            (place, deep) if place.is_dir() else (place.parent, False) for place, deep in places
        ]
        return list(dict.fromkeys(place for place in there if place[0].is_dir()))

    def relative(self, path: str) -> str | None:
        """Return the path below the root of something that may belong to the lane, or nothing."""
        if not f"{path}{os.sep}".startswith(f"{self.root}{os.sep}"):
            return None
        parts = Path(path).relative_to(self.root).parts
        return (
            None
            if any(self._rules.hides(name, i == 0) for i, name in enumerate(parts))
            else "/".join(parts)
        )

    def history(self, path: str = "") -> list[Revision]:
        """List the earlier texts that were kept, newest first."""
        return self._history.revisions(path)

    def recover(self, version: str) -> str:
        """Return an earlier text by its version."""
        return _decoded(version, self._history.recover(version))[0]

    def commits(self) -> list[ChangeSet]:
        """List what was changed, newest first.

        The last one may have been announced and never made.
        """
        return self._history.commits()

    # --- changing ---

    def commit(self, changes: Sequence[Change], verb: str = "update") -> list[Written]:
        """Make all these changes or none; what is overwritten or discarded stays in the history."""
        if not self._lane.writable:
            raise ReadOnlyError(
                f"the {self._lane.name} lane is read-only", "Edit its files with an editor"
            )
        if verb not in VERBS:
            raise ValidationError(
                f"{verb!r} is not a kind of change", f"Use one of {', '.join(sorted(VERBS))}"
            )
        self._exists()
        fsio.make_directories(self.root)
        with fsio.explained("write", self.root), lock(self.root):
            self._finish()
            plan = self._plan(changes)
            # The steps that need room come first: moving to the trash needs none.
            steps = sorted(
                (step for step in plan if step.before != step.after),
                key=lambda step: step.after is None,
            )
            self._history.keep(steps, cast("Verb", verb), self._now())
            self._carry_out(steps)
            for step in steps:
                if step.after is not None:
                    self._spelling.wrote(step.path)
            self._prune()
        written = [self._written(step) for step in plan]
        if self._unpruned and written:
            written[0] = replace(written[0], notes=(self._unpruned,))
        return written

    def _prune(self) -> None:
        """Keep the history within its limits.

        The change itself is made, so a failure is only told.
        """
        try:
            if self._history.prune(self._now()):
                self._unpruned = ""
        except (RagdocsError, OSError) as error:
            self._unpruned = (
                f"the history grows beyond its limits, because it cannot be pruned: {error}"
            )

    def _plan(self, changes: Sequence[Change]) -> list[Step]:
        steps: list[Step] = []
        for change in changes:
            path = fsio.relative_name(change.path)
            if not self._rules.lists(path):
                raise ValidationError(
                    f"{path} would never be found: the {self._lane.name} lane leaves such paths out"
                )
            step = self._step(change, path)
            if any(folded(step.path) == folded(other.path) for other in steps):
                raise ValidationError(
                    f"{path} is named twice in one change", "Name every file once"
                )
            steps.append(step)
        return steps

    def _step(self, change: Change, path: str) -> Step:
        spelled = self._spelling.find(path)
        if composed(spelled) == path:
            path = spelled
        elif not isinstance(change, Discard) and change.expect in {Expect.ABSENT, Expect.ANY}:
            message = f"{path} differs only in upper and lower case from {spelled}, which exists"
            raise AlreadyExistsError(message, f"Use {spelled}, or another name")
        place = fsio.contained(self.root, path, follow=False)
        in_the_way = next(
            (folder for folder in place.parents if folder.exists() and not folder.is_dir()), None
        )
        if in_the_way is not None:
            raise ValidationError(
                f"{in_the_way.relative_to(self.root)} is a file, not a folder", "Use another name"
            )
        current = self._current(path)
        self._check_expectation(change, path, current)
        if isinstance(change, Discard):
            return Step(
                path,
                current,
                None,
                self._trash_name(path) if change.trash and current is not None else "",
            )
        if isinstance(change, Restore):
            return Step(path, current, self._history.recover(change.version))
        return Step(path, current, _encoded(change, current, self._lane.largest))

    def _check_expectation(self, change: Change, path: str, current: bytes | None) -> None:
        if current is None:
            if change.expect not in {Expect.ABSENT, Expect.ANY}:
                raise self._not_found(path)
        elif change.expect is Expect.ABSENT:
            raise AlreadyExistsError(
                f"{path} exists already", "Update or append to it, or use another name"
            )
        elif isinstance(change.expect, str) and change.expect != version_of(current):
            raise ConflictError(
                f"{path} changed since version {change.expect[:16]} was read",
                "Merge your text with the current one and try again with its version",
                theirs=_decoded(path, current, strict=False)[0],
                yours=change.text if isinstance(change, Put) else "",
                version=version_of(current),
            )

    def _carry_out(self, steps: Sequence[Step]) -> None:
        if len(steps) < 2:  # noqa: PLR2004  # one file changes at once, by its rename
            for step in steps:
                self._do(step)
            return
        try:
            self._history.promise(steps)
            for step in steps:
                self._do(step)
        except (RagdocsError, OSError):
            # What cannot be undone now is undone by the next commit or start: the record says so.
            with contextlib.suppress(RagdocsError, OSError):
                self._history.turn_back()
            with contextlib.suppress(RagdocsError, OSError):
                self._undo(steps)
                self._history.fulfil()
            raise
        # The change is made; a record that cannot be removed tells the next start so, and nothing
        # more is done.
        with contextlib.suppress(RagdocsError, OSError):
            self._history.fulfil()

    def _do(self, step: Step) -> None:
        place = fsio.contained(self.root, step.path, follow=False)
        if step.after is not None:
            fsio.make_directories(place.parent)
            fsio.write_atomic(place, step.after)
            return
        if not step.trash:
            fsio.remove(place)
            return
        trash = fsio.contained(self.root, step.trash, follow=False)
        fsio.make_directories(trash.parent, 0o700)
        if os.path.lexists(trash):  # only when a change is finished after a crash
            trash = self.root / self._trash_name(step.path)
        fsio.move(place, trash)

    def _undo(self, steps: Sequence[Step]) -> None:
        for step in reversed(steps):
            if self._state(step) != "after":
                continue
            place = fsio.contained(self.root, step.path, follow=False)
            if step.before is None:
                fsio.remove(place)
            elif step.trash and self._current(step.trash) == step.before:
                fsio.move(self.root / step.trash, place)
            else:
                fsio.make_directories(place.parent)
                fsio.write_atomic(place, step.before)

    def _finish(self) -> None:
        """Complete what a killed process began.

        Undo it where somebody has edited one of its files since.
        """
        promised = self._history.promised()
        if promised is None:
            return
        steps, forward = promised
        states = [self._state(step) for step in steps]
        if forward and "foreign" not in states:
            for step, state in zip(steps, states, strict=True):
                if state == "before":
                    self._do(step)
        elif not forward or "before" in states:
            self._undo(steps)
        self._history.fulfil()

    def _state(self, step: Step) -> str:
        """Tell whether a file is as before a step, as after it, or as somebody else left it."""
        try:
            current = self._current(step.path)
        except ValidationError:
            return "foreign"
        except StorageError:
            if (self.root / step.path).is_file():
                raise
            return "foreign"
        if current == step.before:
            return "before"
        return "after" if current == step.after else "foreign"

    def _finish_if_pending(self) -> None:
        # Searching goes on where nothing can be written: the next commit will say why not.
        with contextlib.suppress(RagdocsError, OSError):
            may_lock = time.monotonic() >= self._finish_after
            if may_lock and self._lane.writable and self._history.pending() and self._exists():
                try:
                    with lock(self.root, timeout=FINISH_SECONDS):
                        self._finish()
                except LockAcquisitionError:
                    self._finish_after = time.monotonic() + FINISH_PAUSE_SECONDS

    # --- places ---

    def _exists(self) -> bool:
        """Tell whether there is a root at all.

        One that is there and cannot be used is an error, never an absence.
        """
        if self._refused:
            hint = f"If you made this link yourself, configure {self.root} as the place instead"
            raise UnavailableError(f"{self._given} is a link that leads out of its folder", hint)
        if os.path.realpath(self._given) != str(self.root):
            raise UnavailableError(
                f"{self._given} leads elsewhere than it did", "Restart to use the new place"
            )
        try:
            status = self.root.stat()
        except FileNotFoundError:
            if not os.path.lexists(self._given):
                return False
            raise UnavailableError(
                f"{self._given} is a link to nothing", "Is a disk missing?"
            ) from None
        except OSError as error:
            raise UnavailableError(
                f"{self.root} cannot be read: {error.strerror}", "Check its permissions"
            ) from error
        if not stat.S_ISDIR(status.st_mode):
            raise UnavailableError(f"{self.root} is not a folder")
        return True

    def _current(self, path: str) -> bytes | None:
        try:
            return fsio.read_bytes(fsio.contained(self.root, path, follow=False), SIZE_LIMIT)
        except NotFoundError:
            return None

    def _trash_name(self, path: str) -> str:
        own = PurePosixPath(path)
        stem = PurePosixPath(TRASH) / own.parent / f"{own.stem}_{self._now():%Y%m%d_%H%M%S}"
        # Two in the same second both stay.
        endings = itertools.chain([""], (f"_{number}" for number in itertools.count(2)))
        names = (f"{stem}{ending}{own.suffix}" for ending in endings)
        return next(name for name in names if not os.path.lexists(f"{self.root}/{name}"))

    def _not_found(self, path: str) -> NotFoundError:
        known = self.scan().stamps
        near = difflib.get_close_matches(path, known, n=1)
        return NotFoundError(f"{path} does not exist", f"Did you mean {near[0]}?" if near else "")

    def _written(self, step: Step) -> Written:
        if step.after is not None:
            return Written(step.path, version_of(step.after))
        return Written(step.path, moved_to=str(self.root / step.trash) if step.trash else "")


def _decoded(name: str, data: bytes, *, strict: bool = True) -> tuple[str, tuple[str, ...]]:
    """Read bytes as text and tell what had to be mended; line endings stay as they are."""
    if strict and b"\0" in data[:BINARY_PROBE]:
        raise ParseError(
            f"{name} is not text: it contains NUL bytes", "Save it as UTF-8, or exclude it"
        )
    data = data.removeprefix(BOM)
    try:
        return data.decode(), ()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return data.decode(errors="replace"), (
            f"not valid UTF-8, first in line {line}: shown with replacements",
        )


def _encoded(change: Put, current: bytes | None, largest: int) -> bytes:
    """Turn a text into bytes.

    With the byte order mark and the line endings of the file it replaces.
    """
    try:
        data = change.text.encode()
    except UnicodeEncodeError as error:
        raise ValidationError(
            f"the text has half a character at position {error.start}", "Send valid Unicode"
        ) from error
    if b"\0" in data:
        raise ValidationError("the text contains a NUL character", "Remove it")
    if len(data) > largest:
        raise ValidationError(
            f"the text is larger than {largest / 1e6:g} MB", "Split it into several files"
        )
    if current is None:
        return data
    if current.startswith(BOM) and not data.startswith(BOM):
        data = BOM + data
    lines = current.count(b"\n")
    if lines and lines == current.count(b"\r\n"):
        data = re.sub(rb"(?<!\r)\n", b"\r\n", data)
    return data
