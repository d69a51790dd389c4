"""Searching and reading the documentation lane."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ragdocs.errors import NotFoundError, ValidationError
from ragdocs.search.corpus import Corpus
from ragdocs.text import sections
from ragdocs.text.sections import Section
from ragdocs.types import Document, Filter, Hit, Probe, Query
from ragdocs.verbs import page, references
from ragdocs.verbs.shapes import DocHit, DocHits, DocText

# The share of an answer that the list of headings may take.
HEADINGS_SHARE = 4


@dataclass(frozen=True, slots=True)
class Documents:
    """What can be asked of the documentation."""

    corpus: Corpus
    clock: Callable[[], datetime]
    budget: int

    def search(
        self,
        query: str,
        limit: int = 5,
        *,
        path: str = "",
        tags: Sequence[str] = (),
        explain: bool = False,
    ) -> DocHits:
        """Find the passages that answer a question."""
        page.check_limit(limit)
        where = Filter(prefix=self._prefix(path), tags=tuple(tags))
        results, omitted, notes = page.search(
            self.corpus,
            Query(probes=(Probe(query),), limit=limit, where=where, floored=True),
            lambda hit: _shape(hit, explain=explain),
            self.clock(),
            self.budget,
        )
        return DocHits(result=results, omitted=omitted, notes=notes)

    def read(self, path: str, heading: str | None = None, lines: str | None = None) -> DocText:
        """Return a document, the section under a heading, or a range of lines."""
        document, anchor = self._find(path)
        title = page.title(document)
        text = self.corpus.store.read(document.path).text
        text = text.replace("\r\n", "\n").rstrip("\n")
        outline = sections.outline(text, document.path, top=True)
        span = page.parse_lines(lines)
        wanted = heading or anchor
        if wanted and span is None:
            span = _span(outline, wanted, title, anchor=not heading)
        content, shown, omitted = page.excerpt(text, 1, span, self.budget)
        headings: list[str] = []
        # The outline helps only where something is left to be asked for.
        if omitted and not wanted:
            headings = _headings(outline, self.budget // HEADINGS_SHARE)
            room = self.budget - page.cost(headings)
            content, shown, omitted = page.excerpt(text, 1, span, room)
        return DocText(
            path=document.path,
            title=title,
            content=content,
            lines=shown,
            headings=headings,
            omitted=omitted,
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
        hint = "<search documentation> finds documents by their content"
        similar = difflib.get_close_matches(name, self.corpus.stamps(), n=3, cutoff=0.5)
        if similar:
            hint = f"Did you mean {', '.join(similar)}?"
        raise NotFoundError(f"there is no document {name[:200]!r} in the documentation", hint)


def _headings(outline: Sequence[Section], budget: int) -> list[str]:
    """Return the headings with their lines, and how many more there are."""
    rows = []
    for section in outline:
        block = section.block
        if block.title:
            rows.append(f"{'#' * block.level} {section.names[-1]} (line {section.line})")
    listed = page.within(rows, budget)
    if len(listed) < len(rows):
        listed.append(f"… {len(rows) - len(listed)} more headings")
    return listed


def _span(
    outline: Sequence[Section], wanted: str, title: str, *, anchor: bool
) -> tuple[int, int] | None:
    """Return the lines of a section; a passage above all headings is called by the title alone."""
    try:
        section = sections.find(outline, wanted, anchor=anchor)
    except NotFoundError:
        if wanted.strip() == title:
            return None
        raise
    return section.line, section.last_line


def _shape(hit: Hit, *, explain: bool) -> DocHit:
    shape = DocHit(
        path=hit.document.path,
        score=round(hit.score, 3),
        content="",
        title=page.title(hit.document),
        header_path=page.header(hit),
        lines=page.lines(hit),
        tags=page.tags(hit.document),
        modified_at=page.moment(hit.document.modified_at),
        why=page.why(hit),
    )
    if explain:
        shape["signals"] = page.signals(hit)
    return shape
