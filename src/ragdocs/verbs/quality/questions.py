"""Makes questions out of a corpus that nobody labelled.

Something that one document says, and that document.

A heading that stands in one document only, the words of a link to a document, and a sentence with
rare words are each a question with a known answer. Edited variants ask the same less exactly: with
a typo, with words left out, and with words replaced by others that the corpus uses in the same
places.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b

import numpy as np

from ragdocs.search.corpus import Corpus
from ragdocs.types import Chunk, Document
from ragdocs.verbs.quality.evaluation import Question

_WORD = re.compile(r"[^\W\d_]{2,}")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_LABEL = re.compile(
    r"(?<!!)\[(?P<label>[^\[\]]{3,120})\]\(|\[\[[^\[\]|]+\|(?P<alias>[^\[\]]{3,120})\]\]"
)
# Words a sentence must have to say something, and those of its words that are asked for.
LEAST_WORDS, ASKED_WORDS = 8, 10
# A word that stands in more than this share of all passages says nothing about one of them.
COMMON_SHARE = 0.1
# A text of fewer words is asked as it stands.
FEWEST_WORDS = 3
# A word that is used less often says little about the corpus.
FEWEST_USES = 3
# Words that are looked at for synonyms, the most frequent first; words this near on either side are
# their company.
VOCABULARY, WINDOW = 1_500, 3
# Two words that keep company as alike as this may stand for each other.
ALIKE = 0.35
LEAST_LETTERS = 5


def make(corpus: Corpus, most: int) -> list[Question]:
    """Return at most so many questions of each kind, the same ones for the same texts."""
    documents = corpus.index.documents()
    keys = [key for document in documents for key in corpus.index.chunks(document.id)]
    passages = corpus.index.load(keys)
    counts = Counter(word for _, piece in passages for word in set(_words(piece.text)))
    exact = {
        "heading": _some(_headings(passages), most),
        "link": _some(_links(documents), most),
        "sentence": _some(_sentences(passages, counts), most),
    }
    synonyms = _synonyms([_words(piece.text) for _, piece in passages], counts)
    edits: dict[str, Callable[[str], str]] = {
        "typo": _mistype,
        "fewer words": _shorten,
        "other words": lambda text: _reword(text, synonyms),
    }
    questions = []
    for kind, pairs in exact.items():
        questions += [_question(text, path, kind) for text, path in pairs]
        for edit, change in edits.items():
            changed = [(change(text), text, path) for text, path in pairs]
            questions += [
                _question(new, path, f"{kind}, {edit}")
                for new, text, path in changed
                if new != text
            ]
    return questions


def _question(text: str, path: str, kind: str) -> Question:
    name = blake2b(
        f"{kind}\0{text}\0{path}".encode("utf-8", "surrogatepass"), digest_size=8
    ).hexdigest()
    return Question(name, text, {path: 1}, kind)


def _some(pairs: Iterator[tuple[str, str]], most: int) -> list[tuple[str, str]]:
    """Choose by digest: a text that comes or goes changes few of the others."""

    def order(pair: tuple[str, str]) -> bytes:
        return blake2b("\0".join(pair).encode("utf-8", "surrogatepass")).digest()

    return sorted(sorted(dict.fromkeys(pairs), key=order)[:most])


def _headings(passages: Sequence[tuple[Document, Chunk]]) -> Iterator[tuple[str, str]]:
    """Yield headings of at least two words that one document alone has."""
    owners: dict[str, set[str]] = defaultdict(set)
    for document, piece in passages:
        for heading in piece.headings:
            owners[heading].add(document.path)
    for heading, paths in owners.items():
        if len(paths) == 1 and len(_words(heading)) > 1:
            yield heading, next(iter(paths))


def _links(documents: Sequence[Document]) -> Iterator[tuple[str, str]]:
    """Yield the words of links together with the document they lead to."""
    named = {
        name: document.path
        for document in documents
        for name in (document.path, document.path[:-3])
    }
    for document in documents:
        for link in document.links:
            target = named.get(link.target)
            match = _LABEL.search(link.context) if target and target != document.path else None
            label = (match["label"] or match["alias"]) if match else ""
            if target and len(_words(label)) > 1:
                yield " ".join(label.split()), target


def _sentences(
    passages: Sequence[tuple[Document, Chunk]], counts: Mapping[str, int]
) -> Iterator[tuple[str, str]]:
    """Yield for each document the telling words of its rarest sentence, in their order."""
    best: dict[str, tuple[float, str]] = {}
    common = max(2, COMMON_SHARE * len(passages))
    for document, piece in passages:
        for sentence in _SENTENCE.split(piece.text):
            words = _words(sentence)
            telling = list(dict.fromkeys(word for word in words if counts[word] <= common))[
                :ASKED_WORDS
            ]
            if len(words) >= LEAST_WORDS and len(telling) > LEAST_WORDS // 2:
                rarity = sum(1 / counts[word] for word in telling)
                best[document.path] = max(
                    best.get(document.path, (0.0, "")), (rarity, " ".join(telling))
                )
    yield from ((text, path) for path, (_, text) in best.items())


def _mistype(text: str) -> str:
    """Swap two letters in the middle of the longest word."""
    words = text.split(" ")
    place = max(range(len(words)), key=lambda i: (len(words[i]), -i))
    word = words[place]
    if len(word) < LEAST_LETTERS:
        return text
    middle = len(word) // 2
    words[place] = word[: middle - 1] + word[middle] + word[middle - 1] + word[middle + 1 :]
    return " ".join(words)


def _shorten(text: str) -> str:
    """Leave out every third word."""
    words = text.split(" ")
    if len(words) < FEWEST_WORDS:
        return text
    return " ".join(word for position, word in enumerate(words) if position % 3 != 1)


def _reword(text: str, synonyms: Mapping[str, str]) -> str:
    """Replace up to half of the words by others that the corpus uses alike."""
    words = text.split(" ")
    known = [place for place, word in enumerate(words) if word.casefold() in synonyms]
    for place in known[: max(1, len(words) // 2)]:
        words[place] = synonyms[words[place].casefold()]
    return " ".join(words)


def _synonyms(texts: Sequence[Sequence[str]], counts: Mapping[str, int]) -> dict[str, str]:
    """Map words to the word that keeps the most similar company.

    Where there is one that is similar enough.
    """
    frequent = [
        word
        for word, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        if count >= FEWEST_USES
    ]
    number = {word: place for place, word in enumerate(frequent[:VOCABULARY])}
    if len(number) < LEAST_WORDS:
        return {}
    company = np.zeros((len(number), len(number)), dtype=np.float32)
    for words in texts:
        places = np.array([number.get(word, -1) for word in words], dtype=np.int64)
        for distance in range(1, WINDOW + 1):
            one, other = places[:-distance], places[distance:]
            both = (one >= 0) & (other >= 0)
            np.add.at(company, (one[both], other[both]), 1)
    company += company.T
    # Positive pointwise mutual information: company that every word keeps says nothing.
    expected = (
        company.sum(axis=1, keepdims=True)
        * company.sum(axis=0, keepdims=True)
        / max(1.0, company.sum())
    )
    told = np.log(
        np.divide(
            company, expected, out=np.ones_like(company), where=(company > 0) & (expected > 0)
        )
    )
    told = np.maximum(told, 0)
    told /= np.maximum(np.linalg.norm(told, axis=1, keepdims=True), 1e-9)
    alike = told @ told.T
    np.fill_diagonal(alike, 0)
    words = list(number)
    nearest = alike.argmax(axis=1)
    return {
        word: words[near]
        for word, near, there in zip(
            words, nearest.tolist(), alike.max(axis=1).tolist(), strict=True
        )
        # One that begins alike is a form of the same word, not another word.
        if there >= ALIKE and len(word) >= LEAST_LETTERS and words[near][:4] != word[:4]
    }


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]
