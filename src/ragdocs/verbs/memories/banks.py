"""The memories of this user's other projects, opened from their snapshots.

Nothing is written there.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from ragdocs.config import Config, MemoryConfig
from ragdocs.errors import NotFoundError, RagdocsError, UnavailableError
from ragdocs.lanes import MEMORY, Lane
from ragdocs.project import folders, layout, registry
from ragdocs.search.corpus import Corpus
from ragdocs.types import FRESH
from ragdocs.verbs.memories.recall import Bank

# Projects that are asked, and those whose indexes stay open: some ten megabytes for 10,000
# memories.
MOST_BANKS = 32
MOST_OPEN = 8
# How long a look at all files is good for, while the times of their folders stay: only an edit in
# place hides so long.
LOOK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Snapshots:
    """How the index of another project is read, whatever engine wrote it."""

    # Names the generation in the folder of an index; raises NotFoundError where there is none.
    generation: Callable[[Path], bytes]
    # Opens a lane from the folder of its files and that of its index; None if it is not trusted.
    open: Callable[[Lane, Path, Path], Corpus | None]


@dataclass(slots=True)
class _OpenProject:
    """A project's corpus, the generation it came from, and what was last seen of its files."""

    generation: bytes
    corpus: Corpus
    folders: list[str]
    folder_times: list[int] = field(default_factory=list)
    looked_at: float = 0.0
    unread: int = 0


class Elsewhere:
    """Opens other projects on demand and keeps the last used ones open."""

    def __init__(self, config: Config, lane: Lane, snapshots: Snapshots) -> None:
        self._config = config
        self._lane = lane
        self._snapshots = snapshots
        # By the project's folder; the last used come last.
        self._opened: dict[Path, _OpenProject] = {}
        self._opening = threading.Lock()

    def banks(self) -> tuple[list[Bank], list[str]]:
        """Return a bank for each project that can be opened, the last used first.

        And notes about the others.
        """
        projects, notes = self._projects()
        if len(projects) > MOST_BANKS:
            count = len(projects) - MOST_BANKS
            notes.append(f"{count} projects that were not used for longest were not asked")
        banks = []
        with self._opening:
            for config, name in projects[:MOST_BANKS]:
                try:
                    project = self._open(config)
                    key = str(registry.main_worktree(config.root))
                    banks.append(Bank(name, key, project.corpus))
                    unread = _unread(project)
                except RagdocsError as error:
                    notes.append(f"{name} was left out: {error}")
                    continue
                if unread:
                    notes.append(
                        f"{name}: {unread} files changed since its index was saved"
                        " and were not asked"
                    )
            for root in list(self._opened)[:-MOST_OPEN]:
                del self._opened[root]
        return banks, notes

    def _projects(self) -> tuple[list[tuple[Config, str]], list[str]]:
        """List the other projects with their names, and the user's own bank last."""
        registered, notes = registry.projects()
        projects = []
        for project in registered:
            if project.path != self._config.root:
                projects.append((Config(root=project.path), project.name))
        if self._config.memory.storage_strategy != "user":
            own_bank = MemoryConfig(storage_strategy="user")
            user = Config(root=folders.data_dir(), memory=own_bank)
            if layout.memory_root(user).is_dir():
                projects.append((user, "user"))
        return projects, notes

    def _open(self, config: Config) -> _OpenProject:
        directory = layout.index_root(config, MEMORY)
        hint = f"Run `ragdocs index --project {config.root}` to have it asked"
        try:
            generation = self._snapshots.generation(directory)
        except NotFoundError:
            raise UnavailableError("it has no index", hint) from None
        project = self._opened.pop(config.root, None)
        if project is None or project.generation != generation:
            root = layout.memory_root(config)
            corpus = self._snapshots.open(self._read_only_lane(config), root, directory)
            if corpus is None:
                raise UnavailableError(
                    "its index is damaged, outdated, or was not made here by you", hint
                )
            project = _OpenProject(generation, corpus, _folders(corpus))
        self._opened[config.root] = project
        return project

    def _read_only_lane(self, config: Config) -> Lane:
        # Nothing that stands in the other folder decides anything: not its configuration, and no
        # lane that may write.
        base = MEMORY.base
        if config.memory.storage_strategy == "user":
            base = ""
        return replace(self._lane, writable=False, base=base)


def _folders(corpus: Corpus) -> list[str]:
    """List the folders that have indexed files in them or below them."""
    parents = {PurePosixPath()}
    for path in corpus.stamps():
        parents.update(PurePosixPath(path).parents)
    return [corpus.store.locate(str(parent)) for parent in parents]


def _unread(project: _OpenProject) -> int:
    """Count the files that came, went or changed since the index was saved.

    Whatever adds, removes or replaces a file moves the time of its folder, and folders are few.
    """
    folder_times = [_modified(folder) for folder in project.folders]
    is_recent = time.monotonic() - project.looked_at <= LOOK_SECONDS
    if folder_times != project.folder_times or not is_recent:
        project.unread = _count_unread(project.corpus)
        project.folder_times = folder_times
        project.looked_at = time.monotonic()
    return project.unread


def _count_unread(corpus: Corpus) -> int:
    present = corpus.store.scan().stamps
    indexed = {}
    for path, (stamp, _) in corpus.stamps().items():
        # A stamp that was taken right after a write says so in front; here that is as good as any.
        indexed[path] = stamp.removeprefix(FRESH)
    changed = sum(indexed.get(path) != stamp for path, stamp in present.items())
    return changed + len(indexed.keys() - present.keys())


def _modified(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns  # noqa: PTH116 - hundreds of them
    except OSError:
        return 0
