from __future__ import annotations

import time
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.text.cases import table

from ragdocs.errors import ParseError
from ragdocs.text import frontmatter as metadata

WORDS = st.text(st.characters(codec="utf-8"), max_size=30)
SCALARS = st.none() | st.booleans() | st.integers(-(10**15), 10**15) | WORDS
CASES = table("frontmatter")
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4)
)


@pytest.mark.parametrize(("text", "block", "body", "first_line"), CASES["split"])
def test_a_block_at_the_very_top_is_split_off(
    text: str, block: str, body: str, first_line: int
) -> None:
    assert metadata.split(text) == (block, body, first_line)


@pytest.mark.parametrize("text", CASES["without_a_block"])
def test_what_is_no_block_at_the_very_top_is_body(text: str) -> None:
    assert metadata.split(text) == (None, text, 1)


def test_words_stay_what_their_author_wrote() -> None:
    words = ["no", "on", "12:30:45", "3.10", "007", "1e3", "2025-01-10", "0x1f", "True"]
    loaded, problems = metadata.load(
        f"tags: [{', '.join(words)}]\n"
        "when: 2025-01-10 10:00:00\ncount: 7\nshare: 0.5\nyes: true\nnothing:\n"
    )
    assert not problems
    assert loaded.pop("tags") == words
    assert loaded == {
        "when": "2025-01-10 10:00:00",
        "count": 7,
        "share": 0.5,
        "yes": True,
        "nothing": None,
    }


@pytest.mark.parametrize(
    ("part", "repeated", "complaint"), [*CASES["hostile"], ("a: \ud800\n", 1, "not valid text")]
)
def test_a_hostile_or_broken_block_is_refused_quickly_with_a_reason(
    part: str, repeated: int, complaint: str
) -> None:
    block = part * repeated
    started = time.process_time()
    loaded, problems = metadata.load(block)
    # They take 0.06 s at the most; what is hostile about them would take minutes or crash.
    assert time.process_time() - started < 2
    assert loaded == {}
    assert len(problems) == 1
    assert problems[0].startswith("frontmatter: ")
    assert complaint in problems[0]
    assert len(problems[0]) < 200


@pytest.mark.parametrize(
    ("block", "fields", "complaint"),
    [
        ("a: 1\na: 2\nb: {a: 3}\n", {"a": 2, "b": {"a": 3}}, "line 3: duplicate key 'a'"),
        (
            "git: {branch: x, branch: y}\n",
            {"git": {"branch": "y"}},
            "line 2: duplicate key 'branch'",
        ),
        ("<<: {a: 1}\nb: 2\n", {"<<": {"a": 1}, "b": 2}, ""),
        ("1: a\ntrue: b\n~: c\n1.50: d\n", {"1": "a", "true": "b", "~": "c", "1.50": "d"}, ""),
    ],
    ids=["duplicate", "duplicate inside", "merge key like any other", "keys are text"],
)
def test_the_last_of_equal_keys_counts_and_is_reported_with_its_line(
    block: str, fields: dict[str, Any], complaint: str
) -> None:
    loaded, problems = metadata.load(block)
    assert loaded == fields
    assert [problem.split(";")[0] for problem in problems] == (
        [f"frontmatter: {complaint}"] if complaint else []
    )


def test_a_rendered_block_is_plain_and_in_a_fixed_order() -> None:
    shared = ["src/auth.py"]
    fields = {
        "zeta": shared,
        "created_at": datetime(2025, 1, 10, 10, tzinfo=UTC),
        "again": shared,
        "tags": ("naïve", "no", "😀"),
        "due": date(2025, 2, 1),
        "status": "active",
        "type": "plan",
    }
    assert metadata.render(fields, "Body.\n") == (
        "---\ntype: plan\nstatus: active\ntags: [naïve, 'no', 😀]\n"
        "created_at: '2025-01-10T10:00:00+00:00'\n"
        "zeta: [src/auth.py]\nagain: [src/auth.py]\ndue: '2025-02-01'\n---\n\nBody.\n"
    )


BLOCK = '# who\nowner: me  # not you\n\nlist:\n  - a # first\ntype: "plan"\n# last\n'
CHANGED = '# who\nowner: them  # not you\n\nlist: [b]\ntype: "plan"\n# last\n'


@pytest.mark.parametrize(
    ("block", "defaults", "changes", "merged"),
    [
        (
            'type: "plan"\nowner: me\n',
            {"type": "journal", "status": "active", "tags": ["a"]},
            None,
            'type: "plan"\nowner: me\nstatus: active\ntags: [a]\n',
        ),
        (BLOCK, {"type": "journal", "status": "active"}, None, f"{BLOCK}status: active\n"),
        (BLOCK, {}, {"owner": "them", "list": ["b"]}, CHANGED),
        ('title: "a # b"\n', {}, {"title": "c"}, "title: c\n"),
    ],
    ids=["own keys win over defaults", "own style stays", "comments stay", "hash in a text"],
)
def test_comments_order_and_style_of_the_contents_own_block_stay(
    block: str, defaults: dict[str, Any], changes: dict[str, Any] | None, merged: str
) -> None:
    content = f"---\n{block}---\n\n# Plan\n"
    assert metadata.merge(content, defaults, changes) == f"---\n{merged}---\n\n# Plan\n"


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
