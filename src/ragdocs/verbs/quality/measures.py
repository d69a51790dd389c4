"""How good a ranking is, and whether one way of ranking is really better than another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

# Where a ranking is cut: what a person looks through, and what an agent is given.
FIRST, DEEP = 5, 10
# Sign flips drawn for a test; the smallest p that can be told is one in this many.
DRAWS = 10_000


@dataclass(frozen=True, slots=True)
class Measures:
    """What one ranking is worth, each from 0 to 1."""

    recall_5: float
    recall_10: float
    mrr_10: float
    ndcg_10: float


@dataclass(frozen=True, slots=True)
class Difference:
    """What one way gains on another in points, its standard error.

    And how often chance alone does as well.
    """

    points: float
    error: float
    chance: float

    def __str__(self) -> str:
        # Adding zero turns a negative zero into a plain one.
        return f"{round(self.points, 1) + 0:+.1f} ± {self.error:.1f}"


def measure(ranked: Sequence[str], grades: Mapping[str, int]) -> Measures:
    """Return what a ranking of distinct documents is worth; grades above zero are answers."""
    answers = {name for name, grade in grades.items() if grade > 0}
    first = next((place for place, name in enumerate(ranked[:DEEP], start=1) if name in answers), 0)
    return Measures(
        recall_5=len(answers.intersection(ranked[:FIRST])) / max(1, len(answers)),
        recall_10=len(answers.intersection(ranked[:DEEP])) / max(1, len(answers)),
        mrr_10=1 / first if first else 0.0,
        ndcg_10=ndcg(ranked, grades),
    )


def ndcg(ranked: Sequence[str], grades: Mapping[str, int], k: int = DEEP) -> float:
    """Return how near the first k documents are to the best order there could be."""
    best = sorted(grades.values(), reverse=True)[:k]
    return _gain([grades.get(name, 0) for name in ranked[:k]]) / (_gain(best) or 1.0)


def compare(one: Sequence[float], other: Sequence[float], seed: int = 0) -> Difference:
    """Compare two ways over the same questions.

    By flipping the sign of their differences at random.
    """
    gained = np.asarray(one, dtype=np.float64) - np.asarray(other, dtype=np.float64)
    gained = gained[~np.isnan(gained)] * 100
    if not len(gained):
        return Difference(0.0, 0.0, 1.0)
    told = gained[gained != 0]
    rng = np.random.default_rng(seed)
    # Portion by portion: a matrix of all flips would take 100 MB at a thousand questions.
    beaten = 0
    for _ in range(0, DRAWS, 500):
        flips = rng.integers(0, 2, (500, len(told))) * 2 - 1
        beaten += int(np.count_nonzero(np.abs(flips @ told) >= abs(told.sum()) - 1e-9))
    return Difference(
        float(gained.mean()),
        float(gained.std() / math.sqrt(len(gained))),
        (beaten + 1) / (DRAWS + 1),
    )


def _gain(grades: Sequence[int]) -> float:
    return sum(grade / math.log2(place + 2) for place, grade in enumerate(grades))
