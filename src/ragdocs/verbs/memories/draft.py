"""A draft of one memory that says what several say: statements side by side, each once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragdocs.errors import NotFoundError, ValidationError
from ragdocs.search.corpus import Corpus
from ragdocs.text import frontmatter
from ragdocs.types import Document
from ragdocs.verbs.references import find

# Two statements with this share of common words say the same.
SAME_STATEMENT = 0.75
MOST_SOURCES = 10
# Longer memories are merged by a person who reads them, not statement by statement.
MOST_STATEMENTS = 400

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])\s")
_HEADING = re.compile(r"#{1,6}\s")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Statement:
    """A paragraph, an item of a list, a heading or a block of code, and who says it."""

    text: str
    # Positions of the memories that say it, from 1.
    sources: tuple[int, ...]

    @property
    def is_heading(self) -> bool:
        """Whether it only names what follows."""
        return bool(_HEADING.match(self.text))


@dataclass(frozen=True, slots=True)
class Side:
    """One of the memories, statement by statement."""

    document: Document
    version: str
    statements: Sequence[Statement]


@dataclass(frozen=True, slots=True)
class MergeDraft:
    """A proposal for one memory in the place of several."""

    sides: Sequence[Side]
    # The path of the memory that would stay, and its version now.
    target: str
    version: str
    statements: Sequence[Statement]
    content: str


@dataclass(frozen=True, slots=True)
class Drafts:
    """Proposals for the memory lane."""

    corpus: Corpus

    def draft(self, source_files: Sequence[str]) -> MergeDraft:
        """Propose a text for one memory instead of these; nothing is changed."""
        names = list(dict.fromkeys(source_files))
        if not 2 <= len(names) <= MOST_SOURCES:  # noqa: PLR2004 - one memory has nothing to merge
            raise ValidationError(
                f"there are {len(names)} source files", f"Name 2 to {MOST_SOURCES} memories"
            )
        read = [self._read(name) for name in names]
        sides = _compared(read)
        # The one that says most stays.
        main = max(range(len(sides)), key=lambda position: len(sides[position].statements))
        statements = _united(sides, main)
        body = _joined(statements)
        return MergeDraft(
            sides=sides,
            target=sides[main].document.path,
            version=sides[main].version,
            statements=statements,
            content=self._with_fields(sides, main, body),
        )

    def _read(self, name: str) -> Side:
        document = find(self.corpus, name)
        if document is None:
            raise NotFoundError(f"there is no memory {name[:80]!r}", "See <count memories>")
        source = self.corpus.store.read(document.path)
        body = frontmatter.split(source.text)[1]
        statements = [Statement(text, ()) for text in split_statements(body)]
        if len(statements) > MOST_STATEMENTS:
            raise ValidationError(
                f"{document.path} has {len(statements)} paragraphs", "Merge it by hand"
            )
        return Side(document, source.version, statements)

    def _with_fields(self, sides: Sequence[Side], main: int, body: str) -> str:
        """Return the text with the fields of the memory that stays, and the tags of all."""
        block = frontmatter.split(self.corpus.store.read(sides[main].document.path).text)[0]
        fields = {}
        if block is not None:
            fields = dict(frontmatter.load(block)[0])
        tags: dict[str, None] = dict.fromkeys(sides[main].document.tags)
        for side in sides:
            tags.update(dict.fromkeys(side.document.tags))
        if tags:
            fields["tags"] = list(tags)
        if not fields:
            return body
        return frontmatter.render(fields, body)


def split_statements(body: str) -> list[str]:
    """Cut a text into paragraphs, items of lists, headings and blocks of code."""
    statements: list[list[str]] = [[]]
    fence = ""
    for line in body.splitlines():
        mark = _FENCE.match(line)
        if fence:
            statements[-1].append(line)
            if mark and mark[1].startswith(fence):
                fence = ""
        elif not line.strip():
            statements.append([])
        elif _HEADING.match(line):
            statements += [[line], []]
        else:
            if _ITEM.match(line):
                statements.append([])
            statements[-1].append(line)
            if mark:
                fence = mark[1]
    return ["\n".join(lines) for lines in statements if lines]


def _compared(sides: Sequence[Side]) -> list[Side]:
    """Note for each statement which of the memories say it."""
    words = [_words_of(side.statements) for side in sides]
    compared = []
    for position, side in enumerate(sides):
        statements = []
        for number, statement in enumerate(side.statements):
            own = words[position][number]
            sources = []
            for other, others in enumerate(words):
                if other == position or _says(own, others):
                    sources.append(other + 1)
            statements.append(replace(statement, sources=tuple(sources)))
        compared.append(replace(side, statements=statements))
    return compared


def _united(sides: Sequence[Side], main: int) -> list[Statement]:
    """Return all statements of one memory, and those of others that it does not have."""
    united = list(sides[main].statements)
    words = _words_of(united)
    for position, side in enumerate(sides):
        if position == main:
            continue
        heading: Statement | None = None
        for statement in side.statements:
            own = _words(statement.text)
            if statement.is_heading:
                heading = statement
            elif not _says(own, words):
                if heading is not None and not _says(_words(heading.text), words):
                    united.append(heading)
                    words.append(_words(heading.text))
                united.append(statement)
                words.append(own)
                heading = None
    return united


def _joined(statements: Sequence[Statement]) -> str:
    """Write statements below each other; items of a list stay together."""
    text = ""
    was_item = False
    for statement in statements:
        is_item = bool(_ITEM.match(statement.text))
        if text:
            text += "\n"
        if text and not (is_item and was_item):
            text += "\n"
        text += statement.text
        was_item = is_item
    return f"{text}\n"


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.casefold()))


def _words_of(statements: Sequence[Statement]) -> list[Counter[str]]:
    return [_words(statement.text) for statement in statements]


def _says(own: Counter[str], others: Sequence[Counter[str]]) -> bool:
    return any(_likeness(own, other) >= SAME_STATEMENT for other in others)


def _likeness(left: Counter[str], right: Counter[str]) -> float:
    size = left.total() + right.total()
    if not size:
        return 1.0
    return 2 * (left & right).total() / size
