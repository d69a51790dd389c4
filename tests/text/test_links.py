from __future__ import annotations

import collections
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdocs.text import links
from ragdocs.text.formats import markdown as markup
from ragdocs.types import Link


def find(text: str, path: str = "docs/guides/here.md") -> list[Link]:
    return list(links.find(links.visible(text, markup.blocks(text, path)), text, path))


def targets(text: str, path: str = "docs/guides/here.md") -> list[str]:
    return [link.target for link in find(text, path)]


def lint(text: str, first_line: int = 1) -> list[str]:
    return list(links.lint(links.visible(text, markup.blocks(text, "a.md")), first_line))


@pytest.mark.parametrize(
    ("text", "target", "heading"),
    [
        ("see [[src/auth.py]]", "src/auth.py", ""),
        ("see [[docs/a.md#Some Heading]]", "docs/a.md", "Some Heading"),
        ("see [[a|a label]]", "a", ""),
        ("see [[a#h|a label]]", "a", "h"),
        ("| [[a\\|a label]] |", "a", ""),
        ("![[embedded]]", "embedded", ""),
        ("[[ spaced name ]]", "spaced name", ""),
        ("[[src\\auth.py]]", "src/auth.py", ""),
        ("[[/src/auth.py]]", "src/auth.py", ""),
        ("[[cafe\u0301]]", "caf\u00e9", ""),
        ("[[Note: on colons]]", "Note: on colons", ""),
        ("[[[x]]]", "x", ""),
    ],
)
def test_a_wikilink_names_its_target_and_heading(text: str, target: str, heading: str) -> None:
    assert [(link.target, link.heading) for link in find(text)] == [(target, heading)]


@pytest.mark.parametrize(
    "text",
    [
        "[src/auth.py]",
        "[[./src/auth.py]]",
        "[[../src/auth.py]]",
        "[[a/../../b]]",
        "[[ ]]",
        "[[]]",
        "[[#only a heading]]",
        "[[http://example.com/x]]",
        "[[C:\\x]]",
        "[[two\nlines]]",
        "\\[[escaped]]",
        "[[1, 2], [3, 4]]",
        "`[[code]]`",
        "``a ` [[code]]``",
        "`a\n[[code]] over a line` end",
        "```\n[[code]]\n```",
        "~~~~\n~~~\n[[code]]\n~~~~",
        "- item\n\n  ```\n  [[code]]\n  ```",
        "- item\n  - nested\n\n    ~~~\n    [[code]]\n    ~~~",
        "> ```\n> [[code]]\n> ```",
        "```\n[[never closed]]",
        "<!-- [[comment]] -->",
        "words <!-- [[comment]] --> words",
        "<!--\n\n[[comment]]\n\n-->",
    ],
)
def test_what_is_no_link_or_is_hidden_in_code_or_comments_makes_no_link(text: str) -> None:
    assert find(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "`open [[x]]",
        "`open\n\n[[x]] `close",
        "\\`[[x]]`",
        "`a` [[x]] `b`",
        "<!-- open [[x]]",
        "```\ncode\n```\n[[x]]",
        "- item\n\n  ```\n  code\n  ```\n\n  [[x]]",
        "    ```\n\n[[x]]",
        "- ```\n  ends with its item\n\n[[x]]",
        "> ```\n> ends with its quote\n\n[[x]]",
        "``` not a fence ``` [[x]]",
    ],
)
def test_a_link_beside_code_or_comments_is_found(text: str) -> None:
    assert targets(text) == ["x"]


@pytest.mark.parametrize(
    ("text", "target", "heading"),
    [
        ("[a](b.md)", "docs/guides/b.md", ""),
        ("[a](./b.md#An-anchor)", "docs/guides/b.md", "An-anchor"),
        ("[a](../b.md?x=1#y)", "docs/b.md", "y"),
        ("[a](/src/auth.py)", "src/auth.py", ""),
        ("[a](../../README.md)", "README.md", ""),
        ("[a](with%20space.md)", "docs/guides/with space.md", ""),
        ("[a](<with space.md>)", "docs/guides/with space.md", ""),
        ('[a](b.md "A title")', "docs/guides/b.md", ""),
        ("[a](b_(c).md)", "docs/guides/b_(c).md", ""),
        ("[![badge](i.png)](b.md)", "docs/guides/b.md", ""),
        ("[over\na line](b.md)", "docs/guides/b.md", ""),
        ("[a][ref]\n\n[REF]: b.md", "docs/guides/b.md", ""),
        ("[ref][]\n\n[ref]: <b.md> 'title'", "docs/guides/b.md", ""),
        ("see [ref] here\n\n[ref]: b.md#x", "docs/guides/b.md", "x"),
    ],
)
def test_a_markdown_link_is_resolved_from_its_own_document(
    text: str, target: str, heading: str
) -> None:
    assert [(link.target, link.heading, link.kind) for link in find(text)] == [
        (target, heading, "mentions")
    ]


@pytest.mark.parametrize(
    "text",
    [
        "[a](https://example.com/b.md)",
        "[a](mailto:x@example.com)",
        "[a](//example.com/b.md)",
        "[a](#anchor)",
        "[a]()",
        "![a](b.png)",
        "![a][ref]\n\n[ref]: b.png",
        "[a](../../../outside.md)",
        "[a](..%2f..%2f..%2foutside.md)",
        "[a](b%00.md)",
        "\\[a](b.md)",
        "[a][unknown]\n\n[ref]: https://example.com",
        "[^1] note\n\n[^1]: b.md",
        "- [ ] task\n- [x] done",
    ],
)
def test_a_link_to_elsewhere_is_not_followed(text: str) -> None:
    assert find(text) == []


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Plan to refactor [[x]] soon.", ["mentions"]),
        ("[[x]].", ["mentions"]),
        ("[[x]]", ["related_to"]),
        ("  ![[x]]  ", ["related_to"]),
        ("- [[x]]", ["related_to"]),
        ("3. [[x]]", ["related_to"]),
        ("- [ ] [[x]]", ["related_to"]),
        ("> [[x]]", ["related_to"]),
        ("[[x]] <!-- aside -->", ["related_to"]),
        ("plans:: [[x]]", ["plans"]),
        ("- plans:: [[x]]", ["plans"]),
        ("depends-on:: [[x]], [[y]]", ["depends-on", "depends-on"]),
        ("- plans [[x]]", ["plans"]),
        ("* blocked_by2 [[x]]", ["blocked_by2"]),
        ("- plans [[x]] today", ["mentions"]),
        ("- plans [[x]] [[y]]", ["mentions", "mentions"]),
        ("- [[x]] plans", ["mentions"]),
        ("- it plans [[x]]", ["mentions"]),
        ("- Plans [[x]]", ["mentions"]),
        ("- 12 [[x]]", ["mentions"]),
        ("plans [[x]]", ["mentions"]),
        ("it plans:: [[x]]", ["mentions"]),
        ("`code` [[x]]", ["mentions"]),
        ("## [[x]]", ["mentions"]),
        ("a\n[[x]]\nb [[y]]", ["related_to", "mentions"]),
    ],
)
def test_a_kind_is_written_by_the_author_and_never_guessed(text: str, kinds: list[str]) -> None:
    assert [link.kind for link in find(text)] == kinds


@pytest.mark.parametrize(
    "text",
    [
        "    [[a]]",
        "para\n\n    [[a]]\n\n    [[b]]\n",
        "# Heading\n    [[a]]",
        "***\n\t[[a]]",
        "- item\n\n      [[a]]",
        "1. item\n\n        [a](b.md)\n        [[c]]\n\n        - [[d]]",
        "    ```\n    [[a]]",
        "```\nx\n```\n    [[a]]",
        "!!! note\n\n        [[a]]",
    ],
)
def test_indented_code_has_no_links(text: str) -> None:
    assert targets(text) == []
    assert lint(text.replace("[[a]]", "[src/auth.py]")) == []


@pytest.mark.parametrize(
    "text",
    [
        "para\n    [[a]]",
        "para\n        - [[a]]",
        "- item\n    [[a]]",
        "- item\n\n  [[a]]",
        "- item\n\n    [[a]]",
        "1. item\n\n    - nested [[a]]",
        "- item\n\n      code\n\n  [[a]]",
        "    code\n\n[[a]]",
        "> quote\n    [[a]]",
        "!!! note\n\n    [[a]]",
        "!!! note\n    para\n\n    - [[a]]",
        '=== "Tab"\n\n    ??? tip\n\n        [[a]]',
        "text[^1]\n\n[^1]: note\n\n    [[a]]",
    ],
)
def test_a_continued_paragraph_or_item_is_no_code(text: str) -> None:
    assert targets(text) == ["a"]


CODE_PARTS = [
    "para",
    "    four",
    "     five",
    "        eight",
    "",
    "- item",
    "  two",
    "      six",
    "1. one",
    "# H",
    "***",
]


@given(st.lists(st.sampled_from(CODE_PARTS), min_size=2, max_size=8))
def test_indented_code_is_what_a_markdown_parser_says(parts: list[str]) -> None:
    parser = pytest.importorskip("markdown_it").MarkdownIt("commonmark")
    text = "\n".join(parts)
    tokens = [token for token in parser.parse(text) if token.type == "code_block"]
    expected = {number for token in tokens for number in range(*token.map) if parts[number]}
    spans = []
    for block in markup.blocks(text, "a.md"):
        spans += [*block.code, *([(block.start, block.stop)] if block.kind == "code" else [])]
    code = {
        number
        for start, stop in spans
        for number in range(text.count("\n", 0, start), text.count("\n", 0, stop) + 1)
    }
    assert {number for number in code if parts[number]} == expected


def test_every_occurrence_is_a_link_of_its_own_in_order() -> None:
    text = "One [[b]], two [a](a.md), three [[b]].\n\n- [[b]]\n"
    assert [(link.target, link.kind) for link in find(text, "here.md")] == [
        ("b", "mentions"),
        ("a.md", "mentions"),
        ("b", "mentions"),
        ("b", "related_to"),
    ]


def test_a_context_is_about_a_line_of_the_paragraph_and_holds_the_link() -> None:
    words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    text = f"Another paragraph.\n\n{words}\n   refactor [[src/auth.py]] to use\nJWT tokens {words}\n\nAnd another."
    (link,) = find(text)
    assert link.context.startswith("…")
    assert link.context.endswith("…")
    assert "sixteen refactor [[src/auth.py]] to use JWT tokens one" in link.context
    assert 80 <= len(link.context) <= 104
    assert set(link.context.strip("…").split()) <= set(text.split())


def test_a_short_paragraph_is_the_whole_context() -> None:
    (link,) = find("# Title\n\nPlan to refactor\n[[src/auth.py]] to use JWT.\n\nMore.")
    assert link.context == "Plan to refactor [[src/auth.py]] to use JWT."


def test_near_misses_are_named_with_their_line() -> None:
    text = "a\n```\n[src/no.py]\n```\nsee [src/auth.py] and [[./src/b.py|b]]\n\n[config.toml] [[../c.md#x]]"
    assert lint(text, first_line=5) == [
        "line 9: [src/auth.py] is not a link; write [[src/auth.py]]",
        "line 9: [[./src/b.py|b]] is not a link; write [[src/b.py]]",
        "line 11: [config.toml] is not a link; write [[config.toml]]",
        "line 11: [[../c.md#x]] is not a link; write [[c.md]]",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "arr[config.py] and f(x)[a.py]",
        "[src/auth.py](src/auth.py)",
        "[src/auth.py][ref]",
        "[src/auth.py]: definition",
        "use [a.md] here\n\n[a.md]: docs/a.md",
        "[[src/auth.py]]",
        "`[src/auth.py]`",
        "[and/or] [1.2.0] [x] [sic] [e.g.] [some words.py]",
        "![src/auth.py]",
    ],
)
def test_honest_brackets_are_not_complained_about(text: str) -> None:
    assert lint(text) == []


@pytest.mark.parametrize(
    "unit",
    [
        "[[a",
        "[[",
        "[",
        "`",
        "#",
        "`a",
        "[a](",
        "[]",
        "[[a]",
        "]]",
        "![",
        "<!--",
        "\\",
        "[a][",
        "` `` [[",
        "[[a\n",
        "> [",
        "]:",
    ],
)
@pytest.mark.parametrize("tail", ["", "]](x)\n\n[r]: x", "-->"])
def test_no_text_takes_more_than_linear_time(unit: str, tail: str) -> None:
    def cost(length: int) -> float:
        text = unit * (length // len(unit)) + tail
        started = time.process_time()
        shown = links.visible(text, markup.blocks(text, "a.md"))
        collections.deque(links.find(shown, text, "a.md"), maxlen=0)
        collections.deque(links.lint(shown), maxlen=0)
        return time.process_time() - started

    # Five times the text; a square would cost twenty-five times as much, a busy machine not more
    # than double.
    assert min(cost(500_000), cost(500_000)) < 12 * max(cost(100_000), 0.05)


@given(
    st.lists(
        st.sampled_from(
            [
                "[[a]]",
                "[b](c.md)",
                "`",
                "``",
                "<!--",
                "-->",
                "\n",
                "\n\n",
                "```\n",
                "x ",
                "\\",
                "- ",
            ]
        )
    )
)
def test_hiding_keeps_every_offset_and_every_line(parts: list[str]) -> None:
    text = "[" + "".join(parts)
    shown = links.visible(text, markup.blocks(text, "a.md"))
    assert [len(line) for line in shown.split("\n")] == [len(line) for line in text.split("\n")]
    assert all(after in {before, " ", "\0"} for before, after in zip(text, shown, strict=True))
    assert all(
        link.target in {"a", "c.md"} and "\n" not in link.context for link in find(text, "d.md")
    )
