"""Memories that others supersede: which they are, and that they come after their successors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ragdocs.search.corpus import Corpus
from ragdocs.system.names import link_key, link_keys
from ragdocs.text.link_kinds import SUPERSEDED_BY, SUPERSEDES
from ragdocs.types import Document, Findings, Hit, Query, Signal

# Successors of successors that are followed.
MOST_STEPS = 10
# Pairs that a note names.
MOST_NAMED = 3
# The signal of a memory that comes where the one that it supersedes was found.
SUCCESSION = "succession"

# Ids of documents, and those that supersede each of them.
Successors = Mapping[str, tuple[Document, ...]]


@dataclass(frozen=True, slots=True)
class Succession:
    """What the memories of a lane say about which of them no longer holds."""

    corpus: Corpus
    now: datetime

    def successors(self, documents: Sequence[Document]) -> Successors:
        """Map those documents that others supersede to the last of their successors.

        Two that supersede each other say nothing about which of them holds, so neither counts.
        """
        direct: dict[str, list[Document]] = {}
        latest = list(documents)
        for _ in range(MOST_STEPS):
            steps = self._direct(latest)
            direct |= steps
            following = {}
            for successors in steps.values():
                for document in successors:
                    following[document.id] = document
            latest = [found for found in following.values() if found.id not in direct]
            if not latest:
                break
        superseded = {}
        for document in documents:
            last = _last(document.id, direct)
            if last:
                superseded[document.id] = last
        return superseded

    def successors_in_lane(self, documents: Sequence[Document]) -> Successors:
        """Do the same for all documents of the lane that count, if one of them supersedes any."""
        kinds = set()
        for document in documents:
            for link in document.links:
                kinds.add(link.kind)
        if kinds.isdisjoint((SUPERSEDES, *SUPERSEDED_BY)):
            return {}
        return self.successors(documents)

    def follow(self, findings: Findings, query: Query) -> Findings:
        """Name the successors of hits, and put them before the hits that they supersede.

        A successor that was found by less, or not at all, comes with the score of what it
        supersedes: what replaced the answer is the answer.
        """
        superseded = self.among(findings)
        if not superseded:
            return findings
        by_id = {hit.document.id: hit for hit in findings.hits}
        ordered: list[Hit] = []
        placed: set[str] = set()
        for hit in findings.hits:
            if len(ordered) >= query.limit:
                break
            successors = superseded.get(hit.document.id, ())
            for document in successors:
                if document.id in placed:
                    continue
                successor = by_id.get(document.id) or self._found(document, query)
                if successor is not None:
                    placed.add(document.id)
                    ordered.append(_with_score(successor, hit.score))
            if hit.document.id not in placed:
                placed.add(hit.document.id)
                ordered.append(replace(hit, successors=successors))
        hits = tuple(ordered[: query.limit])
        total = len(findings.hits) + findings.omitted
        return replace(findings, hits=hits, omitted=max(0, total - len(hits)))

    def among(self, findings: Findings) -> Successors:
        """Map the hits that others supersede to their successors."""
        documents = []
        for hit in findings.hits:
            documents.append(hit.document)
        return self.successors(documents)

    def named(self, findings: Findings) -> Findings:
        """Name the successors of hits, and leave the order as it is."""
        superseded = self.among(findings)
        hits = []
        for hit in findings.hits:
            hits.append(replace(hit, successors=superseded.get(hit.document.id, ())))
        return replace(findings, hits=tuple(hits))

    def current(self, findings: Findings, limit: int) -> Findings:
        """Leave out what others supersede, and say how many those are."""
        superseded = self.among(findings)
        hits = []
        for hit in findings.hits:
            if hit.document.id not in superseded:
                hits.append(hit)
        visible = tuple(hits[:limit])
        # What is left out on purpose is not something more to ask for.
        omitted = findings.omitted + len(hits) - len(visible)
        notes = findings.notes
        if superseded:
            notes = (*notes, _left_out(superseded))
        return replace(findings, hits=visible, omitted=omitted, notes=notes)

    def _direct(self, documents: Sequence[Document]) -> dict[str, list[Document]]:
        """Map documents to those that say that they supersede them, or that they name so."""
        by_name: dict[str, list[Document]] = defaultdict(list)
        for document in documents:
            for name in link_keys(document):
                by_name[name].append(document)
        from ragdocs.verbs.references import find

        direct: dict[str, dict[str, Document]] = {document.id: {} for document in documents}
        claims = self._claims(list(by_name))
        known = self._known(claims)
        for source_id, name in claims:
            # A path means one document, even if others have it as a title.
            owner = known.get(name)
            for document in by_name.get(name, ()):
                if owner is None or owner.id == document.id:
                    self._add(direct[document.id], known.get(source_id), document)
        for document in documents:
            for link in document.links:
                if link.kind in SUPERSEDED_BY:
                    self._add(direct[document.id], find(self.corpus, link.target), document)
        return {name: list(successors.values()) for name, successors in direct.items()}

    def _claims(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """List the ids of memories that supersede something of these names, each with the name."""
        claims = []
        for source_id, links in self.corpus.links(names).items():
            for link in links:
                if link.kind == SUPERSEDES:
                    claims.append((source_id, link_key(link.target)))
        return claims

    def _known(self, claims: Sequence[tuple[str, str]]) -> dict[str, Document]:
        """Map the ids and names of claims to documents, in one call for all of them."""
        names = []
        for source_id, name in claims:
            names.append(source_id)
            names.append(name)
            names.append(self._id(name))
        if not names:
            return {}
        by_name = dict(self.corpus.named(names))
        for _, name in claims:
            owner = by_name.get(self._id(name))
            if owner is not None:
                by_name.setdefault(name, owner)
        return by_name

    def _id(self, name: str) -> str:
        stem = name.removesuffix(".md")
        return f"{self.corpus.lane.name}:{stem}"

    def _add(
        self, successors: dict[str, Document], successor: Document | None, document: Document
    ) -> None:
        """Take a memory as a successor of a document, if it can replace it."""
        if successor is not None and self._holds(successor, document):
            successors[successor.id] = successor

    def _holds(self, successor: Document, document: Document) -> bool:
        """Tell whether a memory can replace another: an archived or expired one does not."""
        is_expired = successor.expires_at is not None and successor.expires_at <= self.now
        is_hidden = successor.status in self.corpus.lane.hidden
        return successor.id != document.id and not is_expired and not is_hidden

    def _found(self, document: Document, query: Query) -> Hit | None:
        """Return a document as a hit of a query, if it passes the filter."""
        where = replace(query.where, prefix=document.path)
        single = replace(query, where=where, limit=1, min_score=0.0, floored=False)
        for hit in self.corpus.search(single, self.now).hits:
            if hit.document.id == document.id:
                return hit
        passages = self.corpus.passages([document.id])[document.id]
        listed = self.corpus.documents(replace(where, hidden=self.corpus.lane.hidden))
        if passages and document in listed:
            return Hit(document, passages[0], 0.0, ())
        return None


def _last(document_id: str, direct: Mapping[str, Sequence[Document]]) -> tuple[Document, ...]:
    """Return the successors that nothing supersedes; none where the chain comes back."""
    last: dict[str, Document] = {}
    waiting = list(direct.get(document_id, ()))
    seen = set()
    while waiting:
        document = waiting.pop()
        if document.id == document_id:
            return ()
        if document.id in seen:
            continue
        seen.add(document.id)
        further = direct.get(document.id, ())
        if further:
            waiting += further
        else:
            last[document.id] = document
    return tuple(sorted(last.values(), key=lambda document: document.path))


def _left_out(superseded: Successors) -> str:
    """Say which memories are left out, and for which others."""
    pairs = []
    for name, successors in sorted(superseded.items())[:MOST_NAMED]:
        pairs.append(f"{name} for {successors[0].id}")
    if len(superseded) > MOST_NAMED:
        pairs.append(f"{len(superseded) - MOST_NAMED} more")
    return f"superseded memories are left out: {', '.join(pairs)}"


def _with_score(hit: Hit, score: float) -> Hit:
    """Return a hit with at least a score, and the signal that says where it comes from."""
    if hit.score >= score:
        return hit
    signal = Signal("query", SUCCESSION, 0, score, score - hit.score)
    return replace(hit, score=score, signals=(*hit.signals, signal))
