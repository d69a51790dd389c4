"""Memories and the documentation: what a page says already, and what a page should say.

A memory that restates a section could be a link to it; one that is used often and has not changed
for long could be a part of the documentation. Both are shown as diffs, and nothing is edited.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from ragdocs.protocols import AccessLog
from ragdocs.search.corpus import Corpus
from ragdocs.system.names import own_id
from ragdocs.text import frontmatter, statements
from ragdocs.types import Chunk, Document, Filter, Probe, Query
from ragdocs.verbs.memories.preview import Difference, difference
from ragdocs.verbs.memories.succession import Succession
from ragdocs.verbs.text_position import TextPosition, position_in

# The share of a memory's words, rare ones counting more, that a passage must have. The figures are
# printed by `bench/merges.py`.
RESTATES = 0.8
# Fewer words say too little to be called a repetition.
LEAST_WORDS = 8
# Passages that have most of a memory's rare words and are compared with it.
MOST_CANDIDATES = 8
# The rarest words of a memory, by which passages are looked for, and how common those may be.
MOST_RARE = 12
MOST_OWNERS = 300
MOST_CHARACTERS = 200_000
# How often a memory must have been of use, and how long unchanged, to belong into a page.
LEAST_USES = 3
STABLE = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Restatement:
    """A memory that a passage of the documentation says already, and how much of it."""

    memory: Document
    page: Document
    passage: Chunk
    # The section in the passage.
    position: TextPosition
    share: float
    # What the memory would be with a link in the place of its text.
    replacement: Difference


@dataclass(frozen=True, slots=True)
class DocsPatch:
    """A memory that is used often and stable, as a change to a page of the documentation."""

    memory: Document
    page: Document
    uses: int
    patch: Difference


@dataclass(frozen=True, slots=True)
class DocsChanges:
    """What could move between memories and documentation."""

    restated: Sequence[Restatement]
    patches: Sequence[DocsPatch]
    notes: Sequence[str]


@dataclass(frozen=True)
class Passages:
    """The passages of the documentation by their words."""

    items: Sequence[tuple[Document, Chunk]]

    @cached_property
    def contents(self) -> Sequence[statements.Wording]:
        """What each passage is compared by."""
        return [statements.wording(passage.text) for _, passage in self.items]

    @cached_property
    def page_words(self) -> Mapping[str, AbstractSet[str]]:
        """The words of each page by its id, those of its title included."""
        words: dict[str, set[str]] = defaultdict(set)
        for page, passage in self.items:
            words[page.id] |= statements.stems(f"{page.title} {passage.text}")
        return words

    @cached_property
    def owners(self) -> Mapping[str, Sequence[int]]:
        """The positions of the passages that have a word."""
        owners: dict[str, list[int]] = defaultdict(list)
        for position, content in enumerate(self.contents):
            for word in content.content:
                owners[word].append(position)
        return owners

    def weight(self, word: str) -> float:
        """Return how much a word says: the rarer, the more."""
        count = len(self.owners.get(word, ()))
        return math.log(1 + len(self.items) / (1 + count))

    def restating(self, text: str) -> tuple[float, int] | None:
        """Return the passage that says most of a text, and which share of it, if that is enough."""
        wording = statements.wording(text)
        words = wording.content
        if len(words) < LEAST_WORDS:
            return None
        whole = sum(map(self.weight, words))
        names = statements.proper_names(text)
        best: tuple[float, int] | None = None
        for position in self._candidates(words):
            passage = self.contents[position]
            page, _ = self.items[position]
            # A number that the passage does not have is news, and so is a name that the page lacks.
            if not wording.numbers <= passage.numbers or not names <= self.page_words[page.id]:
                continue
            share = sum(map(self.weight, words & passage.content)) / whole
            if share >= RESTATES and (best is None or share > best[0]):
                best = share, position
        return best

    def _candidates(self, words: Collection[str]) -> list[int]:
        """Return the passages with most of the rarest words."""
        rarest = sorted(words, key=lambda word: (len(self.owners.get(word, ())), word))
        counts: Counter[int] = Counter()
        for word in rarest[:MOST_RARE]:
            counts.update(self.owners.get(word, ())[:MOST_OWNERS])
        ordered = sorted(counts, key=lambda position: (-counts[position], position))
        return ordered[:MOST_CANDIDATES]


@dataclass(frozen=True, slots=True)
class Restating:
    """Compares memories with the documentation."""

    memory: Corpus
    docs: Corpus
    access: AccessLog
    clock: Callable[[], datetime]

    def suggest(self, limit: int) -> DocsChanges:
        """Return memories that a page restates, and those that a page should have."""
        documents = self._memories()
        restated = sorted(self._restated(documents), key=_most_alike)
        others = {document.id: document for document in documents}
        for item in restated:
            del others[item.memory.id]
        patches = self._patches(list(others.values()), limit)
        return DocsChanges(restated[:limit], patches, self.docs.notes())

    def _memories(self) -> list[Document]:
        now = self.clock()
        where = Filter(hidden=self.memory.lane.hidden, alive_at=now)
        documents = self.memory.documents(where)
        superseded = Succession(self.memory, now).successors(documents)
        return [document for document in documents if document.id not in superseded]

    def _restated(self, documents: Sequence[Document]) -> Iterator[Restatement]:
        pages = self.docs.documents()
        items = []
        chunks = self.docs.passages([page.id for page in pages], MOST_CHARACTERS)
        for page in pages:
            for passage in chunks[page.id]:
                items.append((page, passage))
        passages = Passages(items)
        texts = self.memory.passages([document.id for document in documents], MOST_CHARACTERS)
        for document in documents:
            text = _prose("\n\n".join([passage.text for passage in texts[document.id]]))
            match = passages.restating(text)
            if match is not None:
                share, number = match
                page, passage = items[number]
                position = _position(passage, text)
                link = self._replacement(document, page, position.headings)
                yield Restatement(document, page, passage, position, share, link)

    def _replacement(self, memory: Document, page: Document, headings: Sequence[str]) -> Difference:
        """Return a memory with a link to a section in the place of its text."""
        text = self.memory.store.read(memory.path).text
        body = frontmatter.split(text)[1]
        header = text[: len(text) - len(body)]
        target = page.path
        if headings:
            target += f"#{headings[-1]}"
        first = body.lstrip("\n").partition("\n")[0]
        after = header
        if header:
            after += "\n"
        if statements.is_heading(first):
            after += f"{first}\n\n"
        return difference(memory.path, text, f"{after}See [[{target}]].\n")

    def _patches(self, documents: Sequence[Document], limit: int) -> list[DocsPatch]:
        """Return the memories that were used most, as additions to the page nearest to each."""
        uses: Counter[str] = Counter(self.access.counts("used"))
        uses.update(self.access.counts("get"))
        before = self.clock() - STABLE
        stable = []
        for document in documents:
            count = uses[own_id(document)]
            moment = document.modified_at or document.created_at
            if count >= LEAST_USES and moment is not None and moment <= before:
                stable.append((-count, document.path, document))
        patches = []
        for negative, _, document in sorted(stable)[:limit]:
            page = self._page(document)
            if page is not None:
                patches.append(DocsPatch(document, page, -negative, self._patch(document, page)))
        return patches

    def _page(self, memory: Document) -> Document | None:
        """Return the page that a memory links to, or the one that is most about the same."""
        for link in memory.links:
            page = self.docs.get(link.target)
            if page is not None:
                return page
        query = Query(probes=(Probe(memory.title),), limit=1, floored=True)
        for hit in self.docs.search(query, self.clock()).hits:
            return hit.document
        return None

    def _patch(self, memory: Document, page: Document) -> Difference:
        """Return a page with a memory as a section at its end."""
        before = self.docs.store.read(page.path).text
        text = self.memory.store.read(memory.path).text
        body = frontmatter.split(text)[1].strip("\n")
        first, _, rest = body.partition("\n")
        if statements.is_heading(first):
            body = rest.strip("\n")
        title = memory.title
        after = f"{before.rstrip()}\n\n## {title}\n\n{body}\n"
        return difference(page.path, before, after)


def _most_alike(item: Restatement) -> tuple[float, str]:
    return -item.share, item.memory.path


def _position(passage: Chunk, text: str) -> TextPosition:
    """Return where a passage has the sentence that has most words of a text."""
    words = statements.wording(text).content
    nearest = ""
    most = 0
    for sentence in statements.all_sentences(passage.text):
        count = len(words & statements.wording(sentence).content)
        if count > most:
            nearest = sentence
            most = count
    return position_in(passage, nearest)


def _prose(text: str) -> str:
    """Return a text without its headings and code."""
    return "\n".join(statements.all_sentences(text))
