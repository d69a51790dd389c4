"""The candidates of a search: the best passages by words and by meaning, with their measures."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ragdocs.engines.local.catalog import Catalog, Slots
from ragdocs.engines.local.rows import Floats as RowScores
from ragdocs.engines.local.rows import Mask, Rows, Siblings, side_by_side
from ragdocs.protocols import Candidates, Floats, ProbeVector, SignalName, Vectors
from ragdocs.system.turns import RankingTurn

if TYPE_CHECKING:
    from ragdocs.engines.local.postings import KeywordTable, Scored
    from ragdocs.engines.local.vectors import VectorTable


class Sources(NamedTuple):
    """The tables of an index; words and vectors are opened when they are first needed."""

    catalog: Catalog
    keywords: Callable[[], KeywordTable]
    table: Callable[[], VectorTable]
    turn: RankingTurn


def find(
    sources: Sources,
    probes: Sequence[ProbeVector],
    slots: Sequence[Slots],
    k: int,
    also: Collection[str],
) -> Candidates:
    """Find the k best passages of each choice of slots, and all others of their documents."""
    catalog = sources.catalog
    masks = [catalog.arrays.mask(chosen) for chosen in slots]
    started = time.perf_counter()
    # FAISS lets other threads run; what follows would wake them all the time. So whoever has
    # candidates takes the turn to rank them, up to the end of the snapshot.
    nearest = _by_vector(sources, probes, masks, k)
    searched_vectors = time.perf_counter()
    sources.turn.take()
    began_words = time.perf_counter()
    scored, rows_found = _by_words(sources, probes, masks, k)
    searched_words = time.perf_counter()
    rows_found |= nearest
    family = _family(catalog, rows_found.values(), also)
    columns = {}
    for signal, rows in rows_found.items():
        columns[signal] = np.searchsorted(family.rows, rows).tolist()
    term_counts = {}
    for name, words in scored.items():
        term_counts[name] = words.terms
    return Candidates(
        keys=family.rows.tolist(),
        starts=family.starts,
        documents=catalog.owners(family.rows[family.starts]),
        raw=_measured(sources, probes, scored, family.rows),
        found=columns,
        term_counts=term_counts,
        lone_share=catalog.arrays.lone_share(),
        seconds={
            "words": searched_words - began_words,
            "meaning": searched_vectors - started,
        },
    )


def _by_words(
    sources: Sources, probes: Sequence[ProbeVector], masks: Sequence[Mask], k: int
) -> tuple[dict[str, Scored], dict[SignalName, Rows]]:
    """Score all rows for each probe that has words, and choose the best."""
    from ragdocs.engines.local.postings import best

    catalog = sources.catalog
    scored: dict[str, Scored] = {}
    best_rows: dict[SignalName, Rows] = {}
    for probe in probes:
        if probe.text:
            words = sources.keywords().score(probe.text, catalog.arrays.alive, probe.languages)
            scored[probe.name] = words
            best_first = partial(_best_first, catalog)
            best_rows[probe.name, "keyword"] = best(words.values, k, masks, best_first)
    return scored, best_rows


def _by_vector(
    sources: Sources, probes: Sequence[ProbeVector], masks: Sequence[Mask], k: int
) -> dict[SignalName, Rows]:
    """Choose the rows that are nearest to each probe that has a vector."""
    best_rows: dict[SignalName, Rows] = {}
    for probe in probes:
        if probe.vector is not None:
            best_rows[probe.name, "vector"] = _nearest(sources, probe.vector, masks, k)
    return best_rows


def _nearest(sources: Sources, vector: Vectors, masks: Sequence[Mask], k: int) -> Rows:
    table = sources.table()
    best_first = partial(_best_first, sources.catalog)
    all_rows = []
    all_scores = []
    for mask in masks:
        rows, scores = table.nearest(vector, k, mask, best_first)
        all_rows.append(rows)
        all_scores.append(scores)
    if len(all_rows) == 1:
        return all_rows[0]
    # A row that passes several filters has the same score under each.
    distinct, first = np.unique(np.concatenate(all_rows), return_index=True)
    return distinct[best_first(distinct, np.concatenate(all_scores)[first])]


def _best_first(catalog: Catalog, rows: Rows, scores: RowScores) -> Rows:
    """Return the permutation that puts the highest scores first, equal ones by path and row.

    The rows of a document are in the order of its text.
    """
    order: Rows = np.argsort(-scores)
    ordered = scores[order]
    if not (ordered[1:] == ordered[:-1]).any():
        return order
    # Two stable sorts: by path, which keeps the order of rows, and then by score.
    paths = [document.path for document in catalog.owners(rows)]
    by_path = sorted(np.argsort(rows).tolist(), key=paths.__getitem__)
    order = np.array(by_path, dtype=np.int64)
    return order[np.argsort(-scores[order], kind="stable")]


def _family(catalog: Catalog, hits: Iterable[Rows], also: Collection[str]) -> Siblings:
    """Return all rows of the documents that were found or are measured anyway."""
    parts = [np.empty(0, dtype=np.int64), *hits]
    for document_id in also:
        parts.append(np.array(catalog.rows(document_id), dtype=np.int64))
    return side_by_side(catalog.families(np.concatenate(parts)))


def _measured(
    sources: Sources, probes: Sequence[ProbeVector], scored: Mapping[str, Scored], rows: Rows
) -> dict[SignalName, Floats]:
    """Return what each source measures in these rows, words before vectors."""
    raw: dict[SignalName, Floats] = {}
    for name, words in scored.items():
        raw[name, "keyword"] = words.values[rows].astype(np.float64)
    for probe in probes:
        if probe.vector is not None:
            products = sources.table().products(probe.vector, rows)
            raw[probe.name, "vector"] = products.astype(np.float64)
    return raw
