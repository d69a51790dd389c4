"""A client does everything a client can while somebody edits the files, for a long time."""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from mcp import Client as SdkClient
from mcp import StdioServerParameters
from mcp_types import CallToolResult, TextContent
from tests.faults.ledger import Ledger, Toll, difference
from tests.faults.load import Client, Editor
from tests.faults.processes import rss_mb, tree
from tests.faults.scoreboard import Row, row
from tests.faults.servers import SETTINGS, EndedError, HangingError, Line, RefusedError, Yard

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


def one_server(yard: Yard, calls: int, model: str = "hash", seed: int = 5) -> Iterator[Row]:
    """Let one client of the SDK do everything a client can.

    Against one server that is started as an IDE does.
    """
    root = yard.project("soak")
    settings = (f"embedding.model={model}",)
    editor = Editor(root, seed)
    ledger = Ledger(root=root, rng=random.Random(seed), prefix="s")
    editor.start()
    try:
        client, curve = asyncio.run(_talk(root, ledger, calls, settings))
    finally:
        editor.stop()
    toll = _settle(root, [client], settings)
    toll.counts["edits by hand"] = sum(editor.edits.values())
    first, last, percent = curve.growth()
    toll.counts["MB after the warm-up"], toll.counts["MB at the end"] = round(first), round(last)
    bar = {"calls": calls, "acknowledged": calls // 5, "edits by hand": 1}
    bar |= {"lost": 0, "torn": 0, "errors": 0, "missed": 0, "verify differences": 0}
    yield row("R12", "soak: one client, one server", toll, bar)
    counts = {
        "percent": round(percent, 1),
        "MB after the warm-up": round(first, 1),
        "MB at the end": round(last, 1),
    }
    met = percent <= GROWTH_PERCENT
    yield Row(
        "R12", "soak: growth of resident memory", counts, f"≤ {GROWTH_PERCENT:g} percent", met, {}
    )


async def _talk(
    root: Path, ledger: Ledger, calls: int, settings: tuple[str, ...]
) -> tuple[Client, Curve]:
    options = [f"--set={setting}" for setting in (*SETTINGS, *settings)]
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-P", "-m", "ragdocs", "mcp", "--project", str(root), *options],
        env={**os.environ, "RAGDOCS_SERVER_SHARED": "false"},
    )
    before = set(tree(os.getpid()))
    async with SdkClient(parameters, read_timeout_seconds=60) as session:
        (server,) = (pid for pid in tree(os.getpid()) if pid not in before)
        curve = Curve(server)
        tools = await session.list_tools()
        client = Client(ledger=ledger, tools=frozenset(tool.name for tool in tools.tools))
        for number in range(calls):
            call = client.think()
            result = await session.call_tool(call.tool, dict(call.arguments))
            assert isinstance(result, CallToolResult)
            if result.is_error:
                said = result.content[0]
                client.refuse(call, said.text if isinstance(said, TextContent) else "")
            else:
                client.hear(call, result.structured_content or {})
            if number % max(1, calls // SAMPLES) == 0:
                curve.look()
    return client, curve


def several_servers(yard: Yard, count: int, calls: int, seed: int = 6) -> Iterator[Row]:
    """Let several servers serve one project, each with a client of its own, while files change."""
    root = yard.project("soak-several")
    editor = Editor(root, seed)
    lines = [yard.start(root) for _ in range(count)]
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
    toll = Toll()
    for line in lines:
        try:
            line.close()
        except HangingError as error:
            toll.complain("deadlocks", str(error))
    toll.add(_settle(root, clients, ()))
    toll.counts["edits by hand"] = sum(editor.edits.values())
    bar = {"calls": calls // count * count, "acknowledged": calls // 5, "lost": 0, "torn": 0}
    bar |= {"errors": 0, "missed": 0, "deadlocks": 0, "verify differences": 0}
    yield row("R12", f"soak: {count} servers on one project", toll, bar)


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


def _settle(root: Path, clients: list[Client], settings: tuple[str, ...]) -> Toll:
    toll = Toll()
    for client in clients:
        client.ledger.check()
        client.ledger.check_kept()
        toll.add(client.ledger)
        toll.add(client)
    found = difference(root, *settings)
    if found:
        toll.complain("verify differences", found)
    return toll
