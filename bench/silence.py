"""Measures when search keeps silent: questions with an answer, and the same without.

Every question of the labelled sets is asked twice: of all documents, and of all but its answers.
Everyday questions are asked besides, which no set is about.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from operator import attrgetter
from pathlib import Path

import numpy as np
from bench import _corpora, _everyday_questions, _labelled, _projects, _report
from bench._measure import grid
from bench._projects import Project

from ragdocs.search import calibration
from ragdocs.search.calibration import Gauge
from ragdocs.search.floor import FLOOR
from ragdocs.types import Filter, Findings, Probe, Query
from ragdocs.verbs.page import MOST_RESULTS

ROOT = Path(__file__).resolve().parent.parent
# The share of questions with an answer that may be refused where others are compared.
REFUSED = 0.05
HEAD = [
    *("set", "questions", "right first", "floor", "everyday"),
    *("refused", "right", "without"),
    *("weak", "right", "without"),
    *("5% of all: score", "and lead"),
    *("5% of right: score", "and lead"),
]
ABOUT = (
    "Right first: questions whose first result is an answer. Everyday: share of "
    f"{len(_everyday_questions.QUESTIONS)} everyday questions that pass the floor. Refused: nothing reaches the floor; "
    "weak: refused or marked as weak; of all questions, of those that are right first, and of the "
    "same questions without their answers. The last columns are the share of questions without "
    "their answers that would be refused if 5% of all, or 5% of those that are right first, were: "
    "by the best score of the set, and by the score and the lead that decide what is weak."
)


@dataclass(frozen=True, slots=True)
class Best:
    """The best result of a question: its score, its lead, and whether it is marked as weak."""

    score: float
    lead: float | None
    gauge: Gauge

    @property
    def is_refused(self) -> bool:
        """Whether the score is below the floor."""
        return self.score < FLOOR

    @property
    def is_weak(self) -> bool:
        """Whether the answer is refused or marked."""
        return self.is_refused or self.score < self.gauge.weak_below(self.lead)

    @property
    def certainty(self) -> float:
        """What decides whether an answer is weak, as one number."""
        score = min(max(self.score, 1e-6), 1 - 1e-6)
        above = calibration.SURENESS * math.log(score / (1 - score))
        return above + calibration.LEAD_WEIGHT * (self.lead or 0.0)


@dataclass(frozen=True, slots=True)
class Asked:
    """The best results of a set's questions with their answers, and without."""

    name: str
    gauge: Gauge
    everyday: Sequence[Best]
    true: Sequence[Best]
    is_right: Sequence[bool]
    near: Sequence[Best]

    @property
    def right(self) -> list[Best]:
        """Those first results that are answers."""
        return list(compress(self.true, self.is_right))

    def cells(self) -> list[str]:
        """Return the row of the table."""
        cells = [self.name, f"{len(self.true):,}", _share(self.is_right)]
        passes = [not best.is_refused for best in self.everyday]
        cells += [f"{self.gauge.floor:.2f}", _share(passes)]
        for mark in (attrgetter("is_refused"), attrgetter("is_weak")):
            for bests in (self.true, self.right, self.near):
                cells.append(_share(list(map(mark, bests))))
        for allowed in (self.true, self.right):
            for measure in (attrgetter("score"), attrgetter("certainty")):
                least = np.quantile(list(map(measure, allowed)), REFUSED)
                cells.append(_share([measure(best) < least for best in self.near]))
        return cells


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory(prefix="ragdocs-bench-") as scratch:
        work = (options.work or Path(scratch)).resolve()
        _corpora.enter(work)
        sets = []
        for folder in _labelled.folders(options.data):
            if options.only and folder.name not in options.only.split(","):
                continue
            chosen = _labelled.read(folder)
            if options.documents:
                chosen = chosen.sample(options.documents, options.queries)
            sets.append(_asked(_projects.write(chosen, work / folder.name), options.queries))
    printed = _table(sets)
    print(printed)
    if options.write:
        body = f"`{_command(options)}`\n\n{printed}"
        _report.replace_block(ROOT / "docs" / "internals" / "quality.md", "silence", body)


def _asked(project: Project, most: int) -> Asked:
    project.corpus.sync()
    project.corpus.embed()
    paths = {id_: path for path, id_ in project.ids.items()}
    questions = project.chosen.questions
    gauge = project.corpus.gauge()
    everyday = []
    for text in _everyday_questions.QUESTIONS:
        findings = project.corpus.search(Query(probes=(Probe(text),)), project.last)
        everyday.append(_best(findings, gauge))
    true: list[Best] = []
    is_right: list[bool] = []
    near: list[Best] = []
    for question in questions[:: max(1, len(questions) // most)]:
        answers = {paths[id_] for id_ in project.chosen.grades[question.id] if id_ in paths}
        query = Query(
            probes=(Probe(question.text),),
            limit=MOST_RESULTS,
            where=Filter(prefix=project.prefix(question)),
        )
        findings = project.corpus.search(query, project.asked_at(question))
        true.append(_best(findings, gauge))
        is_right.append(bool(findings.hits) and findings.hits[0].document.path in answers)
        # Without its answers it is a question of the same field that nobody answers here.
        without = replace(query, where=replace(query.where, without=frozenset(answers)))
        findings = project.corpus.search(without, project.asked_at(question))
        near.append(_best(findings, gauge))
    _labelled.say(f"{project.chosen.name:14} {len(true):,} questions")
    return Asked(project.chosen.name, gauge, everyday, true, is_right, near)


def _best(findings: Findings, gauge: Gauge) -> Best:
    score = max((hit.score for hit in findings.hits), default=0.0)
    return Best(score, findings.lead, gauge)


def _table(sets: Sequence[Asked]) -> str:
    return f"{grid(HEAD, [one.cells() for one in sets])}\n\n{ABOUT}"


def _share(marks: Sequence[bool]) -> str:
    if not marks:
        return "-"
    return f"{np.mean(marks):.1%}"


def _command(options: argparse.Namespace) -> str:
    words = ["python3 tasks.py bench silence"]
    for name in ("documents", "queries", "only"):
        value = getattr(options, name)
        if value:
            words.append(f"--{name} {value}")
    return " ".join(words)


def _options() -> argparse.Namespace:
    parser = _labelled.parser("silence", __doc__, "internals/quality.md")
    parser.add_argument("--only", help="some sets, by commas")
    parser.add_argument("--documents", type=int, help="documents a set at most, with all answers")
    parser.add_argument("--queries", type=int, default=200, help="questions a set at most")
    return parser.parse_args()


if __name__ == "__main__":
    main()
