"""Compares this source with that of another checkout: the same actions, in turn, best of many."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from bench import _corpora
from bench._measure import grid, shown
from bench._searches import NOTE
from bench._window import Window
from tests.faults.processes import process_seconds, rss_mb
from tests.faults.processes import tree as process_tree

# What a source does in a round, and the figures of it.
Action = Callable[[int], list[float]]

ROOT = Path(__file__).resolve().parent.parent
MORE = "And it was tested on both systems."
PARTS = ("search", "mcp", "writes", "start", "indexing")
# A busy machine makes single figures worse, never better.
ROUNDS = 12
# An answer passes several threads, so its cost varies more than that of a search in one.
MCP_ROUNDS = 30
BUILDS = 2
STARTS = 7
SEARCHES_BEFORE_RSS = 20
# A ratio above this is worth a look.
SLOWER = 1.05


@dataclass(frozen=True, slots=True)
class Tree:
    """A source with a project, and everything else it writes, of its own."""

    source: Path
    root: Path
    environ: Mapping[str, str]

    def window(self, *, shared: bool) -> Window:
        """Start `ragdocs mcp`, with the project's shared server or with one of its own."""
        command = [sys.executable, "-P", "-m", "ragdocs", "mcp", "--project", str(self.root)]
        environ = {**self.environ, "RAGDOCS_SERVER_SHARED": str(shared).lower()}
        return Window(command, self.root, environ)


@dataclass(frozen=True, slots=True)
class Line:
    """The best figure of each source for one action."""

    what: str
    passages: int
    unit: str
    old: float
    new: float

    @property
    def ratio(self) -> float:
        return self.new / self.old


class Process:
    """A probe with the source of one tree."""

    def __init__(self, tree: Tree, model: str) -> None:
        command = [sys.executable, "-P", str(ROOT / "bench/_probe.py"), str(tree.root), model]
        environ = {**os.environ, **tree.environ}
        with (tree.root / "probe.log").open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=tree.root,
                env=environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._log = tree.root / "probe.log"
        self._answer()

    def __call__(self, action: str, *arguments: object) -> list[float]:
        """Run an action and return its milliseconds."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps([action, *arguments]) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> list[float]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the probe ended: {self._log.read_text()[-1000:]}")
        milliseconds: list[float] = json.loads(line)
        return milliseconds

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(10)


def compare(
    work: Path, old: Path, sizes: Sequence[int], chosen: Collection[str] = PARTS
) -> Iterator[Line]:
    """Yield a line for each action and size, of the parts that are chosen."""
    if not (old / "src/ragdocs").is_dir():
        raise SystemExit(f"--against {old}: there is no src/ragdocs in it")
    for size in sizes:
        trees = _trees(work / str(size), old, size)
        queries = _queries(trees[0].root / "docs", 40)
        # Vectors come last: the servers open the index that is saved then.
        for model in ("none", "hash"):
            yield from _in_process(trees, model, size, queries, chosen)
        if "mcp" in chosen:
            yield _line("search over MCP", size, _over_mcp(trees, queries))
        if "start" in chosen:
            yield from _starting(trees, size, queries)


def _in_process(
    trees: Sequence[Tree], model: str, size: int, queries: Sequence[str], chosen: Collection[str]
) -> Iterator[Line]:
    """Measure what needs no server, and leave an index with the vectors of a model."""
    name = "words only" if model == "none" else "hash vectors"
    with ExitStack() as stack:
        pair = [stack.enter_context(Process(tree, model)) for tree in trees]
        if "search" in chosen:
            yield _line(f"search, {name}", size, _searching(pair, queries))
        if "indexing" in chosen and model == "none":
            yield _line(f"index, {name}", size, _building(pair))
        if "writes" in chosen and model == "hash":
            yield from _writing(pair, size)


def table(lines: Sequence[Line]) -> str:
    """Return the figures side by side; those that are slower are marked."""
    rows = []
    for line in lines:
        mark = "slower" if line.ratio > SLOWER else ""
        figures = (f"{shown(line.old)} {line.unit}", f"{shown(line.new)} {line.unit}")
        rows.append((line.what, f"{line.passages:,}", *figures, f"{line.ratio:.2f}", mark))
    return grid(("what", "passages", "old", "new", "ratio", ""), rows)


def _trees(work: Path, old: Path, size: int) -> tuple[Tree, Tree]:
    written = work / "written"
    _corpora.write(written, "docs", size)
    _corpora.write(written, "memory", size)
    (written / "config.toml").write_text("[memory]\nenabled = true\n")
    return _tree(work / "old", old.resolve(), written), _tree(work / "new", ROOT, written)


def _tree(work: Path, checkout: Path, written: Path) -> Tree:
    root = work / "project"
    shutil.copytree(written, root)
    work.chmod(0o700)
    environ = {
        # The probe and the server import the bytecode of this source, and neither tree gets any.
        "PYTHONPATH": str(checkout / "src"),
        "PYTHONPYCACHEPREFIX": str(work / "bytecode"),
        "PYTHONDONTWRITEBYTECODE": "",
        # Sockets of their own, so that no window meets the server of the other source.
        "XDG_RUNTIME_DIR": str(work),
        "RAGDOCS_EMBEDDING_MODEL": "hash",
    }
    for name in ("CACHE", "STATE", "DATA", "CONFIG"):
        environ[f"XDG_{name}_HOME"] = str(work / name.lower())
    return Tree(checkout, root, environ)


def _queries(folder: Path, count: int) -> list[str]:
    """Return pieces of sentences of the documentation."""
    chooser = random.Random(5)
    files = sorted(folder.iterdir())
    queries = []
    for _ in range(count):
        words = re.findall(r"[a-z]{2,}", chooser.choice(files).read_text(encoding="utf-8"))
        start = chooser.randrange(len(words) - 8)
        queries.append(" ".join(words[start : start + chooser.randrange(5, 9)]))
    return queries


def _line(what: str, size: int, best: Sequence[Sequence[float]]) -> Line:
    """Return the means of what was measured."""
    old, new = best
    return Line(what, size, "ms", sum(old) / len(old), sum(new) / len(new))


def _best_of(rounds: int, actions: Sequence[Action]) -> list[list[float]]:
    """Let each source act in turn; return the best round of each of its figures."""
    best: list[list[float]] = [[] for _ in actions]
    for number in range(rounds):
        for position, action in enumerate(actions):
            figures = action(number)
            earlier = best[position] or figures
            best[position] = [min(pair) for pair in zip(earlier, figures, strict=True)]
    return best


def _searching(pair: Sequence[Process], queries: Sequence[str]) -> list[list[float]]:
    def action(process: Process) -> Action:
        return lambda _: process("search", queries)

    return _best_of(ROUNDS, [action(process) for process in pair])


def _writing(pair: Sequence[Process], size: int) -> Iterator[Line]:
    def action(process: Process, name: str, text: str) -> Action:
        return lambda number: process(name, 10 * number, text)

    for name, text in (("create", f"# Note\n\n{NOTE}"), ("append", MORE)):
        best = _best_of(ROUNDS, [action(process, name, text) for process in pair])
        yield _line(name, size, best)


def _building(pair: Sequence[Process]) -> list[list[float]]:
    def action(process: Process) -> Action:
        return lambda _: process("index")

    return _best_of(BUILDS, [action(process) for process in pair])


def _over_mcp(trees: Sequence[Tree], queries: Sequence[str]) -> list[list[float]]:
    def action(window: Window) -> Action:
        return lambda _: [_cost(window, query) for query in queries]

    with ExitStack() as stack:
        windows = [stack.enter_context(tree.window(shared=False)) for tree in trees]
        for window in windows:
            window.greet()
            window.tools()
            _check(window.call("search_docs", query=queries[0]))
        return _best_of(MCP_ROUNDS, [action(window) for window in windows])


def _cost(window: Window, query: str) -> float:
    before = process_seconds(window.pid)
    window.call("search_docs", query=query)
    return (process_seconds(window.pid) - before) * 1000


def _check(answer: Mapping[str, Any]) -> None:
    """Refuse to measure a server that found nothing in what the probe has indexed."""
    text = answer["content"][0]["text"]
    if "still" in text or "page-" not in text:
        raise RuntimeError(f"the server did not open the index that was built: {text[:300]}")


def _starting(trees: Sequence[Tree], size: int, queries: Sequence[str]) -> Iterator[Line]:
    def action(tree: Tree) -> Action:
        return lambda _: _start(tree, queries)

    best = _best_of(STARTS, [action(tree) for tree in trees])
    names = (
        "start to tools/list",
        "start to first answer",
        f"after {SEARCHES_BEFORE_RSS} searches",
    )
    for name, unit, old, new in zip(names, ("ms", "ms", "MB RSS"), *best, strict=True):
        yield Line(name, size, unit, old, new)


def _start(tree: Tree, queries: Sequence[str]) -> list[float]:
    """Return the processor time until the tools are listed and until an answer, and the memory."""
    with tree.window(shared=True) as window:
        window.greet()
        window.tools()
        listed = window.clock() * 1000
        window.call("search_docs", query=queries[0])
        answered = window.clock() * 1000
        for query in queries[1 : SEARCHES_BEFORE_RSS + 1]:
            window.call("search_docs", query=query)
        return [listed, answered, max(map(rss_mb, process_tree(window.pid)))]
