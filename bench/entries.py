"""Measures the entries toolset on many entries.

Beside the figures that its document gives for its own machine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from bench import _corpora, _labelled
from bench._corpora import Corpus, Writer
from bench._measure import Row, Sample, each, table

from ragdocs.engines.local.index import LocalIndex
from ragdocs.lanes import MEMORY
from ragdocs.search.chunk import passage
from ragdocs.search.encoders.minilm import OnnxEncoder
from ragdocs.search.parse import parse
from ragdocs.system.names import own_id
from ragdocs.types import ENTRY_KINDS, Entry, Filter, Source
from ragdocs.verbs.memories.entry_rules import NewEntry, Wanted
from ragdocs.verbs.quality.measures import ndcg

# What the document claims for 10,000 entries, in milliseconds.
CLAIMED = {"vector": "4 p50", "keyword": "1", "hybrid": "4 p50, 4 p95"}
SENTENCE = "What was decided about the tokens of the session, and why?"


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory(prefix="ragdocs-entries-") as scratch:
        work = (options.work or Path(scratch)).resolve()
        _corpora.enter(work)
        corpus = _filled(work / f"entries-{options.entries}", options.entries)
        rows = [*_searching(corpus, options.repeats), *_engines(corpus, options.repeats)]
        rows += [*_adding(corpus, options.repeats), *_bulk(corpus)]
        rows += _model(options.repeats) if options.model else []
        rows += (
            _titles(options.data) if options.model and (options.data / "locomo").is_dir() else []
        )
    print(json.dumps([asdict(row) for row in rows], indent=1) if options.json else table(rows))
    sys.exit(any(row.met is False for row in rows))


def _searching(corpus: Corpus, repeats: int) -> Iterator[Row]:
    """Search in every mode, turn by turn.

    The encoding is the stand-in's and costs nothing worth mentioning.
    """
    verbs, queries = corpus.workspace.entries, corpus.queries(repeats, seed=6)
    ids = [
        own_id(document)
        for document in corpus.place.index.documents()[:: max(1, corpus.chunks // 200)]
    ]
    for entry_id in ids:  # as after some weeks of work
        verbs.get(entry_id, used=True)
    wanted = Wanted(kinds=("fact",), min_importance=5, min_confidence=0.5)
    ways: dict[str, Callable[[str], Any]] = {
        "vector": lambda query: verbs.search(query, "vector"),
        "keyword": lambda query: verbs.search(query, "keyword"),
        "hybrid": verbs.search,
        "hybrid, filtered": lambda query: verbs.search(query, wanted=wanted),
        "search_memories, for comparison": lambda query: corpus.workspace.memories.search(
            query, 10
        ),
        "memory_get": lambda _: verbs.get(ids[0]),
        "memory_stats": lambda _: verbs.stats(),
    }
    for way in ways.values():
        each(way, queries)
    samples = {name: Sample() for name in ways}
    for query in queries:
        for name, way in ways.items():
            samples[name].take(partial(way, query))
    for name, sample in samples.items():
        yield _row(f"{name}, cpu p50", corpus, sample, CLAIMED.get(name, ""))


def _engines(corpus: Corpus, repeats: int) -> Iterator[Row]:
    """Ask the engines alone, as the document did.

    And its keyword engine on the same entries and this machine.
    """
    index, queries = corpus.place.index, corpus.queries(repeats, seed=8)
    table = sqlite3.connect(":memory:")
    table.execute("CREATE VIRTUAL TABLE fts USING fts5(content)")
    with index.held():
        bodies = [
            piece.text
            for document in index.documents()
            for _, piece in index.load(index.chunks(document.id))
        ]
    table.executemany("INSERT INTO fts VALUES (?)", [(body,) for body in bodies])
    vectors = {
        query: corpus.workspace.encoder.encode([query])[0]
        for query in queries
        if corpus.workspace.encoder
    }
    asked = "SELECT rowid, rank FROM fts WHERE fts MATCH ? ORDER BY rank LIMIT 30"
    ways: dict[str, Callable[[str], Any]] = {
        "vector": lambda query: index.nearest(vectors[query], 30, Filter()),
        "keyword": lambda query: index.match(query, 30, Filter()),
        "SQLite FTS5, for comparison": lambda query: table.execute(
            asked, (" OR ".join(query.split()),)
        ).fetchall(),
    }
    for way in ways.values():
        each(way, queries)
    for name, way in ways.items():
        yield _row(
            f"{name}, engine alone, cpu p50", corpus, each(way, queries), CLAIMED.get(name, "")
        )


def _adding(corpus: Corpus, repeats: int) -> Iterator[Row]:
    """Add one entry at a time, durably, with its line in the daily log.

    Then the same ones again.
    """
    # A kept project has those of earlier runs.
    texts = [f"{text} {time.time_ns()}" for text in _texts(repeats, seed=99)]
    verbs = corpus.workspace.entries
    added = each(lambda text: verbs.add(NewEntry(content=text)), texts)
    again = each(lambda text: verbs.add(NewEntry(content=text)), texts)
    yield _row("memory_add, cpu p50", corpus, added)
    yield _row("memory_add of what is there, cpu p50", corpus, again)


def _bulk(corpus: Corpus) -> Iterator[Row]:
    """Index all entries anew from their files.

    And put them into an empty index in one step without reading files.
    """
    index = corpus.place.index
    scratch = LocalIndex(None, recipe="bench", encoder="none", dim=1)
    with index.held():
        pieces = [
            (document, index.load(index.chunks(document.id))) for document in index.documents()
        ]
    entries = [
        Entry(document, tuple(piece for _, piece in found), "bench") for document, found in pieces
    ]
    cpu, wall = time.process_time(), time.perf_counter()
    scratch.apply(entries)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    note = f"wall {wall / len(entries) * 1000:.3f} an entry; the document's is an INSERT without reading, parsing, syncing"
    each_ms = cpu / len(entries) * 1000
    yield Row(
        "entries",
        "put into the index, an entry, cpu",
        "generated",
        len(entries),
        each_ms,
        "ms",
        "0.04",
        None,
        note,
    )
    if 2 * corpus.built["files"] > len(entries):
        whole = corpus.built["cpu"] / corpus.built["files"] * 1000
        what = "read, parsed and indexed from files, an entry, cpu"
        yield Row(
            "entries",
            what,
            "generated",
            corpus.chunks,
            whole,
            "ms",
            "",
            None,
            "the first start on a full folder",
        )


def _model(repeats: int) -> Iterator[Row]:
    """Load the built-in model and encode one sentence at a time."""
    encoder, loading = OnnxEncoder(), Sample()
    loading.take(encoder.prepare)
    encoding = each(lambda number: encoder.encode([f"{SENTENCE} {number}"]), range(repeats))
    yield Row(
        "model", "load, cpu", "built-in", 1, loading.cpu_ms(), "ms", "1400", None, loading.note()
    )
    yield Row(
        "model",
        "one embedding, cpu p50",
        "built-in",
        1,
        encoding.cpu_ms(),
        "ms",
        "4.7",
        None,
        encoding.note(),
    )


def _row(name: str, corpus: Corpus, sample: Sample, claimed: str = "") -> Row:
    return Row(
        "entries",
        name,
        "generated",
        corpus.chunks,
        sample.cpu_ms(),
        "ms",
        claimed,
        None,
        sample.note(),
    )


def _titles(data: Path) -> Iterator[Row]:
    """Search short notes by meaning alone, embedded below different titles.

    A ranking that a file name can spoil.
    """
    labelled = _labelled.read(data / "locomo").sample(420, 150)
    encoder = OnnxEncoder()
    texts = [note.text for note in labelled.documents]
    asked = encoder.encode([question.text for question in labelled.questions])
    titles: dict[str, Callable[[str], str]] = {
        "the digest in the file's name": lambda text: (
            f"Mem {hashlib.sha256(text.encode()).hexdigest()[:12]}"
        ),
        "the first words": lambda text: parse(_source(text), MEMORY).document.title,
        "none": lambda text: text,
    }
    for name, title in titles.items():
        vectors = encoder.encode([passage(title(text), (), text) for text in texts])
        gains = []
        for question, vector in zip(labelled.questions, asked, strict=True):
            pool = labelled.pool(question)
            order = sorted(pool, key=lambda place, near=vectors @ vector: -near[place])  # type: ignore[misc]
            gains.append(
                ndcg(
                    [labelled.documents[place].id for place in order], labelled.grades[question.id]
                )
            )
        value = sum(gains) / len(gains)
        yield Row("titles", f"NDCG@10 by meaning, title: {name}", "locomo", len(texts), value, "")


def _source(text: str) -> Source:
    return Source("entries/mem_0123456789ab.md", text, "", "", len(text))


def _filled(root: Path, entries: int) -> Corpus:
    """Write a project whose entries look as `memory_add` leaves them, unless it is there.

    And index it.
    """
    folder = root / ".memories/entries"
    if not (root / "config.toml").exists():
        folder.mkdir(parents=True, exist_ok=True)
        for number, text in enumerate(_texts(entries, seed=7)):
            own = f"mem_{number:012x}"
            head = (
                f"type: {ENTRY_KINDS[number % len(ENTRY_KINDS)]}\nstatus: active\ntags: [area{number % 50}]\n"
                f"created_at: '2026-{number % 9 + 1:02}-{number % 28 + 1:02}T10:00:00Z'\nid: {own}\n"
                f"importance: {number % 10 + 1}\nconfidence: {(number % 11) / 10}\nsource: manual\n"
            )
            (folder / f"{own}.md").write_text(f"---\n{head}---\n\n{text}\n", encoding="utf-8")
        _corpora.configure(root, "memory")
    return _corpora.index(root.name, root, "memory")


def _texts(count: int, seed: int) -> list[str]:
    """Return a sentence or two for each entry, all of them different."""
    writer = Writer(seed=seed)
    texts = []
    for number in range(count):
        prose = re.sub(r"(?s)\A#.*?\n\n?", "", writer.document("docs", number, count)).split(
            "\n## "
        )[0]
        texts.append(f"{' '.join(prose.split()[: 15 + number % 30])} ({number})")
    return texts


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--entries", type=int, default=10_000, help="how many there are (default: 10000)"
    )
    parser.add_argument(
        "--repeats", type=int, default=50, help="how often each is measured (default: 50)"
    )
    parser.add_argument(
        "--no-model", dest="model", action="store_false", help="leave out what needs the model"
    )
    parser.add_argument(
        "--data", type=Path, default=_labelled.DATA, help="where the labelled sets are"
    )
    parser.add_argument(
        "--work", type=Path, help="where to keep the generated project for the next run"
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    main()
