"""Is the live index what the files alone would give? Compared part by part.

With the first difference named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, TypedDict

import numpy as np

from ragdocs.errors import RagdocsError, UnavailableError
from ragdocs.search.corpus import Corpus

# Encoding in another batch moves a vector by rounding only; another text moves it much further.
SAME_VECTOR = 0.999


class Comparison(TypedDict):
    """How many things of each kind were compared, and the first that differs."""

    compared: dict[str, int]
    difference: str


class Behind(TypedDict):
    """Paths by which an index is behind its files: changed, not indexed, gone.

    And those that cannot be read.
    """

    stale: list[str]
    missing: list[str]
    extra: list[str]
    unreadable: dict[str, str]


def behind(corpus: Corpus, most_read: int | None = None) -> Behind:
    """Compare an index as it answers with its files, and change neither.

    After so many missing files, the rest are taken for files that can be read.
    """
    scan, known = corpus.store.scan(), corpus.index.stamps()
    if "" in scan.unreadable:
        raise UnavailableError(scan.unreadable[""])
    refused = corpus.refused(scan)
    present = {path: stamp for path, stamp in scan.stamps.items() if path not in refused}
    answer = Behind(
        stale=[], missing=[], extra=sorted(known.keys() - present.keys()), unreadable={}
    )
    for path, stamp in sorted(present.items()):
        if path in known and known[path][0] == stamp:
            continue
        if path not in known and most_read is not None and len(answer["missing"]) >= most_read:
            answer["missing"].append(path)
            continue
        try:
            # A stamp also differs while a file is too fresh to be sure of; only its text decides.
            version = corpus.store.read(path).version
        except RagdocsError as error:
            answer["unreadable"][path] = str(error)
            continue
        if path not in known:
            answer["missing"].append(path)
        elif version != known[path][1]:
            answer["stale"].append(path)
    return answer


def is_behind(answer: Behind) -> bool:
    """Tell whether an index lacks something that its files have, or has what they lack."""
    return bool(answer["stale"] or answer["missing"] or answer["extra"])


def compare(live: Mapping[str, Sequence[Any]], rebuilt: Mapping[str, Sequence[Any]]) -> Comparison:
    """Compare the contents of two indexes: documents, chunks, postings, edges and vectors."""
    compared = {}
    for part, expected in rebuilt.items():
        compared[part] = len(expected)
        for ours, theirs in zip_longest(live[part], expected):
            if not _same(ours, theirs):
                found = (
                    f"{part}: the live index has {_short(ours)}, the rebuilt one {_short(theirs)}"
                )
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
