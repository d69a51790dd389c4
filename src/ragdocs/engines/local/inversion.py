"""From the terms of passages, or the words of segments, to the words of one segment."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np

from ragdocs.engines.local.vocabulary import backwards
from ragdocs.engines.local.words import (
    FIELDS,
    HIGHEST,
    PARTS,
    Bytes,
    Numbers,
    Part,
    Postings,
    Words,
    is_first_of_run,
)
from ragdocs.search.fields import FieldTerms
from ragdocs.system.turns import give_way

FIELD_COUNT = len(FIELDS)
Parts = dict[str, Part]


class _Tokens(NamedTuple):
    """The distinct terms of passages, the number of each occurrence, and how many a field has."""

    texts: list[bytes]
    numbers: Numbers
    sizes: Numbers


def invert(passages: Iterable[FieldTerms], lengths: Numbers) -> tuple[Words, Bytes]:
    """Return the words of passages, and by field the length of each, as Whoosh's byte of it.

    `lengths` has the lengths that Whoosh tells apart.
    """
    tokens = _tokens(passages)
    by_field = tokens.sizes.reshape(-1, FIELD_COUNT).T
    nearest = np.searchsorted(lengths, by_field)
    rounded = nearest.clip(0, HIGHEST).astype(np.uint8)
    postings = _sorted_postings(tokens)
    texts = sorted(tokens.texts)
    words = _assemble(texts, postings, rounded)
    return words, rounded


def _tokens(passages: Iterable[FieldTerms]) -> _Tokens:
    """Give each term of passages a number, in the order in which they come."""
    vocabulary: defaultdict[str, int] = defaultdict()
    vocabulary.default_factory = vocabulary.__len__
    number_of = vocabulary.__getitem__
    numbers = array("q")
    sizes = array("q")
    for passage in passages:
        for field in FIELDS:
            terms = passage.get(field, ())
            numbers.extend(map(number_of, terms))
            sizes.append(len(terms))
        give_way()
    texts = list(map(str.encode, vocabulary))
    return _Tokens(
        texts,
        np.frombuffer(numbers, dtype=np.int64),
        np.frombuffer(sizes, dtype=np.int64),
    )


def _sorted_postings(tokens: _Tokens) -> Postings:
    """Count how often each passage has each term in each field."""
    field_numbers = np.arange(len(tokens.sizes))
    count = max(1, len(tokens.sizes) // FIELD_COUNT)
    fields_of_tokens = np.repeat(field_numbers, tokens.sizes)
    owners, fields = np.divmod(fields_of_tokens, FIELD_COUNT)
    ranks = _ranks(tokens.texts)
    terms = ranks[tokens.numbers]
    # One number for each occurrence: its term, its field and its passage.
    pairs = terms * FIELD_COUNT + fields
    keys, counts = _counted(pairs * count + owners)
    pairs, numbers = np.divmod(keys, count)
    terms, fields = np.divmod(pairs, FIELD_COUNT)
    return Postings(terms, fields, numbers, counts)


def _ranks(texts: Sequence[bytes]) -> Numbers:
    """Return the position that each text has when they are sorted."""
    count = len(texts)
    order = sorted(range(count), key=texts.__getitem__)
    ranks = np.empty(count, dtype=np.int64)
    ranks[order] = np.arange(count)
    return ranks


def merge(parts: Sequence[tuple[Words, Numbers]], lengths: Bytes) -> Words:
    """Return the words of several segments as one.

    Each comes with the new number of each of its passages, -1 for those that are left out;
    `lengths` are those of the new segment.
    """
    texts: list[bytes] = []
    for words, _ in parts:
        # Two lists in order are sorted in a few milliseconds, all words at once in a hundred.
        texts = list(dict.fromkeys(sorted(texts + words.terms())))
        give_way()
    numbered = enumerate(texts)
    ranks = {text: rank for rank, text in numbered}
    moved = [_moved(words, numbers, ranks) for words, numbers in parts]
    columns = zip(*moved, strict=True)
    postings = Postings(*map(np.concatenate, columns))
    order = np.lexsort((postings.numbers, postings.fields, postings.terms))
    return _assemble_used(texts, postings.at(order), lengths)


def _moved(words: Words, numbers: Numbers, ranks: Mapping[bytes, int]) -> Postings:
    """Return the postings of a segment under new numbers of terms and passages."""
    new_ranks = map(ranks.__getitem__, words.terms())
    new_terms = np.fromiter(new_ranks, dtype=np.int64)
    postings = words.postings()
    new_numbers = numbers[postings.numbers]
    is_kept = new_numbers >= 0
    present = postings.at(is_kept)
    return present._replace(
        terms=new_terms[present.terms],
        numbers=new_numbers[is_kept],
    )


def _counted(keys: Numbers) -> tuple[Numbers, Numbers]:
    """Return the different keys in order, and how often there is each."""
    keys = np.sort(keys)
    is_first = is_first_of_run(keys)
    firsts = np.flatnonzero(is_first)
    counts: Numbers = np.diff(firsts, append=len(keys))
    return keys[firsts], counts


def _assemble_used(texts: Sequence[bytes], postings: Postings, lengths: Bytes) -> Words:
    """Put words together without the terms that only removed passages had."""
    is_used = np.zeros(len(texts), dtype=np.bool_)
    is_used[postings.terms] = True
    used = list(compress(texts, is_used.tolist()))
    new_ranks = np.cumsum(is_used) - 1
    new_terms = new_ranks[postings.terms]
    renumbered = postings._replace(terms=new_terms)
    return _assemble(used, renumbered, lengths)


def _assemble(texts: Sequence[bytes], postings: Postings, lengths: Bytes) -> Words:
    """Put sorted terms and sorted postings together as they lie in a file."""
    count = max(1, lengths.shape[1])
    pairs = postings.terms * count + postings.numbers
    # A pair of term and passage stands here once, whatever fields have it.
    all_pairs, _ = _counted(pairs)
    bounds = np.arange(len(texts) + 1)
    firsts = np.searchsorted(all_pairs, bounds * count)
    entries = np.searchsorted(all_pairs, pairs)
    positions = entries - firsts[postings.terms]
    codes = _codes(postings, lengths)
    is_body = postings.fields == 0
    bodies = np.zeros(len(all_pairs), dtype=np.uint16)
    bodies[entries[is_body]] = codes[is_body]
    others = np.flatnonzero(~is_body)
    # The codes of other fields lie behind those of all bodies.
    entries[others] = len(all_pairs) + np.arange(len(others))
    parts = {
        "firsts": firsts,
        "numbers": all_pairs % count,
        "bodies": bodies,
        "other_firsts": np.searchsorted(postings.terms[others], bounds),
        "other_positions": positions[others],
        "other_fields": postings.fields[others],
        "other_codes": codes[others],
    }
    parts |= _text_parts(texts)
    parts |= _high_parts(entries, postings.counts)
    return _stored(parts)


def _codes(postings: Postings, lengths: Bytes) -> Numbers:
    """Return the code of each posting: its count, and the length of its field."""
    counts = np.minimum(postings.counts, HIGHEST)
    codes: Numbers = counts << 8 | lengths[postings.fields, postings.numbers]
    return codes


def _stored(parts: Parts) -> Words:
    """Return words of parts that are as small as in a file."""
    stored = {}
    for name, dtype in PARTS.items():
        stored[name] = parts[name].astype(dtype)
    return Words(stored)


def _text_parts(texts: Sequence[bytes]) -> Parts:
    """Return all texts, one after the other, where each of them starts, and their other order."""
    joined = b"".join(texts)
    sizes = np.fromiter(map(len, texts), dtype=np.int64)
    ends = np.cumsum(sizes)
    return {
        "text_starts": np.append(0, ends),
        "texts": np.frombuffer(joined, dtype=np.uint8),
        "backwards": backwards(texts),
    }


def _high_parts(numbers: Numbers, counts: Numbers) -> Parts:
    """Return the counts that are too high for their codes, by the numbers of these."""
    high = np.flatnonzero(counts >= HIGHEST)
    order = np.argsort(numbers[high])
    high = high[order]
    return {
        "high_places": numbers[high],
        "high_counts": counts[high],
    }
