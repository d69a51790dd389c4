"""A client does everything a client can while somebody edits the files, for a long time."""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.ledger import Ledger, Toll, difference
from tests.faults.load import Client, Editor
from tests.faults.processes import rss_mb
from tests.faults.scoreboard import Row, row
from tests.faults.servers import EndedError, HangingError, Line, RefusedError, Yard

# Until then caches fill, and the first snapshot is made.
WARM_UP = 0.3
# Each end of the curve is the middle of this share of the samples: a snapshot or a collection comes
# and goes.
END = 0.15
GROWTH_PERCENT = 5.0
SAMPLES = 200


@dataclass
class Curve:
    """The resident memory of a process while it works."""

    pid: int
    values: list[float] = field(default_factory=list)

    def look(self) -> None:
        self.values.append(rss_mb(self.pid))

    def growth(self) -> tuple[float, float, float]:
        """Return megabytes after the warm-up, at the end, and the growth in percent."""
        count = max(1, round(len(self.values) * END))
        warm = self.values[round(len(self.values) * WARM_UP) :]
        first, last = statistics.median(warm[:count]), statistics.median(warm[-count:])
        return first, last, 100 * (last / first - 1)


def soak(yard: Yard, count: int, calls: int, model: str = "hash", seed: int = 5) -> Iterator[Row]:
    """Let servers serve one project, each with a client that does everything, while files change."""
    root = yard.project(f"soak-{count}")
    settings = f"embedding.model={model}"
    editor = Editor(root, seed)
    # One alone is started as an IDE does; several would take long to import.
    lines = [yard.start(root, settings, cold=count == 1) for _ in range(count)]
    clients = []
    for number, line in enumerate(lines):
        names = line.greet().wait_for(line.send("tools/list"))["result"]["tools"]
        rng = random.Random(seed + number)
        ledger = Ledger(root=root, rng=rng, prefix=f"s{chr(97 + number)}")
        clients.append(Client(ledger=ledger, tools=frozenset(tool["name"] for tool in names)))
    curves = [Curve(line.pid) for line in lines]
    editor.start()
    try:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(_work, lines, clients, curves, [calls // count] * count))
    finally:
        editor.stop()
    toll = _settle(root, clients, settings)
    for line in lines:
        try:
            line.close()
        except HangingError as error:
            toll.complain("deadlocks", str(error))
    toll.counts["edits by hand"] = sum(editor.edits.values())
    bar = {"calls": calls // count * count, "acknowledged": calls // 5, "edits by hand": 1}
    bar |= dict.fromkeys(("lost", "torn", "errors", "missed", "deadlocks", "verify differences"), 0)
    yield row("R12", f"soak: servers on one project, {count}", toll, bar)
    yield _growth(curves)


def _growth(curves: Sequence[Curve]) -> Row:
    """Judge the server whose memory grew most."""
    first, last, percent = max((curve.growth() for curve in curves), key=lambda growth: growth[2])
    counts = {"percent": percent, "MB after the warm-up": first, "MB at the end": last}
    rounded = {name: round(number, 1) for name, number in counts.items()}
    bar, met = f"≤ {GROWTH_PERCENT:g} percent", percent <= GROWTH_PERCENT
    return Row("R12", "soak: growth of resident memory", rounded, bar, met, {})


def _work(line: Line, client: Client, curve: Curve, calls: int) -> None:
    for number in range(calls):
        call = client.think()
        try:
            client.hear(call, line.call(call.tool, **call.arguments))
        except RefusedError as error:
            client.refuse(call, str(error))
        except (EndedError, HangingError) as error:
            client.complain("deadlocks", str(error)[:300])
            return
        if number % max(1, calls // SAMPLES) == 0:
            curve.look()


def _settle(root: Path, clients: list[Client], settings: str) -> Toll:
    toll = Toll()
    for client in clients:
        client.ledger.check()
        client.ledger.check_kept()
        toll.add(client.ledger)
        toll.add(client)
    found = difference(root, settings)
    if found:
        toll.complain("verify differences", found)
    return toll
