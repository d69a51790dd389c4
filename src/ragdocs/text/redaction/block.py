"""Keeps the YAML block of a redacted text what it was: the same keys and lists, other words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ragdocs.text import frontmatter
from ragdocs.text.formats import markdown

# How every placeholder in a block begins; brackets would begin a list.
_MARK = "(redacted:"
_BRACKETS = re.compile(r"\[redacted:([\w:.-]{1,120})\]")


def has_block(text: str) -> bool:
    """Tell whether a text begins with a block between `---` lines."""
    return block_end(text) > 0


def block_end(text: str) -> int:
    """Return the offset at which the block at the top of a text stops, 0 if there is none."""
    plain = text.removeprefix("\ufeff")
    offsets = markdown.front(plain)
    if not offsets:
        return 0
    _, stop, _ = offsets
    return stop + len(text) - len(plain)


def mended_block(before: str, after: str, redact: Callable[[str], str]) -> str:
    """Return the text with its block written anew, each word redacted, if `after` lost its form.

    Empty if the block of `after` has the form of the one of `before`.
    """
    block, body, _ = frontmatter.split(before)
    fields, problems = frontmatter.load(block or "")
    if not fields:
        return ""
    for problem in problems:
        # A problem of one line leaves the block readable.
        if "line" not in problem:
            return ""
    redacted, redacted_body, _ = frontmatter.split(after)
    if redacted is not None:
        redacted_fields, _ = frontmatter.load(redacted)
        if _is_alike(fields, redacted_fields):
            return ""
        body = redacted_body
    return frontmatter.render(_cleaned(fields, redact), body)


def _is_alike(before: Any, after: Any) -> bool:
    """Tell whether two values have the same form and differ only in words that were taken out."""
    if isinstance(before, Mapping):
        if not isinstance(after, Mapping):
            return False
        before = list(map(list, before.items()))
        after = list(map(list, after.items()))
    if isinstance(before, list):
        if not isinstance(after, list) or len(before) != len(after):
            return False
        return all(map(_is_alike, before, after))
    if before == after:
        return True
    return isinstance(after, str) and _MARK in after


def _cleaned(value: Any, redact: Callable[[str], str], name: str = "") -> Any:
    """Redact every word of a value, knowing the key under which it stands."""
    if isinstance(value, Mapping):
        cleaned: dict[str, Any] = {}
        for key, inner in value.items():
            new_key = _free(_marked(redact(key)), cleaned)
            cleaned[new_key] = _cleaned(inner, redact, key)
        return cleaned
    if isinstance(value, list):
        return [_cleaned(inner, redact, name) for inner in value]
    return _cleaned_scalar(value, redact, name)


def _cleaned_scalar(value: Any, redact: Callable[[str], str], name: str) -> Any:
    text = frontmatter.as_text(value)
    if name:
        # The key says whether a number or a word is a secret.
        key = f"{name}: "
        line = redact(key + text)
        if line != key + text and line.startswith(key):
            return _marked(line.removeprefix(key))
    redacted = redact(text)
    if redacted == text:
        return value
    return _marked(redacted)


def _marked(text: str) -> str:
    """Spell placeholders as a block has them."""
    return _BRACKETS.sub(r"(redacted:\1)", text)


def _free(key: str, taken: Mapping[str, Any]) -> str:
    """Return a key that is not taken yet; a second secret of the same kind gets a number."""
    number = 2
    free = key
    while free in taken:
        if _MARK in key:
            free = key.replace(")", f":{number})", 1)
        else:
            free = f"{key} ({number})"
        number += 1
    return free
