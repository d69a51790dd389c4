"""What a change set would change, shown before it is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragdocs.errors import ConflictError
from ragdocs.search.cleaning import clean
from ragdocs.search.corpus import Corpus
from ragdocs.types import Change, Put, Source


@dataclass(frozen=True, slots=True)
class Difference:
    """A file that would be written or removed, as the lines of a unified diff."""

    path: str
    lines: Sequence[str]


def changed_by(
    corpus: Corpus, changes: Sequence[Change], sources: Mapping[str, Source]
) -> list[Difference]:
    """Return what these changes would do to the texts that they replace, without secrets.

    A change that would be refused because a text is at another version is refused here too.
    """
    differences = []
    for change in changes:
        cleaned, _ = clean(corpus.redactor, change)
        source = sources.get(change.path)
        is_other = source is not None and change.expect != source.version
        if isinstance(change.expect, str) and is_other:
            raise ConflictError(
                f"{change.path} changed: its version is not {change.expect}",
                "Read it again; nothing was changed",
            )
        before = after = ""
        if source is not None:
            before = source.text
        if isinstance(cleaned, Put):
            after = cleaned.text
        differences.append(difference(change.path, before, after))
    return differences


def difference(path: str, before: str, after: str) -> Difference:
    """Compare two texts of a file; a file that is not there has no text."""
    old = new = path
    if not before:
        old = "/dev/null"
    if not after:
        new = "/dev/null"
    import difflib

    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), old, new, lineterm="")
    return Difference(path, list(lines))
