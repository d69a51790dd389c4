"""How many documentation files lie outside the globs of a project, for status and empty answers."""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from ragdocs.lanes import DOCS, Lane
from ragdocs.project.copies import Copies
from ragdocs.project.documentation import Listing, file_size, list_documentation
from ragdocs.project.formats import format_of, is_installed
from ragdocs.stores.files.globs import Rules
from ragdocs.system import git

if TYPE_CHECKING:
    # Opening a workspace imports every engine.
    from ragdocs.workspace import Workspace

# A count is made anew when git's index has changed, or after this long for files that git does not
# know.
FRESH_SECONDS = 300.0
# A search does not look at git's index more often than this.
LOOK_SECONDS = 2.0
# Documents that a note names one by one.
MOST_NAMED = 5


class Outside(NamedTuple):
    """Documents that no glob chooses: originals, and copies such as translations.

    `unread` are those that are not read with what is installed, by the extra that reads them.
    """

    originals: int = 0
    copies: int = 0
    unread: Mapping[str, Sequence[str]] = MappingProxyType({})

    def unread_notes(self) -> list[str]:
        """Name the documents that are not read, and what reads them."""
        notes = []
        for extra, paths in self.unread.items():
            subject = f"{len(paths):,} documents are not read"
            if len(paths) == 1:
                subject = "1 document is not read"
            listed = ", ".join(paths[:MOST_NAMED])
            if len(paths) > MOST_NAMED:
                listed += f" and {len(paths) - MOST_NAMED:,} more"
            notes.append(f"{subject} without ragdocs[{extra}]: {listed}")
        return notes

    def note(self) -> str:
        """Say how many there are and how to see them, or nothing if there are none."""
        total = self.originals + self.copies
        if not total:
            return ""
        subject = f"{total:,} documentation files lie"
        if total == 1:
            subject = "1 documentation file lies"
        kinds = ""
        if self.copies:
            kinds = f", {self.copies:,} of them translations, old versions, generated or test data"
        return f"{subject} outside the configured globs{kinds}; `ragdocs init --dry-run` shows them"


def count_outside(root: Path, lane: Lane, listing: Listing | None = None) -> Outside:
    """Count the documents of a project that the globs of its lane do not choose.

    Files that an exclude glob names are left out on purpose, so they do not count.
    """
    listing = listing or list_documentation(root)
    copies = Copies(listing.paths)
    rules = Rules(lane)
    not_excluded = Rules(replace(lane, include=("**/*",)))
    originals = copied = 0
    unread: defaultdict[str, list[str]] = defaultdict(list)
    for path in listing.paths:
        if rules.lists(path) or not not_excluded.lists(path):
            continue
        # A link, or a file that git tracks and somebody has just removed.
        if file_size(root, path) is None:
            continue
        kind = format_of(path)
        if kind is not None and not is_installed(kind.extra):
            unread[kind.extra].append(path)
        elif copies.find(path) is None:
            originals += 1
        else:
            copied += 1
    return Outside(originals, copied, unread)


@dataclass
class OutsideCount:
    """The count of one project, made in the background and kept while git's index is the same."""

    root: Path
    lane: Lane
    _count: Outside | None = None
    _state: tuple[int, int] = (0, 0)
    _counted_at: float = 0.0
    _looked_at: float = -math.inf
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _thread: threading.Thread | None = None

    def latest(self) -> Outside:
        """Return the last count without waiting for a new one, which is begun if it is due."""
        now = time.monotonic()
        if now - self._looked_at > LOOK_SECONDS:
            self._looked_at = now
            if self._is_due():
                self.begin()
        return self._count or Outside()

    def current(self) -> Outside:
        """Return a count that is not outdated, and wait for it."""
        if self._is_due():
            self._make()
        return self._count or Outside()

    def begin(self) -> None:
        """Count in the background, unless somebody does already."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return
            self._thread = threading.Thread(target=self._make, name="ragdocs-outside", daemon=True)
            self._thread.start()

    def _is_due(self) -> bool:
        if self._count is None or time.monotonic() - self._counted_at > FRESH_SECONDS:
            return True
        return self._state != _index_state(self.root)

    def _make(self) -> None:
        state = _index_state(self.root)
        self._count = count_outside(self.root, self.lane)
        self._state = state
        self._counted_at = time.monotonic()


_COUNTS: WeakKeyDictionary[Workspace, OutsideCount] = WeakKeyDictionary()


def outside_of(workspace: Workspace) -> OutsideCount | None:
    """Return the count of a workspace, or nothing where documents are not searched."""
    open_lane = workspace.open_lanes.get(DOCS.name)
    if open_lane is None:
        return None
    count = _COUNTS.get(workspace)
    if count is None:
        count = OutsideCount(workspace.config.root, open_lane.corpus.lane)
        _COUNTS[workspace] = count
    return count


def begin(workspace: Workspace) -> None:
    """Count in the background, so that the first empty answer can tell."""
    count = outside_of(workspace)
    if count is not None:
        count.begin()


def status_notes(workspace: Workspace) -> dict[str, list[str]]:
    """Say by lane how many documents are not chosen, originals and copies."""
    count = outside_of(workspace)
    if count is None:
        return {}
    outside = count.current()
    notes = outside.unread_notes()
    note = outside.note()
    if note:
        notes = [note, *notes]
    return {count.lane.name: notes}


def empty_notes(workspace: Workspace, *, wait: bool) -> list[str]:
    """Say after a search without results that there was nothing to search, or how much was not.

    Copies alone are no reason to say so: they repeat what was searched.
    """
    count = outside_of(workspace)
    if count is None:
        return []
    outside = count.latest()
    if wait:
        outside = count.current()
    notes = []
    if _is_empty(workspace):
        notes.append(f"no document is indexed: the configuration includes no file of {count.root}")
    if outside.originals:
        notes.append(outside.note())
    return notes


def _is_empty(workspace: Workspace) -> bool:
    """Tell whether the documentation is looked through already, and has nothing in it."""
    corpus = workspace.open_lanes[DOCS.name].corpus
    return not corpus.info().documents and not corpus.unread


def _index_state(root: Path) -> tuple[int, int]:
    """Name the state of git's index without reading it."""
    repository = git.find(root)
    if repository is None:
        return (0, 0)
    try:
        status = (repository.own / "index").stat()
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)
