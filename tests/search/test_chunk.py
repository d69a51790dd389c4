from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragdocs.lanes import DOCS, Chunking
from ragdocs.search.chunk import chunk, passage
from ragdocs.search.parse import parse
from ragdocs.types import Chunk, Source

SENTENCE = "The quick brown fox jumps over the lazy dog near the river bank today. "
PROSE = SENTENCE * 6


def cut(text: str, path: str = "docs/a.md", chunking: Chunking | None = None) -> tuple[Chunk, ...]:
    return chunk(parse(Source(path, text, "v", "s", len(text)), DOCS), chunking or Chunking())


def outline(text: str, path: str = "docs/a.md") -> list[tuple[str, ...]]:
    return [piece.headings for piece in cut(text, path)]


def check_places(text: str, pieces: tuple[Chunk, ...], offset: int = 0) -> None:
    """Check that every chunk stands where it says, in order.

    And that no line with text is left out.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    covered: set[int] = set()
    for piece in pieces:
        assert piece.text in "\n".join(lines[piece.start_line - 1 : piece.end_line])
        assert piece.text.strip()
        covered.update(range(piece.start_line, piece.end_line + 1))
    assert [piece.start_line for piece in pieces] == sorted(piece.start_line for piece in pieces)
    assert {
        number for number, line in enumerate(lines, 1) if line.strip() and number > offset
    } <= covered


def test_indented_code_is_whole_and_has_no_headings() -> None:
    code = "\n\n".join(f"    # line {number}\n    x = {number}" for number in range(300))
    text = f"# Title\n\n{PROSE}\n\n{code}\n\n## After\n\n{PROSE}\n"
    pieces = cut(text)
    assert len([piece for piece in pieces if "# line" in piece.text]) == 1
    assert {piece.headings for piece in pieces} == {("Title",), ("Title", "After")}
    check_places(text, pieces)


def test_a_heading_starts_a_chunk_that_knows_its_path() -> None:
    pieces = cut(
        f"# Guide\n\n{PROSE}\n\n## Install ##\n\n{PROSE}\n\nUsage\n-----\n\n{PROSE}\n\n### Deep\n\n{PROSE}\n"
    )
    assert [piece.headings for piece in pieces] == [
        ("Guide",),
        ("Guide", "Install"),
        ("Guide", "Usage"),
        ("Guide", "Usage", "Deep"),
    ]
    assert [piece.text.split("\n")[0] for piece in pieces] == [
        "# Guide",
        "## Install ##",
        "Usage",
        "### Deep",
    ]
    assert [(piece.start_line, piece.end_line) for piece in pieces] == [
        (1, 3),
        (5, 7),
        (9, 12),
        (14, 16),
    ]
    assert [piece.id for piece in pieces] == [
        "docs:docs/a#0",
        "docs:docs/a#1",
        "docs:docs/a#2",
        "docs:docs/a#3",
    ]


def test_lines_are_those_of_the_file_below_its_frontmatter() -> None:
    text = f"---\ntype: plan\ntags: [a]\n---\n\n# One\n\n{PROSE}\n\n# Two\n\n{PROSE}\n"
    pieces = cut(text)
    assert [(piece.start_line, piece.end_line) for piece in pieces] == [(6, 8), (10, 12)]
    check_places(text, pieces, offset=4)


def test_a_heading_without_text_opens_its_first_child() -> None:
    assert outline(f"# Guide\n\n## Part\n\n### Deep\n\n{PROSE}\n\n## Other\n\n{PROSE}") == [
        ("Guide", "Part", "Deep"),
        ("Guide", "Other"),
    ]


def test_tiny_siblings_are_joined_under_the_headings_they_share() -> None:
    (piece,) = cut("# Limits\n\n## Free\n\n100 a minute.\n\n## Pro\n\n1000 a minute.\n")
    assert piece.headings == ("Limits",)
    assert (piece.start_line, piece.end_line) == (1, 9)


def test_a_tiny_section_joins_neither_an_uncle_nor_a_section_that_does_not_fit() -> None:
    assert outline(f"# A\n\n{PROSE}\n\n## Tiny\n\nx\n\n# B\n\ny\n\n# C\n\n{PROSE * 3}\n")[:4] == [
        ("A",),
        ("A", "Tiny"),
        ("B",),
        ("C",),
    ]


@pytest.mark.parametrize(
    "fence",
    [
        "```python\n{code}\n```",
        "~~~\n{code}\n~~~",
        "`````md\n```\n{code}\n```\n`````",
        "   ```\n{code}\n   ```",
        "- item\n\n  ```\n{code}\n  ```",
        "1. item\n   ```sh\n{code}\n   ```\n2. next",
        "- ```\n{code}\n  ```",
        "> ```\n{code}\n> ```",
        "```\n{code}",
    ],
)
def test_a_fence_is_never_split_however_long_and_wherever_it_stands(fence: str) -> None:
    prefix = (
        "> "
        if fence.startswith(">")
        else "      "
        if "item" in fence or fence.startswith("- ")
        else ""
    )
    code = "\n".join(f"{prefix}# line {number}\n{prefix[:1]}" for number in range(300)).rstrip()
    text = (
        f"# Title\n\n{PROSE}\n\n"
        + fence.format(code=code)
        + ("" if fence.endswith("{code}") else f"\n\n## After\n\n{PROSE}\n")
    )
    pieces = cut(text)
    assert len([piece for piece in pieces if "# line" in piece.text]) == 1
    assert all(piece.headings in {("Title",), ("Title", "After")} for piece in pieces)
    assert ("Title", "After") in {piece.headings for piece in pieces} or fence.endswith("{code}")
    check_places(text, pieces)


@pytest.mark.parametrize(
    "line",
    [
        "    # indented code",
        "#hashtag",
        "####### seven",
        "\\# escaped",
        "- # in an item",
        "> # quoted",
    ],
)
def test_what_only_looks_like_a_heading_starts_no_chunk(line: str) -> None:
    assert outline(f"# T\n\n{PROSE}\n\n{line}\n\nmore") == [("T",)]


def test_paragraphs_are_kept_whole_and_long_ones_cut_after_sentences() -> None:
    pieces = cut(f"{SENTENCE * 16}\n\n{SENTENCE * 40}")
    assert pieces[0].text == (SENTENCE * 16).strip()
    assert all(piece.text.startswith("The") and piece.text.endswith("today.") for piece in pieces)
    assert all(len(piece.text) <= 1400 for piece in pieces)


def test_lists_are_cut_at_items_and_tables_at_rows() -> None:
    items = "\n".join(f"- item {number} {SENTENCE}\n  {SENTENCE}" for number in range(30))
    assert all(piece.text.startswith("- item") for piece in cut(items))
    rows = "| a | b |\n|---|---|\n" + "\n".join(
        f"| {number} | {SENTENCE} |" for number in range(50)
    )
    pieces = cut(rows)
    assert len(pieces) > 3
    assert all(piece.text.startswith("| ") and piece.text.endswith(" |") for piece in pieces)


def test_words_are_cut_only_when_longer_than_the_limit() -> None:
    words = "word " * 1000
    assert all(
        piece.text.startswith("word") and piece.text.endswith("word") for piece in cut(words)
    )
    pieces = cut("x" * 5000)
    assert [len(piece.text) for piece in pieces] == [1400, 1400, 1400, 800]
    assert {(piece.start_line, piece.end_line) for piece in pieces} == {(1, 1)}


@pytest.mark.parametrize("text", ["", "\n\n  \n", "---\ntype: plan\n---\n"])
def test_a_document_without_text_can_be_found_by_its_title(text: str) -> None:
    (piece,) = cut(text, "docs/api-limits.md")
    assert (piece.text, piece.headings, piece.start_line, piece.end_line) == (
        "Api limits",
        (),
        1,
        1,
    )


def test_restructured_text_is_cut_at_underlined_headings_and_plain_text_at_paragraphs() -> None:
    text = f"=====\nGuide\n=====\n\n{PROSE}\n\nPart\n----\n\n{PROSE}\n\n# no heading\n\nOther\n-----\n\n{PROSE}"
    assert outline(text, "a.rst") == [("Guide",), ("Guide", "Part"), ("Guide", "Other")]
    plain = cut(f"# no heading\n\n{SENTENCE * 10}\n\nTitle\n=====\n\n{SENTENCE * 10}", "a.txt")
    assert [piece.headings for piece in plain] == [(), ()]


def test_the_passage_says_where_a_chunk_stands_without_repeating_the_title() -> None:
    assert passage("Guide", ("Guide", "Install"), "text") == "Guide › Install\ntext"
    assert passage("Guide", ("Install",), "text") == "Guide › Install\ntext"
    assert passage("Guide", (), "text") == "Guide\ntext"
    assert passage("Guide", (), "Guide") == "Guide"


def test_the_digest_follows_the_passage_and_not_the_place() -> None:
    one, two = cut(f"# T\n\n{PROSE}"), cut(f"\n\n# T\n\n{PROSE}")
    assert one[0].digest == two[0].digest
    assert len(one[0].digest) == 32
    assert cut(f"# U\n\n{PROSE}")[0].digest != one[0].digest


@pytest.mark.parametrize(
    "unit",
    [
        "Some words in a line.\n",
        "# h\n\ntext\n\n",
        "- item\n",
        "x",
        "| a | b |\n",
        "```\nx\n```\n",
        "> ",
        "`",
    ],
)
def test_cutting_takes_time_in_proportion_to_the_text(unit: str) -> None:
    text = unit * (500_000 // len(unit))
    started = time.process_time()
    assert cut(text)
    # It takes about one second; a square would take minutes.
    assert time.process_time() - started < 15


LINES = st.sampled_from(
    [
        "# One", "## Two", "### Three", "Title", "=====", "-----", "", "", "  ", "```", "~~~", "````", "  ```",
        "      ```", "- item", "  - nested item", "1. first", "   continued", "> quote", "> ```", "| a | b |",
        "|---|---|", "<!--", "-->", "words in a row that make a line", SENTENCE * 2, "x" * 90, "    indented", "\tx",
        "---", "\u2028", "a\u2028b\x0cc", "[[x]]",
    ]
)  # fmt: skip


@settings(max_examples=300)
@given(
    st.lists(LINES, max_size=40),
    st.sampled_from(["a.md"]),
    st.sampled_from([(40, 60), (100, 150), (900, 1400)]),
)
def test_every_line_is_in_a_chunk_in_order_and_within_the_limit(
    lines: list[str], path: str, sizes: tuple[int, int]
) -> None:
    text = "\n".join(["", *lines])
    pieces = cut(text, path, Chunking(*sizes))
    if text.strip():
        check_places(text, pieces)
    assert pieces == cut(text, path, Chunking(*sizes))
    assert [piece.id for piece in pieces] == [
        f"{pieces[0].doc_id}#{number}" for number in range(len(pieces))
    ]
    for piece in pieces:
        # Code is never cut, be it fenced or indented.
        has_code = any(mark in piece.text for mark in ("```", "~~~", "    ", "\t"))
        assert len(piece.text) <= sizes[1] or has_code


@given(
    st.lists(st.sampled_from(["# H", "para", SENTENCE * 30, "- item"]), max_size=5),
    st.sampled_from(["```", "~~~", "``````"]),
    st.lists(
        st.sampled_from(["# x", "", "code", "- y", "``", "~~", "<!--", "y" * 200]),
        min_size=1,
        max_size=30,
    ),
    st.integers(0, 3),
)
def test_a_closed_fence_is_whole_in_one_chunk(
    before: list[str], marks: str, code: list[str], indent: int
) -> None:
    fence = "\n".join([" " * indent + marks, *code, " " * indent + marks])
    text = "\n\n".join([*before, "Text.", fence, "# End", "words"])
    assert sum(fence in piece.text for piece in cut(text, chunking=Chunking(60, 100))) == 1
