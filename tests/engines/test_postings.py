from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from tests.hostile import queries
from whoosh import query as whoosh_query
from whoosh.scoring import BM25F

from ragdocs.engines.local import postings as keywords
from ragdocs.engines.local.postings import KeywordTable, best
from ragdocs.engines.local.words import Words
from ragdocs.search.bm25 import BOOSTS, K1, MOST_LOOKUPS, NAMED, B
from ragdocs.text.terms import terms

VOCABULARY = tuple(
    f"{a}{b}{c}" for a in ("ka", "lo", "mi", "ru") for b in ("ber", "dan", "fil") for c in "gpstx"
)


def matching(table: KeywordTable, text: str, k: int, mask: np.ndarray) -> list[tuple[int, float]]:
    """Return the k best rows with their scores."""
    scores = table.score(text, mask).values
    rows = best(scores, k, [mask])
    return list(zip(rows.tolist(), scores[rows].tolist(), strict=True))


def analysed(texts: dict[str, str]) -> dict[str, list[str]]:
    return {field: list(terms(text)) for field, text in texts.items()}


class Bench:
    """A keyword table with the mask that a catalog would give it."""

    def __init__(self) -> None:
        self.table = KeywordTable()
        self.alive: set[int] = set()
        self.highest = 0

    def apply(self, added: dict[int, str], removed: tuple[int, ...] = ()) -> None:
        self.table.write(
            (analysed({"body": text, "title": f"page {row}"}) for row, text in added.items()),
            removed,
        )
        self.table.adopt(added)
        self.alive = (self.alive | set(added)) - set(removed)
        self.highest = max([self.highest, *added])

    def consolidate(self) -> None:
        for merged in self.table.merge():
            self.table.replace(merged)

    def match(self, text: str, k: int = 10) -> list[tuple[int, float]]:
        mask = np.zeros(self.highest + 1, dtype=np.bool_)
        mask[sorted(self.alive)] = True
        return matching(self.table, text, k, mask)

    def rows(self, text: str, k: int = 10) -> list[int]:
        return [row for row, _ in self.match(text, k)]


def count_lookups(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note every term that is looked up, once for each segment."""
    looked_up: list[str] = []
    find = Words.find

    def counting(self: Words, term: str) -> int:
        looked_up.append(term)
        return find(self, term)

    monkeypatch.setattr(Words, "find", counting)
    return looked_up


def prose(seed: int, words: int = 60) -> str:
    """Write words as languages have them: few are frequent, many are rare."""
    chooser = random.Random(seed)
    weights = [1 / (rank + 1) for rank in range(len(VOCABULARY))]
    return " ".join(chooser.choices(VOCABULARY, weights, k=chooser.randint(words // 3, words)))


@pytest.fixture(scope="module")
def prose_bench() -> Bench:
    bench = Bench()
    for start in (0, 100, 200):
        bench.apply({row: prose(row) for row in range(start, start + 100)})
    return bench


# --- the score ---


def whoosh_ranking(table: KeywordTable, text: str, k: int) -> list[int]:
    """Ask Whoosh itself: its own BM25F, over the same index, the same terms and the same boosts."""
    asked = [
        whoosh_query.Term(field, term, boost)
        for term in terms(text)
        for field, boost in BOOSTS.items()
    ]
    with table._segments._index.searcher(weighting=BM25F(B=B, K1=K1)) as searcher:
        return [
            _row(searcher, hit.docnum) for hit in searcher.search(whoosh_query.Or(asked), limit=k)
        ]


def _row(searcher: Any, number: int) -> int:
    reader = searcher.reader()
    leaf, base = max(
        (pair for pair in reader.leaf_readers() if pair[1] <= number), key=lambda pair: pair[1]
    )
    return int(leaf.column_reader("row")[number - base])


def test_ranking_agrees_with_whooshs_own(prose_bench: Bench) -> None:
    overlaps, correlations = [], []
    for seed in range(30):
        query = " ".join(dict.fromkeys(random.Random(1000 + seed).choices(VOCABULARY, k=4)))
        ours, theirs = prose_bench.rows(query, 300), whoosh_ranking(prose_bench.table, query, 300)
        assert set(ours) == set(theirs)
        overlaps.append(len(set(ours[:10]) & set(theirs[:10])) / min(10, len(ours)))
        places = {row: place for place, row in enumerate(theirs)}
        correlations.append(
            float(np.corrcoef(np.arange(len(ours)), [places[row] for row in ours])[0, 1])
        )
    print(f"\ntop-10 overlap {np.mean(overlaps):.3f}, rank correlation {np.mean(correlations):.3f}")  # noqa: T201 - the figure is the point
    assert np.mean(overlaps) >= 0.8
    assert np.mean(correlations) >= 0.9


def titled(rows: dict[int, dict[str, str]]) -> Bench:
    bench = Bench()
    bench.table.write(map(analysed, rows.values()))
    bench.table.adopt(rows)
    bench.alive, bench.highest = set(rows), max(rows)
    return bench


def test_every_term_once_in_a_passage_of_average_length_scores_one() -> None:
    bench = titled(
        {row: {"body": f"word{row} other{row} third{row} fourth{row}"} for row in range(20)}
    )
    assert dict(bench.match("word3 other3")) == pytest.approx({3: 1.0}, abs=1e-3)
    assert bench.match("word3 zebra")[0][1] < 0.6


def test_a_page_whose_whole_title_is_asked_for_comes_before_one_that_has_more_in_its_title() -> (
    None
):
    text = "client libraries are written in many languages"
    pages = {
        0: "client",
        1: "client libraries",
        2: "client libraries maintained by communities elsewhere",
        3: "tools",
    }
    bench = titled({row: {"body": text, "title": title} for row, title in pages.items()})
    assert bench.rows("client libraries")[0] == 1
    assert bench.rows("client libraries")[-1] == 3
    # The same holds for the name of a file.
    named = titled({row: {"body": text, "name": title} for row, title in pages.items()})
    assert named.rows("client libraries")[0] == 1


def test_a_title_and_a_name_add_a_bounded_part() -> None:
    body = {row: {"body": f"other{row} words{row}"} for row in range(1, 20)}
    plain = titled({0: {"body": "storage classes"}, **body}).match("storage classes")[0][1]
    there = {"body": "storage classes", "title": "storage classes", "name": "storage-classes"}
    both = titled({0: there, **body}).match("storage classes")[0][1]
    # What occurring in a title as such is worth saturates as in a text.
    assert plain < both < (K1 + 1) + sum(NAMED.values())
    assert titled({0: there, **body}).match("storage classes " + "unknown " * 3)[0][1] < both


def test_an_identifier_as_a_whole_counts_less_than_its_parts_together() -> None:
    bodies = {row: {"body": f"filler{row} text{row}"} for row in range(3, 30)}
    bench = titled(
        {
            0: {"body": "alpha_beta one"},
            1: {"body": "alpha beta"},
            2: {"body": "alpha one"},
            **bodies,
        }
    )
    found = dict(bench.match("alpha_beta"))
    assert found[0] > found[1] > found[2]
    assert found[0] - found[1] < found[1]


def test_consolidating_changes_the_number_of_segments_and_nothing_else() -> None:
    bench = Bench()
    for row in range(40):
        bench.apply({row: prose(row)}, (row - 3,) if row % 4 == 3 else ())
    queries = [prose(seed, 8) for seed in range(1000, 1010)]
    before = [bench.match(query, 100) for query in queries]
    postings, segments = bench.table.postings(), len(bench.table._segments.opened)
    bench.consolidate()
    assert len(bench.table._segments.opened) < segments
    assert [bench.match(query, 100) for query in queries] == before
    assert bench.table.postings() == postings


def test_what_is_removed_while_segments_are_merged_stays_removed() -> None:
    bench, fresh = Bench(), Bench()
    for row in range(40):
        bench.apply({row: prose(row)})
    merging = bench.table.merge()
    merged = next(merging)
    bench.apply({40: prose(40)}, (3, 17, 39))
    bench.table.replace(merged)
    kept = [row for row in range(41) if row not in (3, 17, 39)]
    fresh.apply({row: prose(row) for row in kept})
    fresh.highest = bench.highest
    assert bench.table.postings() == fresh.table.postings()
    assert bench.table.differences() == []
    for seed in range(1000, 1010):
        assert bench.match(prose(seed, 8), 100) == fresh.match(prose(seed, 8), 100)
    again = KeywordTable(bench.table.dump())
    assert again.postings() == fresh.table.postings()
    # What it was made of is gone by now.
    segments = len(bench.table._segments.opened)
    bench.table.replace(merged)
    assert len(bench.table._segments.opened) == segments


def test_changes_that_never_pause_do_not_pile_up_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keywords, "PILED_SEGMENTS", 15)
    bench = Bench()
    for row in range(60):
        bench.apply({row: f"apple {prose(row)}"}, (row - 1,) if row % 2 else ())
        if bench.table.is_piled:
            bench.consolidate()
        assert len(bench.table._segments.opened) <= 15
    assert sorted(bench.rows("apple", 100)) == list(range(1, 60, 2))


# --- typos ---


@pytest.mark.parametrize("segments", [1, 3])
@pytest.mark.parametrize("typo", ["recieving", "receving", "receivving", "receixing", "rexeiving"])
def test_a_typo_finds_the_word_however_many_segments_there_are(typo: str, segments: int) -> None:
    bench = Bench()
    bench.apply({0: "receiving mail"})
    for row in range(1, segments):
        bench.apply({row: "something else"})
    assert bench.rows(typo) == [0]
    assert bench.match(typo)[0][1] < bench.match("receiving")[0][1]


def test_spellings_of_the_dead_take_no_place() -> None:
    bench = Bench()
    bench.apply({row: f"zebr{letter}" for row, letter in enumerate("bcdefg")})
    bench.apply({9: "zebra"})
    bench.apply({}, (0, 1, 2, 3, 4, 5))
    assert bench.rows("zebrx") == [9]


@pytest.mark.parametrize(
    ("query", "rows"), [("casting", [0]), ("cut", []), ("20261", []), ("v1235a", [])]
)
def test_exact_short_and_numbered_words_have_no_other_spelling(query: str, rows: list[int]) -> None:
    bench = Bench()
    bench.apply({0: "casting", 1: "coasting", 2: "cat 20260 v1234a"})
    assert bench.rows(query) == rows


# --- how text becomes terms ---


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("call maxChars here", ["maxChars", "maxchars", "max chars", "chars", "MAXCHARS"]),
        ("set max_chars now", ["max_chars", "max chars", "chars", "MAX_CHARS"]),
        ("see src/auth.py there", ["src/auth.py", "auth.py", "auth", "src auth"]),
        ("uses all-MiniLM-L6-v2 daily", ["all-minilm-l6-v2", "MiniLM", "minilm l6"]),
        ("the HTTPServer class", ["HTTPServer", "httpserver", "server", "http server"]),
        ("a façade for Größe", ["facade", "façade", "GRÖSSE", "grosse"]),
        ("expiring tokens", ["expire", "token", "Expires"]),
        ("全文検索エンジン", ["検索", "全文", "エンジン", "全文検索"]),
        ("한국어 검색", ["검색", "한국"]),
        ("使用 FAISS 索引", ["索引", "faiss"]),
        ("full-width Ｔｏｋｅｎ", ["token"]),
        ("version 3.11 out", ["3.11"]),
    ],
)
def test_identifiers_accents_and_cjk_are_found_by_their_parts(
    written: str, asked: list[str]
) -> None:
    bench = Bench()
    bench.apply({0: written, 1: "unrelated words only"})
    for text in asked:
        assert bench.rows(text) == [0], text


# --- hostile queries ---


def test_no_query_raises_or_costs_more_than_its_share(
    prose_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up = count_lookups(monkeypatch)
    segments = len(prose_bench.table._segments.opened)
    words = {"a megabyte of words": " ".join(VOCABULARY) * 3000}
    words["ten thousand typos"] = " ".join(f"{word}zz" for word in VOCABULARY) * 170
    for name, query in (queries() | words).items():
        looked_up.clear()
        found = prose_bench.match(query)
        assert len(found) <= 10, name
        assert all(0 < score < 10 for _, score in found), name
        assert len(looked_up) <= segments * (MOST_LOOKUPS + 200), name


def test_a_query_of_stop_words_still_finds_what_has_nothing_else() -> None:
    bench = Bench()
    bench.apply({0: "to be or not to be", 1: "tokens expire"})
    assert bench.rows("to be or not to be") == [0]
    assert bench.rows("the tokens") == [1]


@pytest.mark.parametrize("text", ["", "***", "\u200b\u200b", "—", "\n"])
def test_a_passage_without_words_hurts_no_search(text: str) -> None:
    bench = titled({0: {"body": text}})
    assert bench.match("anything") == bench.match("") == []
    bench.apply({1: "oranges here"})
    assert bench.rows("ornages") == [1]


# --- the cache ---


def test_the_cache_of_impacts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.apply({row: prose(row) for row in range(100)})
    monkeypatch.setattr(keywords, "CACHED_IMPACTS", 3_000)
    monkeypatch.setattr(keywords, "COMMON_TERMS", 0)
    for seed in range(1000, 1030):
        bench.match(prose(seed, 12))
        size = sum(impact.size for impact in bench.table._impacts.values())
        assert size == bench.table._impact_size
        assert size <= 3_000 or len(bench.table._impacts) == 1


def test_a_term_is_looked_up_once_between_two_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.apply({row: prose(row) for row in range(50)})
    first = bench.match(VOCABULARY[0])
    looked_up = count_lookups(monkeypatch)
    assert bench.match(VOCABULARY[0]) == first
    assert looked_up == []
    bench.apply({50: "something new"}, (3,))
    assert 3 not in bench.rows(VOCABULARY[0], 100)
    assert looked_up == [VOCABULARY[0]] * 2


def test_a_word_that_a_long_query_repeats_counts_more() -> None:
    bench = Bench()
    bench.apply({0: "kaberg lodans", 1: "kaberg miruf", 2: "lodans rufils"})
    others = " ".join(f"word{number}" for number in range(8))
    assert bench.rows(f"miruf rufils {others}")[0] == 1
    assert bench.rows(f"miruf rufils {others} rufils")[0] == 2
    assert bench.rows("miruf rufils rufils")[0] == 1


def test_a_title_counts_less_the_longer_the_query_is() -> None:
    mask = np.ones(2, dtype=np.bool_)
    gains = []
    for filler in ("", " ".join(VOCABULARY[20:52])):
        table = KeywordTable()
        table.write([{"body": ["lodan"], "title": ["kaber"]}, {"body": ["lodan"]}], ())
        table.adopt([0, 1])
        query = f"kaber lodan {filler}"
        titled, plain = table.score(query, mask).values.tolist()
        gains.append(titled - plain)
    short, long = gains
    assert 0 < long < short / 2
