"""Who is indexing a project, and how far that is: a small file beside the indexes.

Each process that indexes writes a file of its own and removes it when it is done. The file of a
process that was killed is recognised by its process id and removed by whoever reads it.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from ragdocs.config import Config
from ragdocs.errors import RagdocsError
from ragdocs.project import folders
from ragdocs.system import files, processes

PREFIX = "indexing-"
# Work that is done before this is not worth a file.
PATIENCE_SECONDS = 1.0
# How often the file is written while the work goes on.
WRITE_SECONDS = 2.0
LONGEST_RECORD = 4_000
MINUTE = 60
HOUR = 60 * MINUTE


@dataclass(frozen=True, slots=True)
class Indexing:
    """What a process is doing to the index of a project."""

    pid: int
    # When the process began, as the system counts it: a process id may be given away again.
    born: str
    stage: str
    done: int
    total: int
    seconds_left: float | None

    @property
    def words(self) -> str:
        """How far it is, for people and agents."""
        progress = f"{self.stage}, {self.done:,} of {self.total:,}"
        if self.seconds_left is not None:
            progress += f", about {duration(self.seconds_left)} left"
        return f"process {self.pid} is at work on the index: {progress}"


class Pace:
    """How long the stage that is at work will still take, by how fast it was so far."""

    def __init__(self) -> None:
        self._stage = ""
        self._begun_at = 0.0
        self._begun_with = 0

    def seconds_left(self, stage: str, done: int, total: int) -> float | None:
        """Return an estimate, or nothing while there is none."""
        now = time.monotonic()
        if stage != self._stage or done < self._begun_with:
            self._stage = stage
            self._begun_at = now
            self._begun_with = done
        progress = done - self._begun_with
        if progress <= 0:
            return None
        return (now - self._begun_at) / progress * (total - done)


class Announcement:
    """The file that tells other processes how far this one is; gone when the work is done."""

    def __init__(self, config: Config) -> None:
        self._path = _folder(config) / f"{PREFIX}{os.getpid()}.json"
        self._pace = Pace()
        self._begun_at = 0.0
        self._written_at = 0.0
        self._is_written = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()

    def show(self, stage: str, done: int, total: int) -> None:
        """Take note of how far a stage is, and write it down now and then."""
        now = time.monotonic()
        seconds_left = self._pace.seconds_left(stage, done, total)
        if not self._begun_at:
            self._begun_at = now
        is_early = now - self._begun_at < PATIENCE_SECONDS
        if is_early or now - self._written_at < WRITE_SECONDS:
            return
        self._written_at = now
        pid = os.getpid()
        self._write(Indexing(pid, processes.born(pid), stage, done, total, seconds_left))

    def end(self) -> None:
        """Remove the file, if one was written."""
        self._begun_at = 0.0
        if not self._is_written:
            return
        self._is_written = False
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _write(self, state: Indexing) -> None:
        # A folder that cannot be written to is no reason not to index.
        with contextlib.suppress(OSError, RagdocsError):
            files.make_directories(self._path.parent, 0o700)
            files.write_atomic(self._path, json.dumps(asdict(state)).encode(), mode=0o600)
            self._is_written = True


def at_work(config: Config) -> list[Indexing]:
    """List the other processes that are indexing a project; forget those that are gone."""
    states = []
    for path in sorted(_folder(config).glob(f"{PREFIX}*.json")):
        state = _read(path)
        if state is None or not _is_running(state):
            with contextlib.suppress(OSError):
                path.unlink()
        elif state.pid != os.getpid():
            states.append(state)
    return states


def duration(seconds: float) -> str:
    """Write a time span as people say it."""
    whole = round(seconds)
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} min {whole % MINUTE} s"
    return f"{whole // HOUR} h {whole % HOUR // MINUTE} min"


def _folder(config: Config) -> Path:
    return folders.resolved(folders.cache_dir() / "projects" / folders.project_key(config.root))


def _read(path: Path) -> Indexing | None:
    try:
        record = json.loads(files.read_bytes(path, limit=LONGEST_RECORD))
        return Indexing(
            pid=int(record["pid"]),
            born=str(record["born"]),
            stage=str(record["stage"]),
            done=int(record["done"]),
            total=int(record["total"]),
            seconds_left=record["seconds_left"],
        )
    except (OSError, RagdocsError, ValueError, KeyError, TypeError):
        return None


def _is_running(state: Indexing) -> bool:
    return processes.is_alive(state.pid) and processes.born(state.pid) == state.born
