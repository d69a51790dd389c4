"""Measures what a shown score means.

How often the first hit is right, and how often an unrelated question gets as far.

Every labelled set is searched as a project. The floor is judged by what it lets through of
questions about something else, and by what it costs of the answers; other floors are printed beside
it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
from bench import _corpora, _labelled, _projects, _report
from bench._measure import grid
from bench._projects import Project

from ragdocs.search.calibration import FALSE_ALARMS, FLOOR
from ragdocs.verbs.quality.measures import measure

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS, UNRELATED = 400, 300
RATES = (0.01, 0.02, 0.05, 0.1)
# Where the scale is looked at.
EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
LANES = {"docs": "documentation", "memory": "memories"}

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of each question of a set the best score, whether the first hit is right.

    And what the answer is worth.
    """

    name: str
    lane: str
    floor: float
    scores: Numbers
    right: Numbers
    found: Numbers
    ndcg: Numbers
    # The best score of each question about something else.
    unrelated: Numbers

    def kept(self, least: float) -> str:
        """Tell which share of the questions with an answer among the first ten has a score of at least this."""
        return f"{np.mean(self.scores[self.found > 0] >= least):.1%}"


def main() -> None:
    options = _options()
    folders = _labelled.folders(options.data)
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="ragdocs-bench-") as scratch:
        work = (options.work or Path(scratch)).resolve()
        _corpora.enter(work)
        for folder in folders:
            if options.only and folder.name not in options.only.split(","):
                continue
            chosen = _labelled.read(folder)
            project = _projects.write(chosen, work / folder.name)
            project.corpus.sync()
            project.corpus.embed()
            unrelated = [
                project.found(q)[1] for q in _projects.unrelated(chosen, folders, options.unrelated)
            ]
            outcomes.append(_outcome(project, options.queries, np.array(unrelated)))
            _labelled.say(f"{folder.name:14} after {time.process_time():.0f} s cpu")
    printed = "\n\n".join([_floors(outcomes), _curve(outcomes), _meaning(outcomes)])
    print(printed)
    if options.write:
        _report.replace_block(ROOT / "docs" / "quality.md", "scores", printed)


def _outcome(project: Project, most: int, unrelated: Numbers) -> Outcome:
    chosen = project.chosen
    questions = list(chosen.questions)[:: max(1, len(chosen.questions) // most)][:most]
    rows = []
    for question in questions:
        ranked, score = project.found(question)
        worth = measure(ranked, chosen.grades[question.id])
        rows.append((score, float(bool(ranked) and ranked[0] in chosen.grades[question.id]), worth))
    scores, right, worths = zip(*rows, strict=True)
    return Outcome(
        name=chosen.name,
        lane=project.corpus.lane.name,
        floor=project.corpus.gauge().floor,
        scores=np.array(scores),
        right=np.array(right),
        found=np.array([worth.recall_10 for worth in worths]),
        ndcg=np.array([worth.ndcg_10 for worth in worths]),
        unrelated=unrelated,
    )


def _floors(outcomes: Sequence[Outcome]) -> str:
    """Tell what the shipped floor lets through, and what it costs."""
    head = (
        "set",
        "floor",
        "unrelated questions",
        "that pass",
        "",
        "first hits that are right",
        "kept",
        "answers in ten",
        "kept",
        "nDCG@10",
        "with the floor",
    )
    lines = []
    for one in outcomes:
        count = len(one.unrelated)
        alarms = float(np.mean(one.unrelated >= FLOOR))
        # Two standard errors of a share that is what it should be.
        room = FALSE_ALARMS + 2 * (FALSE_ALARMS * (1 - FALSE_ALARMS) / count) ** 0.5
        hits = one.scores[one.right > 0]
        cells = (
            f"{len(hits):,}",
            f"{np.mean(hits >= FLOOR):.1%}",
            f"{np.count_nonzero(one.found):,}",
            one.kept(FLOOR),
        )
        floored = f"{np.mean(np.where(one.scores >= FLOOR, one.ndcg, 0.0)):.4f}"
        verdict = (
            "pass"
            if alarms <= FALSE_ALARMS
            else "pass, within its error"
            if alarms <= room
            else "MISS"
        )
        passed = (f"{one.floor:.3f}", f"{count}", f"{alarms:.1%}", verdict)
        lines.append((one.name, *passed, *cells, f"{one.ndcg.mean():.4f}", floored))
    words = (
        f"The floor is shown as {FLOOR} and meant to be passed by {FALSE_ALARMS:.0%} of unrelated questions: those "
        "asked of memories where the set is documentation, and the other way round; none is among the 40 that set it. "
        "With the floor a question finds nothing if its best score is below."
    )
    return f"{grid(head, lines)}\n\n{words}"


def _curve(outcomes: Sequence[Outcome]) -> str:
    """Tell how many answers another floor would keep.

    Set for each set so that it lets through as much as it says.
    """
    head = ("answers in ten kept at", *(f"{rate:.0%} false alarms" for rate in RATES), "as shipped")
    lines = []
    for one in outcomes:
        cells = (one.kept(float(np.quantile(one.unrelated, 1 - rate))) for rate in RATES)
        lines.append(
            (one.name, *cells, f"{one.kept(FLOOR)} at {np.mean(one.unrelated >= FLOOR):.1%}")
        )
    return grid(head, lines)


def _meaning(outcomes: Sequence[Outcome]) -> str:
    """Tell of each stretch of the scale how often the first hit is right.

    Every set counting the same.
    """
    head = (
        "lane",
        "shown",
        "first hits",
        "right",
        "of the sets",
        "mean score",
        "unrelated questions that reach it",
    )
    lines, errors = [], []
    for lane in sorted({one.lane for one in outcomes}):
        sets = [one for one in outcomes if one.lane == lane]
        for low, high in pairwise(EDGES):
            inside = [
                (one.scores >= low) & ((one.scores < high) | (high == EDGES[-1])) for one in sets
            ]
            count = sum(int(rows.sum()) for rows in inside)
            if not count:
                continue
            shares = [
                float(one.right[rows].mean())
                for one, rows in zip(sets, inside, strict=True)
                if rows.any()
            ]
            shown = np.concatenate(
                [one.scores[rows] for one, rows in zip(sets, inside, strict=True)]
            ).mean()
            reach = np.mean([np.mean(one.unrelated >= low) for one in sets])
            spread = f"{min(shares):.0%} to {max(shares):.0%}"
            stretch = (LANES.get(lane, lane), f"{low:g} to {high:g}", f"{count:,}")
            lines.append(
                (*stretch, f"{np.mean(shares):.0%}", spread, f"{shown:.2f}", f"{reach:.1%}")
            )
        errors.append(f"{np.mean([_error(one) for one in sets]):.2f} for {LANES.get(lane, lane)}")
    words = (
        "Of the questions whose best score is shown in a stretch, how many have a right answer in the first place (the "
        "mean of the sets, and the least and most of them), and how many unrelated questions get that far or further. "
        f"The expected calibration error, if a score were read as the chance that the first hit is right: "
        f"{', '.join(errors)}."
    )
    return f"{grid(head, lines)}\n\n{words}"


def _error(one: Outcome) -> float:
    """Return how far scores are from the share of right first hits.

    On the mean of ten stretches.
    """
    stretches = np.minimum((one.scores * 10).astype(int), 9)
    off = 0.0
    for stretch in np.unique(stretches):
        rows = stretches == stretch
        off += float(rows.mean() * abs(one.scores[rows].mean() - one.right[rows].mean()))
    return off


def _options() -> argparse.Namespace:
    parser = _labelled.parser("scores", __doc__, "quality.md")
    parser.add_argument("--only", help="some sets, by commas")
    parser.add_argument("--queries", type=int, default=QUESTIONS, help="questions a set at most")
    parser.add_argument(
        "--unrelated", type=int, default=UNRELATED, help="questions about something else"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
