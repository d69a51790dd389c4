"""The first answers of a window and of commands: `python3 tasks.py bench start`.

Cold: a machine that has never run ragdocs, so the server starts behind the window. Warm: the server
is there. The project has 200 pages and 30 memories. Processor time is that of the window or the
command alone; ratios are multiples of the time of `python -c pass`.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median

from bench import commands
from bench._measure import grid
from bench._window import Window
from tests.faults.processes import process_seconds

COMMAND = (sys.executable, "-P", "-m", "ragdocs", "mcp")
ANSWERS = ("initialize", "tools/list", "first memories", "first search")
PAGES = 200
MEMORIES = 30


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 tasks.py bench start", description=__doc__)
    parser.add_argument("--repeats", type=int, default=9, help="how often each is measured")
    repeats = parser.parse_args().repeats
    plain = [_plain() for _ in range(repeats)]
    cold = [_cold() for _ in range(repeats)]
    warm = _warm(repeats)
    usual = (median(cpu for cpu, _ in plain), median(wall for _, wall in plain))
    lines = [_line("python -c pass", usual, usual)]
    for name, runs in (("cold", cold), ("warm", warm)):
        for position, answer in enumerate(ANSWERS):
            cpu = median(run[position][0] for run in runs)
            wall = median(run[position][1] for run in runs)
            lines.append(_line(f"{name} → {answer}", (cpu, wall), usual))
    print(grid(("what", "cpu", "ratio", "wall", "ratio"), lines))
    print()
    with tempfile.TemporaryDirectory(prefix="rd-", ignore_cleanup_errors=True) as folder:
        commands.measure(Path(folder), PAGES, repeats)


# Processor and wall seconds up to each of the answers.
Run = list[tuple[float, float]]


def _line(name: str, figures: tuple[float, float], usual: tuple[float, float]) -> tuple[str, ...]:
    cells = [name]
    for figure, base in zip(figures, usual, strict=True):
        cells += [f"{figure * 1000:.0f} ms", f"{figure / base:.1f}"]
    return tuple(cells)


def _plain() -> tuple[float, float]:
    """Return the processor and wall seconds of an interpreter that does nothing."""
    before = os.times()
    subprocess.run([sys.executable, "-P", "-c", "pass"], check=True)
    after = os.times()
    cpu = after.children_user + after.children_system
    cpu -= before.children_user + before.children_system
    return cpu, after.elapsed - before.elapsed


def _write(folder: Path) -> None:
    """Write the project, if it is not there."""
    if (folder / "config.toml").exists():
        return
    commands.write(folder, PAGES)
    (folder / ".memories").mkdir()
    for number in range(MEMORIES):
        text = f"Decided about tokens of kind {number} for reason {number}.\n"
        (folder / f".memories/decision-{number}.md").write_text(text, encoding="utf-8")


def _cold() -> Run:
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder:
        try:
            return _first_answers(Path(folder))
        finally:
            _end_servers(Path(folder))


def _warm(repeats: int) -> list[Run]:
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder:
        try:
            _write(Path(folder))
            with Window(COMMAND, Path(folder), _environment(Path(folder))) as first:
                first.greet()
                # Only the server can answer a call.
                first.call("index_status")
                return [_first_answers(Path(folder)) for _ in range(repeats)]
        finally:
            _end_servers(Path(folder))


def _first_answers(folder: Path) -> Run:
    """Ask as an agent does in its first minute."""
    _write(folder)
    with Window(COMMAND, folder, _environment(folder)) as window:
        window.greet()
        run = [_figures(window)]
        for ask in (
            window.tools,
            partial(window.call, "recall"),
            partial(window.call, "search_docs", query="how are tokens refreshed"),
        ):
            ask()
            run.append(_figures(window))
        return run


def _figures(window: Window) -> tuple[float, float]:
    return process_seconds(window.pid), time.perf_counter() - window.started


def _environment(folder: Path) -> dict[str, str]:
    """Return the variables of a user who is new on this machine."""
    variables = {"HOME": str(folder / "home"), "XDG_RUNTIME_DIR": str(folder)}
    for name in ("CACHE", "STATE", "DATA", "CONFIG"):
        variables[f"XDG_{name}_HOME"] = ""
    return variables


def _end_servers(folder: Path) -> None:
    for lock in folder.glob("ragdocs-*/*.lock"):
        with suppress(ProcessLookupError, ValueError):
            os.kill(int(lock.read_text()), signal.SIGKILL)


if __name__ == "__main__":
    main()
