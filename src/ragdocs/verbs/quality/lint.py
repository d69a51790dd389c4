"""What is wrong with texts: problems, links that lead nowhere, and secrets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragdocs.search.corpus import Corpus
from ragdocs.verbs.quality import health
from ragdocs.verbs.quality.dead_links import dead_links


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a text; 0 where no line can be named."""

    path: str
    line: int
    text: str


def problems_of(corpus: Corpus) -> list[Problem]:
    """List what was found when the texts of a lane were read."""
    problems = []
    for path, reasons in health.problems(corpus).items():
        for reason in reasons:
            problems.append(Problem(corpus.store.locate(path), 0, reason))
    return problems


def dead_ends(root: Path, corpus: Corpus, corpora: Sequence[Corpus]) -> list[Problem]:
    """List the links of documents that lead nowhere; wikilinks may lead into any of `corpora`."""
    problems = []
    for path, links in dead_links(root, corpus, corpora).items():
        for link in links:
            problems.append(Problem(corpus.store.locate(path), link.line, link.reason))
    return problems


def leaks(corpus: Corpus) -> list[Problem]:
    """List the secrets in the texts of a lane, and in those that it keeps of the past."""
    problems = []
    for leak in health.secrets(corpus):
        problems.append(Problem(leak.path, leak.line, leak.rule))
    return problems


def by_path(problems: Iterable[Problem]) -> list[Problem]:
    """Put the problems of one text together, at the place of its first."""
    paths: dict[str, list[Problem]] = {}
    for problem in problems:
        paths.setdefault(problem.path, []).append(problem)
    ordered: list[Problem] = []
    for problems_of_path in paths.values():
        ordered += problems_of_path
    return ordered
