"""Measures what is found on labelled sets, through the product's own pipeline.

Every set becomes a project on disk. One table: words alone, meaning alone, our search, and the
usual way to join the two; then our words beside another keyword engine over the same passages.
Differences are paired, question by question.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from bench import _baselines, _corpora, _labelled, _precision, _projects, _report
from bench._labelled import Labelled
from bench._measure import grid
from bench._projects import Project

from ragdocs.verbs.quality.measures import DEEP, Difference, Measures, compare, measure

# What RRF joins elsewhere: an ordinary keyword engine and the same vectors.
BM25S, PLAIN = "bm25s", "RRF of bm25s"
# What our search must gain on that, in points on the mean of all sets.
BAR = 5
ROOT = Path(__file__).resolve().parent.parent
WORDS, MEANING, OURS, RRF = "words alone", "meaning alone", "ours", "RRF, k = 60"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What every way made of every question of a set."""

    name: str
    kinds: Sequence[str]
    # Words of each question.
    lengths: Sequence[int]
    chunks: int
    found: Mapping[str, Sequence[Measures]]

    def ndcg(self, way: str) -> list[float]:
        """Return nDCG@10 of each question."""
        return [one.ndcg_10 for one in self.found[way]]

    def mean(self, way: str) -> float:
        """Return the mean of nDCG@10."""
        return float(np.mean(self.ndcg(way)))

    def better_leg(self) -> str:
        """Return the leg that finds more by itself."""
        return max((WORDS, MEANING), key=self.mean)

    def gain(self, way: str, other: str) -> Difference:
        """Return what a way gains on another."""
        return compare(self.ndcg(way), self.ndcg(other))


def main() -> None:
    options = _options()
    folders = _labelled.folders(options.data)
    if options.only:
        folders = [folder for folder in folders if folder.name in options.only.split(",")]
    with tempfile.TemporaryDirectory(prefix="ragdocs-bench-") as scratch:
        work = (options.work or Path(scratch)).resolve()
        _corpora.enter(work)
        if options.precision:
            sets = [_sample(_labelled.read(folder), options) for folder in folders]
            print(_precision.table(_precision.gains(sets, work)))
            return
        outcomes = []
        pasted = []
        for folder in folders:
            chosen = _labelled.read(folder)
            if options.pasted:
                long = chosen.pasted(options.pasted)
                pasted += _asked_by_words(_projects.write(long, work / f"{folder.name}-pasted"))
                continue
            chosen = _sample(chosen, options)
            outcomes.append(_outcome(_projects.write(chosen, work / folder.name)))
    if options.pasted:
        print(_pasted_table(pasted))
        return
    parts = (_table, _engines, _slices, _by_length, _only_by_meaning, _verdicts)
    printed = "\n\n".join(part(outcomes) for part in parts)
    print(printed)
    _labelled.say(f"{time.process_time() / 60:.1f} processor minutes")
    if options.write:
        body = f"`{_command(options)}`\n\n{printed}"
        _report.replace_block(ROOT / "docs" / "internals" / "quality.md", "quality", body)


def _sample(chosen: Labelled, options: argparse.Namespace) -> Labelled:
    if options.documents or options.queries:
        return chosen.sample(options.documents or 10**9, options.queries or 10**9)
    return chosen


def _outcome(project: Project) -> Outcome:
    corpus, name = project.corpus, project.chosen.name
    started = time.monotonic()
    corpus.sync()

    def progress(what: str, done: int, of: int) -> None:
        if done % 1024 < 64:
            _labelled.say(f"{name:14} {what} {done:6,} of {of:,}")

    corpus.embed(progress)
    chunks = corpus.index.info().passages
    _labelled.say(f"{name:14} {chunks:,} chunks after {time.monotonic() - started:.0f} s")
    found: dict[str, list[Measures]] = {}
    plain = _baselines.bm25s(project)
    for question in project.chosen.questions:
        words = project.find(question, (0.0, 1.0))
        meaning = project.find(question, (1.0, 0.0))
        ranked = {WORDS: words, MEANING: meaning, OURS: project.find(question)}
        ranked[RRF] = _baselines.rrf((words, meaning))
        if plain:
            ranked[BM25S] = plain(question)
            ranked[PLAIN] = _baselines.rrf((ranked[BM25S], meaning))
        grades = project.chosen.grades[question.id]
        for way, documents in ranked.items():
            found.setdefault(way, []).append(measure(documents[:DEEP], grades))
    seconds = time.monotonic() - started
    _labelled.say(f"{name:14} {len(project.chosen.questions):,} questions after {seconds:.0f} s")
    kinds = [str(question.metadata.get("kind", "")) for question in project.chosen.questions]
    lengths = [len(question.text.split()) for question in project.chosen.questions]
    return Outcome(name, kinds, lengths, chunks, found)


def _asked_by_words(project: Project) -> list[Outcome]:
    """Ask pasted texts by words alone, if the set has documents long enough and bm25s is there."""
    questions = project.chosen.questions
    if not questions:
        return []
    project.corpus.sync()
    plain = _baselines.bm25s(project)
    if plain is None:
        raise SystemExit(f"ABSENT: another keyword engine, {_baselines.INSTALL}")
    found: dict[str, list[Measures]] = {WORDS: [], BM25S: []}
    for question in questions:
        grades = project.chosen.grades[question.id]
        ways = {WORDS: project.find(question, (0.0, 1.0)), BM25S: plain(question)}
        for way, documents in ways.items():
            found[way].append(measure(documents[:DEEP], grades))
    lengths = [len(question.text.split()) for question in questions]
    _labelled.say(f"{project.chosen.name:14} {len(questions):,} pasted texts")
    return [Outcome(project.chosen.name, [""] * len(questions), lengths, 0, found)]


def _pasted_table(outcomes: Sequence[Outcome]) -> str:
    lines = []
    for outcome in outcomes:
        gained = outcome.gain(WORDS, BM25S)
        means = f"{outcome.mean(WORDS):.4f}", f"{outcome.mean(BM25S):.4f}"
        lines.append((outcome.name, f"{len(outcome.lengths):,}", *means, str(gained), _p(gained)))
    words = (
        f"nDCG@10 of words alone: {_labelled.PASTED_WORDS} words cut out of the middle of a "
        "document look for the rest of it."
    )
    head = ("set", "pasted texts", WORDS, BM25S, "ours - it", "p")
    return f"{grid(head, lines)}\n\n{words}"


def _table(outcomes: Sequence[Outcome]) -> str:
    plain = (PLAIN,) if _has_plain(outcomes) else ()
    ways = (WORDS, MEANING, OURS, RRF, *plain)
    others = (*plain, RRF)
    head = ["set", "chunks", "questions", *ways]
    for way in (*others, "better leg"):
        head += [f"ours - {way}", "p"]
    lines = []
    for outcome in outcomes:
        cells = [outcome.name, f"{outcome.chunks:,}", f"{len(outcome.kinds):,}"]
        cells += [f"{outcome.mean(way):.4f}" for way in ways]
        for way in (*others, outcome.better_leg()):
            gained = outcome.gain(OURS, way)
            cells += [str(gained), _p(gained)]
        lines.append(cells)
    cells = ["mean", "", ""]
    cells += [f"{np.mean([outcome.mean(way) for outcome in outcomes]):.4f}" for way in ways]
    for way in others:
        cells += [f"{_gain(outcomes, way):+.1f} ± {_error(outcomes, way):.1f}", ""]
    lines.append([*cells, "", ""])
    words = (
        "nDCG@10 over documents, a document where its best passage is. Differences are in points, "
        f"paired by question, ± the standard error; p by {10_000:,} random sign flips. RRF joins "
        f"our own two legs, which are better than usual ones; {PLAIN} joins an ordinary keyword "
        "engine with the same vectors."
    )
    return f"{grid(head, lines)}\n\n{words}"


def _engines(outcomes: Sequence[Outcome]) -> str:
    """Compare our words alone with another engine over the same passages."""
    if not _has_plain(outcomes):
        return f"Another keyword engine: ABSENT, {_baselines.INSTALL}"
    lines = []
    for outcome in outcomes:
        gained = outcome.gain(WORDS, BM25S)
        means = f"{outcome.mean(WORDS):.4f}", f"{outcome.mean(BM25S):.4f}"
        lines.append((outcome.name, *means, str(gained), _p(gained)))
    words = (
        "nDCG@10 of words alone; the other has English stemming and stop words, and title, "
        "headings and text as one."
    )
    return f"{grid(('set', WORDS, BM25S, 'ours - it', 'p'), lines)}\n\n{words}"


def _has_plain(outcomes: Sequence[Outcome]) -> bool:
    return all(PLAIN in outcome.found for outcome in outcomes)


def _slices(outcomes: Sequence[Outcome]) -> str:
    """Tell what our search finds of each kind of question, and how that compares."""
    names = ("Recall@5", "Recall@10", "MRR@10", "nDCG@10")
    head = ("set", "kind", "questions", *names, WORDS, MEANING, RRF)
    lines = []
    for outcome in outcomes:
        for kind in sorted(set(outcome.kinds)):
            places = [i for i, one in enumerate(outcome.kinds) if one == kind]
            mine = [outcome.found[OURS][i] for i in places]
            measures = ("recall_5", "recall_10", "mrr_10", "ndcg_10")
            means = [f"{np.mean([getattr(one, name) for one in mine]):.3f}" for name in measures]
            rest = []
            for way in (WORDS, MEANING, RRF):
                rest.append(f"{np.mean([outcome.found[way][i].ndcg_10 for i in places]):.3f}")
            lines.append((outcome.name, kind or "all", f"{len(places):,}", *means, *rest))
    words = "Our search by kind of question; the last three columns are nDCG@10."
    return f"{grid(head, lines)}\n\n{words}"


def _by_length(outcomes: Sequence[Outcome]) -> str:
    """Compare all ways by the number of words in a question, over all sets together."""
    ways = [WORDS, MEANING, OURS, RRF]
    if _has_plain(outcomes):
        ways += [BM25S, PLAIN]
    lines = []
    for least, most in pairwise((1, 8, 16, 32, 10**6)):
        by_way: dict[str, list[float]] = {way: [] for way in ways}
        for outcome in outcomes:
            places = [i for i, n in enumerate(outcome.lengths) if least <= n < most]
            for way in ways:
                by_way[way] += [outcome.found[way][i].ndcg_10 for i in places]
        count = len(by_way[OURS])
        if not count:
            continue
        words = f"{least} to {most - 1}" if most < 10**6 else f"{least} or more"
        cells = [f"{np.mean(by_way[way]):.3f}" for way in ways]
        lines.append((words, f"{count:,}", *cells))
    return f"{grid(('words', 'questions', *ways), lines)}\n\nnDCG@10 by length of the question."


def _only_by_meaning(outcomes: Sequence[Outcome]) -> str:
    """Tell what becomes of answers that one leg alone has among its first ten."""
    lines = []
    for outcome in outcomes:
        cells = [outcome.name]
        for finder, other in ((MEANING, WORDS), (WORDS, MEANING)):
            ways = outcome.found
            places = []
            for i, (one, two) in enumerate(zip(ways[finder], ways[other], strict=True)):
                if one.recall_10 and not two.recall_10:
                    places.append(i)
            cells.append(f"{len(places):,}")
            for way in (finder, OURS):
                found = [ways[way][i].ndcg_10 for i in places]
                cells.append(f"{np.mean(found):.3f}" if found else "-")
        lines.append(cells)
    head = ("set", "only meaning", MEANING, OURS, "only words", WORDS, OURS)
    words = (
        "nDCG@10 of questions whose answers only one of the two has among its first ten, by that "
        "one and by our search."
    )
    return f"{grid(head, lines)}\n\n{words}"


def _verdicts(outcomes: Sequence[Outcome]) -> str:
    sets = f"on the mean of {len(outcomes)} sets"
    lines = []
    if _has_plain(outcomes):
        gain, error = _gain(outcomes, PLAIN), _error(outcomes, PLAIN)
        bar = f"bar +{BAR}, over RRF of an ordinary keyword engine and the same vectors"
        over = f"{gain:+.2f} ± {error:.1f} points over {PLAIN} {sets}"
        lines.append(f"- {over} ({bar}): {_verdict(gain >= BAR)}")
    else:
        lines.append(f"- {PLAIN}: ABSENT, {_baselines.INSTALL}")
    gain, error = _gain(outcomes, RRF), _error(outcomes, RRF)
    lines.append(f"- {gain:+.2f} ± {error:.1f} points over RRF of our own two legs {sets}")
    for way, least in ((RRF, 0.0), (None, -1.0)):
        lines.append(_worst(outcomes, OURS, way, least))
    if _has_plain(outcomes):
        lines.append(_worst(outcomes, WORDS, BM25S, 0.0))
    return "\n".join(lines)


def _worst(outcomes: Sequence[Outcome], way: str, other: str | None, least: float) -> str:
    """Say what a way gains where it gains least on another, or on the better leg."""
    gains = {
        one.name: 100 * (one.mean(way) - one.mean(other or one.better_leg())) for one in outcomes
    }
    name = min(gains, key=lambda one: gains[one])
    than = "the better leg" if other is None else other
    at_worst = f"at worst {gains[name]:+.2f} points ({name}; bar {least:+g})"
    return f"- {way} against {than}, {at_worst}: {_verdict(gains[name] >= least)}"


def _gain(outcomes: Sequence[Outcome], other: str) -> float:
    return 100 * float(np.mean([outcome.mean(OURS) - outcome.mean(other) for outcome in outcomes]))


def _error(outcomes: Sequence[Outcome], other: str) -> float:
    errors = np.array([outcome.gain(OURS, other).error for outcome in outcomes])
    return float(np.sqrt((errors**2).sum()) / len(errors))


def _p(gained: Difference) -> str:
    return f"{gained.chance:.4f}" if gained.chance >= 0.001 else "< 0.001"


def _verdict(met: bool) -> str:
    return "pass" if met else "MISS"


def _command(options: argparse.Namespace) -> str:
    words = ["python3 tasks.py bench quality"]
    for name in ("documents", "queries", "only"):
        if value := getattr(options, name):
            words.append(f"--{name} {value}")
    return " ".join(words)


def _options() -> argparse.Namespace:
    parser = _labelled.parser("quality", __doc__, "internals/quality.md")
    parser.add_argument("--only", help="some sets, by commas")
    parser.add_argument("--documents", type=int, help="documents a set at most, with all answers")
    parser.add_argument("--queries", type=int, help="questions a set at most")
    parser.add_argument(
        "--precision",
        action="store_true",
        help="instead, compare the built-in encoder with the same model in full precision",
    )
    parser.add_argument(
        "--pasted", type=int, help="instead, ask so many pieces of documents by words alone"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
