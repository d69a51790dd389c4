"""The scoring module: bounded, monotone, order-independent, and its shares add up."""

from hypothesis import given
from hypothesis import strategies as st

from ragdocs.lanes import Ranking
from ragdocs.pipeline import fuse
from ragdocs.types import Probe

PROBE = Probe("query")
cosines = st.dictionaries(st.integers(0, 30), st.floats(-1, 1), max_size=20)
keywords = st.dictionaries(st.integers(0, 30), st.floats(0, 5), max_size=20)


def legs(vector: dict[int, float], keyword: dict[int, float]) -> list[fuse.Leg]:
    def best_first(scores: dict[int, float]) -> list[tuple[int, float]]:
        return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))

    return [fuse.Leg(PROBE, "keyword", best_first(keyword)), fuse.Leg(PROBE, "vector", best_first(vector))]


def score(vector: dict[int, float], keyword: dict[int, float]) -> dict[int, float]:
    found = legs(vector, keyword)
    return scores(fuse.calibrate(fuse.fuse(found, Ranking()), fuse.evidence(found)))


def scores(board: fuse.Board) -> dict[int, float]:
    return dict(zip(board.keys, board.scores.tolist(), strict=True))


@given(cosines, keywords)
def test_scores_stay_between_zero_and_one(vector: dict[int, float], keyword: dict[int, float]) -> None:
    assert all(0.0 <= value <= 1.0 + 1e-9 for value in score(vector, keyword).values())


@given(cosines, keywords, st.integers(0, 30), st.floats(0.01, 0.5))
def test_a_higher_cosine_never_lowers_a_chunk_among_the_others(
    vector: dict[int, float], keyword: dict[int, float], key: int, more: float
) -> None:
    def place(scores: dict[int, float]) -> int:
        return sum(value > scores.get(key, 0.0) + 1e-9 for other, value in scores.items() if other != key)

    def raw(cosines: dict[int, float]) -> dict[int, float]:
        return scores(fuse.fuse(legs(cosines, keyword), Ranking()))

    lifted = {**vector, key: min(1.0, vector.get(key, 0.0) + more)}
    assert place(raw(lifted)) <= place(raw(vector))


@given(cosines, keywords)
def test_the_order_of_the_sources_does_not_matter(vector: dict[int, float], keyword: dict[int, float]) -> None:
    forward, backward = legs(vector, keyword), legs(vector, keyword)[::-1]
    one, other = scores(fuse.fuse(forward, Ranking())), scores(fuse.fuse(backward, Ranking()))
    assert {key: round(value, 9) for key, value in one.items()} == {
        key: round(value, 9) for key, value in other.items()
    }


@given(cosines, keywords, st.lists(st.tuples(st.integers(0, 40), st.floats(0, 1)), max_size=10))
def test_links_never_lift_a_score_above_one_nor_lower_any(
    vector: dict[int, float], keyword: dict[int, float], boosts: list[tuple[int, float]]
) -> None:
    board = fuse.fuse(legs(vector, keyword), Ranking())
    before, after = scores(board), scores(fuse.spread(board, boosts, Ranking()))
    assert all(after[key] >= before[key] for key in before)
    assert all(value <= 1.0 + 1e-9 for value in after.values())


@given(cosines, keywords, st.lists(st.tuples(st.integers(0, 40), st.floats(0, 1)), max_size=10))
def test_the_signals_of_a_chunk_add_up_to_its_score(
    vector: dict[int, float], keyword: dict[int, float], boosts: list[tuple[int, float]]
) -> None:
    found = legs(vector, keyword)
    board = fuse.calibrate(fuse.spread(fuse.fuse(found, Ranking()), boosts, Ranking()), fuse.evidence(found))
    for place, score in enumerate(board.scores.tolist()):
        assert abs(sum(signal.share for signal in board.signals(place)) - score) < 1e-9


@given(cosines, keywords)
def test_calibration_keeps_the_order_and_gives_the_best_what_the_evidence_is_worth(
    vector: dict[int, float], keyword: dict[int, float]
) -> None:
    found = legs(vector, keyword)
    raw, sure = fuse.fuse(found, Ranking()), fuse.evidence(found)
    calibrated = fuse.calibrate(raw, sure)
    if calibrated.keys and sure > 1e-6:
        assert abs(calibrated.scores.max() - sure) < 1e-6
        assert fuse.order(raw)[:1] == fuse.order(calibrated)[:1]


def test_a_source_that_cannot_be_asked_leaves_its_weight_to_the_other() -> None:
    alone = fuse.fuse([fuse.Leg(PROBE, "keyword", [(1, 0.8), (2, 0.4)])], Ranking())
    assert scores(alone) == {1: 1.0, 2: 0.5}


def test_a_query_that_nothing_matches_well_scores_low() -> None:
    assert max(score({1: 0.15, 2: 0.1}, {1: 0.05}).values()) < 0.1


def test_two_probes_share_the_weight_as_they_ask() -> None:
    heavy, light = Probe("a", "heavy", 3.0), Probe("b", "light", 1.0)
    found = [fuse.Leg(heavy, "keyword", [(1, 1.0)]), fuse.Leg(light, "keyword", [(2, 1.0)])]
    assert scores(fuse.fuse(found, Ranking())) == {1: 0.75, 2: 0.25}
