"""A workspace that opens in the background, follows its files and saves itself."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ragdocs.config import Config
from ragdocs.errors import LockAcquisitionError, RagdocsError, UnavailableError
from ragdocs.serve.surface import ServerState
from ragdocs.system.heap import give_back

if TYPE_CHECKING:
    # Opening a workspace imports every engine: only the background thread does it.
    from ragdocs.serve.watch import Watcher
    from ragdocs.workspace import Workspace

logger = logging.getLogger("ragdocs")

# A caller waits this long for the index to be opened.
PATIENCE_SECONDS = 8.0
# Once it is open, a caller waits this long for the files to be read; after that, answers come from
# what is indexed, with a note.
FIRST_INDEX_SECONDS = 5.0
# A snapshot is written after this long without a change, so that a burst of writes costs one.
QUIET_SECONDS = 2.0
# A long first encoding is interrupted for a snapshot this often, so that a kill costs little. Files
# that never rest do not put it off any longer either, because saving also compacts the index in
# memory.
SAVE_SECONDS = 60.0
TICK_SECONDS = 0.25
# How often the files are compared where there are no events, or where a lane could not be read.
POLL_SECONDS = 2.0


class _StoppedError(Exception):
    """Ends a pass over the files between two of its steps."""


class Live:
    """One project, served; `workspace` waits until it is open."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.ready = False
        self.progress = "not started"
        self.heartbeat: datetime | None = None
        self.watcher: Watcher | None = None
        self._workspace: Workspace | None = None
        self._failure: RagdocsError | None = None
        # The last error by lane, which is logged once and not at every try.
        self._read_errors: dict[str, str] = {}
        self._save_errors: dict[str, str] = {}
        self._opened = threading.Event()
        self._opened_at = 0.0
        self._indexed = threading.Event()
        self._stopping = threading.Event()
        self._made = threading.Event()
        self._foreseen = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._saved_at = 0.0

    def start(self) -> None:
        """Begin to open the workspace, if nobody has yet."""
        with self._starting:
            if self._thread is None and not self._stopping.is_set():
                self._thread = threading.Thread(
                    target=self._run, name="ragdocs-keeper", daemon=True
                )
                self._thread.start()

    def foresee(self) -> None:
        """Load the model for a search while the index is still being opened."""
        if not self._foreseen.is_set():
            self._foreseen.set()
            threading.Thread(target=self._load_model, name="ragdocs-model", daemon=True).start()

    def _load_model(self) -> None:
        self._made.wait(PATIENCE_SECONDS)
        if self._workspace and self._workspace.encoder:
            # The search that meets the same failure reports it.
            with suppress(UnavailableError):
                self._workspace.encoder.prepare()

    def workspace(self) -> Workspace:
        """Return the workspace as soon as it is open; its index may still be growing."""
        self.start()
        self._opened.wait(PATIENCE_SECONDS)
        if self._failure:
            raise self._failure
        if self._workspace is None or not self._opened.is_set():
            raise UnavailableError("the index is still being opened", "Ask again in a few seconds")
        return self._workspace

    def indexed(self) -> Workspace:
        """Return the workspace once its first index is there, or after a while without."""
        workspace = self.workspace()
        self._indexed.wait(self.patience)
        return workspace

    @property
    def patience(self) -> float:
        """Seconds that are left to wait for the first index."""
        if not self._opened.is_set():
            return PATIENCE_SECONDS
        return max(0.0, self._opened_at + FIRST_INDEX_SECONDS - time.monotonic())

    @property
    def settled(self) -> bool:
        """Whether the first index is there, or opening it failed."""
        return self._indexed.is_set() or self._failure is not None

    def state(self) -> ServerState:
        """Return whether the first index is there, and how the files are followed."""
        heartbeat = None
        if self.heartbeat:
            heartbeat = self.heartbeat.isoformat(timespec="seconds")
        watcher = "off"
        if self.watcher:
            watcher = self.watcher.mode
        return ServerState(self.ready, watcher, heartbeat)

    def stop(self) -> None:
        """End the background work and write a last snapshot."""
        self._stopping.set()
        if self.watcher:
            self.watcher.stop()
        thread = self._thread
        if thread:
            thread.join(timeout=1.5)
        if self._workspace and (thread is None or not thread.is_alive()):
            self._save(self._workspace)

    def _run(self) -> None:
        try:
            self._open()
        except RagdocsError as error:
            self._failure = error
            return
        except Exception as error:
            # The edge of the thread: a server that cannot open says so in every answer.
            logger.exception("opening the project failed")
            message = f"opening the project failed: {type(error).__name__}"
            self._failure = UnavailableError(message, "See the log")
            return
        finally:
            self._opened_at = time.monotonic()
            self._opened.set()
        self._follow_files()

    def _open(self) -> None:
        from ragdocs.workspace import Workspace

        self.progress = "opening"
        self._workspace = Workspace(self.config)
        self._made.set()
        self._workspace.load()
        give_back()

    def _follow_files(self) -> None:
        """Reconcile, encode and save until the server stops."""
        from ragdocs.serve.watch import Watcher

        workspace = self._workspace
        assert workspace is not None
        if self.config.watch.enabled:
            self.watcher = Watcher(workspace, self.config.watch)
            self.watcher.start()
        changed_at = self._saved_at = time.monotonic()
        reconciled_at = -float("inf")
        while not self._stopping.is_set():
            try:
                is_due = time.monotonic() - reconciled_at >= self._interval()
                if is_due or self._has_events():
                    self._reconcile(workspace, everything=is_due)
                    changed_at = time.monotonic()
                if is_due:
                    reconciled_at = time.monotonic()
                workspace.embed(stop=self._interrupted)
                if self._due_to_save(changed_at):
                    self._save(workspace)
                    changed_at = self._saved_at = time.monotonic()
            except _StoppedError:
                return
            except Exception:
                # The edge of the loop: one failed pass must not end the following of files.
                logger.exception("following the files failed; trying again")
                self._stopping.wait(QUIET_SECONDS)
            self.heartbeat = datetime.now(UTC)
            self._wait()

    def _reconcile(self, workspace: Workspace, *, everything: bool) -> None:
        """Bring the index up to date: all lanes, or those with changed files."""
        changes: dict[str, set[str] | None] = {}
        if self.watcher:
            changes.update(self.watcher.take())
        if everything:
            changes = dict.fromkeys(workspace.places)
        for name, lane in workspace.places.items():
            if name not in changes:
                continue
            try:
                lane.corpus.sync(changes[name], progress=self._report)
            except RagdocsError as error:
                # A lane that cannot be read does not stop the others; status names it.
                _warn_once(self._read_errors, name, f"the {name} lane cannot be read: {error}")
            else:
                self._read_errors.pop(name, None)
        if self._foreseen.is_set() and not self.ready:
            for lane in workspace.places.values():
                lane.index.prepare()
        self._indexed.set()
        self.ready = True
        self.progress = "ready"

    def _interval(self) -> float:
        """Return the seconds between two comparisons of all files with the index."""
        is_polling = self.watcher is not None and self.watcher.mode == "polling"
        if is_polling or self._read_errors:
            return POLL_SECONDS
        return float(self.config.watch.reconcile_seconds)

    def _has_events(self) -> bool:
        return self.watcher is not None and self.watcher.pending.is_set()

    def _due_to_save(self, changed_at: float) -> bool:
        now = time.monotonic()
        return now - changed_at >= QUIET_SECONDS or now - self._saved_at > SAVE_SECONDS

    def _interrupted(self) -> bool:
        """Tell whether encoding should pause for something more urgent."""
        save_is_due = time.monotonic() - self._saved_at > SAVE_SECONDS
        return self._stopping.is_set() or self._has_events() or save_is_due

    def _wait(self) -> None:
        if self.watcher:
            self.watcher.pending.wait(TICK_SECONDS)
        else:
            self._stopping.wait(TICK_SECONDS)

    def _report(self, stage: str, done: int, total: int) -> None:
        self.progress = f"{stage} {done} of {total}"
        if self._stopping.is_set():
            raise _StoppedError

    def _save(self, workspace: Workspace) -> None:
        for name, lane in workspace.places.items():
            try:
                if lane.index.save():
                    give_back()
            except LockAcquisitionError:
                logger.debug("another process is writing the snapshot of %s", name)
            except RagdocsError as error:
                _warn_once(self._save_errors, name, f"the {name} index could not be saved: {error}")
            else:
                self._save_errors.pop(name, None)


def _warn_once(errors: dict[str, str], lane: str, message: str) -> None:
    """Log an error of a lane unless it is the same as last time."""
    if errors.get(lane) != message:
        errors[lane] = message
        logger.warning("%s", message)
