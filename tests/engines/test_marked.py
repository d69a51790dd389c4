"""Documents of a scope after changes: the same as if all of them were read anew."""

from __future__ import annotations

import random

import numpy as np

from ragdocs.engines.postgres.lengths import FIELDS
from ragdocs.engines.postgres.marked import Marked
from ragdocs.engines.postgres.pool import Fetched

# The mark of a document, and the codes of its passages.
Texts = dict[str, tuple[int, bytes]]


def number(path: str) -> int:
    return int.from_bytes(path.encode().rjust(7, b"x"))


def marked(texts: Texts) -> Marked:
    """Return documents as the database sends them: by path."""
    paths = sorted(texts)
    numbers = [number(path) for path in paths]
    sizes = [len(texts[path][1]) // len(FIELDS) for path in paths]
    fetched = Fetched(
        np.array(numbers, dtype=np.int64),
        np.zeros(len(paths), dtype=np.int64),
        np.array(sizes, dtype=np.int64),
        [path.encode() for path in paths],
        b"".join(texts[path][1] for path in paths),
    )
    return Marked(fetched, np.array([texts[path][0] for path in paths], dtype=np.int64))


def same(one: Marked, other: Marked) -> bool:
    """Tell whether both have the same documents in the same order."""
    for column, twin in zip(one.documents, other.documents, strict=True):
        if not np.array_equal(np.asarray(column), np.asarray(twin)):
            return False
    return np.array_equal(one.marks, other.marks)


def made(rng: random.Random, passages: int) -> tuple[int, bytes]:
    return rng.randrange(1000), rng.randbytes(passages * len(FIELDS))


def test_documents_that_are_added_edited_and_removed_stand_where_their_paths_are() -> None:
    rng = random.Random(7)
    texts: Texts = {}
    state = marked(texts)
    for _ in range(200):
        touched = rng.sample("abcdefghijkl", rng.randint(0, 4))
        fresh = {}
        for path in touched:
            if rng.random() < 0.7:
                fresh[path] = made(rng, rng.randint(0, 3))
            texts.pop(path, None)
        texts |= fresh
        numbers = np.array([number(path) for path in touched], dtype=np.int64)
        state = state.replaced(numbers, marked(fresh))
        assert same(state, marked(texts))


def test_an_edit_that_leaves_all_passages_in_their_columns_keeps_the_layout() -> None:
    rng = random.Random(8)
    texts: Texts = {path: made(rng, 2) for path in "abc"}
    before = marked(texts)
    edited = {"b": made(rng, 2)}
    longer = {"b": made(rng, 3)}
    numbers = np.array([number("b")], dtype=np.int64)
    assert before.replaced(numbers, marked(edited)).has_layout_of(before)
    assert not before.replaced(numbers, marked(longer)).has_layout_of(before)
