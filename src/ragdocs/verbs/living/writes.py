"""What a write of a memory says about its links: nothing, where its text only grew or stayed."""

from __future__ import annotations

from ragdocs.errors import RagdocsError
from ragdocs.search.corpus import Corpus
from ragdocs.text import frontmatter
from ragdocs.types import Document, Link
from ragdocs.verbs.living.ledger import Baseline

# Changes that do not look at what was there before: earlier baselines stay.
ADDING = ("append", "rename", "restore", "undo")


def keeps(corpus: Corpus, document: Document, verb: str, baseline: Baseline) -> bool:
    """Tell whether a write says nothing about a link: it adds to the text, or leaves it as it is.

    Only whoever writes a text anew has looked at what it is about.
    """
    if verb in ADDING:
        return True
    if baseline.version == document.version:
        return False
    return _has_body(corpus, document, _recovered(corpus, baseline.version))


def stood_before(corpus: Corpus, document: Document, verb: str, version: str, link: Link) -> bool:
    """Tell whether a link was in the text that was replaced, and the write says nothing about it.

    By the name of its file: a link may be written in several ways.
    """
    before = _recovered(corpus, version)
    if verb in ADDING:
        return link.target.rpartition("/")[2] in before
    return _has_body(corpus, document, before)


def _recovered(corpus: Corpus, version: str) -> str:
    """Return an earlier text, or nothing where there is none."""
    if not version:
        return ""
    try:
        return corpus.versioned.recover(version)
    except RagdocsError:
        return ""


def _has_body(corpus: Corpus, document: Document, before: str) -> bool:
    """Tell whether a memory still says what an earlier text said; its fields may differ."""
    if not before:
        return False
    try:
        after = corpus.store.read(document.path).text
    except RagdocsError:
        return False
    return frontmatter.split(before)[1] == frontmatter.split(after)[1]
