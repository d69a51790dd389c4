"""The statements of a text, and whether two of them say the same or the opposite."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from ragdocs.system.patterns import later

# Two statements with this share of common words say the same, unless numbers or a negation differ.
SAME_STATEMENT = 0.75
# Two that say the opposite have at least this share of their other words in common; short ones
# have all of them. Fewer words than that are a phrase. `bench/merges.py` prints the figures.
OPPOSITE = 0.85
SHORT = 3
LEAST_WORDS = 3

_FENCE = later(r" {0,3}(`{3,}|~{3,})")
_ITEM = later(r"\s*(?:[-*+]|\d{1,9}[.)])\s")
_HEADING = later(r"#{1,6}\s")
_WORD = later(r"\w+")
_END = later(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[^\W\d_]|[\"'(\[]?\d)", re.UNICODE)
_ABBREVIATION = later(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|Mr|Dr|No|approx)\.|\b[A-Z]\.)[\"')\]]*$")
# Dates, times of day, hashes, issues and lines of files differ without a contradiction.
_REFERENCES = later(
    r"https?://\S+|\b\d{4}-\d\d(?:-\d\d)?(?:T[\d:.]+Z?)?\b|\b\d{1,2}:\d\d\b|[#@]\w+|:\d+(?:-\d+)?\b"
    r"|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b|\[\[[^\]]*\]\]|\[\^[^\]]*\]"
)
# Not the digits of a name such as EC2, or of a path.
_FIGURE = later(r"\w*\d\w*")
_NUMBER = later(r"(?<![\w/.-])\d+(?:[.,]\d+)*")
_SUFFIXED_NOT = later(r"\b(?:\w+n['\u2019]t|cannot)\b", re.IGNORECASE)
_NEGATIONS = frozenset(
    ("no", "not", "never", "none", "without", "neither", "nor", "cannot", "nothing", "nobody")
)
# Words with a capital letter or an underscore inside, or with digits behind a letter.
_NAME = later(r"\b(?:\w*[a-z]\w*[A-Z]\w*|\w+_\w+|[A-Za-z]\w*\d\w*)\b")
# A word with a capital letter behind another word.
_PROPER = later(r"(?<=[\w,;:] )[A-Z]\w+")
# Words of which one says the opposite of the other.
_OPPOSITES = (
    ("enabled", "disabled"),
    ("enable", "disable"),
    ("on", "off"),
    ("allowed", "forbidden"),
    ("always", "never"),
    ("true", "false"),
    ("before", "after"),
    ("required", "optional"),
    ("public", "private"),
    ("add", "remove"),
    ("more", "fewer"),
    ("more", "less"),
    ("ascending", "descending"),
)
_POLES = frozenset(chain.from_iterable(_OPPOSITES))
# Words that carry no meaning of their own.
_LINKING = frozenset(
    re.findall(
        r"\w+",
        "a an the is are was were be been being am do does did has have had will would shall "
        "should may might can could of in to for and or it its this that these those with as at "
        "by from we our you your they their i there",
    )
)


@dataclass(frozen=True, slots=True)
class Wording:
    """What two statements are compared by."""

    # All words, each as often as it stands there.
    words: Counter[str]
    # Words that carry meaning, without numbers and negations.
    content: frozenset[str]
    # Words of which others say the opposite.
    poles: frozenset[str]
    numbers: frozenset[str]
    # Everything with a digit, also dates, issues and lines of files.
    figures: frozenset[str]
    is_negated: bool


def split_statements(body: str) -> list[str]:
    """Cut a text into paragraphs, items of lists, headings and blocks of code."""
    statements: list[list[str]] = [[]]
    fence = ""
    for line in body.splitlines():
        mark = _FENCE.match(line)
        if fence:
            statements[-1].append(line)
            if mark and mark[1].startswith(fence):
                fence = ""
        elif not line.strip():
            statements.append([])
        elif _HEADING.match(line):
            statements += [[line], []]
        else:
            if _ITEM.match(line) and not line[0].isspace():
                statements.append([])
            statements[-1].append(line)
            if mark:
                fence = mark[1]
    return ["\n".join(lines) for lines in statements if lines]


def is_heading(statement: str) -> bool:
    """Tell whether a statement only names what follows."""
    return bool(_HEADING.match(statement))


def is_item(statement: str) -> bool:
    """Tell whether a statement is an item of a list."""
    return bool(_ITEM.match(statement))


def is_code(statement: str) -> bool:
    """Tell whether a statement is a block of code."""
    return any(_FENCE.match(line) for line in statement.splitlines())


def sentences(statement: str) -> list[str]:
    """Cut a paragraph into its sentences; everything else stays whole."""
    is_whole = is_heading(statement) or is_item(statement) or is_code(statement)
    if is_whole or statement.lstrip().startswith(("|", ">")):
        return [statement]
    parts: list[str] = []
    for part in _END.split(statement):
        if parts and _ABBREVIATION.search(parts[-1]):
            parts[-1] += f" {part}"
        else:
            parts.append(part)
    return [part for part in parts if part.strip()]


def all_sentences(body: str) -> Iterator[str]:
    """Yield the sentences of a text, without headings and code."""
    for statement in split_statements(body):
        if not is_heading(statement) and not is_code(statement):
            yield from sentences(statement)


@lru_cache(maxsize=50_000)
def wording(statement: str) -> Wording:
    """Return what a statement is compared by."""
    text = statement.casefold()
    # The number of an item says nothing about what it says.
    bare = _REFERENCES.sub(" ", _ITEM.sub(" ", text, count=1))
    numbers = frozenset(map(_plain_number, _NUMBER.findall(bare)))
    negations = len(_SUFFIXED_NOT.findall(bare))
    content: set[str] = set()
    poles: set[str] = set()
    for word in _WORD.findall(_SUFFIXED_NOT.sub(" ", bare)):
        if word in _NEGATIONS:
            negations += 1
        elif word not in _LINKING and not word[0].isdigit():
            content.add(_stem(word))
        if word in _POLES:
            poles.add(word)
    return Wording(
        words=Counter(_WORD.findall(text)),
        content=frozenset(content),
        poles=frozenset(poles),
        numbers=numbers,
        figures=frozenset(_FIGURE.findall(_ITEM.sub(" ", text, count=1))),
        is_negated=negations % 2 == 1,
    )


def likeness(left: Counter[str], right: Counter[str]) -> float:
    """Return the share of words that two statements have in common, from 0 to 1."""
    size = left.total() + right.total()
    if not size:
        return 1.0
    return 2 * (left & right).total() / size


def same(left: str, right: str) -> bool:
    """Tell whether two statements say the same: then one of them can go."""
    ours = wording(left)
    theirs = wording(right)
    if ours.figures != theirs.figures or likeness(ours.words, theirs.words) < SAME_STATEMENT:
        return False
    return not opposite(left, right)


def proper_names(text: str) -> frozenset[str]:
    """Return what is named inside the sentences of a text, such as Kendra or EC2, as stems."""
    names: set[str] = set()
    for sentence in all_sentences(_REFERENCES.sub(" ", text)):
        for word in _PROPER.findall(" ".join(sentence.split())):
            names.add(_stem(word.casefold()))
    return frozenset(names)


def stems(text: str) -> frozenset[str]:
    """Return all words of a text without the endings of plurals."""
    return frozenset(map(_stem, _WORD.findall(text.casefold())))


def other_names(left: str, right: str) -> frozenset[str]:
    """Return the names of one text that the other has nowhere, such as createUser or EC2."""
    names = _NAME.findall(_REFERENCES.sub(" ", left))
    words = frozenset(_WORD.findall(right.casefold()))
    return frozenset(map(str.casefold, names)) - words


def repeated(
    left: Sequence[frozenset[str]], right: Sequence[frozenset[str]], least: float
) -> float:
    """Return how much of one text is in sentences that share at least so many words with another.

    Both are given as the words of their sentences.
    """
    right_words = frozenset(right)
    size = 0
    common = 0
    for words in left:
        size += len(words)
        is_known = words in right_words
        if is_known or any(len(words & other) >= least * len(words) for other in right):
            common += len(words)
    return common / max(1, size)


def opposite(left: str, right: str) -> str:
    """Say in which way two statements contradict each other, or nothing if they do not."""
    ours = wording(left)
    theirs = wording(right)
    how, pair = _difference(ours, theirs)
    if not how or min(len(ours.content), len(theirs.content)) < LEAST_WORDS:
        return ""
    left_words = ours.content.difference(map(_stem, pair))
    right_words = theirs.content.difference(map(_stem, pair))
    if left_words == right_words:
        return how
    size = len(left_words) + len(right_words)
    is_short = min(len(left_words), len(right_words)) <= SHORT
    if is_short or 2 * len(left_words & right_words) < OPPOSITE * size:
        return ""
    return how


def _difference(ours: Wording, theirs: Wording) -> tuple[str, tuple[str, ...]]:
    """Say in which words two statements differ that can make them contradict each other."""
    if ours.is_negated != theirs.is_negated:
        return "negation", ()
    if ours.poles != theirs.poles:
        for pair in _OPPOSITES:
            for first, other in (pair, pair[::-1]):
                is_ours = first in ours.poles and other not in ours.poles
                if is_ours and other in theirs.poles and first not in theirs.poles:
                    return f"{first} and {other}", pair
    only_ours = sorted(ours.numbers - theirs.numbers)
    only_theirs = sorted(theirs.numbers - ours.numbers)
    if only_ours and only_theirs:
        return f"{', '.join(only_ours)} and {', '.join(only_theirs)}", ()
    return "", ()


def _stem(word: str) -> str:
    """Return a word without the ending of its plural."""
    if len(word) > LEAST_WORDS and word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def _plain_number(number: str) -> str:
    """Write a number without the commas of thousands and zeros behind the point."""
    plain = number.replace(",", "")
    if "." in plain and plain.count(".") == 1:
        plain = plain.rstrip("0").rstrip(".")
    return plain
