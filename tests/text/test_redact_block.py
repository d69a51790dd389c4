"""Redaction leaves the YAML block at the top of a text what it was, with other words in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.text.cases import noise

from ragdocs.text import frontmatter as metadata
from ragdocs.text.redaction.redact import Redactor

REDACTOR = Redactor({}, ["ticket-[0-9]{4}"])
ONE, TWO = (f"ghp_{noise(36, seed=seed)}" for seed in (1, 2))


def block_of(text: str) -> dict[str, Any]:
    block, _, _ = metadata.split(text)
    assert block is not None
    fields, problems = metadata.load(block)
    assert problems == []
    return fields


def is_alike(before: Any, after: Any) -> bool:
    """Tell whether only words were replaced."""
    if isinstance(before, Mapping):
        return isinstance(after, Mapping) and is_alike([*before.items()], [*after.items()])
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
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "byte order mark"])
def test_block_keeps_its_form(block: str, mark: str) -> None:
    text = f"{mark}---\n{block}\n---\nBody.\n"
    redaction = REDACTOR.redact(text)
    assert redaction.findings
    for secret in (ONE, TWO, "ticket-1234", "hunter2hunter2", "918273645546372819"):
        assert secret not in redaction.text
    assert is_alike(block_of(text), block_of(redaction.text))
    assert redaction.text.endswith("Body.\n")
    assert REDACTOR.redact(redaction.text).text == redaction.text


def test_block_is_left_as_written_where_the_placeholder_fits() -> None:
    text = f"---\n# kept\ntags:   [ok,   {ONE}]\n---\nBody {ONE}.\n"
    assert REDACTOR.redact(text).text == (
        "---\n# kept\ntags:   [ok,   (redacted:github-token)]\n---\nBody [redacted:github-token].\n"
    )


@pytest.mark.parametrize(
    ("block", "secret"),
    [(f"tags: [ok, {ONE}", ONE), ("a: begin-1\nb: 2!", "begin-1")],
    ids=["no YAML", "pattern across two values"],
)
def test_secret_goes_even_if_the_form_is_lost(block: str, secret: str) -> None:
    redactor = Redactor({}, [r"begin-[^!]{1,40}!"])
    assert secret not in redactor.redact(f"---\n{block}\n---\n").text


SECRET_WORDS = (ONE, TWO, f"see {ONE} and {TWO}", "ticket-1234")
ODD_WORDS = ("ok", "a: b", "- x", "it's", '"q"', "two\nlines", "", "[x]")
WORDS = st.sampled_from(SECRET_WORDS + ODD_WORDS)
LEAVES = WORDS | st.integers(-5, 5) | st.booleans()
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300)
@given(st.dictionaries(WORDS, VALUES, min_size=1, max_size=4), st.sampled_from([None, True, False]))
def test_redacted_block_has_the_same_form(fields: dict[str, Any], style: bool | None) -> None:
    block = yaml.safe_dump(fields, sort_keys=False, default_flow_style=style, width=10_000)
    text = f"---\n{block}---\nBody.\n"
    redacted = REDACTOR.redact(text).text
    assert ONE not in redacted
    assert TWO not in redacted
    assert is_alike(block_of(text), block_of(redacted))
    assert REDACTOR.redact(redacted).text == redacted
