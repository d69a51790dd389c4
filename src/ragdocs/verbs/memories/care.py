"""Looking after entries: expired ones go to the trash, doubtful ones are listed for review."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ragdocs.errors import ConflictError, NotFoundError
from ragdocs.protocols import AccessLog
from ragdocs.search.corpus import Corpus
from ragdocs.system.names import own_id
from ragdocs.types import Discard, Document, Filter
from ragdocs.verbs import page
from ragdocs.verbs.memories.entry_shapes import Expired, ExpiredEntry, Reviewed, ReviewedEntry
from ragdocs.verbs.memories.find import preview
from ragdocs.verbs.memories.merge import similar_pairs

# Entries with this similarity say the same in other words; suggestions to merge begin there too.
ALIKE = 0.85
# An entry deserves a month to be needed once.
NEEDED_WITHIN = timedelta(days=30)
OLD = timedelta(days=180)

# The similarity of two entries, the older one and the newer one.
Replacement = tuple[float, Document, Document]


@dataclass(slots=True)
class _Doubts:
    """Why an entry should be looked at, and the id of one that replaces it."""

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
        moved = 0
        result, notes = [], []
        for document in self.corpus.documents():
            if document.expires_at is None or document.expires_at > now:
                continue
            entry = self._expired(document, document.expires_at)
            if not dry_run:
                # The version that expired: one that was given more time since stays.
                discard = Discard(document.path, document.version)
                try:
                    written = self.corpus.commit([discard], "delete")
                except (ConflictError, NotFoundError) as error:
                    notes.append(f"{document.path} stays: {error.message}")
                    continue
                entry["movedTo"] = written[0].moved_to
                moved += 1
            result.append(entry)
        return Expired(result=result, moved=moved, notes=notes)

    def review(self, limit: int = 20) -> Reviewed:
        """List entries that are old, never used, or replaced by a newer one much like them."""
        page.check_limit(limit)
        now = self.clock()
        entries = self._entries(now)
        doubts = self._doubts(entries, now)
        doubtful = [document for document in entries if doubts[document.id].reasons]

        def order(document: Document) -> tuple[int, datetime, str]:
            reasons = doubts[document.id].reasons
            return -len(reasons), _created(document), document.path

        doubtful.sort(key=order)
        result = []
        for document in doubtful[:limit]:
            reviewed = self._reviewed(document, doubts[document.id], now)
            result.append(reviewed)
        return Reviewed(
            result=result,
            omitted=len(doubtful) - len(result),
            notes=list(self.corpus.notes()),
        )

    def _entries(self, now: datetime) -> list[Document]:
        """List the live memories that were added as entries; reads of others are not counted."""
        entries = []
        for document in self.corpus.documents(self._live(now)):
            if document.source and document.created_at:
                entries.append(document)
        return entries

    def _live(self, now: datetime) -> Filter:
        return Filter(hidden=self.corpus.lane.hidden, alive_at=now)

    def _doubts(self, entries: Sequence[Document], now: datetime) -> Mapping[str, _Doubts]:
        doubts = {document.id: _Doubts() for document in entries}
        for similarity, older, newer in self._replacements(entries, now):
            doubt = doubts[older.id]
            if doubt.newer:
                continue
            doubt.newer = own_id(newer)
            reason = f"superseded by {doubt.newer}, similarity {similarity:.2f}"
            doubt.reasons.append(reason)
        read = self.access.counts("get")
        used = self.access.counts("used")
        for document in entries:
            entry_id = own_id(document)
            age = now - _created(document)
            reasons = doubts[document.id].reasons
            is_needed = entry_id in read or entry_id in used
            if age > NEEDED_WITHIN and not is_needed:
                reasons.append("never used")
            if age > OLD:
                reasons.append(f"older than {OLD.days} days")
        return doubts

    def _replacements(self, entries: Sequence[Document], now: datetime) -> list[Replacement]:
        """Return the entries of one type that say nearly the same, the most alike first."""
        replacements = []
        pairs = similar_pairs(self.corpus, entries, self._live(now), ALIKE)
        for similarity, first, second in pairs:
            pair = (entries[first], entries[second])
            older, newer = sorted(pair, key=_created)
            if older.kind != newer.kind:
                continue
            if _created(older) < _created(newer):
                replacements.append((similarity, older, newer))
        return replacements

    def _expired(self, document: Document, expires_at: datetime) -> ExpiredEntry:
        return ExpiredEntry(
            id=own_id(document),
            path=self.corpus.store.locate(document.path),
            expiredAt=page.iso(expires_at),
            preview=preview(self.corpus, document),
            movedTo="",
        )

    def _reviewed(self, document: Document, doubts: _Doubts, now: datetime) -> ReviewedEntry:
        return ReviewedEntry(
            id=own_id(document),
            path=self.corpus.store.locate(document.path),
            reasons=doubts.reasons,
            age=page.age(document.created_at, now),
            preview=preview(self.corpus, document),
            supersededBy=doubts.newer,
        )


def _created(document: Document) -> datetime:
    assert document.created_at is not None
    return document.created_at
