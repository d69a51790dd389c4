"""Opens and searches one large index on this machine: `python3 tasks.py bench scale`.

Passages are made up and go into the index itself, without files; their vectors are stand-ins. The
index is built and saved once, then opened by a new process, which is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from bench import _corpora
from bench._corpora import StandIn, Writer
from bench._measure import Row, figure, quantile, table
from tests.faults.processes import rss_mb

from ragdocs.engines.local.index import LocalIndex
from ragdocs.protocols import ProbeVector
from ragdocs.types import Chunk, Document, Filter, IndexedDocument

IN_A_DOCUMENT = 10
IN_A_STEP = 6_400
# Texts encoded in one step.
ENCODED = 6_400
QUERIES = 40
CANDIDATES = 50


@dataclass(frozen=True, slots=True)
class Size:
    """What a row names."""

    chunks: int
    name: str = "generated"


def main() -> None:
    options = _options()
    if options.opened:
        print(json.dumps(_measured(options.opened)))
        return
    with tempfile.TemporaryDirectory(prefix="ragdocs-bench-") as scratch:
        work = (options.work or Path(scratch)).resolve()
        _corpora.enter(work)
        directory = work / f"scale-{options.passages}"
        rows = []
        if not (directory / "current").exists():
            rows = _built(directory, options.passages, has_vectors=not options.words_only)
        command = [sys.executable, "-m", "bench.scale", "--opened", str(directory)]
        measured = json.loads(subprocess.check_output(command, text=True))
        print(table([*rows, *_rows(Size(options.passages), measured)]))


def _index(directory: Path) -> LocalIndex:
    return LocalIndex(
        directory,
        recipe="scale",
        encoder="stand-in",
        dim=StandIn.dim,
        key=b"bench",
        private=directory,
    )


def _built(directory: Path, passages: int, *, has_vectors: bool) -> list[Row]:
    index = _index(directory)
    writer = Writer()
    encoder = StandIn()
    cpu = time.process_time()
    batch: list[IndexedDocument] = []
    for number in range(passages // IN_A_DOCUMENT):
        batch.append(_entry(writer, number))
        if len(batch) * IN_A_DOCUMENT >= IN_A_STEP:
            index.apply(batch)
            batch = []
            print(f"{number * IN_A_DOCUMENT:,}", end="\r", file=sys.stderr, flush=True)
    index.apply(batch)
    words = time.process_time() - cpu
    while has_vectors:
        claimed = index.claim_missing(ENCODED)
        if not claimed:
            break
        digests = [chunk.digest for _, chunk in claimed]
        vectors = encoder.encode([chunk.text for _, chunk in claimed])
        index.fill(dict(zip(digests, vectors, strict=True)))
    start = time.perf_counter()
    index.save()
    saved = time.perf_counter() - start
    size = Size(passages)
    return [
        figure("scale", "words and catalog, a passage", size, words / passages * 1e3, "ms cpu"),
        figure("scale", "saving", size, saved, "s"),
    ]


def _entry(writer: Writer, number: int) -> IndexedDocument:
    own = writer.draw(60)
    name = f"page-{number:06}"
    document = Document(
        id=f"docs:{name}",
        lane="docs",
        path=f"{name}.md",
        title=" ".join(own[:3]),
        version=name,
    )
    chunks = []
    for position in range(IN_A_DOCUMENT):
        text = " ".join([*writer.draw(100), *own[position : position + 30]])
        digest = f"{number * IN_A_DOCUMENT + position:032x}"
        headings = (document.title,)
        identity = f"{document.id}#{position}"
        chunk = Chunk(
            id=identity,
            doc_id=document.id,
            headings=headings,
            text=text,
            start_line=position,
            end_line=position,
            digest=digest,
        )
        chunks.append(chunk)
    return IndexedDocument(document=document, chunks=tuple(chunks), stamp=name)


def _measured(directory: Path) -> dict[str, float]:
    """Open the index and search it, in a process of its own."""
    start, cpu = time.perf_counter(), time.process_time()
    index = _index(directory)
    if not index.open():
        raise RuntimeError("the index that was built cannot be opened")
    index.prepare()
    opened, opening = time.perf_counter() - start, time.process_time() - cpu
    after_opening = rss_mb(os.getpid())
    own_after_opening = _own_mb()
    writer = Writer(seed=5)
    encoder = StandIn()
    queries = [" ".join(writer.draw(6)) for _ in range(QUERIES)]
    vectors = encoder.encode(queries)
    has_vectors = bool(index.info().vectors)
    rounds: list[list[float]] = []
    for _ in range(3):
        seconds = []
        for query, vector in zip(queries, vectors, strict=True):
            probe = ProbeVector("query", query, np.asarray(vector) if has_vectors else None)
            cpu = time.process_time()
            with index.snapshot() as snapshot:
                candidates = snapshot.candidates([probe], [Filter()], CANDIDATES)
                snapshot.load(candidates.keys[:10], query.split())
            seconds.append(time.process_time() - cpu)
        rounds.append(seconds)
    first, *again = rounds
    warm = min(again, key=median)
    return {
        "opened": opened,
        "opening": opening,
        "rss opened": after_opening,
        "rss": rss_mb(os.getpid()),
        "own opened": own_after_opening,
        "own": _own_mb(),
        "new": median(first) * 1e3,
        "new p95": quantile(first, 0.95) * 1e3,
        "warm": median(warm) * 1e3,
        "warm p95": quantile(warm, 0.95) * 1e3,
        "vectors": index.info().vectors,
    }


def _own_mb() -> float:
    """Return the resident memory of this process that is no part of a file."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "RssAnon":
            return int(value.split()[0]) * 1024 / 1e6
    return float("nan")


def _rows(size: Size, took: dict[str, float]) -> list[Row]:
    note = f"{took['opening']:.1f} s cpu, {took['vectors']:,.0f} vectors"
    opened = f"{took['own opened']:,.0f} MB without files"
    searched = f"{took['own']:,.0f} MB without files"
    return [
        figure("scale", "opening", size, took["opened"], "s", most=5, note=note),
        figure("scale", "warm search, cpu p50", size, took["warm"], "ms", most=25),
        figure("scale", "warm search, cpu p95", size, took["warm p95"], "ms"),
        figure("scale", "new words, cpu p50", size, took["new"], "ms"),
        figure("scale", "new words, cpu p95", size, took["new p95"], "ms"),
        figure("scale", "memory, opened", size, took["rss opened"], "MB RSS", note=opened),
        figure(
            "scale",
            "memory, after searches",
            size,
            took["rss"],
            "MB RSS",
            most=1500,
            note=searched,
        ),
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 tasks.py bench scale", description=__doc__)
    parser.add_argument("--passages", type=int, default=1_000_000, help="how many are made")
    parser.add_argument("--words-only", action="store_true", help="leave vectors out")
    parser.add_argument("--work", type=Path, help="keep the index here, or use the one there")
    parser.add_argument("--opened", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
