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
)
from ragdocs.verbs import filters, page, references
from ragdocs.verbs.memories import daily_log, entry_rules, record
from ragdocs.verbs.memories.entry_outcomes import (
    AddedEntry,
    DeletedEntry,
    EntryCard,
    EntryCounts,
    EntryDetails,
    EntryFindings,
    FieldDifference,
    FoundEntry,
    ReadEntry,
)
from ragdocs.verbs.memories.entry_rules import NewEntry, Wanted

# The weights of meaning and of words in each mode.
MODES = {"vector": (1.0, 0.0), "keyword": (0.0, 1.0)}
HYBRID = "hybrid"
# The source of memories that were written as files, by a person or another program.
FILES = "file-index"
# Importance that uses can earn, in points: a first use one, three of them both.
MOST_EARNED = 2.0

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
    vector_weight: float
    # The folder of the daily log; nothing where memories are no files.
    log_folder: Path | None = None

    def add(self, new: NewEntry) -> AddedEntry:
        """Write an entry, unless one with the same content is there."""
        now = self.clock()
        fields = entry_rules.fields(new, now)
        cleaned = self.corpus.redactor.redact(_bare(new.content))
        added = self._add(cleaned.text, fields, now)
        if added.written is None:
            return added
        removed = list(added.written.removed)
        for finding in cleaned.findings:
            removed.append(f"{finding.rule} in line {finding.line} of the content")
        unlogged = self._log(now, new.kind, str(fields["source"]), cleaned.text)
        notes = (*added.written.notes, *unlogged)
        written = replace(added.written, removed=tuple(removed), notes=notes)
        return replace(added, written=written)

    def search(
        self,
        query: str,
        mode: str = HYBRID,
        limit: int = 10,
        wanted: Wanted | None = None,
    ) -> EntryFindings:
        """Find entries by meaning, by words or by both.

        Importance and confidence order what is nearly equal.
        """
        page.check_limit(limit)
        if mode not in {HYBRID, *MODES}:
            raise ValidationError(
                f"{mode[:40]!r} is not a mode", f"Use {', '.join((HYBRID, *MODES))}"
            )
        if not query.strip():
            return EntryFindings((), 0, (f"{page.NO_QUERY}. {page.WHAT_TO_ASK}",))
        now = self.clock()
        findings = self.corpus.search(self._query(query, mode, limit, wanted or Wanted()), now)
        if mode == "vector" and self.corpus.embedding_unavailable:
            raise UnavailableError(
                f"a search by meaning needs embeddings: {self.corpus.embedding_unavailable}"
            )
        findings = _of_mode(findings, mode, limit)
        entries = []
        for hit in findings.hits:
            entries.append(FoundEntry(self._card(hit.document), hit, _matched_by(hit)))
        if entries:
            accessed = [(entry.card.id, round(entry.hit.score, 3)) for entry in entries]
            self.access.note("search", accessed, now, self.corpus.redactor.redact(query).text)
        unknown: list[str] = []
        if wanted is not None:
            unknown = filters.unknown(self.corpus, wanted.tags, wanted.kinds)
        return EntryFindings(entries, findings.omitted, (*unknown, *findings.notes))

    def get(self, entry_id: str, *, used: bool = False) -> ReadEntry:
        """Return one entry and note that it was read, or that it was of use."""
        now = self.clock()
        document = self.find(entry_id)
        source = None
        if document is not None:
            source = self._source(document.path)
        if document is None or source is None:
            return ReadEntry(self._printable(entry_id))
        is_noted = self._note_read(document, now, used=used)
        accesses, last_access = self.access.of(own_id(document))
        details = EntryDetails(
            card=self._card(document),
            content=_body(source),
            is_expired=_is_expired(document, now),
            accesses=accesses,
            last_access=last_access,
            is_noted=is_noted,
        )
        return ReadEntry(entry_id, details)

    def stats(self) -> EntryCounts:
        """Count entries and accesses."""
        now = self.clock()
        documents = self.corpus.documents()
        created = [document.created_at for document in documents if document.created_at]
        importances = [_importance(document) for document in documents]
        confidences = [_confidence(document) for document in documents]
        expired = sum(_is_expired(document, now) for document in documents)
        return EntryCounts(
            total=len(documents),
            kinds=page.tally([document.kind for document in documents]),
            mean_importance=_mean(importances),
            mean_confidence=_mean(confidences),
            accesses=self.access.totals(),
            oldest=min(created, default=None),
            newest=max(created, default=None),
            expired=expired,
        )

    def delete(self, entry_id: str) -> DeletedEntry:
        """Move an entry to the trash, if there is one."""
        document = self.find(entry_id)
        moved_to = None
        if document is not None:
            moved_to = self._discard(document)
        if moved_to is None:
            return DeletedEntry(self._printable(entry_id))
        return DeletedEntry(entry_id, moved_to)

    def find(self, entry_id: str) -> Document | None:
        """Return the document of an entry by its own id, or by any other name of the memory."""
        return references.find(self.corpus, entry_id)

    # --- adding ---

    def _add(
        self,
        content: str,
        fields: Mapping[str, object],
        now: datetime,
    ) -> AddedEntry:
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
    ) -> AddedEntry | None:
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
                differing = self._differing(document, fields)
                return AddedEntry(entry_id, self._locate(path), differing=differing)
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
    ) -> AddedEntry:
        path = record.entry_path(entry_id)
        text = frontmatter.render({"id": entry_id, **fields}, f"{content}\n")
        written = self.corpus.commit([Put(path, text, Expect.ABSENT)], "create")[0]
        return AddedEntry(entry_id, self._locate(path), written)

    def _revive(
        self,
        entry_id: str,
        existing: Source,
        document: Document,
        fields: Mapping[str, object],
    ) -> AddedEntry:
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
        return AddedEntry(entry_id, self._locate(existing.path), written, state)

    def _differing(self, document: Document, fields: Mapping[str, object]) -> list[FieldDifference]:
        """Return the fields that were given for a duplicate and differ from those of the entry."""
        differing = []
        for name, value in _existing_fields(document).items():
            given = fields.get(name)
            if isinstance(given, str):
                given = self.corpus.redactor.redact(given).text
            if _is_change(name, given, value):
                differing.append(FieldDifference(name, given, value))
        return differing

    def _log(
        self,
        now: datetime,
        kind: str,
        source: str,
        text: str,
    ) -> list[str]:
        """Write a line into the log of the day, unless a file was only indexed."""
        if source == FILES or self.log_folder is None:
            return []
        try:
            source = self.corpus.redactor.redact(source).text
            daily_log.append(self.log_folder, now, kind, source, text)
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

    def _card(self, document: Document) -> EntryCard:
        return EntryCard(
            id=own_id(document),
            document=document,
            source=document.source or FILES,
            context=_context(document),
            confidence=_confidence(document),
            importance=_importance(document),
            location=self._locate(document.path),
        )

    def _locate(self, path: str) -> str:
        return self.corpus.store.locate(path)


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


def _mean(values: Sequence[float]) -> float:
    if not values:
        return 0.0
    return sum(values) / len(values)


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
    return replace(hit, chunk=hit.chunk._replace(text=text))
