"""Makes questions out of a corpus that nobody labelled.

A heading that stands in one document only, the words of a link to a document, and a sentence with
rare words are each a question with a known answer. Edited variants ask the same less exactly: with
a typo, with words left out, and with words replaced by others that the corpus uses in the same
places.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from ragdocs.search.corpus import Corpus
from ragdocs.types import Chunk, Document
from ragdocs.verbs.quality.evaluation import Question

# A passage with the document it is of.
Passage = tuple[Document, Chunk]
# A question's text and the path of the document that answers it.
Pair = tuple[str, str]
Matrix = npt.NDArray[np.float32]
# The words of each passage.
Texts = Sequence[Sequence[str]]
# In how many passages each word stands.
Counts = Mapping[str, int]
Edit = Callable[[str], str]

_WORD = re.compile(r"[^\W\d_]{2,}")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_LABEL = re.compile(
    r"(?<!!)\[(?P<label>[^\[\]]{3,120})\]\(|\[\[[^\[\]|]+\|(?P<alias>[^\[\]]{3,120})\]\]"
)
# Words a sentence must have to say something, and those of its words that are asked for.
LEAST_WORDS = 8
ASKED_WORDS = 10
# A word that stands in more than this share of all passages says nothing about one of them.
COMMON_SHARE = 0.1
# A text of fewer words is asked as it stands.
FEWEST_WORDS = 3
# A word that is used less often says little about the corpus.
FEWEST_USES = 3
# Words that are looked at for synonyms, the most frequent first; words this near on either side are
# their company.
VOCABULARY = 1_500
WINDOW = 3
# Two words that keep company as alike as this may stand for each other.
ALIKE = 0.35
LEAST_LETTERS = 5
# Words that begin with the same letters, this many, are forms of one word.
STEM = 4
# More characters than any document has.
EVERYTHING = 1_000_000_000


def make(corpus: Corpus, most: int) -> list[Question]:
    """Return at most so many questions of each kind, the same ones for the same texts."""
    documents = corpus.documents()
    passages = _passages(corpus, documents)
    texts = [_words(passage.text) for _, passage in passages]
    counts = _counts(texts)
    edits = _edits(_synonyms(texts, counts))
    exact = {
        "heading": _some(_headings(passages), most),
        "link": _some(_links(documents), most),
        "sentence": _some(_sentences(passages, counts), most),
    }
    questions = []
    for kind, pairs in exact.items():
        for text, path in pairs:
            questions.append(_question(text, path, kind))
        for name, edit in edits.items():
            questions += _edited(pairs, edit, f"{kind}, {name}")
    return questions


def _counts(texts: Texts) -> Counter[str]:
    counts: Counter[str] = Counter()
    for words in texts:
        counts.update(set(words))
    return counts


def _edits(synonyms: Mapping[str, str]) -> dict[str, Edit]:
    """Return the ways to ask the same less exactly."""

    def reword(text: str) -> str:
        return _reword(text, synonyms)

    return {"typo": _mistype, "fewer words": _shorten, "other words": reword}


def _passages(corpus: Corpus, documents: Sequence[Document]) -> list[Passage]:
    """Return all passages, document by document."""
    ids = [document.id for document in documents]
    by_id = corpus.passages(ids, room=EVERYTHING)
    passages: list[Passage] = []
    for document in documents:
        for passage in by_id[document.id]:
            passages.append((document, passage))
    return passages


def _edited(pairs: Iterable[Pair], edit: Edit, kind: str) -> list[Question]:
    """Return the questions that an edit changes."""
    questions = []
    for text, path in pairs:
        edited = edit(text)
        if edited != text:
            questions.append(_question(edited, path, kind))
    return questions


def _question(text: str, path: str, kind: str) -> Question:
    name = _digest((kind, text, path), 8).hex()
    return Question(name, text, {path: 1}, kind)


def _some(pairs: Iterator[Pair], most: int) -> list[Pair]:
    """Choose by digest: a text that comes or goes changes few of the others."""
    shuffled = sorted(dict.fromkeys(pairs), key=_digest)
    return sorted(shuffled[:most])


def _digest(parts: Sequence[str], size: int = 64) -> bytes:
    data = "\0".join(parts).encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=size).digest()


def _headings(passages: Sequence[Passage]) -> Iterator[Pair]:
    """Yield headings of at least two words that one document alone has."""
    owners: dict[str, set[str]] = defaultdict(set)
    for document, passage in passages:
        for heading in passage.headings:
            owners[heading].add(document.path)
    for heading, paths in owners.items():
        if len(paths) == 1 and len(_words(heading)) > 1:
            yield heading, next(iter(paths))


def _links(documents: Sequence[Document]) -> Iterator[Pair]:
    """Yield the words of links together with the document they lead to."""
    paths = {}
    for document in documents:
        paths[document.path] = document.path
        paths[document.path[:-3]] = document.path
    for document in documents:
        for link in document.links:
            target = paths.get(link.target)
            if target is None or target == document.path:
                continue
            label = _label(link.context)
            if len(_words(label)) > 1:
                yield " ".join(label.split()), target


def _label(context: str) -> str:
    """Return the words of the first link in a text."""
    match = _LABEL.search(context)
    if match is None:
        return ""
    return match["label"] or match["alias"]


def _sentences(passages: Sequence[Passage], counts: Counts) -> Iterator[Pair]:
    """Yield for each document the telling words of its rarest sentence, in their order."""
    best: dict[str, tuple[float, str]] = {}
    common = max(2, COMMON_SHARE * len(passages))
    for document, passage in passages:
        for sentence in _SENTENCE.split(passage.text):
            telling = _telling(_words(sentence), counts, common)
            if telling:
                rarity = sum(1 / counts[word] for word in telling)
                before = best.get(document.path, (0.0, ""))
                best[document.path] = max(before, (rarity, " ".join(telling)))
    for path, (_, text) in best.items():
        yield text, path


def _telling(words: Sequence[str], counts: Counts, common: float) -> list[str]:
    """Return the rare words of a sentence, or nothing if it says too little."""
    if len(words) < LEAST_WORDS:
        return []
    rare = dict.fromkeys(word for word in words if counts[word] <= common)
    telling = list(rare)[:ASKED_WORDS]
    if len(telling) <= LEAST_WORDS // 2:
        return []
    return telling


def _mistype(text: str) -> str:
    """Swap two letters in the middle of the longest word."""
    words = text.split(" ")
    word = max(words, key=len)
    if len(word) < LEAST_LETTERS:
        return text
    letters = list(word)
    middle = len(word) // 2
    letters[middle - 1] = word[middle]
    letters[middle] = word[middle - 1]
    words[words.index(word)] = "".join(letters)
    return " ".join(words)


def _shorten(text: str) -> str:
    """Leave out every third word."""
    words = text.split(" ")
    if len(words) < FEWEST_WORDS:
        return text
    del words[1::3]
    return " ".join(words)


def _reword(text: str, synonyms: Mapping[str, str]) -> str:
    """Replace up to half of the words by others that the corpus uses alike."""
    words = text.split(" ")
    left = max(1, len(words) // 2)
    for position, word in enumerate(words):
        synonym = synonyms.get(word.casefold())
        if synonym is not None and left:
            words[position] = synonym
            left -= 1
    return " ".join(words)


def _synonyms(texts: Texts, counts: Counts) -> dict[str, str]:
    """Map words to the word that keeps the most similar company, if that is similar enough."""
    vocabulary = _vocabulary(counts)
    if len(vocabulary) < LEAST_WORDS:
        return {}
    similarity = _similarity(_company(texts, vocabulary))
    nearest = similarity.argmax(axis=1)
    synonyms = {}
    for row, word in enumerate(vocabulary):
        column = int(nearest[row])
        other = vocabulary[column]
        # One that begins alike is a form of the same word, not another word.
        is_form = other[:STEM] == word[:STEM]
        if similarity[row, column] >= ALIKE and len(word) >= LEAST_LETTERS and not is_form:
            synonyms[word] = other
    return synonyms


def _vocabulary(counts: Counts) -> list[str]:
    """Return the words that are looked at, the most frequent first."""
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    frequent = [word for word in ordered if counts[word] >= FEWEST_USES]
    return frequent[:VOCABULARY]


def _company(texts: Texts, vocabulary: Sequence[str]) -> Matrix:
    """Count how often each two words stand near each other."""
    size = len(vocabulary)
    numbers = dict(zip(vocabulary, range(size), strict=True))
    company = np.zeros((size, size), dtype=np.float32)
    for words in texts:
        row_numbers = [numbers.get(word, -1) for word in words]
        row = np.array(row_numbers, dtype=np.int64)
        for distance in range(1, WINDOW + 1):
            left = row[:-distance]
            right = row[distance:]
            both = (left >= 0) & (right >= 0)
            np.add.at(company, (left[both], right[both]), 1)
    company += company.T
    return company


def _similarity(company: Matrix) -> Matrix:
    """Return how alike the company of each two words is, by positive mutual information."""
    # What every word keeps company with says nothing: it is no more than expected.
    rows = company.sum(axis=1, keepdims=True)
    columns = company.sum(axis=0, keepdims=True)
    expected = rows * columns / max(1.0, company.sum())
    together = (company > 0) & (expected > 0)
    ratio = np.divide(company, expected, out=np.ones_like(company), where=together)
    information = np.maximum(np.log(ratio), 0)
    norms = np.linalg.norm(information, axis=1, keepdims=True)
    information /= np.maximum(norms, 1e-9)
    similarity: Matrix = information @ information.T
    np.fill_diagonal(similarity, 0)
    return similarity


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]
