"""Memories that others supersede, in lists that no search has made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ragdocs.search import succession
from ragdocs.search.corpus import Corpus
from ragdocs.search.succession import Successors
from ragdocs.types import Document, Findings


@dataclass(frozen=True, slots=True)
class Succession:
    """What the memories of a lane say about which of them no longer holds."""

    corpus: Corpus
    now: datetime

    def successors(self, documents: Sequence[Document]) -> Successors:
        """Map those documents that others supersede to the last of their successors."""
        others = self.corpus.tied(documents, succession.KINDS)
        present = succession.Present(self.now, self.corpus.lane.hidden)
        return succession.successors(documents, others, present)

    def named(self, findings: Findings) -> Findings:
        """Name the successors of hits, and leave the order as it is."""
        superseded = self.successors([hit.document for hit in findings.hits])
        hits = []
        for hit in findings.hits:
            hits.append(replace(hit, successors=superseded.get(hit.document.id, ())))
        return replace(findings, hits=tuple(hits))
