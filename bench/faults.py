"""Hurts real servers and counts what is lost.

Kill -9, crowds of writers, storms of files, full and locked disks.

python -m bench.faults [--kills 1000] [--only kills,appends,...] [--scale 0.1] [--json]

Ends with code 1 when a bar is missed. Servers are forked from a process that has imported the
program once, unless they are to be started as an IDE does: every twentieth, every shared one, and
those on a disk or kernel of their own.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import _corpora, _faults_crowd, _faults_disk, _faults_kills, _faults_storm
from bench._faults_nursery import Nursery
from bench._faults_servers import Yard
from bench._measure import grid

HARM = ("lost", "torn", "failed starts", "verify differences", "errors", "deadlocks")


@dataclass(frozen=True)
class Row:
    """One line of the scoreboard.

    What was done, what may not have happened, and whether enough was tried.
    """

    number: str
    name: str
    counts: Mapping[str, float]
    bar: str
    met: bool
    others: Mapping[str, float]
    problems: tuple[str, ...] = ()


def _some(kills: int) -> dict[str, int]:
    """Return how many writes are to be acknowledged.

    Kills come by the clock, and a busy machine writes little.
    """
    return {"acknowledged": kills // 4} if kills >= 4 else {}


def row(
    number: str, name: str, found: _faults_kills.Toll | _faults_crowd.Crowd, bar: Mapping[str, int]
) -> Row:
    """Judge counts by a bar.

    At least so many of each thing named with a number, none of those named with zero.
    """
    counts = {what: found.counts[what] for what in bar}
    # What nobody thought of forbidding by name is forbidden all the same.
    counts |= {what: count for what in HARM if (count := found.counts[what]) and what not in counts}
    met = all(
        found.counts[what] >= least if least else not found.counts[what]
        for what, least in bar.items()
    )
    text = ", ".join(f"{what} ≥ {least:,}" if least else f"{what} 0" for what, least in bar.items())
    harmless = not any(found.counts[what] for what in HARM)
    others = {what: count for what, count in found.counts.items() if what not in counts and count}
    return Row(number, name, counts, text, met and harmless, others, tuple(found.problems[:5]))


def kills(yard: Yard, count: int, shared: int) -> Iterator[Row]:
    own = count - shared
    none = {"lost": 0, "torn": 0, "failed starts": 0, "verify differences": 0, "errors": 0}
    toll = _faults_kills.kills(yard, own)
    yield row(
        "R3",
        "random kill -9 of a server",
        toll,
        {"kills": own, **_some(own), "verified": own, **none},
    )
    if shared:
        toll = _faults_kills.shared_kills(yard, shared)
        bar = {"kills": shared, **_some(shared), "verified": shared, **none}
        yield row("R3", "random kill -9 of a shared server", toll, bar)


def writers(yard: Yard, reads: int, deaths: int) -> Iterator[Row]:
    crowd = _faults_crowd.killed_writers(yard, reads, deaths)
    bar = {"reads": reads, "kills": deaths, **_some(deaths), "lost": 0, "torn": 0, "bad reads": 0}
    yield row("R4", "3 writers that are killed, 2 readers", crowd, bar)


def appends(yard: Yard, processes: Sequence[int], writes: int) -> Iterator[Row]:
    for count, crowd in _faults_crowd.appends(yard, processes, writes).items():
        bar = {"acknowledged": count * writes, "lost": 0, "errors": 0, "deadlocks": 0}
        yield row("R5", f"{count} processes append to one memory", crowd, bar)


def updates(yard: Yard, processes: int, writes: int) -> Iterator[Row]:
    crowd = _faults_crowd.updates(yard, processes, writes)
    bar = {
        "acknowledged": processes * writes,
        "conflicts": 1,
        "lost": 0,
        "errors": 0,
        "deadlocks": 0,
    }
    yield row(
        "R5", f"{processes} processes, {writes} writes each, with expected_version", crowd, bar
    )


def stale(yard: Yard, rounds: int) -> Iterator[Row]:
    crowd = _faults_crowd.stale(yard, rounds)
    bar = {"stale writes": rounds, "told": rounds, "accepted": 0, "refused without a word": 0}
    yield row("R6", "stale update, append and merge", crowd, bar)


def reading(yard: Yard, reads: int, writes: int) -> Iterator[Row]:
    crowd = _faults_crowd.reads_during_writes(yard, reads, writes)
    bar = {"reads": reads, "acknowledged": writes, "texts seen": writes // 2, "torn": 0}
    yield row("R7", "reads during writes", crowd, bar)


def storm(yard: Yard, files: int) -> Iterator[Row]:
    toll = _faults_storm.storm(yard, files)
    changed = -(-files // _faults_storm.TENTH)
    bar = {
        "events survived": 4 * files,
        "changed texts encoded": changed,
        "unchanged texts encoded again": 0,
        "missed": 0,
        "verify differences": 0,
    }
    yield row("R11", f"storm: {files:,} files touched, saved, removed, restored", toll, bar)


def limits(yard: Yard, chosen: Mapping[str, tuple[int, int]]) -> Iterator[Row]:
    if not _faults_storm.namespaces_work():
        print(
            "low inotify limits: skipped, this kernel lets nobody make a user namespace",
            file=sys.stderr,
        )
        return
    toll = _faults_storm.low_limits(yard, chosen)
    bar = {"limits": len(chosen), "edits": len(chosen), "missed": 0, "silent": 0}
    yield row("R11", "low inotify limits", toll, bar)


def disk(yard: Yard, rounds: int) -> Iterator[Row]:
    if not _faults_storm.namespaces_work():
        print("full disk: skipped, this kernel lets nobody make a user namespace", file=sys.stderr)
        return
    toll = _faults_disk.hard_places(yard, rounds)
    bar = {
        "disk full": rounds,
        "read-only": rounds,
        "searched and read": 2 * rounds,
        "writes refused": 8 * rounds,
    }
    bar |= {"written afterwards": 2 * rounds, "silent": 0, "torn": 0}
    yield row("", "full disk and read-only project", toll, bar)


def parts(scale: float, count: int) -> dict[str, Callable[[Yard], Iterator[Row]]]:
    """Name the parts of the long run; a smaller scale is for trying it."""

    def scaled(number: int) -> int:
        return max(1, round(number * scale))

    return {
        "kills": lambda yard: kills(yard, count, count // 20),
        "writers": lambda yard: writers(yard, 2 * scaled(1600), scaled(40)),
        "appends": lambda yard: appends(yard, (2, 4, 8), scaled(50)),
        "updates": lambda yard: updates(yard, 8, scaled(200)),
        "stale": lambda yard: stale(yard, scaled(300)),
        "reading": lambda yard: reading(yard, 2 * scaled(4000), scaled(400)),
        "storm": lambda yard: storm(yard, scaled(5000)),
        "limits": lambda yard: limits(yard, _faults_storm.LIMITS),
        "disk": lambda yard: disk(yard, scaled(10)),
    }


@contextmanager
def open_yard(work: Path | None) -> Iterator[Yard]:
    """Make a scratch folder and a nursery, and end both."""
    with tempfile.TemporaryDirectory(prefix="ragdocs-faults-") as scratch:
        place = (work or Path(scratch)).resolve()
        place.mkdir(parents=True, exist_ok=True)
        _corpora.enter(place)
        nursery = Nursery()
        try:
            yield Yard(place, nursery)
        finally:
            nursery.close()


def table(rows: Sequence[Row]) -> str:
    lines = [
        (one.number, one.name, shown(one.counts), one.bar, "pass" if one.met else "MISS")
        for one in rows
    ]
    beside = [f"{one.name}: also {shown(one.others)}" for one in rows if one.others]
    return "\n".join([grid(("", "what", "counted", "bar", ""), lines), *beside])


def shown(counts: Mapping[str, float]) -> str:
    return ", ".join(f"{what} {count:,}" for what, count in counts.items())


def main() -> int:
    options = _options()
    known = parts(options.scale, options.kills)
    chosen = list(known) if options.only is None else options.only.split(",")
    if unknown := set(chosen) - set(known):
        sys.exit(f"--only knows {', '.join(known)}; not {', '.join(unknown)}")
    rows: list[Row] = []
    with open_yard(options.work) as yard:
        for name in chosen:
            started = time.perf_counter()
            for one in known[name](yard):
                rows.append(one)
                took = time.perf_counter() - started
                print(
                    f"{one.name}: {shown(one.counts)} in {took:.0f} s",
                    *one.problems,
                    sep="\n  ",
                    file=sys.stderr,
                    flush=True,
                )
    print(json.dumps([asdict(one) for one in rows], indent=1) if options.json else table(rows))
    return 0 if all(one.met for one in rows) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--kills", type=int, default=1000, help="how many servers are killed (default: 1000)"
    )
    parser.add_argument(
        "--scale", type=float, default=1.0, help="the size of everything else (default: 1)"
    )
    parser.add_argument("--only", metavar="PARTS", help="parts to run, with commas between them")
    parser.add_argument(
        "--work", type=Path, metavar="DIR", help="where to work (default: a temporary folder)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON for scripts")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
