"""Asks a corpus questions whose answers are known, through the search that everybody uses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import fmean
from typing import Any

from ragdocs.search.corpus import Corpus
from ragdocs.search.floor import FLOOR
from ragdocs.types import Filter, Probe, Query
from ragdocs.verbs.page import MOST_RESULTS
from ragdocs.verbs.quality.measures import (
    Difference,
    Measures,
    compare,
    first_answer,
    mean_of,
    measure,
)

# A change of nDCG@10 that is worth a line.
NOTABLE = 0.005

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
    def rank(self) -> int:
        """The number of the first answer, or 0 if it is not among the first ten."""
        answers = {path for path, grade in self.question.answers.items() if grade}
        return first_answer(self.ranked, answers)


@dataclass(frozen=True, slots=True)
class Slice:
    """The questions of one kind, and the means of what their rankings are worth."""

    kind: str
    questions: int
    means: Measures


@dataclass(frozen=True, slots=True)
class Timing:
    """The median and the 95th percentile of the seconds that a stage took."""

    median: float
    slow: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Outcomes by kind of question, the share above the floor, and the times of each stage."""

    slices: tuple[Slice, ...]
    passed: float
    timings: Mapping[str, Timing]


@dataclass(frozen=True, slots=True)
class Change:
    """A question with the numbers of its first answer in another run and in this one."""

    question: Question
    before: int
    after: int
    gain: float


@dataclass(frozen=True, slots=True)
class Gains:
    """How this run differs from another one, over the questions that both have asked."""

    compared: int
    # The mean nDCG@10 of the other run; nothing where no question is the same.
    other_ndcg: float | None
    difference: Difference
    better: tuple[Change, ...]
    worse: tuple[Change, ...]


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


def summary(outcomes: Sequence[Outcome]) -> Summary:
    """Return the means of each kind of question, the share above the floor, and the times."""
    passed = 0.0
    if outcomes:
        passed = fmean(outcome.score >= FLOOR for outcome in outcomes)
    return Summary(tuple(_slices(outcomes)), passed, _timings(outcomes))


def as_saved(outcomes: Sequence[Outcome]) -> dict[str, dict[str, Any]]:
    """Return of each question what a later run is compared with."""
    record = {}
    for outcome in outcomes:
        record[outcome.question.id] = {
            "text": outcome.question.text,
            "ndcg_10": round(outcome.worth.ndcg_10, 6),
            "place": outcome.rank,
        }
    return record


def against(outcomes: Sequence[Outcome], other: Record) -> Gains:
    """Compare with what `kept` returned of another run: how much, how surely, by question."""
    ours = []
    theirs = []
    changes = []
    for outcome in outcomes:
        before = other.get(outcome.question.id)
        # A text that changed under its id is another question.
        if before is None or before["text"] != outcome.question.text:
            continue
        other_ndcg = float(before["ndcg_10"])
        ours.append(outcome.worth.ndcg_10)
        theirs.append(other_ndcg)
        gain = outcome.worth.ndcg_10 - other_ndcg
        changes.append(Change(outcome.question, before["place"], outcome.rank, gain))
    better = []
    worse = []
    for change in sorted(changes, key=_by_size):
        if change.gain > NOTABLE:
            better.append(change)
        elif change.gain < -NOTABLE:
            worse.append(change)
    mean_ndcg = None
    if theirs:
        mean_ndcg = fmean(theirs)
    return Gains(
        compared=len(changes),
        other_ndcg=mean_ndcg,
        difference=compare(ours, theirs),
        better=tuple(better),
        worse=tuple(worse),
    )


def _by_size(change: Change) -> tuple[float, str]:
    return -round(abs(change.gain), 4), change.question.text


def _slices(outcomes: Sequence[Outcome]) -> list[Slice]:
    """Return the means by kind of question, and those of all where there are several kinds."""
    by_kind: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_kind[outcome.question.kind].append(outcome)
    groups = sorted(by_kind.items())
    if len(groups) != 1:
        groups.append(("all", list(outcomes)))
    slices = []
    for kind, members in groups:
        means = mean_of([outcome.worth for outcome in members])
        slices.append(Slice(kind or "all", len(members), means))
    return slices


def _timings(outcomes: Sequence[Outcome]) -> dict[str, Timing]:
    """Return how long each stage took, and all of them together."""
    stages: set[str] = set()
    for outcome in outcomes:
        stages.update(outcome.seconds)
    timings = {}
    for stage in sorted(stages):
        timings[stage] = _timing([outcome.seconds.get(stage, 0.0) for outcome in outcomes])
    timings["all"] = _timing([sum(outcome.seconds.values()) for outcome in outcomes])
    return timings


def _timing(seconds: Sequence[float]) -> Timing:
    return Timing(_quantile(seconds, 0.5), _quantile(seconds, 0.95))


def _quantile(seconds: Sequence[float], share: float) -> float:
    if not seconds:
        return 0.0
    position = min(len(seconds) - 1, int(share * len(seconds)))
    return sorted(seconds)[position]
