"""The terms of a text: stemmed words, identifiers whole and split, pairs of CJK characters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from whoosh.lang.porter2 import stem as porter

# Part of the index's recipe: a change here rebuilds every index.
ANALYSER = "4"

# Runs of letters and digits, joined by single marks as in src/auth.py, max_chars, all-MiniLM-L6-v2.
# The repetition is bounded so that a megabyte of "a.a.a" costs linear time and makes no megabyte
# term.
_COMPOUND = re.compile(r"[^\W_]{1,80}(?:[_.\-/][^\W_]{1,80}){0,11}")
_MARKS = "_.-/"
_PART = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\dA-Za-z_]+")
_CJK = re.compile(r"[぀-ヿ㐀-䶿一-鿿豈-﫿가-힯]+")
_LONGEST = 64
# No English suffix leaves less.
_LEAST_STEMMED = 3

# Left out of a query unless it has nothing else: what every question has, and what joins words.
# Pronouns stay, rare as they are in documentation: "my" and "I" tell what somebody said of
# themselves from what was said to them.
_STOP_WORDS = (
    "a about an and any are as at be been but by can could did do does for from had has have how "
    "if in into is it its no not of on or should so some such than that the then there these this "
    "to up was were what when where which who whom why will with would"
)


def terms(text: str) -> Iterator[str]:
    """Yield the terms of a text, in order; the same rules serve documents and queries."""
    folded = _fold(text)
    for match in _COMPOUND.finditer(folded):
        compound = match.group()
        parts = _PART.findall(compound)
        if len(parts) > 1 and len(compound) <= _LONGEST:
            yield compound.casefold()
        for part in parts:
            yield from _word(part)


def is_compound(term: str) -> bool:
    """Tell whether a term is an identifier as a whole, whose parts are terms as well."""
    return any(map(term.__contains__, _MARKS))


def _word(word: str) -> Iterator[str]:
    """Yield a word's stem, and the stems of the words that its humps part."""
    if _CJK.search(word):
        yield from _characters(word)
        return
    lowered = word.casefold()
    yield stem(lowered)
    if word == lowered or word == word.upper():
        return
    pieces = _CAMEL.findall(word)
    if len(pieces) > 1:
        for piece in pieces:
            yield stem(piece.casefold())


def _characters(word: str) -> Iterator[str]:
    """Yield every two neighbouring characters of CJK, which is written without spaces."""
    end = 0
    for match in _CJK.finditer(word):
        if match.start() > end:
            yield from _word(word[end : match.start()])
        run = match.group()
        if len(run) == 1:
            yield run
        for first, second in pairwise(run):
            yield first + second
        end = match.end()
    if end < len(word):
        yield from _word(word[end:])


def _fold(text: str) -> str:
    """Drop compatibility forms and accents, keep case: the split of identifiers needs it."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    letters = [letter for letter in decomposed if not unicodedata.combining(letter)]
    # Recomposing brings Hangul syllables back together; Latin accents are gone by then.
    return unicodedata.normalize("NFC", "".join(letters))


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return the English stem of a word of ASCII letters; other words stay as they are."""
    if len(word) < _LEAST_STEMMED or not word.isascii() or not word.isalpha():
        return word[:_LONGEST]
    return str(porter(word))[:_LONGEST]


STOP_TERMS = frozenset(terms(_STOP_WORDS))
