"""Forms of English words that no ending tells."""

from __future__ import annotations

import pytest

from ragdocs.search.bm25 import query_terms
from ragdocs.text.languages import stem
from ragdocs.text.terms import terms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("went", "go"),
        ("going", "gone"),
        ("bought", "buying"),
        ("written", "writes"),
        ("children", "child"),
        ("indices", "index"),
        ("colours", "color"),
        ("optimised", "optimization"),
        ("analysed", "analysis"),
        ("behaviour", "behaviors"),
    ],
)
def test_forms_of_one_word_have_one_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("range", "ring"),
        ("indicate", "index"),
        ("vertical", "vertex"),
        ("left", "leave"),
        ("lives", "life"),
        ("bit", "bite"),
        ("metric", "meter"),
    ],
)
def test_words_that_only_look_like_a_form_keep_their_own_stem(one: str, other: str) -> None:
    assert stem(one) != stem(other)


def test_a_passage_and_a_question_meet_in_any_form() -> None:
    assert list(terms("She Went")) == ["she", "go"]
    assert list(terms("preWritten")) == ["prewritten", "pre", "write"]


def test_a_question_is_not_about_whom_it_calls_her_or_them() -> None:
    assert query_terms("what did Ada tell her parents about their trip") == {
        "ada": 1,
        "tell": 1,
        "parent": 1,
        "trip": 1,
    }
    assert "my" in query_terms("where did I leave my keys")
