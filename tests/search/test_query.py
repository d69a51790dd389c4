"""One search: how often it calls the index, what it needs of keys, and how ties end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from tests.engines.contract import entry
from tests.engines.wrappers import Counting, Opaque

from ragdocs.engines.local.index import LocalIndex
from ragdocs.lanes import DOCS, JOURNAL, MEMORY, Lane
from ragdocs.protocols import Index
from ragdocs.search.calibration import WEAK, Gauge
from ragdocs.search.corpus import Corpus
from ragdocs.search.encoders.hashing import HashEncoder
from ragdocs.search.encoders.vectors import half_precision
from ragdocs.search.floor import FLOOR
from ragdocs.search.rank import lead
from ragdocs.search.relevance import with_doubt
from ragdocs.stores.files.store import FileStore
from ragdocs.types import Filter, Findings, Hit, IndexedDocument, Link, Probe, Query

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
MOST_CALLS = 4
WORDS = ("apple", "pear", "plum", "fig", "tart", "orchard", "cellar", "press", "barrel", "cider")
QUERIES = {
    "plain": Query(probes=(Probe("pear tart"),)),
    "filtered": Query(
        probes=(Probe("pear tart"),),
        where=Filter(tags=("even",), kinds=("fact",), since=NOW - timedelta(days=300), prefix="f"),
    ),
    "time in query": Query(probes=(Probe("what about the press last week"),)),
    "linked": Query(probes=(Probe("plum"),), where=Filter(linked_to=("src/press.py", "f3"))),
    "several probes": Query(
        probes=(Probe("pear"), Probe("cellar barrel", "work", 0.5), Probe("  ", "empty")), limit=20
    ),
    "words only": Query(probes=(Probe("cider"),), weights=(0.0, 1.0)),
    "meaning only": Query(probes=(Probe("cider"),), weights=(1.0, 0.0)),
    "recall": Query(
        probes=(Probe("orchard fig"),),
        limit=50,
        where=Filter(alive_at=NOW, hidden=("archived",), min_importance=1),
        floored=True,
        earned={"test:f01": 3.0},
    ),
    "nothing found": Query(probes=(Probe("zzzz"),), weights=(0.0, 1.0)),
    "nothing asked": Query(probes=()),
}


def entries() -> list[IndexedDocument]:
    made = []
    for n in range(60):
        texts = [f"{WORDS[(n + m) % 10]} {WORDS[(n * m) % 10]} and more" for m in range(n % 4 + 1)]
        links = (Link(f"f{(n * 7) % 60:02}", "mentions", ""), Link("src/press.py", "plans", "see"))
        made.append(
            entry(
                f"f{n:02}.md",
                *texts,
                title="Notes",
                kind=("fact", "plan")[n % 2],
                tags=("even",) * (n % 2 == 0),
                created_at=NOW - timedelta(days=n * 5),
                links=links[: n % 3],
            )
        )
    # Not in the order of their paths: ties must not go by the order of coming.
    return made[::2] + made[1::2][::-1]


def corpus(lane: Lane, index: Index, folder: Path) -> Corpus:
    return Corpus(lane, FileStore(folder, lane), index, HashEncoder())


def indexed(documents: Sequence[IndexedDocument]) -> LocalIndex:
    encoder = HashEncoder()
    index = LocalIndex(None, recipe="1", encoder=encoder.identity, dim=encoder.dim)
    index.apply(documents[:20])
    index.apply(documents[20:])
    return index


@pytest.fixture(scope="module")
def index() -> LocalIndex:
    return indexed(entries())


@pytest.mark.parametrize("lane", [DOCS, MEMORY, JOURNAL], ids=lambda lane: lane.name)
@pytest.mark.parametrize("name", QUERIES)
def test_a_search_makes_at_most_four_calls_to_the_index(
    lane: Lane, name: str, index: LocalIndex, tmp_path: Path
) -> None:
    counting = Counting(index)
    searching = corpus(lane, cast("Index", counting), tmp_path)
    searching.embed()
    counting.calls.clear()
    searching.search(QUERIES[name], NOW)
    assert 2 <= counting.calls.total() <= MOST_CALLS, counting.calls


def essence(findings: Findings) -> Findings:
    """Return an answer without what may differ: the time it took."""
    return replace(findings, seconds={})


@pytest.mark.parametrize("lane", [DOCS, MEMORY, JOURNAL], ids=lambda lane: lane.name)
@pytest.mark.parametrize("name", QUERIES)
def test_a_search_is_the_same_with_keys_that_say_nothing(
    lane: Lane, name: str, index: LocalIndex, tmp_path: Path
) -> None:
    plain = corpus(lane, index, tmp_path)
    plain.embed()
    hidden = corpus(lane, cast("Index", Opaque(index)), tmp_path)
    expected = plain.search(QUERIES[name], NOW)
    assert essence(hidden.search(QUERIES[name], NOW)) == essence(expected)
    if not name.startswith("nothing"):
        assert expected.hits or expected.notes


def test_the_order_in_which_documents_came_changes_no_answer(tmp_path: Path) -> None:
    answers = []
    for ordered in (entries(), sorted(entries(), key=lambda one: one.document.path)):
        searching = corpus(MEMORY, indexed(ordered), tmp_path)
        searching.embed()
        answers.append([essence(searching.search(query, NOW)) for query in QUERIES.values()])
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("passage_id", "lines"), [("", None), ("test:f03#2", "3-3"), ("test:none", None)]
)
def test_a_document_is_measured_whether_it_is_found_or_not(
    passage_id: str, lines: str | None, index: LocalIndex, tmp_path: Path
) -> None:
    searching = corpus(DOCS, index, tmp_path)
    searching.embed()
    measured = searching.measure("cider zebra", "test:f03", passage_id)
    found = searching.measure("fig", "test:f03")
    assert found.words == ("fig",)
    assert found.keyword_rank > 0
    if lines:
        assert f"{measured.passage.start_line}-{measured.passage.end_line}" == lines
    assert measured.meaning_rank > 0
    assert searching.measure("zebra", "test:f03").keyword_rank == 0


def test_documents_that_are_alike_are_found_in_pairs(tmp_path: Path) -> None:
    encoder = HashEncoder()
    made = LocalIndex(None, recipe="1", encoder=encoder.identity, dim=encoder.dim)
    made.apply([entry("b.md", "pear tart", title="t"), entry("a.md", "pear tart", title="t")])
    made.apply([entry("c.md", "something else entirely", title="u")])
    searching = corpus(MEMORY, made, tmp_path)
    searching.embed()
    ((similarity, first, second),) = searching.similar(Filter(), 0.95)
    assert (first, second) == ("test:a", "test:b")
    assert similarity == pytest.approx(1.0, abs=1e-2)


def test_a_query_vector_is_rounded_as_the_vectors_of_passages_are() -> None:
    vector = HashEncoder().encode(["pear tart and cider"])[0]
    rounded = half_precision(vector)
    assert rounded.dtype == np.float32
    assert np.array_equal(rounded, rounded.astype(np.float16))
    assert np.abs(rounded - vector).max() < 1e-3


@pytest.mark.parametrize(
    ("score", "lead", "is_marked"),
    [
        (WEAK - 0.01, 0.5, False),
        (WEAK + 0.05, 0.1, True),
        (0.95, 0.0, False),
        (FLOOR + 0.01, 0.4, True),
    ],
)
def test_an_answer_that_is_hardly_ahead_of_others_is_marked_as_weak(
    score: float, lead: float, *, is_marked: bool
) -> None:
    found = entry("a.md", "apple press")
    hit = Hit(found.document, found.chunks[0], score, ())
    marked = with_doubt(Findings(hits=(hit,), lead=lead), "apple", Gauge())
    assert bool(marked.notes) == is_marked
    if is_marked and score > WEAK:
        assert "many other documents nearly as much" in marked.notes[0]


def test_the_lead_is_that_over_the_tenth_document() -> None:
    documents = [entry(f"{number}.md", "x").document for number in range(12)]
    # Three passages of the first document are one rival, not three.
    passages = [documents[0]] * 3 + documents[1:]
    scores = np.array([0.8, 0.79, 0.78, *np.linspace(0.7, 0.2, 11)])
    assert lead(scores, passages) == pytest.approx(1 - scores[11] / 0.8)
    assert lead(scores[:6], passages[:6]) is None


@pytest.mark.parametrize(
    ("score", "note"),
    [
        (WEAK, ""),
        (FLOOR, "weak matches: the best of these scores 0.50, .* answers; none of them has pumps$"),
        (FLOOR - 0.1, ""),
    ],
)
def test_an_answer_whose_best_hit_scores_little_is_marked_and_names_what_it_lacks(
    score: float, note: str
) -> None:
    found = entry("a.md", "apple press")
    hit = Hit(found.document, found.chunks[0], score, (), words=("apple",))
    marked = with_doubt(Findings(hits=(hit,)), "what of apple pumps", Gauge())
    assert bool(marked.notes) == bool(note)
    if note:
        assert re.match(note, marked.notes[0])
