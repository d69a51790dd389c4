"""A directory tree as a store whose change sets are made whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from ragdocs import caller
from ragdocs.errors import (
    LockAcquisitionError,
    NotFoundError,
    RagdocsError,
    ReadOnlyError,
    StorageError,
    UnavailableError,
    ValidationError,
)
from ragdocs.lanes import Lane
from ragdocs.stores.changes import (
    check_expectation,
    check_once,
    checked_name,
    checked_verb,
    decoded,
    encoded,
    expects_text,
    not_found,
    readable_text,
    spelled_path,
    trash_names,
)
from ragdocs.stores.files.globs import Rules
from ragdocs.stores.files.history import FOLDER, History, Step, version_of
from ragdocs.stores.files.spelling import Spelling, composed
from ragdocs.stores.files.walk import RECENT_SECONDS, IgnoresAbove, Walk, stamp_as_read
from ragdocs.system import files
from ragdocs.system.locks import lock
from ragdocs.types import (
    Change,
    ChangeSet,
    Put,
    Restore,
    Revision,
    Scan,
    Source,
    Written,
)

# Bytes of a file that is to be replaced or moved: more than any lane reads.
SIZE_LIMIT = 10_000_000
# How long a reader waits for a change of another process, and how long it does not ask again for a
# lock that it did not get.
FINISH_SECONDS = 0.1
FINISH_PAUSE_SECONDS = 5.0
# Files of a tree whose listing is kept for the reads that follow: what reads all texts of a larger
# tree takes longer than a listing counts.
LISTED_FILES = 10_000


def _local_now() -> datetime:
    return caller.current().local(datetime.now(tz=UTC))


class _Listing(NamedTuple):
    """The stamps of all files that belong to a tree, and when that was known."""

    stamps: Mapping[str, str]
    known_at: float

    def has(self, path: str) -> bool:
        """Tell whether a file belonged to the tree a moment ago."""
        return path in self.stamps and time.monotonic() - self.known_at < RECENT_SECONDS


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
        self._configured_root = root.absolute()
        self.root = Path(os.path.realpath(self._configured_root))
        self._lane = lane
        self._rules = Rules(lane)
        self._history = History(self.root)
        self._spelling = Spelling(str(self.root))
        self._now = now
        parent = os.path.realpath(self._configured_root.parent)
        leads_out = not self.root.is_relative_to(parent)
        self._is_refused = lane.writable and leads_out and not trusted_root
        self._above: IgnoresAbove | None = None
        self._listing = _Listing({}, 0.0)
        # Why the history could not be pruned, or "" if it could.
        self._prune_problem = ""
        # When a reader may next try to complete what a killed process began.
        self._finish_after = 0.0
        self._finish_if_pending()

    # --- reading ---

    def scan(self, paths: Iterable[str] | None = None) -> Scan:
        """Return a stamp for each file of the tree, or of these files and folders only."""
        return self._scan(paths)

    def _scan(self, paths: Iterable[str] | None, *, recently: bool = False) -> Scan:
        if not self._exists():
            return Scan({})
        self._finish_if_pending()
        started = time.monotonic()
        walk = Walk(self.root, self._rules, self._ignores_above(recently=recently))
        if paths is None:
            walk.look()
        else:
            for path in paths:
                name = path.rstrip("/").removeprefix("./")
                # A file system that ignores case would show one file under several names.
                if self._spelling.find(name) == name:
                    walk.look(name)
        if "" in walk.unreadable:
            raise UnavailableError(
                f"{self.root} cannot be read: {walk.unreadable['']}", "Check its permissions"
            )
        if paths is None and self._lane.writable:
            walk.sweep()
        if self._prune_problem:
            walk.unreadable[FOLDER] = self._prune_problem
        if paths is None and len(walk.stamps) <= LISTED_FILES:
            self._listing = _Listing(walk.stamps, started)
        return Scan(walk.stamps, walk.unreadable, walk.modified)

    def read(self, path: str) -> Source:
        """Read one text; a file that a scan does not list is not found."""
        listed = self._listed_source(path)
        if listed is not None:
            return listed
        scan = self._scan([path], recently=True)
        if path not in scan.stamps:
            spelled = self._spelling.find(path)
            if composed(spelled) == composed(path):
                path = spelled
                scan = self.scan([path])
        if path in scan.unreadable:
            raise StorageError(
                f"{path} cannot be read: {scan.unreadable[path]}", "Check its permissions"
            )
        if path not in scan.stamps:
            raise self._not_found(path)
        return self._source(path, files.contained(self.root, path))

    def _listed_source(self, path: str) -> Source | None:
        """Read a file that a look at the whole tree has just met, if it is still the same.

        Whoever reads all texts would look up the folders and ignore files of each of them. What the
        path led to is checked when it is open: a file with the inode and the times of the one that
        was met is that one, whatever has been put on the way to it.
        """
        listing = self._listing
        if not listing.has(path):
            return None
        self._finish_if_pending()
        try:
            source = self._source(path, self.root / path)
        except RagdocsError:
            return None
        if source.stamp != listing.stamps[path]:
            return None
        return source

    def _source(self, path: str, file: Path) -> Source:
        moment = time.time()
        data, status = files.read_file(file, self._lane.largest)
        text, problems = readable_text(path, data)
        return Source(
            path=path,
            text=text,
            version=version_of(data),
            stamp=stamp_as_read(status, moment),
            size=len(data),
            modified_at=datetime.fromtimestamp(status.st_mtime, UTC),
            problems=problems,
        )

    def _ignores_above(self, *, recently: bool) -> IgnoresAbove | None:
        """Return the ignore files above the tree, as they are or as they were recently."""
        if not self._lane.gitignore:
            return None
        if self._above is None or not (recently and self._above.is_recent):
            self._above = IgnoresAbove(self.root)
        return self._above

    def locate(self, path: str) -> str:
        """Return the absolute path of a file that this store named, or of the root."""
        if not path:
            return str(self.root)
        return f"{self.root}{os.sep}{path}"

    # --- watching ---

    def watched(self) -> list[tuple[Path, bool]]:
        """List the folders to watch, each with whether everything below it counts."""
        folders = []
        for prefix, is_deep in self._rules.folders():
            folder = self.root / prefix
            if folder.is_dir():
                folders.append((folder, is_deep))
            elif folder.parent.is_dir():
                # A folder that is not there yet will appear in its parent.
                folders.append((folder.parent, False))
        return list(dict.fromkeys(folders))

    def relative(self, path: str) -> str | None:
        """Return the path below the root if it may belong to the lane, or None."""
        if not f"{path}{os.sep}".startswith(f"{self.root}{os.sep}"):
            return None
        parts = Path(path).relative_to(self.root).parts
        if self._rules.hides_any(parts):
            return None
        return "/".join(parts)

    # --- revisions ---

    def history(self, path: str = "") -> list[Revision]:
        """List the revisions that have a text, newest first, of one path or all."""
        return self._history.revisions(path)

    def is_own(self, _change_set: ChangeSet, /) -> bool:
        """Tell that there is nobody else."""
        return True

    def recover(self, version: str) -> str:
        """Return an earlier text by its version."""
        return decoded(version, self._history.recover(version))[0]

    def adopt(self, revisions: Sequence[tuple[Revision, str]], texts: Mapping[str, str]) -> None:
        """Put earlier texts into the history, oldest first, before the new `texts` are made."""
        files.make_directories(self.root)
        with files.explained("write", self.root), lock(self.root):
            self._finish()
            self._history.adopt(revisions, texts)

    def commits(self) -> list[ChangeSet]:
        """List the change sets, newest first.

        The last one may have been announced and never made.
        """
        return self._history.commits()

    # --- writing ---

    def commit(self, changes: Sequence[Change], verb: str = "update") -> list[Written]:
        """Make all these changes or none; the history keeps replaced and discarded texts."""
        if not self._lane.writable:
            raise ReadOnlyError(
                f"the {self._lane.name} lane is read-only", "Edit its files with an editor"
            )
        kind = checked_verb(verb)
        self._exists()
        files.make_directories(self.root)
        with files.explained("write", self.root), lock(self.root):
            self._finish()
            plan = self._plan(changes)
            steps = [step for step in plan if step.before != step.after]
            # The steps that need room come first: moving to the trash needs none.
            steps.sort(key=lambda step: step.after is None)
            self._history.keep(steps, kind, self._now(), caller.author.get())
            self._carry_out(steps)
            for step in steps:
                if step.after is not None:
                    self._spelling.wrote(step.path)
            self._prune()
        written = [self._written(step) for step in plan]
        if self._prune_problem and written:
            written[0] = replace(written[0], notes=(self._prune_problem,))
        return written

    def _prune(self) -> None:
        """Prune the history; the change itself is made, so that a failure is only reported."""
        try:
            if self._history.prune(self._now()):
                self._prune_problem = ""
        except (RagdocsError, OSError) as error:
            self._prune_problem = (
                f"the history grows beyond its limits, because it cannot be pruned: {error}"
            )

    def _plan(self, changes: Sequence[Change]) -> list[Step]:
        """Turn changes into steps, or refuse all of them."""
        steps = []
        for change in changes:
            path = checked_name(change, self._rules, self._lane)
            steps.append(self._step(change, path))
        check_once(steps)
        return steps

    def _step(self, change: Change, path: str) -> Step:
        spelled = self._spelling.find(path)
        path = spelled_path(change, path, spelled)
        for folder in files.contained(self.root, path, follow=False).parents:
            if folder.exists() and not folder.is_dir():
                raise ValidationError(
                    f"{folder.relative_to(self.root)} is a file, not a folder", "Use another name"
                )
        current = None
        # A file system that ignores case would hand out the text of another name.
        if composed(spelled) == composed(path):
            current = self._current(path)
        if current is not None:
            check_expectation(change, path, current)
        elif expects_text(change):
            raise self._not_found(path)
        if isinstance(change, Restore):
            return Step(path, current, self._history.recover(change.version))
        if isinstance(change, Put):
            return Step(path, current, encoded(change, current, self._lane.largest))
        trash = ""
        if change.trash and current is not None:
            trash = self._trash_name(path)
        return Step(path, current, None, trash)

    def _carry_out(self, steps: Sequence[Step]) -> None:
        if len(steps) < 2:  # noqa: PLR2004  # one file changes at once, by its rename
            for step in steps:
                self._do(step)
            return
        try:
            self._history.promise(steps)
            for step in steps:
                self._do(step, durable_name=False)
            files.sync_names(self.root / step.path for step in steps)
        except (RagdocsError, OSError):
            # If it cannot be undone now, the next change or start does it: the record says so.
            with contextlib.suppress(RagdocsError, OSError):
                self._history.turn_back()
            with contextlib.suppress(RagdocsError, OSError):
                self._undo(steps)
                self._history.fulfil()
            raise
        # The change is made; if the record cannot be removed, the next start finds nothing to do.
        with contextlib.suppress(RagdocsError, OSError):
            self._history.fulfil()

    def _do(self, step: Step, *, durable_name: bool = True) -> None:
        path = files.contained(self.root, step.path, follow=False)
        if step.after is not None:
            files.make_directories(path.parent)
            files.write_atomic(path, step.after, durable_name=durable_name)
            return
        if not step.trash:
            files.remove(path)
            return
        trash = files.contained(self.root, step.trash, follow=False)
        files.make_directories(trash.parent, 0o700)
        if os.path.lexists(trash):  # only when a change is finished after a crash
            trash = self.root / self._trash_name(step.path)
        files.move(path, trash)

    def _undo(self, steps: Sequence[Step]) -> None:
        for step in reversed(steps):
            if self._state(step) != "after":
                continue
            path = files.contained(self.root, step.path, follow=False)
            if step.before is None:
                files.remove(path)
            elif step.trash and self._current(step.trash) == step.before:
                files.move(self.root / step.trash, path)
            else:
                files.make_directories(path.parent)
                files.write_atomic(path, step.before)

    def _finish(self) -> None:
        """Complete the change that a killed process began.

        Undo it if somebody has edited one of its files since.
        """
        promised = self._history.promised()
        if promised is None:
            return
        steps, is_forward = promised
        states = [self._state(step) for step in steps]
        if is_forward and "foreign" not in states:
            for step, state in zip(steps, states, strict=True):
                if state == "before":
                    self._do(step)
        elif not is_forward or "before" in states:
            self._undo(steps)
        self._history.fulfil()

    def _state(self, step: Step) -> str:
        """Return whether a file is as "before" a step, as "after" it, or "foreign"."""
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
        if step.is_done(current):
            return "after"
        return "foreign"

    def _finish_if_pending(self) -> None:
        if not self._lane.writable or time.monotonic() < self._finish_after:
            return
        # Searching goes on where nothing can be written: the next change will say why not.
        with contextlib.suppress(RagdocsError, OSError):
            if not self._history.pending() or not self._exists():
                return
            try:
                with lock(self.root, timeout=FINISH_SECONDS):
                    self._finish()
            except LockAcquisitionError:
                self._finish_after = time.monotonic() + FINISH_PAUSE_SECONDS

    # --- the root and its files ---

    def _exists(self) -> bool:
        """Return whether there is a root at all; one that cannot be used is an error."""
        root = self._configured_root
        if self._is_refused:
            hint = f"If you made this link yourself, configure {self.root} as the place instead"
            raise UnavailableError(f"{root} is a link that leads out of its folder", hint)
        if os.path.realpath(root) != str(self.root):
            raise UnavailableError(f"{root} now leads to another folder", "Restart to use that one")
        try:
            status = self.root.stat()
        except FileNotFoundError:
            if not os.path.lexists(root):
                return False
            raise UnavailableError(f"{root} is a link to nothing", "Is a disk missing?") from None
        except OSError as error:
            raise UnavailableError(
                f"{self.root} cannot be read: {error.strerror}", "Check its permissions"
            ) from error
        if not stat.S_ISDIR(status.st_mode):
            raise UnavailableError(f"{self.root} is not a folder")
        return True

    def _current(self, path: str) -> bytes | None:
        try:
            return files.read_bytes(files.contained(self.root, path, follow=False), SIZE_LIMIT)
        except NotFoundError:
            return None

    def _trash_name(self, path: str) -> str:
        """Return a free path in the trash, with the time in it."""
        names = trash_names(path, self._now())
        return next(name for name in names if not os.path.lexists(f"{self.root}/{name}"))

    def _not_found(self, path: str) -> NotFoundError:
        return not_found(path, self.scan().stamps)

    def _written(self, step: Step) -> Written:
        before = "" if step.before is None else version_of(step.before)
        if step.after is not None:
            return Written(step.path, version_of(step.after), before=before)
        if not step.trash:
            return Written(step.path, before=before)
        return Written(step.path, moved_to=str(self.root / step.trash), before=before)
