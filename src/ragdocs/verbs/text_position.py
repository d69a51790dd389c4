"""Where something is said in a document: under which headings, and on which line."""

from __future__ import annotations

import re
from typing import NamedTuple

from ragdocs.types import Chunk

_HEADING = re.compile(r"^#{1,6}[ \t]+(\S[^\n]{0,200}?)[ \t#]*$", re.MULTILINE)


class TextPosition(NamedTuple):
    """The headings above a part of a document, and its line in the file."""

    headings: tuple[str, ...]
    line: int


# A document as a whole.
TOP = TextPosition((), 1)


def position_in(passage: Chunk, words: str) -> TextPosition:
    """Return where a passage has these words; where it begins, if it does not have them."""
    start = passage.text.find(words)
    if start < 0:
        return TextPosition(passage.headings, passage.start_line)
    before = passage.text[:start]
    breaks = before.count("\n")
    line = min(passage.end_line, passage.start_line + breaks)
    # A passage may have several short sections, of which only the first is above all of it.
    inner = _HEADING.findall(before)
    if not inner or inner[-1] in passage.headings:
        return TextPosition(passage.headings, line)
    headings = (*passage.headings, inner[-1])
    return TextPosition(headings, line)
