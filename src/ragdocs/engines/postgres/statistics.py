"""What is known of all passages of a scope: totals, and how many passages have a term.

Writers add rows of differences, which `fold` adds up later: what is read is always exact, and no
writer waits for another one's counter.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from secrets import randbits
from typing import TYPE_CHECKING

import numpy as np

from ragdocs.engines.postgres.lengths import FIELDS
from ragdocs.engines.postgres.rows import Averages, average_lengths
from ragdocs.system.postgres.columns import columns

if TYPE_CHECKING:
    from ragdocs.system.postgres.database import Session

# What is counted, in the order of the columns `counts`: documents that have passages, those that
# have one, and a random number for each write; then the lengths of all fields added up, and the
# marks of all documents.
COUNTED = (
    *("documents", "passages", "vectors", "links", "filled", "lone", "writes"),
    *FIELDS,
    "marks",
)
NOTHING = (0,) * len(COUNTED)
_LENGTHS = slice(COUNTED.index(FIELDS[0]), COUNTED.index(FIELDS[0]) + len(FIELDS))
# Of a random number for a write or a document; sums of billions of them fit into 64 bits.
MARK_BITS = 31
# How long it is noted which documents a write has touched.
TOUCHED_MINUTES = 10

# Whoever adds up holds this lock of the scope.
FOLDING = 7421_0001

TOTALS = """
SELECT array_agg(total ORDER BY place)
FROM (
    SELECT place, sum(value)::bigint AS total
    FROM (
        SELECT counts FROM indexes WHERE scope = %(scope)s
        UNION ALL
        SELECT counts FROM tallies WHERE scope = %(scope)s
    ) c, unnest(counts) WITH ORDINALITY AS u(value, place)
    GROUP BY place
) totals
"""


@dataclass(frozen=True, slots=True)
class Totals:
    """The counts of one scope."""

    counts: Mapping[str, int]

    @classmethod
    def of(cls, counts: Sequence[int] | None) -> Totals:
        """Return totals in the order of the columns; of an index that is not there, nothing."""
        # Counts of a database of an older version have no marks.
        present = (*(counts or NOTHING), 0)[: len(COUNTED)]
        return cls(dict(zip(COUNTED, present, strict=True)))

    @property
    def passages(self) -> int:
        """The number of passages."""
        return self.counts["passages"]

    @property
    def lone_share(self) -> float:
        """The share of documents with a single passage."""
        return self.counts["lone"] / max(1, self.counts["filled"])

    @property
    def averages(self) -> Averages:
        """The average length of each field."""
        return average_lengths([self.counts[field] for field in FIELDS], self.passages)

    @property
    def by_field(self) -> dict[str, float]:
        """The average length of each field by its name."""
        return dict(zip(FIELDS, self.averages.tolist(), strict=True))


class Tally:
    """Differences that one write makes."""

    def __init__(self) -> None:
        self._counts = np.zeros(len(COUNTED), dtype=np.int64)
        # How many more passages have each term, in any field and in the body.
        self._terms: dict[str, tuple[int, int]] = {}

    def add(self, **differences: int) -> None:
        """Add differences by name."""
        for name, difference in differences.items():
            self._counts[COUNTED.index(name)] += difference

    def write(self) -> None:
        """Add a write: two states that were written differently have different sums."""
        self.add(writes=1 + randbits(MARK_BITS))

    def document(
        self, sign: int, passages: int, links: int, sums: Sequence[int], mark: int
    ) -> None:
        """Add a document, or take it away with the sign -1."""
        self.add(
            documents=sign,
            passages=sign * passages,
            links=sign * links,
            filled=sign * (passages > 0),
            lone=sign * (passages == 1),
            marks=sign * mark,
        )
        self._counts[_LENGTHS] += sign * np.array(sums, dtype=np.int64)

    def term(self, term: str, passages: int, bodies: int) -> None:
        """Add that so many more passages have a term, and so many of them in their body."""
        in_any, in_bodies = self._terms.get(term, (0, 0))
        self._terms[term] = (in_any + passages, in_bodies + bodies)

    @property
    def terms(self) -> list[tuple[str, int, int]]:
        """The terms whose counts change, and how."""
        changed = []
        for term, (passages, bodies) in self._terms.items():
            if passages or bodies:
                changed.append((term, passages, bodies))
        return changed

    @property
    def counts(self) -> list[int]:
        """The differences in the order of the columns."""
        counts: list[int] = self._counts.tolist()
        return counts


def write_tally(session: Session, scope: int, tally: Tally, touched: Collection[int] = ()) -> int:
    """Note the differences of a write, and which documents it has added, changed or removed.

    Return the number of terms whose counts change.
    """
    terms, passages, bodies = columns(tally.terms, 3)
    values = {"scope": scope, "touched": list(touched), "counts": tally.counts}
    values |= {"terms": terms, "passages": passages, "bodies": bodies}
    session.execute(_WRITE_TALLY, values)
    return len(terms)


# One statement: each would cost as much as the row that it writes.
_WRITE_TALLY = """
WITH noted AS (
    INSERT INTO touched (scope, documents)
    SELECT %(scope)s, %(touched)s::bigint[] WHERE cardinality(%(touched)s::bigint[]) > 0
), counted AS (
    INSERT INTO term_tallies (scope, term, passages, bodies)
    SELECT %(scope)s, *
    FROM unnest(%(terms)s::text[], %(passages)s::int[], %(bodies)s::int[])
)
INSERT INTO tallies (scope, counts) VALUES (%(scope)s, %(counts)s)
"""


def fold(session: Session, scope: int) -> bool:
    """Add all differences up; tell whether that was done.

    It is not where somebody else is doing it, or on a standby, which can only be read.
    """
    row = session.execute(
        "SELECT NOT pg_is_in_recovery() AND pg_try_advisory_xact_lock(%s, %s)", [FOLDING, scope]
    ).fetchone()
    if row is None or not row[0]:
        return False
    values = {"scope": scope}
    session.execute(
        """
        WITH gone AS (
            DELETE FROM tallies WHERE scope = %(scope)s RETURNING counts
        ), totals AS (
            SELECT array_agg(total ORDER BY place) AS counts
            FROM (
                SELECT place, sum(value)::bigint AS total
                FROM (
                    SELECT counts FROM indexes WHERE scope = %(scope)s
                    UNION ALL SELECT counts FROM gone
                ) c, unnest(counts) WITH ORDINALITY AS u(value, place)
                GROUP BY place
            ) summed
        )
        UPDATE indexes SET counts = totals.counts FROM totals
        WHERE scope = %(scope)s AND EXISTS (SELECT FROM gone)
        """,
        values,
    )
    session.execute(_FOLD_TERMS, values)
    session.execute(
        "DELETE FROM touched WHERE scope = %(scope)s"
        " AND at < now() - make_interval(mins => %(minutes)s)",
        {**values, "minutes": TOUCHED_MINUTES},
    )
    session.execute(
        "DELETE FROM terms WHERE scope = %(scope)s AND passages <= 0 AND bodies <= 0", values
    )
    return True


_FOLD_TERMS = """
WITH gone AS (
    DELETE FROM term_tallies WHERE scope = %(scope)s RETURNING term, passages, bodies
), summed AS (
    SELECT term, sum(passages)::int AS passages, sum(bodies)::int AS bodies
    FROM gone GROUP BY term ORDER BY term
)
INSERT INTO terms AS t (scope, term, passages, bodies)
SELECT %(scope)s, term, passages, bodies FROM summed WHERE passages <> 0 OR bodies <> 0
ON CONFLICT (scope, term) DO UPDATE
SET passages = t.passages + excluded.passages, bodies = t.bodies + excluded.bodies
"""
