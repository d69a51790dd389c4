"""The scoring module: bounded, monotone, order-independent, stable under ties.

And its shares add up.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdocs.lanes import Ranking
from ragdocs.protocols import Candidates, Floats, PassageKey
from ragdocs.search import calibration as gauge
from ragdocs.search import rank, score
from ragdocs.search.calibration import Gauge
from ragdocs.search.floor import FLOOR
from ragdocs.search.query import Plan, Scored, score_candidates
from ragdocs.search.score import Layout, Scores
from ragdocs.types import Document, Probe, Query

PROBE = Probe("query")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
said = st.dictionaries(
    st.integers(0, 30), st.tuples(st.floats(-1, 1), st.floats(0, 2)), max_size=20
)
boosts = st.lists(st.tuples(st.integers(0, 40), st.floats(0, 1)), max_size=10)
Said = dict[int, tuple[float, float]]
SUPPORTED = Ranking(support_weight=0.2, crowd_discount=0.1)
SIGNALS = (("query", "keyword"), ("query", "vector"))


def show(_: str, totals: Floats) -> Floats:
    return Gauge().show(totals)


def fused(both: Said, *, reverse: bool = False) -> Scores:
    """Weigh what two sources say of passages, which are columns in the order of their keys."""
    keys = sorted(both)
    raw = {
        ("query", "keyword"): np.array([both[key][1] for key in keys]),
        ("query", "vector"): np.array([both[key][0] for key in keys]),
    }
    if reverse:
        raw = dict(reversed(raw.items()))
    return score.weighed(raw, len(keys), [PROBE], {}, Ranking())


def parted(both: Said, cuts: set[int]) -> list[list[int]]:
    """Part chunks into documents: one begins at each cut."""
    documents: list[list[int]] = []
    for key in sorted(both):
        if not documents or key in cuts:
            documents.append([])
        documents[-1].append(key)
    return documents


def document(key: int) -> Document:
    return Document(id=f"d:{key}", lane="d", path=f"{key:03}.md", title="", version="")


def settle(
    both: Said,
    documents: list[list[int]],
    ranking: Ranking,
    lone: float = 0.5,
    *,
    only: set[int] | None = None,
) -> Scored:
    """Score passages as a search does; both sources find all of them, or these only."""
    keys = sorted(both)
    columns = [column for column, key in enumerate(keys) if only is None or key in only]
    candidates = Candidates(
        keys=[PassageKey(key) for key in keys],
        starts=np.array([keys.index(passages[0]) for passages in documents], dtype=np.int64),
        documents=[document(passages[0]) for passages in documents],
        raw={
            ("query", "keyword"): np.array([both[key][1] for key in keys]),
            ("query", "vector"): np.array([both[key][0] for key in keys]),
        },
        found=dict.fromkeys(SIGNALS, columns),
        term_counts={"query": score.USUAL_WORDS},
        lone_share=lone,
    )
    return score_candidates(Plan(Query(probes=(PROBE,)), (), ranking, NOW), candidates)


def scores(both: Said, measured: Scores) -> dict[int, float]:
    return dict(zip(sorted(both), measured.totals.tolist(), strict=True))


def totals(
    both: Said,
    documents: list[list[int]],
    ranking: Ranking,
    lone: float = 0.5,
    *,
    only: set[int] | None = None,
) -> dict[int, float]:
    """Return the score of each passage that some source found."""
    settled = settle(both, documents, ranking, lone, only=only)
    keys = cast("list[int]", settled.keys)
    return dict(zip(keys, settled.scores.totals.tolist(), strict=True))


def lift(measured: Scores, links: list[tuple[int, float]]) -> Scores:
    """Lift passages by the strongest link to each; links to none of them are left out."""
    strengths = np.zeros(measured.raw.shape[1])
    for column, strength in links:
        if column < len(strengths):
            strengths[column] = max(strengths[column], strength)
    return score.lifted(measured, "graph", strengths, 0.25)


def shown(
    both: Said, measured: Scores | None = None, query: Query | None = None
) -> list[tuple[int, float]]:
    """Rank without boosts, one document for each passage, and return keys with their scores."""
    keys = sorted(both)
    calibrated = score.calibrated(measured or fused(both), show)
    asked = query or Query(probes=(PROBE,), limit=50)
    chosen, _ = rank.rank(calibrated.totals, [document(key) for key in keys], asked, Ranking(), NOW)
    return [(keys[one.column], one.score) for one in chosen]


@given(said, boosts)
def test_scores_that_are_shown_stay_between_zero_and_one(
    both: Said, links: list[tuple[int, float]]
) -> None:
    assert all(0.0 < value <= 1.0 for _, value in shown(both, lift(fused(both), links)))


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
    after = {**before, key: (lifted[0], lifted[1])}
    assert place(scores(after, fused(after))) <= place(scores(before, fused(before)))


@given(said)
def test_the_order_of_the_sources_does_not_matter(both: Said) -> None:
    forward, backward = fused(both).totals, fused(both, reverse=True).totals
    assert forward == pytest.approx(backward)


@given(said, st.sets(st.integers(0, 30)))
def test_what_else_is_found_never_changes_the_order_of_two_chunks(
    both: Said, gone: set[int]
) -> None:
    kept = {key: pair for key, pair in both.items() if key not in gone}
    everything, some = shown(both), shown(kept)
    assert [pair for pair in everything if pair[0] in kept] == some


@given(said, st.floats(0, 1))
def test_a_least_score_only_cuts(both: Said, least: float) -> None:
    query = Query(probes=(PROBE,), limit=50, min_score=least)
    assert shown(both, query=query) == [pair for pair in shown(both) if pair[1] >= least]


@given(said, boosts)
def test_links_never_lift_a_score_above_one_nor_lower_any(
    both: Said, links: list[tuple[int, float]]
) -> None:
    before = fused(both).totals
    after = lift(fused(both), links).totals
    assert np.all(after >= before)
    assert np.all(after <= np.maximum(1.0, before) + 1e-9)


@given(said, st.sets(st.integers(0, 30)))
def test_context_lies_between_a_chunk_and_the_better_one_beside_it(
    both: Said, cuts: set[int]
) -> None:
    documents = parted(both, cuts)
    own, with_context = scores(both, fused(both)), totals(both, documents, Ranking())
    for keys in documents:
        for place, key in enumerate(keys):
            near = max(
                (own[other] for other in keys[max(0, place - 1) : place + 2] if other != key),
                default=own[key],
            )
            if key in with_context:
                least, most = min(own[key], near), max(own[key], near)
                assert least - 1e-9 <= with_context[key] <= most + 1e-9


@given(said, st.sets(st.integers(0, 30)))
def test_one_of_several_passages_is_worth_a_little_less_where_a_lane_says_so(
    both: Said, cuts: set[int]
) -> None:
    documents = parted(both, cuts)
    discounted = totals(both, documents, Ranking(context_weight=0.0, crowd_discount=0.1))
    own = scores(both, fused(both))
    for keys in documents:
        for key in discounted.keys() & set(keys):
            assert discounted[key] == pytest.approx(own[key] * (0.9 if len(keys) > 1 else 1.0))


@given(said, st.sets(st.integers(0, 30)), st.floats(0, 1))
def test_every_passage_of_a_document_is_supported_by_its_second_best(
    both: Said, cuts: set[int], lone: float
) -> None:
    documents = parted(both, cuts)
    own = scores(both, fused(both))
    supported = totals(both, documents, Ranking(context_weight=0.0, support_weight=0.25), lone)
    alone = min(score.LONE_MOST, score.LONE_RATE * lone)
    for keys in documents:
        seconds = []
        for which in (0, 1):
            ordered = sorted((max(0.0, both[key][which]) for key in keys), reverse=True)
            seconds.append(ordered[1] if len(ordered) > 1 else alone * ordered[0])
        support = sum(seconds) / 2
        for key in supported.keys() & set(keys):
            assert supported[key] == pytest.approx((own[key] + 0.25 * support) / 1.25)


@given(said, st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)))
def test_what_of_a_document_was_found_does_not_change_what_supports_it(
    both: Said, cuts: set[int], found: set[int]
) -> None:
    documents = parted(both, cuts)
    every = totals(both, documents, SUPPORTED)
    some = totals(both, documents, SUPPORTED, only=found)
    assert some == {key: every[key] for key in some}


def test_the_words_of_a_long_query_weigh_more() -> None:
    def weight_of_words(count: int) -> float:
        weights = score.signal_weights(SIGNALS, [PROBE], {"query": count}, Ranking())
        assert weights.sum() == pytest.approx(1.0)
        return float(weights[0])

    assert weight_of_words(score.USUAL_WORDS) == pytest.approx(0.3)
    assert weight_of_words(0) == weight_of_words(1) < weight_of_words(3) < 0.3
    assert 0.3 < weight_of_words(12) < weight_of_words(60) < 0.5


@given(said, boosts)
def test_the_signals_of_a_passage_add_up_to_its_score(
    both: Said, links: list[tuple[int, float]]
) -> None:
    settled = settle(both, parted(both, {5, 9, 20}), SUPPORTED)
    measured = replace(settled, scores=lift(settled.scores, links))
    calibrated = replace(measured, scores=score.calibrated(measured.scores, show))
    for column, total in enumerate(measured.scores.totals.tolist()):
        assert abs(sum(signal.share for signal in measured.signals(column)) - total) < 1e-9
        expected = float(Gauge().show(np.array(total))) if total > score.LEAST else 0.0
        assert abs(sum(signal.share for signal in calibrated.signals(column)) - expected) < 1e-9


@given(st.lists(st.floats(0, 2), min_size=2, max_size=30))
def test_a_gauge_keeps_the_order_and_puts_its_floor_in_the_middle(values: list[float]) -> None:
    measured = gauge.measured(values)
    assert float(measured.show(np.array(measured.floor))) == pytest.approx(0.5)
    told = measured.show(np.array([measured.floor + step / 10 for step in range(-5, 16)])).tolist()
    assert told == sorted(told)
    assert len(set(told)) == len(told)


def test_the_floor_stays_between_what_ordinary_words_and_what_true_answers_reach() -> None:
    assert gauge.measured([0.1] * 40).floor == gauge.LEAST_FLOOR
    assert gauge.measured([0.3] * 40).floor == gauge.USUAL_FLOOR
    # Of another script ordinary words reach less than that.
    other = gauge.measured([0.1] * 40, gauge.USUAL_OTHER_FLOOR)
    assert other.floor == gauge.USUAL_OTHER_FLOOR
    # A lane that answers most of the unrelated questions still shows its answers.
    assert gauge.measured([0.2] * 10 + [0.9] * 30).floor == gauge.MOST_FLOOR


def test_a_low_floor_makes_no_answer_look_surer() -> None:
    low, usual = gauge.measured([0.1] * 40), gauge.measured([0.3] * 40)
    for lead in (0.1, 0.3):
        weakest = []
        for measured in (low, usual):
            steps = np.linspace(0.3, 0.9, 601)
            is_sure = measured.show(steps) >= measured.weak_below(lead)
            weakest.append(steps[is_sure][0])
        assert weakest[0] == pytest.approx(weakest[1], abs=0.002)


def test_how_far_chance_scatters_does_not_make_a_hit_any_surer() -> None:
    narrow, wide = Gauge(0.1, 0.02), Gauge(0.1, 0.05)
    assert narrow.floor == wide.floor == gauge.LEAST_FLOOR
    better, worse = np.array(narrow.floor + 0.2), np.array(narrow.floor - 0.05)
    assert narrow.show(better) == wide.show(better)
    assert narrow.show(worse) < wide.show(worse)


def test_the_floor_is_passed_by_one_unrelated_question_in_twenty() -> None:
    best = np.random.default_rng(1).normal(0.3, 0.05, 2000).tolist()
    measured = gauge.measured(best)
    assert np.mean(measured.show(np.array(best)) > FLOOR) == pytest.approx(0.05, abs=0.015)
    # A few questions that happen to be about the project do not lift it.
    assert gauge.measured([*best, *[0.9] * 100]).floor == pytest.approx(measured.floor, abs=0.01)


def test_a_source_that_cannot_be_searched_leaves_its_weight_to_the_other() -> None:
    raw = {("query", "keyword"): np.array([0.8, 0.4])}
    assert score.weighed(raw, 2, [PROBE], {}, Ranking()).totals.tolist() == [0.8, 0.4]


def test_what_one_source_found_the_other_measures_too() -> None:
    candidates = Candidates(
        keys=[PassageKey("b"), PassageKey("a")],
        starts=np.array([0, 1]),
        documents=[document(2), document(1)],
        raw={SIGNALS[0]: np.array([1.0, 0.5]), SIGNALS[1]: np.array([0.3, 0.6])},
        found={SIGNALS[0]: [0], SIGNALS[1]: [1]},
        term_counts={"query": score.USUAL_WORDS},
        lone_share=1.0,
    )
    settled = score_candidates(Plan(Query(probes=(PROBE,)), (), Ranking(), NOW), candidates)
    assert settled.keys == [PassageKey("b"), PassageKey("a")]
    assert settled.ranks[SIGNALS[0]].tolist() == [1, 0]
    assert settled.ranks[SIGNALS[1]].tolist() == [0, 1]
    expected = [0.7 * 0.3 + 0.3, 0.7 * 0.6 + 0.3 * 0.5]
    assert settled.scores.totals.tolist() == pytest.approx(expected)


def test_a_query_that_nothing_matches_well_scores_low() -> None:
    assert max(value for _, value in shown({1: (0.15, 0.05), 2: (0.1, 0.0)})) < 0.1
    assert Gauge().show(np.array(0.7)) > 0.85


def test_two_probes_share_the_weight_as_they_say() -> None:
    heavy, light = Probe("a", "heavy", 3.0), Probe("b", "light", 1.0)
    raw = {("heavy", "keyword"): np.array([1.0, 0.0]), ("light", "keyword"): np.array([0.0, 1.0])}
    assert score.weighed(raw, 2, [heavy, light], {}, Ranking()).totals.tolist() == [0.75, 0.25]


def test_a_second_best_passage_that_is_as_good_as_the_best_counts_as_much() -> None:
    layout = Layout(np.array([0, 3]), 4)
    assert layout.second_best(np.array([[0.5, 0.5, 0.1, 0.9]])).tolist() == [[0.5, 0.0]]
    assert layout.better_neighbour(np.array([0.1, 0.2, 0.3, 0.9])).tolist() == [0.2, 0.3, 0.2, -1]
