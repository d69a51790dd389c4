"""Texts and tags that may be written, and those that are refused."""

from __future__ import annotations

import pytest

from ragdocs.errors import ValidationError
from ragdocs.text.checks import LONGEST_TAG, LONGEST_TEXT, check_content, check_tags


def test_tags_are_stripped_and_case_makes_no_other_tag() -> None:
    assert check_tags([" #Auth ", "plans", "", "#", "AUTH"]) == ["plans", "Auth"]


@pytest.mark.parametrize("tag", ["two\nlines", "x" * (LONGEST_TAG + 1), 7])
def test_a_tag_that_is_no_short_line_is_refused(tag: str) -> None:
    with pytest.raises(ValidationError, match="one short line"):
        check_tags(["fine", tag])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (" \n", "summary is empty"),
        ("x" * (LONGEST_TEXT + 1), "longer than"),
        ("a\x00b", "no text file"),
        ("a\ud800b", "no text file"),
    ],
    ids=["empty", "long", "nul", "surrogate"],
)
def test_a_text_that_no_memory_can_have_is_refused(content: str, reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        check_content(content, "summary")


def test_a_text_of_the_longest_length_is_accepted() -> None:
    check_content("x" * LONGEST_TEXT)
