"""What supersedes what, as documents say by links, and what that does to an answer.

All of it is worked out from documents at hand; an index only says which ones links join.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ragdocs.system.names import link_key, link_keys
from ragdocs.text.link_kinds import SUPERSEDED_BY, SUPERSEDES
from ragdocs.types import Document, Findings, Hit, Query, Signal

# The links by which documents say so.
KINDS = frozenset({SUPERSEDES, *SUPERSEDED_BY})
# Pairs that a note names.
MOST_NAMED = 3
# The signal of a document that comes where the one that it supersedes was found.
SUCCESSION = "succession"

# Ids of documents, and those that supersede each of them.
Successors = Mapping[str, tuple[Document, ...]]


@dataclass(frozen=True, slots=True)
class Present:
    """What can replace another document now: an archived or expired one does not."""

    now: datetime
    hidden: Sequence[str]

    def holds(self, document: Document) -> bool:
        """Tell whether a document still says what is true."""
        is_expired = document.expires_at is not None and document.expires_at <= self.now
        return not is_expired and document.status not in self.hidden


def successors(
    documents: Sequence[Document], others: Iterable[Document], present: Present
) -> Successors:
    """Map those documents that others supersede to the last of their successors.

    The others are those that links join to them. Two that supersede each other say nothing about
    which of them holds, so neither counts.
    """
    direct = _direct((*documents, *others), present)
    superseded = {}
    for document in documents:
        last = _last(document.id, direct)
        if last:
            superseded[document.id] = last
    return superseded


def is_tied(document: Document) -> bool:
    """Tell whether a document says what it supersedes, or what supersedes it."""
    return any(link.kind in KINDS for link in document.links)


def _direct(documents: Sequence[Document], present: Present) -> Mapping[str, Sequence[Document]]:
    """Map documents to those that say that they supersede them, or that they name so."""
    direct: dict[str, dict[str, Document]] = defaultdict(dict)
    names: _Names | None = None
    for document in documents:
        for link in document.links:
            if link.kind not in KINDS:
                continue
            names = names or _Names.of(documents)
            other = names.meant(link.target)
            if other is None:
                continue
            earlier, later = other, document
            if link.kind != SUPERSEDES:
                earlier, later = document, other
            if earlier.id != later.id and present.holds(later):
                direct[earlier.id][later.id] = later
    return {earlier: list(later.values()) for earlier, later in direct.items()}


@dataclass(frozen=True, slots=True)
class _Names:
    """Documents by the names that links may give them."""

    by_path: Mapping[str, Document]
    by_name: Mapping[str, Sequence[Document]]

    @classmethod
    def of(cls, documents: Sequence[Document]) -> _Names:
        by_path = {}
        by_name: dict[str, list[Document]] = defaultdict(list)
        for document in documents:
            by_path[link_key(document.path)] = document
            by_path[link_key(document.path.removesuffix(".md"))] = document
            for name in link_keys(document):
                by_name[name].append(document)
        return cls(by_path, by_name)

    def meant(self, name: str) -> Document | None:
        """Return what a link means: a path is one document, even if others have it as a title.

        A name that several have means none: whoever reads a list would miss the others.
        """
        key = link_key(name)
        named = self.by_name.get(key, ())
        if key not in self.by_path and len(named) == 1:
            return named[0]
        return self.by_path.get(key)


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


# --- the hits of an answer, which name their successors ---


def settled(findings: Findings, query: Query) -> Findings:
    """Put successors where the query wants them."""
    if query.superseded == "below":
        return _below(findings, query.limit)
    if query.superseded == "left out":
        return current(_below(findings, 2 * query.limit), query.limit)
    return findings


def current(findings: Findings, limit: int) -> Findings:
    """Leave out what others supersede, and say how many those are."""
    hits = []
    superseded = {}
    for hit in findings.hits:
        if hit.successors:
            superseded[hit.document.id] = hit.successors
        else:
            hits.append(hit)
    visible = tuple(hits[:limit])
    # What is left out on purpose is not something more to ask for.
    omitted = findings.omitted + len(hits) - len(visible)
    notes = findings.notes
    if superseded:
        notes = (*notes, _left_out(superseded))
    return replace(findings, hits=visible, omitted=omitted, notes=notes)


def _below(findings: Findings, limit: int) -> Findings:
    """Put successors before the hits that they supersede.

    A successor that was found by less, or not at all, comes with the score of what it supersedes:
    what replaced the answer is the answer.
    """
    if not any(hit.successors for hit in findings.hits):
        return findings
    by_id = dict(findings.successors)
    for hit in findings.hits:
        by_id.setdefault(hit.document.id, hit)
    ordered: list[Hit] = []
    placed: set[str] = set()
    for hit in findings.hits:
        if len(ordered) >= limit:
            break
        for document in hit.successors:
            successor = by_id.get(document.id)
            if successor is not None and document.id not in placed:
                placed.add(document.id)
                ordered.append(_with_score(successor, hit.score))
        if hit.document.id not in placed:
            placed.add(hit.document.id)
            ordered.append(hit)
    hits = tuple(ordered[:limit])
    total = len(findings.hits) + findings.omitted
    return replace(findings, hits=hits, omitted=max(0, total - len(hits)))


def _with_score(hit: Hit, score: float) -> Hit:
    """Return a hit with at least a score, and the signal that says where it comes from."""
    if hit.score >= score:
        return hit
    signal = Signal("query", SUCCESSION, 0, score, score - hit.score)
    return replace(hit, score=score, signals=(*hit.signals, signal))


def _left_out(superseded: Successors) -> str:
    """Say which documents are left out, and for which others."""
    pairs = []
    for name, later in sorted(superseded.items())[:MOST_NAMED]:
        pairs.append(f"{name} for {later[0].id}")
    if len(superseded) > MOST_NAMED:
        pairs.append(f"{len(superseded) - MOST_NAMED} more")
    return f"superseded memories are left out: {', '.join(pairs)}"
