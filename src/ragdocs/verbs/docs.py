"""Searching and reading the documentation lane."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ragdocs.errors import NotFoundError, ValidationError
from ragdocs.project.sources import OWN, split_path
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
    """What can be asked of the documentation: that of the project, and of other sources."""

    # Nothing where the project's own documentation is switched off.
    corpus: Corpus | None
    clock: Callable[[], datetime]
    # Nothing where no sources are configured.
    sources: Corpus | None = None

    def search(
        self,
        query: str,
        limit: int = 5,
        *,
        path: str = "",
        tags: Sequence[str] = (),
        source: str = "",
        language: str = "",
    ) -> Findings:
        """Find the passages that answer a question, in all documentation or in one source.

        Of a page in several languages the one of the question is shown, if none is named.
        """
        check_limit(limit)
        check_query(query)
        now = self.clock()
        vector = None
        by_scope = []
        unknown: list[str] = []
        scopes = self._scopes(path.strip(), source.strip())
        for corpus, prefix in scopes:
            where = Filter(prefix=prefix, tags=tuple(tags))
            search = Query(
                probes=(Probe(query),), limit=limit, where=where, floored=True, language=language
            )
            if vector is None and len(scopes) > 1:
                vector = corpus.encoded(query)
            by_scope.append(corpus.search(search, now, vector))
            unknown += filters.unknown(corpus, tags)
        findings = _merged(by_scope, limit)
        # A tag that one of them has is no unknown one.
        notes = [note for note in dict.fromkeys(unknown) if unknown.count(note) == len(by_scope)]
        return replace(findings, notes=(*notes, *findings.notes))

    def unreadable_sources(self) -> dict[str, str]:
        """Map the sources that could not be read to the reason."""
        if self.sources is None:
            return {}
        reasons = {}
        for name, reason in self.sources.skipped.items():
            # Of a source that can be read, single documents are left out.
            if "/" not in name:
                reasons[name] = reason
        return reasons

    def _scopes(self, path: str, source: str) -> list[tuple[Corpus, str]]:
        """Return what is searched: each corpus with what the paths of its documents begin with."""
        if source and source != OWN:
            return [self._source_scope(source, path)]
        is_in_source = split_path(path) is not None
        if self.sources is not None and is_in_source and not source:
            return [(self.sources, _prefix(self.sources, path))]
        if self.corpus is not None and (path or source):
            return [(self.corpus, _prefix(self.corpus, path))]
        if source:
            raise NotFoundError("the project's own documentation is switched off")
        return [(corpus, "") for corpus in self._corpora()]

    def _corpora(self) -> list[Corpus]:
        return [corpus for corpus in (self.corpus, self.sources) if corpus is not None]

    def _source_scope(self, source: str, path: str) -> tuple[Corpus, str]:
        """Return the corpus of the sources, and the beginning of the paths of one of them."""
        names = self._source_names(source)
        if self.sources is None or not names:
            raise NotFoundError(f"there is no source {source[:80]!r}", self._source_hint(source))
        if path:
            return self.sources, _prefix(self.sources, f"{names[-1]}/{path.strip('/')}")
        if source in names:
            return self.sources, f"{source}/"
        # All its versions.
        return self.sources, f"{source}@"

    def _source_names(self, source: str) -> list[str]:
        """Return the folders of a source, one for each of its versions."""
        if self.sources is None:
            return []
        names = set()
        for path in self.sources.stamps():
            folder = path.partition("/")[0]
            if source in {folder, folder.partition("@")[0]}:
                names.add(folder)
        return sorted(names)

    def _source_hint(self, source: str) -> str:
        """Say why a source is not there, or which there are."""
        if self.sources is None:
            return "None are configured: add a line to docs.sources in your own configuration"
        for name, reason in self.sources.skipped.items():
            if name.partition("@")[0] == source.partition("@")[0]:
                return f"It cannot be read: {reason}"
        names = {path.partition("@")[0] for path in self.sources.stamps()}
        return f"There are {', '.join(sorted({OWN, *names}))}"

    def surroundings(self, hits: Sequence[Hit]) -> list[Surroundings]:
        """Return the rest of each hit's section, with the sections below it."""
        ids = list(dict.fromkeys(hit.document.id for hit in hits))
        passages: dict[str, Sequence[Chunk]] = {}
        for corpus in self._corpora():
            passages |= corpus.passages(ids, MOST_READ)
        return [_surroundings(hit.chunk, passages.get(hit.document.id, ())) for hit in hits]

    def read(self, path: str, heading: str = "", span: Span | None = None) -> DocumentText:
        """Return a document with the lines that are meant: these, or those of a section."""
        corpus, document, anchor = self._find(path)
        text = corpus.store.read(document.path).text
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

    def _find(self, path: str) -> tuple[Corpus, Document, str]:
        """Find a document by path, id, or path without its ending, with an optional #heading."""
        reference = path.strip().removeprefix("./")
        corpora = self._corpora()
        name = references.inside(corpora[0], reference).partition("#")[0]
        if not name:
            raise ValidationError(
                "path is empty", "Give the path of a search result, such as docs/guide.md"
            )
        for corpus in corpora:
            match = _in_corpus(corpus, reference)
            if match is not None:
                return corpus, *match
        hint = "<search documentation> finds documents by their content"
        paths: list[str] = []
        for corpus in corpora:
            paths += corpus.stamps()
        similar = difflib.get_close_matches(name, paths, n=3, cutoff=0.5)
        if similar:
            hint = f"Did you mean {', '.join(similar)}?"
        raise NotFoundError(f"there is no document {name[:200]!r} in the documentation", hint)


def _in_corpus(corpus: Corpus, reference: str) -> tuple[Document, str] | None:
    """Return the document of a corpus that is meant, and the heading behind its name."""
    # A name may have a number sign itself: the longest that is there is meant.
    parts = reference.split("#")
    for count in range(len(parts), 0, -1):
        document = references.find(corpus, "#".join(parts[:count]))
        if document is not None:
            return document, "#".join(parts[count:])
    for count in range(len(parts), 0, -1):
        document = corpus.read_file(references.inside(corpus, "#".join(parts[:count])))
        if document is not None:
            return document, "#".join(parts[count:])
    return None


def _prefix(corpus: Corpus, path: str) -> str:
    """Return what the paths of a folder begin with, or the path itself of a document."""
    name = references.inside(corpus, path.strip().removeprefix("./")).strip("/")
    if not name or name in corpus.stamps([name]):
        return name
    return f"{name}/"


def _merged(by_scope: Sequence[Findings], limit: int) -> Findings:
    """Return the best hits of several searches; their scores are on one scale."""
    if len(by_scope) == 1:
        return by_scope[0]
    hits: list[Hit] = []
    omitted = 0
    notes: dict[str, None] = {}
    for findings in by_scope:
        hits += findings.hits
        omitted += findings.omitted
    for findings in by_scope:
        # What one has nothing about, another may have.
        if findings.hits or not hits:
            notes.update(dict.fromkeys(findings.notes))
    hits.sort(key=lambda hit: -hit.score)
    return Findings(
        hits=tuple(hits[:limit]),
        omitted=omitted + max(0, len(hits) - limit),
        notes=tuple(notes),
        seconds=by_scope[0].seconds,
    )


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
