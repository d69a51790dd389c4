"""Scores become an answer.

Boosts, a cap for each document, one order, and the cut, in this sequence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import prod

from ragdocs.lanes import Ranking
from ragdocs.types import UNSAID_IMPORTANCE, Document, Query, Signal

# The most that importance (1 to 10, 5 is ordinary) and doubt change a score by: they order what is
# nearly equal. Importance drawn at random costs more than a point of nDCG@10 at 0.1
# (bench/signals.py prints what it costs).
IMPORTANCE_REACH = 0.05
DOUBT_REACH = 0.1
SECONDS_A_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Chosen:
    """A candidate that made it.

    Its place among those given, the score to show, and what ranking added to it.
    """

    place: int
    score: float
    signals: tuple[Signal, ...] = ()


def rank(
    found: Sequence[tuple[int, float]],
    owners: Sequence[Document],
    query: Query,
    ranking: Ranking,
    now: datetime,
) -> tuple[list[Chosen], int]:
    """Order candidates, given by key and score, and cut to the limit; tell how many were cut off.

    What a boost lifts is lifted before the cut. Equal scores go by path, and by key in one
    document.
    """
    young = youngest(ranking, now)
    boosts = [_boosts(owner, young, ranking, query) for owner in owners]
    ordered = sorted(
        [
            (-score * prod(boost.values()) if boost else -score, owner.path, key, place)
            for place, ((key, score), boost, owner) in enumerate(
                zip(found, boosts, owners, strict=True)
            )
        ]
    )
    taken: dict[str, int] = {}
    kept: list[Chosen] = []
    omitted = 0
    for negative, path, _, place in ordered:
        if (count := taken.get(path, 0)) >= ranking.per_document:
            continue
        taken[path] = count + 1
        # The score that orders may pass 1.0, the one that is shown may not.
        shown = -negative if negative > -1.0 else 1.0
        if not _reaches(shown, owners[place], query, ranking, now):
            continue
        if len(kept) >= query.limit:
            omitted += 1
            continue
        kept.append(Chosen(place, shown, _explained(found[place][1], boosts[place])))
    return kept, omitted


def youngest(ranking: Ranking, now: datetime) -> datetime | None:
    """Return the moment after which a document is young enough for the boost, if there is one."""
    return now - timedelta(days=ranking.recency_days + 1) if ranking.recency_days > 0 else None


def salience(created_at: datetime | None, half_life_days: float, now: datetime) -> float:
    """Return how present something still is.

    1 when it was written, half of it after each half-life.
    """
    if created_at is None:
        return 0.0
    days = max(0.0, (now - created_at).total_seconds() / SECONDS_A_DAY)
    return float(0.5 ** (days / half_life_days))


def _reaches(score: float, owner: Document, query: Query, ranking: Ranking, now: datetime) -> bool:
    """Tell whether a score is enough; where scores fade, fresh texts need less than old ones."""
    if not ranking.half_life_days:
        return score > 0 and score >= query.min_score
    present = salience(owner.created_at, ranking.half_life_days, now)
    return score > ranking.easiest * present + query.min_score * (1 - present)


def _boosts(
    owner: Document, young: datetime | None, ranking: Ranking, query: Query
) -> dict[str, float]:
    boosts: dict[str, float] = {}
    # A date in the future counts as today.
    if young is not None and owner.created_at is not None and owner.created_at > young:
        boosts["recency"] = ranking.recency_factor
    earned = query.earned.get(owner.id, 0.0) if query.earned else 0.0
    if earned or owner.importance is not None:
        said = UNSAID_IMPORTANCE if owner.importance is None else owner.importance
        boosts["importance"] = (
            1 + IMPORTANCE_REACH * (min(10.0, max(1.0, said + earned)) - UNSAID_IMPORTANCE) / 5
        )
    if owner.confidence is not None:
        boosts["confidence"] = 1 - DOUBT_REACH * (1 - min(1.0, max(0.0, owner.confidence)))
    return boosts


def _explained(score: float, boosts: Mapping[str, float]) -> tuple[Signal, ...]:
    """Return what each boost added to the score that is shown, which never passes 1.0."""
    signals = []
    for name, factor in boosts.items():
        lifted = score * factor
        signals.append(Signal(name, name, 0, factor, min(1.0, lifted) - min(1.0, score)))
        score = lifted
    return tuple(signals)
