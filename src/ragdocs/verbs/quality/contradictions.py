"""Memories that contradict each other, listed for a person; nothing is judged.

Their authors say so, or nearly the same statement has other numbers or a negation.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from hashlib import sha256
from itertools import combinations
from math import ceil

from ragdocs.search.corpus import Corpus
from ragdocs.system.sqlite_cache import SideFile
from ragdocs.text import statements
from ragdocs.text.link_kinds import CONTRADICTS, SUPERSEDES
from ragdocs.types import Document, Filter
from ragdocs.verbs.memories.succession import Succession
from ragdocs.verbs.references import find

# Characters of a memory that are compared; the rest of a long one is not.
MOST_CHARACTERS = 20_000
# Statements that are compared with each other.
MOST_STATEMENTS = 60_000
# Statements with two rare words in common; more of them share a phrase, not a fact.
MOST_ALIKE = 40
# Changes whenever statements are compared in another way, so that nothing old is found again.
COMPARISON = "1"
TABLES = "CREATE TABLE IF NOT EXISTS contradictions (key TEXT PRIMARY KEY, found TEXT NOT NULL);"
# States of projects whose contradictions are known.
MOST_CACHED = 100
# Rare words of a statement that are looked at.
MOST_RARE = 6


@dataclass(frozen=True, slots=True)
class Side:
    """A statement and where it stands."""

    document: Document
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two memories that cannot both hold; `how` says in which words they differ.

    Where an author wrote that one contradicts the other, the sides have no text.
    """

    first: Side
    second: Side
    how: str


@dataclass(frozen=True, slots=True)
class Contradictions:
    """Looks for contradictions in the memory lane."""

    corpus: Corpus
    now: datetime
    # What was found in texts that have not changed since.
    cache: SideFile | None = None

    def find(self) -> list[Contradiction]:
        """List contradictions, those that an author wrote down first."""
        where = Filter(hidden=self.corpus.lane.hidden, alive_at=self.now)
        documents = self.corpus.documents(where)
        superseded = Succession(self.corpus, self.now).successors_in_lane(documents)
        current = []
        for document in documents:
            if document.id not in superseded:
                current.append(document)
        contradictions = [*self._circles(current), *self._written(current)]
        pairs = {_pair(item) for item in contradictions}
        for item in self._remembered(current):
            if _pair(item) not in pairs:
                pairs.add(_pair(item))
                contradictions.append(item)
        return contradictions

    def superseded(self) -> list[tuple[Document, Sequence[Document]]]:
        """List the memories that others supersede, each with its successors."""
        where = Filter(hidden=self.corpus.lane.hidden, alive_at=self.now)
        documents = self.corpus.documents(where)
        successors = Succession(self.corpus, self.now).successors_in_lane(documents)
        pairs: list[tuple[Document, Sequence[Document]]] = []
        for document in documents:
            if document.id in successors:
                pairs.append((document, successors[document.id]))
        return pairs

    def _written(self, documents: Sequence[Document]) -> Iterator[Contradiction]:
        """Yield what a link of the kind says."""
        current = {document.id for document in documents}
        for document in documents:
            for link in document.links:
                if link.kind != CONTRADICTS:
                    continue
                other = find(self.corpus, link.target)
                if other is not None and other.id in current and other.id != document.id:
                    yield Contradiction(Side(document, 0, ""), Side(other, 0, ""), "")

    def _circles(self, documents: Sequence[Document]) -> Iterator[Contradiction]:
        """Yield memories that supersede each other."""
        by_pair: dict[tuple[str, str], Document] = {}
        for document in documents:
            for link in document.links:
                if link.kind != SUPERSEDES:
                    continue
                other = find(self.corpus, link.target)
                if other is None or other.id == document.id:
                    continue
                by_pair[document.id, other.id] = document
                if (other.id, document.id) in by_pair:
                    sides = Side(other, 0, ""), Side(document, 0, "")
                    yield Contradiction(*sides, "each says that it supersedes the other")

    def _remembered(self, documents: Sequence[Document]) -> list[Contradiction]:
        """Return what statements contradict each other, from the cache if no text has changed."""
        if self.cache is None:
            return list(self._opposite(documents))
        versions = sorted(f"{document.id} {document.version}" for document in documents)
        key = sha256("\n".join([COMPARISON, *versions]).encode()).hexdigest()
        stored = self.cache.ask(partial(_load, key))
        if stored is not None:
            return _unpacked(stored, documents)
        contradictions = list(self._opposite(documents))
        self.cache.ask(partial(_store, key, _packed(contradictions)))
        return contradictions

    def _opposite(self, documents: Sequence[Document]) -> Iterator[Contradiction]:
        """Yield statements that are nearly the same and say the opposite, the first of two texts.

        Only statements that share one of their rarest words can be alike enough.
        """
        sides = self._sides(documents)
        for ours, theirs in _candidates(sides):
            if ours.document.id == theirs.document.id:
                continue
            how = statements.opposite(ours.text, theirs.text)
            if how:
                yield Contradiction(ours, theirs, how)

    def _sides(self, documents: Sequence[Document]) -> list[Side]:
        sides: list[Side] = []
        ids = [document.id for document in documents]
        passages = self.corpus.passages(ids, MOST_CHARACTERS)
        for document in documents:
            for passage in passages[document.id]:
                line = passage.start_line
                for text in statements.all_sentences(passage.text):
                    position = passage.text.find(text)
                    before = passage.text.count("\n", 0, max(0, position))
                    sides.append(Side(document, line + before, text))
            if len(sides) > MOST_STATEMENTS:
                break
        return sides


def _load(key: str, connection: sqlite3.Connection) -> str | None:
    row = connection.execute("SELECT found FROM contradictions WHERE key = ?", (key,)).fetchone()
    if row is None:
        return None
    return str(row[0])


def _store(key: str, outcome: str, connection: sqlite3.Connection) -> None:
    with connection:
        connection.execute("INSERT OR REPLACE INTO contradictions VALUES (?, ?)", (key, outcome))
        connection.execute(
            "DELETE FROM contradictions WHERE rowid <= (SELECT MAX(rowid) FROM contradictions) - ?",
            (MOST_CACHED,),
        )


def _packed(contradictions: Sequence[Contradiction]) -> str:
    rows = []
    for item in contradictions:
        sides = []
        for side in (item.first, item.second):
            sides.append((side.document.id, side.line, side.text))
        rows.append((*sides, item.how))
    return json.dumps(rows)


def _unpacked(stored: str, documents: Sequence[Document]) -> list[Contradiction]:
    by_id = {document.id: document for document in documents}
    contradictions = []
    for first, second, how in json.loads(stored):
        sides = []
        for document_id, line, text in (first, second):
            sides.append(Side(by_id[document_id], line, text))
        contradictions.append(Contradiction(sides[0], sides[1], how))
    return contradictions


def _pair(item: Contradiction) -> frozenset[str]:
    return frozenset((item.first.document.id, item.second.document.id))


def _candidates(sides: Sequence[Side]) -> Iterator[tuple[Side, Side]]:
    """Yield pairs of statements that may be alike: they share two of their rarest words."""
    words = [statements.wording(side.text).content for side in sides]
    frequency: Counter[str] = Counter()
    for content in words:
        frequency.update(content)
    owners: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for position, content in enumerate(words):
        if len(content) < statements.LEAST_WORDS:
            continue
        seen: set[int] = set()
        for pair in combinations(_rarest(content, frequency), 2):
            others = owners[pair]
            seen.update(others)
            if len(others) < MOST_ALIKE:
                others.append(position)
        for other in sorted(seen):
            yield sides[other], sides[position]


def _rarest(content: Collection[str], frequency: Mapping[str, int]) -> list[str]:
    """Return the words of which two statements share at least two, if they are alike enough."""
    ordered = sorted(content, key=lambda word: (frequency[word], word))
    # Each of two that are alike has at most this many words that the other does not have.
    missing = ceil(2 * (1 - statements.OPPOSITE) * len(content))
    return sorted(ordered[: min(missing + 2, MOST_RARE)])
