"""The scoring module: bounded, monotone, order-independent, stable under ties.

And its shares add up.
"""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdocs.lanes import Ranking
from ragdocs.protocols import Siblings
from ragdocs.search import calibration as gauge
from ragdocs.search import rank
from ragdocs.search import score as fuse
from ragdocs.search.calibration import Gauge
from ragdocs.types import Document, Probe, Query

PROBE = Probe("query")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
said = st.dictionaries(
    st.integers(0, 30), st.tuples(st.floats(-1, 1), st.floats(0, 2)), max_size=20
)
boosts = st.lists(st.tuples(st.integers(0, 40), st.floats(0, 1)), max_size=10)
Said = dict[int, tuple[float, float]]
SUPPORTED = Ranking(support_weight=0.2, crowd_discount=0.1)


def legs(vector: dict[int, float], keyword: dict[int, float]) -> list[fuse.Leg]:
    def best_first(scores: dict[int, float]) -> list[tuple[int, float]]:
        return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))

    return [
        fuse.Leg(PROBE, "keyword", best_first(keyword)),
        fuse.Leg(PROBE, "vector", best_first(vector)),
    ]


def asked_of(both: Said) -> list[fuse.Leg]:
    return legs(
        {key: one for key, (one, _) in both.items()}, {key: two for key, (_, two) in both.items()}
    )


def fused(both: Said, *, reverse: bool = False) -> fuse.Board:
    asked = asked_of(both)[::-1] if reverse else asked_of(both)
    keys = sorted(both)
    lines = {"vector": [both[key][0] for key in keys], "keyword": [both[key][1] for key in keys]}
    raws = np.array([lines[leg.source] for leg in asked]).reshape(2, len(keys))
    return fuse.fuse(asked, keys, raws, Ranking())


def parted(both: Said, cuts: set[int]) -> list[list[int]]:
    """Part chunks into documents: one begins at each cut."""
    documents: list[list[int]] = []
    for key in sorted(both):
        if not documents or key in cuts:
            documents.append([])
        documents[-1].append(key)
    return documents


def settle(
    both: Said,
    documents: list[list[int]],
    ranking: Ranking,
    lone: float = 0.5,
    *,
    only: set[int] | None = None,
) -> fuse.Board:
    keys = np.array(sorted(both), dtype=np.int64)
    starts = np.searchsorted(
        keys, np.array([document[0] for document in documents], dtype=np.int64)
    )
    found = keys if only is None else np.array([key for key in keys if key in only], dtype=np.int64)
    return fuse.settle(fused(both), asked_of(both), found, Siblings(keys, starts, lone), ranking)


def scores(board: fuse.Board) -> dict[int, float]:
    return dict(zip(board.keys, board.scores.tolist(), strict=True))


def shown(board: fuse.Board, query: Query | None = None) -> list[tuple[int, float]]:
    """Rank without boosts, one document for each chunk, and return keys with the scores to show."""
    owners = [
        Document(id=f"d:{key}", lane="d", path=f"{key:03}.md", title="", version="")
        for key in board.keys
    ]
    board = fuse.calibrate(board, Gauge().show)
    found = list(zip(board.keys, board.scores.tolist(), strict=True))
    chosen, _ = rank.rank(found, owners, query or Query(probes=(PROBE,), limit=50), Ranking(), NOW)
    return [(board.keys[one.place], one.score) for one in chosen]


@given(said, boosts)
def test_scores_that_are_shown_stay_between_zero_and_one(
    both: Said, links: list[tuple[int, float]]
) -> None:
    assert all(
        0.0 < score <= 1.0 for _, score in shown(fuse.lift(fused(both), "graph", links, 0.25))
    )


@given(said, st.integers(0, 30), st.floats(0.01, 0.5), st.sampled_from([0, 1]))
def test_more_of_either_signal_never_lowers_a_chunk_among_the_others(
    both: Said, key: int, more: float, which: int
) -> None:
    def place(found: dict[int, float]) -> int:
        return sum(
            value > found.get(key, 0.0) + 1e-9 for other, value in found.items() if other != key
        )

    before = {**both, key: both.get(key, (0.0, 0.0))}
    lifted = list(before[key])
    lifted[which] += more
    assert place(scores(fused({**before, key: (lifted[0], lifted[1])}))) <= place(
        scores(fused(before))
    )


@given(said)
def test_the_order_of_the_sources_does_not_matter(both: Said) -> None:
    forward, backward = scores(fused(both)), scores(fused(both, reverse=True))
    assert forward == pytest.approx(backward)


@given(said, st.sets(st.integers(0, 30)))
def test_what_else_is_found_never_changes_the_order_of_two_chunks(
    both: Said, gone: set[int]
) -> None:
    kept = {key: pair for key, pair in both.items() if key not in gone}
    everything, some = shown(fused(both)), shown(fused(kept))
    assert [pair for pair in everything if pair[0] in kept] == some


@given(said, st.floats(0, 1))
def test_a_least_score_only_cuts(both: Said, least: float) -> None:
    query = Query(probes=(PROBE,), limit=50, min_score=least)
    assert shown(fused(both), query) == [pair for pair in shown(fused(both)) if pair[1] >= least]


@given(st.lists(st.integers(0, 30), unique=True, min_size=2), st.floats(0.1, 1))
def test_equal_scores_have_one_order(keys: list[int], score: float) -> None:
    equal = dict.fromkeys(keys, (score, score))
    assert [key for key, _ in shown(fused(equal))] == sorted(keys)
    assert fuse.order(fused(equal)) == list(range(len(keys)))


@given(said, boosts)
def test_links_never_lift_a_score_above_one_nor_lower_any(
    both: Said, links: list[tuple[int, float]]
) -> None:
    board = fused(both)
    before, after = scores(board), scores(fuse.lift(board, "graph", links, 0.25))
    assert all(after[key] >= before[key] for key in before)
    assert all(value <= max(1.0, before.get(key, 0.0)) + 1e-9 for key, value in after.items())


@given(said, st.sets(st.integers(0, 30)))
def test_context_lies_between_a_chunk_and_the_better_one_beside_it(
    both: Said, cuts: set[int]
) -> None:
    documents = parted(both, cuts)
    own, settled = scores(fused(both)), scores(settle(both, documents, Ranking()))
    for keys in documents:
        for place, key in enumerate(keys):
            near = max(
                (own[other] for other in keys[max(0, place - 1) : place + 2] if other != key),
                default=own[key],
            )
            assert min(own[key], near) - 1e-9 <= settled[key] <= max(own[key], near) + 1e-9


@given(said, st.sets(st.integers(0, 30)))
def test_one_of_several_passages_is_worth_a_little_less_where_a_lane_says_so(
    both: Said, cuts: set[int]
) -> None:
    documents = parted(both, cuts)
    settled = scores(settle(both, documents, Ranking(context_weight=0.0, crowd_discount=0.1)))
    own = scores(fused(both))
    for keys in documents:
        for key in keys:
            assert settled[key] == pytest.approx(own[key] * (0.9 if len(keys) > 1 else 1.0))


@given(said, st.sets(st.integers(0, 30)), st.floats(0, 1))
def test_the_best_passage_of_a_document_is_supported_by_the_second_best(
    both: Said, cuts: set[int], lone: float
) -> None:
    documents = parted(both, cuts)
    own = scores(fused(both))
    settled = scores(
        settle(both, documents, Ranking(context_weight=0.0, support_weight=0.25), lone)
    )
    alone = min(fuse.LONE_MOST, fuse.LONE_RATE * lone)
    for keys in documents:
        seconds = []
        for which in (0, 1):
            ordered = sorted((max(0.0, both[key][which]) for key in keys), reverse=True)
            seconds.append(ordered[1] if len(ordered) > 1 else alone * ordered[0])
        best = max(own[key] for key in keys)
        for key in keys:
            support = sum(seconds) / 2 if own[key] == best else 0.0
            assert settled[key] == pytest.approx((own[key] + 0.25 * support) / 1.25)


@given(said, st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)))
def test_what_of_a_document_was_found_does_not_change_what_supports_it(
    both: Said, cuts: set[int], found: set[int]
) -> None:
    documents = parted(both, cuts)
    every, some = settle(both, documents, SUPPORTED), settle(both, documents, SUPPORTED, only=found)
    assert scores(some) == {key: scores(every)[key] for key in some.keys}


def test_the_words_of_a_long_query_weigh_more() -> None:
    def weighed(words: int) -> float:
        found = [
            fuse.Leg(PROBE, "keyword", [(1, 1.0)], words),
            fuse.Leg(PROBE, "vector", [(2, 1.0)], words),
        ]
        told = scores(fuse.fuse(found, [1, 2], np.eye(2), Ranking()))
        assert sum(told.values()) == pytest.approx(1.0)
        return told[1]

    assert weighed(fuse.USUAL_WORDS) == pytest.approx(0.3)
    assert weighed(0) == weighed(1) < weighed(3) < 0.3 < weighed(12) < weighed(60) < 0.5


@given(said, boosts)
def test_the_signals_of_a_chunk_add_up_to_its_score(
    both: Said, links: list[tuple[int, float]]
) -> None:
    board = fuse.lift(settle(both, parted(both, {5, 9, 20}), SUPPORTED), "graph", links, 0.25)
    for place, score in enumerate(board.scores.tolist()):
        assert abs(sum(signal.share for signal in board.signals(place)) - score) < 1e-9
        shown = fuse.calibrate(board, Gauge().show)
        told = float(Gauge().show(np.array(score))) if score > fuse.LEAST else 0.0
        assert abs(sum(signal.share for signal in shown.signals(place)) - told) < 1e-9


@given(st.lists(st.floats(0, 2), min_size=2, max_size=30))
def test_a_gauge_keeps_the_order_and_puts_its_floor_in_the_middle(values: list[float]) -> None:
    measured = gauge.measured(values)
    assert float(measured.show(np.array(measured.floor))) == pytest.approx(0.5)
    told = measured.show(np.array([measured.floor + step / 10 for step in range(-5, 16)])).tolist()
    assert told == sorted(told)
    assert len(set(told)) == len(told)


def test_the_floor_stays_between_what_ordinary_words_and_what_true_answers_reach() -> None:
    assert gauge.measured([0.1] * 40).floor == gauge.LEAST_FLOOR
    # A lane that answers most of the unrelated questions still shows its answers.
    assert gauge.measured([0.2] * 10 + [0.9] * 30).floor == gauge.MOST_FLOOR


def test_how_far_chance_scatters_does_not_make_a_hit_any_surer() -> None:
    narrow, wide = Gauge(0.1, 0.02), Gauge(0.1, 0.1)
    assert narrow.floor == wide.floor == gauge.LEAST_FLOOR
    better, worse = np.array(narrow.floor + 0.2), np.array(narrow.floor - 0.05)
    assert narrow.show(better) == wide.show(better)
    assert narrow.show(worse) < wide.show(worse)


def test_the_floor_is_passed_by_one_unrelated_question_in_twenty() -> None:
    best = np.random.default_rng(1).normal(0.3, 0.05, 2000).tolist()
    measured = gauge.measured(best)
    assert np.mean(measured.show(np.array(best)) > gauge.FLOOR) == pytest.approx(0.05, abs=0.015)
    # A few questions that happen to be about the project do not lift it.
    assert gauge.measured([*best, *[0.9] * 100]).floor == pytest.approx(measured.floor, abs=0.01)


def test_a_source_that_cannot_be_asked_leaves_its_weight_to_the_other() -> None:
    leg = fuse.Leg(PROBE, "keyword", [(1, 0.8), (2, 0.4)])
    assert scores(fuse.fuse([leg], [1, 2], np.array([[0.8, 0.4]]), Ranking())) == {1: 0.8, 2: 0.4}


def test_what_one_source_found_the_other_is_asked_about() -> None:
    found = legs({1: 0.6}, {2: 1.0})
    board = fuse.fuse(found, fuse.candidates(found), np.array([[1.0, 0.5], [0.3, 0.6]]), Ranking())
    assert board.keys == (2, 1)
    assert board.ranks == ({2: 1}, {1: 1})
    assert scores(board) == pytest.approx({2: 0.7 * 0.3 + 0.3, 1: 0.7 * 0.6 + 0.3 * 0.5})


def test_a_query_that_nothing_matches_well_scores_low() -> None:
    assert max(score for _, score in shown(fused({1: (0.15, 0.05), 2: (0.1, 0.0)}))) < 0.1
    assert Gauge().show(np.array(0.7)) > 0.85


def test_two_probes_share_the_weight_as_they_ask() -> None:
    heavy, light = Probe("a", "heavy", 3.0), Probe("b", "light", 1.0)
    found = [fuse.Leg(heavy, "keyword", [(1, 1.0)]), fuse.Leg(light, "keyword", [(2, 1.0)])]
    assert scores(fuse.fuse(found, [1, 2], np.eye(2), Ranking())) == {1: 0.75, 2: 0.25}
