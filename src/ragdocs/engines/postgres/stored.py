"""What the rows already have of a document that is about to be written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ragdocs.engines.postgres.cards import all_stored, as_bytes, encoded
from ragdocs.engines.postgres.lengths import FIELDS, LENGTHS, Codes
from ragdocs.engines.postgres.rows import StoredPostings, StoredTerms
from ragdocs.types import IndexedDocument

if TYPE_CHECKING:
    from ragdocs.system.postgres.database import Cursor, Session


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

    @property
    def content(self) -> tuple[str, int, bytes]:
        """What two passages with the same text and headings have in common."""
        return self.digest, self.size, self.headings


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
        count = 0
        for passage in self.passages.values():
            count += passage.slot in self.encoded
        return count

    @property
    def codes(self) -> Codes:
        """The codes of the lengths, one row a passage."""
        return np.frombuffer(self.lengths, dtype=np.uint8).reshape(-1, len(FIELDS))

    @property
    def sums(self) -> list[int]:
        """The lengths of all passages added up, by field."""
        totals: list[int] = LENGTHS[self.codes].sum(axis=0, dtype=np.float64).astype(int).tolist()
        return totals

    def terms(self, postings: StoredPostings, passages: Sequence[Passage]) -> StoredTerms:
        """Return the terms that are there, and which of these passages are as they were."""
        positions = {}
        for position, passage in self.passages.items():
            positions[passage.content] = position
        unchanged = {}
        for position, passage in enumerate(passages):
            # One passage before stands for one now.
            before = positions.pop(passage.content, None)
            if before is not None:
                unchanged[position] = before
        return StoredTerms(self.codes, postings, unchanged)


class StoredRows:
    """The rows of some documents: asked for at once, and waited for when they are read."""

    def __init__(
        self, session: Session, scope: int, numbers: Sequence[int], *, with_postings: bool
    ) -> None:
        values = {"scope": scope, "numbers": list(numbers)}
        self._postings: Cursor | None = None
        if with_postings:
            self._postings = session.execute(_POSTINGS, values, binary=True)
        self._documents = session.execute(_DOCUMENTS, values, binary=True)
        self._passages = session.execute(_PASSAGES, values, binary=True)

    def documents(self) -> dict[int, StoredDocument]:
        """Return the documents that are there, by number."""
        documents = {}
        for number, *columns in self._documents.fetchall():
            documents[number] = StoredDocument(*columns)
        for number, is_encoded, position, *columns in self._passages.fetchall():
            passage = Passage(*columns)
            documents[number].passages[position] = passage
            if is_encoded:
                documents[number].encoded.add(passage.slot)
        return documents

    def postings(self) -> dict[int, StoredPostings]:
        """Return the postings of the documents, by number."""
        if self._postings is None:
            return {}
        rows: dict[int, list[tuple[object, ...]]] = {}
        for row in self._postings.fetchall():
            rows.setdefault(row[0], []).append(row[1:])
        postings = {}
        for number, own in rows.items():
            postings[number] = StoredPostings(own)
        return postings


def passages_of(entry: IndexedDocument, existing: Mapping[int, Passage]) -> list[Passage]:
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


_POSTINGS = """
SELECT doc_id, term, best, named, passages, bodies, payload FROM postings
WHERE doc_id = ANY (%(numbers)s) AND scope = %(scope)s
"""
_DOCUMENTS = """
SELECT doc_id, card, link_count, lengths, mark FROM documents
WHERE doc_id = ANY (%(numbers)s) AND scope = %(scope)s
"""
_PASSAGES = """
SELECT p.doc_id, v.slot IS NOT NULL, p.ord, p.slot, p.digest, p.start_line, p.end_line,
    p.headings, octet_length(p.text)
FROM passages p LEFT JOIN vectors v
    ON v.doc_id = p.doc_id AND v.slot = p.slot AND v.scope = %(scope)s
WHERE p.doc_id = ANY (%(numbers)s) AND p.scope = %(scope)s
"""
