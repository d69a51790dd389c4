"""Measures search, writes, start, memory and indexing against the project's goals."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from bench import _against, _corpora, _indexing, _many, _report, _searches, _servers
from bench._corpora import Corpus
from bench._measure import Row, table

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("search", "mcp", "writes", "start", "indexing", "encoding", "many")
# The lane that is written to: the goal speaks of ten thousand chunks.
MOST_MEMORIES = 10_000


def main() -> None:
    options = _options()
    chosen = PARTS if options.only is None else tuple(options.only.split(","))
    if unknown := set(chosen) - set(PARTS):
        sys.exit(f"--only knows {', '.join(PARTS)}; not {', '.join(unknown)}")
    with tempfile.TemporaryDirectory(prefix="ragdocs-bench-") as scratch:
        work = (options.work or Path(scratch)).resolve()
        _corpora.enter(work)
        if options.against:
            print(_compared(options, Path(scratch), chosen))
            return
        rows: list[Row] = []
        for row in measure(options, chosen, work):
            rows.append(row)
            print(_progress(row), file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        print(table(rows))
        print(_report.growth(rows))
    if options.write:
        _write(rows)


def measure(options: argparse.Namespace, chosen: tuple[str, ...], work: Path) -> Iterator[Row]:
    """Yield every row, corpus by corpus."""
    real = _corpora.copy(work, options.corpus)
    for size in _sizes(options):
        corpus = _corpora.generate(work, "docs", size)
        yield from _on(corpus, chosen, options.repeats)
        if size <= MOST_MEMORIES and {"search", "writes"} & {*chosen}:
            memories = _corpora.generate(work, "memory", size)
            if "search" in chosen:
                yield from _searches.linked(memories, options.repeats)
                yield from _searches.translated(work, size, options.repeats)
            if "writes" in chosen:
                yield from _searches.writing(work, memories, options.repeats)
                if "mcp" in chosen:
                    yield from _servers.seen_elsewhere(memories)
        if "indexing" in chosen:
            yield from _indexing.without_vectors(corpus)
            if "start" in chosen:
                yield from _indexing.first_answer(work, corpus, _servers.command)
    yield from _on(real, tuple(part for part in chosen if part != "start"), options.repeats)
    if "indexing" in chosen:
        yield from _indexing.without_vectors(real)
        yield from _indexing.nothing_twice(work, real)
    if "encoding" in chosen:
        yield from _indexing.encoding(real, options.repeats)
        yield from _indexing.resting(real)


def _compared(options: argparse.Namespace, work: Path, chosen: tuple[str, ...]) -> str:
    """Measure the other source and this one in turn."""
    lines = []
    for line in _against.compare(work, options.against, _sizes(options), chosen):
        lines.append(line)
        progress = f"{line.what:24} {line.passages:7,} {line.old:9.3f} {line.new:9.3f} {line.unit}"
        print(progress, file=sys.stderr, flush=True)
    return _against.table(lines)


def _sizes(options: argparse.Namespace) -> list[int]:
    return sorted({int(size) for size in options.sizes.split(",")})


def _on(corpus: Corpus, chosen: tuple[str, ...], repeats: int) -> Iterator[Row]:
    if "search" in chosen:
        yield from _searches.searching(corpus, repeats)
    if "mcp" in chosen:
        yield from _servers.over_mcp(corpus, repeats)
    if "start" in chosen:
        yield from _servers.starting(corpus)
    if "many" in chosen and corpus.name == "generated":
        yield from _many.windows(corpus, repeats)
        yield from _many.while_indexing(corpus, repeats)


def _progress(row: Row) -> str:
    return (
        f"{row.part:9} {row.name:36} {row.corpus:10} {row.chunks:7,} {row.value:10.3f} {row.unit}"
    )


def _write(rows: list[Row]) -> None:
    """Put the result into docs/internals/performance.md, with the command that made it."""
    asked = shlex.join(
        argument for argument in sys.argv[1:] if argument not in ("--write", "--json")
    )
    missed = [
        f"- {r.part}: {r.name} at {r.chunks:,} chunks: {r.value:.3g} {r.unit}, goal {r.goal}"
        for r in rows
        if r.met is False
    ]
    blocks = [
        f"`python3 tasks.py bench speed {asked}`",
        table(rows),
        f"Growth:\n\n{_report.growth(rows)}",
        "Missed in this run:\n\n" + ("\n".join(missed) or "- nothing"),
    ]
    _report.replace_block(
        ROOT / "docs" / "internals" / "performance.md", "speed", "\n\n".join(blocks)
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 tasks.py bench speed", description=__doc__)
    parser.add_argument(
        "--sizes",
        default="1000,10000",
        help="chunks of the generated corpora (100000 takes minutes)",
    )
    parser.add_argument(
        "--corpus",
        type=Path,
        default=ROOT / "docs",
        help="a real folder of Markdown to measure too",
    )
    parser.add_argument("--only", help=f"some parts, by commas: {','.join(PARTS)}")
    parser.add_argument("--repeats", type=int, default=60, help="queries, writes and texts a row")
    parser.add_argument(
        "--work", type=Path, help="keep corpora and indexes here, and use those that are there"
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="PATH",
        help="compare with the source of another checkout, side by side, and measure nothing else",
    )
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    parser.add_argument(
        "--write", action="store_true", help="put the table into docs/internals/performance.md"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
