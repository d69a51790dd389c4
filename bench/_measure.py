"""Clocks, samples and rows: what every benchmark here measures with and prints."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from tests.faults.processes import process_seconds, tree

Clock = Callable[[], float]
# What a search may cost whose words were not asked for before, as a multiple of one whose were.
NEW_WORDS = 1.5


@dataclass(slots=True)
class Sample:
    """Processor and wall seconds of one action, done several times."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    def take(self, action: Callable[[], Any], clock: Clock = time.process_time) -> Any:
        cpu, wall = clock(), time.perf_counter()
        result = action()
        self.wall.append(time.perf_counter() - wall)
        self.cpu.append(clock() - cpu)
        return result

    def cpu_ms(self, share: float = 0.5) -> float:
        return quantile(self.cpu, share) * 1000

    def wall_ms(self, share: float = 0.5) -> float:
        return quantile(self.wall, share) * 1000

    def note(self) -> str:
        """Say what the headline figure leaves out."""
        wall = f"wall p50 {self.wall_ms():.2f}, p95 {self.wall_ms(0.95):.2f}"
        return f"cpu p95 {self.cpu_ms(0.95):.2f}, {wall}"


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def each(
    action: Callable[[Any], Any], arguments: Iterable[Any], clock: Clock = time.process_time
) -> Sample:
    """Measure an action once for every argument."""
    sample = Sample()
    for argument in arguments:
        sample.take(partial(action, argument), clock)
    return sample


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a result: what, on what, how much, and whether that meets its goal."""

    part: str
    name: str
    corpus: str
    chunks: int
    value: float
    unit: str
    goal: str = ""
    met: bool | None = None
    note: str = ""


class Measured(Protocol):
    """A corpus, as far as a row names it."""

    @property
    def name(self) -> str: ...
    @property
    def chunks(self) -> int: ...


def figure(  # noqa: PLR0913 - the cells of a row
    part: str,
    name: str,
    corpus: Measured,
    value: float,
    unit: str,
    *,
    most: float | None = None,
    least: float | None = None,
    note: str = "",
) -> Row:
    """Return a row, judged where it has a limit."""
    goal, met = "", None
    if most is not None:
        goal, met = f"≤ {most:g}", value <= most
    if least is not None:
        goal, met = f"≥ {least:g}", value >= least
    return Row(part, name, corpus.name, corpus.chunks, value, unit, goal, met, note)


def cost(
    part: str, name: str, corpus: Measured, sample: Sample, *, most: float | None = None
) -> Row:
    """Return the row of a sample: the middle of its processor time."""
    value = sample.cpu_ms()
    return figure(part, f"{name}, cpu p50", corpus, value, "ms", most=most, note=sample.note())


def unlike_warm(name: str, corpus: Measured, first: Sample, warm: Sample) -> list[Row]:
    """Return how much dearer what is asked for the first time is, in the middle and at p95."""
    rows = []
    for share in (0.5, 0.95):
        ratio = first.cpu_ms(share) / warm.cpu_ms(share)
        title = f"{name} / warm, p{share * 100:.0f}"
        rows.append(figure("search", title, corpus, ratio, "x", most=NEW_WORDS))
    return rows


def shown(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"


def table(rows: Sequence[Row]) -> str:
    """Return rows as a Markdown table, which is also legible on a terminal."""
    head = ("part", "what", "corpus", "chunks", "measured", "goal", "", "beside it")
    verdict = {True: "pass", False: "MISS", None: ""}
    lines = []
    for row in rows:
        value = f"{shown(row.value)} {row.unit}"
        names = (row.part, row.name, row.corpus, f"{row.chunks:,}")
        lines.append((*names, value, row.goal, verdict[row.met], row.note))
    return grid(head, lines)


def grid(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]
    ruled = [head, tuple("-" * width for width in widths), *lines]
    rows = []
    for line in ruled:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


class TreeClock:
    """Processor seconds of a process and its descendants, also of those that ended."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._seen: dict[int, float] = {}

    def __call__(self) -> float:
        for pid in tree(self._root):
            self._look(pid)
        return sum(self._seen.values())

    def steady(self) -> Clock:
        """Return a clock of the processes alive now, for very short actions."""
        pids = tree(self._root)
        return lambda: sum(map(process_seconds, pids))

    def _look(self, pid: int) -> None:
        seconds = process_seconds(pid)
        if seconds:
            self._seen[pid] = seconds
