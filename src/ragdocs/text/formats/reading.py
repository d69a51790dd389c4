"""Which reader a text is for, and what it makes of the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from ragdocs.project.formats import (
    BY_SUFFIX,
    MARKDOWN,
    PLAIN_TEXT,
    Format,
    sniffed_formats,
    suffix_of,
)
from ragdocs.text import frontmatter as metadata
from ragdocs.text.formats.page import Page

# Formats that may have metadata between lines of marks above the text.
_WITH_METADATA = frozenset({"Markdown", "AsciiDoc", "HTML"})


@cache
def _reader(kind: Format) -> ModuleType:
    """Return the module that reads a format, loaded when the first text of the format is read."""
    return import_module(f"ragdocs.text.formats.{kind.reader}")


def format_of_text(text: str, path: str) -> Format:
    """Return the format of a text: by the ending of its file, or by its own signs."""
    suffix = suffix_of(path)
    for kind in sniffed_formats(suffix):
        if _reader(kind).recognises(text):
            return kind
    if suffix in BY_SUFFIX:
        return BY_SUFFIX[suffix]
    if _reader(MARKDOWN).recognises(text):
        return MARKDOWN
    return PLAIN_TEXT


def read(text: str, path: str, card: Mapping[str, Any] | None = None) -> Page:
    """Read a text by its format.

    A store that knows the metadata of a text gives them as `card`; then none are above the text.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if card is not None:
        return _read(MARKDOWN, text, path, top=False, card=card)
    kind = format_of_text(text, path)
    if kind.name not in _WITH_METADATA:
        return _read(kind, text, path, top=True, card={})
    split = metadata.split
    load = metadata.load
    if text.startswith(metadata.TOML):
        split = metadata.split_toml
        load = metadata.load_toml
    block, body, first_line = split(text)
    if block is None:
        return _read(kind, body, path, top=True, card={})
    loaded, problems = load(block)
    if problems and not loaded:
        # A refused block stays in the body to be found.
        page = _read(kind, text, path, top=True, card={}, problems=problems)
        return _titled(page, block)
    is_titled = not isinstance(loaded.get("title"), dict | list)
    if not is_titled:
        del loaded["title"]
    page = _read(kind, body, path, top=False, card=loaded, problems=problems)
    page = replace(page, first_line=first_line)
    if not is_titled:
        return _titled(page, block)
    return page


def _titled(page: Page, block: str) -> Page:
    """Give a page the title that is written in its metadata, unless a main heading has one."""
    if any(part.level == 1 and part.title for part in page.blocks):
        return page
    return replace(page, title=metadata.written_title(block))


def _read(
    kind: Format,
    text: str,
    path: str,
    *,
    top: bool,
    card: Mapping[str, Any],
    problems: list[str] | None = None,
) -> Page:
    if kind.reader == MARKDOWN.reader:
        page: Page = _reader(kind).read(text, path, top=top)
    else:
        page = _reader(kind).read(text, path)
    return replace(
        page,
        card=card,
        problems=[*(problems or ()), *page.problems],
        format=kind.name,
        has_headings=kind.has_headings,
    )
