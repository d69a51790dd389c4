"""The two engines alone: keyword scoring against Whoosh's own, and vectors against exact search."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from bench._corpora import Corpus, StandIn
from bench._measure import Row, Sample, at_least, at_most, each

from ragdocs.engines.local.postings import KeywordTable, best
from ragdocs.search.bm25 import BOOSTS, K1, B
from ragdocs.text.terms import STOP_TERMS, terms

CANDIDATES = 50
TOP = 10
# Whoosh takes a hundred times as long: fewer of its searches tell enough.
WHOOSH_SHARE = 0.25
# Passages on which the rankings are compared field for field.
COMPARED = 1_000


def matching(table: KeywordTable, query: str, alive: np.ndarray) -> list[tuple[int, float]]:
    """Return the best rows with their scores."""
    scores = table.score(query, alive).values
    rows = best(scores, CANDIDATES, [alive])
    return list(zip(rows.tolist(), scores[rows].tolist(), strict=True))


def keywords(corpus: Corpus, repeats: int) -> list[Row]:
    """Score the same queries with numpy and with Whoosh over the same postings."""
    index = corpus.place.index
    alive = index._catalog.alive  # noqa: SLF001 - the engine alone is measured, without the lock and filter around it
    table: KeywordTable = index._keywords  # noqa: SLF001
    queries = corpus.queries(repeats)
    fresh = KeywordTable(table.dump())

    def ask(query: str) -> list[tuple[int, float]]:
        return matching(fresh, query, alive)

    cold = each(ask, queries)
    warm = each(ask, queries)
    compared = queries[: max(3, int(len(queries) * WHOOSH_SHARE))]
    whoosh, overlap, order = _whoosh(table, compared, [ask(query) for query in compared])
    again = each(ask, compared)
    ratio = whoosh.cpu_ms() / again.cpu_ms()
    goal = 1.0 if corpus.chunks <= 15_000 else 3.0
    # The ratio is asked for at ten thousand chunks and more; below, both take next to nothing.
    faster = at_least(100, ratio, "x") if corpus.chunks >= 5_000 else {"value": ratio, "unit": "x"}
    common = ("keywords", corpus.name, corpus.chunks)
    return [
        _row(
            common, "match, warm, cpu p50", **at_most(goal, warm.cpu_ms(), "ms"), note=warm.note()
        ),
        _row(
            common, "match, first time, cpu p50", value=cold.cpu_ms(), unit="ms", note=cold.note()
        ),
        _row(
            common,
            "Whoosh's own BM25F, cpu p50",
            value=whoosh.cpu_ms(),
            unit="ms",
            note=whoosh.note(),
        ),
        _row(common, "Whoosh's own / match", **faster),
        _row(
            common,
            "same top 10 as Whoosh, all fields",
            value=overlap,
            unit="of 1",
            note=f"same order {order:.2f}",
        ),
        *_body_only(corpus, compared),
    ]


def _body_only(corpus: Corpus, queries: Sequence[str]) -> list[Row]:
    """Compare the rankings where both formulas mean the same.

    One field, so nothing is weighed against another.
    """
    index = corpus.place.index
    keys = [key for document in index.documents() for key in index.chunks(document.id)][:COMPARED]
    table = KeywordTable()
    table.write({"body": chunk.text} for _, chunk in index.load(keys))
    table.adopt(range(len(keys)))
    alive = np.ones(len(keys), dtype=np.bool_)
    ours = [matching(table, query, alive) for query in queries]
    _, overlap, order = _whoosh(table, queries, ours)
    common = ("keywords", corpus.name, corpus.chunks)
    note = f"same order {order:.2f}, first {len(keys):,} chunks"
    return [_row(common, "same top 10 as Whoosh, body only", value=overlap, unit="of 1", note=note)]


def _whoosh(
    table: KeywordTable, queries: Sequence[str], ours: Sequence[Sequence[tuple[int, float]]]
) -> tuple[Sample, float, float]:
    from whoosh.filedb.filestore import RamStorage
    from whoosh.query import Or, Term
    from whoosh.scoring import BM25F

    sample, overlaps, orders = Sample(), [], []
    # The very same files, in the storage that Whoosh itself has for memory.
    storage = RamStorage()
    storage.files = table.dump()
    with storage.open_index().searcher(weighting=BM25F(B=B, K1=K1)) as searcher:
        rows = searcher.reader().column_reader("row")
        for query, found in zip(queries, ours, strict=True):
            words = [term for term in dict.fromkeys(terms(query)) if term not in STOP_TERMS]
            asked = Or(
                [
                    Term(field, word, boost=boost)
                    for word in words
                    for field, boost in BOOSTS.items()
                ]
            )
            results: Any = sample.take(partial(searcher.search, asked, limit=CANDIDATES))
            theirs = [int(rows[hit.docnum]) for hit in results][:TOP]
            mine = [row for row, _ in found][:TOP]
            shared = [theirs.index(row) for row in mine if row in theirs]
            overlaps.append(len(shared) / max(1, len(theirs)))
            orders.append(_in_order(shared))
    return sample, float(np.mean(overlaps)), float(np.mean(orders))


def _in_order(positions: Sequence[int]) -> float:
    """Return the share of neighbours that stand in the same order."""
    steps = [one < other for one, other in pairwise(positions)]
    return sum(steps) / len(steps) if steps else 1.0


def vectors(corpus: Corpus, repeats: int) -> list[Row]:
    """Ask for the nearest vectors, and compare with an exact search over all of them."""
    index = corpus.place.index
    table = index._table()  # noqa: SLF001 - the engine alone
    mask = index._catalog.alive.copy()  # noqa: SLF001
    queries = StandIn().encode(corpus.queries(repeats, seed=6))
    rows = np.flatnonzero(mask).tolist()
    matrix = table.get(rows)

    def ask(query: Any) -> list[tuple[int, float]]:
        rows, scores = table.nearest(query, CANDIDATES, mask)
        return list(zip(rows.tolist(), scores.tolist(), strict=True))

    each(ask, queries[:3])
    sample = each(ask, queries)
    exact = [{rows[i] for i in np.argsort(-(matrix @ query))[:TOP]} for query in queries]
    found = [{row for row, _ in ask(query)[:TOP]} for query in queries]
    recall = float(np.mean([len(a & b) / len(a) for a, b in zip(exact, found, strict=True)]))
    few = mask.copy()
    few[np.arange(len(few)) % 100 != 0] = False
    filtered = each(lambda query: table.nearest(query, CANDIDATES, few), queries)
    common = ("vectors", corpus.name, corpus.chunks)
    return [
        _row(common, "nearest, cpu p50", **at_most(5, sample.cpu_ms(), "ms"), note=sample.note()),
        _row(common, "recall at 10 against exact", **at_least(0.98, recall, "of 1")),
        _row(
            common,
            "nearest among 1 %, cpu p50",
            value=filtered.cpu_ms(),
            unit="ms",
            note=filtered.note(),
        ),
    ]


def _row(common: tuple[str, str, int], name: str, **values: Any) -> Row:
    part, corpus, chunks = common
    return Row(part, name, corpus, chunks, **values)
