"""The words of a segment: read as they lie, equal to what Whoosh keeps, and quickly found."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.engines.test_postings import VOCABULARY, Bench, prose
from whoosh.filedb.filestore import FileStorage
from whoosh.query import And, Term

from ragdocs.engines.local.inversion import invert, merge
from ragdocs.engines.local.postings import ASTRAY
from ragdocs.engines.local.whoosh_files import LENGTHS
from ragdocs.engines.local.words import Words, every_posting
from ragdocs.search.bm25 import BOOSTS

LETTERS = "abcé検"


def listed(words: Words) -> list[tuple[str, str, int, int]]:
    """List every posting."""
    postings = []
    for field, term, numbers, counts in every_posting(words):
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            postings.append((field, term.decode(), number, count))
    return sorted(postings)


def expected(passages: list[dict[str, list[str]]]) -> list[tuple[str, str, int, int]]:
    """Count by hand."""
    postings = []
    for number, passage in enumerate(passages):
        for field, terms in passage.items():
            for term in set(terms):
                postings.append((field, term, number, terms.count(term)))
    return sorted(postings)


def passages_of_words() -> Any:
    terms = some.lists(some.text(LETTERS, min_size=1, max_size=4), max_size=8)
    return some.lists(some.dictionaries(some.sampled_from(list(BOOSTS)), terms), max_size=6)


@given(passages_of_words())
def test_inverted_passages_have_every_posting_also_after_being_stored(
    passages: list[dict[str, list[str]]],
) -> None:
    words, _ = invert(passages, LENGTHS)
    assert listed(words) == expected(passages)
    assert listed(Words.restore(words.dump())) == expected(passages)


@given(passages_of_words(), passages_of_words(), some.randoms())
def test_merged_words_are_those_of_what_is_left(
    first: list[dict[str, list[str]]], second: list[dict[str, list[str]]], chance: random.Random
) -> None:
    kept = [passage for passage in first if chance.random() < 0.7]
    numbers = np.full(len(first), -1, dtype=np.int64)
    for number, passage in enumerate(kept):
        numbers[next(n for n, old in enumerate(first) if old is passage)] = number
    after = np.arange(len(kept), len(kept) + len(second))
    expected_words, lengths = invert([*kept, *second], LENGTHS)
    parts = [(invert(first, LENGTHS)[0], numbers), (invert(second, LENGTHS)[0], after)]
    assert merge(parts, lengths).dump() == expected_words.dump()


@pytest.mark.parametrize("times", [254, 255, 256, 70_000])
def test_a_term_may_stand_any_number_of_times_in_a_passage(times: int) -> None:
    passages = [{"body": ["rare"]}, {"body": ["often"] * times, "title": ["often"] * times}]
    words, _ = invert(passages, LENGTHS)
    assert listed(words) == expected(passages)
    occurrences = Words.restore(words.dump()).occurrences(words.find("often"))
    assert occurrences.high.get(0, occurrences.codes[0] >> 8) == times
    assert occurrences.others[0].counts.tolist() == [times]


@given(some.sets(some.text(LETTERS, min_size=1, max_size=5)), some.text(LETTERS, min_size=4))
def test_near_terms_are_those_one_edit_or_one_swap_away(known: set[str], term: str) -> None:
    words, _ = invert([{"body": sorted(known), "title": [term[0] + term]}], LENGTHS)
    assert words.near(term) == {word for word in known if word[0] == term[0]} & edits(term)


def edits(term: str) -> set[str]:
    """Make every word that one edit or one swap makes of a term."""
    made = {term}
    for place in range(len(term) + 1):
        before, after = term[:place], term[place:]
        made.add(before + after[1:])
        made |= {before + letter + after for letter in LETTERS}
        made |= {before + letter + after[1:] for letter in LETTERS}
        made.add(before + after[1::-1] + after[2:])
    return {word for word in made if word}


# --- Whoosh's form of the same ---


def grown() -> Bench:
    bench = Bench()
    for start in range(0, 60, 4):
        added = {row: f"{prose(row)} naïve 検索" for row in range(start, start + 4)}
        bench.apply(added, (start - 1,) if start else ())
    return bench


def test_plain_whoosh_opens_the_files_and_finds_the_same(tmp_path: Path) -> None:
    bench = grown()
    bench.consolidate()
    for name, data in bench.table.dump().items():
        (tmp_path / name).write_bytes(data)
    with FileStorage(str(tmp_path)).open_index().searcher() as searcher:
        for first, second in pairwise(VOCABULARY[:20]):
            results = searcher.search(And([Term("body", first), Term("body", second)]), limit=None)
            found = {int(searcher.reader().column_reader("row")[hit.docnum]) for hit in results}
            alive = np.zeros(bench.highest + 1, dtype=np.bool_)
            alive[sorted(bench.alive)] = True
            holding = bench.table.holding(range(bench.highest + 1), [first, second])
            # A number that is never used twice is what Whoosh knows; here rows were never moved.
            assert found == set(np.flatnonzero(holding & alive).tolist())
        assert searcher.doc_count() == len(bench.alive)
        assert searcher.avg_field_length("body") > 10


def test_both_forms_are_the_same_however_segments_come_about() -> None:
    bench = grown()
    assert bench.table.differences() == []
    bench.consolidate()
    assert bench.table.differences() == []


@pytest.mark.parametrize("part", ["numbers", "bodies", "other_codes"])
def test_a_posting_that_differs_from_whooshs_is_noticed(part: str) -> None:
    bench = grown()
    segment = next(iter(bench.table._segments.opened.values()))
    damaged = {name: column.copy() for name, column in segment.words._parts.items()}
    damaged[part][0] ^= 1 << 8
    object.__setattr__(segment, "words", Words(damaged))
    differences = bench.table.differences()
    assert differences
    # A number beyond the segment is no passage at all.
    astray = [posting for posting in differences if posting[2] == ASTRAY]
    assert len(astray) == (part == "numbers")
    assert all(posting[2] >= 0 for posting in bench.table.postings())
