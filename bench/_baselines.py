"""What our ranking is compared with: rankings joined by RRF, and an ordinary keyword engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from bench._corpora import WHOLE
from bench._labelled import Item
from bench._projects import Project

# The constant of reciprocal rank fusion that everybody uses.
RRF_K = 60
# Documents of another engine that are joined with ours.
PLAIN_DEPTH = 100
INSTALL = "python -m pip install bm25s PyStemmer"

Ranked = list[str]
# Cuts texts into lists of tokens.
Tokens = Callable[[Sequence[str]], Any]


def rrf(rankings: Iterable[Ranked]) -> Ranked:
    """Join rankings by their ranks alone."""
    total: dict[str, float] = {}
    for ranking in rankings:
        for rank, id_ in enumerate(ranking, start=1):
            total[id_] = total.get(id_, 0.0) + 1 / (RRF_K + rank)
    return sorted(total, key=lambda id_: (-total[id_], id_))


def bm25s(project: Project) -> Callable[[Item], Ranked] | None:
    """Return another keyword engine over the very passages of our index, where it is installed."""
    if not (find_spec("bm25s") and find_spec("Stemmer")):
        return None
    return keyword_engine(project, _english)


def keyword_engine(project: Project, tokens: Tokens) -> Callable[[Item], Ranked]:
    """Return another keyword engine over the very passages of our index."""
    texts, names, groups = [], [], []
    documents = project.corpus.documents()
    held = project.corpus.passages([document.id for document in documents], WHOLE)
    for document in documents:
        for chunk in held[document.id]:
            texts.append(f"{document.title}\n{' '.join(chunk.headings)}\n{chunk.text}")
            names.append(project.ids[document.path])
            groups.append(document.path.partition("/")[0])
    match = _matcher(texts, tokens)

    def ask(question: Item) -> Ranked:
        ranked: dict[str, None] = {}
        for row in match(question.text):
            if not question.group or groups[row] == question.group:
                ranked.setdefault(names[row])
            if len(ranked) == PLAIN_DEPTH:
                break
        return list(ranked)

    return ask


def _english(texts: Sequence[str]) -> Any:
    # Imported by name: neither is among our requirements.
    engines, stemmers = import_module("bm25s"), import_module("Stemmer")
    # The stemmer keeps state: a new one for each call costs nothing.
    stemmer = stemmers.Stemmer("english")
    return engines.tokenize(
        list(texts), stopwords="en", stemmer=stemmer, show_progress=False, return_ids=False
    )


def _matcher(texts: Sequence[str], tokens: Tokens) -> Callable[[str], Iterable[int]]:
    engine = import_module("bm25s").BM25()
    engine.index(tokens(texts), show_progress=False)

    def match(text: str) -> Iterable[int]:
        words = tokens([text])[0]
        scores = engine.get_scores(words) if words else np.zeros(len(texts))
        order = np.argsort(-scores, kind="stable")
        return [int(row) for row in order if scores[row] > 0]

    return match
