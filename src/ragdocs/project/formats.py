"""The formats of documentation: their names, the endings of their files, and what reads them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec


@dataclass(frozen=True, slots=True)
class Format:
    """A format of documentation, and the module of `text/formats/` that reads it."""

    name: str
    suffixes: tuple[str, ...]
    reader: str
    # Whether a text in this format has headings.
    has_headings: bool = True
    # Endings of other files that may be in this format: the reader tells by their text.
    sniffed: tuple[str, ...] = ()
    # Files of this format are documentation only in a folder for it: others have this ending, too.
    only_in_docs: bool = False
    # Files of this format are often made from others: a folder of them alone may be a built site.
    is_often_built: bool = False
    # The extra of the installation without which files of this format are not read.
    extra: str = ""


# No ending at all, such as README, and any ending that no format has.
OTHER = "*"
MARKDOWN = Format("Markdown", (".md", ".markdown", ".mdx"), "markdown")
PLAIN_TEXT = Format("plain text", (".txt",), "plain", has_headings=False, only_in_docs=True)

FORMATS = (
    MARKDOWN,
    Format("reStructuredText", (".rst",), "rst", sniffed=(".txt", OTHER)),
    Format("AsciiDoc", (".adoc", ".asciidoc"), "asciidoc", sniffed=(".txt", OTHER)),
    Format("Org", (".org",), "org"),
    Format("notebooks", (".ipynb",), "notebook"),
    # The ending is that of plain text: only its own signs tell it.
    Format("Vim help", (), "vimhelp", sniffed=(".txt",), only_in_docs=True),
    Format(
        "HTML",
        (".html", ".htm"),
        "webpage",
        sniffed=(".txt", OTHER),
        only_in_docs=True,
        is_often_built=True,
    ),
    PLAIN_TEXT,
    Format("PDF", (".pdf",), "office", only_in_docs=True, is_often_built=True, extra="office"),
    Format("Word", (".docx",), "office", only_in_docs=True, extra="office"),
    Format("PowerPoint", (".pptx",), "office", only_in_docs=True, extra="office"),
    Format("EPUB", (".epub",), "office", only_in_docs=True, extra="office"),
)


# What is imported of each extra to read files.
EXTRAS = {"office": ("pypdfium2", "mammoth")}


@cache
def is_installed(extra: str) -> bool:
    """Tell whether the packages of an extra are installed; nothing is needed without one."""
    return all(find_spec(package) for package in EXTRAS.get(extra, ()))


def _by_suffix() -> dict[str, Format]:
    formats = {}
    for kind in FORMATS:
        for suffix in kind.suffixes:
            formats[suffix] = kind
    return formats


BY_SUFFIX = _by_suffix()


def suffix_of(path: str) -> str:
    """Return the ending of a file in lower case."""
    name = path.rpartition("/")[2]
    return os.path.splitext(name)[1].lower()  # noqa: PTH122 - a name, and often


def format_of(path: str) -> Format | None:
    """Return the format that the ending of a file names, or nothing for any other ending."""
    return BY_SUFFIX.get(suffix_of(path))


def sniffed_formats(suffix: str) -> list[Format]:
    """Return the formats that a text with this ending may be in, beside the one of the ending."""
    if suffix not in BY_SUFFIX:
        suffix = OTHER
    return [kind for kind in FORMATS if suffix in kind.sniffed]
