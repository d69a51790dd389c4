"""What of a document its passages are found by, besides their own text."""

from __future__ import annotations

import re
import time
from functools import lru_cache
from pathlib import PurePosixPath

from ragdocs.text.terms import STOP_TERMS, terms
from ragdocs.types import IndexedDocument

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
# Different terms of one document. A book has some ten thousand; every one takes the index about
# 0.04 ms.
MOST_TERMS = 200_000
# Characters below which no text has so many terms that it takes long.
PLAIN_SIZE = 500_000
NAMELESS = ("index", "readme")
# A file whose name is a number is not what a question means that has this number in it.
_NUMBER = re.compile(r"\d+")


@lru_cache(maxsize=4096)
def meant(word: str) -> frozenset[str]:
    """Return the terms that a word of a query asks for."""
    return frozenset(terms(word)) - STOP_TERMS


def fields(entry: IndexedDocument) -> list[dict[str, str]]:
    """Return the text of each field of each passage."""
    shared = _shared(entry)
    texts = []
    for chunk in entry.chunks:
        own = {"body": chunk.text, "headings": " ".join(chunk.headings)}
        texts.append({**own, **shared})
    return texts


def objection(entry: IndexedDocument, seconds: float) -> str:
    """Say why a document would hold up all others, if it would.

    Looking takes so much processor time at most.
    """
    deadline = time.thread_time() + seconds
    different: set[str] = set()
    is_large = sum(len(chunk.text) for chunk in entry.chunks) > PLAIN_SIZE
    for chunk in entry.chunks:
        if time.thread_time() > deadline:
            return "it takes too long to read: split it into smaller files, or exclude it"
        if not is_large:
            return ""
        different.update(terms(chunk.text))
        if len(different) > MOST_TERMS:
            return (
                f"it has more than {MOST_TERMS:,} different words: "
                "split it into smaller files, or exclude it"
            )
    return ""


def _shared(entry: IndexedDocument) -> dict[str, str]:
    """Return the fields that all passages of a document share."""
    document = entry.document
    file = PurePosixPath(document.path)
    shared = {
        "title": "",
        "tags": " ".join((*document.tags, *document.aliases)),
        "path": "",
        "name": "",
        "date": "",
    }
    name = telling(_name(file)) or file.stem
    if not _NUMBER.fullmatch(name):
        shared["name"] = name
    if not _borrowed(entry) and not _NUMBER.fullmatch(document.title):
        shared["title"] = telling(document.title)
    if file.parent.name:
        shared["path"] = str(file.parent)
    created = document.created_at
    if created:
        # As people say it: "what did we decide in May 2026".
        shared["date"] = f"{created.day} {MONTHS[created.month - 1]} {created.year}"
    return shared


def _name(file: PurePosixPath) -> str:
    # Every folder may have a page of this name: it says what the folder's name says.
    if file.stem.strip("_").casefold() in NAMELESS:
        return file.parent.name
    return file.stem


def telling(title: str) -> str:
    """Return the words of a title that a query may ask for, or all of them if it has no others."""
    return " ".join(word for word in title.split() if meant(word)) or title


def _borrowed(entry: IndexedDocument) -> bool:
    """Tell whether a title is nothing but the first words of the text, which count there."""
    title = entry.document.title
    text = ""
    if entry.chunks:
        text = entry.chunks[0].text
    if title.endswith("\u2026"):
        return text.startswith(title[:-1])
    first_line, _, _ = text.partition("\n")
    return first_line.strip() == title
