"""What of a document its passages are found by, besides their own text."""

from __future__ import annotations

from functools import lru_cache

from ragdocs.index.terms import STOP_TERMS, terms
from ragdocs.types import Entry

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


@lru_cache(maxsize=4096)
def meant(word: str) -> frozenset[str]:
    """Return the terms that a word of a query asks for."""
    return frozenset(terms(word)) - STOP_TERMS


def about(entry: Entry) -> dict[str, str]:
    """Return the fields that all chunks of a document share."""
    document, at = entry.document, entry.document.created_at
    # Words that were taken for a title because there was none stand in the text as well: they count like a file's name.
    borrowed = entry.chunks[0].text.startswith(document.title.removesuffix("\u2026")) if entry.chunks else False
    return {
        "title": "" if borrowed else document.title,
        "tags": " ".join((*document.tags, *document.aliases)),
        "path": f"{document.path} {document.title}" if borrowed else document.path,
        # As people say it: "what did we decide in May 2026".
        "date": f"{at.day} {MONTHS[at.month - 1]} {at.year}" if at else "",
    }
