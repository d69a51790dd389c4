"""Measures what signals beside words and meaning gain and cost.

Recency, a named time, importance, links, the cap.

Each is switched off by itself, on every labelled set as a project. Where one should not matter it
may cost a point at most; where it should, there is a slice of questions made for it, of which the
printed words say how it was made.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from bench import _corpora, _labelled, _projects, _report
from bench._labelled import Item
from bench._measure import grid
from bench._projects import Project

from ragdocs.text import times
from ragdocs.types import UNSAID_IMPORTANCE, Filter, Probe, Query
from ragdocs.verbs.page import MOST_RESULTS
from ragdocs.verbs.quality.measures import DEEP, Difference, compare, ndcg

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS = 1200
# Days from the last thing that a question is about to the question.
SOON, LATE = timedelta(days=1), timedelta(days=30)
# How often a memory that answers some question is marked as important, how often any other one, and
# with what.
TELLING, OTHERS, IMPORTANT = 0.6, 0.2, 8.0
OFF: Mapping[str, Mapping[str, Any]] = {
    "recency": {"recency_days": 0},
    "links": {"graph_weight": 0.0},
    "cap": {"per_document": MOST_RESULTS},
    "time": {"time_weight": 0.0},
}
COSTS = ("recency", "time", "importance", "links", "cap")
UNLINKED = "no link"
# Points that a signal may cost where it should not matter.
MOST_LOST = 1.0

Grades = Mapping[str, int]
Ranked = list[str]


@dataclass(frozen=True, slots=True)
class Slice:
    """Questions for which a signal should matter.

    What was measured of each, with it and without it.
    """

    name: str
    signal: str
    measure: str
    with_it: Sequence[float]
    without: Sequence[float]


@dataclass(slots=True)
class Outcome:
    """What became of one set.

    NDCG@10 as shipped, what each signal costs there, and slices where it should gain.
    """

    name: str
    questions: int
    shipped: float
    costs: dict[str, Difference] = field(default_factory=dict)
    slices: list[Slice] = field(default_factory=list)


class Asker:
    """Asks a project with one signal or another switched off.

    A passage is named by its document.
    """

    def __init__(self, project: Project, most: int) -> None:
        chosen = project.chosen
        step = max(1, len(chosen.questions) // most)
        self.questions = list(chosen.questions)[::step][:most]
        self.project = project
        self.grades = chosen.grades
        self.written = {
            item.id: _projects.moment(item.metadata.get("date")) for item in chosen.documents
        }
        self._lane = project.corpus.lane
        self.has_recency = self._lane.ranking.recency_days > 0

    def newest(self, question: Item) -> datetime:
        """Return when the last of what answers a question was written."""
        return max(at for id_ in self.grades[question.id] if (at := self.written[id_]))

    def passages(
        self,
        question: Item,
        off: str = "",
        at: datetime | None = None,
        earned: Mapping[str, float] | None = None,
    ) -> Ranked:
        """Return the documents of the passages found.

        With a moment, among what had been written by then.
        """
        corpus = self.project.corpus
        corpus.lane = replace(self._lane, ranking=replace(self._lane.ranking, **OFF.get(off, {})))
        where = Filter(prefix=self.project.prefix(question), until=at)
        query = Query(
            probes=(Probe(question.text),), limit=MOST_RESULTS, where=where, earned=earned or {}
        )
        found = corpus.search(query, at or self.project.asked_at(question))
        return [self.project.ids[hit.document.path] for hit in found.hits]

    def scores(
        self, ask: Callable[[Item], Ranked], questions: Iterable[Item] | None = None
    ) -> list[float]:
        """Return nDCG@10 of questions, asked in some way."""
        asked = self.questions if questions is None else questions
        return [_ndcg(ask(question), self.grades[question.id]) for question in asked]


def main() -> None:
    options = _options()
    folders = [
        f
        for f in _labelled.folders(options.data)
        if not options.only or f.name in options.only.split(",")
    ]
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="ragdocs-bench-") as scratch:
        work = (options.work or Path(scratch)).resolve()
        _corpora.enter(work)
        for folder in folders:
            project = _projects.write(_labelled.read(folder), work / folder.name)
            project.corpus.sync()
            project.corpus.embed()
            outcomes.append(_outcome(Asker(project, options.queries)))
            _labelled.say(f"{folder.name:14} after {time.process_time():.0f} s cpu")
    printed = "\n\n".join([_costs(outcomes), _gains(outcomes), _verdicts(outcomes)])
    print(printed)
    if options.write:
        _report.replace_block(ROOT / "docs" / "quality.md", "signals", printed)


def _outcome(asker: Asker) -> Outcome:
    shipped = [asker.passages(question) for question in asker.questions]
    plain = [
        _ndcg(ranked, asker.grades[q.id])
        for ranked, q in zip(shipped, asker.questions, strict=True)
    ]
    outcome = Outcome(asker.project.chosen.name, len(asker.questions), float(np.mean(plain)))
    without_links = asker.scores(lambda q: asker.passages(q, "links"))
    outcome.costs["links"] = compare(plain, without_links)
    uncapped = [asker.passages(question, "cap") for question in asker.questions]
    scores = [
        _ndcg(ranked, asker.grades[q.id])
        for ranked, q in zip(uncapped, asker.questions, strict=True)
    ]
    outcome.costs["cap"] = compare(plain, scores)
    outcome.slices += _diversity(asker, shipped, uncapped)
    outcome.slices += _links(asker, plain, without_links)
    if asker.has_recency:
        outcome.slices += _recency(asker, outcome)
        outcome.slices += _time(asker, outcome, plain)
        outcome.slices += _importance(asker, outcome, plain)
    return outcome


def _diversity(asker: Asker, capped: Sequence[Ranked], free: Sequence[Ranked]) -> list[Slice]:
    """Look at the passages that an agent is given.

    How many documents they are of, and how many of the answers.
    """
    name = asker.project.chosen.name
    slices = []
    if any(one != other for one, other in zip(capped, free, strict=True)):
        distinct = ([float(len(set(ranked[:DEEP]))) for ranked in way] for way in (capped, free))
        slices.append(Slice(name, "cap", "documents among ten passages", *distinct))
    several = [
        i for i, question in enumerate(asker.questions) if len(asker.grades[question.id]) > 1
    ]
    if several and slices:
        recall = (
            [_recall(way[i], asker.grades[asker.questions[i].id]) for i in several]
            for way in (capped, free)
        )
        slices.append(Slice(f"{name}, several answers", "cap", "recall in ten passages", *recall))
    return slices


def _links(asker: Asker, with_links: Sequence[float], without: Sequence[float]) -> list[Slice]:
    """Tell questions whose own link is still there from those whose answer is linked from elsewhere, or not at all."""
    links = {
        item.id: set(item.metadata.get("links", ())) for item in asker.project.chosen.documents
    }
    if not any(links.values()):
        return []
    linked = set().union(*links.values())
    parts: dict[str, list[int]] = {}
    for place, question in enumerate(asker.questions):
        answers = asker.grades[question.id]
        own = any(
            id_ in links.get(source, ())
            for source in question.metadata.get("source", ())
            for id_ in answers
        )
        part = (
            "its own link is kept"
            if own
            else "linked from elsewhere"
            if linked.intersection(answers)
            else UNLINKED
        )
        parts.setdefault(part, []).append(place)
    name = asker.project.chosen.name
    return [
        Slice(
            f"{name}, {part}",
            "links",
            "nDCG@10",
            [with_links[i] for i in places],
            [without[i] for i in places],
        )
        for part, places in sorted(parts.items())
    ]


def _recency(asker: Asker, outcome: Outcome) -> list[Slice]:
    """Ask the day after and a month after what a question is about.

    Of the memories that there were by then.
    """
    dated = [
        question
        for question in asker.questions
        if any(asker.written[id_] for id_ in asker.grades[question.id])
    ]

    def both(wait: timedelta) -> tuple[list[float], list[float]]:
        on, off = (
            asker.scores(lambda q, off=off: asker.passages(q, off, asker.newest(q) + wait), dated)  # type: ignore[misc]
            for off in ("", "recency")
        )
        return on, off

    outcome.costs["recency"] = compare(*both(LATE))
    on, off = both(SOON)
    kinds = [str(question.metadata.get("kind", "")) for question in dated]
    slices = [Slice(f"{outcome.name}, asked the day after", "recency", "nDCG@10", on, off)]
    for kind in sorted({kind for kind in kinds if kind.startswith("temporal")}):
        rows = [i for i, one in enumerate(kinds) if one == kind]
        name = f"{outcome.name}, asked the day after, {kind}"
        slices.append(
            Slice(name, "recency", "nDCG@10", [on[i] for i in rows], [off[i] for i in rows])
        )
    updates = [q for q, kind in zip(dated, kinds, strict=True) if kind == "knowledge-update"]
    updates = [
        question
        for question in updates
        if asker.newest(question) <= asker.project.asked_at(question)
    ]
    if updates:
        ways = ([_update(asker, question, off) for question in updates] for off in ("", "recency"))
        slices.append(
            Slice(f"{outcome.name}, knowledge-update", "recency", "nDCG@10 of the newest", *ways)
        )
    return slices


def _update(asker: Asker, question: Item, off: str) -> float:
    """Ask at the moment that the set says; only the newest of what answers is what is wanted."""
    newest = asker.newest(question)
    wanted = {id_: 1 for id_ in asker.grades[question.id] if asker.written[id_] == newest}
    return _ndcg(asker.passages(question, off, asker.project.asked_at(question)), wanted)


def _time(asker: Asker, outcome: Outcome, plain: Sequence[float]) -> list[Slice]:
    """Look at all questions, and at those that name a time before they were asked."""
    without = asker.scores(lambda q: asker.passages(q, "time"))
    outcome.costs["time"] = compare(plain, without)
    named = [
        i for i, q in enumerate(asker.questions) if times.span(q.text, asker.project.asked_at(q))
    ]
    if not named:
        return []
    name = f"{outcome.name}, a time is named"
    return [Slice(name, "time", "nDCG@10", [plain[i] for i in named], [without[i] for i in named])]


def _importance(asker: Asker, outcome: Outcome, plain: Sequence[float]) -> list[Slice]:
    """Give memories an importance.

    Any at random, or more often to those that answer some question.
    """
    rng = np.random.default_rng(7)
    ids = {asker.project.ids[card.path]: card.id for card in asker.project.corpus.index.documents()}
    drawn = {own: float(rng.integers(1, 11)) - UNSAID_IMPORTANCE for own in ids.values()}
    outcome.costs["importance"] = compare(
        asker.scores(lambda q: asker.passages(q, earned=drawn)), plain
    )
    answers = {id_ for grades in asker.grades.values() for id_ in grades}
    marked = [
        own for id_, own in ids.items() if rng.random() < (TELLING if id_ in answers else OTHERS)
    ]
    told = dict.fromkeys(marked, IMPORTANT - UNSAID_IMPORTANCE)
    on = asker.scores(lambda q: asker.passages(q, earned=told))
    return [Slice(f"{outcome.name}, marked", "importance", "nDCG@10", on, plain)]


def _ndcg(passages: Sequence[str], grades: Grades) -> float:
    return ndcg(list(dict.fromkeys(passages))[:DEEP], grades)


def _recall(passages: Sequence[str], grades: Grades) -> float:
    return len(grades.keys() & set(passages[:DEEP])) / len(grades)


def _costs(outcomes: Sequence[Outcome]) -> str:
    head = ("set", "questions", "nDCG@10", *COSTS)
    lines = [
        (
            outcome.name,
            f"{outcome.questions:,}",
            f"{outcome.shipped:.4f}",
            *(str(outcome.costs[signal]) if signal in outcome.costs else "off" for signal in COSTS),
        )
        for outcome in outcomes
    ]
    words = (
        "What each signal adds where it should not matter, in points of nDCG@10, paired by question, ± the standard "
        f"error. Recency: asked {LATE.days} days after the last thing that the question is about, of the memories that "
        "there were by then. Importance: every memory has one from 1 to 10 at random. The time that a question names, "
        "links, and the cap on passages of one document: all questions; a set without links has nothing to lose."
    )
    return f"{grid(head, lines)}\n\n{words}"


def _gains(outcomes: Sequence[Outcome]) -> str:
    head = (
        "where it should matter",
        "signal",
        "measure",
        "questions",
        "without",
        "with",
        "difference",
        "p",
    )
    lines = []
    for one in (one for outcome in outcomes for one in outcome.slices):
        gained = compare(one.with_it, one.without)
        scale = 1.0 if one.measure.startswith("documents") else 100.0
        points = f"{gained.points / 100 * scale:+.1f} ± {gained.error / 100 * scale:.1f}"
        p = f"{gained.chance:.4f}" if gained.chance >= 0.001 else "< 0.001"
        means = (f"{np.mean(one.without):.3f}", f"{np.mean(one.with_it):.3f}")
        lines.append(
            (one.name, one.signal, one.measure, f"{len(one.with_it):,}", *means, points, p)
        )
    words = (
        "Differences are in points, those of documents in documents. Recency: asked the day after the last thing that "
        "the question is about, of the memories that there were by then; for a knowledge update, when the set says, "
        "and only the newest answer counts. Importance: no set has labels for it, so 60 % of the memories that answer "
        f"some question and 20 % of the others were marked with {IMPORTANT:.0f}. Links: questions of k8s-links are the "
        "words of a link, which was taken out of its page; of some pages the set still knows where they lead."
    )
    return f"{grid(head, lines)}\n\n{words}"


def _verdicts(outcomes: Sequence[Outcome]) -> str:
    every = {
        signal: {
            outcome.name: outcome.costs[signal] for outcome in outcomes if signal in outcome.costs
        }
        for signal in COSTS
    }
    slices = [one for outcome in outcomes for one in outcome.slices if one.name.endswith(UNLINKED)]
    # Links should matter least to what nobody links to, and there they can only lift something
    # else.
    every["links, to what has none"] = {
        f"{one.name}, {len(one.with_it)} questions": compare(one.with_it, one.without)
        for one in slices
    }
    lines = []
    for signal, told in every.items():
        if told:
            worst = min(told, key=lambda name: told[name].points)
            verdict = "pass" if told[worst].points >= -MOST_LOST else "MISS"
            lines.append(
                f"- {signal}: at worst {told[worst]} points ({worst}; bar -{MOST_LOST:g}): {verdict}"
            )
    return "\n".join(lines)


def _options() -> argparse.Namespace:
    parser = _labelled.parser("signals", __doc__, "quality.md")
    parser.add_argument("--only", help="some sets, by commas")
    parser.add_argument("--queries", type=int, default=QUESTIONS, help="questions a set at most")
    return parser.parse_args()


if __name__ == "__main__":
    main()
