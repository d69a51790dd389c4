"""Recency, caps, order and the cut."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ragdocs.lanes import Ranking
from ragdocs.search.rank import CLEAR_GAP, DOUBT_REACH, IMPORTANCE_REACH, Chosen, rank
from ragdocs.types import Document, Probe, Query

NOW = datetime(2026, 11, 16, tzinfo=UTC)
BOOSTED = Ranking(recency_days=7, recency_factor=1.2, per_document=1)


Candidate = tuple[Document, float]
Answer = list[tuple[str, float]]


def hit(name: str, score: float, days: float | None = None) -> Candidate:
    created = None if days is None else NOW - timedelta(days=days)
    document = Document(
        id=f"memory:{name}",
        lane="memory",
        path=f"{name}.md",
        title=name,
        version="v",
        created_at=created,
    )
    return document, score


def names(answer: Answer) -> list[str]:
    return [name for name, _ in answer]


def ask(hits: list[Candidate], limit: int = 5, ranking: Ranking = BOOSTED) -> Answer:
    chosen, _ = cut(hits, limit, ranking)
    return [(hits[one.column][0].title, one.score) for one in chosen]


def cut(
    hits: list[Candidate], limit: int = 5, ranking: Ranking = BOOSTED
) -> tuple[list[Chosen], int]:
    return rank(
        np.array([score for _, score in hits]),
        [document for document, _ in hits],
        Query(probes=(Probe("q"),), limit=limit),
        ranking,
        NOW,
    )


def test_a_recent_memory_below_the_cut_rises_above_it() -> None:
    assert names(ask([hit("old", 0.6, 90), hit("new", 0.55, 1)], limit=1)) == ["new"]


def test_the_boost_does_not_invert_a_clear_gap() -> None:
    assert names(ask([hit("old", 0.9, 90), hit("new", 0.5, 1)])) == ["old", "new"]


def test_the_last_day_of_the_boost_counts() -> None:
    assert ask([hit("a", 0.5, 7.9)])[0][1] == 0.6
    assert ask([hit("a", 0.5, 8.0)])[0][1] == 0.5


def test_a_memory_from_the_future_is_boosted_like_one_of_today_and_no_more() -> None:
    assert ask([hit("a", 0.5, -400)])[0][1] == 0.6


def test_a_memory_without_a_date_is_not_boosted() -> None:
    assert ask([hit("a", 0.5)])[0][1] == 0.5


def test_boosted_scores_are_shown_up_to_one_but_keep_their_order() -> None:
    found = ask([hit("first", 0.99, 1), hit("second", 0.9, 1)])
    assert names(found) == ["first", "second"]
    assert [score for _, score in found] == [1.0, 1.0]


def test_one_memory_takes_one_place() -> None:
    found = ask([hit("a", 0.9), hit("a", 0.8), hit("b", 0.5)])
    assert names(found) == ["a", "b"]


def test_what_is_cut_is_counted() -> None:
    assert cut([hit(str(n), 0.5 + n / 100) for n in range(9)], limit=4)[1] == 5


def test_equal_scores_have_one_order() -> None:
    hits = [hit("b", 0.5), hit("a", 0.5), hit("c", 0.5)]
    assert names(ask(hits)) == names(ask(hits[::-1])) == ["a", "b", "c"]
    passages = [hit("b", 0.5), hit("a", 0.5), hit("a", 0.5)]
    chosen, _ = cut(passages, ranking=Ranking(per_document=2))
    assert [choice.column for choice in chosen] == [1, 2, 0]


measures = st.integers(0, 4)


@given(
    st.lists(
        st.tuples(st.floats(0.01, 1.0), st.floats(0, 30), measures, measures),
        min_size=2,
        max_size=12,
    )
)
def test_recency_lifts_nothing_over_what_is_clearly_better_by_words_and_by_meaning(
    scored: list[tuple[float, float, int, int]],
) -> None:
    hits = [hit(str(n), score, days) for n, (score, days, _, _) in enumerate(scored)]
    measured = np.array([[words, meaning] for _, _, words, meaning in scored]).T
    scores = np.array([score for _, score in hits])
    documents = [document for document, _ in hits]
    query = Query(probes=(Probe("q"),), limit=20)
    chosen, _ = rank(scores, documents, query, BOOSTED, NOW, measured)
    places = [choice.column for choice in chosen]
    for place, newer in enumerate(places):
        for older in places[place + 1 :]:
            is_better = bool((measured[:, older] >= measured[:, newer]).all())
            assert not (is_better and scores[older] >= scores[newer] + CLEAR_GAP)
    for choice in chosen:
        added = sum(signal.share for signal in choice.signals)
        assert abs(scores[choice.column] + added - choice.score) < 1e-9


def test_of_two_that_are_nearly_as_good_the_newer_comes_first() -> None:
    hits = [hit("old", 0.80, 90), hit("new", 0.78, 1)]
    scores = np.array([score for _, score in hits])
    query = Query(probes=(Probe("q"),), limit=2)
    measured = np.array([[0.6, 0.5], [0.7, 0.6]])
    chosen, _ = rank(scores, [one for one, _ in hits], query, BOOSTED, NOW, measured)
    assert [choice.column for choice in chosen] == [1, 0]


@given(
    st.lists(
        st.tuples(st.floats(0.01, 1.0), st.floats(-50, 50), st.floats(-3, 3), st.floats(-20, 20)),
        min_size=2,
        max_size=12,
        unique=True,
    )
)
def test_importance_and_confidence_order_near_equals_and_lift_nothing_over_what_is_clearly_better(
    scored: list[tuple[float, float, float, float]],
) -> None:
    hits = []
    for n, (score, importance, confidence, _) in enumerate(scored):
        document, _ = hit(str(n), score)
        hits.append((replace(document, importance=importance, confidence=confidence), score))
    earned = {f"memory:{n}": more for n, (_, _, _, more) in enumerate(scored)}
    query = Query(probes=(Probe("q"),), limit=20, earned=earned)
    scores = np.array([score for _, score in hits])
    chosen, _ = rank(scores, [document for document, _ in hits], query, Ranking(), NOW)
    most = (1 + IMPORTANCE_REACH) / ((1 - IMPORTANCE_REACH * 0.8) * (1 - DOUBT_REACH))
    for above, below in pairwise(chosen):
        assert hits[below.column][1] <= hits[above.column][1] * most + 1e-9
    for one in chosen:
        assert 0 < one.score <= 1
        assert (
            abs(hits[one.column][1] + sum(signal.share for signal in one.signals) - one.score)
            < 1e-9
        )
