"""Lengths of fields as the local engine keeps them, in one byte each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ragdocs.search import bm25

Codes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]

FIELDS = tuple(bm25.BOOSTS)
# The length that each code stands for. Scores depend on these roundings, so both engines must
# make them alike; a test compares the table with Whoosh's.
LENGTHS: Floats = np.round(27 * (1.033 ** np.arange(256.0) - 1)).astype(np.float32)


def codes(lengths: Sequence[Sequence[int]]) -> Codes:
    """Return the codes of lengths, one row a passage and one column a field."""
    exact = np.array(lengths, dtype=np.float32).reshape(len(lengths), len(FIELDS))
    numbers = np.searchsorted(LENGTHS, exact).clip(max=len(LENGTHS) - 1)
    return numbers.astype(np.uint8)


def decoded(stored: bytes) -> Floats:
    """Return the lengths of stored codes, one row a passage."""
    numbers: Codes = np.frombuffer(stored, dtype=np.uint8)
    return LENGTHS[numbers].reshape(-1, len(FIELDS))
