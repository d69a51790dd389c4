"""What our search finds with the built-in encoder, and with the same model in full precision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench import _labelled, _projects
from bench._full_precision import FullPrecision
from bench._labelled import Labelled
from bench._measure import grid
from bench._projects import Project

from ragdocs.project.folders import cache_dir
from ragdocs.search.encoders.cache import CachedEncoder
from ragdocs.verbs.quality.evaluation import Weights
from ragdocs.verbs.quality.measures import DEEP, Difference, compare, measure

# What the mean of our search may lose, in points.
MOST_LOST = 0.3
WAYS: dict[str, Weights] = {"ours": None, "meaning alone": (1.0, 0.0)}


@dataclass(frozen=True, slots=True)
class Gain:
    """What the built-in encoder gains on full precision over the questions of a set."""

    name: str
    questions: int
    by_way: dict[str, tuple[float, float, Difference]]


def gains(sets: Iterable[Labelled], work: Path) -> list[Gain]:
    """Ask every question twice, once of each encoder's vectors."""
    measured = []
    for chosen in sets:
        built_in = _projects.write(chosen, work / chosen.name)
        full = _projects.write(chosen, work / f"{chosen.name}-full")
        full.corpus.encoder = CachedEncoder(FullPrecision(), cache_dir() / "vectors.sqlite")
        for project in (built_in, full):
            project.corpus.sync()
            project.corpus.embed()
            info = project.corpus.index.info()
            if info.vectors < info.passages:
                raise SystemExit(f"{chosen.name}: {project.corpus.embedding_unavailable}")
            _labelled.say(f"{chosen.name}: {info.vectors:,} vectors")
        by_way = {}
        for way, weights in WAYS.items():
            new, old = _ndcg(built_in, weights), _ndcg(full, weights)
            by_way[way] = float(np.mean(new)), float(np.mean(old)), compare(new, old)
        measured.append(Gain(chosen.name, len(chosen.questions), by_way))
    return measured


def _ndcg(project: Project, weights: Weights) -> list[float]:
    found = []
    for question in project.chosen.questions:
        documents = project.find(question, weights)
        grades = project.chosen.grades[question.id]
        found.append(measure(documents[:DEEP], grades).ndcg_10)
    return found


def table(measured: Sequence[Gain]) -> str:
    """Return the paired differences of each set and of the mean."""
    head = ["set", "questions"]
    for way in WAYS:
        head += [way, "in full precision", "difference", "p"]
    lines = []
    for gain in measured:
        cells = [gain.name, f"{gain.questions:,}"]
        for new, old, difference in gain.by_way.values():
            points = f"{difference.points:+.2f} ± {difference.error:.2f}"
            cells += [f"{new:.4f}", f"{old:.4f}", points, f"{difference.chance:.2f}"]
        lines.append(cells)
    cells = ["mean", ""]
    means = {}
    for way in WAYS:
        means[way] = float(np.mean([gain.by_way[way][2].points for gain in measured]))
        errors = np.array([gain.by_way[way][2].error for gain in measured])
        error = float(np.sqrt((errors**2).sum()) / len(errors))
        cells += ["", "", f"{means[way]:+.2f} ± {error:.2f}", ""]
    lines.append(cells)
    verdict = "pass" if means["ours"] >= -MOST_LOST else "MISS"
    words = (
        "nDCG@10, and points that the built-in encoder gains on the same weights in full "
        f"precision, paired by question. Our search may lose {MOST_LOST} points on the mean: "
        f"{verdict}."
    )
    return f"{grid(head, lines)}\n\n{words}"
