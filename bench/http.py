"""Many MCP clients on one server, over HTTP and over stdio: `python3 tasks.py bench http`.

Each client asks one search after the other. Times are those that a client waits. Before that, what
the page costs the server: the first page, and a key in the search box beside the search itself.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import math
import os
import random
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bench import _corpora
from bench._measure import cost, each, figure, grid, quantile, table
from bench._window import Window
from tests.faults.processes import process_seconds, rss_mb
from tests.faults.servers import RefusedError
from tests.http.site import Site, make_token, serving

from ragdocs.serve.live import Live
from ragdocs.serve.source import load_config
from ragdocs.serve.web.ask import ask_now
from ragdocs.serve.web.search import LIMIT

VERSION = "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
# Pages that are asked for one after the other.
PAGES = 40
POLL_SECONDS = 0.2
REPORT_SECONDS = 10.0
Ask = Callable[[str], bool]


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder:
        _corpora.enter(Path(folder))
        corpus = _corpora.generate(Path(folder), "docs", options.passages)
        queries = corpus.queries(200, seed=11)
        print(page(corpus, queries[:PAGES]), flush=True)
        print(f"{options.clients} clients, {options.calls} searches of {options.passages} passages")
        rows = []
        for way, clients in (("HTTP", over_http), ("stdio", over_stdio)):
            with clients(corpus.root, options.clients) as (asks, memory):
                run = Run(way, asks, queries, memory, options)
                rows.append((way, *run.figures()))
        head = ("way", "calls", "a second", "p50 ms", "p95 ms", "errors")
        print(grid((*head, "MB at start", "in the middle", "at the end"), rows))
    if any(row[len(head) - 1] != "0" for row in rows):
        sys.exit("there were errors")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 tasks.py bench http", description=__doc__)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--calls", type=int, default=20_000, help="of all clients together")
    parser.add_argument("--passages", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=600.0, help="the longest run of one way")
    return parser.parse_args()


def page(corpus: _corpora.Corpus, queries: list[str]) -> str:
    """Return the processor time of the first page and of a key, beside that of the verb alone."""
    live = Live(load_config(corpus.root, ("embedding.model=hash",)))

    def verb(query: str) -> None:
        ask_now(live, "search", query=query, limit=LIMIT)

    with (
        serving(corpus.root, "--requests-a-second", "100000") as site,
        contextlib.closing(site.connection()) as connection,
    ):
        # One connection, as a browser keeps it.
        headers = {"cookie": site.sign_in(), "accept": "text/html"}

        def get(address: str) -> None:
            connection.request("GET", address, headers=headers)
            response = connection.getresponse()
            response.read()
            assert response.status == 200

        def show(path: str, query: str) -> None:
            get(f"{path}?{urllib.parse.urlencode({'q': query})}")

        def first(_: str) -> None:
            get("/")

        key = partial(show, "/search-fragment")
        found = partial(show, "/")

        def clock() -> float:
            return process_seconds(site.process.pid)

        # Once for the caches, then in turn for the figures.
        for action in (verb, key, found, first):
            each(action, queries)
        alone = each(verb, queries)
        typed = each(key, queries, clock)
        whole = each(first, queries, clock)
        results = each(found, queries, clock)
    live.stop()
    more = typed.cpu_ms() - alone.cpu_ms()
    rows = [
        cost("page", "first page", corpus, whole, most=100),
        cost("page", "first page with results", corpus, results, most=100),
        cost("page", "search, verb alone", corpus, alone),
        cost("page", "a key in the search box", corpus, typed),
        figure("page", "key minus verb, cpu p50", corpus, more, "ms", most=3),
    ]
    return table(rows)


class Run:
    """All clients asking at once, until the calls or the time are used up."""

    def __init__(
        self,
        way: str,
        asks: list[Ask],
        queries: list[str],
        memory: Callable[[], float],
        options: argparse.Namespace,
    ) -> None:
        self._way = way
        self._asks = asks
        self._queries = queries
        self._memory = memory
        self._each = math.ceil(options.calls / len(asks))
        self._ends_at = time.perf_counter() + options.seconds
        self._waits: list[float] = []
        self._errors: list[str] = []

    def figures(self) -> tuple[str, ...]:
        """Run; return throughput, waiting times, errors and memory."""
        for ask in self._asks:
            assert ask(self._queries[0])
        sizes = [self._memory()]
        threads = []
        for number, ask in enumerate(self._asks):
            threads.append(threading.Thread(target=self._work, args=(ask, number)))
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        self._watch(threads, sizes)
        elapsed = time.perf_counter() - began
        sizes.append(self._memory())
        for error in self._errors[:5]:
            print(f"  {self._way}: {error}", file=sys.stderr)
        return (
            str(len(self._waits)),
            f"{len(self._waits) / elapsed:.0f}",
            f"{quantile(self._waits, 0.5) * 1000:.1f}",
            f"{quantile(self._waits, 0.95) * 1000:.1f}",
            str(len(self._errors)),
            *(f"{size:.0f}" for size in sizes),
        )

    def _work(self, ask: Ask, seed: int) -> None:
        chooser = random.Random(seed)
        for _ in range(self._each):
            began = time.perf_counter()
            if began > self._ends_at:
                return
            try:
                if not ask(chooser.choice(self._queries)):
                    self._errors.append("an answer without results")
            except (OSError, http.client.HTTPException, RefusedError) as error:
                self._errors.append(f"{type(error).__name__}: {error}")
            self._waits.append(time.perf_counter() - began)

    def _watch(self, threads: list[threading.Thread], sizes: list[float]) -> None:
        """Say how far it is, and note the memory in the middle."""
        calls = self._each * len(self._asks)
        said_at = time.perf_counter()
        for thread in threads:
            while thread.is_alive():
                thread.join(POLL_SECONDS)
                done = len(self._waits)
                if len(sizes) == 1 and done >= calls / 2:
                    sizes.append(self._memory())
                if time.perf_counter() - said_at > REPORT_SECONDS:
                    said_at = time.perf_counter()
                    size = self._memory()
                    print(f"  {self._way}: {done} of {calls}, {size:.0f} MB", file=sys.stderr)
        if len(sizes) == 1:
            # The time was used up before.
            sizes.append(self._memory())


@contextlib.contextmanager
def over_http(root: Path, count: int) -> Iterator[tuple[list[Ask], Callable[[], float]]]:
    """Connect clients to one HTTP server."""
    token = make_token(root)
    # A bench asks faster than any caller should.
    with serving(root, "--requests-a-second", "100000") as site:
        asks = [_http_client(site, token) for _ in range(count)]
        yield asks, lambda: rss_mb(site.process.pid)


def _http_client(site: Site, token: str) -> Ask:
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=120)
    headers = {
        "authorization": f"Bearer {token}",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": VERSION,
        "mcp-method": "tools/call",
        "mcp-name": "search_docs",
    }

    def ask(query: str) -> bool:
        params = {"name": "search_docs", "arguments": {"query": query}, "_meta": ENVELOPE}
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        connection.request("POST", "/mcp", json.dumps(request), headers)
        response = connection.getresponse()
        return b"structuredContent" in response.read() and response.status == 200

    return ask


@contextlib.contextmanager
def over_stdio(root: Path, count: int) -> Iterator[tuple[list[Ask], Callable[[], float]]]:
    """Open windows, which share one server."""
    program = (sys.executable, "-P", "-m", "ragdocs", "mcp")
    command = (*program, "--project", str(root), "--set", "embedding.model=hash")
    with contextlib.ExitStack() as stack:
        windows = []
        for _ in range(count):
            window = stack.enter_context(Window(command, root, dict(os.environ)))
            window.greet()
            windows.append(window)
        asks = [_stdio_client(window) for window in windows]
        assert asks[0]("token")
        server = _server_of(Path(os.environ["XDG_RUNTIME_DIR"]))
        yield asks, lambda: rss_mb(server)


def _server_of(runtime: Path) -> int:
    """Return the process that all windows share."""
    (lock,) = runtime.glob("ragdocs-*/*.lock")
    return int(lock.read_text())


def _stdio_client(window: Window) -> Ask:
    return lambda query: "structuredContent" in window.call("search_docs", query=query)


if __name__ == "__main__":
    main()
