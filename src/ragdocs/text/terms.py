"""The terms of a text: stemmed words, identifiers whole and split, n-grams where no spaces are."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain, filterfalse

from ragdocs.system.patterns import later
from ragdocs.text.languages import ENGLISH, LONGEST_STEM, fold, stemmer, stop_words

# Vowel signs and the like, which stand on letters and are none to Python: of South and South-East
# Asia, where they make the word, and accents for which there is no letter with the accent.
_SIGNS = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0971-\u0dff"
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u0f71-\u0f84"
    "\u102b-\u103e\u1056-\u1059\u17b4-\u17d3\u17dd\u3099\u309a"
)
_HAS_SIGNS = later(f"[{_SIGNS}]")
_MARKS = "_.-/"


def _compounds(letter: str) -> re.Pattern[str]:
    # Runs of letters and digits, joined by single marks as in src/auth.py, max_chars,
    # all-MiniLM-L6-v2. The repetition is bounded so that a megabyte of "a.a.a" costs linear time
    # and makes no megabyte term.
    return re.compile(rf"{letter}{{1,80}}(?:[_.\-/]{letter}{{1,80}}){{0,11}}")


_LETTER = r"[^\W_]"
_SIGNED_LETTER = rf"(?:{_LETTER}|[{_SIGNS}])"
_COMPOUND = _compounds(_LETTER)
_SIGNED_COMPOUND = _compounds(_SIGNED_LETTER)
_JOINT = later(r"[_.\-/]")
_CAMEL = later(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\dA-Za-z_]+")
# Written without spaces: Chinese, Japanese and Korean, whose characters are syllables or words, and
# Thai, Lao, Myanmar and Khmer, whose letters are sounds.
_CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
_SOUNDS = "\u0e01-\u0e4e\u0e81-\u0ecd\u1000-\u103f\u1050-\u109d\u1780-\u17d3\u17d7\u17dc\u17dd"
# Between these, some writers show programs where a word ends or where letters are joined: others do
# not, and nobody sees a difference.
_UNSEEN = later(f"(?<=[{_SOUNDS}])[\u200b-\u200d\u2060]+(?=[{_SOUNDS}])")
# The same vowel with the tone before or behind its first half, in Thai and Lao.
_TONE = later("([\u0e4d\u0ecd])([\u0e48-\u0e4b\u0ec8-\u0ecb])")
# Digits that are written beside those of all others, as in the numbers of articles.
_DIGITS = {}
for _zero in (0x0E50, 0x0ED0, 0x1040, 0x17E0):
    for _digit in range(10):
        _DIGITS[_zero + _digit] = str(_digit)
_HAS_SOUNDS = later(f"[{_SOUNDS}]")
_UNSPACED = later(f"(?P<pairs>[{_CJK}\U00020000-\U0003ffff]+)|(?P<triples>[{_SOUNDS}]+)")

# Left out of a query unless it has nothing else: what every question has, and what joins words.
# Other pronouns stay, rare as they are in documentation: "my" and "I" tell what somebody said of
# themselves from what was said to them. "Her" stands for a name that the question has as well.
_STOP_WORDS = (
    "a about an and any are as at be been but by can could did do does for from had has have he "
    "her hers him his how if in into is it its no not of on or she should so some such than that "
    "the their theirs them then there these they this to up was were what when where which who "
    "whom why will with would"
)

# The same where words are not parted by spaces, from Chinese to Khmer. They are cut
# out of a query, because their characters would be parts of terms otherwise.
_QUESTION_WORDS = re.compile(
    "为什么|為什麼|怎么办|怎麼辦|怎么样|怎麼樣|怎么|怎麼|怎样|怎樣|如何|什么|什麼|为何|為何|"
    "哪些|哪个|哪個|哪里|哪裡|哪种|哪種|多少|是否|能否|能不能|可不可以|是不是|有没有|有沒有|"
    "可以|应该|應該|想要|我想|请问|請問|吗|嗎|呢|"
    "どうやって|どうすれば|どうしたら|どうして|どのように|なぜ|何ですか|でしょうか|ですか|ますか|"
    "어떻게|무엇|언제|어디|입니까|습니까|인가요|하나요|"
    "อย่างไร|ยังไง|อะไร|ทำไม|ที่ไหน|เมื่อไร|ไหม|"
    "ແນວໃດ|ເປັນຫຍັງ|ຫຍັງ|ຢູ່ໃສ|ເມື່ອໃດ|"
    "ដូចម្តេច|ដូចម្ដេច|យ៉ាងណា|ហេតុអ្វី|អ្វី|ឯណា|ពេលណា|ប៉ុន្មាន"
)

Stem = Callable[[str], str]
# Runs of letters whose terms are remembered: most words of a text were in one before it.
_REMEMBERED = 65536


def terms(text: str, language: str = ENGLISH) -> Iterator[str]:
    """Return the terms of a text, in order; the same rules serve documents and queries.

    The language decides about stems only: in any language a text has as many terms, and each
    stands for the same word.
    """
    return _terms(text, stemmer(language))


def meaningful(text: str, languages: Sequence[str] = (ENGLISH,)) -> Iterator[str]:
    """Yield the terms of a text in the first language, without joining words of any language."""
    if not text.isascii():
        text = _QUESTION_WORDS.sub(" ", text)
    if tuple(languages) == (ENGLISH,):
        # Joining words of English are known by their stems, which are those of the query.
        yield from filterfalse(STOP_TERMS.__contains__, terms(text))
        return
    joining = [_joining(text, language) for language in languages]
    for term, *is_joining in zip(terms(text, languages[0]), *joining, strict=True):
        if not any(is_joining):
            yield term


def _joining(text: str, language: str) -> Iterator[bool]:
    """Tell of each term of a text whether its word only joins others in a language."""
    if language == ENGLISH:
        yield from map(STOP_TERMS.__contains__, terms(text))
        return
    # Words and not stems: the French stem of an entry is the word for between.
    yield from map(_joining_words(language).__contains__, _terms(text, _unstemmed))


def _unstemmed(word: str) -> str:
    return fold(word)[:LONGEST_STEM]


def _terms(text: str, stem: Stem) -> Iterator[str]:
    pattern = _COMPOUND
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
        if _HAS_SOUNDS.search(text):
            text = _TONE.sub(r"\2\1", _UNSEEN.sub("", text)).translate(_DIGITS)
        if _HAS_SIGNS.search(text):
            pattern = _SIGNED_COMPOUND
    return chain.from_iterable(map(_splitter(stem), pattern.findall(text)))


@cache
def _splitter(stem: Stem) -> Callable[[str], tuple[str, ...]]:
    """Return what makes terms of a run of letters; it remembers what it has made."""
    return _Split(stem).__getitem__


class _Split(dict[str, tuple[str, ...]]):
    """The terms of runs of letters; a dictionary is asked in half the time of a cached function."""

    def __init__(self, stem: Stem) -> None:
        super().__init__()
        self._stem = stem

    def __missing__(self, compound: str) -> tuple[str, ...]:
        parts = _JOINT.split(compound)
        made: list[str] = []
        if len(parts) > 1 and len(compound) <= LONGEST_STEM:
            made.append(fold(compound).casefold())
        for part in parts:
            made += _word(part, self._stem)
        if len(self) >= _REMEMBERED:
            self.clear()
        terms_of_compound = tuple(made)
        self[compound] = terms_of_compound
        return terms_of_compound


def is_compound(term: str) -> bool:
    """Tell whether a term is an identifier as a whole, whose parts are terms as well."""
    return any(map(term.__contains__, _MARKS))


def _word(word: str, stem: Stem) -> Iterator[str]:
    """Yield a word's stem, and the stems of the words that its humps part."""
    if not word.isascii() and _UNSPACED.search(word):
        yield from _characters(word, stem)
        return
    lowered = word.casefold()
    yield stem(lowered)
    if word == lowered or word == word.upper():
        return
    pieces = _CAMEL.findall(fold(word))
    if len(pieces) > 1:
        for piece in pieces:
            yield stem(piece.casefold())


def _characters(word: str, stem: Stem) -> Iterator[str]:
    """Yield every two neighbouring characters of CJK, every three of Thai and its neighbours."""
    end = 0
    for match in _UNSPACED.finditer(word):
        if match.start() > end:
            yield from _word(word[end : match.start()], stem)
        run = match.group()
        size = 2 if match["pairs"] else 3
        if len(run) <= size:
            yield run
        else:
            for start in range(len(run) - size + 1):
                yield run[start : start + size]
        end = match.end()
    if end < len(word):
        yield from _word(word[end:], stem)


@cache
def _joining_words(language: str) -> frozenset[str]:
    return frozenset(map(_unstemmed, stop_words(language)))


STOP_TERMS = frozenset(terms(_STOP_WORDS))
