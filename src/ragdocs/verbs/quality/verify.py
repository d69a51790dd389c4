"""Is the live index what the files alone would give? Compared part by part, with the first difference named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, TypedDict

import numpy as np

# Encoding in another batch moves a vector by rounding only; another text moves it much further.
SAME_VECTOR = 0.999


class Comparison(TypedDict):
    """How many things of each kind were compared, and the first that differs."""

    compared: dict[str, int]
    difference: str


def compare(live: Mapping[str, Sequence[Any]], rebuilt: Mapping[str, Sequence[Any]]) -> Comparison:
    """Compare the contents of two indexes: documents, chunks, postings, edges and vectors."""
    compared = {}
    for part, expected in rebuilt.items():
        compared[part] = len(expected)
        for ours, theirs in zip_longest(live[part], expected):
            if not _same(ours, theirs):
                found = f"{part}: the live index has {_short(ours)}, the rebuilt one {_short(theirs)}"
                return Comparison(compared=compared, difference=found)
    return Comparison(compared=compared, difference="")


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, tuple) and isinstance(theirs, tuple) and isinstance(ours[-1], np.ndarray):
        cosine = float(np.dot(ours[-1], theirs[-1]))
        both_blank = not ours[-1].any() and not theirs[-1].any()
        return bool(ours[:-1] == theirs[:-1]) and (both_blank or cosine >= SAME_VECTOR)
    return bool(ours == theirs)


def _short(value: Any) -> str:
    return "nothing" if value is None else str(value)[:300]
