"""Opening the project that a command is about: the lanes it needs, brought up to their files."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ragdocs import caller
from ragdocs.errors import LockAcquisitionError, RagdocsError
from ragdocs.serve import indexing
from ragdocs.serve.cli.progress import Progress
from ragdocs.serve.source import load_config

if TYPE_CHECKING:
    from ragdocs.open_lanes import OpenLane
    from ragdocs.workspace import Workspace

# A person reads in a terminal that scrolls; an agent's answers have a budget of their own.
ROOM = 1_000_000
# How long a search works on the index before it answers from what is there. A step of indexing
# begins if it is likely to end in time.
ANSWER_SECONDS = 4.0
# Passages that are encoded between two looks at the clock; each takes a twentieth of a second, and
# several times that on a busy machine.
ENCODED_IN_TIME = 4
# A long encoding is interrupted for a snapshot this often, so that a kill costs little.
SAVE_SECONDS = 60.0


class _OutOfTimeError(Exception):
    """Ends the reading of files between two of its steps."""


class _Deadline:
    """Passes progress on until the next step would take longer than a caller waits."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._step_began = time.monotonic()
        self._end = self._step_began + ANSWER_SECONDS

    def of(self, lane: str) -> Callable[[str, int, int], None]:
        """Return what shows the steps of one lane and raises if there is no time for another."""
        return lambda stage, done, total: self._show(f"{lane}: {stage}", done, total)

    def _show(self, stage: str, done: int, total: int) -> None:
        self._progress.show(stage, done, total)
        now = time.monotonic()
        # Each step of indexing takes up to twice as many passages as the one before.
        next_seconds = 2 * (now - self._step_began)
        self._step_began = now
        if done < total and now + next_seconds > self._end:
            raise _OutOfTimeError

    def is_over(self) -> bool:
        """Tell whether it is time to answer."""
        return time.monotonic() > self._end


def open_workspace(
    project: str | None,
    settings: Sequence[str],
    *,
    lanes: Collection[str] | None = None,
    needed: Mapping[str, object] | None = None,
) -> Workspace:
    """Open these lanes of a project as they were indexed last."""
    from ragdocs.workspace import Workspace

    workspace = Workspace(load_config(project, settings, needed), lanes=lanes, room=ROOM)
    workspace.load()
    return workspace


def catch_up(workspace: Workspace, *, embed: bool = True) -> None:
    """Bring a workspace up to its files, with progress where that takes a while."""
    with Progress(workspace.config) as progress, caller.maintaining():
        for name, open_lane in workspace.open_lanes.items():
            open_lane.corpus.sync(progress=progress.of(name))
        for name, open_lane in workspace.open_lanes.items():
            if embed:
                open_lane.corpus.embed(progress.of(name))
    save(workspace)


def catch_up_in_time(workspace: Workspace, *, embed: bool) -> None:
    """Bring a workspace up to its files as far as that takes seconds; `complete` does the rest."""
    with Progress(workspace.config) as progress, caller.maintaining():
        deadline = _Deadline(progress)
        for name in _small_first(workspace):
            # Answers say how many files are not read yet.
            with suppress(_OutOfTimeError):
                workspace.open_lanes[name].corpus.sync(progress=deadline.of(name))
        for name in _small_first(workspace):
            if embed:
                corpus = workspace.open_lanes[name].corpus
                corpus.embed(progress.of(name), deadline.is_over, ENCODED_IN_TIME)


def _small_first(workspace: Workspace) -> list[str]:
    """Return lanes that are written to, which are small, before those that are only read."""

    def is_only_read(name: str) -> bool:
        return not workspace.open_lanes[name].corpus.lane.writable

    return sorted(workspace.open_lanes, key=is_only_read)


def is_complete(workspace: Workspace) -> bool:
    """Tell whether every file is read and every passage has its vector."""
    for open_lane in workspace.open_lanes.values():
        info = open_lane.corpus.info()
        lacks_vectors = info.vectors < info.passages and not open_lane.corpus.embedding_unavailable
        if open_lane.corpus.unread or lacks_vectors:
            return False
    return True


def complete(workspace: Workspace, project: str | None, settings: Sequence[str]) -> None:
    """Save what a hurried command has indexed, and see to it that somebody indexes the rest."""
    save(workspace)
    if is_complete(workspace):
        return
    others = indexing.at_work(workspace.config)
    if others:
        remark = others[0].words
    elif start_server(project, settings):
        remark = "a server in the background goes on with it; `ragdocs status` tells how far it is"
    else:
        remark = "`ragdocs index` completes it"
    print(f"ragdocs: the index is not complete yet: {remark}", file=sys.stderr)


def start_server(project: str | None, settings: Sequence[str]) -> bool:
    """Start the shared server of a project for the next command; tell whether that is possible."""
    from ragdocs.serve.shared import client

    return client.start_in_background(client.server_arguments(project, settings))


def encode(workspace: Workspace, open_lane: OpenLane, progress: Progress, lane: str) -> int:
    """Encode all passages of a lane; save now and then, so that an interruption costs little."""
    encoded = 0
    save_at = 0.0

    def is_due() -> bool:
        return time.monotonic() > save_at

    while True:
        save_at = time.monotonic() + SAVE_SECONDS
        encoded += open_lane.corpus.embed(progress.of(lane), is_due)
        if not is_due():
            return encoded
        save(workspace)


def save(workspace: Workspace) -> None:
    """Keep the index for the next start; a project that cannot be written to is still searched."""
    try:
        workspace.save()
    except LockAcquisitionError:
        return
    except RagdocsError as error:
        print(f"ragdocs: the index was not saved: {error}", file=sys.stderr)
