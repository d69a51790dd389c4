"""Which passages mention a path or the name of a definition, without linking to it."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from ragdocs.search.corpus import Corpus
from ragdocs.types import Chunk, Document

# All passages of a document; no document is longer.
WHOLE = 100_000_000
# Documents whose passages are read at once.
BATCH = 500
_PATH = re.compile(r"(?<![\w./-])(?:\.{0,2}/)?((?:[\w.@-]{1,80}/){0,12}[\w@-][\w.@-]{0,80})")
_LINK = re.compile(r"\[\[[^\[\]\n]{1,600}\]\]|\]\([^()\s]{1,600}\)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,80}")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]{1,60}")
_COMPOUND = re.compile(r"[A-Za-z0-9]_[A-Za-z0-9]|[a-z][A-Z]")


# The lane and the path of a document.
Key = tuple[str, str]


class ReadDocument(NamedTuple):
    """A version of a document, and its words with the passages that they stand in."""

    version: str
    words: Mapping[str, list[Chunk]]


UNREAD = ReadDocument("", {})


@dataclass(slots=True)
class MentioningPassage:
    """A passage, the words that it mentions, and how rare these are together."""

    passage: Chunk
    words: list[str] = field(default_factory=list)
    weight: float = 0.0

    def rank(self) -> tuple[float, int]:
        """Return what passages are sorted by: those with the most rare words come first."""
        return -self.weight, self.passage.start_line


class Mentions:
    """Words of code in all passages, read once for each version of a document."""

    def __init__(self) -> None:
        self._read: dict[Key, ReadDocument] = {}
        self._words: dict[str, set[Key]] = defaultdict(set)

    def refresh(self, corpora: Iterable[Corpus]) -> None:
        """Read the passages of documents that are new or changed, and forget those that went."""
        present = set()
        for corpus in corpora:
            unread = []
            for document in corpus.documents():
                key = (document.lane, document.path)
                present.add(key)
                earlier = self._read.get(key, UNREAD)
                if earlier.version != document.version:
                    unread.append(document)
            for start in range(0, len(unread), BATCH):
                batch = unread[start : start + BATCH]
                self._read_all(corpus, batch)
        gone = self._read.keys() - present
        for key in gone:
            self._forget(key)

    def of(self, word: str) -> list[tuple[str, str, Chunk]]:
        """Return the lane, the path and the passage of every mention of a word."""
        mentions = []
        keys = self._words.get(word, ())
        for key in sorted(keys):
            words = self._read[key].words
            for passage in words[word]:
                mentions.append((*key, passage))
        return mentions

    def documents(self, word: str) -> AbstractSet[Key]:
        """Return the lane and the path of each document that mentions a word."""
        return self._words.get(word, frozenset())

    def rarity(self, word: str) -> float:
        """Tell how much a word says: 1 if one document mentions it, near 0 if most do."""
        count = len(self.documents(word))
        if not count:
            return 0.0
        total = len(self._read)
        most = math.log(1 + total)
        return math.log(1 + total / count) / most

    def passages(self, key: Key, words: Iterable[str]) -> list[tuple[Chunk, list[str]]]:
        """Return the passages of a document that mention any of the words, with these words.

        Passages with most rare words come first, and of the words the rarest.
        """
        words_read = self._read[key].words
        mentioning: dict[str, MentioningPassage] = {}
        rarest_first = sorted(words, key=lambda word: (-self.rarity(word), word))
        for word in rarest_first:
            rarity = self.rarity(word)
            for passage in words_read.get(word, ()):
                mention = mentioning.setdefault(passage.id, MentioningPassage(passage))
                mention.words.append(word)
                mention.weight += rarity
        ranked = sorted(mentioning.values(), key=MentioningPassage.rank)
        return [(mention.passage, mention.words) for mention in ranked]

    def _read_all(self, corpus: Corpus, documents: list[Document]) -> None:
        ids = [document.id for document in documents]
        passages = corpus.passages(ids, WHOLE)
        for document in documents:
            key = (document.lane, document.path)
            self._forget(key)
            own = passages.get(document.id, ())
            words = _passages_by_word(own)
            self._read[key] = ReadDocument(document.version, words)
            for word in words:
                self._words[word].add(key)

    def _forget(self, key: Key) -> None:
        forgotten = self._read.pop(key, UNREAD)
        for word in forgotten.words:
            self._words[word].discard(key)


def _passages_by_word(passages: Iterable[Chunk]) -> dict[str, list[Chunk]]:
    by_word: dict[str, list[Chunk]] = defaultdict(list)
    for passage in passages:
        for word in words_of(passage.text):
            by_word[word].append(passage)
    return by_word


def words_of(text: str) -> set[str]:
    """Return the paths, options and words of a passage."""
    words: set[str] = set()
    # Links are followed, not read.
    text = _LINK.sub(" ", text)
    for path in _PATH.findall(text):
        if "/" in path or "." in path[1:-1]:
            words.add(path.rstrip("."))
    words.update(_OPTION.findall(text))
    # Whether a word says anything about a change is told by how rare it is.
    words.update(_NAME.findall(text))
    return words


def is_telling(name: str) -> bool:
    """Tell whether a name is no word of a sentence: of several words, or that of a class."""
    is_compound = _COMPOUND.search(name.strip("_")) is not None
    return is_compound or name[:1].isupper()


def spellings(path: str) -> list[str]:
    """Return the ways in which a text may mention a path: whole, or by its last parts.

    A bare file name may be that of another file.
    """
    steps = path.split("/")
    names = []
    for start in range(max(1, len(steps) - 1)):
        names.append("/".join(steps[start:]))
    return names
