"""The lines of the reliability scoreboard: what is done to servers, and the bar that judges it.

The tests run each line small, `bench/faults.py` and `bench/soak.py` run them long.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest
from tests.faults import changes, crowd, small_disk, storm, team
from tests.faults.kills import kill_servers, kill_shared_servers
from tests.faults.ledger import Toll
from tests.faults.servers import Yard
from tests.postgres import Cluster, clean_up

HARM = ("lost", "torn", "failed starts", "verify differences", "errors", "deadlocks")
TEAM_HARM = dict.fromkeys(("lost", "torn", "written twice", "index differences", "errors"), 0)
NO_HARM = dict.fromkeys(("lost", "torn", "failed starts", "verify differences", "errors"), 0)


@dataclass(frozen=True)
class Row:
    """One line of the scoreboard: counts, the bar they are held to, and whether they meet it."""

    number: str
    name: str
    counts: Mapping[str, float]
    bar: str
    met: bool
    others: Mapping[str, float]
    problems: tuple[str, ...] = ()


def row(number: str, name: str, toll: Toll, bar: Mapping[str, int]) -> Row:
    """Judge counts: at least as many as a number in the bar, none where the bar says zero."""
    counts = {what: toll.counts[what] for what in bar}
    # Harm that the bar does not name is forbidden all the same.
    for what in HARM:
        if toll.counts[what]:
            counts[what] = toll.counts[what]
    met = not any(toll.counts[what] for what in HARM)
    words = []
    for what, least in bar.items():
        if least:
            met = met and toll.counts[what] >= least
            words.append(f"{what} ≥ {least:,}")
        else:
            met = met and not toll.counts[what]
            words.append(f"{what} 0")
    others = {what: count for what, count in toll.counts.items() if what not in counts and count}
    return Row(number, name, counts, ", ".join(words), met, others, tuple(toll.problems[:5]))


def _some(kills: int) -> dict[str, int]:
    """Return how many writes must be acknowledged: a busy machine writes little between kills."""
    return {"acknowledged": kills // 4} if kills >= 4 else {}


def calls(yard: Yard) -> Iterator[Row]:
    """Strike at every file call; the first promise that is broken ends it with what it was."""
    tolls = {"R1 kill": Toll(), "R1 power cut": Toll(), "R2 fault": Toll()}
    with pytest.MonkeyPatch.context() as patched:
        # A kill loses nothing in the kernel, and the power is cut to what was synced.
        patched.setattr(os, "fsync", lambda _: None)
        for name, maker in changes.MAKERS.items():
            place = yard.work / "changes" / name
            place.mkdir(parents=True)
            change = maker(place)
            struck = changes.kill_and_cut(change, yard.work / "disk", changes.every_call)
            tolls["R1 kill"].counts["survived"] += struck["kills"]
            tolls["R1 power cut"].counts["survived"] += struck["power cuts"]
            for fault in changes.FAULTS:
                struck = changes.fail_calls(change, fault, changes.every_call)
                tolls["R2 fault"].counts.update(whole=struck["points"], told=struck["told"])
    bars = {"R1 kill": 400, "R1 power cut": 800, "R2 fault": 300}
    for name, toll in tolls.items():
        number, _, what = name.partition(" ")
        counted = "whole" if number == "R2" else "survived"
        yield row(number, f"{what} at every file call", toll, {counted: bars[name]})


def kills(yard: Yard, count: int, shared: int) -> Iterator[Row]:
    own = count - shared
    bar = {"kills": own, **_some(own), "verified": own, **NO_HARM}
    yield row("R3", "random kill -9 of a server", kill_servers(yard, own), bar)
    if shared:
        bar = {"kills": shared, **_some(shared), "verified": shared, **NO_HARM}
        toll = kill_shared_servers(yard, shared)
        yield row("R3", "random kill -9 of a shared server", toll, bar)


def writers(yard: Yard, reads: int, deaths: int) -> Iterator[Row]:
    toll = crowd.killed_writers(yard, reads, deaths)
    bar = {"reads": reads, "kills": deaths, **_some(deaths), "lost": 0, "torn": 0, "bad reads": 0}
    yield row("R4", "3 writers that are killed, 2 readers", toll, bar)


def appends(yard: Yard, processes: Sequence[int], writes: int) -> Iterator[Row]:
    for count, toll in crowd.appends(yard, processes, writes).items():
        bar = {"acknowledged": count * writes, "lost": 0, "errors": 0, "deadlocks": 0}
        yield row("R5", f"{count} processes append to one memory", toll, bar)


def updates(yard: Yard, processes: int, writes: int) -> Iterator[Row]:
    toll = crowd.updates(yard, processes, writes)
    bar = {"acknowledged": processes * writes, "conflicts": 1}
    bar |= {"lost": 0, "errors": 0, "deadlocks": 0}
    name = f"{processes} processes, {writes} writes each, with expected_version"
    yield row("R5", name, toll, bar)


def stale(yard: Yard, rounds: int) -> Iterator[Row]:
    toll = crowd.stale(yard, rounds)
    bar = {"stale writes": rounds, "told": rounds, "accepted": 0, "refused without a word": 0}
    yield row("R6", "stale update, append and merge", toll, bar)


def reading(yard: Yard, reads: int, writes: int) -> Iterator[Row]:
    toll = crowd.reads_during_writes(yard, reads, writes)
    bar = {"reads": reads, "acknowledged": writes, "texts seen": writes // 2, "torn": 0}
    yield row("R7", "reads during writes", toll, bar)


def shaken_files(yard: Yard, files: int) -> Iterator[Row]:
    toll = storm.shake_files(yard, files)
    bar = {"events survived": 4 * files, "changed texts encoded": -(-files // storm.TENTH)}
    bar |= {"unchanged texts encoded again": 0, "missed": 0, "verify differences": 0}
    yield row("R11", f"storm: {files:,} files touched, saved, removed, restored", toll, bar)


def limits(yard: Yard, chosen: Mapping[str, tuple[int, int]]) -> Iterator[Row]:
    if _skipped("low inotify limits"):
        return
    toll = storm.low_limits(yard, chosen)
    bar = {"limits": len(chosen), "edits": len(chosen), "missed": 0, "silent": 0}
    yield row("R11", "low inotify limits", toll, bar)


def disk(yard: Yard, rounds: int) -> Iterator[Row]:
    if _skipped("full disk"):
        return
    toll = small_disk.fill_and_lock(yard, rounds)
    bar = {"disk full": rounds, "read-only": rounds, "searched and read": 2 * rounds}
    bar |= {"writes refused": 8 * rounds, "written afterwards": 2 * rounds, "silent": 0, "torn": 0}
    yield row("", "full disk and read-only project", toll, bar)


def team_kills(cluster: Cluster, count: int, writers: int = 8, between: int = 40) -> Iterator[Row]:
    toll = team.kill_database(cluster, count, writers, between)
    bar = {"kills": count, "acknowledged": between * count, **TEAM_HARM}
    yield row("T1", f"kill -9 of PostgreSQL under {writers} writers", toll, bar)


def team_server_kills(
    cluster: Cluster, count: int, writers: int = 8, between: int = 20
) -> Iterator[Row]:
    toll = team.kill_servers(cluster, count, writers, between)
    bar = {"kills": count, "acknowledged": between * count, **TEAM_HARM, "not found": 0}
    bar |= {"without a vector": 0}
    yield row("T1", f"kill -9 of one of {writers} servers that write", toll, bar)


def team_cuts(cluster: Cluster, count: int, writers: int = 4) -> Iterator[Row]:
    toll = team.cut_connections(cluster, count, writers)
    bar = {"cuts": count, "acknowledged": count, **TEAM_HARM}
    yield row("T2", "connections cut inside transactions", toll, bar)
    toll = team.lose_answers(cluster, count)
    bar = {"cuts": 2 * count, "acknowledged": 2 * count}
    bar |= {"lost": 0, "errors": 0, "written twice": 0}
    yield row("T2", "connections cut at COMMIT", toll, bar)


def team_network(cluster: Cluster, count: int) -> Iterator[Row]:
    toll = team.slow_network(cluster, count)
    bar = {"slow writes": count, "time-outs told": count, "written afterwards": count}
    bar |= {"silent": 0, "written twice": 0}
    yield row("T3", "slow network", toll, bar)


def team_disk(cluster: Cluster, rounds: int) -> Iterator[Row]:
    toll = team.full_disk(cluster, rounds)
    if toll is None:
        sys.stderr.write("full disk of PostgreSQL: skipped, no file system can be mounted here\n")
        return
    bar = {"disk full": rounds, "acknowledged": rounds, "written afterwards": rounds}
    bar |= {"silent": 0, "lost": 0, "torn": 0}
    yield row("T4", "full disk of PostgreSQL", toll, bar)


def team_failover(cluster: Cluster, writers: int = 4) -> Iterator[Row]:
    toll = team.fail_over(cluster, writers)
    bar = {"failovers": 1, "acknowledged": 40, **TEAM_HARM}
    yield row("T5", "failover to a standby", toll, bar)


def team_faults(scale: Callable[[int], int]) -> Iterator[Row]:
    """Run everything that is done to a team database, long."""
    cluster = Cluster()
    cluster.start()
    try:
        yield from team_kills(cluster, scale(50))
        yield from team_server_kills(cluster, scale(50))
        yield from team_cuts(cluster, scale(200))
        yield from team_network(cluster, scale(20))
        yield from team_disk(cluster, scale(5))
        for _ in range(scale(5)):
            yield from team_failover(cluster)
    finally:
        cluster.remove()
        clean_up()


def _skipped(name: str) -> bool:
    if storm.namespaces_work():
        return False
    sys.stderr.write(f"{name}: skipped, this kernel lets nobody make a user namespace\n")
    return True
