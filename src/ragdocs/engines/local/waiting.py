"""Passages that have no vector yet, in the order in which they are encoded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from ragdocs.engines.local.catalog import Catalog
from ragdocs.types import Chunk, Document

# Passages of one document that are encoded before those of others get their turn; a file of 10 MB
# has 11,000.
PASSAGES_IN_TURN = 256


class Waiting:
    """Rows of a catalog without a vector, by digest: passages of one text need one vector."""

    def __init__(self, rows: Iterable[int] = ()) -> None:
        self._rows = set(rows)
        # Made when it is needed, and kept until the next change of documents.
        self._by_digest: dict[str, list[int]] | None = None

    def change(self, gone: Iterable[int], added: Iterable[int]) -> None:
        """Drop rows that are gone, and let new ones wait."""
        self._rows.difference_update(gone)
        self._rows.update(added)
        self._by_digest = None

    def first(
        self, limit: int, paths: Collection[str], catalog: Catalog
    ) -> list[tuple[Document, Chunk]]:
        """Return a passage for each digest, the most recently changed first.

        With `paths`, those of these paths only.
        """
        passages: list[tuple[Document, Chunk]] = []
        for rows in self._queue(catalog).values():
            if len(passages) == limit:
                break
            for row in rows:
                if not paths or catalog.owner(row).path in paths:
                    passages.append(catalog.chunk(row))
                    break
        return passages

    def take(self, digest: str, catalog: Catalog) -> list[int]:
        """Return the rows that wait for the vector of a digest, and do not offer them again."""
        return self._queue(catalog).pop(digest, [])

    def end(self, rows: Iterable[int]) -> None:
        """Forget rows that have been taken and have their vectors now."""
        self._rows.difference_update(rows)

    def _queue(self, catalog: Catalog) -> dict[str, list[int]]:
        if self._by_digest is None:
            rows = _in_turn(sorted(self._rows, key=lambda row: _age(row, catalog)), catalog)
            self._by_digest = {}
            for row, digest in zip(rows, catalog.passages.digests(rows), strict=True):
                self._by_digest.setdefault(digest, []).append(row)
        return self._by_digest


def _in_turn(rows: Sequence[int], catalog: Catalog) -> list[int]:
    """Let the first passages of every document come before the rest of a long one."""
    before: Counter[str] = Counter()
    turns = {}
    for row in rows:
        document = catalog.owner(row).id
        turns[row] = before[document] // PASSAGES_IN_TURN
        before[document] += 1
    return sorted(rows, key=turns.__getitem__)


def _age(row: int, catalog: Catalog) -> tuple[float, int]:
    modified = catalog.owner(row).modified_at
    if modified is None:
        return 0.0, row
    return -modified.timestamp(), row
