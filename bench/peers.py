"""Compares ragdocs with other servers over MCP: the same documents, the same queries, one run, one after another."""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench import _report
from bench._measure import Sample, TreeClock, grid, rss_mb, shown, tree
from bench._rivals import RIVALS, CannotRunError, Ragdocs, Rival
from bench._window import Window, WindowError

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data" / "k8s-links"
NOTE = "Decision {number}: keep the cache in memory, because reading it again took longer than the search itself."
COLUMNS = {
    "initialize": ("initialize", "s"),
    "index": ("index, cpu", "s"),
    "search": ("search, cpu p50", "ms"),
    "search wall": ("wall p50", "ms"),
    "write": ("write, cpu p50", "ms"),
    "rss": ("memory", "MB"),
}


def main() -> None:
    options = _options()
    documents, queries = _texts(options.documents, options.queries)
    options.scratch.mkdir(parents=True, exist_ok=True)
    names = [] if options.peers == "none" else options.peers.split(",")
    found: dict[str, dict[str, float]] = {}
    notes = [f"{len(documents)} documents, {sum(map(len, documents.values())):,} characters, {len(queries)} queries"]
    for rival in [Ragdocs(options.scratch), *(RIVALS[name](options.scratch) for name in names)]:
        print(f"{rival.name} …", file=sys.stderr, flush=True)
        try:
            found[rival.name], note = measure(rival, documents, queries)
        except (CannotRunError, WindowError, OSError, subprocess.SubprocessError) as error:
            note = f"not measured: {error}"
        notes.append(f"{rival.name} ({rival.kind}): {note}")
    text = f"{_table(found)}\n\n" + "\n".join(f"- {note}" for note in notes)
    print(text)
    if options.write:
        asked = shlex.join(argument for argument in sys.argv[1:] if argument != "--write")
        body = f"`python3 tasks.py bench peers {asked}`".replace(" `", "`") + f"\n\n{text}"
        _report.replace_block(ROOT / "docs" / "performance.md", "peers", body)


def measure(rival: Rival, documents: Mapping[str, str], queries: list[str]) -> tuple[dict[str, float], str]:
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
        how = rival.index(window, documents)
        values["index"] = before + window.clock() - started
        rival.search(window, queries[0])
        clock = window.clock.steady()
        sample, hits = Sample(), 0
        for query in queries:
            answer = sample.take(lambda query=query: rival.search(window, query), clock)  # type: ignore[misc]
            hits += any(name.removesuffix(".md") in answer for name in documents)
        values |= {"search": sample.cpu_ms(), "search wall": sample.wall_ms()}
        written = Sample()
        try:
            for number in range(len(queries) // 2):
                text = NOTE.format(number=number)
                name = f"note-{number}.md"
                written.take(lambda n=name, t=text: rival.write(window, n, t), clock)  # type: ignore[misc]
        except CannotRunError as error:
            how += f"; {error}"
        values["write"] = written.cpu_ms()
        values["rss"] = sum(map(rss_mb, tree(window.process.pid)))
    return values, f"{how}; {hits} of {len(queries)} queries found something"


def _cpu(command: list[str], home: Path, variables: Mapping[str, str]) -> float:
    with (home / "prepare.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=home, env={**os.environ, **variables}, stdout=log, stderr=log)
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


def _texts(most: int, asked: int) -> tuple[dict[str, str], list[str]]:
    """Take pages and link texts of the Kubernetes documentation where they are at hand, else this project's own."""
    if DATA.is_dir():
        pages, lines = _lines(DATA / "corpus.jsonl.gz"), _lines(DATA / "queries.jsonl.gz")
        chosen = sorted(pages, key=lambda page: len(page["text"]))[len(pages) // 3 :][:most]
        texts = {_name(page["_id"]): f"# {page['title']}\n\n{page['text']}" for page in chosen}
        return texts, [line["text"] for line in lines if line["metadata"]["kind"] == "anchor"][:asked]
    files = sorted((ROOT / "docs").glob("*.md"))[:most]
    texts = {file.name: file.read_text(encoding="utf-8") for file in files}
    headings = re.findall(r"^#+ (.+)$", "\n".join(texts.values()), re.MULTILINE)
    return texts, headings[:asked]


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]


def _name(identifier: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", identifier.lower().removesuffix(".md")).strip("-") + ".md"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 tasks.py bench peers", description=__doc__)
    parser.add_argument("--peers", default=",".join(RIVALS), help=f"by commas, of {', '.join(RIVALS)}; or none")
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--queries", type=int, default=40)
    scratch = Path(tempfile.gettempdir()) / "ragdocs-peers"
    parser.add_argument("--scratch", type=Path, default=scratch, help="where peers are installed, once")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
