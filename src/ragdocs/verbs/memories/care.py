"""Entries in the course of time.

Those whose time is over go to the trash, others are named for somebody to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ragdocs.errors import ConflictError, NotFoundError
from ragdocs.protocols import AccessLog
from ragdocs.search.corpus import Corpus
from ragdocs.system.names import own_id
from ragdocs.types import Discard, Document, Filter
from ragdocs.verbs import page as answers
from ragdocs.verbs.memories.entry_shapes import Expired, ExpiredEntry, Reviewed, ReviewedEntry
from ragdocs.verbs.memories.merge import PREVIEW, similar_pairs

# What is as alike as this says the same in other words; the same measure as for suggestions to
# merge.
ALIKE = 0.85
# An entry deserves a month to be needed once.
NEEDED_WITHIN = timedelta(days=30)
OLD = timedelta(days=180)


@dataclass(slots=True)
class _Doubts:
    """Why an entry should be looked at."""

    reasons: list[str] = field(default_factory=list)
    newer: str = ""


@dataclass(frozen=True, slots=True)
class EntryCare:
    """What a person asks now and then."""

    corpus: Corpus
    access: AccessLog
    clock: Callable[[], datetime]

    def expire(self, *, dry_run: bool = False) -> Expired:
        """Move memories whose time is over to the trash, or only list them."""
        now = self.clock()
        result, notes = [], []
        for document in self.corpus.index.documents():
            if document.expires_at is None or document.expires_at > now:
                continue
            preview, moved_to = self._preview(document), ""
            if not dry_run:
                try:
                    # The version that said so: one that was given more time since stays.
                    moved_to = self.corpus.commit(
                        [Discard(document.path, document.version)], "delete"
                    )[0].moved_to
                except (ConflictError, NotFoundError) as error:
                    notes.append(f"{document.path} stays: {error.message}")
                    continue
            expired_at = answers.iso(document.expires_at)
            place = self.corpus.store.locate(document.path)
            result.append(
                ExpiredEntry(
                    id=own_id(document),
                    path=place,
                    expiredAt=expired_at,
                    preview=preview,
                    movedTo=moved_to,
                )
            )
        return Expired(result=result, moved=0 if dry_run else len(result), notes=notes)

    def review(self, limit: int = 20) -> Reviewed:
        """List entries that are old, never used.

        Or replaced by a newer one that says nearly the same.
        """
        answers.check_limit(limit)
        now = self.clock()
        alive = self.corpus.index.documents(Filter(hidden=self.corpus.lane.hidden, alive_at=now))
        # What was written otherwise is read otherwise too, and nobody counts that.
        entries = [document for document in alive if document.source and document.created_at]
        doubts = self._doubts(entries, now)
        doubted = [document for document in entries if doubts[document.id].reasons]
        doubted.sort(key=lambda one: (-len(doubts[one.id].reasons), _created(one), one.path))
        result = [
            ReviewedEntry(
                id=own_id(document),
                path=self.corpus.store.locate(document.path),
                reasons=doubts[document.id].reasons,
                age=answers.age(document.created_at, now),
                preview=self._preview(document),
                supersededBy=doubts[document.id].newer,
            )
            for document in doubted[:limit]
        ]
        return Reviewed(
            result=result, omitted=len(doubted) - len(result), notes=list(self.corpus.notes())
        )

    def _doubts(self, entries: Sequence[Document], now: datetime) -> Mapping[str, _Doubts]:
        found = {document.id: _Doubts() for document in entries}
        for similarity, older, newer in self._replaced(entries):
            doubts = found[entries[older].id]
            if not doubts.newer:
                doubts.newer = own_id(entries[newer])
                doubts.reasons.append(f"superseded by {doubts.newer}, similarity {similarity:.2f}")
        needed = self.access.counts("get").keys() | self.access.counts("used").keys()
        for document in entries:
            age = now - _created(document)
            if age > NEEDED_WITHIN and own_id(document) not in needed:
                found[document.id].reasons.append("never used")
            if age > OLD:
                found[document.id].reasons.append(f"older than {OLD.days} days")
        return found

    def _replaced(self, entries: Sequence[Document]) -> list[tuple[float, int, int]]:
        """Return (similarity, older, newer) for entries of one type that say nearly the same.

        The most alike first.
        """
        vectors = self.corpus.index.vectors([document.id for document in entries])
        pairs = []
        for similarity, one, other in similar_pairs(vectors, ALIKE):
            if entries[one].kind == entries[other].kind and _created(entries[one]) != _created(
                entries[other]
            ):
                older, newer = sorted((one, other), key=lambda place: _created(entries[place]))
                pairs.append((similarity, older, newer))
        return pairs

    def _preview(self, document: Document) -> str:
        index = self.corpus.index
        with index.held():
            loaded = index.load(index.chunks(document.id)[:1])
        return answers.cut(" ".join(loaded[0][1].text.split()), PREVIEW) if loaded else ""


def _created(document: Document) -> datetime:
    assert document.created_at is not None
    return document.created_at
