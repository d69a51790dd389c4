"""The texts of a lane that were not indexed, or not as their authors meant."""

from __future__ import annotations

from ragdocs.search.corpus import Corpus


def reasons_by_path(corpus: Corpus) -> dict[str, tuple[str, ...]]:
    """Map the files that were not indexed, or not as their authors meant, to the reasons."""
    reasons: dict[str, tuple[str, ...]] = {}
    for path, reason in corpus.skipped.items():
        reasons[path] = (reason,)
    for document in corpus.documents():
        if document.problems:
            reasons[document.path] = document.problems
    return dict(sorted(reasons.items()))
