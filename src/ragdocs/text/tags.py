"""Tags as people spell them: which spellings are one tag."""

from __future__ import annotations

from collections.abc import Iterable

from ragdocs.system.patterns import later

_NO_LETTERS = later(r"[\W_]+")


def letters(tag: str) -> str:
    """Return what tags are compared by: their letters and digits, whatever stands between."""
    return _NO_LETTERS.sub("", tag.casefold()) or tag


def united(tags: Iterable[str]) -> list[str]:
    """Return each tag once, in the spelling that comes first."""
    spellings: dict[str, str] = {}
    for tag in tags:
        spellings.setdefault(letters(tag), tag)
    return list(spellings.values())
