"""A workspace that opens in the background, follows its files.

And saves itself when it is quiet.
"""

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
# Once it is open, so much is waited for the files to be read; after that everybody gets what is
# there, and a note.
FIRST_INDEX_SECONDS = 5.0
# A snapshot is written after this long without a change, so that a burst of writes costs one.
QUIET_SECONDS = 2.0
# A long first encoding is interrupted for a snapshot this often, so that a kill costs little; files
# that never rest do not put it off any longer either, because with it the index in memory is tidied
# up.
SAVE_SECONDS = 60.0
TICK_SECONDS = 0.25
# How often the files are looked at where there are no events, or where a lane could not be read.
POLL_SECONDS = 2.0


class _StoppedError(Exception):
    """Ends a pass over the files between two of its steps."""


class Live:
    """One project, served: `workspace` waits until there is something to ask."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.ready = False
        self.progress = "not started"
        self.heartbeat: datetime | None = None
        self.watcher: Watcher | None = None
        self._workspace: Workspace | None = None
        self._failure: RagdocsError | None = None
        # What went wrong last, by lane: told once, not every time it is tried again.
        self._unread: dict[str, str] = {}
        self._unsaved: dict[str, str] = {}
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
        """Load the model for a search that waits for the index.

        Two things that can happen at once.
        """
        if not self._foreseen.is_set():
            self._foreseen.set()
            threading.Thread(target=self._load_model, name="ragdocs-model", daemon=True).start()

    def _load_model(self) -> None:
        self._made.wait(PATIENCE_SECONDS)
        encoder = self._workspace.encoder if self._workspace else None
        if encoder:
            # The search that meets the same failure tells of it.
            with suppress(UnavailableError):
                encoder.prepare()

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
        """Return the workspace once its first index is there.

        Or after a while with what there is of it.
        """
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
        """Tell whether there is nothing left to wait for.

        The first index is there, or opening it failed.
        """
        return self._indexed.is_set() or self._failure is not None

    def state(self) -> ServerState:
        """Tell whether the first index is there, and whether somebody is following the files."""
        heartbeat = self.heartbeat.isoformat(timespec="seconds") if self.heartbeat else None
        watcher = self.watcher.mode if self.watcher else "off"
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
        except (
            Exception
        ) as error:  # the watch loop's edge: a server that cannot open says so in every answer
            logger.exception("opening the project failed")
            self._failure = UnavailableError(
                f"opening the project failed: {type(error).__name__}", "See the log"
            )
            return
        finally:
            self._opened_at = time.monotonic()
            self._opened.set()
        self._keep()

    def _open(self) -> None:
        from ragdocs.workspace import Workspace

        self.progress = "opening"
        self._workspace = Workspace(self.config)
        self._made.set()
        self._workspace.load()
        give_back()

    def _keep(self) -> None:
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
                due = time.monotonic() - reconciled_at >= self._interval()
                if due or (self.watcher and self.watcher.pending.is_set()):
                    self._reconcile(workspace, everything=due)
                    reconciled_at = time.monotonic() if due else reconciled_at
                    changed_at = time.monotonic()
                workspace.embed(stop=self._interrupted)
                if self._due_to_save(changed_at):
                    self._save(workspace)
                    changed_at = self._saved_at = time.monotonic()
            except _StoppedError:
                return
            except (
                Exception
            ):  # the watch loop's edge: one failed pass must not end the following of files
                logger.exception("following the files failed; trying again")
                self._stopping.wait(QUIET_SECONDS)
            self.heartbeat = datetime.now(UTC)
            self._wait()

    def _reconcile(self, workspace: Workspace, *, everything: bool) -> None:
        changes = self.watcher.take() if self.watcher else {}
        for name, place in workspace.places.items():
            if not everything and name not in changes:
                continue
            try:
                place.corpus.sync(None if everything else changes[name], progress=self._report)
            except RagdocsError as error:
                # One lane that cannot be read keeps nobody from following the others; status names
                # it.
                _tell(self._unread, name, f"the {name} lane cannot be read: {error}")
            else:
                self._unread.pop(name, None)
        if self._foreseen.is_set() and not self.ready:
            for place in workspace.places.values():
                place.index.prepare()
        self._indexed.set()
        self.ready = True
        self.progress = "ready"

    def _interval(self) -> float:
        polling = self.watcher is not None and self.watcher.mode == "polling"
        return (
            POLL_SECONDS if polling or self._unread else float(self.config.watch.reconcile_seconds)
        )

    def _due_to_save(self, changed_at: float) -> bool:
        now = time.monotonic()
        return now - changed_at >= QUIET_SECONDS or now - self._saved_at > SAVE_SECONDS

    def _interrupted(self) -> bool:
        pending = self.watcher is not None and self.watcher.pending.is_set()
        return (
            self._stopping.is_set() or pending or time.monotonic() - self._saved_at > SAVE_SECONDS
        )

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
        for name, place in workspace.places.items():
            try:
                if place.index.save():
                    give_back()
            except LockAcquisitionError:
                logger.debug("another process is writing the snapshot of %s", name)
            except RagdocsError as error:
                _tell(self._unsaved, name, f"the {name} index could not be saved: {error}")
            else:
                self._unsaved.pop(name, None)


def _tell(told: dict[str, str], about: str, message: str) -> None:
    if told.get(about) != message:
        told[about] = message
        logger.warning("%s", message)
