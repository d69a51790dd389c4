"""What our ranking is compared with.

Each leg alone, two usual ways to join them, and other keyword engines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from bench._labelled import Item
from bench._projects import Project

from ragdocs.types import Filter

# Chunks asked of a leg: as many as a search for fifty results asks.
DEPTH = 250
# The constant of reciprocal rank fusion that everybody uses.
RRF_K = 60
# Documents of another engine that are joined with ours.
PLAIN_DEPTH = 100
INSTALL = "python -m pip install bm25s PyStemmer tantivy"

Ranked = list[str]
Scored = Sequence[tuple[int, float]]


def legs(project: Project, question: Item) -> tuple[Scored, Scored]:
    """Return what the keyword index and the vector index say to a question, best first."""
    index = project.corpus.index
    where = Filter(prefix=project.prefix(question))
    assert project.corpus.encoder is not None
    vector = project.corpus.encoder.encode([question.text])[0]
    return index.match(question.text, DEPTH, where), index.nearest(vector, DEPTH, where)


def pooled(project: Project, scored: Scored) -> dict[str, float]:
    """Map documents to the score of their best chunk, best first."""
    best: dict[str, float] = {}
    loaded = project.corpus.index.load([key for key, _ in scored])
    for (owner, _), (_, score) in zip(loaded, scored, strict=True):
        best.setdefault(project.ids[owner.path], score)
    return best


def rrf(legs_: Iterable[Mapping[str, float]]) -> Ranked:
    """Join rankings by their ranks alone."""
    total: dict[str, float] = {}
    for leg in legs_:
        for rank, id_ in enumerate(leg, start=1):
            total[id_] = total.get(id_, 0.0) + 1 / (RRF_K + rank)
    return _sorted(total)


def min_max(keyword: Mapping[str, float], vector: Mapping[str, float]) -> Ranked:
    """Join scores that were stretched from 0 to 1 within each leg.

    0.7 of meaning and 0.3 of words.
    """
    total: dict[str, float] = {}
    for leg, weight in ((vector, 0.7), (keyword, 0.3)):
        least, most = min(leg.values(), default=0.0), max(leg.values(), default=1.0)
        for id_, score in leg.items():
            total[id_] = total.get(id_, 0.0) + weight * (score - least) / ((most - least) or 1.0)
    return _sorted(total)


def _sorted(total: Mapping[str, float]) -> Ranked:
    return sorted(total, key=lambda id_: (-total[id_], id_))


def rivals(project: Project) -> Iterator[tuple[str, Callable[[Item], Ranked]]]:
    """Yield other keyword engines over the very passages of our index, where they are installed."""
    keys = [
        key
        for document in project.corpus.index.documents()
        for key in project.corpus.index.chunks(document.id)
    ]
    loaded = project.corpus.index.load(keys)
    texts = [f"{card.title}\n{' '.join(piece.headings)}\n{piece.text}" for card, piece in loaded]
    names = [project.ids[card.path] for card, _ in loaded]
    groups = [card.path.partition("/")[0] for card, _ in loaded]
    for name, needs, make in (
        ("bm25s", ("bm25s", "Stemmer"), _bm25s),
        ("tantivy", ("tantivy",), _tantivy),
    ):
        if all(find_spec(package) for package in needs):
            yield name, partial(_first, make(texts), names, groups)


def _first(
    ask: Callable[[str], Iterable[int]], names: Sequence[str], groups: Sequence[str], question: Item
) -> Ranked:
    found: dict[str, None] = {}
    for row in ask(question.text):
        if not question.group or groups[row] == question.group:
            found.setdefault(names[row])
        if len(found) == PLAIN_DEPTH:
            break
    return list(found)


def _bm25s(texts: Sequence[str]) -> Callable[[str], Iterable[int]]:
    # Imported by name: neither is among our requirements.
    bm25s, stemmers = import_module("bm25s"), import_module("Stemmer")

    def tokens(some: Sequence[str]) -> Any:
        # The stemmer keeps state: a new one for each call costs nothing.
        stemmer = stemmers.Stemmer("english")
        return bm25s.tokenize(
            list(some), stopwords="en", stemmer=stemmer, show_progress=False, return_ids=False
        )

    engine = bm25s.BM25()
    engine.index(tokens(texts), show_progress=False)

    def ask(text: str) -> Iterable[int]:
        words = tokens([text])[0]
        scores = engine.get_scores(words) if words else np.zeros(len(texts))
        order = np.argsort(-scores, kind="stable")
        return [int(row) for row in order if scores[row] > 0]

    return ask


def _tantivy(texts: Sequence[str]) -> Callable[[str], Iterable[int]]:
    tantivy = import_module("tantivy")
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", tokenizer_name="en_stem")
    builder.add_unsigned_field("row", stored=True, indexed=True)
    index = tantivy.Index(builder.build())
    writer = index.writer()
    for row, text in enumerate(texts):
        document = tantivy.Document(text=text)
        document.add_unsigned("row", row)
        writer.add_document(document)
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def ask(text: str) -> Iterable[int]:
        # Only letters and digits: what is left of its query language.
        words = "".join(letter if letter.isalnum() else " " for letter in text).lower()
        if not words.strip():
            return []
        hits = searcher.search(index.parse_query(words, ["text"]), len(texts)).hits
        return (searcher.doc(address)["row"][0] for _, address in hits)

    return ask
