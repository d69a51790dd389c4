"""From the terms of passages, or the words of segments, to the words of one segment."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress

import numpy as np

from ragdocs.engines.local.words import FIELDS, HIGHEST, PARTS, Bytes, Numbers, Postings, Words
from ragdocs.search.fields import FieldTerms
from ragdocs.system.turns import give_way


def invert(passages: Iterable[FieldTerms], lengths: Numbers) -> tuple[Words, Bytes]:
    """Return the words of passages, and by field the length of each, as Whoosh's byte of it.

    `lengths` has the lengths that Whoosh tells apart.
    """
    vocabulary: defaultdict[str, int] = defaultdict()
    vocabulary.default_factory = vocabulary.__len__
    tokens = array("q")
    sizes = array("q")
    for passage in passages:
        for field in FIELDS:
            terms = passage.get(field, ())
            tokens.extend(map(vocabulary.__getitem__, terms))
            sizes.append(len(terms))
        give_way()
    texts = list(map(str.encode, vocabulary))
    ranks = np.empty(len(texts), dtype=np.int64)
    order = sorted(range(len(texts)), key=texts.__getitem__)
    ranks[order] = np.arange(len(texts))
    field_sizes = np.frombuffer(sizes, dtype=np.int64)
    by_field = field_sizes.reshape(-1, len(FIELDS)).T
    rounded = np.searchsorted(lengths, by_field).clip(0, HIGHEST).astype(np.uint8)
    # One number for each occurrence: its term, its field and its passage.
    count = max(1, by_field.shape[1])
    owners, fields = np.divmod(np.repeat(np.arange(len(sizes)), field_sizes), len(FIELDS))
    term_numbers = ranks[np.frombuffer(tokens, dtype=np.int64)]
    keys, counts = _counted((term_numbers * len(FIELDS) + fields) * count + owners)
    pairs, numbers = np.divmod(keys, count)
    term_numbers, fields = np.divmod(pairs, len(FIELDS))
    postings = Postings(term_numbers, fields, numbers, counts)
    return _assemble([texts[number] for number in order], postings, rounded), rounded


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
    ranks = dict(zip(texts, range(len(texts)), strict=True))
    moved = [_moved(words, numbers, ranks) for words, numbers in parts]
    postings = Postings(*map(np.concatenate, zip(*moved, strict=True)))
    order = np.lexsort((postings.numbers, postings.fields, postings.terms))
    # Terms that only removed passages had are left out.
    is_used = np.zeros(len(texts), dtype=np.bool_)
    is_used[postings.terms] = True
    new_ranks = np.cumsum(is_used) - 1
    used = list(compress(texts, is_used.tolist()))
    terms, fields, numbers, counts = postings
    ordered = Postings(new_ranks[terms[order]], fields[order], numbers[order], counts[order])
    return _assemble(used, ordered, lengths)


def _moved(words: Words, numbers: Numbers, ranks: Mapping[bytes, int]) -> Postings:
    """Return the postings of a segment under new numbers of terms and passages."""
    new_terms = np.fromiter(map(ranks.__getitem__, words.terms()), dtype=np.int64)
    postings = words.postings()
    new_numbers = numbers[postings.numbers]
    kept = new_numbers >= 0
    terms, fields, _, counts = postings
    return Postings(new_terms[terms[kept]], fields[kept], new_numbers[kept], counts[kept])


def _counted(keys: Numbers) -> tuple[Numbers, Numbers]:
    """Return the different keys in order, and how often there is each."""
    keys = np.sort(keys)
    is_first = np.ones(len(keys), dtype=np.bool_)
    is_first[1:] = keys[1:] != keys[:-1]
    places = np.flatnonzero(is_first)
    counts: Numbers = np.append(places[1:], len(keys))[: len(places)] - places
    return keys[places], counts


def _assemble(texts: Sequence[bytes], postings: Postings, lengths: Bytes) -> Words:
    """Put sorted terms and sorted postings together as they lie in a file."""
    terms, fields, numbers, counts = postings
    count = max(1, lengths.shape[1])
    pairs = terms * count + numbers
    # A pair of term and passage stands here once, whatever fields have it.
    every, _ = _counted(pairs)
    bounds = np.arange(len(texts) + 1)
    firsts = np.searchsorted(every, bounds * count)
    codes = np.minimum(counts, HIGHEST) << 8 | lengths[fields, numbers]
    is_body = fields == 0
    bodies = np.zeros(len(every), dtype=np.uint16)
    body_places = np.searchsorted(every, pairs[is_body])
    bodies[body_places] = codes[is_body]
    others = np.flatnonzero(~is_body)
    other_places = np.searchsorted(every, pairs[others])
    code_places = np.empty(len(pairs), dtype=np.int64)
    code_places[is_body] = body_places
    code_places[others] = len(every) + np.arange(len(others))
    high = np.flatnonzero(counts >= HIGHEST)
    high = high[np.argsort(code_places[high])]
    text_sizes = np.fromiter(map(len, texts), dtype=np.int64)
    values = {
        "text_starts": np.append(0, np.cumsum(text_sizes)),
        "texts": np.frombuffer(b"".join(texts), dtype=np.uint8),
        "firsts": firsts,
        "numbers": every % count,
        "bodies": bodies,
        "other_firsts": np.searchsorted(terms[others], bounds),
        "other_positions": other_places - firsts[terms[others]],
        "other_fields": fields[others],
        "other_codes": codes[others],
        "high_places": code_places[high],
        "high_counts": counts[high],
    }
    return Words({name: values[name].astype(dtype) for name, dtype in PARTS.items()})
