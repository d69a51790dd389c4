"""What is wrong with texts: problems, links that lead nowhere, and secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragdocs.search.corpus import Corpus
from ragdocs.system.patterns import later
from ragdocs.verbs.quality.contradictions import Contradictions
from ragdocs.verbs.quality.dead_links import dead_links
from ragdocs.verbs.quality.problems import reasons_by_path

# Characters of a statement that is quoted.
LONGEST_STATEMENT = 120
# A problem that names the line it is about.
_LINE = later(r"line (?P<line>\d+): (?P<reason>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a text; 0 where no line can be named."""

    path: str
    line: int
    text: str
    rule: str = "text"
    # A note is for a person to decide; it is not a fault.
    is_note: bool = False


def problems_of(corpus: Corpus) -> list[Problem]:
    """List what was found when the texts of a lane were read."""
    problems = []
    for path, reasons in reasons_by_path(corpus).items():
        for reason in reasons:
            location = corpus.store.locate(path)
            located = _LINE.match(reason)
            if located:
                problems.append(Problem(location, int(located["line"]), located["reason"]))
            else:
                problems.append(Problem(location, 0, reason))
    return problems


def dead_ends(root: Path, corpus: Corpus, corpora: Sequence[Corpus]) -> list[Problem]:
    """List the links of documents that lead nowhere; wikilinks may lead into any of `corpora`."""
    problems = []
    for path, links in dead_links(root, corpus, corpora).items():
        for link in links:
            problems.append(Problem(corpus.store.locate(path), link.line, link.reason, "dead-link"))
    return problems


def leaks(corpus: Corpus) -> list[Problem]:
    """List the secrets in the texts of a lane, and in those that it keeps of the past."""
    from ragdocs.verbs.quality import health

    problems = []
    for leak in health.secrets(corpus):
        problems.append(Problem(leak.path, leak.line, leak.rule, "secret"))
    return problems


def contradictions(conflicts: Contradictions) -> list[Problem]:
    """List memories that contradict each other, for a person to decide which holds."""
    corpus = conflicts.corpus
    problems = []
    for item in conflicts.find():
        first = item.first
        second = item.second
        other = second.document.path
        text = f"says that it contradicts {other}"
        if first.text:
            other = f"{other}:{second.line}"
            text = f"may contradict {other} ({item.how}): {_short(first.text)}"
            text += f" / {_short(second.text)}"
        elif item.how:
            text = f"{item.how}: {first.document.path} and {other}"
        location = corpus.store.locate(first.document.path)
        problems.append(Problem(location, first.line, text, "contradiction", is_note=True))
    return problems


def _short(text: str) -> str:
    line = " ".join(text.split())
    if len(line) > LONGEST_STATEMENT:
        return f"{line[:LONGEST_STATEMENT]}…"
    return line


def by_path(problems: Iterable[Problem]) -> list[Problem]:
    """Put the problems of one text together, at the place of its first."""
    paths: dict[str, list[Problem]] = {}
    for problem in problems:
        paths.setdefault(problem.path, []).append(problem)
    ordered: list[Problem] = []
    for problems_of_path in paths.values():
        ordered += problems_of_path
    return ordered
