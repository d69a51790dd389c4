from __future__ import annotations

import collections
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.text.cases import table

from ragdocs.text import links
from ragdocs.text.formats import markdown as markup
from ragdocs.types import Link

CASES = table("links")


def find(text: str, path: str = "docs/guides/here.md") -> list[Link]:
    return list(links.find(links.visible(text, markup.blocks(text)), text, path))


def lint(text: str, first_line: int = 1) -> list[str]:
    return list(links.lint(links.visible(text, markup.blocks(text)), first_line))


@pytest.mark.parametrize(("text", "target", "heading"), CASES["wikilinks"])
def test_a_wikilink_names_its_target_and_heading(text: str, target: str, heading: str) -> None:
    assert [(link.target, link.heading) for link in find(text)] == [(target, heading)]


@pytest.mark.parametrize(("text", "target", "heading"), CASES["markdown"])
def test_a_markdown_link_is_resolved_from_its_own_document(
    text: str, target: str, heading: str
) -> None:
    (link,) = find(text)
    assert (link.target, link.heading, link.kind) == (target, heading, "mentions")


@pytest.mark.parametrize("text", [text for texts in CASES["no_link"].values() for text in texts])
def test_what_is_no_link_leads_elsewhere_or_is_hidden_makes_no_link(text: str) -> None:
    assert find(text) == []


@pytest.mark.parametrize("text", [text for texts in CASES["link"].values() for text in texts])
def test_a_link_beside_code_and_in_a_continued_paragraph_is_found(text: str) -> None:
    assert [link.target for link in find(text)] == ["x"]


@pytest.mark.parametrize(("text", "kinds"), CASES["kinds"].items())
def test_a_kind_is_written_by_the_author_and_never_guessed(text: str, kinds: list[str]) -> None:
    assert [link.kind for link in find(text)] == kinds


def test_every_occurrence_is_a_link_of_its_own_in_order() -> None:
    text = "One [[b]], two [a](a.md), three [[b]].\n\n- [[b]]\n"
    assert [link.target for link in find(text, "here.md")] == ["b", "a.md", "b", "b"]


CODE_PARTS = ["para", "    four", "     five", "        eight", "", "- item", "  two"]
CODE_PARTS += ["      six", "1. one", "# H", "***"]


@given(st.lists(st.sampled_from(CODE_PARTS), min_size=2, max_size=8))
def test_indented_code_is_what_a_markdown_parser_says(parts: list[str]) -> None:
    parser = pytest.importorskip("markdown_it").MarkdownIt("commonmark")
    text = "\n".join(parts)
    expected: set[int] = set()
    for token in parser.parse(text):
        if token.type == "code_block":
            expected.update(range(*token.map))
    code: set[int] = set()
    for block in markup.blocks(text):
        spans = list(block.code)
        if block.kind == "code":
            spans.append((block.start, block.stop))
        for start, stop in spans:
            code.update(range(text.count("\n", 0, start), text.count("\n", 0, stop) + 1))
    blank = {number for number, part in enumerate(parts) if not part}
    assert code - blank == expected - blank


def test_a_context_is_about_a_line_of_the_paragraph_and_holds_the_link() -> None:
    words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    paragraph = f"{words} fifteen\n   refactor [[src/auth.py]] to use\nJWT tokens {words}"
    text = f"Another paragraph.\n\n{paragraph}\n\nAnd another."
    (link,) = find(text)
    assert link.context.startswith("…")
    assert link.context.endswith("…")
    assert "fifteen refactor [[src/auth.py]] to use JWT tokens one" in link.context
    assert 80 <= len(link.context) <= 104
    assert set(link.context.strip("…").split()) <= set(text.split())


def test_a_short_paragraph_is_the_whole_context() -> None:
    (link,) = find("# Title\n\nPlan to refactor\n[[src/auth.py]] to use JWT.\n\nMore.")
    assert link.context == "Plan to refactor [[src/auth.py]] to use JWT."


def test_near_misses_are_named_with_their_line() -> None:
    text = (
        "a\n```\n[src/no.py]\n```\nsee [src/auth.py] and [[./src/b.py|b]]\n\n"
        "[config.toml] [[../c.md#x]]"
    )
    assert lint(text, first_line=5) == [
        "line 9: [src/auth.py] is not a link; write [[src/auth.py]]",
        "line 9: [[./src/b.py|b]] is not a link; write [[src/b.py]]",
        "line 11: [config.toml] is not a link; write [[config.toml]]",
        "line 11: [[../c.md#x]] is not a link; write [[c.md]]",
    ]


INDENTED = [text.replace("[[a]]", "[src/auth.py]") for text in CASES["no_link"]["indented code"]]


@pytest.mark.parametrize("text", CASES["honest"]["brackets"] + INDENTED)
def test_honest_brackets_are_not_complained_about(text: str) -> None:
    assert lint(text) == []


@pytest.mark.parametrize("unit", CASES["costly"]["units"])
@pytest.mark.parametrize("tail", CASES["costly"]["tails"])
def test_no_text_takes_more_than_linear_time(unit: str, tail: str) -> None:
    def cost(length: int) -> float:
        text = unit * (length // len(unit)) + tail
        started = time.process_time()
        shown = links.visible(text, markup.blocks(text))
        collections.deque(links.find(shown, text, "a.md"), maxlen=0)
        collections.deque(links.lint(shown), maxlen=0)
        return time.process_time() - started

    # Eight times the text; a square would cost sixty-four times as much. A machine with other work
    # may need a second try.
    small = max(cost(25_000), 0.01)
    assert any(cost(200_000) < 24 * small for _ in range(3))


PARTS = ["[[a]]", "[b](c.md)", "`", "``", "<!--", "-->", "\n", "\n\n", "```\n", "x ", "\\", "- "]


@given(st.lists(st.sampled_from(PARTS)))
def test_hiding_keeps_every_offset_and_every_line(parts: list[str]) -> None:
    text = "[" + "".join(parts)
    shown = links.visible(text, markup.blocks(text))
    assert [len(line) for line in shown.split("\n")] == [len(line) for line in text.split("\n")]
    assert all(after in {before, " ", "\0"} for before, after in zip(text, shown, strict=True))
    for link in find(text, "d.md"):
        assert link.target in {"a", "c.md"}
        assert "\n" not in link.context
