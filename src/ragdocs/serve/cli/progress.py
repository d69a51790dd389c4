"""Progress on standard error.

A bar with the time that is left on a terminal, a line now and then in a log.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from ragdocs.config import Config
from ragdocs.serve.indexing import Announcement, Pace, duration

# Work that is done before this is not worth a bar.
PATIENCE_SECONDS = 0.5
# How often a log gets a line.
LINE_SECONDS = 5.0


class Progress:
    """The state of a stage, shown only if it takes a while; other processes can read it, too."""

    def __init__(self, config: Config | None = None) -> None:
        """Begin; with a configuration, the work is on the index of that project."""
        self._started = time.monotonic()
        self._line_at = self._started
        self._pace = Pace()
        self._announcement: Announcement | None = None
        if config:
            self._announcement = Announcement(config)
        self._bars: Any = None
        self._stages: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._announcement:
            self._announcement.end()
        if self._bars is not None:
            self._bars.stop()

    def of(self, lane: str) -> Callable[[str, int, int], None]:
        """Return what shows the stages of one lane."""
        return lambda stage, done, total: self.show(f"{lane}: {stage}", done, total)

    def show(self, stage: str, done: int, total: int) -> None:
        """Show how far a stage is."""
        if self._announcement:
            self._announcement.show(stage, done, total)
        seconds_left = self._pace.seconds_left(stage, done, total)
        now = time.monotonic()
        if not total or now - self._started < PATIENCE_SECONDS:
            return
        if sys.stderr.isatty():
            self._draw(stage, done, total)
        elif now - self._line_at >= LINE_SECONDS:
            self._line_at = now
            line = f"{stage}: {done} of {total}"
            if seconds_left is not None:
                line += f", about {duration(seconds_left)} left"
            print(line, file=sys.stderr, flush=True)

    def _draw(self, stage: str, done: int, total: int) -> None:
        if self._bars is None:
            self._bars = _bars()
            self._bars.start()
        if stage not in self._stages:
            self._stages[stage] = self._bars.add_task(stage, total=total)
        self._bars.update(self._stages[stage], completed=done, total=total)


def _bars() -> Any:
    # Importing rich takes longer than most commands.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    return Bars(
        TextColumn("{task.description:>17}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
