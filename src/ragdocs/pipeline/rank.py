"""Scores become an answer: recency, a cap for each document, one order, and the cut, in this sequence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from ragdocs.lanes import Ranking
from ragdocs.types import Document, Findings, Hit, Query, Signal


def rank(hits: Sequence[Hit], query: Query, ranking: Ranking, now: datetime) -> Findings:
    """Order hits and cut to the limit; what the boost lifts is lifted before the cut."""
    boosted = [_boost(hit, ranking, now) for hit in hits]
    ordered = sorted(boosted, key=lambda pair: (-pair[0], pair[1].document.path, pair[1].chunk.start_line))
    taken: Counter[str] = Counter()
    kept = []
    for _, hit in ordered:
        taken[hit.document.id] += 1
        if hit.score >= query.min_score and hit.score > 0 and taken[hit.document.id] <= ranking.per_document:
            kept.append(hit)
    limit = max(0, query.limit)
    return Findings(hits=tuple(kept[:limit]), omitted=len(kept) - len(kept[:limit]))


def is_recent(document: Document, ranking: Ranking, now: datetime) -> bool:
    """Tell whether a document is young enough for the boost; a date in the future counts as today."""
    if document.created_at is None or ranking.recency_days <= 0:
        return False
    return max(0, (now - document.created_at).days) <= ranking.recency_days


def _boost(hit: Hit, ranking: Ranking, now: datetime) -> tuple[float, Hit]:
    """Return the score that orders, which may pass 1.0, and the hit with the score that is shown, which may not."""
    if not is_recent(hit.document, ranking, now):
        return hit.score, hit
    score = hit.score * ranking.recency_factor
    shown = min(1.0, score)
    signal = Signal("recency", "recency", 0, ranking.recency_factor, shown - hit.score)
    return score, replace(hit, score=shown, signals=(*hit.signals, signal))
