"""Asks a corpus questions whose answers are known, through the same search that everybody uses.

And keeps score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean
from typing import Any

from ragdocs.search.calibration import FLOOR
from ragdocs.search.corpus import Corpus
from ragdocs.types import Filter, Probe, Query
from ragdocs.verbs.page import MOST_RESULTS
from ragdocs.verbs.quality.measures import DEEP, Measures, compare, measure

# Questions that are named in a comparison, of those that got better and of those that got worse.
MOST_NAMED = 20
# A change of nDCG@10 that is worth a line.
NOTABLE = 0.005
MEASURES = ("recall_5", "recall_10", "mrr_10", "ndcg_10")

Weights = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the paths that answer it; `kind` is the slice it is counted in."""

    id: str
    text: str
    answers: Mapping[str, int]
    kind: str = ""
    # What the paths begin with that it is asked of, and when, if that matters.
    prefix: str = ""
    asked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one question.

    The documents that were found, what that is worth, and the seconds it took.
    """

    question: Question
    ranked: tuple[str, ...]
    worth: Measures
    seconds: Mapping[str, float] = field(default_factory=dict)
    # The score of the best result.
    score: float = 0.0

    @property
    def place(self) -> int:
        """Where the first answer is, or 0 if it is not among the first ten."""
        found = (
            place
            for place, path in enumerate(self.ranked[:DEEP], start=1)
            if self.question.answers.get(path)
        )
        return next(found, 0)


def ask(corpus: Corpus, question: Question, now: datetime, weights: Weights = None) -> Outcome:
    """Ask one question as the verbs do; a document stands where its best passage is."""
    # A page may give several passages, so more are asked for than documents are measured.
    query = Query(
        probes=(Probe(question.text),),
        limit=MOST_RESULTS,
        where=Filter(prefix=question.prefix),
        weights=weights,
    )
    found = corpus.search(query, question.asked_at or now)
    ranked = tuple(dict.fromkeys(hit.document.path for hit in found.hits))
    best = max((hit.score for hit in found.hits), default=0.0)
    return Outcome(question, ranked, measure(ranked, question.answers), found.seconds, best)


def run(
    corpus: Corpus,
    questions: Sequence[Question],
    now: datetime,
    weights: Weights = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[Outcome]:
    """Ask all questions."""
    outcomes = []
    for number, question in enumerate(questions, start=1):
        outcomes.append(ask(corpus, question, now, weights))
        if progress:
            progress("asking", number, len(questions))
    return outcomes


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the means of each kind of question and of all, what share passed the floor.

    And what each stage took.
    """
    kinds = sorted({one.question.kind for one in outcomes})
    slices = [(kind, [one for one in outcomes if one.question.kind == kind]) for kind in kinds]
    if len(slices) != 1:
        slices.append(("all", list(outcomes)))
    stages = sorted({stage for one in outcomes for stage in one.seconds})
    times = {stage: [one.seconds.get(stage, 0.0) * 1000 for one in outcomes] for stage in stages}
    times["all"] = [sum(one.seconds.values()) * 1000 for one in outcomes]
    return {
        "slices": [
            {"slice": kind or "all", "questions": len(some), **_means(some)}
            for kind, some in slices
        ],
        "passed": round(fmean(one.score >= FLOOR for one in outcomes), 4) if outcomes else 0.0,
        "milliseconds": {
            stage: {
                "p50": round(_quantile(values, 0.5), 2),
                "p95": round(_quantile(values, 0.95), 2),
            }
            for stage, values in times.items()
        },
    }


def kept(outcomes: Sequence[Outcome]) -> dict[str, dict[str, Any]]:
    """Return of each question what a later run is compared with."""
    return {
        one.question.id: {
            "text": one.question.text,
            "ndcg_10": round(one.worth.ndcg_10, 6),
            "place": one.place,
        }
        for one in outcomes
    }


def against(outcomes: Sequence[Outcome], other: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Compare with what `kept` returned of another run.

    By how much, how surely, and question by question.
    """
    pairs = [(one, other[one.question.id]) for one in outcomes if one.question.id in other]
    # A text that changed under its id is another question.
    pairs = [(one, was) for one, was in pairs if was["text"] == one.question.text]
    mine, theirs = (
        [one.worth.ndcg_10 for one, _ in pairs],
        [float(was["ndcg_10"]) for _, was in pairs],
    )
    difference = compare(mine, theirs)
    changes = [
        {
            "question": one.question.text,
            "kind": one.question.kind,
            "answer": min(one.question.answers),
            "before": was["place"],
            "after": one.place,
            "change": round(one.worth.ndcg_10 - float(was["ndcg_10"]), 4),
        }
        for one, was in pairs
    ]
    changes.sort(key=lambda change: (-abs(change["change"]), change["question"]))
    better = [change for change in changes if change["change"] > NOTABLE]
    worse = [change for change in changes if change["change"] < -NOTABLE]
    return {
        "compared": len(pairs),
        "ndcg_10": round(fmean(theirs), 4) if theirs else None,
        "points": round(difference.points, 2),
        "error": round(difference.error, 2),
        "chance": round(difference.chance, 4),
        "better": len(better),
        "worse": len(worse),
        "changes": [*better[:MOST_NAMED], *worse[:MOST_NAMED]],
    }


def _means(outcomes: Sequence[Outcome]) -> dict[str, float]:
    return {
        name: round(fmean(getattr(one.worth, name) for one in outcomes), 4) for name in MEASURES
    }


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
