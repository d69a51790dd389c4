"""The order of an answer: boosts, a cap for each document, and the cut, in this sequence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import prod

import numpy as np
import numpy.typing as npt

from ragdocs.lanes import Ranking
from ragdocs.protocols import Floats
from ragdocs.types import UNSAID_IMPORTANCE, Document, Query, Signal

# The most that importance (1 to 10, 5 is ordinary) and doubt change a score by: they order what is
# nearly equal. Importance drawn at random costs more than a point of nDCG@10 at 0.1.
IMPORTANCE_REACH = 0.05
DOUBT_REACH = 0.1
SECONDS_A_DAY = 86_400
# By how much an older text must be ahead, on the scale that is shown, to stay there whatever the
# age of a newer one, provided that it is better by words and by meaning.
CLEAR_GAP = 0.05
# Documents that the best one is compared with, itself among them.
COMPARED = 10
# What a newer text stays behind such an older one by.
BEHIND = 1e-9


@dataclass(frozen=True, slots=True)
class Chosen:
    """A candidate that is shown: its column, its score, and what boosts added to that."""

    column: int
    score: float
    signals: tuple[Signal, ...] = ()


def rank(
    scores: Floats,
    documents: Sequence[Document],
    query: Query,
    ranking: Ranking,
    now: datetime,
    measured: Floats | None = None,
) -> tuple[list[Chosen], int]:
    """Order candidates and cut to the limit; return also how many were cut off.

    A candidate has a score and a document; those of one document are in the order of its text.
    Boosts come before the cut. `measured` has a row for each source: recency lifts nothing over
    what is clearly better by all of them.
    """
    young = youngest(ranking, now)
    boosts: dict[int, dict[str, float]] = {}
    boosted = scores.copy()
    # The passages of a document follow one another, and it is the same for all of them.
    boosted_document = None
    factors: dict[str, float] = {}
    for column, document in enumerate(documents):
        if document is not boosted_document:
            boosted_document = document
            factors = _boosts(document, young, ranking, query)
        if factors:
            boosts[column] = dict(factors)
            boosted[column] *= prod(factors.values())
    if measured is not None:
        _hold_back(boosted, scores, measured, boosts)
    # The score that orders may pass 1.0, the one that is shown may not.
    visible_scores = np.minimum(boosted, 1.0)
    is_enough = _enough(visible_scores, documents, query, ranking, now).tolist()
    taken: dict[str, int] = {}
    chosen: list[Chosen] = []
    omitted = 0
    for column in best_first(boosted, documents):
        path = documents[column].path
        count = taken.get(path, 0)
        if count >= ranking.per_document or not is_enough[column]:
            continue
        taken[path] = count + 1
        if len(chosen) >= query.limit:
            omitted += 1
            continue
        signals = _explained(float(scores[column]), boosts.get(column, {}))
        chosen.append(Chosen(column, float(visible_scores[column]), signals))
    return chosen, omitted


def _hold_back(
    boosted: Floats, scores: Floats, measured: Floats, boosts: Mapping[int, dict[str, float]]
) -> None:
    """Lower the recency of texts that would pass an older one that is clearly better."""
    is_young = np.zeros(len(scores), dtype=np.bool_)
    for column, factors in boosts.items():
        is_young[column] = "recency" in factors
    old = np.flatnonzero(~is_young)
    young = np.flatnonzero(is_young)
    if not len(old) or not len(young):
        return
    is_better = (measured[:, old, None] >= measured[:, None, young]).all(axis=0)
    is_better &= scores[old, None] >= scores[young] + CLEAR_GAP
    ceilings = np.where(is_better, boosted[old, None], np.inf).min(axis=0) * (1 - BEHIND)
    for column, ceiling in zip(young.tolist(), ceilings.tolist(), strict=True):
        factors = boosts[column]
        without = float(boosted[column]) / factors["recency"]
        # Other boosts may lift it there; then its age only adds nothing.
        factor = max(1.0, ceiling / without) if without else 1.0
        if factor < factors["recency"]:
            factors["recency"] = factor
            boosted[column] = without * factor


def best_first(scores: Floats, documents: Sequence[Document]) -> list[int]:
    """Return the columns by score; equal ones go by path, and in one document by column."""
    order = np.argsort(-scores)
    ordered = scores[order]
    if (ordered[1:] == ordered[:-1]).any():
        # Two stable sorts: by path, which keeps the order of columns, and then by score.
        paths = [document.path for document in documents]
        by_path = np.array(sorted(range(len(paths)), key=paths.__getitem__), dtype=np.int64)
        order = by_path[np.argsort(-scores[by_path], kind="stable")]
    columns: list[int] = order.tolist()
    return columns


def lead(scores: Floats, documents: Sequence[Document]) -> float | None:
    """Return the part of the best score that the tenth-best document lacks, if there are ten."""
    paths: set[str] = set()
    order = np.argsort(-scores).tolist()
    for column in order:
        paths.add(documents[column].path)
        if len(paths) == COMPARED:
            best = float(scores[order[0]])
            return 1 - float(scores[column]) / best if best > 0 else None
    return None


def youngest(ranking: Ranking, now: datetime) -> datetime | None:
    """Return the moment after which a document is young enough for the boost, if there is one."""
    if ranking.recency_days <= 0:
        return None
    return now - timedelta(days=ranking.recency_days + 1)


def salience(created_at: datetime | None, half_life_days: float, now: datetime) -> float:
    """Return 1 for what was written now, half of that after each half-life."""
    if created_at is None:
        return 0.0
    days = max(0.0, (now - created_at).total_seconds() / SECONDS_A_DAY)
    return float(0.5 ** (days / half_life_days))


def _enough(
    scores: Floats, documents: Sequence[Document], query: Query, ranking: Ranking, now: datetime
) -> npt.NDArray[np.bool_]:
    """Tell which scores are enough; where scores fade, fresh texts need less than old ones."""
    if not ranking.half_life_days:
        return (scores > 0) & (scores >= query.min_score)
    thresholds = np.zeros(len(documents))
    for column, document in enumerate(documents):
        present = salience(document.created_at, ranking.half_life_days, now)
        thresholds[column] = ranking.fresh_min_score * present + query.min_score * (1 - present)
    return scores > thresholds


def _boosts(
    document: Document, young: datetime | None, ranking: Ranking, query: Query
) -> dict[str, float]:
    boosts: dict[str, float] = {}
    created = document.created_at
    # A date in the future counts as today.
    if young is not None and created is not None and created > young:
        boosts["recency"] = ranking.recency_factor
    earned = query.earned.get(document.id, 0.0)
    if earned or document.importance is not None:
        boosts["importance"] = _importance_boost(document.importance, earned)
    if document.confidence is not None:
        confidence = min(1.0, max(0.0, document.confidence))
        boosts["confidence"] = 1 - DOUBT_REACH * (1 - confidence)
    return boosts


def _importance_boost(importance: float | None, earned: float) -> float:
    own = UNSAID_IMPORTANCE if importance is None else importance
    bounded = min(10.0, max(1.0, own + earned))
    return 1 + IMPORTANCE_REACH * (bounded - UNSAID_IMPORTANCE) / 5


def _explained(score: float, boosts: Mapping[str, float]) -> tuple[Signal, ...]:
    """Return what each boost added to the score that is shown, which never passes 1.0."""
    signals = []
    for name, factor in boosts.items():
        lifted = score * factor
        signals.append(Signal(name, name, 0, factor, min(1.0, lifted) - min(1.0, score)))
        score = lifted
    return tuple(signals)
