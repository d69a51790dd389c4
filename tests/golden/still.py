"""A world of one clock, one time zone, and ids that repeat."""

from __future__ import annotations

import functools
import importlib
import os
import pkgutil
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import ragdocs

# Before any day on which this can run: a file with a later date was written by the code under test.
START = datetime(2025, 5, 14, 12, 0, tzinfo=UTC)
# Limits of waiting, which a busy machine would turn into other answers.
WAITS = (
    "CONTEXT_SECONDS",
    "HEAD_SECONDS",
    "PATIENCE_SECONDS",
    "FIRST_INDEX_SECONDS",
    "FILES_SECONDS",
    "LOCK_SECONDS",
)
LONG_SECONDS = 120.0


class Clock:
    """The time of the world; it moves only when it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def put(self, moment: datetime) -> None:
        self.now = moment

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Tokens:
    """Stands in for `secrets.token_hex`: the same scenario gets the same ids in the same order."""

    def __init__(self) -> None:
        self.scenario = ""
        self._counts: Counter[tuple[str, int]] = Counter()

    def begin(self, scenario: str) -> None:
        """Count from the beginning; the name keeps ids of two scenarios apart."""
        self.scenario = scenario
        self._counts.clear()

    def __call__(self, size: int = 32) -> str:
        # Temporary names of background threads have sizes of their own and do not disturb the ids
        # that are shown.
        self._counts[self.scenario, size] += 1
        name = f"{self.scenario}/{size}/{self._counts[self.scenario, size]}"
        return blake2b(name.encode(), digest_size=size).hexdigest()


@functools.cache
def import_everything() -> None:
    """Import every module of the package before the clock is replaced."""
    for module in pkgutil.walk_packages(ragdocs.__path__, "ragdocs."):
        importlib.import_module(module.name)


def datetime_of(clock: Clock) -> Any:
    """Return what modules use in place of `datetime`: all of it, but with this clock."""

    class Delegating(type):
        def __call__(cls, *arguments: Any, **named: Any) -> Any:
            return datetime(*arguments, **named)  # noqa: DTZ001 - the caller gives the zone, or not

        def __getattr__(cls, name: str) -> Any:
            return getattr(datetime, name)

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, datetime)

    class StillDatetime(metaclass=Delegating):
        @staticmethod
        def now(tz: tzinfo | None = None) -> datetime:
            return clock.now.astimezone(tz) if tz else clock.now.astimezone().replace(tzinfo=None)

        @staticmethod
        def today() -> datetime:
            return StillDatetime.now()

    return StillDatetime


@functools.cache
def places() -> list[tuple[ModuleType, str]]:
    """List the modules that have `datetime` or a limit of waiting, and its name there."""
    import_everything()
    found = []
    for module in list(sys.modules.values()):
        if module.__name__.split(".")[0] == "ragdocs":
            for name, value in vars(module).items():
                if value is datetime or name in WAITS:
                    found.append((module, name))
    return found


@contextmanager
def stand_still(clock: Clock, tokens: Tokens) -> Iterator[None]:
    """Run a block in which the package sees this clock, these ids, UTC, and no impatience."""
    with pytest.MonkeyPatch.context() as patch:
        replacement = datetime_of(clock)
        for module, name in places():
            patch.setattr(module, name, LONG_SECONDS if name in WAITS else replacement)
        patch.setattr(secrets, "token_hex", tokens)
        for name in ("replace", "rename", "link"):
            patch.setattr(os, name, dated(getattr(os, name), clock))
        # Nothing of this outlives the test, and a slow disk would make it ten times as long.
        patch.setattr(os, "fsync", lambda _: None)
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def dated(move: Any, clock: Clock) -> Any:
    """Give a file that was just written the date of the clock before it is moved into its place."""

    def move_dated(source: Any, target: Any, **named: Any) -> None:
        folder = named.get("src_dir_fd")
        status = os.stat(source, dir_fd=folder, follow_symlinks=False)
        seconds = clock.now.timestamp()
        if status.st_mtime > START.timestamp() + 30 * 86_400:
            os.utime(source, (seconds, seconds), dir_fd=folder, follow_symlinks=False)
        move(source, target, **named)

    return move_dated


def date_files(root: Path, moment: datetime) -> None:
    """Give a file, or every file below a folder, one date."""
    seconds = moment.timestamp()
    for path in (root, *sorted(root.rglob("*"))):
        if path.is_file() and not path.is_symlink():
            os.utime(path, (seconds, seconds))
