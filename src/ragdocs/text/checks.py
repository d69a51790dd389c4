"""Checks of texts and tags before they are written."""

from __future__ import annotations

from collections.abc import Sequence

from ragdocs.errors import ValidationError

# A memory is a note, not an archive: a longer one would not fit into any agent's context.
LONGEST_TEXT = 1_000_000
LONGEST_TAG = 100


def check_content(content: str, name: str = "content") -> None:
    """Refuse a text that cannot be meant as a memory."""
    if not content.strip():
        raise ValidationError(f"{name} is empty", "Say what should be remembered")
    if len(content) > LONGEST_TEXT:
        raise ValidationError(
            f"{name} is longer than {LONGEST_TEXT} characters", "Split it into several memories"
        )
    if "\x00" in content or _has_surrogate(content):
        raise ValidationError(
            f"{name} holds characters that no text file can", "Remove NUL and lone surrogates"
        )


def check_tags(tags: Sequence[str]) -> list[str]:
    """Return tags stripped and without repetitions; case makes no other tag."""
    unique: dict[str, str] = {}
    for tag in tags:
        if not isinstance(tag, str) or "\n" in tag or len(tag) > LONGEST_TAG:
            raise ValidationError(
                "a tag is not one short line of text",
                'Give tags as a list of words, such as ["auth"]',
            )
        word = tag.strip().lstrip("#").strip()
        if word:
            # The first spelling stays, at the position of the last.
            spelling = unique.pop(word.casefold(), word)
            unique[word.casefold()] = spelling
    return list(unique.values())


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
