"""Plain text: paragraphs between blank lines, and no headings."""

from __future__ import annotations

from ragdocs.text.formats.page import Page, Sheet, caption

# A first line longer than this is a sentence, not a title.
TITLE_LINE = 80


def read(text: str, path: str) -> Page:  # noqa: ARG001 - every reader is told the path
    """Read the paragraphs; a short first line is the title."""
    first_line = text.lstrip().partition("\n")[0].strip()
    title = ""
    if len(first_line) <= TITLE_LINE:
        title = caption(first_line)
    return Sheet(text).page(title=title)
