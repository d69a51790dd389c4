"""How text becomes terms: words stemmed, identifiers kept and split, CJK as pairs of characters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from whoosh.lang.porter2 import stem as porter

# Part of the index's recipe: a change here rebuilds every index.
ANALYSER = "3"

# Runs of letters and digits, joined by single marks as in src/auth.py, max_chars, all-MiniLM-L6-v2.
# The repetition is bounded so that a megabyte of "a.a.a" costs linear time and makes no megabyte
# term.
_COMPOUND = re.compile(r"[^\W_]{1,80}(?:[_.\-/][^\W_]{1,80}){0,11}")
_MARKS = "_.-/"
_PART = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\dA-Za-z_]+")
_CJK = re.compile(r"[぀-ヿ㐀-䶿一-鿿豈-﫿가-힯]+")
_LONGEST = 64

# Left out of a query unless it has nothing else: what every question has, and what joins words.
# Pronouns stay, rare as they are in documentation: "my" and "I" tell what somebody said of
# themselves from what was said to them.
_STOP_WORDS = (
    "a about an and any are as at be been but by can could did do does for from had has have how if in into is it "
    "its no not of on or should so some such than that the then there these this to up "
    "was were what when where which who whom why will with would"
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
    return any(mark in term for mark in _MARKS)


def _word(word: str) -> Iterator[str]:
    if _CJK.search(word):
        yield from _characters(word)
        return
    lowered = word.casefold()
    yield stem(lowered)
    pieces = _CAMEL.findall(word) if word != lowered and word != word.upper() else ()
    if len(pieces) > 1:
        yield from (stem(piece.casefold()) for piece in pieces)


def _characters(word: str) -> Iterator[str]:
    """CJK is written without spaces: every two neighbouring characters are a term."""
    end = 0
    for match in _CJK.finditer(word):
        if match.start() > end:
            yield from _word(word[end : match.start()])
        run = match.group()
        yield from (run[i : i + 2] for i in range(len(run) - 1)) if len(run) > 1 else (run,)
        end = match.end()
    if end < len(word):
        yield from _word(word[end:])


def _fold(text: str) -> str:
    """Drop compatibility forms and accents, keep case: the split of identifiers needs it."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    # Recomposing brings Hangul syllables back together; Latin accents are gone by then.
    return unicodedata.normalize(
        "NFC", "".join(c for c in decomposed if not unicodedata.combining(c))
    )


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return the English stem of a word of ASCII letters; other words stay as they are."""
    if len(word) < 3 or not word.isascii() or not word.isalpha():  # noqa: PLR2004 - no English suffix leaves less
        return word[:_LONGEST]
    return str(porter(word))[:_LONGEST]


STOP_TERMS = frozenset(term for word in _STOP_WORDS.split() for term in terms(word))
