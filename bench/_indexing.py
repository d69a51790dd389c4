"""Indexing: files without vectors, the encoder against full precision, nothing done twice."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench._corpora import Corpus, StandIn
from bench._full_precision import FullPrecision
from bench._measure import Row, Sample, cost, each, figure
from tests.faults.processes import rss_mb

from ragdocs import config
from ragdocs.search.chunk import passage
from ragdocs.search.encoders.cache import CachedEncoder
from ragdocs.search.encoders.minilm import OnnxEncoder
from ragdocs.workspace import Workspace

# Rounds in which the encoder and the raw pass take turns on the same texts.
ROUNDS = 3
# Chunks below which what is done once, such as stemming common words, outweighs the rest.
FEWEST = 5_000


def without_vectors(corpus: Corpus) -> list[Row]:
    """Tell how fast files became findable by words when the corpus was built."""
    made, cpu = corpus.built["files"], corpus.built["cpu"]
    if not made:
        return []
    each_ms = cpu / corpus.chunks * 1000
    note = f"{made:.0f} files in {cpu:.1f} s cpu, {made / cpu:.0f} files/cpu s"
    most = None if corpus.chunks < FEWEST else 0.4
    return [figure("indexing", "words, a chunk", corpus, each_ms, "ms cpu", most=most, note=note)]


def encoding(corpus: Corpus, texts: int) -> list[Row]:
    """Encode passages and queries by the encoder and by the same model in full precision, in turns."""
    every = corpus.passages()
    chosen = every[:: max(1, len(every) // texts)][:texts]
    passages = [passage(d.title, c.headings, c.text) for d, c in chosen]
    queries = corpus.queries(texts, seed=13)
    encoder, bare = OnnxEncoder(), FullPrecision()
    for loaded in (encoder, bare):
        loaded.encode(passages[:1])
    ours, raw = Sample(), Sample()
    for _ in range(ROUNDS):
        ours.take(lambda: encoder.encode(passages))
        raw.take(lambda: bare.encode(passages))
    asked = each(lambda query: encoder.encode([query]), queries)
    alone = each(lambda query: bare.encode([query]), queries)
    rate, limit = len(passages) / min(ours.cpu), len(passages) / min(raw.cpu)
    wall = f"{len(passages) / min(ours.wall):.1f} a second"
    ratio = asked.cpu_ms() / alone.cpu_ms()
    return [
        figure("indexing", "encoder, passages", corpus, rate, "/cpu s", note=wall),
        figure("indexing", "full precision, one text a run", corpus, limit, "/cpu s"),
        figure("indexing", "encoder / full precision", corpus, rate / limit, "x", least=1.4),
        cost("indexing", "encoder, one query", corpus, asked),
        figure("indexing", "query / full precision", corpus, ratio, "x", most=0.8),
    ]


def resting(corpus: Corpus) -> list[Row]:
    """Let the model go as a server does that nobody asks, and ask again."""
    queries = corpus.queries(2, seed=17)
    encoder = OnnxEncoder()
    encoder.encode(queries[:1])
    loaded = rss_mb(os.getpid())
    encoder.rest(0)
    given_back = loaded - rss_mb(os.getpid())
    back = Sample()
    for _ in range(ROUNDS):
        encoder.rest(0)
        back.take(lambda: encoder.encode(queries[1:]))
    return [
        figure("memory", "model, given back after ten idle minutes", corpus, given_back, "MB RSS"),
        figure("start", "model, back with a query", corpus, min(back.cpu), "s cpu", most=0.3),
    ]


def nothing_twice(work: Path, source: Corpus) -> list[Row]:
    """Count the texts that are encoded when nothing changed and when files moved."""
    root = work / "twice"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(source.root, root, ignore=shutil.ignore_patterns("server.log"))
    cache = work / "twice.sqlite"
    for file in work.glob("twice.sqlite*"):
        file.unlink()
    docs = root / "docs"
    first = _embed(root, cache)
    rebuilt = _embed(root, cache)
    moved = docs / "moved"
    moved.mkdir()
    # A title that is taken from the file's name would change with it.
    for file in sorted(docs.glob("*.md")):
        if "\n# " in "\n" + file.read_text(encoding="utf-8"):
            file.rename(moved / file.name)
    after_move = _embed(root, cache)
    name = f"{len(list(moved.iterdir()))} files moved, texts encoded"
    rebuild = "rebuild of the same, texts encoded"
    return [
        figure("indexing", "first build, texts encoded", source, first, "texts"),
        figure("indexing", rebuild, source, rebuilt, "texts", most=0),
        figure("indexing", name, source, after_move, "texts", most=0),
    ]


def _embed(root: Path, cache: Path) -> int:
    """Index a project from its files and the vector cache; count the texts encoded."""
    workspace = Workspace(config.load(root, project=root))
    open_lane = workspace.open_lanes["docs"]
    encoder = CachedEncoder(StandIn(), cache)
    open_lane.corpus.encoder = encoder
    open_lane.corpus.sync()
    open_lane.corpus.embed()
    return encoder.encoded


def first_answer(
    work: Path, source: Corpus, window: Callable[[Corpus], Sequence[str]]
) -> list[Row]:
    """Start on a copy that has no index at all and wait for the first answer by words."""
    from bench._window import Window

    root = work / "fresh"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(source.root, root, ignore=shutil.ignore_patterns("server.log", "indices"))
    fresh = Corpus(source.name, root, source.workspace, source.open_lane, {})
    with Window(window(fresh), root) as client:
        client.greet()
        query = source.queries(1)[0]
        asked = time.perf_counter()
        found: list[Any] = []
        while not found and time.perf_counter() - asked < 120:
            answer = client.call("search_docs", query=query)
            found = answer.get("structuredContent", {}).get("result", [])
        took = time.perf_counter() - asked
    most = 2 if source.chunks <= 15_000 else 15
    name = "no index yet → first hits"
    return [figure("indexing", name, source, took, "s", most=most, note="over MCP")]
