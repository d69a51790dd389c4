"""Why a document answers a query, or at which stage of the search it dropped out."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from ragdocs.errors import NotFoundError, ValidationError
from ragdocs.search.corpus import Corpus
from ragdocs.search.floor import FLOOR
from ragdocs.search.query import Measured
from ragdocs.types import Document, Filter, Hit, Probe, Query
from ragdocs.verbs import page, references

PUNCTUATION = ".,;:!?\"'()"
EXPIRED = "filtered: it expired"

Stage = Literal[
    "not indexed",
    "filtered",
    "other words",
    "not a candidate",
    "below the floor",
    "cut by limit",
    "shown",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Where a document stands for a query: the stage it reached, and its best passage."""

    query: str
    path: str
    limit: int
    stage: Stage
    # Why it is not indexed, or which filter leaves it out.
    reason: str = ""
    expired_at: datetime | None = None
    # The number of its first hit, 0 for none.
    position: int = 0
    hit: Hit | None = None
    # What the sources say of the passage; nothing where it is not indexed.
    measured: Measured | None = None
    # The words of the query that the passage has not.
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explain:
    """What can be asked about the search itself."""

    corpus: Corpus
    clock: Callable[[], datetime]

    def explain(
        self, query: str, path: str, limit: int = 5, *, tags: Sequence[str] = (), kind: str = ""
    ) -> Explanation:
        """Tell where a document stands for a query, or at which stage it dropped out."""
        page.check_limit(limit)
        if not query.strip():
            raise ValidationError("the query is empty", "Give the words that were searched for")
        name = path.strip().removeprefix("./")
        document = references.find(self.corpus, name)
        if document is None:
            reason = self._absence(name)
            return Explanation(
                query=query, path=name, limit=limit, stage="not indexed", reason=reason
            )
        where = Filter(tags=tuple(tags))
        if kind:
            where = replace(where, kinds=(kind,))
        now = self.clock()
        search = Query(probes=(Probe(query),), limit=page.MOST_RESULTS, where=where)
        position, hit = _position(self.corpus.search(search, now).hits, document)
        passage_id = hit.chunk.id if hit else ""
        measured = self.corpus.measure(query, document.id, passage_id)
        explanation = Explanation(
            query=query,
            path=document.path,
            limit=limit,
            stage=self._stage(replace(search, limit=limit), document, hit, measured),
            position=position,
            hit=hit,
            measured=measured,
            missing=_missing(query, measured),
        )
        reason = self._objection(document, where, now) or self._other_variant(query, document)
        if not reason:
            return explanation
        if reason == EXPIRED:
            explanation = replace(explanation, expired_at=document.expires_at)
        return replace(explanation, stage="filtered", reason=reason)

    def _absence(self, name: str) -> str:
        """Tell why a path is not in the index."""
        scan = self.corpus.store.scan([name])
        problem = self.corpus.skipped.get(name) or scan.unreadable.get(name)
        if problem:
            return f"not indexed: {problem}"
        if name in scan.stamps:
            when = "will be read with the next look at the files"
            return f"not indexed yet: the file is there and {when}"
        return self._unknown(name)

    def _unknown(self, name: str) -> str:
        """Say that no file of a lane has this name, and which names are like it."""
        lane = self.corpus.lane
        paths = [document.path for document in self.corpus.documents()]
        if not paths:
            raise NotFoundError(
                f"the {lane.name} lane is empty", "Add documents, or ask another lane"
            )
        included = ", ".join(lane.include)
        why = f"not indexed: no file of that name belongs to this lane ({included})"
        similar = difflib.get_close_matches(name, paths, n=3, cutoff=0.5)
        if similar:
            why += f"; did you mean {', '.join(similar)}?"
        return why

    def _objection(self, document: Document, where: Filter, now: datetime) -> str:
        """Say which filter leaves a document out before a search looks at it, if one does."""
        hidden = {status.casefold() for status in self.corpus.lane.hidden}
        if document.status.casefold() in hidden:
            return f"filtered: its status is {document.status}, which is left out unless asked for"
        if document.expires_at is not None and document.expires_at <= now:
            return EXPIRED
        if not self._passes(document, Filter(tags=where.tags)):
            return "filtered: it has not the tags asked for"
        if not self._passes(document, Filter(kinds=where.kinds)):
            return "filtered: it has not the type asked for"
        return ""

    def _other_variant(self, query: str, document: Document) -> str:
        """Say in which other language or version the page is shown, if it is."""
        chosen = self.corpus.variants.chosen(Query(probes=(Probe(query),)))
        if document.path not in chosen.where.without:
            return ""
        preferred = ""
        for sibling in self.corpus.variants.siblings(document.path):
            if sibling.path not in chosen.where.without:
                preferred = sibling.path
        return f"filtered: the page is shown in another language or version: {preferred}"

    def _passes(self, document: Document, where: Filter) -> bool:
        return any(document.id == other.id for other in self.corpus.documents(where))

    def _stage(
        self, search: Query, document: Document, hit: Hit | None, measured: Measured
    ) -> Stage:
        """Name the first stage that keeps the document out, or say that nothing does."""
        if hit is None:
            if not measured.words and not measured.keyword:
                return "other words"
            return "not a candidate"
        # What others score and what a filter leaves decide, too, so the search itself is asked.
        visible = self.corpus.search(replace(search, floored=True), self.clock()).hits
        if any(other.document.id == document.id for other in visible):
            return "shown"
        if not visible and hit.score < FLOOR:
            return "below the floor"
        return "cut by limit"


def _missing(query: str, measured: Measured) -> tuple[str, ...]:
    """Return the words of a query that a passage has not."""
    missing = []
    for word in dict.fromkeys(query.split()):
        if word.strip(PUNCTUATION) not in measured.words:
            missing.append(word)
    return tuple(missing)


def _position(hits: Sequence[Hit], document: Document) -> tuple[int, Hit | None]:
    """Return the first hit in a document and its number, or 0 if there is none."""
    for position, hit in enumerate(hits, start=1):
        if hit.document.id == document.id:
            return position, hit
    return 0, None
