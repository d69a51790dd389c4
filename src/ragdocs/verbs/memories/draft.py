"""A draft of one memory that says what several say: statements side by side, each once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragdocs.errors import NotFoundError, ValidationError
from ragdocs.search.corpus import Corpus
from ragdocs.text import frontmatter, statements
from ragdocs.text.tags import united
from ragdocs.types import Document
from ragdocs.verbs.references import find

MOST_SOURCES = 10
# Longer memories are merged by a person who reads them, not statement by statement.
MOST_STATEMENTS = 400


@dataclass(frozen=True, slots=True)
class Statement:
    """A paragraph, an item of a list, a heading or a block of code, and who says it."""

    text: str
    # Positions of the memories that say it, from 1.
    sources: tuple[int, ...]
    # In which words it contradicts the statement before it, if it does.
    contradicts: str = ""

    @property
    def is_heading(self) -> bool:
        """Whether it only names what follows."""
        return statements.is_heading(self.text)

    @property
    def level(self) -> int:
        """The level of a heading, 0 for other statements."""
        if not self.is_heading:
            return 0
        return len(self.text) - len(self.text.lstrip("#"))

    @property
    def sentences(self) -> list[str]:
        """Its sentences; code and items of lists are one each."""
        return statements.sentences(self.text)

    @property
    def takes_footnote(self) -> bool:
        """Whether a mark behind it would be shown as one."""
        is_table = self.text.lstrip().startswith("|")
        return not self.is_heading and not is_table and not statements.is_code(self.text)


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
        united = _united(sides, main)
        body = _joined(united, sides)
        return MergeDraft(
            sides=sides,
            target=sides[main].document.path,
            version=sides[main].version,
            statements=united,
            content=self._with_fields(sides, main, body),
        )

    def _read(self, name: str) -> Side:
        document = find(self.corpus, name)
        if document is None:
            raise NotFoundError(f"there is no memory {name[:80]!r}", "See <count memories>")
        source = self.corpus.store.read(document.path)
        body = frontmatter.split(source.text)[1]
        texts = statements.split_statements(body)
        if len(texts) > MOST_STATEMENTS:
            raise ValidationError(
                f"{document.path} has {len(texts)} paragraphs", "Merge it by hand"
            )
        own = [Statement(text, ()) for text in texts]
        return Side(document, source.version, own)

    def _with_fields(self, sides: Sequence[Side], main: int, body: str) -> str:
        """Return the text with the fields of the memory that stays, and the tags of all."""
        text = self.corpus.store.read(sides[main].document.path).text
        own = list(sides[main].document.tags)
        tags = list(own)
        for side in sides:
            tags.extend(side.document.tags)
        tags = united(tags)
        has_block = frontmatter.split(text)[0] is not None
        if not tags and not has_block:
            return body
        fields = {}
        if tags != own:
            fields["tags"] = tags
        # Its own lines stay as they are.
        header = frontmatter.set_fields(text, fields)
        return f"{header}\n{body}"


def _compared(sides: Sequence[Side]) -> list[Side]:
    """Note for each statement which of the memories say it."""
    sentences = [_all_sentences(side.statements) for side in sides]
    compared = []
    for position, side in enumerate(sides):
        marked = []
        for statement in side.statements:
            sources = []
            for other, others in enumerate(sentences):
                if other == position or _is_said(statement, others):
                    sources.append(other + 1)
            marked.append(replace(statement, sources=tuple(sources)))
        compared.append(replace(side, statements=marked))
    return compared


def _all_sentences(own: Sequence[Statement]) -> list[str]:
    sentences: list[str] = []
    for statement in own:
        sentences += statement.sentences
    return sentences


def _is_said(statement: Statement, others: Sequence[str]) -> bool:
    """Tell whether all sentences of a statement are among others."""
    return all(_says(sentence, others) for sentence in statement.sentences)


def _says(sentence: str, others: Sequence[str]) -> bool:
    return any(statements.same(sentence, other) for other in others)


def _united(sides: Sequence[Side], main: int) -> list[Statement]:
    """Return all statements of one memory, section by section, and what others have besides."""
    united = list(sides[main].statements)
    for position, side in enumerate(sides):
        if position == main:
            continue
        heading: Statement | None = None
        for statement in side.statements:
            if statement.is_heading:
                heading = statement
                continue
            rest = _unsaid(statement, united)
            if rest is not None:
                _put(united, rest, heading)
    return united


def _unsaid(statement: Statement, united: Sequence[Statement]) -> Statement | None:
    """Return a statement without the sentences that are there already."""
    sentences = _all_sentences(united)
    rest = []
    for sentence in statement.sentences:
        if not _says(sentence, sentences):
            rest.append(sentence)
    if not rest:
        return None
    text = statement.text
    if len(rest) < len(statement.sentences):
        text = " ".join(rest)
    return replace(statement, text=text)


def _put(united: list[Statement], statement: Statement, heading: Statement | None) -> None:
    """Put a statement behind the one that it contradicts, or at the end of its section."""
    for position, other in enumerate(united):
        how = _opposition(statement, other)
        if how:
            united.insert(position + 1, replace(statement, contradicts=how))
            return
    name = _section_name(heading)
    if heading is not None and heading.level > 1 and name not in _section_names(united):
        united += [heading, statement]
        return
    united.insert(_section_end(united, name), statement)


def _opposition(statement: Statement, other: Statement) -> str:
    if other.is_heading:
        return ""
    for ours in statement.sentences:
        for theirs in other.sentences:
            how = statements.opposite(theirs, ours)
            if how:
                return how
    return ""


def _section_name(heading: Statement | None) -> str:
    """Return what sections are compared by; the text below a title belongs to no section."""
    if heading is None or heading.level == 1:
        return ""
    return " ".join(heading.text.lstrip("#").casefold().split())


def _section_names(united: Sequence[Statement]) -> list[str]:
    return [_section_name(statement) for statement in united if statement.is_heading]


def _section_end(united: Sequence[Statement], name: str) -> int:
    """Return where a section ends."""
    current = ""
    end = 0
    for position, statement in enumerate(united):
        if statement.is_heading:
            current = _section_name(statement)
        if current == name:
            end = position + 1
    return end


def _joined(united: Sequence[Statement], sides: Sequence[Side]) -> str:
    """Write statements below each other, with footnotes that say where they come from.

    Items of a list stay together. What all memories say needs no source.
    """
    label = _free_label(united)
    text = ""
    was_item = False
    named: set[int] = set()
    for statement in united:
        is_item = statements.is_item(statement.text)
        if text:
            text += "\n"
        if text and not (is_item and was_item):
            text += "\n"
        text += statement.text
        if len(statement.sources) < len(sides) and statement.takes_footnote:
            named.update(statement.sources)
            for number in statement.sources:
                text += f"[^{label}{number}]"
        was_item = is_item
    notes = []
    for number in sorted(named):
        notes.append(f"[^{label}{number}]: {_origin(sides[number - 1].document)}")
    if notes:
        text += "\n\n" + "\n".join(notes)
    return f"{text}\n"


def _origin(document: Document) -> str:
    """Say which memory a statement comes from, and of which day."""
    moment = document.created_at or document.modified_at
    if moment is None:
        return document.path
    return f"{document.path}, {moment.date().isoformat()}"


def _free_label(united: Sequence[Statement]) -> str:
    """Return what footnotes are called, if the texts have some of their own."""
    label = "s"
    while any(f"[^{label}" in statement.text for statement in united):
        label += "s"
    return label
