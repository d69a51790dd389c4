"""Which words of a filter nothing in a lane has, and which words there are instead."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragdocs.protocols import Facet
    from ragdocs.search.corpus import Corpus

# Existing words that are named.
MOST_NAMED = 10


def unknown(corpus: Corpus, tags: Sequence[str] = (), kinds: Sequence[str] = ()) -> list[str]:
    """Say which tags and types no document has, with the existing ones nearest in spelling."""
    notes = []
    fields: tuple[tuple[Facet, str, str, Sequence[str]], ...] = (
        ("tags", "tag", "tags", tags),
        ("kind", "type", "types", kinds),
    )
    for facet, singular, plural, wanted in fields:
        if not wanted:
            continue
        existing = list(corpus.facets(facet))
        folded = {word.casefold() for word in existing}
        for word in wanted:
            if word.casefold() not in folded:
                named = ", ".join(nearest(word, existing)) or "none"
                notes.append(
                    f"nothing has the {singular} {word[:80]!r}; existing {plural}: {named}"
                )
    return notes


def nearest(word: str, existing: Collection[str]) -> list[str]:
    """Return existing words, those spelled most like this one first, then in their own order."""
    import difflib

    folded = word.casefold()
    similar = difflib.get_close_matches(folded, existing, n=3, cutoff=0.5)
    others = [other for other in existing if other not in similar]
    return [*similar, *others][:MOST_NAMED]
