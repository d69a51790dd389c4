"""Making the bounds of postings anew when average lengths have moved away from their reference.

An old bound stays one, because a search multiplies it by how much averages have grown. It only
becomes loose, so that more documents are fetched than needed. The averages of a young index move
most, and there it takes a second or two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ragdocs.engines.postgres.lengths import FIELDS
from ragdocs.engines.postgres.rows import (
    BODY,
    DOCUMENT,
    ENTRY,
    HEADINGS,
    ROUNDING,
    Averages,
    drift,
    field_weights,
)
from ragdocs.search import bm25
from ragdocs.system.postgres.columns import columns

if TYPE_CHECKING:
    from ragdocs.system.postgres.database import Session

# Passages of an index whose bounds are made anew while writers wait.
MOST_PASSAGES = 3000
# By how much averages may move before: of bodies, and of the other fields.
BODY_DRIFT = 1.15
OTHER_DRIFT = 2.0


def have_drifted(averages: Averages, reference: Averages) -> bool:
    """Tell whether bounds are so loose that they are worth making anew."""
    for body, other in (drift(averages, reference), drift(reference, averages)):
        if body > BODY_DRIFT or other > OTHER_DRIFT:
            return True
    return False


def renew(session: Session, scope: int, averages: Averages) -> None:
    """Write all bounds of a scope as of these averages; nobody may write meanwhile."""
    documents = session.execute(
        "SELECT doc_id, lengths FROM documents WHERE scope = %s AND passages > 0",
        [scope],
        binary=True,
    ).fetchall()
    rows = session.execute(
        "SELECT doc_id, term, payload FROM postings WHERE scope = %s", [scope], binary=True
    ).fetchall()
    if rows:
        numbers, terms, payloads = columns(rows, 3)
        best = _best(documents, numbers, payloads, averages)
        session.execute(
            """
            UPDATE postings p SET best = u.best
            FROM unnest(%s::bigint[], %s::text[], %s::float8[]) AS u(doc_id, term, best)
            WHERE p.scope = %s AND p.term = u.term AND p.doc_id = u.doc_id
                AND p.best IS DISTINCT FROM u.best::real
            """,
            [numbers, terms, best.tolist(), scope],
        )
    session.execute(
        "UPDATE indexes SET reference = %s WHERE scope = %s", [averages.tolist(), scope]
    )


def _best(
    documents: Sequence[tuple[int, bytes]],
    numbers: Sequence[int],
    payloads: Sequence[bytes],
    averages: Averages,
) -> npt.NDArray[np.float64]:
    """Return what each posting is worth at most in any passage of its document."""
    weights, first_of = _passages(documents, averages)
    entries = np.frombuffer(b"".join(payloads), dtype=ENTRY)
    counts = [len(payload) // ENTRY.itemsize for payload in payloads]
    # For each entry, the first passage of its document and the number of its posting.
    firsts = np.repeat([first_of[number] for number in numbers], counts)
    owners = np.repeat(np.arange(len(payloads)), counts)
    is_shared = entries["ord"] == DOCUMENT
    own = entries[~is_shared]
    rows = firsts[~is_shared] + own["ord"]
    frequencies = own["body"] * weights[rows, BODY] + own["headings"] * weights[rows, HEADINGS]
    largest = np.zeros(len(payloads))
    np.maximum.at(largest, owners[~is_shared], frequencies)
    # An entry of the document has the field where others have the count of the body.
    shared = entries[is_shared]
    more = shared["headings"] * weights[firsts[is_shared], shared["body"]]
    np.add.at(largest, owners[is_shared], more)
    best: npt.NDArray[np.float64] = largest / (largest + bm25.K1) * ROUNDING
    return best


def _passages(
    documents: Sequence[tuple[int, bytes]], averages: Averages
) -> tuple[npt.NDArray[np.float64], dict[int, int]]:
    """Return the weights of fields in all passages, and where those of each document begin."""
    numbers, lengths = columns(documents, 2)
    codes = np.frombuffer(b"".join(lengths), dtype=np.uint8).reshape(-1, len(FIELDS))
    first_of = {}
    first = 0
    for number, own in zip(numbers, lengths, strict=True):
        first_of[number] = first
        first += len(own) // len(FIELDS)
    return field_weights(codes, averages), first_of
