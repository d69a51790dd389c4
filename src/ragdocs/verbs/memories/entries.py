"""Entries: memories that are added without a name, found by what they say.

And known by an id that stays.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from ragdocs.errors import (
    AlreadyExistsError,
    ConflictError,
    NotFoundError,
    RagdocsError,
    UnavailableError,
    ValidationError,
)
from ragdocs.search.corpus import Corpus
from ragdocs.search.parse import parse
from ragdocs.search.query import STRANGERS
from ragdocs.stores.access import AccessLog
from ragdocs.system.names import ENTRIES, own_id
from ragdocs.text import frontmatter as metadata
from ragdocs.types import (
    UNSAID_CONFIDENCE,
    UNSAID_IMPORTANCE,
    Discard,
    Document,
    Expect,
    Hit,
    Probe,
    Put,
    Query,
    Source,
    Written,
)
from ragdocs.verbs import page as answers
from ragdocs.verbs import references
from ragdocs.verbs.memories import daily_log, entry_rules
from ragdocs.verbs.memories.entry_rules import NewEntry, Wanted
from ragdocs.verbs.memories.entry_shapes import (
    EntryAdded,
    EntryDeleted,
    EntryFields,
    EntryFound,
    EntryHit,
    EntryHits,
    EntryStats,
    EntryText,
)

# What each way of searching asks: meaning and words, as a share of 1.
MODES = {"vector": (1.0, 0.0), "keyword": (0.0, 1.0)}
HYBRID = "hybrid"
# The source of what nobody added through here but a person or another program wrote as a file.
FILES = "file-index"
# Of the context of an entry among others; one that is read alone has the whole.
SHOWN_CONTEXT = 300
# Importance that uses can earn, in points: a first use one, three of them both.
MOST_EARNED = 2.0
# Hexadecimal digits of an id. An id that is taken by another text, or by an edited one, leads to
# the next of five.
DIGITS = 12
# What an entry takes in an answer beside its content.
BESIDE_CONTENT = 3000

# Two that add the same at once both get an answer; so many lost races in a row mean that something
# else is wrong.
TRIES = 50

_BLANK_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")


@dataclass(frozen=True, slots=True)
class Entries:
    """What can be asked of memories as entries.

    `vector_weight` is what meaning counts beside words.
    """

    corpus: Corpus
    access: AccessLog
    clock: Callable[[], datetime]
    budget: int
    vector_weight: float

    def add(self, new: NewEntry) -> EntryAdded:
        """Write an entry, unless one with the same content is there."""
        now = self.clock()
        fields = entry_rules.fields(new, now)
        cleaned = self.corpus.redactor.redact(_bare(new.content))
        for new_id in _ids(cleaned.text):
            added = self._add_as(new_id, cleaned.text, fields, now)
            if added:
                break
        else:
            raise AlreadyExistsError(
                "all ids of this text are taken by other texts", "Say it in other words"
            )
        if added["created"]:
            removed = tuple(
                f"{finding.rule} in line {finding.line} of the content"
                for finding in cleaned.findings
            )
            added["warnings"] += answers.removed(Written(added["path"], removed=removed))
            added["warnings"] += self._logged(now, new.kind, str(fields["source"]), cleaned.text)
        return added

    def search(
        self, query: str, mode: str = HYBRID, limit: int = 10, wanted: Wanted | None = None
    ) -> EntryHits:
        """Find entries by meaning, by words or by both.

        Importance and confidence order what is nearly equal.
        """
        answers.check_limit(limit)
        if mode not in {HYBRID, *MODES}:
            raise ValidationError(
                f"{mode[:40]!r} is not a mode", f"Use {', '.join((HYBRID, *MODES))}"
            )
        now = self.clock()
        asked = Query(
            probes=(Probe(query),),
            # By links alone an entry is found only where both ways are asked for.
            limit=limit if mode == HYBRID else limit + STRANGERS,
            where=entry_rules.where(wanted or Wanted()),
            weights=MODES.get(mode, (self.vector_weight, 1 - self.vector_weight)),
            earned=_Earned(self.corpus, self.access.counts("used")),
        )
        findings = self.corpus.search(asked, now)
        if mode == "vector" and self.corpus.silence:
            raise UnavailableError(f"a search by meaning needs embeddings: {self.corpus.silence}")
        found = [hit for hit in findings.hits if mode == HYBRID or _matched_by(hit) == mode]
        hits = tuple(map(_plain, found[:limit]))
        kept = replace(findings, hits=hits, omitted=findings.omitted + len(found) - len(hits))
        shaped, omitted, notes = answers.fit(kept, lambda hit: self._hit(hit, now), self.budget)
        shown = [(one["id"], one["score"]) for one in shaped]
        self.access.note(
            "search", shown, now, self.corpus.redactor.redact(query).text if shown else ""
        )
        return EntryHits(results=shaped, total=len(shaped) + omitted, notes=notes)

    def get(self, entry_id: str, *, used: bool = False) -> EntryFound:
        """Return one entry and note that it was read, or that it was of use."""
        now = self.clock()
        document = self.find(entry_id)
        content = self._content(document.path) if document else None
        if document is None or content is None:
            return EntryFound(found=False, entry=None, message=_absent(self._named(entry_id)))
        shown = answers.cut(content, max(answers.LEAST_CONTENT, self.budget - BESIDE_CONTENT))
        expired = document.expires_at is not None and document.expires_at <= now
        said = [f"it expired {answers.age(document.expires_at, now)}"] if expired else []
        said += ["the content is cut; the file at path has the rest"] if shown != content else []
        if (
            not self.access.note("used" if used else "get", [(own_id(document), None)], now)
            and used
        ):
            said.append("the use could not be noted")
        accesses, last = self.access.of(own_id(document))
        entry = EntryText(
            **self._described(document, now, self.budget // 4),
            updatedAt=_milliseconds(document.modified_at),
            expired=expired,
            accesses=accesses,
            lastAccessedAt=_milliseconds(last),
        )
        entry["content"] = shown
        return EntryFound(found=True, entry=entry, message="; ".join(said))

    def stats(self) -> EntryStats:
        """Count entries and accesses."""
        now = self.clock()
        documents = self.corpus.index.documents()
        kinds = answers.tally([document.kind for document in documents])
        shown = dict(answers.within(kinds.items(), self.budget // 2))
        hidden = len(kinds) - len(shown)
        created = sorted(document.created_at for document in documents if document.created_at)
        return EntryStats(
            total=len(documents),
            byType=shown,
            averageImportance=_mean([_importance(document) for document in documents]),
            averageConfidence=_mean([_confidence(document) for document in documents]),
            accesses=self.access.totals(),
            oldest=_milliseconds(created[0]) if created else None,
            newest=_milliseconds(created[-1]) if created else None,
            expired=sum(
                document.expires_at is not None and document.expires_at <= now
                for document in documents
            ),
            notes=[f"{hidden} rarer types are not listed"] if hidden else [],
        )

    def delete(self, entry_id: str) -> EntryDeleted:
        """Move an entry to the trash, if there is one."""
        document = self.find(entry_id)
        written = None
        # Somebody else may have deleted it since the index was made.
        with suppress(NotFoundError):
            written = (
                self.corpus.commit([Discard(document.path)], "delete")[0] if document else None
            )
        if written is None:
            asked = self._named(entry_id)
            return EntryDeleted(id=asked, deleted=False, message=_absent(asked), movedTo="")
        message = f"deleted; it is kept at {written.moved_to}"
        return EntryDeleted(id=entry_id, deleted=True, message=message, movedTo=written.moved_to)

    def _named(self, entry_id: str) -> str:
        """Return what was asked for as it may be repeated.

        What is no id may be anything, a secret too.
        """
        return self.corpus.redactor.redact(entry_id).text[:60]

    def find(self, entry_id: str) -> Document | None:
        """Return the card of an entry by its own id, wherever its file is now.

        Or by any other name of the memory.
        """
        return references.find(self.corpus, entry_id)

    def _add_as(
        self, entry_id: str, content: str, fields: Mapping[str, object], now: datetime
    ) -> EntryAdded | None:
        """Write an entry under this id or find it written.

        Nothing where the id belongs to another text.
        """
        for _ in range(TRIES):
            known = next(iter(references.owners(self.corpus, entry_id)), None)
            path = known.path if known else _home(entry_id)
            existing = self._source(path)
            try:
                if existing is None:
                    return self._create(entry_id, content, fields)
                if not _same_content(_body(existing), content):
                    return None
                document = parse(existing, self.corpus.lane).document
                if self._is_live(document, now):
                    notes = self._ignored(document, fields)
                    return self._added(entry_id, path, created=False, warnings=notes)
                return self._revive(entry_id, existing, document, fields)
            except (AlreadyExistsError, ConflictError, NotFoundError):
                continue  # another process was faster: look again
        raise ConflictError(f"{path} was changed by others {TRIES} times in a row", "Try again")

    def _create(self, entry_id: str, content: str, fields: Mapping[str, object]) -> EntryAdded:
        path = _home(entry_id)
        text = metadata.render({"id": entry_id, **fields}, f"{content}\n")
        written = self.corpus.commit([Put(path, text, Expect.ABSENT)], "create")[0]
        return self._added(entry_id, path, created=True, warnings=answers.removed(written))

    def _revive(
        self, entry_id: str, existing: Source, document: Document, fields: Mapping[str, object]
    ) -> EntryAdded:
        """Make an archived or expired entry live again with the new fields.

        History keeps the earlier text.
        """
        # A field that is None is removed: without a new expiry there is none.
        changed = {"expires_at": None, **fields, "id": entry_id}
        if not fields["tags"]:
            changed.pop("tags")
        header = metadata.set_fields(existing.text, changed)
        put = Put(existing.path, header + metadata.split(existing.text)[1], existing.version)
        written = self.corpus.commit([put], "update")[0]
        was = "archived" if self._is_hidden(document) else "expired"
        note = f"this content was there and {was}; it is live again with these fields, history has the earlier text"
        return self._added(
            entry_id, existing.path, created=True, warnings=[note, *answers.removed(written)]
        )

    def _ignored(self, document: Document, fields: Mapping[str, object]) -> list[str]:
        """Name the fields that were given for a duplicate and differ from those of the entry.

        Nothing is written.
        """
        existing: dict[str, object] = {
            "type": document.kind,
            "source": document.source or FILES,
            "context": _context(document),
            "confidence": _confidence(document),
            "importance": _importance(document),
            "tags": list(document.tags),
            "expires_at": document.expires_at and entry_rules.iso(document.expires_at),
        }
        differing = []
        for name, value in existing.items():
            given = fields.get(name)
            if isinstance(given, str):
                given = self.corpus.redactor.redact(given).text
            # What is as it would be unsaid was hardly meant as a change.
            if given in (None, "", []) or given == entry_rules.UNSAID.get(name) or given == value:
                continue
            if name == "tags" and _folded_tags(fields["tags"]) <= _folded_tags(value):
                continue
            shown = answers.cut(f"{name} {given} (it has {value or 'none'})", answers.LONGEST_TITLE)
            differing.append(shown)
        if not differing:
            return []
        ignored = f"the entry was there and is unchanged; not taken over: {'; '.join(differing)}"
        return [f"{ignored}. Edit the fields of its file to change them"]

    def _is_hidden(self, document: Document) -> bool:
        return document.status.casefold() in {
            status.casefold() for status in self.corpus.lane.hidden
        }

    def _is_live(self, document: Document, now: datetime) -> bool:
        expired = document.expires_at is not None and document.expires_at <= now
        return not expired and not self._is_hidden(document)

    def _logged(self, now: datetime, kind: str, source: str, text: str) -> list[str]:
        """Write a line into the log of the day; what is indexed of files is not news."""
        if source == FILES:
            return []
        try:
            source = self.corpus.redactor.redact(source).text
            daily_log.append(Path(self.corpus.store.locate("")), now, kind, source, text)
        except RagdocsError as error:
            return [f"the entry is written, but not in the daily log: {error}"]
        return []

    def _added(
        self, entry_id: str, path: str, *, created: bool, warnings: Sequence[str] = ()
    ) -> EntryAdded:
        place = self.corpus.store.locate(path)
        return EntryAdded(
            id=entry_id, created=created, duplicate=not created, path=place, warnings=list(warnings)
        )

    def _source(self, path: str) -> Source | None:
        try:
            return self.corpus.store.read(path)
        except NotFoundError:
            return None

    def _content(self, path: str) -> str | None:
        source = self._source(path)
        return _body(source) if source else None

    def _described(self, document: Document, now: datetime, room: int) -> EntryFields:
        return EntryFields(
            id=own_id(document),
            content="",
            entryType=answers.cut(document.kind, answers.LONGEST_TITLE),
            source=answers.cut(document.source or FILES, answers.LONGEST_TITLE),
            context=answers.cut(_context(document), room),
            confidence=_confidence(document),
            importance=_importance(document),
            tags=answers.tags(document),
            createdAt=_milliseconds(document.created_at),
            expiresAt=_milliseconds(document.expires_at),
            age=answers.age(document.created_at, now),
            path=self.corpus.store.locate(document.path),
        )

    def _hit(self, hit: Hit, now: datetime) -> EntryHit:
        described = self._described(hit.document, now, SHOWN_CONTEXT)
        return EntryHit(**described, score=round(hit.score, 3), matchedBy=_matched_by(hit))


class _Earned(Mapping[str, float]):
    """Importance by document id, of memories known by ids of their own.

    Looked up for the few that are candidates.
    """

    def __init__(self, corpus: Corpus, uses: Mapping[str, int]) -> None:
        self._corpus = corpus
        self._uses = uses

    def __getitem__(self, doc_id: str) -> float:
        document = self._corpus.index.document(doc_id) if self._uses else None
        uses = self._uses.get(own_id(document), 0) if document else 0
        return earned(uses)

    def __iter__(self) -> Iterator[str]:
        return (
            document.id
            for document in self._corpus.index.documents()
            if own_id(document) in self._uses
        )

    def __len__(self) -> int:
        return len(self._uses)


def earned(uses: int) -> float:
    """Return the points of importance that so many uses are worth."""
    return min(MOST_EARNED, math.log2(1 + uses))


def _home(entry_id: str) -> str:
    return f"{ENTRIES}/{entry_id}.md"


def _ids(content: str) -> list[str]:
    digest = sha256(content.strip().encode()).hexdigest()
    return [
        f"mem_{digest[start : start + DIGITS]}"
        for start in range(0, len(digest) - DIGITS + 1, DIGITS)
    ]


def _bare(text: str) -> str:
    """Return a text as it is written: line ends alike, no blank lines around it."""
    return _BLANK_LINES.sub("", text.replace("\r\n", "\n")).rstrip()


def _body(source: Source) -> str:
    return _bare(metadata.split(source.text)[1])


def _same_content(one: str, other: str) -> bool:
    """Compare contents; white space around a text makes no other text."""
    return one.strip() == other.strip()


def _folded_tags(tags: object) -> set[str]:
    return {tag.casefold() for tag in tags} if isinstance(tags, list) else set()


def _matched_by(hit: Hit) -> str:
    sources = {signal.source for signal in hit.signals} & MODES.keys()
    return "both" if len(sources) > 1 else next(iter(sources), "link")


def _plain(hit: Hit) -> Hit:
    """Take the context, which is searched in front of what an entry says.

    Out of the passage that was found.
    """
    context, text = _context(hit.document), hit.chunk.text
    if not context or not text.startswith(f"Context: {context}"):
        return hit
    said = text.removeprefix(f"Context: {context}").lstrip("\n")
    return replace(hit, chunk=replace(hit.chunk, text=said or text))


def _context(document: Document) -> str:
    said = document.extra.get("context")
    return (
        " ".join(metadata.as_text(said).split())
        if said and not isinstance(said, list | dict)
        else ""
    )


def _importance(document: Document) -> float:
    return UNSAID_IMPORTANCE if document.importance is None else document.importance


def _confidence(document: Document) -> float:
    return UNSAID_CONFIDENCE if document.confidence is None else document.confidence


def _milliseconds(moment: datetime | None) -> int | None:
    """Return a moment as the document of these tools has it: milliseconds since 1970."""
    return round(moment.timestamp() * 1000) if moment else None


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 2) if values else 0.0


def _absent(entry_id: str) -> str:
    return f"there is no entry {entry_id!r}; memory_search finds the ids that there are"
