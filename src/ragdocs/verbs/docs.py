"""Searching and reading the documentation lane."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ragdocs.errors import NotFoundError, ValidationError
from ragdocs.search.corpus import Corpus
from ragdocs.text import sections
from ragdocs.text.formats.reading import read
from ragdocs.text.sections import Section
from ragdocs.types import Chunk, Document, Filter, Findings, Hit, Probe, Query
from ragdocs.verbs import filters, references
from ragdocs.verbs.page import check_limit, check_query

# The first and the last line of a part of a text.
Span = tuple[int, int]
# Characters of a document that are read to find the section of a hit: a hit further down is shown
# without it.
MOST_READ = 200_000
# Ends a title that an answer has shortened.
ELLIPSIS = "…"


@dataclass(frozen=True, slots=True)
class DocumentText:
    """A document's whole text, its sections, and the part of it that was asked for."""

    document: Document
    text: str
    sections: Sequence[Section]
    # Nothing where the whole text is meant.
    span: Span | None
    # The line of the file for each line of the text, where these differ.
    numbers: Sequence[int]
    # Whether the part was asked for by a heading.
    by_heading: bool


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The passages of a hit's section that stand before and after it, in the order of the text."""

    before: Sequence[Chunk] = ()
    after: Sequence[Chunk] = ()


@dataclass(frozen=True, slots=True)
class Documents:
    """What can be asked of the documentation."""

    corpus: Corpus
    clock: Callable[[], datetime]

    def search(
        self, query: str, limit: int = 5, *, path: str = "", tags: Sequence[str] = ()
    ) -> Findings:
        """Find the passages that answer a question."""
        check_limit(limit)
        check_query(query)
        where = Filter(prefix=self._prefix(path), tags=tuple(tags))
        search = Query(probes=(Probe(query),), limit=limit, where=where, floored=True)
        findings = self.corpus.search(search, self.clock())
        unknown = filters.unknown(self.corpus, tags)
        return replace(findings, notes=(*unknown, *findings.notes))

    def surroundings(self, hits: Sequence[Hit]) -> list[Surroundings]:
        """Return the rest of each hit's section, with the sections below it."""
        ids = dict.fromkeys(hit.document.id for hit in hits)
        passages = self.corpus.passages(list(ids), MOST_READ)
        return [_surroundings(hit.chunk, passages.get(hit.document.id, ())) for hit in hits]

    def read(self, path: str, heading: str = "", span: Span | None = None) -> DocumentText:
        """Return a document with the lines that are meant: these, or those of a section."""
        document, anchor = self._find(path)
        text = self.corpus.store.read(document.path).text
        text = text.replace("\r\n", "\n").rstrip("\n")
        page = read(text, document.path)
        if page.numbers:
            # Nobody wants to read the JSON of a notebook, or tags.
            text = page.body
        outline = sections.outline(
            page.body, page.blocks, first_line=page.first_line, numbers=page.numbers
        )
        wanted = heading or anchor
        if wanted and span is None:
            span = _section_span(outline, wanted, document.title, anchor=not heading)
        return DocumentText(
            document, text, outline, span, numbers=page.numbers, by_heading=bool(wanted)
        )

    def _prefix(self, path: str) -> str:
        """Return what the paths of a folder begin with, or the path itself of a document."""
        name = references.inside(self.corpus, path.strip().removeprefix("./")).strip("/")
        if not name or name in self.corpus.stamps([name]):
            return name
        return f"{name}/"

    def _find(self, path: str) -> tuple[Document, str]:
        """Find a document by path, id, or path without its ending, with an optional #heading."""
        reference = path.strip().removeprefix("./")
        name = references.inside(self.corpus, reference).partition("#")[0]
        if not name:
            raise ValidationError(
                "path is empty", "Give the path of a search result, such as docs/guide.md"
            )
        # A name may have a number sign itself: the longest that is there is meant.
        parts = reference.split("#")
        for count in range(len(parts), 0, -1):
            document = references.find(self.corpus, "#".join(parts[:count]))
            if document is not None:
                return document, "#".join(parts[count:])
        for count in range(len(parts), 0, -1):
            document = self.corpus.read_file(
                references.inside(self.corpus, "#".join(parts[:count]))
            )
            if document is not None:
                return document, "#".join(parts[count:])
        hint = "<search documentation> finds documents by their content"
        similar = difflib.get_close_matches(name, self.corpus.stamps(), n=3, cutoff=0.5)
        if similar:
            hint = f"Did you mean {', '.join(similar)}?"
        raise NotFoundError(f"there is no document {name[:200]!r} in the documentation", hint)


def _surroundings(chunk: Chunk, passages: Sequence[Chunk]) -> Surroundings:
    """Return the passages around one that are in its section or in a section below that."""
    ids = [passage.id for passage in passages]
    # The document may have changed since the search, or be very long.
    if chunk.id not in ids or passages[ids.index(chunk.id)].digest != chunk.digest:
        return Surroundings()
    position = ids.index(chunk.id)
    first = last = position
    while first > 0 and _is_below(passages[first - 1], chunk):
        first -= 1
    while last + 1 < len(passages) and _is_below(passages[last + 1], chunk):
        last += 1
    return Surroundings(passages[first:position], passages[position + 1 : last + 1])


def _is_below(passage: Chunk, chunk: Chunk) -> bool:
    """Tell whether a passage has the headings of another one, or more below them."""
    headings = chunk.headings
    if not headings:
        return not passage.headings
    return passage.headings[: len(headings)] == headings


def _section_span(
    outline: Sequence[Section], wanted: str, title: str, *, anchor: bool
) -> Span | None:
    """Return the lines of a section; a passage above all headings is called by the title alone."""
    try:
        section = sections.find(outline, wanted, anchor=anchor)
    except NotFoundError:
        if _is_title(wanted.strip(), title):
            return None
        raise
    return section.line, section.last_line


def _is_title(wanted: str, title: str) -> bool:
    """Tell whether this is a document's title, or the beginning of a long one with a mark."""
    if wanted.endswith(ELLIPSIS):
        return title.startswith(wanted.removesuffix(ELLIPSIS))
    return wanted == title
