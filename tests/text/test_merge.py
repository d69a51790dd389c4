from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdocs.text import merge as merging
from ragdocs.text.merge import BETWEEN, THEIRS, YOURS, merge

# Few different lines, some often and some once, so that they repeat, move and collide.
LINES = st.lists(
    st.sampled_from(["a", "b", "c", "", "- x", "# h", *(f"line {n}" for n in range(6))]),
    max_size=14,
)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))
BASE = "# Plan\n\none\ntwo\nthree\nfour\nfive\n"


def lines_of(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def regions(text: str) -> tuple[list[str], list[list[str]]]:
    """Part a merged text into the lines outside of overlaps.

    And the lines of both sides inside of each.
    """
    outside: list[str] = []
    inside: list[list[str]] = []
    current: list[str] | None = None
    for line in lines_of(text):
        if line == f"{THEIRS}\n":
            current = []
        elif line == f"{YOURS}\n" and current is not None:
            inside.append(current)
            current = None
        elif line != f"{BETWEEN}\n" or current is None:
            (outside if current is None else current).append(line)
    return outside, inside


@given(TEXTS, TEXTS)
def test_a_side_that_changed_nothing_gives_way(base: str, other: str) -> None:
    for merged in (merge(base, base, other), merge(base, other, base), merge(base, other, other)):
        assert (merged.text, merged.overlaps) == (other, 0)


@given(TEXTS, TEXTS, TEXTS)
def test_the_sides_are_equal(base: str, one: str, other: str) -> None:
    forth, back = merge(base, one, other), merge(base, other, one)
    assert forth.overlaps == back.overlaps
    assert regions(forth.text)[0] == regions(back.text)[0]
    if not forth.overlaps:
        assert forth.text == back.text
    assert merge(base, one, other) == forth


@given(TEXTS, TEXTS, TEXTS)
def test_no_line_is_invented_or_lost(base: str, one: str, other: str) -> None:
    merged = merge(base, one, other)
    outside, inside = regions(merged.text)
    assert len(inside) == merged.overlaps
    # A mark needs a line of its own, so a last line may have got an end.
    kept = Counter(
        line.rstrip("\n") for line in [*outside, *(line for region in inside for line in region)]
    )
    old, left, right = (
        Counter(line.rstrip("\n") for line in lines_of(text)) for text in (base, one, other)
    )
    for line in {*kept, *old, *left, *right}:
        assert kept[line] <= left[line] + right[line], "invented"
        if old[line] == 0:
            assert kept[line] >= max(left[line], right[line]), "an added line was lost"


def test_edits_in_different_places_go_together() -> None:
    theirs = BASE.replace("one", "ONE").replace("# Plan", "# The plan")
    yours = BASE.replace("five\n", "five\nsix\n").replace("four\n", "")
    merged = merge(BASE, theirs, yours)
    assert merged.overlaps == 0
    assert merged.text == "# The plan\n\nONE\ntwo\nthree\nfive\nsix\n"


def test_overlapping_edits_stand_between_marks() -> None:
    merged = merge(
        BASE, BASE.replace("three", "3"), BASE.replace("three", "III").replace("one", "1")
    )
    assert merged.overlaps == 1
    assert merged.text == (
        "# Plan\n\n1\ntwo\n<<<<<<< theirs\n3\n=======\nIII\n>>>>>>> yours\nfour\nfive\n"
    )


def test_a_last_line_without_an_end_keeps_that() -> None:
    assert merge("a\nb\nc", "A\nb\nc", "a\nb\nc").text == "A\nb\nc"
    assert merge("a\nb\nc", "A\nb\nc", "a\nb\nC").text == "A\nb\nC"
    assert merge("a", "b", "c").text == "<<<<<<< theirs\nb\n=======\nc\n>>>>>>> yours\n"


def test_a_moved_paragraph_meets_an_edit_elsewhere() -> None:
    paragraphs = [f"paragraph {n}\n\n" for n in range(6)]
    moved = [*paragraphs[1:3], paragraphs[0], *paragraphs[3:]]
    edited = "".join(paragraphs).replace("paragraph 5", "PARAGRAPH 5")
    merged = merge("".join(paragraphs), "".join(moved), edited)
    assert merged.overlaps == 0
    assert merged.text == "".join(moved).replace("paragraph 5", "PARAGRAPH 5")


@pytest.mark.parametrize("unit", ["\n", "a\nb\n", "".join(f"{n % 97}\n" for n in range(1000))])
def test_many_equal_lines_are_not_compared_pair_by_pair(unit: str) -> None:
    base = unit * (100_000 // len(unit))
    middle = len(base) // 2 // len(unit) * len(unit)
    theirs = f"first\n{base[:middle]}middle\n{base[middle:]}"
    assert merge(base, theirs, base).text == theirs
    merged = merge(base, theirs, f"{base}last\n")
    assert merged.text.startswith("first\n") or merged.overlaps
    assert "middle\n" in merged.text
    assert "last\n" in merged.text


def test_a_long_text_turned_upside_down_is_still_merged() -> None:
    lines = [f"line {n}\n" for n in range(20_000)]
    turned = "".join(reversed(lines))
    assert merge("".join(lines), turned, "".join(lines)).text == turned


@given(TEXTS, TEXTS, TEXTS)
def test_regions_put_together_are_the_three_texts(base: str, theirs: str, yours: str) -> None:
    parts = list(merging.regions(base, theirs, yours))
    assert "".join(part.base for part in parts) == base
    assert "".join(part.theirs for part in parts) == theirs
    assert "".join(part.yours for part in parts) == yours
    line = 1
    for part in parts:
        assert part.line == line
        line += len(lines_of(part.base))
    overlaps = [part for part in parts if part.origin == "overlap"]
    assert len(overlaps) == merge(base, theirs, yours).overlaps


@given(TEXTS, TEXTS)
def test_pieces_put_together_are_the_new_text(old: str, new: str) -> None:
    pieces = merging.added_words(old, new)
    assert "".join(words for words, _ in pieces) == new
    assert not any(is_new for _, is_new in merging.added_words(new, new))


@pytest.mark.parametrize(
    ("base", "theirs", "yours", "proposal"),
    [
        (
            "on 24 May, slowly.\n",
            "on 1 June, slowly.\n",
            "on 24 May, fast.\n",
            "on 1 June, fast.\n",
        ),
        ("tags: [a]\n", "tags: [a, b]\n", "tags: [a, c]\n", "tags: [a, b, c]\n"),
        ("in May\n", "in June\n", "in July\n", "in June\nin July\n"),
        ("", "theirs", "yours\n", "theirsyours\n"),
    ],
)
def test_a_region_that_both_changed_gets_a_proposal_of_whole_words(
    base: str, theirs: str, yours: str, proposal: str
) -> None:
    region = merging.Region(1, base, theirs, yours)
    assert merging.merged_words(region) == proposal
