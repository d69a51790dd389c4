"""Looking after entries: expired ones go to the trash, doubtful ones are listed for review."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ragdocs.errors import ConflictError, NotFoundError
from ragdocs.protocols import AccessLog
from ragdocs.search.corpus import Corpus
from ragdocs.system.names import own_id
from ragdocs.types import Discard, Document, Filter
from ragdocs.verbs import page
from ragdocs.verbs.memories.find import beginning
from ragdocs.verbs.memories.merge import similar_pairs

# Entries with this similarity say the same in other words; suggestions to merge begin there too.
ALIKE = 0.85
# An entry deserves a month to be needed once.
NEEDED_WITHIN = timedelta(days=30)
OLD = timedelta(days=180)

# The similarity of two entries, the older one and the newer one.
Replacement = tuple[float, Document, Document]


@dataclass(frozen=True, slots=True)
class ExpiredMemory:
    """A memory whose time is over, and its path in the trash if it was moved there."""

    id: str
    location: str
    expired_at: datetime
    beginning: str
    moved_to: str = ""


@dataclass(frozen=True, slots=True)
class Expiry:
    """The memories whose time is over, and notes about those that stay."""

    memories: Sequence[ExpiredMemory]
    notes: Sequence[str]


@dataclass(frozen=True, slots=True)
class Doubts:
    """Why an entry should be looked at.

    `newer` is the id of an entry that says the same, `similarity` how alike the two are.
    `older_than_days` is 0 for an entry that is not old.
    """

    newer: str = ""
    similarity: float = 0.0
    is_unused: bool = False
    older_than_days: int = 0

    @property
    def count(self) -> int:
        """The number of reasons."""
        return bool(self.newer) + self.is_unused + bool(self.older_than_days)


@dataclass(frozen=True, slots=True)
class DoubtfulEntry:
    """An entry that somebody might look at."""

    id: str
    location: str
    doubts: Doubts
    created_at: datetime
    beginning: str


@dataclass(frozen=True, slots=True)
class Review:
    """The entries with most doubts, and how many more there are."""

    entries: Sequence[DoubtfulEntry]
    omitted: int
    notes: Sequence[str]


@dataclass(frozen=True, slots=True)
class EntryCare:
    """What a person asks now and then."""

    corpus: Corpus
    access: AccessLog
    clock: Callable[[], datetime]

    def expire(self, *, dry_run: bool = False) -> Expiry:
        """Move memories whose time is over to the trash, or only list them."""
        now = self.clock()
        memories = []
        notes = []
        for document in self.corpus.documents():
            if document.expires_at is None or document.expires_at > now:
                continue
            memory = self._expired(document, document.expires_at)
            if not dry_run:
                # The version that expired: one that was given more time since stays.
                discard = Discard(document.path, document.version)
                try:
                    written = self.corpus.commit([discard], "delete")
                except (ConflictError, NotFoundError) as error:
                    notes.append(f"{document.path} stays: {error.message}")
                    continue
                memory = replace(memory, moved_to=written[0].moved_to)
            memories.append(memory)
        return Expiry(memories, notes)

    def review(self, limit: int = 20) -> Review:
        """List entries that are old, never used, or replaced by a newer one much like them."""
        page.check_limit(limit)
        now = self.clock()
        entries = self._entries(now)
        doubts = self._doubts(entries, now)
        doubtful = [document for document in entries if doubts[document.id].count]

        def order(document: Document) -> tuple[int, datetime, str]:
            return -doubts[document.id].count, _created(document), document.path

        doubtful.sort(key=order)
        listed = []
        for document in doubtful[:limit]:
            listed.append(self._doubtful(document, doubts[document.id]))
        return Review(listed, len(doubtful) - len(listed), self.corpus.notes())

    def _entries(self, now: datetime) -> list[Document]:
        """List the live memories that were added as entries; reads of others are not counted."""
        entries = []
        for document in self.corpus.documents(self._live(now)):
            if document.source and document.created_at:
                entries.append(document)
        return entries

    def _live(self, now: datetime) -> Filter:
        return Filter(hidden=self.corpus.lane.hidden, alive_at=now)

    def _doubts(self, entries: Sequence[Document], now: datetime) -> Mapping[str, Doubts]:
        superseded: dict[str, Doubts] = {}
        for similarity, older, newer in self._replacements(entries, now):
            superseded.setdefault(older.id, Doubts(own_id(newer), similarity))
        doubts = {}
        read = self.access.counts("get")
        used = self.access.counts("used")
        for document in entries:
            entry_id = own_id(document)
            age = now - _created(document)
            is_needed = entry_id in read or entry_id in used
            doubt = superseded.get(document.id, Doubts())
            if age > NEEDED_WITHIN and not is_needed:
                doubt = replace(doubt, is_unused=True)
            if age > OLD:
                doubt = replace(doubt, older_than_days=OLD.days)
            doubts[document.id] = doubt
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

    def _expired(self, document: Document, expires_at: datetime) -> ExpiredMemory:
        return ExpiredMemory(
            own_id(document),
            self.corpus.store.locate(document.path),
            expires_at,
            beginning(self.corpus, document),
        )

    def _doubtful(self, document: Document, doubts: Doubts) -> DoubtfulEntry:
        return DoubtfulEntry(
            own_id(document),
            self.corpus.store.locate(document.path),
            doubts,
            _created(document),
            beginning(self.corpus, document),
        )


def _created(document: Document) -> datetime:
    assert document.created_at is not None
    return document.created_at
