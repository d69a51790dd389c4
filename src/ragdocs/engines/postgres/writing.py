"""Writing documents into the index: only what differs from the rows that are there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from secrets import randbits
from typing import TYPE_CHECKING, Any

import numpy as np

from ragdocs.engines.postgres.cards import (
    all_stored,
    document_number,
    document_numbers,
    encoded,
    from_document,
    stored,
    to_document,
)
from ragdocs.engines.postgres.postings import PostingChanges
from ragdocs.engines.postgres.rows import AnalysedDocument, Averages, StoredPostings, analysed
from ragdocs.engines.postgres.statistics import MARK_BITS, Tally, write_tally
from ragdocs.engines.postgres.stored import Passage, StoredDocument, StoredRows, passages_of
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
NO_POSTINGS = StoredPostings()
# Whoever empties an index holds off all who write to it.
EMPTYING = 7421_0003


def lock_documents(session: Session, scope: int, paths: Iterable[str]) -> None:
    """Wait until nobody else writes these documents, and hold others off until the end."""
    numbers = {number % LOCKS for number in document_numbers(scope, paths)}
    session.execute(
        """
        SELECT pg_advisory_xact_lock_shared(%s, %s) UNION ALL
        SELECT pg_advisory_xact_lock(%s, number)
        FROM (SELECT number FROM unnest(%s::int[]) AS u(number) ORDER BY number) ordered
        """,
        [EMPTYING, scope, WRITING + scope, sorted(numbers)],
    )


class DocumentWriter:
    """One write of several documents, in a transaction that is open."""

    def __init__(self, session: Session, scope: int) -> None:
        self._session = session
        self._scope = scope
        self._tally = Tally()
        self._touched: set[int] = set()

    def look(self, entries: Sequence[IndexedDocument]) -> StoredRows:
        """Ask for the rows of documents; they come with the first answer that is waited for."""
        numbers = document_numbers(self._scope, [entry.document.path for entry in entries])
        return StoredRows(self._session, self._scope, numbers, with_postings=True)

    def write(
        self,
        entries: Sequence[IndexedDocument],
        rows: StoredRows,
        reference: Averages,
        ready: Mapping[str, AnalysedDocument],
    ) -> None:
        """Add or replace documents whose rows were looked at.

        Unless they are `ready`, they are analysed as far as they differ.
        """
        postings = rows.postings()
        before = rows.documents()
        passages = {}
        documents = {}
        changes = PostingChanges(self._tally)
        for entry in entries:
            number = document_number(self._scope, entry.document.path)
            passages[number] = passages_of(entry, _existing(before, number))
            own_postings = postings.get(number, NO_POSTINGS)
            document = ready.get(entry.document.path)
            if document is None and number in before:
                document = analysed(entry, before[number].terms(own_postings, passages[number]))
            documents[number] = document or analysed(entry)
            changes.compare(number, documents[number], own_postings, reference)
        self._write_documents(documents, before, passages)
        borrowed = self._write_passages(documents, before, passages)
        changes.write(self._execute)
        self._write_links(documents, before)
        self._count_vectors(before, passages, borrowed)

    def remove(self, paths: Collection[str]) -> None:
        """Drop the documents at these paths."""
        if not paths:
            return
        wanted = document_numbers(self._scope, paths)
        rows = StoredRows(self._session, self._scope, wanted, with_postings=False)
        documents = rows.documents()
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
            self._tally.term(term, -passages, -bodies)
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
        return write_tally(self._session, self._scope, self._tally, self._touched)

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

    def _write_documents(
        self,
        documents: Mapping[int, AnalysedDocument],
        before: Mapping[int, StoredDocument],
        passages: Mapping[int, Sequence[Passage]],
    ) -> None:
        for number, document in documents.items():
            if number in before:
                old = before[number]
                self._tally.document(-1, len(old.passages), old.links, old.sums, old.mark)
            links = len(document.entry.document.links)
            mark = randbits(MARK_BITS)
            self._tally.document(1, len(passages[number]), links, document.sums, mark)
            self._touched.add(number)
            slots = [passage.slot for passage in passages[number]]
            columns = _columns(document, slots)
            self._execute(_UPSERT_DOCUMENT, doc_id=number, mark=mark, **columns)

    def _write_passages(
        self,
        documents: Mapping[int, AnalysedDocument],
        before: Mapping[int, StoredDocument],
        passages: Mapping[int, Sequence[Passage]],
    ) -> Cursor | None:
        """Write passages; the answer, if there is one, has the slots whose vectors were there."""
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
        if not fresh["doc_id"]:
            return None
        return self._execute(_BORROW_OR_WAIT, **fresh)

    def _count_vectors(
        self,
        before: Mapping[int, StoredDocument],
        passages: Mapping[int, Sequence[Passage]],
        borrowed: Cursor | None,
    ) -> None:
        """Count the passages that have a vector now, against those that had one."""
        encoded_slots: set[tuple[Any, ...]] = set()
        if borrowed is not None:
            encoded_slots.update(borrowed.fetchall())
        for number, document in before.items():
            self._tally.add(vectors=-document.vectors)
            slots = {passage.digest: passage.slot for passage in document.passages.values()}
            for passage in passages[number]:
                if slots.get(passage.digest) in document.encoded:
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


def _values(passage: Passage) -> tuple[Any, ...]:
    return (
        passage.slot,
        passage.digest,
        passage.start_line,
        passage.end_line,
        passage.headings,
    )


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
_INSERT_NAMES = """
INSERT INTO names (scope, name, doc_id)
SELECT %(scope)s, * FROM unnest(%(name)s::text[], %(doc_id)s::bigint[])
"""
_INSERT_LINKS = """
INSERT INTO links (scope, doc_id, ord, target)
SELECT %(scope)s, * FROM unnest(%(doc_id)s::bigint[], %(ord)s::int[], %(target)s::text[])
"""
