"""Redaction leaves the YAML block at the top of a text what it was, with other words in it."""

from __future__ import annotations

import random
import string
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ragdocs.text import frontmatter as metadata
from ragdocs.text.redaction.redact import Redactor

LETTERS = string.ascii_letters + string.digits
REDACTOR = Redactor({}, ["ticket-[0-9]{4}"])


def token(seed: int) -> str:
    chosen = random.Random(seed)
    return "ghp" + "_" + "".join(chosen.choice(LETTERS) for _ in range(36))


ONE, TWO = token(1), token(2)


def block_of(text: str) -> dict[str, Any]:
    block, _, _ = metadata.split(text)
    assert block is not None
    fields, problems = metadata.load(block)
    assert problems == []
    return fields


def is_alike(before: Any, after: Any) -> bool:
    """Tell whether only words were replaced."""
    if isinstance(before, Mapping):
        is_same_size = isinstance(after, Mapping) and len(before) == len(after)
        return is_same_size and all(
            is_alike(old, new) for old, new in zip(before.items(), after.items(), strict=True)
        )
    if isinstance(before, list | tuple):
        is_same_size = isinstance(after, list | tuple) and len(before) == len(after)
        return is_same_size and all(map(is_alike, before, after))
    return before == after or (isinstance(after, str) and "(redacted:" in after)


@pytest.mark.parametrize(
    "block",
    [
        f"tags: [ok, {ONE}, later]",
        f"tags: [{ONE}]",
        f"tags:\n  - ok\n  - {ONE}\n  - later",
        f"token: {ONE}",
        f"token: '{ONE}'",
        f'token: "{ONE}"',
        f"map: {{a: {ONE}, b: [x, {TWO}]}}",
        f"{ONE}: value",
        f"{ONE}: a\n{TWO}: b",
        f"map: {{{ONE}: a, {TWO}: b, ticket-1234: c, ticket-5678: d}}",
        f"note: |\n  first {ONE}\n  second\nlast: 1",
        f"note: >-\n  first\n  {ONE}\nlast: 1",
        f"# a comment with {ONE}\nlast: 1 # and {TWO}",
        "password: hunter2hunter2\nlast: [a, b]",
        "api_token: 918273645546372819\nlast: [a, b]",
        "list: [ticket-1234, x ticket-1234 y]",
    ],
)
def test_block_keeps_its_form(block: str) -> None:
    text = f"---\n{block}\n---\nBody.\n"
    redaction = REDACTOR.redact(text)
    assert redaction.findings
    assert not any(
        secret in redaction.text for secret in (ONE, TWO, "ticket-1234", "hunter2hunter2")
    )
    assert is_alike(block_of(text), block_of(redaction.text))
    assert redaction.text.endswith("Body.\n")
    assert REDACTOR.redact(redaction.text).text == redaction.text


def test_block_is_left_as_written_where_the_placeholder_fits() -> None:
    text = f"---\n# kept\ntags:   [ok,   {ONE}]\n---\nBody {ONE}.\n"
    redacted = (
        "---\n# kept\ntags:   [ok,   (redacted:github-token)]\n---\nBody [redacted:github-token].\n"
    )
    assert REDACTOR.redact(text).text == redacted


def test_block_with_a_byte_order_mark_keeps_its_form() -> None:
    redaction = REDACTOR.redact(f"\ufeff---\ntags: [ok, {ONE}]\n---\n")
    assert block_of(redaction.text)["tags"] == ["ok", "(redacted:github-token)"]


def test_block_that_is_no_yaml_is_redacted_all_the_same() -> None:
    redaction = REDACTOR.redact(f"---\ntags: [ok, {ONE}\n---\n")
    assert ONE not in redaction.text


def test_pattern_across_values_takes_the_secret_even_if_the_form_is_lost() -> None:
    redactor = Redactor({}, [r"begin-[^!]{1,40}!"])
    redaction = redactor.redact("---\na: begin-1\nb: 2!\n---\n")
    assert "begin-1" not in redaction.text


WORDS = st.sampled_from(
    [
        ONE,
        TWO,
        f"see {ONE} and {TWO}",
        "ok",
        "a: b",
        "ticket-1234",
        "- x",
        "it's",
        '"q"',
        "two\nlines",
        "",
        "[x]",
    ]
)
LEAVES = WORDS | st.integers(-5, 5) | st.booleans()
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
STYLES = st.sampled_from([None, True, False])


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(WORDS, VALUES, min_size=1, max_size=4), STYLES)
def test_redacted_block_has_the_same_form(fields: dict[str, Any], style: bool | None) -> None:
    block = yaml.safe_dump(fields, sort_keys=False, default_flow_style=style, width=10_000)
    text = f"---\n{block}---\nBody.\n"
    redacted = REDACTOR.redact(text).text
    assert ONE not in redacted
    assert TWO not in redacted
    assert is_alike(block_of(text), block_of(redacted))
    assert REDACTOR.redact(redacted).text == redacted
