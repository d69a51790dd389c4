"""Measures the journal beside plain `git commit` and beside memories with the same texts.

In one run.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from bench import _corpora
from bench._corpora import StandIn, Writer
from bench._measure import Row, Sample, each, table

from ragdocs import config
from ragdocs.verbs.journal import NewEntry, Reads
from ragdocs.workspace import Workspace

SECTIONS = 50
CONTEXTS = (
    "debugging the client",
    "designing the interface",
    "planning a release",
    "reviewing a change",
)
# Entries end now and begin so many days ago.
DAYS = 400


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory(prefix="ragdocs-journal-") as scratch:
        work = (options.work or Path(scratch)).resolve()
        _corpora.enter(work)
        texts = _texts(options.entries)
        workspace = _filled(work / "project", texts)
        rows = [
            *_indexing(workspace, options.entries),
            *_searching(workspace, texts, options.repeats),
        ]
        rows += [*_reading(workspace, options), *_writing(workspace, work, options)]
    print(json.dumps([asdict(row) for row in rows], indent=1) if options.json else table(rows))


def clock() -> float:
    """Return the processor seconds of this process and of every git that it has waited for."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in spent)


def _indexing(workspace: Workspace, entries: int) -> Iterator[Row]:
    """Index the same texts from commits and from files, with vectors that cost nothing."""
    spent = {}
    for lane in ("journal", "memory"):
        corpus = workspace.places[lane].corpus
        cpu, wall = clock(), time.perf_counter()
        corpus.sync()
        spent[lane] = (clock() - cpu, time.perf_counter() - wall)
        yield _row(
            "index",
            f"first index, {lane}, cpu",
            entries,
            spent[lane][0] * 1000,
            f"wall {spent[lane][1]:.2f} s",
        )
        corpus.embed()
    yield _ratio(
        "index", "first index, journal to memory", entries, spent["journal"][0], spent["memory"][0]
    )
    again = each(lambda _: workspace.places["journal"].corpus.sync(), range(5), clock)
    yield _row("index", "nothing new, cpu p50", entries, again.cpu_ms(), again.note())


def _searching(workspace: Workspace, texts: list[str], repeats: int) -> Iterator[Row]:
    """Search both lanes for pieces of what is there, turn by turn."""
    queries = [
        " ".join(re.findall(r"[a-z]{2,}", text)[3:9])
        for text in texts[:: max(1, len(texts) // repeats)]
    ]
    ways: dict[str, Callable[[str], Any]] = {
        "journal_search": lambda query: workspace.journal.search(CONTEXTS[0], query),
        "journal_search, all that match": lambda query: workspace.journal.search(
            CONTEXTS[0], query, 0.0
        ),
        "search_memories": lambda query: workspace.memories.search(query, 20),
    }
    samples = {name: Sample() for name in ways}
    for way in ways.values():
        each(way, queries[:10])
    for query in queries:
        for name, way in ways.items():
            samples[name].take(partial(way, query))
    for name, sample in samples.items():
        yield _row("search", f"{name}, cpu p50", len(texts), sample.cpu_ms(), sample.note())
    cpu = {name: sample.cpu_ms() for name, sample in samples.items()}
    yield _ratio(
        "search", "journal to memory", len(texts), cpu["journal_search"], cpu["search_memories"]
    )


def _reading(workspace: Workspace, options: argparse.Namespace) -> Iterator[Row]:
    journal = workspace.journal
    sections = [f"area-{number % SECTIONS}/notes" for number in range(options.repeats)]
    for name, sample in {
        "journal_read": each(journal.read, sections, clock),
        "journal_toc": each(lambda _: journal.contents(depth=2), sections, clock),
        "journal_list_entries": each(journal.entries, sections, clock),
    }.items():
        yield _row("read", f"{name}, cpu p50", options.entries, sample.cpu_ms(), sample.note())


def _writing(workspace: Workspace, work: Path, options: argparse.Namespace) -> Iterator[Row]:
    """Write an entry, commit a line with plain git to a clone of the same repository.

    And create a memory, in turn.
    """
    root = workspace.config.root / "journal-data"
    clone = work / "clone"
    _git(work, "clone", "-q", str(root), str(clone))
    journal, memories = workspace.journal, workspace.memories
    reads: Reads = {}
    journal.read("area-1/notes", reads=reads)
    texts = [f"{text} {time.time_ns()}" for text in _texts(options.repeats, seed=99)]

    def commit(text: str, *settings: str) -> None:
        with (clone / "area-1" / "notes.md").open("a") as file:
            file.write("x\n")
        _git(clone, "add", "area-1/notes.md")
        _git(clone, *settings, "commit", "-q", "-m", text)

    ways: dict[str, Callable[[str], Any]] = {
        "journal_write": lambda text: journal.write(
            "area-1/notes", NewEntry(text, work_context=CONTEXTS[1]), reads
        ),
        "git add, git commit": commit,
        "the same, synced": lambda text: commit(text, "-c", "core.fsync=all"),
        "create_memory": lambda text: memories.create(f"w{time.time_ns()}.md", text, []),
    }
    samples = {name: Sample() for name in ways}
    for text in texts:
        for name, way in ways.items():
            samples[name].take(partial(way, text), clock)
    for name, sample in samples.items():
        yield _row(
            "write",
            f"{name}, wall p50",
            options.entries,
            sample.wall_ms(),
            f"cpu p50 {sample.cpu_ms():.1f}",
        )
    wall = {name: sample.wall_ms() for name, sample in samples.items()}
    for other in list(ways)[1:]:
        yield _ratio(
            "write",
            f"journal_write to {other}",
            options.entries,
            wall["journal_write"],
            wall[other],
        )


def _filled(root: Path, texts: list[str]) -> Workspace:
    """Write the same texts as commits and as memories, unless they are there."""
    place = root / "journal-data"
    if not place.exists():
        (root / ".memories").mkdir(parents=True)
        place.mkdir()
        _git(place, "init", "-q", "-b", "main")
        step = DAYS * 86_400 / len(texts)
        stream, counts = [], [0] * SECTIONS
        for number, text in enumerate(texts):
            counts[number % SECTIONS] += 1
            moment = int(time.time() - (len(texts) - number) * step)
            message = f"work_context: {CONTEXTS[number % len(CONTEXTS)]}\n\n{text}\n"
            (root / ".memories" / f"e{number}.md").write_text(message, encoding="utf-8")
            who = f"J <j@localhost> {moment} +0000"
            file = f"<!-- entry count: {counts[number % SECTIONS]} -->\n"
            stream += [f"commit refs/heads/main\nauthor {who}\ncommitter {who}\n{_data(message)}"]
            stream += [f"M 100644 inline area-{number % SECTIONS}/notes.md\n{_data(file)}"]
        _git(place, "fast-import", "--quiet", stdin="".join(stream).encode())
        _git(place, "reset", "-q", "--hard")
    flags = {"journal.enabled": True, "memory.enabled": True, "docs.enabled": False}
    workspace = Workspace(config.load(root, project=root, flags=flags))
    workspace.encoder = StandIn()
    for one in workspace.places.values():
        one.corpus.encoder = workspace.encoder
    return workspace


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"


def _texts(count: int, seed: int = 7) -> list[str]:
    """Return some sentences for each entry, all of them different."""
    writer = Writer(seed=seed)
    texts = []
    for number in range(count):
        prose = re.sub(r"(?s)\A#.*?\n\n?", "", writer.document("docs", number, count)).split(
            "\n## "
        )[0]
        texts.append(f"{' '.join(prose.split()[: 30 + number % 60])} ({number})")
    return texts


def _git(root: Path, *words: str, stdin: bytes = b"") -> None:
    who = ("-c", "user.name=P", "-c", "user.email=p@localhost", "-c", "gc.auto=0")
    subprocess.run(
        ["git", "-C", str(root), *who, *words], input=stdin, check=True, capture_output=True
    )


def _row(part: str, name: str, entries: int, value: float, note: str = "") -> Row:
    return Row(part, name, "generated", entries, value, "ms", note=note)


def _ratio(part: str, name: str, entries: int, value: float, other: float) -> Row:
    return Row(part, name, "generated", entries, value / other if other else float("nan"), "x")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--entries", type=int, default=10_000, help="how many there are (default: 10000)"
    )
    parser.add_argument(
        "--repeats", type=int, default=50, help="how often each is measured (default: 50)"
    )
    parser.add_argument(
        "--work", type=Path, help="where to keep the generated project for the next run"
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    main()
