"""Writing documents into the index: only what differs from the rows that are there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from secrets import randbits
from typing import TYPE_CHECKING, Any

import numpy as np

from ragdocs.engines.postgres.cards import (
    all_stored,
    as_bytes,
    document_number,
    document_numbers,
    encoded,
    from_document,
    stored,
    to_document,
)
from ragdocs.engines.postgres.lengths import FIELDS, LENGTHS, Codes
from ragdocs.engines.postgres.rows import (
    AnalysedDocument,
    Averages,
    Posting,
    StoredTerms,
    analysed,
)
from ragdocs.engines.postgres.statistics import MARK_BITS, Tally, write_tally, write_term_tallies
from ragdocs.system.names import link_key, link_keys
from ragdocs.system.postgres.columns import append, empty_columns
from ragdocs.types import UNSAID_CONFIDENCE, UNSAID_IMPORTANCE, Document, IndexedDocument

if TYPE_CHECKING:
    from ragdocs.system.postgres.database import Cursor, Session

# Writers of one document wait for each other. Documents share so many locks in each scope, so that
# a large change set takes few; they are taken in order, so that nobody waits in a circle.
LOCKS = 256
WRITING = 7422_0000
# Passages of one document that are encoded before those of others get their turn.
PASSAGES_IN_TURN = 256
# A bound that is higher than this many times the new one is written anew.
LOOSE = 1.1


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage as a row has it, but for its text, which its digest and size stand for.

    The digest is that of a text with its title, which a text may also begin with by itself.
    """

    slot: int
    digest: str
    start_line: int
    end_line: int
    headings: bytes
    size: int


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """What is already there of a document."""

    card: bytes
    links: int
    lengths: bytes
    mark: int
    passages: dict[int, Passage] = field(default_factory=dict)
    # The slots that have a vector.
    encoded: set[int] = field(default_factory=set)

    @property
    def vectors(self) -> int:
        """The number of passages that have a vector."""
        return sum(passage.slot in self.encoded for passage in self.passages.values())

    @property
    def codes(self) -> Codes:
        """The codes of the lengths, one row a passage."""
        return np.frombuffer(self.lengths, dtype=np.uint8).reshape(-1, len(FIELDS))

    @property
    def sums(self) -> list[int]:
        """The lengths of all passages added up, by field."""
        totals: list[int] = LENGTHS[self.codes].sum(axis=0, dtype=np.float64).astype(int).tolist()
        return totals


def lock_documents(session: Session, scope: int, paths: Iterable[str]) -> None:
    """Wait until nobody else writes these documents, and hold others off until the end."""
    numbers = {number % LOCKS for number in document_numbers(scope, paths)}
    session.execute(
        """
        SELECT pg_advisory_xact_lock(%s, number)
        FROM (SELECT number FROM unnest(%s::int[]) AS u(number) ORDER BY number) ordered
        """,
        [WRITING + scope, sorted(numbers)],
    )


class DocumentWriter:
    """One write of several documents, in a transaction that is open."""

    def __init__(self, session: Session, scope: int) -> None:
        self._session = session
        self._scope = scope
        self._tally = Tally()
        # How many more passages have each term, in any field and in the body.
        self._terms: dict[str, list[int]] = {}
        self._touched: set[int] = set()

    def write(
        self,
        entries: Sequence[IndexedDocument],
        reference: Averages,
        ready: Mapping[str, AnalysedDocument],
    ) -> None:
        """Add or replace documents; those that are not `ready` are analysed as far as they differ."""
        numbers = {}
        for entry in entries:
            numbers[document_number(self._scope, entry.document.path)] = entry
        if not numbers:
            return
        stored_postings = self._postings(list(numbers))
        before = self._stored(list(numbers))
        postings = _by_document(stored_postings)
        passages = {}
        by_number = {}
        for number, entry in numbers.items():
            passages[number] = _passages(entry, _existing(before, number))
            document = ready.get(entry.document.path)
            if document is None and number in before:
                terms = _stored_terms(before[number], postings.get(number, {}), passages[number])
                document = analysed(entry, terms)
            by_number[number] = document or analysed(entry)
        self._write_documents(by_number, before, passages)
        self._write_passages(by_number, before, passages)
        self._write_postings(by_number, postings, reference)
        self._write_links(by_number, before)

    def remove(self, paths: Collection[str]) -> None:
        """Drop the documents at these paths."""
        if not paths:
            return
        documents = self._stored(document_numbers(self._scope, paths))
        if not documents:
            return
        numbers = list(documents)
        self._touched.update(numbers)
        for document in documents.values():
            count = len(document.passages)
            self._tally.document(-1, count, document.links, document.sums, document.mark)
            self._tally.add(vectors=-document.vectors)
        gone = self._execute(
            """
            WITH gone AS (
                DELETE FROM postings WHERE doc_id = ANY (%(numbers)s) AND scope = %(scope)s
                RETURNING term, passages, bodies
            )
            SELECT term, sum(passages)::int, sum(bodies)::int FROM gone GROUP BY term
            """,
            numbers=numbers,
        )
        for term, passages, bodies in gone.fetchall():
            self._count_term(term, -passages, -bodies)
        for table in ("vectors", "waiting", "passages", "names", "links", "documents"):
            self._delete(table, numbers)

    def restamp(self, stamps: Mapping[str, str]) -> None:
        """Note that sources were looked at and are the same."""
        self._execute(
            """
            UPDATE documents d SET stamp = u.stamp
            FROM unnest(%(numbers)s::bigint[], %(stamps)s::text[]) AS u(doc_id, stamp)
            WHERE d.doc_id = u.doc_id AND d.scope = %(scope)s
            """,
            numbers=document_numbers(self._scope, stamps),
            stamps=all_stored(stamps.values()),
        )

    def finish(self) -> int:
        """Note how totals have changed; return the number of terms that did."""
        self._tally.write()
        write_tally(self._session, self._scope, self._tally, self._touched)
        differences = {}
        for term, (passages, bodies) in self._terms.items():
            differences[term] = (passages, bodies)
        return write_term_tallies(self._session, self._scope, differences)

    def _execute(self, sql: str, **values: object) -> Cursor:
        """Send a statement; its answer is waited for when it is fetched, or at the end."""
        return self._session.execute(sql, {"scope": self._scope, **values}, binary=True)

    def _delete(self, table: str, numbers: Sequence[int]) -> None:
        if not numbers:
            return
        self._execute(
            f"DELETE FROM {table} WHERE doc_id = ANY (%(numbers)s) AND scope = %(scope)s",
            numbers=numbers,
        )

    def _stored(self, numbers: Sequence[int]) -> dict[int, StoredDocument]:
        rows = self._execute(
            """
            SELECT doc_id, card, link_count, lengths, mark FROM documents
            WHERE doc_id = ANY (%(numbers)s) AND scope = %(scope)s
            """,
            numbers=numbers,
        )
        passages = self._execute(
            """
            SELECT p.doc_id, v.slot IS NOT NULL, p.ord, p.slot, p.digest, p.start_line, p.end_line,
                p.headings, octet_length(p.text)
            FROM passages p LEFT JOIN vectors v
                ON v.doc_id = p.doc_id AND v.slot = p.slot AND v.scope = %(scope)s
            WHERE p.doc_id = ANY (%(numbers)s) AND p.scope = %(scope)s
            """,
            numbers=numbers,
        )
        documents = {}
        for number, *columns in rows.fetchall():
            documents[number] = StoredDocument(*columns)
        for number, is_encoded, position, *columns in passages.fetchall():
            passage = Passage(*columns)
            documents[number].passages[position] = passage
            if is_encoded:
                documents[number].encoded.add(passage.slot)
        return documents

    def _count_term(self, term: str, passages: int, bodies: int) -> None:
        counts = self._terms.setdefault(term, [0, 0])
        counts[0] += passages
        counts[1] += bodies

    def _write_documents(
        self,
        documents: Mapping[int, AnalysedDocument],
        before: Mapping[int, StoredDocument],
        passages: Mapping[int, Sequence[Passage]],
    ) -> None:
        rows = []
        for number, document in documents.items():
            if number in before:
                old = before[number]
                self._tally.document(-1, len(old.passages), old.links, old.sums, old.mark)
            links = len(document.entry.document.links)
            mark = randbits(MARK_BITS)
            self._tally.document(1, len(passages[number]), links, document.sums, mark)
            self._touched.add(number)
            slots = [passage.slot for passage in passages[number]]
            row = {"scope": self._scope, "doc_id": number, "mark": mark}
            rows.append({**row, **_columns(document, slots)})
        with self._session.cursor() as cursor:
            cursor.executemany(_UPSERT_DOCUMENT, rows)

    def _write_passages(
        self,
        documents: Mapping[int, AnalysedDocument],
        before: Mapping[int, StoredDocument],
        passages: Mapping[int, Sequence[Passage]],
    ) -> None:
        changed = empty_columns(_PASSAGE_COLUMNS)
        fresh = empty_columns(_WAITING_COLUMNS)
        gone = empty_columns(("numbers", "slots", "shrunk", "counts"))
        for number, document in documents.items():
            existing = _existing(before, number)
            own = passages[number]
            for position, passage in enumerate(own):
                if existing.get(position) != passage:
                    text = encoded(document.entry.chunks[position].text)
                    append(changed, (number, position, *_values(passage), text))
            if len(existing) > len(own):
                gone["shrunk"].append(number)
                gone["counts"].append(len(own))
            old_slots = _slots(existing.values())
            new_slots = _slots(own)
            modified = document.entry.document.modified_at
            added = [pair for pair in new_slots if pair not in old_slots]
            for nth, (slot, digest) in enumerate(added):
                append(fresh, (number, slot, digest, nth // PASSAGES_IN_TURN, modified))
            for slot, _ in old_slots.keys() - new_slots.keys():
                gone["numbers"].append(number)
                gone["slots"].append(slot)
        self._forget(gone)
        if changed["doc_id"]:
            self._execute(_UPSERT_PASSAGES, **changed)
        borrowed: list[tuple[Any, ...]] = []
        if fresh["doc_id"]:
            borrowed = self._execute(_BORROW_OR_WAIT, **fresh).fetchall()
        self._count_vectors(before, passages, borrowed)

    def _count_vectors(
        self,
        before: Mapping[int, StoredDocument],
        passages: Mapping[int, Sequence[Passage]],
        borrowed: Iterable[tuple[Any, ...]],
    ) -> None:
        """Count the passages that have a vector now, against those that had one."""
        encoded_slots = set(borrowed)
        for number, document in before.items():
            self._tally.add(vectors=-document.vectors)
            kept = {passage.digest: passage.slot for passage in document.passages.values()}
            for passage in passages[number]:
                if kept.get(passage.digest) in document.encoded:
                    encoded_slots.add((number, passage.slot))
        count = 0
        for number, own in passages.items():
            count += sum((number, passage.slot) in encoded_slots for passage in own)
        self._tally.add(vectors=count)

    def _forget(self, gone: Mapping[str, list[int]]) -> None:
        """Drop vectors of texts that are gone, and passages beyond the end of their document."""
        if gone["slots"]:
            self._execute(_FORGET_SLOTS, **gone)
        if gone["shrunk"]:
            self._execute(_FORGET_PASSAGES, **gone)

    def _write_postings(
        self,
        documents: Mapping[int, AnalysedDocument],
        existing: Mapping[int, Mapping[str, Posting]],
        reference: Averages,
    ) -> None:
        fresh = empty_columns(_POSTING_COLUMNS)
        changed = empty_columns(_POSTING_COLUMNS)
        gone = empty_columns(("terms", "numbers"))
        for number, document in documents.items():
            old = existing.get(number, {})
            postings = document.postings(reference)
            for term, posting in postings.items():
                same = old.get(term)
                if same is None:
                    append(fresh, (term, number, *posting))
                    self._count_term(term, posting.passages, posting.bodies)
                elif _differs(posting, same):
                    append(changed, (term, number, *posting))
                    more = posting.passages - same.passages
                    self._count_term(term, more, posting.bodies - same.bodies)
            for term, posting in old.items():
                if term not in postings and term not in document.settled:
                    gone["terms"].append(term)
                    gone["numbers"].append(number)
                    self._count_term(term, -posting.passages, -posting.bodies)
        if gone["terms"]:
            self._execute(_FORGET_POSTINGS, **gone)
        if fresh["term"]:
            self._execute(_INSERT_POSTINGS, **fresh)
        if changed["term"]:
            self._execute(_UPDATE_POSTINGS, **changed)

    def _postings(self, numbers: Sequence[int]) -> Cursor:
        return self._execute(
            """
            SELECT doc_id, term, best, named, passages, bodies, payload FROM postings
            WHERE doc_id = ANY (%(numbers)s) AND scope = %(scope)s
            """,
            numbers=numbers,
        )

    def _write_links(
        self, documents: Mapping[int, AnalysedDocument], before: Mapping[int, StoredDocument]
    ) -> None:
        names = empty_columns(("name", "doc_id"))
        links = empty_columns(("doc_id", "ord", "target"))
        renamed = []
        relinked = []
        for number, document in documents.items():
            own = _linked(document.entry.document)
            old: tuple[set[str], list[str]] = (set(), [])
            if number in before:
                old = _linked(to_document(before[number].card))
            if own[0] != old[0]:
                renamed.append(number)
                for name in own[0]:
                    append(names, (name, number))
            if own[1] != old[1]:
                relinked.append(number)
                for position, target in enumerate(own[1]):
                    append(links, (number, position, target))
        if before:
            self._delete("names", renamed)
            self._delete("links", relinked)
        if names["name"]:
            self._execute(_INSERT_NAMES, **names)
        if links["doc_id"]:
            self._execute(_INSERT_LINKS, **links)


def _by_document(rows: Cursor) -> dict[int, dict[str, Posting]]:
    postings: dict[int, dict[str, Posting]] = {}
    for number, term, *columns in rows.fetchall():
        postings.setdefault(number, {})[term] = Posting(*columns)
    return postings


def _linked(document: Document) -> tuple[set[str], list[str]]:
    """Return the names that a document goes by and those that it links to, as they are stored."""
    targets = []
    for link in document.links:
        targets.append(stored(link_key(link.target)))
    return set(all_stored(link_keys(document))), targets


def _existing(before: Mapping[int, StoredDocument], number: int) -> Mapping[int, Passage]:
    if number not in before:
        return {}
    return before[number].passages


def _slots(passages: Iterable[Passage]) -> dict[tuple[int, str], None]:
    """Return slots with their digests, each once, in the order of the passages."""
    slots: dict[tuple[int, str], None] = {}
    for passage in passages:
        slots[passage.slot, passage.digest] = None
    return slots


def _stored_terms(
    document: StoredDocument, postings: Mapping[str, Posting], passages: Sequence[Passage]
) -> StoredTerms:
    """Return the terms that are there, and which of the passages are as they were."""
    positions = {_content(passage): position for position, passage in document.passages.items()}
    unchanged = {}
    for position, passage in enumerate(passages):
        # One passage before stands for one now.
        before = positions.pop(_content(passage), None)
        if before is not None:
            unchanged[position] = before
    return StoredTerms(document.codes, postings, unchanged)


def _content(passage: Passage) -> tuple[str, int, bytes]:
    """Return what two passages with the same text and headings have in common."""
    return passage.digest, passage.size, passage.headings


def _passages(entry: IndexedDocument, existing: Mapping[int, Passage]) -> list[Passage]:
    """Return the passages of a document; a text that was there before keeps its slot."""
    slots = {passage.digest: passage.slot for passage in existing.values()}
    digests = all_stored(chunk.digest for chunk in entry.chunks)
    used = {slots[digest] for digest in digests if digest in slots}
    free = 0
    passages = []
    for chunk, digest in zip(entry.chunks, digests, strict=True):
        if digest not in slots:
            while free in used:
                free += 1
            slots[digest] = free
            used.add(free)
        headings = as_bytes(chunk.headings)
        slot = slots[digest]
        size = len(encoded(chunk.text))
        passages.append(Passage(slot, digest, chunk.start_line, chunk.end_line, headings, size))
    return passages


def _values(passage: Passage) -> tuple[Any, ...]:
    return (
        passage.slot,
        passage.digest,
        passage.start_line,
        passage.end_line,
        passage.headings,
    )


def _differs(new: Posting, old: Posting) -> bool:
    """Tell whether a row must be written anew; a bound may be a little too high, never too low."""
    if new.payload != old.payload or new.passages != old.passages:
        return True
    is_low = new.best > old.best or new.named > old.named
    return is_low or old.best > LOOSE * new.best or old.named > LOOSE * new.named


def _columns(document: AnalysedDocument, slots: Sequence[int]) -> dict[str, Any]:
    """Return the row of a document."""
    card = document.entry.document
    importance = card.importance
    if importance is None:
        importance = UNSAID_IMPORTANCE
    confidence = card.confidence
    if confidence is None:
        confidence = UNSAID_CONFIDENCE
    return {
        "id": stored(card.id),
        "path": stored(card.path),
        "version": stored(card.version),
        "stamp": stored(document.entry.stamp),
        "kind": stored(card.kind),
        "status": stored(card.status),
        "source": stored(card.source),
        "tags": all_stored(card.tags),
        "kind_key": stored(card.kind.casefold()),
        "status_key": stored(card.status.casefold()),
        "tag_keys": all_stored(tag.casefold() for tag in card.tags),
        "created_at": card.created_at,
        "modified_at": card.modified_at,
        "expires_at": card.expires_at,
        "importance": importance,
        "confidence": confidence,
        "passages": len(slots),
        "link_count": len(card.links),
        "lengths": document.codes.tobytes(),
        "slots": np.array(slots, dtype="<i4").tobytes(),
        "card": from_document(card),
    }


_DOCUMENT_COLUMNS = (
    *("scope", "doc_id", "id", "path", "version", "stamp", "kind", "status", "source", "tags"),
    *("kind_key", "status_key", "tag_keys", "created_at", "modified_at", "expires_at"),
    *("importance", "confidence", "passages", "link_count", "lengths", "slots", "card", "mark"),
)
_ARRAYS = {"tags": "::text[]", "tag_keys": "::text[]"}
_UPSERT_DOCUMENT = (
    f"INSERT INTO documents ({', '.join(_DOCUMENT_COLUMNS)}) VALUES ("
    + ", ".join(f"%({name})s{_ARRAYS.get(name, '')}" for name in _DOCUMENT_COLUMNS)
    + ") ON CONFLICT (doc_id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _DOCUMENT_COLUMNS[2:])
)
_PASSAGE_COLUMNS = (
    *("doc_id", "ord", "slot", "digest", "start_line", "end_line", "headings", "text"),
)
_UPSERT_PASSAGES = """
INSERT INTO passages (scope, doc_id, ord, slot, digest, start_line, end_line, headings, text)
SELECT %(scope)s, * FROM unnest(%(doc_id)s::bigint[], %(ord)s::int[], %(slot)s::int[],
    %(digest)s::text[], %(start_line)s::int[], %(end_line)s::int[], %(headings)s::bytea[],
    %(text)s::bytea[])
ON CONFLICT (doc_id, ord) DO UPDATE SET slot = excluded.slot, digest = excluded.digest,
    start_line = excluded.start_line, end_line = excluded.end_line, headings = excluded.headings,
    text = excluded.text
"""
_WAITING_COLUMNS = ("doc_id", "slot", "digest", "turn", "modified_at")
_FRESH = """
unnest(%(doc_id)s::bigint[], %(slot)s::int[], %(digest)s::text[], %(turn)s::int[],
    %(modified_at)s::timestamptz[]) WITH ORDINALITY
    AS u(doc_id, slot, digest, turn, modified_at, place)
"""
# A text that was encoded elsewhere in the scope, as after a rename, needs no encoder.
_BORROW_OR_WAIT = f"""
WITH fresh AS MATERIALIZED (
    SELECT u.*, (
        SELECT v.emb FROM passages p JOIN vectors v ON v.doc_id = p.doc_id AND v.slot = p.slot
        WHERE p.scope = %(scope)s AND p.digest = u.digest AND v.scope = %(scope)s LIMIT 1
    ) AS emb
    FROM {_FRESH}
), queued AS (
    INSERT INTO waiting (scope, doc_id, slot, digest, turn, modified_at)
    SELECT %(scope)s, doc_id, slot, digest, turn, modified_at FROM fresh WHERE emb IS NULL
    ORDER BY place
)
INSERT INTO vectors (doc_id, slot, scope, emb)
SELECT doc_id, slot, %(scope)s, emb FROM fresh WHERE emb IS NOT NULL
RETURNING doc_id, slot
"""
_FORGET_SLOTS = """
WITH gone AS MATERIALIZED (
    SELECT * FROM unnest(%(numbers)s::bigint[], %(slots)s::int[]) AS u(doc_id, slot)
), idle AS (
    DELETE FROM waiting t USING gone
    WHERE t.doc_id = gone.doc_id AND t.slot = gone.slot AND t.scope = %(scope)s
)
DELETE FROM vectors t USING gone
WHERE t.doc_id = gone.doc_id AND t.slot = gone.slot AND t.scope = %(scope)s
"""
_FORGET_PASSAGES = """
DELETE FROM passages p USING unnest(%(shrunk)s::bigint[], %(counts)s::int[]) AS u(doc_id, size)
WHERE p.doc_id = u.doc_id AND p.ord >= u.size AND p.scope = %(scope)s
"""
_POSTING_COLUMNS = ("term", "doc_id", "best", "named", "passages", "bodies", "payload")
_POSTINGS = """
unnest(%(term)s::text[], %(doc_id)s::bigint[], %(best)s::float8[], %(named)s::float8[],
    %(passages)s::int[], %(bodies)s::int[], %(payload)s::bytea[])
    AS u(term, doc_id, best, named, passages, bodies, payload)
"""
# In the order of the index, so that neighbours are written together.
_INSERT_POSTINGS = f"""
INSERT INTO postings (scope, term, doc_id, best, named, passages, bodies, payload)
SELECT %(scope)s, * FROM {_POSTINGS} ORDER BY u.term COLLATE "C", u.doc_id
"""
_UPDATE_POSTINGS = f"""
UPDATE postings p SET best = u.best, named = u.named, passages = u.passages, bodies = u.bodies,
    payload = u.payload
FROM {_POSTINGS} WHERE p.scope = %(scope)s AND p.term = u.term AND p.doc_id = u.doc_id
"""
_FORGET_POSTINGS = """
DELETE FROM postings p USING unnest(%(terms)s::text[], %(numbers)s::bigint[]) AS u(term, doc_id)
WHERE p.scope = %(scope)s AND p.term = u.term AND p.doc_id = u.doc_id
"""
_INSERT_NAMES = """
INSERT INTO names (scope, name, doc_id)
SELECT %(scope)s, * FROM unnest(%(name)s::text[], %(doc_id)s::bigint[])
"""
_INSERT_LINKS = """
INSERT INTO links (scope, doc_id, ord, target)
SELECT %(scope)s, * FROM unnest(%(doc_id)s::bigint[], %(ord)s::int[], %(target)s::text[])
"""
