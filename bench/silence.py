"""Measures when search keeps silent: questions with an answer, and the same without.

Every question of the labelled sets is asked once. Without its answers its best result is that of a
question of the same field that nobody answers here; scores do not depend on other results.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench import _corpora, _labelled, _projects, _report
from bench._measure import grid
from bench._projects import Project

from ragdocs.search.calibration import FLOOR, WEAK
from ragdocs.types import Filter, Hit, Probe, Query
from ragdocs.verbs.page import MOST_RESULTS

ROOT = Path(__file__).resolve().parent.parent
# The share of questions with an answer that may be refused where others are compared.
REFUSED = 0.05


@dataclass(frozen=True, slots=True)
class Asked:
    """The best scores of a set's questions."""

    name: str
    # With their answers, and whether the first result is one.
    true: Sequence[float]
    is_right: Sequence[bool]
    # Without them.
    near: Sequence[float]

    @property
    def right(self) -> list[float]:
        """The scores of first results that are answers."""
        return [score for score, right in zip(self.true, self.is_right, strict=True) if right]


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
    questions = project.chosen.questions
    true: list[float] = []
    is_right: list[bool] = []
    near: list[float] = []
    for question in questions[:: max(1, len(questions) // most)]:
        query = Query(
            probes=(Probe(question.text),),
            limit=MOST_RESULTS,
            where=Filter(prefix=project.prefix(question)),
        )
        findings = project.corpus.search(query, project.asked_at(question))
        answers = project.chosen.grades[question.id]
        others = [hit for hit in findings.hits if project.ids[hit.document.path] not in answers]
        true.append(_best(findings.hits))
        near.append(_best(others))
        is_right.append(bool(findings.hits) and findings.hits[0] not in others)
    _labelled.say(f"{project.chosen.name:14} {len(true):,} questions")
    return Asked(project.chosen.name, true, is_right, near)


def _best(hits: Sequence[Hit]) -> float:
    return max((hit.score for hit in hits), default=0.0)


def _table(sets: Sequence[Asked]) -> str:
    everything = [score for one in sets for score in one.true]
    threshold = float(np.quantile(everything, REFUSED))
    lines = []
    for one in sets:
        cells = [one.name, f"{len(one.true):,}"]
        for least in (FLOOR, WEAK, threshold):
            for scores in (one.true, one.right, one.near):
                cells.append(_below(scores, least))
        cells.append(_below(one.near, float(np.quantile(one.true, REFUSED))))
        lines.append(cells)
    head = ["set", "questions"]
    for least in (FLOOR, WEAK, threshold):
        head += [f"below {least:.2f}", "right first", "without"]
    head.append("without, at its own")
    words = (
        f"Shares of questions whose best result scores less: than the floor {FLOOR}, than what is "
        f"marked as weak {WEAK}, and than {threshold:.2f}, which {REFUSED:.0%} of all questions do "
        "not reach; of those with an answer, those whose first result is one, and the same "
        f"questions without their answers. The last column is where {REFUSED:.0%} of the set's own "
        "questions are refused."
    )
    return f"{grid(head, lines)}\n\n{words}"


def _below(scores: Sequence[float], least: float) -> str:
    if not scores:
        return "-"
    return f"{np.mean([score < least for score in scores]):.1%}"


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
