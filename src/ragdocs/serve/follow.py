"""Follows what other servers write to a team database."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from ragdocs import caller
from ragdocs.errors import RagdocsError, UnavailableError

if TYPE_CHECKING:
    # Opening a workspace imports every engine.
    from ragdocs.open_lanes import OpenLane
    from ragdocs.types import Document
    from ragdocs.workspace import Workspace

Listener = Callable[[str, Sequence["Document"], Sequence[str]], None]

# Writers announce what they change; an announcement may be lost with a connection.
POLL_SECONDS = 5.0
# A writer indexes its own text; after this long somebody else does.
GRACE_SECONDS = 1.0
# How often statistics are added up, and branches looked for.
UPKEEP_SECONDS = 20.0
# How often old changes are dropped; writers do it too, if they write much.
PRUNE_SECONDS = 3600.0
# Paths that are told about one by one; of more, pages only learn that there are many.
MOST_TOLD = 200

logger = logging.getLogger("ragdocs")


class Follower:
    """One thread for each lane that a team shares.

    It indexes what a writer left behind, encodes, and tells listeners of this server what others
    have written.
    """

    def __init__(self, workspace: Workspace, lanes: Sequence[str], listener: Listener) -> None:
        self.lanes = tuple(lanes)
        self._workspace = workspace
        self._listener = listener
        self._stopping = threading.Event()
        # The version of each path that listeners know, by lane; "" for one that is gone.
        self._versions: dict[tuple[str, str], str] = {}
        # When the history of each lane is pruned next.
        self._prune_at: dict[str, float] = {}

    def start(self) -> None:
        """Begin to follow."""
        for lane in self.lanes:
            thread = threading.Thread(
                target=self._follow, args=(lane,), name=f"ragdocs-{lane}", daemon=True
            )
            thread.start()

    def stop(self) -> None:
        """End the threads, each after its step."""
        self._stopping.set()

    def tell(self, lane: str, documents: Sequence[Document], gone: Sequence[str]) -> None:
        """Tell listeners what they do not know yet."""
        fresh = []
        for document in documents:
            if self._versions.get((lane, document.path)) != document.version:
                self._versions[lane, document.path] = document.version
                fresh.append(document)
        removed = []
        for path in gone:
            if self._versions.get((lane, path), " "):
                self._versions[lane, path] = ""
                removed.append(path)
        if fresh or removed:
            self._listener(lane, fresh, removed)

    def _follow(self, lane: str) -> None:
        caller.begin(caller.MAINTENANCE)
        cursor = ""
        problem = ""
        upkeep_at = time.monotonic() + UPKEEP_SECONDS
        while not self._stopping.is_set():
            try:
                cursor = self._step(lane, cursor)
                if time.monotonic() > upkeep_at:
                    upkeep_at = time.monotonic() + UPKEEP_SECONDS
                    self._keep_up(lane)
                problem = ""
            except RagdocsError as error:
                if str(error) != problem:
                    problem = str(error)
                    logger.warning("the %s lane of the team is not followed: %s", lane, error)
                self._stopping.wait(POLL_SECONDS)
            except Exception:
                # The edge of the thread: one failed step must not end the following of others.
                logger.exception("following the %s lane of the team failed; trying again", lane)
                self._stopping.wait(POLL_SECONDS)

    def _step(self, lane: str, cursor: str) -> str:
        """Look at what changed since a cursor, wait for more, and return the next cursor."""
        open_lane = self._workspace.open_lanes.get(lane)
        if open_lane is None or open_lane.feed is None:
            # It could not be opened, or nothing was pushed yet.
            self._stopping.wait(POLL_SECONDS)
            with suppress(UnavailableError):
                self._workspace.corpus(lane)
            return ""
        open_lane.corpus.listener = partial(self.tell, lane)
        following, paths = open_lane.feed.changes(cursor)
        if "" in paths:
            open_lane.corpus.sync()
        elif paths:
            self._stopping.wait(GRACE_SECONDS)
            open_lane.corpus.sync(paths)
            self._tell_paths(lane, open_lane, paths)
        open_lane.corpus.embed(stop=self._stopping.is_set)
        open_lane.feed.wait(POLL_SECONDS)
        return following

    def _tell_paths(self, lane: str, open_lane: OpenLane, paths: Sequence[str]) -> None:
        documents = []
        gone = []
        for path in paths[:MOST_TOLD]:
            document = open_lane.corpus.get(path)
            if document is None:
                gone.append(path)
            else:
                documents.append(document)
        self.tell(lane, documents, gone)

    def _keep_up(self, lane: str) -> None:
        """Do what has to be done now and then."""
        open_lane = self._workspace.open_lanes.get(lane)
        if open_lane is not None:
            open_lane.index.save()
            self._prune(lane, open_lane)
        self._workspace.follow_branch()

    def _prune(self, lane: str, open_lane: OpenLane) -> None:
        """Drop what is too old of the history, where nobody writes enough to do it."""
        from ragdocs.stores.postgres.texts import RowStore

        now = time.monotonic()
        if isinstance(open_lane.store, RowStore) and now >= self._prune_at.get(lane, 0.0):
            self._prune_at[lane] = now + PRUNE_SECONDS
            open_lane.store.prune()


def follow(workspace: Workspace, listener: Listener) -> Follower | None:
    """Return who follows the shared lanes of a workspace, or nobody where there are none."""
    if not workspace.shared_lanes:
        return None
    return Follower(workspace, workspace.shared_lanes, listener)
