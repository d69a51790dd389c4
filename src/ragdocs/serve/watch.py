"""The file watcher: events where the system has them, polling where it has not."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from watchfiles import Change, watch

from ragdocs.config import WatchConfig
from ragdocs.workspace import Workspace

logger = logging.getLogger("ragdocs")

# How often a waiting thread checks whether it should end, or whether a folder has appeared.
TICK_MS = 1000


class Watcher:
    """Collects changed paths by lane; `pending` is set while there are any."""

    def __init__(self, workspace: Workspace, settings: WatchConfig) -> None:
        self.pending = threading.Event()
        self.mode = "events"
        if settings.poll:
            self.mode = "polling"
        self._settings = settings
        self._stores = {name: lane.store for name, lane in workspace.open_lanes.items()}
        self._changes: dict[str, set[str]] = defaultdict(set)
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    def start(self) -> None:
        """Begin to listen; without events, the files are compared often instead."""
        if self.mode != "events":
            return
        for recursive in (True, False):
            thread = threading.Thread(
                target=self._listen,
                args=(recursive,),
                name=f"ragdocs-watch-{recursive}",
                daemon=True,
            )
            thread.start()

    def stop(self) -> None:
        """End the listening threads."""
        self._stopping.set()
        self.pending.set()

    def take(self) -> dict[str, set[str]]:
        """Return the changed paths by lane and forget them."""
        with self._lock:
            changes = dict(self._changes)
            self._changes.clear()
            self.pending.clear()
            return changes

    def _listen(self, recursive: bool) -> None:
        while not self._stopping.is_set():
            roots = self._roots(recursive=recursive)
            if not roots:
                # A folder such as .memories may appear later.
                self._stopping.wait(TICK_MS / 1000)
                continue
            try:
                self._follow(roots, recursive=recursive)
            except FileNotFoundError:
                # It was removed just now; the next turn sees what is there instead.
                self._stopping.wait(TICK_MS / 1000)
            except (OSError, RuntimeError) as error:
                # At the limit of inotify watches, or on a file system without events.
                logger.warning(
                    "no file events (%s); looking at the files every two seconds instead", error
                )
                self.mode = "polling"
                return

    def _follow(self, roots: Mapping[Path, int], *, recursive: bool) -> None:
        events = watch(
            *roots,
            watch_filter=self._interesting,
            debounce=max(self._settings.debounce_ms, 50),
            step=50,
            rust_timeout=TICK_MS,
            yield_on_timeout=True,
            stop_event=self._stopping,
            recursive=recursive,
            raise_interrupt=False,
        )
        # The first turn comes when the events have begun; the roots stand for earlier writes.
        is_first = True
        for batch in events:
            paths = [path for _, path in batch]
            if is_first:
                paths += map(str, roots)
                is_first = False
            self._collect(paths)
            if _needs_restart(batch, roots, recursive=recursive):
                return
            if self._roots(recursive=recursive) != roots:
                return

    def _roots(self, *, recursive: bool) -> dict[Path, int]:
        """Map the folders to listen at to their inodes, which tell a folder made anew."""
        inodes = {}
        for store in self._stores.values():
            for path, is_deep in store.watched():
                if is_deep == recursive:
                    with suppress(OSError):
                        inodes[path] = path.stat().st_ino
        return inodes

    def _interesting(self, _: Change, path: str) -> bool:
        return any(store.relative(path) is not None for store in self._stores.values())

    def _collect(self, paths: Iterable[str]) -> None:
        with self._lock:
            for path in paths:
                for name, store in self._stores.items():
                    relative = store.relative(path)
                    if relative is not None:
                        self._changes[name].add(relative)
                        self.pending.set()


def _needs_restart(
    batch: Collection[tuple[Change, str]], roots: Mapping[Path, int], *, recursive: bool
) -> bool:
    """Tell whether listening must begin anew after these events."""
    for change, path in batch:
        # A folder that was removed and made anew has the same name, but gives no events.
        if change is Change.deleted and Path(path) in roots:
            return True
        # Where the system has no watch left for a new folder, neither it nor watchfiles reports
        # that: only listening anew shows it.
        if recursive and change is Change.added and Path(path).is_dir():
            return True
    return False
