"""Compares ragdocs with other servers over MCP on the same documents and queries."""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from bench import _report
from bench._measure import Sample, TreeClock, grid, shown
from bench._rivals import RIVALS, CannotRunError, Ragdocs, Rival
from bench._window import Window
from tests.faults.processes import rss_mb, tree
from tests.faults.servers import LineError

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data" / "k8s-links"
NOTE = (
    "Decision {number}: keep the cache in memory, because reading it again took longer than the "
    "search itself."
)
# Characters of a page that is no stub.
SHORTEST = 200
WARM_UP = "what is documented here"
COLUMNS = {
    "initialize": ("initialize", "s"),
    "index": ("index, cpu a document", "ms"),
    "search": ("search, cpu p50", "ms"),
    "search wall": ("wall p50", "ms"),
    "write": ("write, cpu p50", "ms"),
    "rss": ("memory", "MB"),
    "right": ("right page", "%"),
}

# Processor seconds in a second of a server at rest, and seconds that one is waited for.
AT_REST, LONGEST_REST = 0.05, 60.0


def main() -> None:
    options = _options()
    documents, queries = _texts(options.documents, options.queries)
    options.scratch.mkdir(parents=True, exist_ok=True)
    names = [] if options.peers == "none" else options.peers.split(",")
    found: dict[str, dict[str, float]] = {}
    size = sum(map(len, documents.values()))
    notes = [f"{len(documents)} documents, {size:,} characters, {len(queries)} queries"]
    notes.append(f"indexing is stopped after {options.limit:g} seconds")
    for rival in [Ragdocs(options.scratch), *(RIVALS[name](options.scratch) for name in names)]:
        print(f"{rival.name} …", file=sys.stderr, flush=True)
        try:
            found[rival.name], note = measure(rival, documents, queries, options.limit)
        except (CannotRunError, LineError, OSError, subprocess.SubprocessError) as error:
            note = f"not measured: {error}"
        notes.append(f"{rival.name} ({rival.kind}): {note}")
    text = f"{_table(found)}\n\n" + "\n".join(f"- {note}" for note in notes)
    print(text)
    if options.write:
        command = "python3 tasks.py bench peers"
        for name in ("documents", "queries", "limit"):
            command += f" --{name} {getattr(options, name):g}"
        body = f"`{command} --peers {options.peers}`\n\n{text}"
        _report.replace_block(ROOT / "docs" / "internals" / "performance.md", "peers", body)


def measure(
    rival: Rival, documents: Mapping[str, str], queries: Mapping[str, str], limit: float
) -> tuple[dict[str, float], str]:
    """Start one server with nothing, fill it, search it and write to it."""
    command = rival.install()
    shutil.rmtree(rival.home, ignore_errors=True)
    rival.home.mkdir()
    home = {"HOME": str(rival.home), **rival.environment}
    before = sum(_cpu([*step], rival.home, home) for step in rival.prepare(documents))
    with Window(command, rival.home, home) as window:
        values = {"initialize": window.greet()}
        window.tools()
        started = window.clock()
        rival.deadline = time.monotonic() + limit
        how = rival.index(window, documents)
        seconds = before + window.clock() - started
        values["index"] = 1000 * seconds / max(rival.indexed, 1)
        if rival.indexed < len(documents):
            how += f"; {rival.indexed} of {len(documents)} documents in time"
        # Every question after this one is new.
        rival.search(window, WARM_UP)
        _rest(window)
        clock = window.clock.steady()
        sample = Sample()
        answers = {
            query: sample.take(partial(rival.search, window, query), clock) for query in queries
        }
        right = sum(_shows(answers[query], page, documents) for query, page in queries.items())
        values |= {"search": sample.cpu_ms(), "search wall": sample.wall_ms()}
        values["right"] = 100 * right / len(queries)
        written = Sample()
        try:
            for number in range(len(queries) // 2):
                text = NOTE.format(number=number)
                name = f"note-{number}.md"
                written.take(partial(rival.write, window, name, text), clock)
        except CannotRunError as error:
            how += f"; {error}"
        values["write"] = written.cpu_ms()
        values["rss"] = sum(map(rss_mb, tree(window.pid)))
    return values, how


def _rest(window: Window) -> None:
    """Wait until a server rests after indexing, but not for ever."""
    deadline = time.monotonic() + LONGEST_REST
    while time.monotonic() < deadline:
        before = window.clock()
        time.sleep(1)
        if window.clock() - before < AT_REST:
            return


def _shows(answer: str, page: str, documents: Mapping[str, str]) -> bool:
    """Tell whether an answer names a page or quotes a line that stands in no other."""
    others = {
        line for name, text in documents.items() if name != page for line in text.splitlines()
    }
    own = [line for line in documents[page].splitlines() if len(line) > 30 and line not in others]
    return page in answer or any(line in answer for line in own)


def _cpu(command: list[str], home: Path, variables: Mapping[str, str]) -> float:
    with (home / "prepare.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=home, env={**os.environ, **variables}, stdout=log, stderr=log
        )
    clock = TreeClock(process.pid)
    seconds = 0.0
    while process.poll() is None:
        seconds = max(seconds, clock())
        time.sleep(0.02)
    if process.returncode:
        raise CannotRunError((home / "prepare.log").read_text(errors="replace")[-300:])
    return seconds


def _table(found: Mapping[str, Mapping[str, float]]) -> str:
    ours = found.get("ragdocs", {})
    lines = []
    for name, values in found.items():
        cells = [name]
        for column, (_, unit) in COLUMNS.items():
            cell = "-" if math.isnan(values[column]) else f"{shown(values[column])} {unit}"
            if name != "ragdocs" and ours.get(column) and cell != "-":
                cell += f" ({values[column] / ours[column]:.2g} x)"
            cells.append(cell)
        lines.append(cells)
    return grid(["server", *(title for title, _ in COLUMNS.values())], lines)


def _texts(most: int, asked: int) -> tuple[dict[str, str], dict[str, str]]:
    """Return documents by name, and the page that each query looks for."""
    if DATA.is_dir():
        pages = {page["_id"]: page for page in _lines(DATA / "corpus.jsonl.gz")}
        judged = gzip.decompress((DATA / "qrels.tsv.gz").read_bytes()).decode().splitlines()[1:]
        pairs = [line.split("\t")[:2] for line in judged]
        # The shortest that are no stubs: long ones are mostly generated reference tables.
        by_length = sorted((len(page["text"]), name) for name, page in pages.items())
        chosen = [name for length, name in by_length if length >= SHORTEST][:most]
        texts = {}
        for page in chosen:
            texts[_name(page)] = f"# {pages[page]['title']}\n\n{pages[page]['text']}"
        words = {line["_id"]: line["text"] for line in _lines(DATA / "queries.jsonl.gz")}
        queries = [(words[query], _name(page)) for query, page in pairs if page in chosen]
        # From all of them, not only from the first in the alphabet.
        return texts, dict(queries[:: max(1, len(queries) // asked)][:asked])
    files = sorted((ROOT / "docs").glob("*.md"))[:most]
    texts = {file.name: file.read_text(encoding="utf-8") for file in files}
    headings = []
    for name, text in texts.items():
        headings += [(title, name) for title in re.findall(r"(?m)^#+ (.+)$", text)]
    return texts, dict(headings[:: max(1, len(headings) // asked)][:asked])


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]


def _name(identifier: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", identifier.lower().removesuffix(".md")).strip("-") + ".md"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 tasks.py bench peers", description=__doc__)
    every = ",".join(RIVALS)
    parser.add_argument("--peers", default=every, help=f"by commas, of {every}; or none")
    parser.add_argument("--documents", type=int, default=500)
    parser.add_argument("--limit", type=float, default=600, help="seconds that a peer may index")
    parser.add_argument("--queries", type=int, default=40)
    scratch = Path(tempfile.gettempdir()) / "ragdocs-peers"
    parser.add_argument("--scratch", type=Path, default=scratch, help="where peers are installed")
    parser.add_argument("--write", action="store_true", help="write docs/internals/performance.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
