"""Measures what words find in documentation that is not English.

Known-item questions are made from the pages themselves: a heading, or a sentence, that is taken out
of its page. Our words alone stand beside another keyword engine with the settings that are usual
for the language: a Snowball stemmer and its stop words, or pairs of characters.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from bench import _baselines, _corpora, _known_items, _labelled, _projects, _report
from bench._labelled import Item, Labelled
from bench._measure import grid
from bench._projects import Project

from ragdocs.verbs.quality.measures import DEEP, Measures, compare, measure

ROOT = Path(__file__).resolve().parent.parent
TREES = _labelled.DATA / "trees"
# What a language is called by the other engine and by its stemmer.
NAMES = {
    "da": "danish",
    "de": "german",
    "en": "english",
    "es": "spanish",
    "fr": "french",
    "it": "italian",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ru": "russian",
    "sv": "swedish",
}
WORDS, MEANING, OURS, PLAIN = "words alone", "meaning alone", "ours", "bm25s"
_CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+")
_WORD = re.compile(r"\w+")

Ways = dict[str, Callable[[Item], list[str]]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What every way made of every question of a language."""

    language: str
    passages: int
    kinds: Sequence[str]
    found: dict[str, list[Measures]]

    def ndcg(self, way: str, kind: str = "") -> list[float]:
        """Return nDCG@10 of each question of a kind, or of all."""
        values = []
        for one, of_kind in zip(self.found[way], self.kinds, strict=True):
            if kind in ("", of_kind):
                values.append(one.ndcg_10)
        return values

    def cells(self, way: str) -> list[str]:
        """Return the mean of nDCG@10 and of the reciprocal rank."""
        ranks = [one.mrr_10 for one in self.found[way]]
        return [f"{np.mean(self.ndcg(way)):.4f}", f"{np.mean(ranks):.4f}"]


def main() -> None:
    options = _options()
    sets = _sets(options.pages, options.only, options.queries)
    if not sets:
        raise SystemExit(f"ABSENT: no pages in {options.pages}; name them with --pages")
    with tempfile.TemporaryDirectory(prefix="ragdocs-bench-") as scratch:
        work = (options.work or Path(scratch)).resolve()
        _corpora.enter(work)
        outcomes = []
        for chosen in sets:
            project = _projects.write(chosen, work / chosen.name)
            outcomes.append(_outcome(project, chosen, meaning=options.meaning))
        tables = [_table("Each language by itself", outcomes)]
        if len(sets) > 1 and not options.apart:
            whole = _known_items.joined(sets)
            project = _projects.write(whole, work / whole.name)
            outcomes = [_outcome(project, one, meaning=options.meaning) for one in sets]
            tables.append(_table("All languages in one project", outcomes))
    printed = "\n\n".join(tables)
    print(printed)
    if options.write:
        command = "python3 tasks.py bench languages"
        if options.apart:
            command += " --apart"
        body = f"`{command}`\n\n{printed}"
        _report.replace_block(ROOT / "docs" / "internals" / "quality.md", "languages", body)
    _labelled.say(f"{time.process_time() / 60:.1f} processor minutes")


def _sets(pages: Path, only: str | None, most: int) -> list[Labelled]:
    if not pages.exists():
        return []
    sets = []
    for language, texts in sorted(_known_items.texts(pages).items()):
        if only and language not in only.split(","):
            continue
        chosen = _known_items.labelled(language, texts)
        sets.append(chosen.sample(10**9, most))
    return sets


def _outcome(project: Project, asked: Labelled, *, meaning: bool) -> Outcome:
    started = time.monotonic()
    project.corpus.sync()
    if meaning:
        project.corpus.embed()
    ways = _ways(project, asked.name, meaning=meaning)
    found: dict[str, list[Measures]] = {way: [] for way in ways}
    for question in asked.questions:
        for way, ask in ways.items():
            ranked = ask(question)[:DEEP]
            found[way].append(measure(ranked, asked.grades[question.id]))
    passages = project.corpus.index.info().passages
    seconds = time.monotonic() - started
    _labelled.say(f"{asked.name}: {len(asked.questions)} questions after {seconds:.0f} s")
    kinds = [str(question.metadata["kind"]) for question in asked.questions]
    return Outcome(asked.name, passages, kinds, found)


def _ways(project: Project, language: str, *, meaning: bool) -> Ways:
    ways: Ways = {WORDS: lambda question: project.find(question, (0.0, 1.0))}
    if meaning:
        ways[MEANING] = lambda question: project.find(question, (1.0, 0.0))
        ways[OURS] = project.find
    if find_spec("bm25s") and find_spec("Stemmer"):
        ways[PLAIN] = _baselines.keyword_engine(project, _tokens(language))
    return ways


def _tokens(language: str) -> Callable[[Sequence[str]], Any]:
    """Return how texts are cut into tokens, as it is usual for a language."""
    name = NAMES.get(language.partition("-")[0])
    if name is None:
        return lambda texts: [_pairs(text) for text in texts]
    engine, stemmers = import_module("bm25s"), import_module("Stemmer")

    def tokens(texts: Sequence[str]) -> Any:
        return engine.tokenize(
            list(texts),
            stopwords=name,
            stemmer=stemmers.Stemmer(name),
            show_progress=False,
            return_ids=False,
        )

    return tokens


def _pairs(text: str) -> list[str]:
    """Cut a text into words, and into pairs of characters where it has no spaces."""
    tokens = []
    position = 0
    text = text.lower()
    for match in _CJK.finditer(text):
        tokens += _WORD.findall(text[position : match.start()])
        position = match.end()
        run = match.group()
        tokens += [first + second for first, second in pairwise(run)] or [run]
    return tokens + _WORD.findall(text[position:])


def _table(title: str, outcomes: Sequence[Outcome]) -> str:
    ways = list(outcomes[0].found)
    head = ["language", "passages", "questions"]
    for way in ways:
        head += [f"{way}: nDCG@10", "MRR@10"]
    if PLAIN in ways:
        head += [f"words - {PLAIN}", "headings", "sentences"]
    lines = []
    for outcome in outcomes:
        cells = [outcome.language, f"{outcome.passages:,}", f"{len(outcome.kinds):,}"]
        for way in ways:
            cells += outcome.cells(way)
        if PLAIN in ways:
            for kind in ("", "heading", "sentence"):
                cells.append(str(compare(outcome.ndcg(WORDS, kind), outcome.ndcg(PLAIN, kind))))
        lines.append(cells)
    text = f"{title}\n\n{grid(head, lines)}"
    if PLAIN not in ways:
        return f"{text}\n\nAnother keyword engine: ABSENT, {_baselines.INSTALL}"
    return f"{text}\n\nDifferences are points of nDCG@10, paired by question, ± the standard error."


def _options() -> Any:
    parser = _labelled.parser("languages", __doc__, "internals/quality.md")
    parser.add_argument(
        "--pages",
        type=Path,
        default=TREES / _known_items.ARCHIVE,
        help="an archive of translated pages, or a folder with one folder for each language",
    )
    parser.add_argument("--only", help="some languages, by commas")
    parser.add_argument("--queries", type=int, default=10**9, help="questions a language at most")
    parser.add_argument("--apart", action="store_true", help="no project of all languages")
    parser.add_argument("--meaning", action="store_true", help="search by meaning as well")
    return parser.parse_args()


if __name__ == "__main__":
    main()
