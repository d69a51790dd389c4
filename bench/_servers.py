"""Real processes: search over MCP, start-up, a second window, and memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from bench._corpora import Corpus
from bench._measure import Row, Sample, cost, figure, unlike_warm
from bench._window import Window
from tests.faults.processes import process_seconds, rss_mb, tree
from tests.faults.servers import RAGDOCS

ROOT = Path(__file__).resolve().parent.parent
# How often a process is started: the middle one counts.
STARTS = 3
# How often the same queries are asked again: the round that others on the machine disturbed least
# counts.
ROUNDS = 5
SETTLING_SECONDS = 30
# Processor time in a second of a server that waits.
IDLE_SECONDS = 0.03


def command(corpus: Corpus) -> list[str]:
    return [*RAGDOCS, "mcp", "--project", str(corpus.root)]


def over_mcp(corpus: Corpus, repeats: int) -> list[Row]:
    """Search through a window and the shared server, without encoding."""
    queries = corpus.queries(repeats, seed=10)
    tool = "search_docs" if "docs" in corpus.workspace.open_lanes else "search_memories"
    with _quiet_server(corpus) as server, Window(command(corpus), corpus.root) as window:
        window.greet()
        window.tools()
        own = window.pid
        # The first call opens the index: that is the row of the start.
        _check(window.call(tool, query=queries[0]))

        def clock() -> float:
            return process_seconds(server) + process_seconds(own)

        # What a server does once, as comparing files, is no cost of the words of a question.
        _ask(window, tool, corpus.queries(repeats, seed=11), clock)
        _settle(server)
        first = _ask(window, tool, queries, clock)
        rounds = [_ask(window, tool, queries, clock) for _ in range(ROUNDS)]
        sample = min(rounds, key=lambda one: one.cpu_ms())
    scale = 1 if corpus.chunks <= 15_000 else 3
    p95 = sample.cpu_ms(0.95)
    return [
        cost("search", "over MCP", corpus, sample, most=5 * scale),
        figure("search", "over MCP, cpu p95", corpus, p95, "ms", most=10 * scale),
        cost("search", "over MCP, new words", corpus, first),
        *unlike_warm("over MCP, new words", corpus, first, sample),
    ]


def _check(answer: dict[str, Any]) -> None:
    """Refuse to measure a server that does not search the whole index, vectors included."""
    content = answer["structuredContent"]
    # Made-up vectors may leave a query without anything above the floor; all of the work is done
    # all the same.
    if any(note.startswith(("still embedding", "keyword and graph")) for note in content["notes"]):
        raise RuntimeError(f"the server did not open the index that was built: {content['notes']}")


def _settle(server: int) -> None:
    """Wait until a server does next to nothing, for half a minute at most."""
    for _ in range(SETTLING_SECONDS):
        before = process_seconds(server)
        time.sleep(1.0)
        if process_seconds(server) - before < IDLE_SECONDS:
            return


def _ask(window: Window, tool: str, queries: list[str], clock: Callable[[], float]) -> Sample:
    sample = Sample()
    for query in queries:
        sample.take(partial(window.call, tool, query=query), clock)
    return sample


@contextmanager
def _quiet_server(corpus: Corpus) -> Iterator[int]:
    """Run the shared server without a model where the next window looks for it."""
    arguments = command(corpus)[5:]
    code = "import sys; from ragdocs.serve.shared import shim; print(shim.address(sys.argv[1:]))"
    ask = [sys.executable, "-P", "-c", code, *arguments]
    place = subprocess.check_output(ask, cwd=corpus.root, text=True).strip()
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    environ = {**os.environ, "PYTHONPATH": paths}
    quiet = [sys.executable, "-P", "-m", "bench._quiet", place, *arguments]
    with (corpus.root / "server.log").open("wb") as log:
        server = subprocess.Popen(quiet, cwd=corpus.root, env=environ, stdout=log, stderr=log)
    try:
        while not Path(f"{place}.sock").exists():
            if server.poll() is not None:
                raise RuntimeError((corpus.root / "server.log").read_text()[-500:])
            time.sleep(0.05)
        yield server.pid
    finally:
        server.terminate()
        server.wait(10)


def starting(corpus: Corpus) -> list[Row]:
    """Start a window and with it the server, ask for everything, open a second window."""
    sdk = median(_importing_the_sdk() for _ in range(STARTS))
    tool = "search_docs" if "docs" in corpus.workspace.open_lanes else "search_memories"
    runs = [_start(corpus, tool) for _ in range(STARTS)]
    took = {name: median(run[name] for run in runs) for name in runs[0]}
    goal = 1.0 if corpus.chunks <= 15_000 else 3.0
    without, after = (120, 200) if 5_000 <= corpus.chunks <= 15_000 else (None, None)
    times = f"{took['initialize'] / sdk:.2f} x SDK"
    cpu = f"server and window {took['cpu']:.2f} s cpu until tools/list"
    first = f"{took['search cpu']:.2f} s cpu, model included"
    second = f"{took['second cpu'] * 1000:.0f} ms cpu"

    def start(name: str, value: float, unit: str, **more: Any) -> Row:
        return figure("start", name, corpus, value, unit, **more)

    def memory(name: str, value: float, most: float | None) -> Row:
        return figure("memory", name, corpus, value, "MB RSS", most=most)

    return [
        start("importing the SDK alone", sdk, "s"),
        start("start → initialize", took["initialize"], "s", note=times),
        start("start → tools/list", took["tools"], "s", note=cpu),
        start("tools/list → first search", took["search"], "s", most=goal, note=first),
        start("second window → initialize", took["second"] * 1000, "ms", most=100),
        start("second window, memory", took["second rss"], "MB RSS", most=15, note=second),
        memory("server, index open, no model", took["rss before"], without),
        memory("server, after 20 searches", took["rss after"], after),
    ]


def _importing_the_sdk() -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "from mcp.server import MCPServer"], check=True)
    return time.perf_counter() - start


def _start(corpus: Corpus, tool: str) -> dict[str, float]:
    # New ones each time: the vectors of queries asked before come from the cache, and the model
    # stays unloaded.
    queries = corpus.queries(21, seed=time.time_ns())
    with Window(command(corpus), corpus.root) as first:
        took = {"initialize": first.greet()}
        first.tools()
        took["tools"] = time.perf_counter() - first.started
        took["cpu"] = first.clock()
        answer = first.call(tool, query=queries[0])
        took["search"] = time.perf_counter() - first.started - took["tools"]
        took["search cpu"] = first.clock() - took["cpu"]
        _check(answer)
        for query in queries[1:]:
            first.call(tool, query=query)
        took["rss after"] = max(map(rss_mb, tree(first.pid)))
        with Window(command(corpus), corpus.root) as second:
            took["second"] = second.greet()
            second.tools()
            took["second cpu"] = process_seconds(second.pid)
            took["second rss"] = rss_mb(second.pid)
    with Window(command(corpus), corpus.root) as third:
        third.greet()
        # Needs the index, not the model.
        third.call("index_status" if tool == "search_docs" else "get_memory_stats")
        took["rss before"] = max(map(rss_mb, tree(third.pid)))
    return took


def seen_elsewhere(memories: Corpus) -> list[Row]:
    """Write through one server and search in another that shares nothing with it but the files."""
    alone = {"RAGDOCS_SERVER_SHARED": "false"}
    waits = []
    with (
        Window(command(memories), memories.root, alone) as writer,
        Window(command(memories), memories.root, alone) as reader,
    ):
        for window in (writer, reader):
            window.greet()
            window.call("search_memories", query="open")
        for number in range(STARTS):
            name, word = f"seen-{number}.md", f"zyxw{number}vut"
            writer.call("create_memory", filename=name, content=f"# {word}\n\nfor others", tags=[])
            start = time.perf_counter()
            while word not in str(reader.call("search_memories", query=word)):
                if time.perf_counter() - start > 30:
                    break
                time.sleep(0.01)
            waits.append(time.perf_counter() - start)
            writer.call("delete_memory", filename=name)
    name = "written → found by another process"
    return [figure("writes", name, memories, median(waits), "s", most=1)]
