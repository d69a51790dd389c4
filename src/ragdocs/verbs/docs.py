"""Searching and reading the documentation lane."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ragdocs.errors import NotFoundError, ValidationError
from ragdocs.search.corpus import Corpus
from ragdocs.text.formats import markdown as markup
from ragdocs.types import Document, Filter, Hit, Probe, Query
from ragdocs.verbs import page as answers
from ragdocs.verbs.shapes import DocHit, DocHits, DocText


@dataclass(frozen=True, slots=True)
class Documents:
    """What can be asked of the documentation."""

    corpus: Corpus
    clock: Callable[[], datetime]
    budget: int

    def search(
        self, query: str, limit: int = 5, *, path: str = "", tags: Sequence[str] = (), explain: bool = False
    ) -> DocHits:
        """Find the passages that answer a question."""
        answers.check_limit(limit)
        where = Filter(prefix=self._prefix(path), tags=tuple(tags))
        findings = self.corpus.search(
            Query(probes=(Probe(query),), limit=limit, where=where, floored=True), self.clock()
        )
        shaped, omitted, notes = answers.fit(findings, lambda hit: _shape(hit, explain=explain), self.budget)
        return DocHits(result=shaped, omitted=omitted, notes=notes)

    def read(self, path: str, heading: str | None = None, lines: str | None = None) -> DocText:
        """Return a document, the section under a heading, or a range of lines."""
        document, anchor = self._find(path)
        source = self.corpus.store.read(document.path)
        text = source.text.replace("\r\n", "\n").rstrip("\n")
        sections = _outline(text, document.path)
        span = answers.parse_lines(lines)
        wanted = heading or anchor
        if wanted and span is None:
            span = _section(sections, wanted, text.count("\n") + 1)
        content, shown, omitted = answers.excerpt(text, 1, span, self.budget)
        headings: list[str] = []
        # The outline helps only where something is left to be asked for.
        if omitted and not wanted:
            headings = _listed(sections, self.budget // 4)
            content, shown, omitted = answers.excerpt(text, 1, span, self.budget - answers.cost(headings))
        return DocText(
            path=document.path,
            title=answers.title(document),
            content=content,
            lines=shown,
            headings=headings,
            omitted=omitted,
        )

    def _prefix(self, path: str) -> str:
        """Return what the paths of a folder begin with, or the path itself if it names a document."""
        name = path.strip().removeprefix("./").strip("/")
        return name if not name or name in self.corpus.index.stamps() else f"{name}/"

    def _find(self, path: str) -> tuple[Document, str]:
        """Find a document by path, id, or path without its ending, with an optional #heading."""
        name, _, anchor = path.strip().removeprefix(f"{self.corpus.lane.name}:").partition("#")
        name = name.removeprefix("./")
        if not name:
            raise ValidationError("path is empty", "Give the path of a search result, such as docs/guide.md")
        documents = {document.path: document for document in self.corpus.index.documents()}
        for candidate in (name, f"{name}.md"):
            if candidate in documents:
                return documents[candidate], anchor
        near = difflib.get_close_matches(name, documents, n=3, cutoff=0.5)
        hint = f"Did you mean {', '.join(near)}?" if near else "search_docs finds documents by their content"
        raise NotFoundError(f"there is no document {name[:200]!r} in the documentation", hint)


def _outline(text: str, path: str) -> list[tuple[int, str, int]]:
    """List the headings of a text as (level, title, line)."""
    headings = [block for block in markup.blocks(text, path, top=True) if block.kind == "heading"]
    return [(block.level, block.title, text.count("\n", 0, block.start) + 1) for block in headings]


def _listed(sections: Sequence[tuple[int, str, int]], budget: int) -> list[str]:
    listed = answers.within((f"{'#' * level} {title} (line {line})" for level, title, line in sections), budget)
    return [*listed, *([f"… {len(sections) - len(listed)} more headings"] if len(listed) < len(sections) else [])]


def _section(sections: Sequence[tuple[int, str, int]], wanted: str, last: int) -> tuple[int, int]:
    """Return the lines of the section whose heading, or last part of a heading path, is wanted."""
    name = wanted.rpartition(answers.STEP)[2].strip().lstrip("#").strip().casefold()
    for position, (level, title, line) in enumerate(sections):
        if title.casefold() == name or _anchor(title) == _anchor(name):
            following = (start for below, _, start in sections[position + 1 :] if below <= level)
            return line, next(following, last + 1) - 1
    titles = [title for _, title, _ in sections]
    near = difflib.get_close_matches(wanted, titles, n=3, cutoff=0.4) or titles[:10]
    raise NotFoundError(f"there is no heading {wanted[:200]!r}", f"Headings here: {', '.join(near) or 'none'}")


def _anchor(title: str) -> str:
    # Renderers differ in what a removed sign leaves behind: "A & B" is a--b here and a-b there.
    kept = "".join(c if c.isalnum() or c == "_" else " " for c in title.casefold() if c.isalnum() or c in " -_")
    return "-".join(kept.split())


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
