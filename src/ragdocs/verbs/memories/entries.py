"""Entries: memories that are added without a name and keep their id wherever their file goes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from ragdocs.errors import (
    AlreadyExistsError,
    ConflictError,
    NotFoundError,
    RagdocsError,
    UnavailableError,
    ValidationError,
)
from ragdocs.protocols import AccessLog
from ragdocs.search.corpus import Corpus
from ragdocs.search.parse import parse
from ragdocs.search.query import STRANGERS
from ragdocs.system.names import own_id
from ragdocs.text import frontmatter
from ragdocs.types import (
    UNSAID_CONFIDENCE,
    UNSAID_IMPORTANCE,
    Discard,
    Document,
    Expect,
    Findings,
    Hit,
    Probe,
    Put,
    Query,
    Source,
    Written,
)
from ragdocs.verbs import page, references
from ragdocs.verbs.memories import daily_log, entry_rules, record
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

# The weights of meaning and of words in each mode.
MODES = {"vector": (1.0, 0.0), "keyword": (0.0, 1.0)}
HYBRID = "hybrid"
# The source of memories that were written as files, by a person or another program.
FILES = "file-index"
# Of the context of an entry among others; one that is read alone has the whole.
SHOWN_CONTEXT = 300
# Importance that uses can earn, in points: a first use one, three of them both.
MOST_EARNED = 2.0
# What an entry takes in an answer beside its content.
BESIDE_CONTENT = 3000

# Two that add the same at once both get an answer; so many lost races in a row mean that something
# else is wrong.
TRIES = 50

_BLANK_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")


@dataclass(frozen=True, slots=True)
class Entries:
    """What can be asked of memories as entries.

    `vector_weight` is the weight of meaning in a hybrid search, from 0 to 1.
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
        added = self._add(cleaned.text, fields, now)
        if added["created"]:
            removed = []
            for finding in cleaned.findings:
                removed.append(f"{finding.rule} in line {finding.line} of the content")
            added["warnings"] += page.removed(Written(added["path"], removed=tuple(removed)))
            added["warnings"] += self._log(now, new.kind, str(fields["source"]), cleaned.text)
        return added

    def search(
        self,
        query: str,
        mode: str = HYBRID,
        limit: int = 10,
        wanted: Wanted | None = None,
    ) -> EntryHits:
        """Find entries by meaning, by words or by both.

        Importance and confidence order what is nearly equal.
        """
        page.check_limit(limit)
        if mode not in {HYBRID, *MODES}:
            raise ValidationError(
                f"{mode[:40]!r} is not a mode", f"Use {', '.join((HYBRID, *MODES))}"
            )
        now = self.clock()
        findings = self.corpus.search(self._query(query, mode, limit, wanted or Wanted()), now)
        if mode == "vector" and self.corpus.silence:
            raise UnavailableError(f"a search by meaning needs embeddings: {self.corpus.silence}")
        hits, omitted, notes = page.fit(
            _of_mode(findings, mode, limit), lambda hit: self._hit(hit, now), self.budget
        )
        if hits:
            accessed = [(hit["id"], hit["score"]) for hit in hits]
            self.access.note("search", accessed, now, self.corpus.redactor.redact(query).text)
        return EntryHits(results=hits, total=len(hits) + omitted, notes=notes)

    def get(self, entry_id: str, *, used: bool = False) -> EntryFound:
        """Return one entry and note that it was read, or that it was of use."""
        now = self.clock()
        document = self.find(entry_id)
        if document is None:
            return self._not_found(entry_id)
        source = self._source(document.path)
        if source is None:
            return self._not_found(entry_id)
        content = _body(source)
        visible = page.cut(content, max(page.LEAST_CONTENT, self.budget - BESIDE_CONTENT))
        notes = []
        if _is_expired(document, now):
            notes.append(f"it expired {page.age(document.expires_at, now)}")
        if visible != content:
            notes.append("the content is cut; the file at path has the rest")
        if not self._note_read(document, now, used=used):
            notes.append("the use could not be noted")
        entry = self._text(document, now)
        entry["content"] = visible
        return EntryFound(found=True, entry=entry, message="; ".join(notes))

    def stats(self) -> EntryStats:
        """Count entries and accesses."""
        now = self.clock()
        documents = self.corpus.documents()
        kinds = page.tally([document.kind for document in documents])
        listed = dict(page.within(kinds.items(), self.budget // 2))
        notes = []
        if len(listed) < len(kinds):
            notes.append(f"{len(kinds) - len(listed)} rarer types are not listed")
        created = [document.created_at for document in documents if document.created_at]
        importances = [_importance(document) for document in documents]
        confidences = [_confidence(document) for document in documents]
        expired = sum(_is_expired(document, now) for document in documents)
        return EntryStats(
            total=len(documents),
            byType=listed,
            averageImportance=_mean(importances),
            averageConfidence=_mean(confidences),
            accesses=self.access.totals(),
            oldest=_milliseconds(min(created, default=None)),
            newest=_milliseconds(max(created, default=None)),
            expired=expired,
            notes=notes,
        )

    def delete(self, entry_id: str) -> EntryDeleted:
        """Move an entry to the trash, if there is one."""
        document = self.find(entry_id)
        moved_to = None
        if document is not None:
            moved_to = self._discard(document)
        if moved_to is None:
            name = self._printable(entry_id)
            return EntryDeleted(id=name, deleted=False, message=_absent(name), movedTo="")
        message = f"deleted; it is kept at {moved_to}"
        return EntryDeleted(id=entry_id, deleted=True, message=message, movedTo=moved_to)

    def find(self, entry_id: str) -> Document | None:
        """Return the document of an entry by its own id, or by any other name of the memory."""
        return references.find(self.corpus, entry_id)

    # --- adding ---

    def _add(
        self,
        content: str,
        fields: Mapping[str, object],
        now: datetime,
    ) -> EntryAdded:
        for entry_id in record.content_ids(content):
            added = self._add_as(entry_id, content, fields, now)
            if added is not None:
                return added
        raise AlreadyExistsError(
            "all ids of this text are taken by other texts", "Say it in other words"
        )

    def _add_as(
        self,
        entry_id: str,
        content: str,
        fields: Mapping[str, object],
        now: datetime,
    ) -> EntryAdded | None:
        """Write an entry under this id, or return the one there is.

        Return nothing where the id belongs to another text.
        """
        for _ in range(TRIES):
            path = self._path(entry_id)
            existing = self._source(path)
            try:
                if existing is None:
                    return self._create(entry_id, content, fields)
                if not _same_content(_body(existing), content):
                    return None
                document = parse(existing, self.corpus.lane).document
                if self._is_hidden(document) or _is_expired(document, now):
                    return self._revive(entry_id, existing, document, fields)
                warnings = self._ignored(document, fields)
                return self._added(entry_id, path, created=False, warnings=warnings)
            except (AlreadyExistsError, ConflictError, NotFoundError):
                continue  # another process was faster: look again
        raise ConflictError(f"{path} was changed by others {TRIES} times in a row", "Try again")

    def _path(self, entry_id: str) -> str:
        """Return where the entry with this id is, or where it would be written."""
        owners = references.owners(self.corpus, entry_id)
        if owners:
            return owners[0].path
        return record.entry_path(entry_id)

    def _create(
        self,
        entry_id: str,
        content: str,
        fields: Mapping[str, object],
    ) -> EntryAdded:
        path = record.entry_path(entry_id)
        text = frontmatter.render({"id": entry_id, **fields}, f"{content}\n")
        written = self.corpus.commit([Put(path, text, Expect.ABSENT)], "create")[0]
        return self._added(entry_id, path, created=True, warnings=page.removed(written))

    def _revive(
        self,
        entry_id: str,
        existing: Source,
        document: Document,
        fields: Mapping[str, object],
    ) -> EntryAdded:
        """Make an archived or expired entry live again with the new fields.

        History keeps the earlier text.
        """
        # A field that is None is removed: without a new expiry there is none.
        changed = {"expires_at": None, **fields, "id": entry_id}
        if not fields["tags"]:
            changed.pop("tags")
        header = frontmatter.set_fields(existing.text, changed)
        body = frontmatter.split(existing.text)[1]
        put = Put(existing.path, header + body, existing.version)
        written = self.corpus.commit([put], "update")[0]
        state = "expired"
        if self._is_hidden(document):
            state = "archived"
        note = (
            f"this content was there and {state}; it is live again with these fields,"
            " history has the earlier text"
        )
        warnings = [note, *page.removed(written)]
        return self._added(entry_id, existing.path, created=True, warnings=warnings)

    def _ignored(self, document: Document, fields: Mapping[str, object]) -> list[str]:
        """Name the fields that were given for a duplicate and differ from those of the entry.

        Nothing is written.
        """
        differing = []
        for name, value in _existing_fields(document).items():
            given = fields.get(name)
            if isinstance(given, str):
                given = self.corpus.redactor.redact(given).text
            if _is_change(name, given, value):
                difference = f"{name} {given} (it has {value or 'none'})"
                differing.append(page.cut(difference, page.LONGEST_TITLE))
        if not differing:
            return []
        ignored = f"the entry was there and is unchanged; not taken over: {'; '.join(differing)}"
        return [f"{ignored}. Edit the fields of its file to change them"]

    def _added(
        self,
        entry_id: str,
        path: str,
        *,
        created: bool,
        warnings: Sequence[str] = (),
    ) -> EntryAdded:
        return EntryAdded(
            id=entry_id,
            created=created,
            duplicate=not created,
            path=self.corpus.store.locate(path),
            warnings=list(warnings),
        )

    def _log(
        self,
        now: datetime,
        kind: str,
        source: str,
        text: str,
    ) -> list[str]:
        """Write a line into the log of the day, unless a file was only indexed."""
        if source == FILES:
            return []
        try:
            source = self.corpus.redactor.redact(source).text
            daily_log.append(Path(self.corpus.store.locate("")), now, kind, source, text)
        except RagdocsError as error:
            return [f"the entry is written, but not in the daily log: {error}"]
        return []

    # --- searching and reading ---

    def _query(
        self,
        text: str,
        mode: str,
        limit: int,
        wanted: Wanted,
    ) -> Query:
        if mode != HYBRID:
            # Entries that only a link finds are left out afterwards.
            limit += STRANGERS
        return Query(
            probes=(Probe(text),),
            limit=limit,
            where=entry_rules.where(wanted),
            weights=MODES.get(mode, (self.vector_weight, 1 - self.vector_weight)),
            earned=_Earned(self.corpus, self.access.counts("used")),
        )

    def _source(self, path: str) -> Source | None:
        try:
            return self.corpus.store.read(path)
        except NotFoundError:
            return None

    def _discard(self, document: Document) -> str | None:
        """Move an entry to the trash and return its path there.

        Somebody else may have deleted it since the index was made.
        """
        try:
            return self.corpus.commit([Discard(document.path)], "delete")[0].moved_to
        except NotFoundError:
            return None

    def _note_read(self, document: Document, now: datetime, *, used: bool) -> bool:
        """Note a read or a use; only a use that cannot be noted is a failure."""
        accessed = [(own_id(document), None)]
        if used:
            return self.access.note("used", accessed, now)
        self.access.note("get", accessed, now)
        return True

    def _is_hidden(self, document: Document) -> bool:
        hidden = {status.casefold() for status in self.corpus.lane.hidden}
        return document.status.casefold() in hidden

    def _printable(self, entry_id: str) -> str:
        """Return an id as it may be repeated: what is no id may be anything, a secret too."""
        return self.corpus.redactor.redact(entry_id).text[:60]

    # --- what answers say of an entry ---

    def _not_found(self, entry_id: str) -> EntryFound:
        message = _absent(self._printable(entry_id))
        return EntryFound(found=False, entry=None, message=message)

    def _text(self, document: Document, now: datetime) -> EntryText:
        accesses, last_access = self.access.of(own_id(document))
        return EntryText(
            **self._described(document, now, self.budget // 4),
            updatedAt=_milliseconds(document.modified_at),
            expired=_is_expired(document, now),
            accesses=accesses,
            lastAccessedAt=_milliseconds(last_access),
        )

    def _described(self, document: Document, now: datetime, room: int) -> EntryFields:
        return EntryFields(
            id=own_id(document),
            content="",
            entryType=page.cut(document.kind, page.LONGEST_TITLE),
            source=page.cut(document.source or FILES, page.LONGEST_TITLE),
            context=page.cut(_context(document), room),
            confidence=_confidence(document),
            importance=_importance(document),
            tags=page.tags(document),
            createdAt=_milliseconds(document.created_at),
            expiresAt=_milliseconds(document.expires_at),
            age=page.age(document.created_at, now),
            path=self.corpus.store.locate(document.path),
        )

    def _hit(self, hit: Hit, now: datetime) -> EntryHit:
        described = self._described(hit.document, now, SHOWN_CONTEXT)
        return EntryHit(**described, score=round(hit.score, 3), matchedBy=_matched_by(hit))


class _Earned(Mapping[str, float]):
    """Importance by document id, of memories with ids of their own.

    It is looked up only for the few that are candidates.
    """

    def __init__(self, corpus: Corpus, uses: Mapping[str, int]) -> None:
        self._corpus = corpus
        self._uses = uses

    def __getitem__(self, document_id: str) -> float:
        if not self._uses:
            return 0.0
        document = self._corpus.get(document_id)
        if document is None:
            return 0.0
        return earned(self._uses.get(own_id(document), 0))

    def __iter__(self) -> Iterator[str]:
        for document in self._corpus.documents():
            if own_id(document) in self._uses:
                yield document.id

    def __len__(self) -> int:
        return len(self._uses)


def earned(uses: int) -> float:
    """Return the points of importance that so many uses are worth."""
    return min(MOST_EARNED, math.log2(1 + uses))


# --- the content of an entry ---


def _bare(text: str) -> str:
    """Return a text with equal line ends and without blank lines around it."""
    return _BLANK_LINES.sub("", text.replace("\r\n", "\n")).rstrip()


def _body(source: Source) -> str:
    return _bare(frontmatter.split(source.text)[1])


def _same_content(content: str, other: str) -> bool:
    """Compare contents; white space around a text makes no other text."""
    return content.strip() == other.strip()


# --- the fields of an entry ---


def _existing_fields(document: Document) -> dict[str, object]:
    return {
        "type": document.kind,
        "source": document.source or FILES,
        "context": _context(document),
        "confidence": _confidence(document),
        "importance": _importance(document),
        "tags": list(document.tags),
        "expires_at": document.expires_at and entry_rules.iso(document.expires_at),
    }


def _is_change(name: str, given: object, value: object) -> bool:
    """Tell whether a field that was given would change the one there is."""
    # A field with its default value was hardly meant as a change.
    if given in (None, "", []) or given == entry_rules.UNSAID.get(name):
        return False
    if name == "tags":
        return not _folded_tags(given) <= _folded_tags(value)
    return given != value


def _folded_tags(tags: object) -> set[str]:
    if not isinstance(tags, list):
        return set()
    return {tag.casefold() for tag in tags}


def _context(document: Document) -> str:
    context = document.extra.get("context")
    if not context or isinstance(context, list | dict):
        return ""
    return " ".join(frontmatter.as_text(context).split())


def _importance(document: Document) -> float:
    if document.importance is None:
        return UNSAID_IMPORTANCE
    return document.importance


def _confidence(document: Document) -> float:
    if document.confidence is None:
        return UNSAID_CONFIDENCE
    return document.confidence


def _is_expired(document: Document, now: datetime) -> bool:
    return document.expires_at is not None and document.expires_at <= now


# --- the hits of a search ---


def _of_mode(findings: Findings, mode: str, limit: int) -> Findings:
    """Leave only the hits that the mode asked for."""
    matching = list(findings.hits)
    if mode != HYBRID:
        matching = [hit for hit in findings.hits if _matched_by(hit) == mode]
    hits = tuple(_without_context(hit) for hit in matching[:limit])
    omitted = findings.omitted + len(matching) - len(hits)
    return replace(findings, hits=hits, omitted=omitted)


def _matched_by(hit: Hit) -> str:
    sources = {signal.source for signal in hit.signals} & MODES.keys()
    if len(sources) > 1:
        return "both"
    return next(iter(sources), "link")


def _without_context(hit: Hit) -> Hit:
    """Take the context off a passage; the indexed text begins with it."""
    context = _context(hit.document)
    prefix = f"Context: {context}"
    if not context or not hit.chunk.text.startswith(prefix):
        return hit
    text = hit.chunk.text.removeprefix(prefix).lstrip("\n")
    if not text:
        return hit
    return replace(hit, chunk=replace(hit.chunk, text=text))


# --- numbers and messages ---


def _milliseconds(moment: datetime | None) -> int | None:
    """Return a moment in milliseconds since 1970, as the clients of entries expect it."""
    if moment is None:
        return None
    return round(moment.timestamp() * 1000)


def _mean(values: Sequence[float]) -> float:
    if not values:
        return 0.0
    return round(sum(values) / len(values), 2)


def _absent(entry_id: str) -> str:
    return f"there is no entry {entry_id!r}; <search entries> finds the ids that there are"
