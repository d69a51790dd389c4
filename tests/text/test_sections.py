"""One name for each section, and from every name that is printed back to its section."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragdocs.errors import NotFoundError, ValidationError
from ragdocs.lanes import DOCS, MEMORY
from ragdocs.search.chunk import chunk
from ragdocs.search.parse import parse
from ragdocs.text import sections
from ragdocs.text.formats.reading import read
from ragdocs.text.headings import STEP
from ragdocs.types import Source

GUIDE = """\
# Guide

Intro.

## Linux

### Install

apt

## Windows

### Install

winget

# Appendix { #more .wide }

Rest.
"""


def outlined(text: str, path: str = "a.md") -> list[sections.Section]:
    page = read(text, path)
    return sections.outline(page.body, page.blocks, first_line=page.first_line)


def lines(text: str, wanted: str, path: str = "a.md", *, anchor: bool = False) -> tuple[int, int]:
    section = sections.find(outlined(text, path), wanted, anchor=anchor)
    return section.line, section.last_line


@pytest.mark.parametrize(
    ("wanted", "span"),
    [
        ("Guide › Windows › Install", (13, 16)),
        ("Guide › Linux › Install", (7, 10)),
        ("Windows › Install", (13, 16)),
        ("guide > WINDOWS > install", (13, 16)),
        ("### Install (line 13)", (13, 16)),
        ("Guide › Windows › Install (line 13)", (13, 16)),
        ("Windows", (11, 16)),
        ("## Windows", (11, 16)),
        ("Appendix", (17, 20)),
        ("more", (17, 20)),
        ("#more", (17, 20)),
        ("A page · Guide › Windows", (11, 16)),
    ],
)
def test_a_section_is_found_by_what_it_is_called(wanted: str, span: tuple[int, int]) -> None:
    assert lines(GUIDE, wanted) == span


@pytest.mark.parametrize(
    ("text", "wanted"),
    [(GUIDE, "Guide › Install › Install"), ("# T\n\n```\n# Install\n```\n", "Install")],
    ids=["wrong path", "text in code"],
)
def test_a_section_that_is_not_there_is_not_found(text: str, wanted: str) -> None:
    with pytest.raises(NotFoundError):
        lines(text, wanted)


def test_a_name_of_several_sections_is_refused_with_their_paths_and_lines() -> None:
    with pytest.raises(ValidationError) as caught:
        lines(GUIDE, "Install")
    assert "2 sections" in caught.value.message
    assert "Guide › Linux › Install (line 7)" in caught.value.message
    assert "Guide › Windows › Install (line 13)" in caught.value.message


def test_the_id_in_a_link_is_that_of_the_first_of_a_name_and_numbered_for_others() -> None:
    assert lines(GUIDE, "install", anchor=True) == (7, 10)
    assert lines(GUIDE, "install-1", anchor=True) == (13, 16)


def test_headings_that_differ_by_a_sign_are_two() -> None:
    text = "# T\n\n## #1 priority\n\na\n\n## 1 priority\n\nb"
    assert lines(text, "T › #1 priority") == (3, 6)
    assert lines(text, "#1 priority") == (3, 6)
    assert lines(text, "T › 1 priority") == (7, 9)
    with pytest.raises(NotFoundError):
        lines("# T\n\n## 1 priority\n\nb", "T › #1 priority")


def test_equal_headings_are_numbered_in_their_order_and_neither_is_taken_for_the_other() -> None:
    text = "# T\n## A\n\none\n\n## A\n\ntwo\n\n## A (1)\n\nthree"
    names = [section.path for section in outlined(text)]
    assert names == ["T", "T › A (2)", "T › A (3)", "T › A (1)"]
    with pytest.raises(ValidationError, match=r"line 2.*line 6"):
        lines(text, "A")
    assert lines(text, "T › A (3)") == (6, 9)
    assert lines(text, "T › A (1)") == (10, 12)
    # Their children have different paths too.
    twins = outlined("# A\n## B\nx\n# A\n## B\ny")
    assert [section.path for section in twins] == ["A (1)", "A (1) › B", "A (2)", "A (2) › B"]


def test_a_title_may_be_right_below_a_rule() -> None:
    assert lines("# T\n\n------\nBelow\n------\n\nbody", "T › Below")[0] == 4


@pytest.mark.parametrize(
    ("heading", "names"),
    [
        (
            "## Use `foo()` with *care* ##",
            ["Use foo() with care", "use `foo()` with care", "Use `foo()` with *care*"],
        ),
        ("## See [the guide](a.md)", ["See the guide", "See [the guide](a.md)"]),
        ("Setext\n------", ["Setext", "## Setext"]),
        ("## Install { #setup }", ["Install", "setup", "#setup"]),
        ("## Install {: #setup .x }", ["Install", "setup"]),
        ("## Install {#setup}", ["Install", "setup"]),
        ('## <a id="setup"></a>Install', ["Install", "setup"]),
        ("## C#", ["C#"]),
        ("## Cafe\u0301", ["Caf\u00e9"]),
    ],
)
def test_markup_in_a_heading_does_not_hide_it(heading: str, names: list[str]) -> None:
    text = f"# T\n\n{heading}\n\nbody"
    for name in names:
        assert lines(text, name)[0] == 3, name


PLAIN_TITLES = ["Install", "install", "A", "B", "Café", "Cafe\u0301", "〜", ""]
NUMBERED_TITLES = ["A (1)", "A (2)", "#1 priority", "1 priority", "x (line 3)"]
STEPPED_TITLES = ["A › B", "A > B", "T · A", "# A"]
MARKED_TITLES = ["C#", "`code`", "*it*", "[x](y.md)", "{ #x }", "B { #b }"]
TITLES = [*PLAIN_TITLES, *NUMBERED_TITLES, *STEPPED_TITLES, *MARKED_TITLES]


@st.composite
def headings(draw: st.DrawFn) -> str:
    """Draw a heading in one of its two forms, with some words below it."""
    level = draw(st.integers(1, 4))
    title = draw(st.sampled_from(TITLES))
    body = "word " * (60 * draw(st.integers(0, 3)))
    is_underlined = draw(st.booleans()) and title and title[0] not in "#{"
    if is_underlined:
        return f"{title}\n{'=-'[level % 2] * 3}\n\n{body}"
    return f"{'#' * level} {title}\n\n{body}"


TEXTS = st.tuples(
    st.sampled_from(["", "above\n\n", "---\ntags: [a]\n---\n\n"]), st.lists(headings(), max_size=9)
).map(lambda drawn: drawn[0] + "\n\n".join(drawn[1]))


@settings(max_examples=400)
@given(TEXTS)
def test_the_path_of_every_section_means_that_section(text: str) -> None:
    outline = outlined(text)
    named = [section for section in outline if section.block.title]
    assert len({section.path for section in named}) == len(named)
    for section in named:
        assert sections.find(outline, section.path) == section
        listed = f"{section.path} (line {section.line})"
        # A heading may be called like that itself.
        if listed not in {other.path for other in named}:
            assert sections.find(outline, listed) == section


@settings(max_examples=400)
@given(TEXTS, st.sampled_from([DOCS, MEMORY]))
def test_the_path_of_every_passage_means_the_section_it_stands_in(text: str, lane: object) -> None:
    assert isinstance(lane, type(DOCS))
    text = text.rstrip("\n")
    parsed = parse(Source("a.md", text, "v", "s", len(text)), lane)
    outline = outlined(text)
    for passage in chunk(parsed, lane.chunking):
        if not passage.headings:
            continue
        section = sections.find(outline, STEP.join(passage.headings))
        assert section.names == passage.headings
        # Text above the first heading, and headings without text of their own, belong to the
        # section that follows.
        assert section.line <= passage.end_line <= section.last_line


def test_many_equal_headings_cost_no_more_than_as_many_others() -> None:
    text = "# a\n\nx\n\n" * 9_000
    started = time.process_time()
    outline = outlined(text)
    assert len({section.path for section in outline}) == 9_000
    assert time.process_time() - started < 10
