"""One memory or document as a person reads it: the whole text, its links both ways, its likes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ragdocs.errors import NotFoundError, UnavailableError
from ragdocs.lanes import document_id
from ragdocs.search.corpus import Corpus
from ragdocs.search.parse import parse
from ragdocs.system.names import link_key, link_keys
from ragdocs.text import frontmatter
from ragdocs.text.formats.page import Page
from ragdocs.text.formats.reading import read as read_text
from ragdocs.types import Document, Filter, Link, Probe, Query, Source
from ragdocs.verbs import references

# Characters of a text that a search for similar memories is made with.
SIMILAR_TEXT = 1_000
MOST_SIMILAR = 5
# Memories that score less share a few words and nothing else.
LEAST_SIMILAR = 0.25
# Where a link leads: to a text that is indexed, to another file of the project, or nowhere.
INDEXED = "indexed"
FILE = "file"
MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeText:
    """A text with its card; the fields are those of its front matter."""

    document: Document
    source: Source
    location: str
    fields: Mapping[str, Any]
    # The line of the file at which the text below the front matter begins.
    first_line: int


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the name in a link leads."""

    state: str
    document: Document | None = None


@dataclass(frozen=True, slots=True)
class LinkOut:
    """A link of a text, and where it leads."""

    link: Link
    destination: Destination


@dataclass(frozen=True, slots=True)
class LinkBack:
    """A text that links to the one that is read."""

    document: Document
    link: Link


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """What a text links to, what links to it, and memories that say something alike."""

    document: Document
    out: Sequence[LinkOut]
    back: Sequence[LinkBack]
    similar: Sequence[tuple[Document, float]]


@dataclass(frozen=True, slots=True)
class Texts:
    """What can be asked about one text of any lane."""

    corpora: Mapping[str, Corpus]
    root: Path
    clock: Callable[[], datetime]

    def read(self, lane: str, path: str) -> WholeText:
        """Return a memory or a document whole, as it stands in its file."""
        corpus = self._corpus(lane)
        name = self._path(corpus, path)
        source = corpus.store.read(name)
        page = read_text(source.text, name)
        if page.numbers:
            # Nobody wants to read the JSON of a notebook, or tags.
            return self._converted(corpus, source, page)
        block, _, first_line = frontmatter.split(source.text)
        fields: Mapping[str, Any] = {}
        if block is not None:
            fields = frontmatter.load(block)[0]
        # The file may be younger than the index.
        return WholeText(
            document=parse(source, corpus.lane).document,
            source=source,
            location=corpus.store.locate(source.path),
            fields=fields,
            first_line=first_line,
        )

    def _converted(self, corpus: Corpus, source: Source, page: Page) -> WholeText:
        """Return a text whose lines are not those of its file."""
        return WholeText(
            document=parse(source, corpus.lane).document,
            source=replace(source, text=page.body),
            location=corpus.store.locate(source.path),
            fields=page.card,
            first_line=1,
        )

    def neighbourhood(self, lane: str, path: str) -> Neighbourhood:
        """Return the links of a text, those to it, and similar memories beyond these."""
        text = self.read(lane, path)
        out = self._links_out(text.document)
        back = self._links_back(text.document)
        near = {text.document.id}
        for outward in out:
            if outward.destination.document is not None:
                near.add(outward.destination.document.id)
        for backward in back:
            near.add(backward.document.id)
        return Neighbourhood(text.document, out, back, self._similar(text, near))

    def draft_links(self, lane: str, path: str, content: str) -> list[LinkOut]:
        """Return the links that a text would have at a path, and where they lead."""
        corpus = self._corpus(lane)
        draft = Source(path=path, text=content, version="", stamp="", size=len(content))
        return self._links_out(parse(draft, corpus.lane).document)

    def destinations(self, targets: Iterable[str], lane: str) -> dict[str, Destination]:
        """Say where names lead; what is in the lane of the text counts before other lanes."""
        corpora = sorted(self.corpora.values(), key=lambda corpus: corpus.lane.name != lane)
        destinations: dict[str, Destination] = {}
        unknown: list[str] = []
        for target in dict.fromkeys(targets):
            document = _by_path(corpora, target)
            if document is None:
                unknown.append(target)
            else:
                destinations[target] = Destination(INDEXED, document)
        named = _by_name(corpora, unknown)
        for target in unknown:
            document = named.get(link_key(target))
            if document is not None:
                destinations[target] = Destination(INDEXED, document)
            else:
                destinations[target] = Destination(self._state_of_file(target))
        return destinations

    def _links_out(self, document: Document) -> list[LinkOut]:
        targets = [link.target for link in document.links]
        destinations = self.destinations(targets, document.lane)
        out = []
        seen = set()
        for link in document.links:
            written = (link.target, link.heading, link.kind)
            if written not in seen:
                seen.add(written)
                out.append(LinkOut(link, destinations[link.target]))
        return out

    def _links_back(self, document: Document) -> list[LinkBack]:
        back = []
        names = [*link_keys(document), f"{self._corpus(document.lane).lane.base}/{document.path}"]
        # Memories first: what people and agents found out says more than a cross reference.
        for corpus in sorted(self.corpora.values(), key=lambda each: not each.lane.writable):
            for source_id, links in corpus.links(names).items():
                source = corpus.get(source_id)
                if source is not None and source_id != document.id and links:
                    back.append(LinkBack(source, links[0]))
        return back

    def _similar(self, text: WholeText, near: set[str]) -> list[tuple[Document, float]]:
        corpus = self.corpora.get("memory")
        if corpus is None:
            return []
        body = frontmatter.split(text.source.text)[1]
        probe = Probe(f"{text.document.title}\n{body[:SIMILAR_TEXT]}")
        limit = MOST_SIMILAR + len(near)
        query = Query(probes=(probe,), limit=limit, where=Filter(), min_score=LEAST_SIMILAR)
        similar: dict[str, tuple[Document, float]] = {}
        for hit in corpus.search(query, self.clock()).hits:
            if hit.document.id not in near:
                similar.setdefault(hit.document.id, (hit.document, hit.score))
        return list(similar.values())[:MOST_SIMILAR]

    def _corpus(self, lane: str) -> Corpus:
        if lane not in self.corpora:
            raise UnavailableError(
                f"the {lane} lane is switched off for this project",
                f"Turn it on: write enabled = true under [{lane}] in config.toml",
            )
        return self.corpora[lane]

    def _path(self, corpus: Corpus, path: str) -> str:
        if corpus.lane.writable:
            return references.memory_path(corpus, path)
        document = references.find(corpus, path)
        if document is None:
            # Files of the project that are no documentation are not shown.
            raise NotFoundError(
                f"there is no document {path[:200]!r} in the documentation",
                "<search documentation> finds documents by their content",
            )
        return document.path

    def _state_of_file(self, target: str) -> str:
        try:
            if (self.root / target).exists():
                return FILE
        except (OSError, ValueError):
            # A name that no file can have.
            return MISSING
        return MISSING


def _by_path(corpora: Sequence[Corpus], target: str) -> Document | None:
    """Return the document whose path a link has, with or without .md."""
    for corpus in corpora:
        # A link from elsewhere names the folder of the memories too.
        name = target.removeprefix(f"{corpus.lane.base}/")
        for path in (name, f"{name}.md"):
            document = corpus.get(document_id(corpus.lane, path))
            if document is not None and document.path == path:
                return document
    return None


def _by_name(corpora: Sequence[Corpus], targets: Sequence[str]) -> dict[str, Document]:
    """Map names to the first document that has each as its title, alias, bare name or id."""
    wanted = set(map(link_key, targets))
    named: dict[str, Document] = {}
    if not wanted:
        return named
    for corpus in corpora:
        for document in corpus.documents():
            for name in wanted.intersection(link_keys(document)):
                named.setdefault(name, document)
    return named
