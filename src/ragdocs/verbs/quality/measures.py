"""How good a ranking is, and whether one way of ranking is really better than another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import fmean

import numpy as np

# Where a ranking is cut: what a person looks through, and what an agent is given.
FIRST = 5
DEEP = 10
# Sign flips drawn for a test; the smallest p that can be measured is one in this many.
DRAWS = 10_000
# Flips drawn at once: a matrix of all of them would take 100 MB at a thousand questions.
PORTION = 500


# The documents of a ranking, best first.
Ranked = Sequence[str]
# How well each document answers; those above zero are answers.
Grades = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Measures:
    """What one ranking is worth, each from 0 to 1."""

    recall_5: float
    recall_10: float
    mrr_10: float
    ndcg_10: float


@dataclass(frozen=True, slots=True)
class Difference:
    """The gain of one way in points, its standard error, and how often chance does as well."""

    points: float
    error: float
    chance: float

    def __str__(self) -> str:
        # Adding zero turns a negative zero into a plain one.
        return f"{round(self.points, 1) + 0:+.1f} ± {self.error:.1f}"


def measure(ranked: Ranked, grades: Grades) -> Measures:
    """Return what a ranking of distinct documents is worth; grades above zero are answers."""
    answers = {name for name, grade in grades.items() if grade > 0}
    first = first_answer(ranked, answers)
    reciprocal_rank = 0.0
    if first:
        reciprocal_rank = 1 / first
    return Measures(
        recall_5=_recall(ranked[:FIRST], answers),
        recall_10=_recall(ranked[:DEEP], answers),
        mrr_10=reciprocal_rank,
        ndcg_10=ndcg(ranked, grades),
    )


def mean_of(measures: Sequence[Measures]) -> Measures:
    """Return the mean of each measure over some rankings."""
    means = {}
    for field in fields(Measures):
        means[field.name] = fmean(getattr(worth, field.name) for worth in measures)
    return Measures(**means)


def first_answer(ranked: Ranked, answers: set[str]) -> int:
    """Return the number of the first answer, or 0 if it is not among the first ten."""
    for number, name in enumerate(ranked[:DEEP], start=1):
        if name in answers:
            return number
    return 0


def ndcg(ranked: Ranked, grades: Grades, k: int = DEEP) -> float:
    """Return how near the first k documents are to the best order there could be."""
    best = sorted(grades.values(), reverse=True)[:k]
    actual = [grades.get(name, 0) for name in ranked[:k]]
    return _gain(actual) / (_gain(best) or 1.0)


def compare(first: Sequence[float], other: Sequence[float], seed: int = 0) -> Difference:
    """Compare two ways over the same questions, by flipping the sign of differences at random."""
    ours = np.asarray(first, dtype=np.float64)
    theirs = np.asarray(other, dtype=np.float64)
    gains = (ours - theirs) * 100
    gains = gains[~np.isnan(gains)]
    if not len(gains):
        return Difference(0.0, 0.0, 1.0)
    changes = gains[gains != 0]
    least = abs(changes.sum()) - 1e-9
    rng = np.random.default_rng(seed)
    beaten = 0
    for _ in range(0, DRAWS, PORTION):
        flips = rng.integers(0, 2, (PORTION, len(changes))) * 2 - 1
        sums = np.abs(flips @ changes)
        beaten += int(np.count_nonzero(sums >= least))
    error = gains.std() / math.sqrt(len(gains))
    chance = (beaten + 1) / (DRAWS + 1)
    return Difference(float(gains.mean()), float(error), chance)


def _recall(ranked: Ranked, answers: set[str]) -> float:
    return len(answers.intersection(ranked)) / max(1, len(answers))


def _gain(grades: Sequence[int]) -> float:
    gain = 0.0
    for position, grade in enumerate(grades):
        gain += grade / math.log2(position + 2)
    return gain
