"""Keeps the YAML block at the top of a redacted text what it was.

The same keys and lists, with other words in them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ragdocs.text import frontmatter as metadata
from ragdocs.text.formats import markdown as markup

# How every placeholder in a block begins; brackets would begin a list.
_MARK = "(redacted:"
_BRACKETS = re.compile(r"\[redacted:([\w:.-]{1,120})\]")


def has_block(text: str) -> bool:
    """Tell whether a text begins with a block between `---` lines."""
    return block_end(text) > 0


def block_end(text: str) -> int:
    """Return where the block at the top of a text stops, 0 if there is none."""
    plain = text.removeprefix("\ufeff")
    found = markup.front(plain)
    return found[1] + len(text) - len(plain) if found else 0


def mended_block(before: str, after: str, redact: Callable[[str], str]) -> str:
    """Write the block of `before` anew, each of its words redacted.

    If `after` does not say the same; else empty.
    """
    block, _, _ = metadata.split(before)
    redacted, body, _ = metadata.split(after)
    fields, problems = metadata.load(block or "")
    if not fields or any("line" not in problem for problem in problems):
        return ""
    if redacted is not None and _is_alike(fields, metadata.load(redacted)[0]):
        return ""
    return metadata.render(
        _cleaned(fields, redact), body if redacted is not None else metadata.split(before)[1]
    )


def _is_alike(before: Any, after: Any) -> bool:
    """Tell whether two values have the same form and differ only in words that were taken out."""
    if isinstance(before, Mapping):
        return isinstance(after, Mapping) and _is_alike(_pairs(before), _pairs(after))
    if isinstance(before, list):
        is_long = isinstance(after, list) and len(before) == len(after)
        return is_long and all(map(_is_alike, before, after))
    return before == after or (isinstance(after, str) and _MARK in after)


def _pairs(mapping: Mapping[str, Any]) -> list[list[Any]]:
    return [[key, value] for key, value in mapping.items()]


def _cleaned(value: Any, redact: Callable[[str], str], name: str = "") -> Any:
    """Redact every word of a value, knowing the key under which it stands."""
    if isinstance(value, Mapping):
        cleaned: dict[str, Any] = {}
        for key, inner in value.items():
            cleaned[_free(_marked(redact(key)), cleaned)] = _cleaned(inner, redact, key)
        return cleaned
    if isinstance(value, list):
        return [_cleaned(inner, redact, name) for inner in value]
    text = metadata.as_text(value)
    # The key says whether a number or a word is a secret.
    named = redact(f"{name}: {text}") if name else text
    if named != f"{name}: {text}" and named.startswith(f"{name}: "):
        return _marked(named.removeprefix(f"{name}: "))
    redacted = redact(text)
    return value if redacted == text else _marked(redacted)


def _marked(text: str) -> str:
    """Spell placeholders as a block has them."""
    return _BRACKETS.sub(r"(redacted:\1)", text)


def _free(key: str, taken: Mapping[str, Any]) -> str:
    """Return a key that is not taken yet; a second secret of the same kind gets a number."""
    number = 2
    free = key
    while free in taken:
        free = key.replace(")", f":{number})", 1) if _MARK in key else f"{key} ({number})"
        number += 1
    return free
