"""Hurts real servers and counts what is lost.

Kill -9, crowds of writers, storms of files, full and locked disks: the long runs of the lines in
tests/faults/scoreboard.py. Ends with code 1 when a bar is missed. Servers are forked from a process
that has imported the program once, unless they are to be started as an IDE does: every twentieth,
every shared one, and those on a disk or kernel of their own.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from bench import _corpora
from bench._measure import grid
from tests.faults import scoreboard
from tests.faults.nursery import Nursery
from tests.faults.scoreboard import Row
from tests.faults.servers import Yard
from tests.faults.storm import LIMITS


def parts(scale: float, count: int) -> dict[str, Callable[[Yard], Iterator[Row]]]:
    """Name the parts of the long run; a smaller scale is for trying it."""

    def scaled(number: int) -> int:
        return max(1, round(number * scale))

    return {
        "calls": scoreboard.calls,
        "kills": lambda yard: scoreboard.kills(yard, count, count // 20),
        "writers": lambda yard: scoreboard.writers(yard, 2 * scaled(1600), scaled(40)),
        "appends": lambda yard: scoreboard.appends(yard, (2, 4, 8), scaled(50)),
        "updates": lambda yard: scoreboard.updates(yard, 8, scaled(200)),
        "stale": lambda yard: scoreboard.stale(yard, scaled(300)),
        "reading": lambda yard: scoreboard.reading(yard, 2 * scaled(4000), scaled(400)),
        "storm": lambda yard: scoreboard.shaken_files(yard, scaled(5000)),
        "limits": lambda yard: scoreboard.limits(yard, LIMITS),
        "disk": lambda yard: scoreboard.disk(yard, scaled(10)),
        "team": lambda _: scoreboard.team_faults(scaled),
    }


@contextmanager
def open_yard(work: Path | None) -> Iterator[Yard]:
    """Make a scratch folder and a nursery, and end both."""
    with tempfile.TemporaryDirectory(prefix="ragdocs-faults-") as scratch:
        folder = (work or Path(scratch)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        _corpora.enter(folder)
        nursery = Nursery()
        try:
            yield Yard(folder, nursery)
        finally:
            nursery.close()


def conclude(rows: Sequence[Row], *, as_json: bool) -> int:
    """Print the rows and return the exit code: 1 when a bar is missed."""
    if as_json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        print(table(rows))
    return 0 if all(row.met for row in rows) else 1


def table(rows: Sequence[Row]) -> str:
    verdicts = {True: "pass", False: "MISS"}
    lines = [(r.number, r.name, listed(r.counts), r.bar, verdicts[r.met]) for r in rows]
    others = [f"{r.name}: also {listed(r.others)}" for r in rows if r.others]
    return "\n".join([grid(("", "what", "counted", "bar", ""), lines), *others])


def listed(counts: Mapping[str, float]) -> str:
    return ", ".join(f"{what} {count:,}" for what, count in counts.items())


def main() -> int:
    options = _options()
    known = parts(options.scale, options.kills)
    chosen = options.only.split(",") if options.only else list(known)
    if unknown := set(chosen) - set(known):
        sys.exit(f"--only knows {', '.join(known)}; not {', '.join(unknown)}")
    rows: list[Row] = []
    with open_yard(options.work) as yard:
        for name in chosen:
            started = time.perf_counter()
            for row in known[name](yard):
                rows.append(row)
                words = f"{row.name}: {listed(row.counts)} in {time.perf_counter() - started:.0f} s"
                print(words, *row.problems, sep="\n  ", file=sys.stderr, flush=True)
    return conclude(rows, as_json=options.json)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 tasks.py bench faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="how many servers are killed")
    parser.add_argument("--scale", type=float, default=1.0, help="the size of everything else")
    parser.add_argument("--only", metavar="PARTS", help="parts to run, with commas between them")
    parser.add_argument("--work", type=Path, help="where to work (default: a temporary folder)")
    parser.add_argument("--json", action="store_true", help="print JSON for scripts")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
