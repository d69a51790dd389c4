"""Reading, searching and counting memories."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import cast

from ragdocs.search.corpus import Corpus
from ragdocs.system.names import NAME_BYTES, own_id
from ragdocs.types import Chunk, Document, Filter, Findings, Hit, Link, Probe, Query
from ragdocs.verbs import page, references
from ragdocs.verbs.shapes import (
    LinkedHit,
    LinkedHits,
    LinkShape,
    MemoryHit,
    MemoryHits,
    MemoryText,
    Stats,
)

# Of one memory in one answer; the text has them all.
MOST_LINKS = 8
PREVIEW = 160
# Link kinds that say least come last when one kind has to stand for several links.
_VAGUE = ("mentions", "related_to")


@dataclass(frozen=True, slots=True)
class ReadableMemories:
    """What can be asked of the memory lane without changing it."""

    corpus: Corpus
    clock: Callable[[], datetime]
    budget: int

    def read(self, filename: str, lines: str | None = None) -> MemoryText:
        """Return a memory as it stands in its file, cut to the budget if it is long."""
        path = references.memory_path(self.corpus, filename)
        source = self.corpus.store.read(path)
        span = page.parse_lines(lines)
        content, line_range, omitted = page.excerpt(source.text, 1, span, self.budget)
        return MemoryText(
            filename=path,
            content=content,
            path=self.corpus.store.locate(path),
            version=source.version,
            lines=line_range,
            omitted=omitted,
        )

    def search(
        self,
        query: str,
        limit: int = 5,
        *,
        tags: Sequence[str] = (),
        kind: str | None = None,
        archived: bool = False,
        explain: bool = False,
    ) -> MemoryHits:
        """Find memories by meaning, words and links, recent ones first among equals."""
        page.check_limit(limit)
        where = Filter(tags=tuple(tags))
        if kind:
            where = replace(where, kinds=(kind,))
        if archived:
            # No memory has an empty status, so that this hides none.
            where = replace(where, hidden=("",))
        now = self.clock()
        search = Query(
            probes=(Probe(query),),
            limit=limit,
            where=where,
            floored=True,
        )
        findings = self.corpus.search(search, now)

        def shape(hit: Hit) -> MemoryHit:
            return _memory_hit(self.corpus, hit, now, explain=explain)

        hits, omitted, notes = page.fit(findings, shape, self.budget)
        return MemoryHits(result=hits, omitted=omitted, notes=notes)

    def linked(self, query: str, target_document: str, limit: int = 5) -> LinkedHits:
        """Find the memories that link to a document or source file, the best for the query first.

        Then those that the query does not find, newest first: the link is reason enough.
        """
        page.check_limit(limit)
        now = self.clock()
        names = self._names(target_document)
        if not names:
            return LinkedHits(result=[], omitted=0, notes=[])
        where = Filter(linked_to=names)
        search = Query(probes=(Probe(query),), limit=limit, where=where)
        findings = self.corpus.search(search, now)
        findings = self._completed(findings, search, now)

        def shape(hit: Hit) -> LinkedHit:
            return _linked_hit(self.corpus, hit, now)

        results, omitted, notes = page.fit(findings, shape, self.budget)
        for hit in findings.hits[: len(results)]:
            more = len(hit.links) - MOST_LINKS
            if more > 0:
                notes.append(f"{hit.document.id} has {more} more links to it")
        return LinkedHits(result=results, omitted=omitted, notes=notes)

    def stats(self) -> Stats:
        """Count memories, tags and types."""
        documents = self.corpus.documents()
        all_tags: list[str] = []
        all_kinds = []
        size = 0
        for document in documents:
            all_tags += document.tags
            size += document.size
            all_kinds.append(document.kind)
        tags = page.tally(all_tags)
        kinds = page.tally(all_kinds)
        listed_tags = dict(page.within(tags.items(), self.budget // 2))
        listed_kinds = dict(page.within(kinds.items(), self.budget // 4))
        notes = []
        if len(listed_tags) < len(tags):
            notes.append(f"{len(tags) - len(listed_tags)} rarer tags are not listed")
        if len(listed_kinds) < len(kinds):
            notes.append(f"{len(kinds) - len(listed_kinds)} rarer types are not listed")
        return Stats(
            count=len(documents),
            total_size=page.size(size),
            tags=listed_tags,
            types=listed_kinds,
            memory_path=self.corpus.store.locate(""),
            notes=notes,
        )

    def _names(self, target: str) -> tuple[str, ...]:
        """Return the ways in which links may name a target that is given by any of its names."""
        name = target.strip()
        document = references.find(self.corpus, name)
        if document is None:
            page_name = name.partition("#")[0]
            document = references.find(self.corpus, page_name)
        if document is not None:
            return (*spellings(document.path), own_id(document))
        memories = self.corpus.store.locate("")
        root = memories.removesuffix(f"{os.sep}{self.corpus.lane.base}")
        return spellings(name.removeprefix(f"{root}{os.sep}"))

    def _completed(self, findings: Findings, search: Query, now: datetime) -> Findings:
        """Add the linked memories that the query did not find, and count all that are linked."""
        where = replace(search.where, hidden=self.corpus.lane.hidden, alive_at=now)
        documents = self.corpus.documents(where, "newest", now=now)
        ids = {hit.document.id for hit in findings.hits}
        others = [document for document in documents if document.id not in ids]
        room = search.limit - len(findings.hits)
        more = self._unranked(others, where.linked_to, room)
        hits = (*findings.hits, *more)
        omitted = len(documents) - len(hits)
        return replace(findings, hits=hits, omitted=omitted)

    def _unranked(
        self,
        documents: Sequence[Document],
        names: Sequence[str],
        room: int,
    ) -> list[Hit]:
        """Return the first of these documents as hits without a score."""
        beginnings: list[tuple[Document, Chunk]] = []
        for document in documents:
            if len(beginnings) >= room:
                break
            passages = self.corpus.passages([document.id])[document.id]
            if passages:
                beginnings.append((document, passages[0]))
        ids = [document.id for document, _ in beginnings]
        links = self.corpus.links(names, ids)
        more = []
        for document, passage in beginnings:
            own_links = links.get(document.id, ())
            more.append(Hit(document, passage, 0.0, (), own_links))
        return more


def preview(corpus: Corpus, document: Document) -> str:
    """Return the beginning of a document on one line."""
    passages = corpus.passages([document.id])[document.id]
    if not passages:
        return ""
    words = passages[0].text.split()
    return page.cut(" ".join(words), PREVIEW)


# --- the names of a document in links ---


def spellings(target: str) -> tuple[str, ...]:
    """Return the ways in which a link may name this document.

    With and without its markdown ending, or by one of its folders.
    """
    name = target.strip().removeprefix("ghost:")
    name = name.replace("\\", "/").removeprefix("./")
    name = name.partition("#")[0].strip()
    for lane in ("docs:", "memory:"):
        name = name.removeprefix(lane)
    name = name.rstrip("/")
    if not name:
        return ()
    if name.endswith(".md"):
        other = name.removesuffix(".md")
    else:
        other = f"{name}.md"
    return (name, other, *(f"{folder}/*" for folder in _folders(name)))


def _folders(name: str) -> list[str]:
    """List a path and the folders above it, the nearest first, as far as a link can name them.

    No link is longer than `NAME_BYTES`; to spell every folder of a longer path would cost the
    square of its length.
    """
    folder = str(PurePosixPath(name))
    if len(folder) > NAME_BYTES:
        folder = folder[: NAME_BYTES + 1].rpartition("/")[0]
    folders = []
    while folder and folder != ".":
        folders.append(folder)
        folder = folder.rpartition("/")[0]
    return folders


# --- what answers say of a hit ---


def _memory_hit(
    corpus: Corpus,
    hit: Hit,
    now: datetime,
    *,
    explain: bool,
) -> MemoryHit:
    document = hit.document
    result = MemoryHit(
        memory_id=document.id,
        score=round(hit.score, 3),
        content="",
        type=document.kind,
        status=document.status,
        tags=page.tags(document),
        file_path=corpus.store.locate(document.path),
        header_path=page.header(hit),
        title=page.title(document),
        lines=page.lines(hit),
        created_at=page.moment(document.created_at),
        age=page.age(document.created_at, now),
        why=page.why(hit),
    )
    if explain:
        result["signals"] = page.signals(hit)
    return cast("MemoryHit", {**result, **page.provenance(document)})


def _linked_hit(corpus: Corpus, hit: Hit, now: datetime) -> LinkedHit:
    document = hit.document
    anchor = _anchor(hit.links)
    links = []
    for link in hit.links[:MOST_LINKS]:
        shape = LinkShape(edge_type=link.kind, anchor_context=link.context)
        links.append(shape)
    return LinkedHit(
        memory_id=document.id,
        score=round(hit.score, 3),
        content="",
        anchor_context=anchor.context,
        edge_type=anchor.kind,
        file_path=corpus.store.locate(document.path),
        title=page.title(document),
        lines=page.lines(hit),
        created_at=page.moment(document.created_at),
        age=page.age(document.created_at, now),
        why=page.why(hit),
        links=links,
        **page.provenance(document),
    )


def _anchor(links: Sequence[Link]) -> Link:
    """Return the link that stands for all of them: the first whose kind says something."""
    if not links:
        return Link(target="", kind="related_to", context="")
    return min(links, key=lambda link: link.kind in _VAGUE)
