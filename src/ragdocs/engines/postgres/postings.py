"""Writing the postings of documents: only those that differ from the rows that are there."""

from __future__ import annotations

from collections.abc import Callable

from ragdocs.engines.postgres.rows import AnalysedDocument, Averages, Posting, StoredPostings
from ragdocs.engines.postgres.statistics import Tally
from ragdocs.system.postgres.columns import append, empty_columns

# A bound that is higher than this many times the new one is written anew.
LOOSE = 1.1


class PostingChanges:
    """The postings of some documents that are new, differ or are gone."""

    def __init__(self, tally: Tally) -> None:
        """Count in this tally which terms more or fewer passages have."""
        self._tally = tally
        self._fresh = empty_columns(_COLUMNS)
        self._changed = empty_columns(_COLUMNS)
        self._gone = empty_columns(("terms", "numbers"))

    def compare(
        self, number: int, document: AnalysedDocument, old: StoredPostings, reference: Averages
    ) -> None:
        """Add the differences between a document and its stored postings."""
        postings = document.postings(reference)
        for term, posting in postings.items():
            position = old.positions.get(term)
            if position is None:
                append(self._fresh, (term, number, *posting))
                self._tally.term(term, posting.passages, posting.bodies)
                continue
            before = old.at(position)
            if _differs(posting, before):
                append(self._changed, (term, number, *posting))
                more = posting.passages - before.passages
                self._tally.term(term, more, posting.bodies - before.bodies)
        open_positions = document.open_positions
        if open_positions is None:
            open_positions = range(len(old.terms))
        for position in open_positions:
            term = old.terms[position]
            if term not in postings:
                append(self._gone, (term, number))
                before = old.at(position)
                self._tally.term(term, -before.passages, -before.bodies)

    def write(self, execute: Callable[..., object]) -> None:
        """Send what is to be done."""
        if self._gone["terms"]:
            execute(_FORGET, **self._gone)
        if self._fresh["term"]:
            execute(_INSERT, **self._fresh)
        if self._changed["term"]:
            execute(_UPDATE, **self._changed)


def _differs(new: Posting, old: Posting) -> bool:
    """Tell whether a row must be written anew; a bound may be a little too high, never too low."""
    if new.payload != old.payload or new.passages != old.passages:
        return True
    is_low = new.best > old.best or new.named > old.named
    return is_low or old.best > LOOSE * new.best or old.named > LOOSE * new.named


_COLUMNS = ("term", "doc_id", "best", "named", "passages", "bodies", "payload")
_POSTINGS = """
unnest(%(term)s::text[], %(doc_id)s::bigint[], %(best)s::float8[], %(named)s::float8[],
    %(passages)s::int[], %(bodies)s::int[], %(payload)s::bytea[])
    AS u(term, doc_id, best, named, passages, bodies, payload)
"""
# In the order of the index, so that neighbours are written together.
_INSERT = f"""
INSERT INTO postings (scope, term, doc_id, best, named, passages, bodies, payload)
SELECT %(scope)s, * FROM {_POSTINGS} ORDER BY u.term COLLATE "C", u.doc_id
"""
_UPDATE = f"""
UPDATE postings p SET best = u.best, named = u.named, passages = u.passages, bodies = u.bodies,
    payload = u.payload
FROM {_POSTINGS} WHERE p.scope = %(scope)s AND p.term = u.term AND p.doc_id = u.doc_id
"""
_FORGET = """
DELETE FROM postings p USING unnest(%(terms)s::text[], %(numbers)s::bigint[]) AS u(term, doc_id)
WHERE p.scope = %(scope)s AND p.term = u.term AND p.doc_id = u.doc_id
"""
