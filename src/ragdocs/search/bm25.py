"""The arithmetic of keyword scores, the same for every engine.

An engine keeps postings; which terms a query is scored by and what each is worth is decided here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from ragdocs.text.languages import ENGLISH
from ragdocs.text.terms import is_compound, meaningful, terms

Floats = npt.NDArray[np.float32]
# How often a term stands in a field of each passage, and how long that field is there.
Occurrences = tuple[Floats, Floats]

# How much a term's occurrence counts by field; the body is the unit. Titles and headings say what a
# passage is about, but a much larger boost loses precision where titles repeat common words.
BOOSTS = {
    "body": 1.0,
    "title": 2.0,
    "headings": 1.0,
    "tags": 1.0,
    "path": 0.5,
    "name": 0.5,
    "date": 1.0,
}
# Added for a query that has all words of a title, or of a file's name: who searches for "client
# libraries" means that page before the ones that mention them. It is shared out among the words, so
# that long titles gain no more. A text of many words has all words of many titles by chance: beyond
# so many terms a title counts less, by their number.
NAMED = {"title": 0.25, "name": 0.15}
NAMING_TERMS = 16
# A short question repeats words because grammar does, a longer text those that it is about. There
# twice counts 1.67 times, and no number of times counts more than five times.
REPEATED = 4
REPEATING_TERMS = 8
# The saturation is below the usual 1.2, because passages are short. So many words are added to
# every body before lengths are compared: that one of two short remarks is twice as long as the
# other says little.
K1 = 0.8
B = 0.9
EQUAL_WORDS = 50
# What src/auth.py as a whole counts beside its parts, which are terms as well.
COMPOUND_WEIGHT = 0.5
# A query is a question, not a document: past this many distinct terms only the rarest are scored.
MOST_TERMS = 64
# Looking a term up costs about 20 microseconds: a pasted file is cut before the rarest of its terms
# are chosen.
LONGEST_QUERY = 20_000
MOST_LOOKUPS = 512
# A term found nowhere is replaced by its nearest spellings, each worth this much of an exact match.
TYPO_WEIGHT = 0.6
MOST_SPELLINGS = 3
MOST_TYPOS = 2
SHORTEST_TYPO = 4


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """A term of a query: the spellings it is looked up by, their shares, and its weight."""

    spellings: tuple[tuple[str, float], ...]
    weight: float


def query_terms(text: str, languages: Sequence[str] = (ENGLISH,)) -> dict[str, int]:
    """Count the terms of a query, in its order, without stop words, or with them if all are.

    They are the stems of the first of the languages that the query may be in.
    """
    text = text[:LONGEST_QUERY]
    counts = Counter(islice(meaningful(text, languages), MOST_LOOKUPS))
    if not counts:
        counts = Counter(islice(terms(text, languages[0]), MOST_LOOKUPS))
    return dict(counts)


def emphasis(count: int, terms_in_all: int) -> float:
    """Return what a term counts that a query of so many different terms has so many times."""
    if terms_in_all <= REPEATING_TERMS:
        return 1.0
    return (REPEATED + 1) * count / (REPEATED + count)


def naming(count: int) -> float:
    """Return what titles and names count in a query of so many terms."""
    return min(1.0, NAMING_TERMS / max(1, count))


def other_stems(text: str, languages: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Map terms of a query to the stems of the same words in its other languages."""
    first = list(islice(terms(text[:LONGEST_QUERY], languages[0]), MOST_LOOKUPS))
    stems: dict[str, tuple[str, ...]] = {}
    for language in languages[1:]:
        for term, other in zip(first, terms(text[:LONGEST_QUERY], language), strict=False):
            others = stems.get(term, ())
            if other != term and other not in others:
                stems[term] = (*others, other)
    return stems


def weigh(
    query: Mapping[str, int],
    frequencies: Mapping[str, int],
    count: int,
    spellings: Callable[[str], Sequence[str]],
    stems: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> list[QueryTerm]:
    """Weigh the terms of a query by rarity and by how often it has them, the heaviest first.

    `frequencies` has the number of passages of each term, `count` that of all passages, and
    `spellings` returns the terms that resemble one that is found nowhere. `stems` has the stems of
    the same word in other languages; a passage has that of its own.
    """
    existing = []
    unknown = []
    for term in query:
        forms = []
        frequency = 0
        for form in (term, *stems.get(term, ())):
            if frequencies[form] > 0:
                forms.append((form, 1.0))
                frequency += frequencies[form]
        if not forms:
            unknown.append(term)
            continue
        emphasised = emphasis(query[term], len(query))
        weight = rarity(count, min(count, frequency)) * emphasised
        if is_compound(term):
            weight *= COMPOUND_WEIGHT
        existing.append(QueryTerm(tuple(forms), weight))
    existing.sort(key=lambda term: -term.weight)
    # A word nobody wrote weighs as much as the rarest word, so that a query of unknown words
    # scores low.
    rarest = rarity(count, 1)
    for number, term in enumerate(unknown):
        similar: Sequence[str] = ()
        if number < MOST_TYPOS and may_be_typo(term):
            similar = spellings(term)
        shares = tuple((word, TYPO_WEIGHT) for word in similar)
        existing.append(QueryTerm(shares, rarest * emphasis(query[term], len(query))))
    return existing[:MOST_TERMS]


def may_be_typo(term: str) -> bool:
    """Tell whether a term that is found nowhere is worth looking for other spellings."""
    return len(term) >= SHORTEST_TYPO and term.isalpha()


def best_spellings(frequencies: Mapping[str, int]) -> tuple[str, ...]:
    """Choose the most frequent of several spellings, leaving out those that nothing has."""
    occurring = [word for word, frequency in frequencies.items() if frequency]
    occurring.sort(key=lambda word: (-frequencies[word], word))
    return tuple(occurring[:MOST_SPELLINGS])


def rarity(count: int, frequency: int) -> float:
    """Return the inverse document frequency of a term in this many of all passages."""
    return math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))


def norms(field: str, lengths: Floats, average: float) -> Floats:
    """Return what occurrences are divided by in a field of each of these lengths."""
    padding = 0
    if field == "body":
        padding = EQUAL_WORDS
    relative: Floats = B * (lengths + padding) / (average + padding)
    return 1 - B + relative


def weighted(field: str, counts: Floats, divisors: Floats) -> Floats:
    """Return what so many occurrences in a field are worth, before they saturate."""
    worth: Floats = BOOSTS[field] * counts / divisors
    return worth


def saturated(frequency: Floats) -> Floats:
    """Return what occurrences in all fields together are worth, from 0 to 1."""
    worth: Floats = frequency / (frequency + np.float32(K1))
    return worth


def impact(by_field: Mapping[str, Occurrences], averages: Mapping[str, float]) -> Floats:
    """Return what a term is worth in each passage that has it, from 0 to 1."""
    frequency: Floats | None = None
    for field, (counts, lengths) in by_field.items():
        part = weighted(field, counts, norms(field, lengths, averages[field]))
        if frequency is None:
            frequency = part
        else:
            frequency = frequency + part
    if frequency is None:
        return np.zeros(0, dtype=np.float32)
    return saturated(frequency)


def named_share(by_field: Mapping[str, Occurrences]) -> Floats:
    """Return what a term adds to each passage because it stands in the title or the name."""
    total: Floats | None = None
    for field in NAMED:
        if field not in by_field:
            continue
        share = field_share(field, *by_field[field])
        if total is None:
            total = share
        else:
            total = total + share
    if total is not None:
        return total
    size = max((len(counts) for counts, _ in by_field.values()), default=0)
    return np.zeros(size, dtype=np.float32)


def field_share(field: str, counts: Floats, lengths: Floats) -> Floats:
    """Return what a term adds to each passage because it stands in this title or name."""
    share = NAMED[field] * counts / np.maximum(lengths, 1)
    return share.astype(np.float32, copy=False)


def factor(term: QueryTerm, share: float, total_weight: float) -> np.float32:
    """Return what the impact of a spelling is multiplied by.

    A score of 1.0 is every term once in a passage of average length.
    """
    return np.float32(term.weight * share * (K1 + 1) / total_weight)
