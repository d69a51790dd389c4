"""What the documentation lacks.

Files that only memories explain, questions without an answer, pages that nothing leads to, and
sections that repeat each other.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from ragdocs.search.corpus import Corpus
from ragdocs.text.statements import likeness
from ragdocs.types import Chunk, Document, Question
from ragdocs.verbs.links import GHOST, Gap, LinkMap, Links

# Pages that people come to by themselves.
ENTRANCES = frozenset(("readme", "index", "changelog", "contributing", "license", "security"))
# Sections that have this share of their words in common only repeat each other.
SAME_SECTION = 0.9
# Words of a section that is worth a look.
LEAST_WORDS = 8
# Sections of one heading that are compared with each other.
MOST_COMPARED = 60
# Characters of a page that are looked at.
MOST_CHARACTERS = 200_000
_WORD = re.compile(r"\w+")
_HEADING = re.compile(r"#{1,6}\s+(?P<title>.*\S)")


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a document by its heading."""

    document: Document
    heading: str
    line: int


@dataclass(frozen=True, slots=True)
class RepeatedSection:
    """Sections under one heading that say nearly the same."""

    heading: str
    sections: Sequence[Section]


@dataclass(frozen=True, slots=True)
class MissingDocs:
    """What the documentation lacks; `questions` is None where they are not kept."""

    targets: Sequence[Gap]
    questions: Sequence[Question] | None
    unlinked: Sequence[Document]
    repeated: Sequence[RepeatedSection]


@dataclass(frozen=True, slots=True)
class Gaps:
    """Looks for gaps in the documentation."""

    links: Links
    docs: Corpus | None
    # Questions that found nothing; None where they are not kept.
    questions: Callable[[], Sequence[Question]] | None

    def find(self) -> MissingDocs:
        """Return all gaps, the most pressing of each kind first."""
        questions = None
        if self.questions is not None:
            questions = self.questions()
        if self.docs is None:
            return MissingDocs(self.links.problems().gaps, questions, (), ())
        documents = self.docs.documents()
        return MissingDocs(
            self.links.problems().gaps,
            questions,
            _unlinked(documents, self.links.resolved()),
            _repeated(documents, self.docs),
        )


def _unlinked(documents: Sequence[Document], links: LinkMap) -> list[Document]:
    """Return the pages that no other text links to; of a site without any link nothing is said."""
    linked = {edge.target for edge in links.edges if not edge.target.startswith(GHOST)}
    unlinked = []
    for document in documents:
        name = PurePosixPath(document.path).name.partition(".")[0].casefold()
        if document.id not in linked and name not in ENTRANCES:
            unlinked.append(document)
    return unlinked


def _repeated(documents: Sequence[Document], docs: Corpus) -> list[RepeatedSection]:
    """Return groups of sections with the same heading and nearly the same words."""
    ids = [document.id for document in documents]
    passages = docs.passages(ids, MOST_CHARACTERS)
    by_heading: dict[str, list[tuple[Section, Counter[str]]]] = defaultdict(list)
    for document in documents:
        for section, words in _sections(document, passages[document.id]):
            if words.total() >= LEAST_WORDS:
                by_heading[" ".join(section.heading.casefold().split())].append((section, words))
    repeated = []
    for members in by_heading.values():
        for group in _alike(members[:MOST_COMPARED]):
            repeated.append(RepeatedSection(group[0].heading, group))
    return sorted(repeated, key=lambda group: (-len(group.sections), group.heading))


def _sections(document: Document, passages: Sequence[Chunk]) -> list[tuple[Section, Counter[str]]]:
    """Return the sections of a document with their words, without those of the heading.

    A passage may hold several short sections, and a long section may be several passages.
    """
    sections: list[tuple[Section, Counter[str]]] = []
    for passage in passages:
        heading = ""
        if passage.headings:
            heading = passage.headings[-1]
        is_same = bool(sections) and sections[-1][0].heading == heading
        if heading and not is_same:
            sections.append((Section(document, heading, passage.start_line), Counter()))
        for number, line in enumerate(passage.text.splitlines(), start=passage.start_line):
            title = _HEADING.match(line)
            if title and title["title"] != heading:
                heading = title["title"]
                sections.append((Section(document, heading, number), Counter()))
            elif not title and sections:
                sections[-1][1].update(_WORD.findall(line.casefold()))
    return sections


def _alike(members: Sequence[tuple[Section, Counter[str]]]) -> list[list[Section]]:
    """Group sections that say nearly the same as the first of their group."""
    groups: list[tuple[Counter[str], list[Section]]] = []
    for section, words in members:
        for first, group in groups:
            if likeness(first, words) >= SAME_SECTION:
                group.append(section)
                break
        else:
            groups.append((words, [section]))
    return [group for _, group in groups if len(group) > 1]
