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
from ragdocs.verbs import page as answers
from ragdocs.verbs import references
from ragdocs.verbs.shapes import DocHit, DocHits, DocText


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
        answers.check_limit(limit)
        where = Filter(prefix=self._prefix(path), tags=tuple(tags))
        findings = self.corpus.search(
            Query(probes=(Probe(query),), limit=limit, where=where, floored=True), self.clock()
        )
        shaped, omitted, notes = answers.fit(
            findings, lambda hit: _shape(hit, explain=explain), self.budget
        )
        return DocHits(result=shaped, omitted=omitted, notes=notes)

    def read(self, path: str, heading: str | None = None, lines: str | None = None) -> DocText:
        """Return a document, the section under a heading, or a range of lines."""
        document, anchor = self._find(path)
        source = self.corpus.store.read(document.path)
        text = source.text.replace("\r\n", "\n").rstrip("\n")
        outline = sections.outline(text, document.path, top=True)
        span = answers.parse_lines(lines)
        wanted = heading or anchor
        if wanted and span is None:
            span = _span(outline, wanted, answers.title(document), anchor=not heading)
        content, shown, omitted = answers.excerpt(text, 1, span, self.budget)
        headings: list[str] = []
        # The outline helps only where something is left to be asked for.
        if omitted and not wanted:
            headings = _listed(outline, self.budget // 4)
            content, shown, omitted = answers.excerpt(
                text, 1, span, self.budget - answers.cost(headings)
            )
        return DocText(
            path=document.path,
            title=answers.title(document),
            content=content,
            lines=shown,
            headings=headings,
            omitted=omitted,
        )

    def _prefix(self, path: str) -> str:
        """Return what the paths of a folder begin with.

        Or the path itself if it names a document.
        """
        name = references.inside(self.corpus, path.strip().removeprefix("./")).strip("/")
        return name if not name or name in self.corpus.index.stamps() else f"{name}/"

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
        near = difflib.get_close_matches(name, self.corpus.index.stamps(), n=3, cutoff=0.5)
        hint = (
            f"Did you mean {', '.join(near)}?"
            if near
            else "search_docs finds documents by their content"
        )
        raise NotFoundError(f"there is no document {name[:200]!r} in the documentation", hint)


def _listed(outline: Sequence[Section], budget: int) -> list[str]:
    named = [section for section in outline if section.block.title]
    rows = [
        f"{'#' * section.block.level} {section.names[-1]} (line {section.line})"
        for section in named
    ]
    listed = answers.within(rows, budget)
    if len(listed) < len(rows):
        listed.append(f"… {len(rows) - len(listed)} more headings")
    return listed


def _span(
    outline: Sequence[Section], wanted: str, title: str, *, anchor: bool
) -> tuple[int, int] | None:
    """Return the lines of the section that is wanted.

    A passage above all headings is called by the title alone.
    """
    try:
        section = sections.find(outline, wanted, anchor=anchor)
    except NotFoundError:
        if wanted.strip() == title:
            return None
        raise
    return section.line, section.last_line


def _shape(hit: Hit, *, explain: bool) -> DocHit:
    shaped = DocHit(
        path=hit.document.path,
        score=round(hit.score, 3),
        content="",
        title=answers.title(hit.document),
        header_path=answers.header(hit),
        lines=answers.lines(hit),
        tags=answers.tags(hit.document),
        modified_at=answers.moment(hit.document.modified_at),
        why=answers.why(hit),
    )
    if explain:
        shaped["signals"] = answers.signals(hit)
    return shaped
