"""What a ranking is worth, and whether a difference is one."""

from __future__ import annotations

import math

import pytest

from ragdocs.verbs.quality.measures import compare, measure, ndcg


def test_the_best_order_is_worth_one_and_nothing_found_is_worth_nothing() -> None:
    best = measure(["a", "b", "c"], {"a": 2, "b": 1})
    assert (best.recall_5, best.recall_10, best.mrr_10, best.ndcg_10) == (1.0, 1.0, 1.0, 1.0)
    nothing = measure(["x", "y"], {"a": 2})
    assert (nothing.recall_5, nothing.recall_10, nothing.mrr_10, nothing.ndcg_10) == (
        0.0,
        0.0,
        0.0,
        0.0,
    )
    assert measure([], {"a": 1}).ndcg_10 == 0.0


def test_an_answer_counts_by_its_place_and_only_among_the_first_ten() -> None:
    second = measure(["x", "a"], {"a": 1})
    assert second.mrr_10 == 0.5
    assert second.ndcg_10 == pytest.approx(1 / math.log2(3))
    seventh = measure([*"123456", "a"], {"a": 1, "b": 1})
    assert (seventh.recall_5, seventh.recall_10) == (0.0, 0.5)
    assert seventh.mrr_10 == pytest.approx(1 / 7)
    assert measure([*map(str, range(10)), "a"], {"a": 1}).mrr_10 == 0.0


def test_a_higher_grade_further_up_is_worth_more() -> None:
    assert ndcg(["good", "fair"], {"good": 3, "fair": 1}) > ndcg(
        ["fair", "good"], {"good": 3, "fair": 1}
    )


def test_the_same_small_gain_everywhere_is_sure_and_a_large_one_here_and_there_is_not() -> None:
    steady = compare([0.51] * 40, [0.5] * 40)
    assert steady.points == pytest.approx(1.0)
    assert steady.chance < 0.001
    lucky = compare([1.0, *[0.5] * 39], [0.5] * 40)
    assert lucky.points == pytest.approx(1.25)
    assert lucky.chance == 1.0
    assert str(lucky).startswith("+1.2 ± 1.")


def test_equal_ways_do_not_differ() -> None:
    same = compare([0.1, 0.9], [0.1, 0.9])
    assert (same.points, same.error, same.chance) == (0.0, 0.0, 1.0)
    assert compare([], []).chance == 1.0
