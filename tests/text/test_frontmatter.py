from __future__ import annotations

import time
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragdocs.errors import ParseError
from ragdocs.text import frontmatter as metadata

WORDS = st.text(st.characters(codec="utf-8"), max_size=30)
SCALARS = st.none() | st.booleans() | st.integers(-(10**15), 10**15) | WORDS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4)
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\na: 1\n---\nbody\n", ("a: 1\n", "body\n", 4)),
        ("\ufeff---\na: 1\n---\nbody", ("a: 1\n", "body", 4)),
        ("---\r\na: 1\r\n---\r\nbody\r\n", ("a: 1\r\n", "body\r\n", 4)),
        ("---  \na: 1\n--- \t\n\nbody", ("a: 1\n", "\nbody", 4)),
        ("---\n---\nbody", ("", "body", 3)),
        ("---\na: 1\n---", ("a: 1\n", "", 4)),
        ("text\n\n---\n\nmore\n\n---\n", (None, "text\n\n---\n\nmore\n\n---\n", 1)),
        ("\n---\na: 1\n---\n", (None, "\n---\na: 1\n---\n", 1)),
        ("---\na: 1\nnever closed", (None, "---\na: 1\nnever closed", 1)),
        ("----\na: 1\n----\n", (None, "----\na: 1\n----\n", 1)),
        ("", (None, "", 1)),
    ],
)
def test_only_a_block_at_the_very_top_is_split_off(
    text: str, expected: tuple[str | None, str, int]
) -> None:
    assert metadata.split(text) == expected


def test_words_stay_what_their_author_wrote() -> None:
    loaded, problems = metadata.load(
        "tags: [no, on, 12:30:45, 3.10, 007, 1e3, 2025-01-10, 0x1f, True]\n"
        "when: 2025-01-10 10:00:00\ncount: 7\nshare: 0.5\nyes: true\nnothing:\n"
    )
    assert not problems
    assert loaded["tags"] == [
        "no",
        "on",
        "12:30:45",
        "3.10",
        "007",
        "1e3",
        "2025-01-10",
        "0x1f",
        "True",
    ]
    assert loaded["when"] == "2025-01-10 10:00:00"
    assert (loaded["count"], loaded["share"], loaded["yes"], loaded["nothing"]) == (
        7,
        0.5,
        True,
        None,
    )


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        ("[" * 60_000, "nested deeper"),
        ("[" * 100_000, "larger than 64 kB"),
        ("{a: " * 15_000, "nested deeper"),
        ("- " * 30_000, "nested deeper"),
        ("? " * 30_000, "nested deeper"),
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "line 2: anchors"),
        ("a: *missing\n", "anchors and aliases"),
        ("a: !!python/object/apply:os.system [id]\n", "tag"),
        ("a: !custom x\n", "tag"),
        ("a: !!binary aGk=\n", "tag"),
        ("a: !!set {x, y}\n", "tag"),
        ("?\n" * 30_000, "more than"),
        ("a: [1, 2\n", "line 3"),
        ("a: b: c\n", "line 2"),
        ("\tx: 1\n", "cannot start any token"),
        ("a: 'open\n", "line"),
        ("- a\n- b\n", "not a mapping"),
        ("just words\n", "not a mapping"),
        ("# only a comment\n", "not a mapping"),
        ("\u00a0\n", "not a mapping"),
        ("? [a, b]\n: c\n", "unhashable"),
        ("a: 1\n...\nb: 2\n", "document start"),
        ("a: \x00\n", "not valid YAML"),
        ("a: \ud800\n", "not valid text"),
        ('a: "\\ud800"\n', "Unicode"),
        ("%" * 60_000, "directive"),
        ('"' * 60_001, "frontmatter"),
        ("&" * 60_000, "frontmatter"),
    ],
)
def test_a_hostile_or_broken_block_is_refused_quickly_with_a_reason(
    block: str, complaint: str
) -> None:
    started = time.process_time()
    loaded, problems = metadata.load(block)
    # They take 0.06 s at the most; what is hostile about them would take minutes or crash.
    assert time.process_time() - started < 2
    assert loaded == {}
    assert len(problems) == 1
    assert problems[0].startswith("frontmatter: ")
    assert complaint in problems[0]
    assert len(problems[0]) < 200


def test_a_duplicate_key_is_reported_with_its_line_and_the_last_one_counts() -> None:
    loaded, problems = metadata.load(
        "tags: [a]\ngit: {branch: x, branch: y}\ntags: [b]\nother: {tags: 1}\n"
    )
    assert loaded == {"tags": ["b"], "git": {"branch": "y"}, "other": {"tags": 1}}
    assert [problem.split(";")[0] for problem in problems] == [
        "frontmatter: line 3: duplicate key 'branch'",
        "frontmatter: line 4: duplicate key 'tags'",
    ]


def test_a_merge_key_is_a_key_like_any_other() -> None:
    assert metadata.load("<<: {a: 1}\nb: 2\n") == ({"<<": {"a": 1}, "b": 2}, [])


def test_keys_are_text() -> None:
    assert metadata.load("1: a\ntrue: b\n~: c\n1.50: d\n") == (
        {"1": "a", "true": "b", "~": "c", "1.50": "d"},
        [],
    )


def test_a_rendered_block_is_plain_and_in_a_fixed_order() -> None:
    shared = ["src/auth.py"]
    text = metadata.render(
        {
            "zeta": shared,
            "created_at": datetime(2025, 1, 10, 10, tzinfo=UTC),
            "again": shared,
            "tags": ("naïve", "no", "😀"),
            "due": date(2025, 2, 1),
            "status": "active",
            "type": "plan",
        },
        "Body.\n",
    )
    assert text == (
        "---\ntype: plan\nstatus: active\ntags: [naïve, 'no', 😀]\ncreated_at: '2025-01-10T10:00:00+00:00'\n"
        "zeta: [src/auth.py]\nagain: [src/auth.py]\ndue: '2025-02-01'\n---\n\nBody.\n"
    )


def test_content_keys_win_over_defaults_in_one_block() -> None:
    merged = metadata.merge(
        '---\ntype: "plan"\nowner: me\n---\n\n# Plan\n',
        {"type": "journal", "status": "active", "tags": ["a"]},
    )
    assert merged == '---\ntype: "plan"\nowner: me\nstatus: active\ntags: [a]\n---\n\n# Plan\n'


def test_comments_order_and_style_of_the_contents_own_block_stay() -> None:
    block = '# who\nowner: me  # not you\n\nlist:\n  - a # first\ntype: "plan"\n# last\n'
    merged = metadata.merge(f"---\n{block}---\n\n# Plan\n", {"type": "journal", "status": "active"})
    assert merged == f"---\n{block}status: active\n---\n\n# Plan\n"
    changed = metadata.merge(f"---\n{block}---\n\n# Plan\n", {}, {"owner": "them", "list": ["b"]})
    assert changed == (
        '---\n# who\nowner: them  # not you\n\nlist: [b]\ntype: "plan"\n# last\n---\n\n# Plan\n'
    )
    quoted = metadata.merge('---\ntitle: "a # b"\n---\n', {}, {"title": "c"})
    assert quoted == "---\ntitle: c\n---\n"


@pytest.mark.parametrize(
    "content",
    [
        "One\r\n\r\ntwo\r\n",
        "---\r\na: 1\r\n---\r\n\r\nOne\r\n",
        "---\na: 1\n---\nOne\r\ntwo\r\nthree\r\nfour\r\nfive\r\n",
        "\ufeff---\r\na: 1\r\n---\r\nOne\r\n",
    ],
)
def test_a_text_has_one_kind_of_line_ends(content: str) -> None:
    merged = metadata.merge(content, {"type": "journal", "tags": []})
    assert merged.count("\n") == merged.count("\r\n")
    assert metadata.load(metadata.split(merged)[0] or "")[0]["type"] == "journal"
    assert merged.endswith(metadata.split(content)[1])
    assert merged.count("---") == 2


def test_merging_again_changes_nothing() -> None:
    defaults = {"type": "journal", "tags": ["x"]}
    once = metadata.merge("Text\n\n---\n\nbelow a rule\n", defaults)
    assert metadata.merge(once, defaults) == once
    assert once.endswith("\n\nText\n\n---\n\nbelow a rule\n")


@pytest.mark.parametrize("block", ["a: [1", "- list", "a: 1\na: 2", "a: &x 1\nb: *x"])
def test_content_with_unreadable_metadata_is_not_merged(block: str) -> None:
    with pytest.raises(ParseError, match="frontmatter"):
        metadata.merge(f"---\n{block}\n---\nbody", {"type": "journal"})


def test_without_metadata_a_body_is_rendered_so_that_it_stays_body() -> None:
    assert metadata.render({}, "words") == "words"
    _, body, _ = metadata.split(metadata.render({}, "---\na: 1\n---\n"))
    assert body.lstrip() == "---\na: 1\n---\n"


@given(st.dictionaries(WORDS, VALUES, min_size=1, max_size=6), WORDS)
def test_what_is_rendered_is_read_back_the_same(mapping: dict[str, Any], body: str) -> None:
    block, rest, first_line = metadata.split(text := metadata.render(mapping, body))
    assert block is not None
    assert metadata.load(block) == (mapping, [])
    assert rest.removeprefix("\n") == body.removeprefix("\n")
    assert text.split("\n")[first_line - 1 :] == rest.split("\n")


@given(st.text(max_size=300))
def test_no_block_raises_and_what_is_loaded_survives_a_round_trip(block: str) -> None:
    loaded, problems = metadata.load(block)
    assert isinstance(loaded, dict)
    if loaded and not problems:
        rendered, _, _ = metadata.split(metadata.render(loaded, ""))
        assert rendered is not None
        assert metadata.load(rendered) == (loaded, [])
