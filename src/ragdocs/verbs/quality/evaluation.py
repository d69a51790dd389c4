"""Asks a corpus questions whose answers are known, through the search that everybody uses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean
from typing import Any

from ragdocs.search.calibration import FLOOR
from ragdocs.search.corpus import Corpus
from ragdocs.types import Filter, Probe, Query
from ragdocs.verbs.page import MOST_RESULTS
from ragdocs.verbs.quality.measures import Measures, compare, first_answer, measure

# Questions that are named in a comparison, of those that got better and of those that got worse.
MOST_NAMED = 20
# A change of nDCG@10 that is worth a line.
NOTABLE = 0.005
MEASURES = ("recall_5", "recall_10", "mrr_10", "ndcg_10")

Weights = tuple[float, float] | None
Progress = Callable[[str, int, int], None]
# What a run writes down of each question, by its id.
Record = Mapping[str, Mapping[str, Any]]


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
    """The documents that a question found, what that is worth, and the seconds it took."""

    question: Question
    ranked: tuple[str, ...]
    worth: Measures
    seconds: Mapping[str, float] = field(default_factory=dict)
    # The score of the best result.
    score: float = 0.0

    @property
    def place(self) -> int:
        """The number of the first answer, or 0 if it is not among the first ten."""
        answers = {path for path, grade in self.question.answers.items() if grade}
        return first_answer(self.ranked, answers)


def ask(corpus: Corpus, question: Question, now: datetime, weights: Weights = None) -> Outcome:
    """Ask one question as the verbs do; a document stands where its best passage is."""
    # A document may give several passages, so more are asked for than documents are measured.
    query = Query(
        probes=(Probe(question.text),),
        limit=MOST_RESULTS,
        where=Filter(prefix=question.prefix),
        weights=weights,
    )
    findings = corpus.search(query, question.asked_at or now)
    best = 0.0
    paths = []
    for hit in findings.hits:
        best = max(best, hit.score)
        paths.append(hit.document.path)
    ranked = tuple(dict.fromkeys(paths))
    worth = measure(ranked, question.answers)
    return Outcome(question, ranked, worth, findings.seconds, best)


def run(
    corpus: Corpus,
    questions: Sequence[Question],
    now: datetime,
    weights: Weights = None,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Ask all questions."""
    outcomes = []
    for number, question in enumerate(questions, start=1):
        outcomes.append(ask(corpus, question, now, weights))
        if progress:
            progress("asking", number, len(questions))
    return outcomes


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the means of each kind of question, the share above the floor, and the times."""
    passed = 0.0
    if outcomes:
        passed = fmean(outcome.score >= FLOOR for outcome in outcomes)
    return {
        "slices": _slices(outcomes),
        "passed": round(passed, 4),
        "milliseconds": _milliseconds(outcomes),
    }


def kept(outcomes: Sequence[Outcome]) -> dict[str, dict[str, Any]]:
    """Return of each question what a later run is compared with."""
    record = {}
    for outcome in outcomes:
        record[outcome.question.id] = {
            "text": outcome.question.text,
            "ndcg_10": round(outcome.worth.ndcg_10, 6),
            "place": outcome.place,
        }
    return record


def against(outcomes: Sequence[Outcome], other: Record) -> dict[str, Any]:
    """Compare with what `kept` returned of another run: how much, how surely, by question."""
    ours = []
    theirs = []
    changes = []
    for outcome in outcomes:
        before = other.get(outcome.question.id)
        # A text that changed under its id is another question.
        if before is None or before["text"] != outcome.question.text:
            continue
        ours.append(outcome.worth.ndcg_10)
        theirs.append(float(before["ndcg_10"]))
        changes.append(_change(outcome, before))
    difference = compare(ours, theirs)
    changes.sort(key=_by_size)
    better = [change for change in changes if change["change"] > NOTABLE]
    worse = [change for change in changes if change["change"] < -NOTABLE]
    return {
        "compared": len(changes),
        "ndcg_10": round(fmean(theirs), 4) if theirs else None,
        "points": round(difference.points, 2),
        "error": round(difference.error, 2),
        "chance": round(difference.chance, 4),
        "better": len(better),
        "worse": len(worse),
        "changes": [*better[:MOST_NAMED], *worse[:MOST_NAMED]],
    }


def _change(outcome: Outcome, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return what became of one question since another run."""
    gain = outcome.worth.ndcg_10 - float(before["ndcg_10"])
    return {
        "question": outcome.question.text,
        "kind": outcome.question.kind,
        "answer": min(outcome.question.answers),
        "before": before["place"],
        "after": outcome.place,
        "change": round(gain, 4),
    }


def _by_size(change: Mapping[str, Any]) -> tuple[float, str]:
    return -abs(change["change"]), change["question"]


def _slices(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return the means by kind of question, and those of all where there are several kinds."""
    by_kind: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_kind[outcome.question.kind].append(outcome)
    slices = sorted(by_kind.items())
    if len(slices) != 1:
        slices.append(("all", list(outcomes)))
    rows = []
    for kind, members in slices:
        row = {"slice": kind or "all", "questions": len(members)}
        rows.append({**row, **_means(members)})
    return rows


def _means(outcomes: Sequence[Outcome]) -> dict[str, float]:
    means = {}
    for name in MEASURES:
        mean = fmean(getattr(outcome.worth, name) for outcome in outcomes)
        means[name] = round(mean, 4)
    return means


def _milliseconds(outcomes: Sequence[Outcome]) -> dict[str, dict[str, float]]:
    """Return the median and the 95th percentile of what each stage took."""
    stages: set[str] = set()
    for outcome in outcomes:
        stages.update(outcome.seconds)
    table = {}
    for stage in sorted(stages):
        table[stage] = _percentiles([outcome.seconds.get(stage, 0.0) for outcome in outcomes])
    table["all"] = _percentiles([sum(outcome.seconds.values()) for outcome in outcomes])
    return table


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    return {"p50": _quantile(seconds, 0.5), "p95": _quantile(seconds, 0.95)}


def _quantile(seconds: Sequence[float], share: float) -> float:
    """Return a quantile in milliseconds."""
    if not seconds:
        return 0.0
    position = min(len(seconds) - 1, int(share * len(seconds)))
    return round(sorted(seconds)[position] * 1000, 2)
