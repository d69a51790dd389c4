"""Measures whether a search finds the right section of real documentation, and the answer in it.

Each project is indexed as it is; `search_docs` answers with what an agent would get. A hit is right
if the passage that matched overlaps a labelled section. The answer is found if a labelled phrase is
among the first characters of the whole answer.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bench import _corpora, _everyday_questions, _labelled, _report, _section_labels
from bench._measure import grid
from bench._section_labels import Lines, Question, Tree

from ragdocs import config
from ragdocs.serve.surface import Ask
from ragdocs.serve.surface.docs import search_docs
from ragdocs.serve.surface.present import docs as present_docs
from ragdocs.workspace import Workspace

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 5
DEPTHS = (1, 3, 5)
# The bars of the mean, for each depth.
BARS = (0.65, 0.85, 0.92)
# Characters of an answer that are read; four are about one token of English.
BUDGETS = (2_000, 4_000, 6_000, 10_000)
_QUOTE = re.compile(r"^ {3}\| ?", re.MULTILINE)
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one question."""

    project: str
    question: Question
    # The rank of the first right hit, 0 without one.
    rank: int
    # Whether the page was right, at whatever section, at each depth.
    page_rank: int
    # Whether the phrase is within each budget.
    answered: Sequence[bool]
    cost: int
    hits: Sequence[Mapping[str, Any]]


def main() -> None:
    options = _options()
    trees = _section_labels.trees()
    if options.only:
        trees = [tree for tree in trees if tree.name in options.only.split(",")]
    outcomes: list[Outcome] = []
    sizes: dict[str, int] = {}
    everyday: dict[str, float] = {}
    absent = []
    with tempfile.TemporaryDirectory(prefix="ragdocs-bench-") as scratch:
        work = (options.work or Path(scratch)).resolve()
        _corpora.enter(work)
        for tree in trees:
            source = options.trees / tree.name
            if not source.is_dir():
                absent.append(tree.name)
                continue
            workspace = _indexed(tree, source, work / tree.name)
            sizes[tree.name] = workspace.open_lanes["docs"].corpus.info().passages
            asked = [one for one in tree.questions if options.split in ("all", one.split)]
            outcomes += [_ask(workspace, tree.name, question) for question in asked]
            everyday[tree.name] = _answered_everyday(workspace)
    for name in absent:
        print(f"{name}: ABSENT, no folder of that name in {options.trees}")
    if not outcomes:
        return
    printed = "\n\n".join([_table(outcomes, sizes, everyday), *_verdicts(outcomes, options.split)])
    print(printed)
    if options.show:
        print(_failures(outcomes))
    if options.write:
        body = f"`{_command(options)}`\n\n{printed}"
        _report.replace_block(ROOT / "docs" / "internals" / "quality.md", "sections", body)


def _indexed(tree: Tree, source: Path, root: Path) -> Workspace:
    started = time.monotonic()
    _section_labels.copy(tree, source, root)
    _corpora.configure(root, "docs")
    workspace = Workspace(config.load(root, project=root))
    corpus = workspace.open_lanes["docs"].corpus
    corpus.sync()

    def progress(what: str, done: int, of: int) -> None:
        if done % 512 < 64:
            _labelled.say(f"{tree.name:14} {what} {done:6,} of {of:,}")

    corpus.embed(progress)
    seconds = time.monotonic() - started
    _labelled.say(f"{tree.name:14} {corpus.info().passages:,} passages after {seconds:.0f} s")
    return workspace


def _answered_everyday(workspace: Workspace) -> float:
    """Return the share of everyday questions, which no project answers, that find something."""
    found = []
    for question in _everyday_questions.QUESTIONS:
        answer = search_docs(Ask(workspace=workspace), question, LIMIT)
        found.append(bool(answer["result"]))
    return float(np.mean(found))


def _ask(workspace: Workspace, project: str, question: Question) -> Outcome:
    root = workspace.config.root
    answer = search_docs(Ask(workspace=workspace), question.text, LIMIT)
    hits = answer["result"]
    labels: dict[str, list[Lines]] = {}
    for label in question.right:
        path = label.partition("#")[0]
        labels.setdefault(path, []).append(_section_labels.section_lines(root, label))
    rank = page_rank = 0
    for place, hit in enumerate(hits, start=1):
        sections = labels.get(hit["path"], [])
        if sections:
            page_rank = page_rank or place
        if any(_overlap(_matched(hit), lines) for lines in sections):
            rank = rank or place
    text = present_docs.documents(answer)
    phrases = [_plain(phrase) for phrase in question.phrases]
    answered = []
    for budget in BUDGETS:
        read = _plain(text[:budget])
        answered.append(any(phrase in read for phrase in phrases))
    return Outcome(project, question, rank, page_rank, answered, len(text), hits)


def _matched(hit: Mapping[str, Any]) -> Lines:
    """Return the lines of the passage that matched, which may be fewer than are shown."""
    first, _, last = str(hit.get("matched") or hit["lines"]).partition("-")
    return int(first), int(last or first)


def _overlap(one: Lines, other: Lines) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def _plain(text: str) -> str:
    return _SPACE.sub(" ", _QUOTE.sub("", text)).casefold()


def _table(
    outcomes: Sequence[Outcome], sizes: Mapping[str, int], everyday: Mapping[str, float]
) -> str:
    head = ["project", "passages", "questions"]
    head += [f"section in {depth}" for depth in DEPTHS]
    head += ["page in 5", "nothing", "everyday"]
    head += [*(f"answer in {budget:,}" for budget in BUDGETS), "characters"]
    lines = []
    means = []
    for name, passages in sizes.items():
        mine = [one for one in outcomes if one.project == name]
        if not mine:
            continue
        measures = _measures(mine, everyday[name])
        means.append(measures)
        lines.append([name, f"{passages:,}", str(len(mine)), *map(_share, measures[:-1])])
        lines[-1].append(f"{measures[-1]:,.0f}")
    mean = np.mean(np.array(means), axis=0).tolist()
    total = [*map(_share, mean[:-1]), f"{mean[-1]:,.0f}"]
    lines.append(["mean", f"{sum(sizes.values()):,}", str(len(outcomes)), *total])
    words = (
        "Section and page: share of questions with the right one among so many hits. Nothing: share "
        "that no passage was relevant enough for. Everyday: share of "
        f"{len(_everyday_questions.QUESTIONS)} everyday questions that found something. Answer: "
        "share with a labelled phrase among the first characters of the answer as text, with its "
        f"headings and reasons, at {LIMIT} hits. Characters: length of the whole answer."
    )
    return f"{grid(head, lines)}\n\n{words}"


def _measures(outcomes: Sequence[Outcome], everyday: float) -> list[float]:
    found = [_within(outcomes, depth) for depth in DEPTHS]
    found.append(float(np.mean([one.page_rank > 0 for one in outcomes])))
    found.append(float(np.mean([not one.hits for one in outcomes])))
    found.append(everyday)
    for number in range(len(BUDGETS)):
        found.append(float(np.mean([one.answered[number] for one in outcomes])))
    found.append(float(np.mean([one.cost for one in outcomes])))
    return found


def _within(outcomes: Sequence[Outcome], depth: int) -> float:
    return float(np.mean([0 < one.rank <= depth for one in outcomes]))


def _share(value: float) -> str:
    return f"{value:.2f}"


def _verdicts(outcomes: Sequence[Outcome], split: str) -> list[str]:
    names = sorted({one.project for one in outcomes})
    rows = []
    for half in ("dev", "test"):
        if split not in ("all", half):
            continue
        mine = [one for one in outcomes if one.question.split == half]
        parts = []
        for depth, bar in zip(DEPTHS, BARS, strict=True):
            by_project = []
            for name in names:
                asked = [one for one in mine if one.project == name]
                if asked:
                    by_project.append(_within(asked, depth))
            mean = float(np.mean(by_project))
            verdict = "pass" if mean >= bar else "MISS"
            parts.append(f"{mean:.3f} in {depth} (bar {bar}: {verdict})")
        rows.append(f"- {half}, {len(mine)} questions, mean of projects: {', '.join(parts)}")
    return ["\n".join(rows)]


def _failures(outcomes: Sequence[Outcome]) -> str:
    rows = []
    for one in outcomes:
        if one.rank == 1 and one.answered[-1]:
            continue
        answers = " ".join("+" if answered else "-" for answered in one.answered)
        rows.append(f"\n{one.project} {one.question.split}: {one.question.text}")
        rows.append(f"  right: {'; '.join(one.question.right)}")
        rows.append(f"  section at {one.rank}, page at {one.page_rank}, answered {answers}")
        for hit in one.hits:
            rows.append(f"    {hit['score']:.2f} {hit['path']}:{hit['lines']} {hit['header_path']}")
    return "\n".join(rows)


def _command(options: argparse.Namespace) -> str:
    words = ["python3 tasks.py bench sections --trees DIR"]
    if options.only:
        words.append(f"--only {options.only}")
    return " ".join(words)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 tasks.py bench sections", description=__doc__)
    parser.add_argument(
        "--trees",
        type=Path,
        default=_labelled.DATA / "trees",
        help="a folder with one unpacked folder for each project",
    )
    parser.add_argument("--work", type=Path, help="keep projects and vectors here")
    parser.add_argument("--only", help="some projects, by commas")
    parser.add_argument("--split", choices=("all", "dev", "test"), default="all")
    parser.add_argument("--show", action="store_true", help="print the questions that failed")
    parser.add_argument(
        "--write", action="store_true", help="put the tables into docs/internals/quality.md"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
