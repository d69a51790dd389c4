"""Scores become an answer: recency, a cap for each document, one order, and the cut, in this sequence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ragdocs.lanes import Ranking
from ragdocs.types import Document, Query, Signal


@dataclass(frozen=True, slots=True)
class Chosen:
    """A candidate that made it: its place among those given, the score to show, and what ranking added to it."""

    place: int
    score: float
    signals: tuple[Signal, ...] = ()


def rank(
    found: Sequence[tuple[int, float]], owners: Sequence[Document], query: Query, ranking: Ranking, now: datetime
) -> tuple[list[Chosen], int]:
    """Order candidates, given by key and score, and cut to the limit; tell how many were cut off.

    What the boost lifts is lifted before the cut. Equal scores go by path, and by key in one document.
    """
    young = youngest(ranking, now)
    factors = [1.0 if young is None or not _is_recent(owner, young) else ranking.recency_factor for owner in owners]
    rows = enumerate(zip(found, factors, owners, strict=True))
    ordered = sorted((-score * factor, owner.path, key, place) for place, ((key, score), factor, owner) in rows)
    taken: Counter[str] = Counter()
    kept: list[Chosen] = []
    omitted = 0
    for negative, path, _, place in ordered:
        # The score that orders may pass 1.0, the one that is shown may not.
        shown = min(1.0, -negative)
        taken[path] += 1
        if shown <= 0 or shown < query.min_score or taken[path] > ranking.per_document:
            continue
        if len(kept) >= query.limit:
            omitted += 1
            continue
        lift = Signal("recency", "recency", 0, factors[place], shown - found[place][1])
        kept.append(Chosen(place, shown, () if factors[place] == 1.0 else (lift,)))
    return kept, omitted


def youngest(ranking: Ranking, now: datetime) -> datetime | None:
    """Return the moment after which a document is young enough for the boost, if there is one."""
    return now - timedelta(days=ranking.recency_days + 1) if ranking.recency_days > 0 else None


def _is_recent(document: Document, young: datetime) -> bool:
    # A date in the future counts as today.
    return document.created_at is not None and document.created_at > young
