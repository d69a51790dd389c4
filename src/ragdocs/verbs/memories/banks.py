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
from ragdocs.engines.local.snapshot import POINTER
from ragdocs.errors import NotFoundError, RagdocsError, UnavailableError
from ragdocs.lanes import MEMORY, Lane
from ragdocs.project import folders as project
from ragdocs.project import layout, registry
from ragdocs.search.corpus import Corpus
from ragdocs.system import files as fsio
from ragdocs.verbs.memories.recall import Bank

# Projects that are asked, and those whose indexes stay open: some ten megabytes for 10,000
# memories.
MOST_BANKS = 32
MOST_OPEN = 8
# How long a look at all files is good for, while the times of their folders stay: only an edit in
# place hides so long.
LOOK_SECONDS = 60.0

# Opens a snapshot to be read: a lane, the folder of the files, the folder of the index; nothing if
# it is not trusted.
Reader = Callable[[Lane, Path, Path], Corpus | None]


@dataclass(slots=True)
class _Opened:
    """A project's corpus, the generation it came from, and what was last seen of its files."""

    generation: bytes
    corpus: Corpus
    folders: list[str]
    times: list[int] = field(default_factory=list)
    looked: float = 0.0
    behind: int = 0


class Elsewhere:
    """Opens other projects on demand and keeps the last used ones open."""

    def __init__(self, config: Config, lane: Lane, reader: Reader) -> None:
        self._config = config
        self._lane = lane
        self._reader = reader
        # By the project's folder; the last used come last.
        self._opened: dict[Path, _Opened] = {}
        self._opening = threading.Lock()

    def banks(self) -> tuple[list[Bank], list[str]]:
        """Return a bank for each project that can be opened, the last used first.

        And what to say about the others.
        """
        known, notes = registry.projects()
        places = [
            (Config(root=one.path), one.name) for one in known if one.path != self._config.root
        ]
        if self._config.memory.storage_strategy != "user":
            shared = Config(root=project.data_dir(), memory=MemoryConfig(storage_strategy="user"))
            places += [(shared, "user")] if layout.memory_root(shared).is_dir() else []
        if len(places) > MOST_BANKS:
            notes.append(
                f"{len(places) - MOST_BANKS} projects that were not used for longest were not asked"
            )
        banks = []
        with self._opening:
            for config, name in places[:MOST_BANKS]:
                try:
                    one = self._open(config)
                    banks.append(Bank(name, str(registry.main_worktree(config.root)), one.corpus))
                    if behind := _behind(one):
                        notes.append(
                            f"{name}: {behind} files changed since its index was saved and were not asked"
                        )
                except RagdocsError as error:
                    notes.append(f"{name} was left out: {error}")
            for root in list(self._opened)[:-MOST_OPEN]:
                del self._opened[root]
        return banks, notes

    def _open(self, config: Config) -> _Opened:
        # Nothing that stands in the other folder decides anything: not its configuration, and no
        # lane that may write.
        base = "" if config.memory.storage_strategy == "user" else MEMORY.base
        lane = replace(self._lane, writable=False, base=base)
        root, directory = layout.memory_root(config), layout.index_root(config, MEMORY)
        hint = f"Run `ragdocs index --project {config.root}` to have it asked"
        try:
            generation = fsio.read_bytes(directory / POINTER, 200)
        except NotFoundError:
            raise UnavailableError("it has no index", hint) from None
        one = self._opened.pop(config.root, None)
        if one is None or one.generation != generation:
            corpus = self._reader(lane, root, directory)
            if corpus is None:
                raise UnavailableError(
                    "its index is damaged, outdated, or was not made here by you", hint
                )
            parents = {
                parent for path in corpus.index.stamps() for parent in PurePosixPath(path).parents
            }
            folders = [corpus.store.locate(str(parent)) for parent in parents or {PurePosixPath()}]
            one = _Opened(generation, corpus, folders)
        self._opened[config.root] = one
        return one


def _behind(one: _Opened) -> int:
    """Count the files that came, went or changed since the index was saved.

    Whatever adds, removes or replaces a file moves the time of its folder, and folders are few.
    """
    times = [_changed(folder) for folder in one.folders]
    if times != one.times or time.monotonic() - one.looked > LOOK_SECONDS:
        seen = one.corpus.store.scan().stamps
        # A stamp that was taken right after a write says so in front; here that is as good as any.
        known = {
            path: stamp.removeprefix("racy-")
            for path, (stamp, _) in one.corpus.index.stamps().items()
        }
        changed = sum(known.get(path) != stamp for path, stamp in seen.items())
        one.behind = changed + len(known.keys() - seen.keys())
        one.times, one.looked = times, time.monotonic()
    return one.behind


def _changed(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns  # noqa: PTH116 - hundreds of them
    except OSError:
        return 0
