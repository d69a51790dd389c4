"""Random kill -9 of real servers while they start, write, merge, save and end."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from tests.faults.ledger import MEMORIES, Ledger, Toll, difference
from tests.faults.nursery import QUIET
from tests.faults.servers import (
    PATIENCE,
    EndedError,
    HangingError,
    Line,
    RefusedError,
    Yard,
    answer_of,
)

from ragdocs.serve.shared.shim import LOST

# Calls that one client has under way at a time.
AT_ONCE = 4
# Kills in one project: later ones find a larger history and a fuller trash, and checking costs what
# is there.
KILLS_IN_A_PROJECT = 50
# Snapshots are written after two quiet seconds; so soon, they are written all the time.
QUIET_SECONDS = "0.05"
LONGEST_BURST = 0.4
LONGEST_START = 0.3
LONGEST_END = 0.1
# The share of servers that are killed before they have answered anything.
STARTS = 0.2
# The SDK answers calls that are under way when the client hangs up; whether they were made is open.
HUNG_UP = "Connection closed"


def kill_servers(yard: Yard, count: int, seed: int = 1, cold_every: int = 20) -> Toll:
    """Kill servers of their own; every so-manyeth is a program started anew instead of a fork."""
    toll = Toll()
    rng = random.Random(seed)
    for number in range(0, count, KILLS_IN_A_PROJECT):
        root = yard.project(f"kills-{number}")
        (root / "docs").mkdir()
        for page in range(5):
            (root / f"docs/{page}.md").write_text(f"# Page {page}\n\nabout the {page}th thing\n")
        ledger = Ledger(root=root, rng=rng)
        due = False
        for turn in range(number, min(count, number + KILLS_IN_A_PROJECT)):
            cold = cold_every > 0 and turn % cold_every == cold_every - 1
            line = yard.start(
                root, "watch.debounce_ms=50", cold=cold, environment={QUIET: QUIET_SECONDS}
            )
            due = _one(line, ledger, toll, due=due)
        with yard.start(root) as line:
            _examine(line, ledger, toll, compare=due)
        ledger.check_kept()
        toll.add(ledger)
    return toll


def _one(line: Line, ledger: Ledger, toll: Toll, *, due: bool) -> bool:
    """Kill one server; tell whether the index is still to be compared, after the next start."""
    rng = ledger.rng
    kind = (
        "start"
        if not due and rng.random() < STARTS
        else rng.choice(("write", "write", "write", "end"))
    )
    if kind == "start":
        time.sleep(rng.uniform(0, LONGEST_START))
    elif _examine(line, ledger, toll, compare=due):
        _burst([line], [ledger], toll, time.monotonic() + rng.uniform(0, LONGEST_BURST))
        if kind == "end":
            line.hang_up()
            time.sleep(rng.uniform(0, LONGEST_END))
    _hear(ledger, line.kill(), toll, hung_up=kind == "end")
    toll.counts["kills"] += 1
    toll.counts[f"kills at {kind}"] += 1
    _look_around(ledger.root, toll)
    # As often before the next start as after it, which may mend something.
    if kind == "start" or rng.random() < 0.5:
        _compare(ledger, toll)
        return False
    return True


def _examine(line: Line, ledger: Ledger, toll: Toll, *, compare: bool) -> bool:
    """Tell whether a server starts; compare the files, its counts and the index."""
    opened = _opens(line, ledger, toll)
    if opened:
        ledger.check()
    if compare:
        _compare(ledger, toll)
    return opened


def _opens(line: Line, ledger: Ledger, toll: Toll) -> bool:
    """Tell whether a server answers, and that it sees as many memories as there are files."""
    try:
        found = line.greet().call("get_memory_stats")["count"]
    except (EndedError, HangingError, RefusedError) as error:
        toll.complain("failed starts", f"{error}; {line.last_words()}")
        return False
    toll.counts["starts"] += 1
    there = len(list(ledger.on_disk()))
    if found != there:
        toll.complain("failed starts", f"it counts {found} memories where there are {there}")
    return True


def _burst(lines: list[Line], ledgers: list[Ledger], toll: Toll, deadline: float) -> None:
    """Keep several calls under way on every line until the time has come."""
    while time.monotonic() < deadline:
        for line, ledger in zip(lines, ledgers, strict=True):
            while len(ledger.under_way) < AT_ONCE:
                operation = ledger.choose()
                ledger.under_way[line.send_call(operation.tool, **operation.arguments)] = operation
            message = line.receive(
                min(deadline, time.monotonic() + 0.01 if len(lines) > 1 else deadline)
            )
            if message:
                _hear(ledger, [message], toll)


def _hear(
    ledger: Ledger, messages: Sequence[dict[str, Any]], toll: Toll, *, hung_up: bool = False
) -> None:
    for message in messages:
        operation = ledger.under_way.pop(message["id"], None)
        if operation is None:
            continue
        try:
            ledger.acknowledge(operation, answer_of(message))
        except RefusedError as error:
            ledger.doubts.append(operation)
            if "call again" in str(error):
                # The window answers for a server that was killed.
                toll.counts["told to call again"] += 1
            elif hung_up and str(error) == HUNG_UP:
                toll.counts["ended under way"] += 1
            else:
                toll.complain("errors", f"{operation.tool} {operation.arguments}: {error}")


def _look_around(root: Path, toll: Toll) -> None:
    """Count what the kills left half-made: proof that they hit."""
    memories = root / MEMORIES
    history = memories / ".history"
    if any((history / name).exists() for name in ("forward.json", "back.json")):
        toll.counts["kills inside a merge"] += 1
    if any(not (place / "manifest.json").exists() for place in (memories / "indices").glob("*-*")):
        toll.counts["kills inside a snapshot"] += 1
    left = {
        str(place) for place in memories.rglob(".*.ragdocs-tmp") if "indices" not in place.parts
    }
    if left:
        toll.counts["kills inside a write"] += 1
    for place in left:
        # Swept after an hour; here it would be counted again.
        Path(place).unlink()


def _compare(ledger: Ledger, toll: Toll) -> None:
    found = difference(ledger.root)
    toll.counts["verified"] += 1
    if found:
        toll.complain("verify differences", found)


def kill_shared_servers(yard: Yard, count: int, seed: int = 2) -> Toll:
    """Kill the server that two windows share, under both; the windows bring it back and go on."""
    toll = Toll()
    root = yard.project("shared")
    rng = random.Random(seed)
    ledgers = [Ledger(root=root, rng=rng, prefix=prefix) for prefix in "ab"]
    with ExitStack() as stack:
        # The name of a socket must be short, and the yard may be deep.
        runtime = Path(
            stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True))
        )
        environment = {"RAGDOCS_SERVER_SHARED": "true", "XDG_RUNTIME_DIR": str(runtime)}
        stack.callback(_end_servers, runtime)
        lines = [stack.enter_context(yard.start(root, environment=environment)) for _ in ledgers]
        for line in lines:
            line.greet().call("get_memory_stats")
        for _ in range(count):
            _burst(lines, ledgers, toll, time.monotonic() + rng.uniform(0.02, LONGEST_BURST))
            toll.counts["kills"] += _end_servers(runtime)
            for line, ledger in zip(lines, ledgers, strict=True):
                _mended(line, ledger, toll)
            for ledger in ledgers:
                ledger.check()
            _compare(ledgers[0], toll)
    for ledger in ledgers:
        ledger.check_kept()
        toll.add(ledger)
    return toll


def _ask_again(line: Line, toll: Toll) -> None:
    """Ask for something new, again if the dying server got the question."""
    try:
        line.call("get_memory_stats")
    except RefusedError as error:
        if LOST not in str(error):
            raise
        toll.counts["told to call again"] += 1
        line.call("get_memory_stats")


def _mended(line: Line, ledger: Ledger, toll: Toll) -> None:
    """Hear the answers to everything that was under way, then ask for something new."""
    try:
        deadline = time.monotonic() + PATIENCE
        while ledger.under_way and (message := line.receive(deadline)):
            _hear(ledger, [message], toll)
        if ledger.under_way:
            toll.complain("failed starts", "the window says nothing about what was under way")
        _ask_again(line, toll)
        toll.counts["starts"] += 1
    except (EndedError, HangingError, RefusedError) as error:
        toll.complain("failed starts", f"{error}; {line.last_words()}")


def _end_servers(runtime: Path) -> int:
    """Kill the shared servers that listen below a folder and return how many there were."""
    ended = 0
    for lock in runtime.glob("*/*.lock"):
        text = lock.read_text()
        if text:
            with suppress(ProcessLookupError):
                os.kill(int(text), signal.SIGKILL)
                ended += 1
            # Nobody holds a dead one's number.
            lock.write_text("")
    return ended
