"""A workspace that opens in the background, follows its files and saves itself."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from ragdocs import caller
from ragdocs.config import NO_DATABASE, Config
from ragdocs.errors import ForbiddenError, LockAcquisitionError, RagdocsError, UnavailableError
from ragdocs.serve.indexing import Announcement
from ragdocs.serve.surface import ServerState, Verb
from ragdocs.system.heap import give_back

if TYPE_CHECKING:
    # Opening a workspace imports every engine: only the background thread does it.
    from ragdocs.open_lanes import OpenLane
    from ragdocs.search.corpus import Corpus
    from ragdocs.serve.follow import Follower
    from ragdocs.serve.watch import Watcher
    from ragdocs.types import Document
    from ragdocs.workspace import Workspace

logger = logging.getLogger("ragdocs")

Listener = Callable[[str, Sequence["Document"], Sequence[str]], None]

# How a server learns of changes in a team database.
TEAM = "team"
# A caller waits this long for the index to be opened.
PATIENCE_SECONDS = 8.0
# Once it is open, a caller waits this long for the files to be read; after that, answers come from
# what is indexed, with a note.
FIRST_INDEX_SECONDS = 5.0
# A search does not wait longer than this, nor for more passages, where much is left to read and it
# has found something.
EARLY_SECONDS = 0.75
EARLY_PASSAGES = 400
# So few files that are left to read are waited for all the same.
FEW_FILES = 300
# What the files can answer as well does not wait for the index any longer than this.
FILES_SECONDS = 0.5
# A snapshot is written after this long without a change, so that a burst of writes costs one.
QUIET_SECONDS = 2.0
# A long first encoding is interrupted for a snapshot this often, so that a kill costs little. Files
# that never rest do not put it off any longer either, because saving also compacts the index in
# memory.
SAVE_SECONDS = 60.0
TICK_SECONDS = 0.25
# How often a caller who waits looks whether a lane is read.
STEP_SECONDS = 0.05
# How often the files are compared where there are no events, or where a lane could not be read.
POLL_SECONDS = 2.0
# A command compares this many files with the index before it is answered, which takes 15
# microseconds a file; with more of them, the events of the watcher must do.
MOST_COMPARED = 5_000
# A command waits this long for the comparison that is under way.
COMPARISON_SECONDS = 5.0
# A model that nobody has needed for this long is given back; it is there again in 0.1 s.
MODEL_IDLE_SECONDS = 600.0
# Passages that are encoded before a search of a command is answered; a few files just saved.
ENCODED_FOR_COMMAND = 16
# A search waits this long for the first vectors if a new project has no more passages than those:
# by words alone it would find less, and the model is there in half of this.
FIRST_VECTORS_SECONDS = 1.0


class _StoppedError(Exception):
    """Ends a pass over the files between two of its steps."""


class Live:
    """One project, served; `workspace` waits until it is open."""

    def __init__(self, config: Config, model_idle_seconds: float = MODEL_IDLE_SECONDS) -> None:
        self.config = config
        self._model_idle_seconds = model_idle_seconds
        self.ready = False
        self.progress = "not started"
        self.heartbeat: datetime | None = None
        self.watcher: Watcher | None = None
        # Of the lanes that a team shares.
        self._follower: Follower | None = None
        self._workspace: Workspace | None = None
        self._failure: RagdocsError | None = None
        # The last error by lane, which is logged once and not at every try.
        self._read_errors: dict[str, str] = {}
        # Told which documents of a lane were indexed, and which paths are gone.
        self.listeners: list[Listener] = []
        self._save_errors: dict[str, str] = {}
        self._opened = threading.Event()
        self._opened_at = 0.0
        self._indexed = threading.Event()
        self._indexed_at = 0.0
        # Lanes whose files were all looked at.
        self._read_lanes: set[str] = set()
        self._stopping = threading.Event()
        self._made = threading.Event()
        self._foreseen = threading.Event()
        # Whether what was missing at the start has been encoded, or as much as could be.
        self._encoded = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._saved_at = 0.0
        self._announcement = Announcement(config)
        # One comparison of a lane with its files at a time.
        self._comparing: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

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
        if self._workspace is None:
            return
        from ragdocs.open_lanes import has_index

        # Without an index nothing has a vector yet: words answer, and passages load the model when
        # they are encoded.
        if self._workspace.encoder and has_index(self.config, self._workspace.open_lanes):
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

    def indexed(self, verb: Verb | None = None) -> Workspace:
        """Return the workspace once its first index is there, or after a while without.

        Of a verb, only the lanes that it needs are waited for.
        """
        workspace = self.workspace()
        while not self.is_ready_for(verb):
            patience = self.patience_for(verb)
            if not patience:
                break
            following = self._indexed
            if following.is_set():
                following = self._encoded
            following.wait(min(patience, STEP_SECONDS))
        return workspace

    def is_ready_for(self, verb: Verb | None) -> bool:
        """Tell whether the lanes of a verb are read, or whether waiting will not help."""
        if self.settled:
            return not self._awaits_first_vectors(verb)
        if verb is None or not verb.lanes or self._workspace is None:
            return False
        # A lane that is not configured is not waited for.
        lanes = self._workspace.open_lanes.keys() & set(verb.lanes)
        return bool(lanes) and self._read_lanes.issuperset(lanes)

    def _awaits_first_vectors(self, verb: Verb | None) -> bool:
        """Tell whether the few passages that a verb searches are just being encoded."""
        if self._encoded.is_set() or verb is None or not verb.meaning:
            return False
        if time.monotonic() > self._indexed_at + FIRST_VECTORS_SECONDS:
            return False
        missing = 0
        for name, corpus in self.corpora().items():
            if name in verb.lanes and not corpus.embedding_unavailable:
                info = corpus.info()
                missing += info.passages - info.vectors
        return 0 < missing <= ENCODED_FOR_COMMAND

    def may_search_early(self, verb: Verb | None) -> bool:
        """Tell whether a search may be tried on what is read so far, because much is left to read.

        It is an answer if it finds something.
        """
        if verb is None or not verb.meaning or verb.effect != "read":
            return False
        if not self._opened.is_set():
            return False
        unread = 0
        for name, corpus in self.corpora().items():
            if name in verb.lanes:
                unread += corpus.unread
        is_late = time.monotonic() >= self._opened_at + EARLY_SECONDS
        return unread > FEW_FILES and (is_late or self.passages(verb) >= EARLY_PASSAGES)

    def hasten(self, verb: Verb | None, seconds: float) -> None:
        """Have the files that a verb searches read in small steps for so long."""
        for name, corpus in self.corpora().items():
            if verb is not None and name in verb.lanes:
                corpus.awaited_until = time.monotonic() + seconds

    def passages(self, verb: Verb | None) -> int:
        """Count the passages that a verb can search now."""
        count = 0
        for name, corpus in self.corpora().items():
            if verb is not None and name in verb.lanes:
                count += corpus.info().passages
        return count

    def patience_for(self, verb: Verb | None) -> float:
        """Return the seconds that are left to wait for the index.

        A verb that only reads and searches for nothing is answered from the files.
        """
        patience = self.patience
        if verb is None or verb.meaning or verb.effect != "read" or not self._opened.is_set():
            return patience
        return max(0.0, patience - FIRST_INDEX_SECONDS + FILES_SECONDS)

    def catch_up(self, lanes: Collection[str], *, embed: bool) -> None:
        """Bring lanes up to their files now, as far as a caller can wait for that."""
        workspace = self.indexed()
        if not self._indexed.is_set():
            return
        for name in lanes:
            lane = workspace.open_lanes.get(name)
            if lane is None:
                continue
            with caller.maintaining():
                self._compare(name, lane.corpus)
                info = lane.corpus.info()
                # Of many, answers say how many are missing.
                if embed and info.passages - info.vectors <= ENCODED_FOR_COMMAND:
                    lane.corpus.embed()

    def _compare(self, name: str, corpus: Corpus) -> None:
        if self._relies_on_events(corpus.info().documents):
            return
        if self._comparing[name].acquire(timeout=COMPARISON_SECONDS):
            try:
                corpus.sync()
            finally:
                self._comparing[name].release()

    def _relies_on_events(self, documents: int) -> bool:
        has_events = self.watcher is not None and self.watcher.mode == "events"
        return has_events and documents > MOST_COMPARED

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

    @property
    def is_shared(self) -> bool:
        """Whether the project is one of a team database."""
        return self.config.team.database != NO_DATABASE

    def refusal(self) -> ForbiddenError | None:
        """Return why the caller may ask nothing about this project of a team, if so."""
        if not self.is_shared:
            return None
        try:
            self.workspace().role()
        except ForbiddenError as error:
            return error
        except UnavailableError:
            # Whatever is asked says what is wrong with the database.
            return None
        return None

    def state(self) -> ServerState:
        """Return whether the first index is there, and how the files are followed."""
        heartbeat = None
        if self.heartbeat:
            heartbeat = self.heartbeat.isoformat(timespec="seconds")
        watcher = "off"
        if self.watcher:
            watcher = self.watcher.mode
        if self._follower:
            watcher = TEAM
        return ServerState(self.ready, watcher, heartbeat)

    def corpora(self) -> Mapping[str, Corpus]:
        """Return the lanes that are open, without waiting for any."""
        if self._workspace is None or not self._opened.is_set():
            return {}
        return {name: open_lane.corpus for name, open_lane in self._workspace.open_lanes.items()}

    @property
    def seconds_since_compared(self) -> float | None:
        """Time since the index was compared with its files, if it was."""
        if self.heartbeat is None:
            return None
        return (datetime.now(UTC) - self.heartbeat).total_seconds()

    def redact(self, text: str) -> str:
        """Return a text without secrets, whether the project could be opened or not."""
        from ragdocs.text.redaction.redact import CallersRedactor

        try:
            return self.workspace().redactor.redact(text).text
        except RagdocsError:
            return CallersRedactor(os.environ).redact(text).text

    def stop(self) -> None:
        """End the background work and write a last snapshot."""
        self._stopping.set()
        if self.watcher:
            self.watcher.stop()
        if self._follower:
            self._follower.stop()
        thread = self._thread
        if thread:
            thread.join(timeout=1.5)
        self._announcement.end()
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
        from ragdocs.serve import follow, outside
        from ragdocs.workspace import Workspace

        self.progress = "opening"
        self._workspace = Workspace(self.config)
        for name, open_lane in self._workspace.open_lanes.items():
            open_lane.corpus.listener = partial(self._tell, name)
            if open_lane.feed is None:
                open_lane.corpus.serve_early()
            else:
                # The index is shared, so it is there already.
                self._read_lanes.add(name)
        self._follower = follow.follow(self._workspace, self._tell)
        self._made.set()
        outside.begin(self._workspace)
        self._workspace.load()
        give_back()

    def _tell(self, lane: str, documents: Sequence[Document], gone: Sequence[str]) -> None:
        for listener in self.listeners:
            listener(lane, documents, gone)

    def _follow_files(self) -> None:
        """Reconcile, encode and save until the server stops."""
        workspace = self._workspace
        assert workspace is not None
        self._begin_to_follow(workspace)
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
                for name, lane in _own(workspace.open_lanes).items():
                    lane.corpus.embed(partial(self._announce, name), self._interrupted)
                self._encoded.set()
                if not self._interrupted():
                    self._announcement.end()
                if self._due_to_save(changed_at):
                    self._save(workspace)
                    changed_at = self._saved_at = time.monotonic()
            except _StoppedError:
                return
            except Exception:
                # The edge of the loop: one failed pass must not end the following of files.
                self._encoded.set()
                logger.exception("following the files failed; trying again")
                self._stopping.wait(QUIET_SECONDS)
            self.heartbeat = datetime.now(UTC)
            self._let_the_model_rest(workspace)
            self._wait()

    def _let_the_model_rest(self, workspace: Workspace) -> None:
        if workspace.encoder:
            workspace.encoder.rest(self._model_idle_seconds)

    def _begin_to_follow(self, workspace: Workspace) -> None:
        from ragdocs.serve.watch import Watcher

        if self.config.watch.enabled:
            self.watcher = Watcher(workspace, self.config.watch)
            self.watcher.start()
        if self._follower:
            caller.begin(caller.MAINTENANCE)
            self._follower.start()

    def _reconcile(self, workspace: Workspace, *, everything: bool) -> None:
        """Bring the index up to date: all lanes, or those with changed files."""
        changes: dict[str, set[str] | None] = {}
        if self.watcher:
            changes.update(self.watcher.take())
        if everything:
            changes = dict.fromkeys(workspace.open_lanes)
        for name, lane in _small_first(_own(workspace.open_lanes)):
            if name not in changes:
                continue
            try:
                with self._comparing[name]:
                    lane.corpus.sync(changes[name], progress=partial(self._report, name))
                    self._read_lanes.add(name)
            except RagdocsError as error:
                # A lane that cannot be read does not stop the others; status names it.
                _warn_once(self._read_errors, name, f"the {name} lane cannot be read: {error}")
            else:
                self._read_errors.pop(name, None)
        if self._foreseen.is_set() and not self.ready:
            for lane in workspace.open_lanes.values():
                lane.index.prepare()
        self._indexed_at = time.monotonic()
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

    def _report(self, lane: str, stage: str, done: int, total: int) -> None:
        self.progress = f"{stage} {done} of {total}"
        self._announce(lane, stage, done, total)
        if self._stopping.is_set():
            raise _StoppedError

    def _announce(self, lane: str, stage: str, done: int, total: int) -> None:
        """Tell other processes how far the index is."""
        self._announcement.show(f"{lane}: {stage}", done, total)

    def _save(self, workspace: Workspace) -> None:
        for name, lane in _own(workspace.open_lanes).items():
            try:
                if lane.index.save():
                    give_back()
            except LockAcquisitionError:
                logger.debug("another process is writing the snapshot of %s", name)
            except RagdocsError as error:
                _warn_once(self._save_errors, name, f"the {name} index could not be saved: {error}")
            else:
                self._save_errors.pop(name, None)


def _own(open_lanes: Mapping[str, OpenLane]) -> dict[str, OpenLane]:
    """Return the lanes of this machine; those of a team are followed by their feed."""
    return {name: open_lane for name, open_lane in open_lanes.items() if open_lane.feed is None}


def _small_first(open_lanes: Mapping[str, OpenLane]) -> list[tuple[str, OpenLane]]:
    """Return lanes in the order to read them: memories are few, documentation may be large."""
    return sorted(open_lanes.items(), key=lambda open_lane: not open_lane[1].corpus.lane.writable)


def _warn_once(errors: dict[str, str], lane: str, message: str) -> None:
    """Log an error of a lane unless it is the same as last time."""
    if errors.get(lane) != message:
        errors[lane] = message
        logger.warning("%s", message)
