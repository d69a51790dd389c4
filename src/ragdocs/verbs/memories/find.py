"""Reading, searching and counting memories."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath

from ragdocs.search.corpus import Corpus
from ragdocs.system.names import NAME_BYTES, link_key, own_id
from ragdocs.types import Chunk, Document, Filter, Findings, Hit, Probe, Query, Source
from ragdocs.verbs import filters, page, references
from ragdocs.verbs.memories.succession import Succession

# Files of the same name that are listed for a person to choose from.
MOST_CANDIDATES = 10
# Characters of a name in a note.
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class MemorySource:
    """A memory as it stands in its file.

    `span` is the first and the last line that were asked for, if not all.
    """

    path: str
    location: str
    source: Source
    span: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCounts:
    """What a memory bank holds; the size is in bytes, frequent tags and kinds come first."""

    count: int
    size: int
    tags: Mapping[str, int]
    kinds: Mapping[str, int]
    location: str
    # What is not known yet.
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ReadableMemories:
    """What can be asked of the memory lane without changing it."""

    corpus: Corpus
    clock: Callable[[], datetime]

    def locate(self, path: str) -> str:
        """Return the absolute path of a memory."""
        return self.corpus.store.locate(path)

    def read(self, filename: str, lines: str | None = None) -> MemorySource:
        """Return a memory as it stands in its file."""
        path = references.memory_path(self.corpus, filename)
        source = self.corpus.store.read(path)
        return MemorySource(path, self.locate(path), source, page.parse_lines(lines))

    def search(
        self,
        query: str,
        limit: int = 5,
        *,
        tags: Sequence[str] = (),
        kind: str | None = None,
        archived: bool = False,
    ) -> Findings:
        """Find memories by meaning, words and links, recent ones first among equals."""
        page.check_limit(limit)
        page.check_query(query)
        where = Filter(tags=tuple(tags))
        if kind:
            where = replace(where, kinds=(kind,))
        if archived:
            # No memory has an empty status, so that this hides none.
            where = replace(where, hidden=("",))
        search = Query(
            probes=(Probe(query),),
            limit=limit,
            where=where,
            floored=True,
            superseded="below",
        )
        findings = self.corpus.search(search, self.clock())
        unknown = filters.unknown(self.corpus, tags, where.kinds)
        return replace(findings, notes=(*unknown, *findings.notes))

    def linked(self, query: str, target_document: str, limit: int = 5) -> Findings:
        """Find the memories that link to a document or source file, the best for the query first.

        Then those that the query does not find, newest first: the link is reason enough.
        """
        page.check_limit(limit)
        names = self._names(target_document)
        if not names:
            return Findings(hits=())
        findings = self._linked(query, names, limit)
        if findings.hits:
            return findings
        meant = self._bare_name(target_document.strip())
        if len(meant) > 1:
            return Findings(hits=(), notes=(_ambiguous(target_document.strip(), meant),))
        for target in meant:
            findings = self._linked(query, spellings(target), limit)
            notes = (f"links to {target} were looked for", *findings.notes)
            return replace(findings, notes=notes)
        # A name that was asked for may be anything, a secret too.
        name = self.corpus.redactor.redact(names[0]).text
        return replace(findings, notes=(_how_to_link(name), *findings.notes))

    def _linked(self, query: str, names: tuple[str, ...], limit: int) -> Findings:
        """Find what links to any of these names: what the query finds, then the newest."""
        now = self.clock()
        search = Query(
            probes=(Probe(query),),
            limit=limit,
            where=Filter(linked_to=names),
            superseded="named",
        )
        findings = self._completed(self.corpus.search(search, now), search, now)
        # What holds comes first; the order is the same otherwise.
        hits = sorted(findings.hits, key=lambda hit: bool(hit.successors))
        return replace(findings, hits=tuple(hits))

    def successors(self, document: Document) -> tuple[Document, ...]:
        """Return the memories that supersede one, as they say."""
        succession = Succession(self.corpus, self.clock())
        return succession.successors([document]).get(document.id, ())

    def stats(self) -> MemoryCounts:
        """Count memories, tags and types."""
        documents = self.corpus.documents()
        all_tags: list[str] = []
        all_kinds = []
        size = 0
        for document in documents:
            all_tags += document.tags
            size += document.size
            all_kinds.append(document.kind)
        return MemoryCounts(
            count=len(documents) + self.corpus.unread,
            size=size,
            tags=page.tally(all_tags),
            kinds=page.tally(all_kinds),
            location=self.locate(""),
            notes=self.corpus.unread_notes(),
        )

    def _names(self, target: str) -> tuple[str, ...]:
        """Return the ways in which links may name a target that is given by any of its names."""
        name = target.strip()
        document = references.find(self.corpus, name)
        page_name = name.partition("#")[0]
        if document is None and page_name != name:
            document = references.find(self.corpus, page_name)
        if document is not None:
            return (*spellings(document.path), own_id(document))
        memories = self.locate("")
        root = memories.removesuffix(f"{os.sep}{self.corpus.lane.base}")
        return spellings(name.removeprefix(f"{root}{os.sep}"))

    def _bare_name(self, name: str) -> list[str]:
        """Return the linked files that have this name, in whatever folder they are."""
        if not name or "/" in name or "\\" in name:
            return []
        wanted = (name, f"{name}.md")
        targets = set()
        for document in self.corpus.documents():
            for link in document.links:
                target = PurePosixPath(link.target)
                if target.name in wanted:
                    targets.add(str(target))
        return sorted(targets)

    def _completed(self, findings: Findings, search: Query, now: datetime) -> Findings:
        """Add the linked memories that the query did not find, and count all that are linked."""
        where = replace(search.where, hidden=self.corpus.lane.hidden, alive_at=now)
        documents = self.corpus.documents(where, "newest", now=now)
        ids = set()
        for hit in findings.hits:
            ids.add(hit.document.id)
        others = []
        for document in documents:
            if document.id not in ids:
                others.append(document)
        room = search.limit - len(findings.hits)
        more = self._unranked(others, where.linked_to, room, now)
        hits = (*findings.hits, *more)
        omitted = len(documents) - len(hits)
        return replace(findings, hits=hits, omitted=omitted)

    def _unranked(
        self, documents: Sequence[Document], names: Sequence[str], room: int, now: datetime
    ) -> list[Hit]:
        """Return the first of these documents as hits without a score."""
        beginnings: list[tuple[Document, Chunk]] = []
        for start in range(0, len(documents), max(1, room)):
            # One more step only if some of these have no passage.
            if len(beginnings) >= room:
                break
            some = documents[start : start + room]
            passages = self.corpus.passages([document.id for document in some])
            for document in some:
                for passage in passages[document.id][:1]:
                    beginnings.append((document, passage))
        del beginnings[room:]
        if not beginnings:
            return []
        shown = [document for document, _ in beginnings]
        successors = Succession(self.corpus, now).successors(shown)
        targets = {link_key(name) for name in names}
        more = []
        for document, passage in beginnings:
            links = tuple(link for link in document.links if link_key(link.target) in targets)
            later = successors.get(document.id, ())
            more.append(Hit(document, passage, 0.0, (), links=links, successors=later))
        return more


def _how_to_link(name: str) -> str:
    """Say how a memory is linked to a file: naming the file in its text is not enough."""
    short = name[:LONGEST_NAME]
    return f"no memory links to {short}; a link is written as [[{short}]] in its text"


def _ambiguous(name: str, targets: Sequence[str]) -> str:
    """Say which files a bare name may mean."""
    listed = ", ".join(targets[:MOST_CANDIDATES])
    if len(targets) > MOST_CANDIDATES:
        listed += f" and {len(targets) - MOST_CANDIDATES} more"
    return f"{name[:80]} may mean {len(targets)} linked files, name one: {listed}"


def beginning(corpus: Corpus, document: Document) -> str:
    """Return the first passage of a document on one line."""
    passages = corpus.passages([document.id])[document.id]
    if not passages:
        return ""
    words = passages[0].text.split()
    return " ".join(words)


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
