"""A small encoder without a model, for tests and for machines that have none."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence

from ragdocs.protocols import Vectors
from ragdocs.search.encoders.vectors import MAX_CHARACTERS, clean, unit


class HashEncoder:
    """Encodes by hashing words and their trigrams.

    No model, the same everywhere, near where words are shared.
    """

    latin_only = False

    def __init__(self, dim: int = 64) -> None:
        self.identity = f"hash/words+trigrams/{dim}"
        self.dim = dim

    def prepare(self) -> None:
        """Do nothing: there is no model."""

    def rest(self, _: float, /) -> bool:
        """Keep everything: there is no model."""
        return False

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector for each text, in order."""
        import numpy as np

        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for feature, weight in _features(text[:MAX_CHARACTERS]):
                number = int.from_bytes(
                    hashlib.blake2b(feature.encode(), digest_size=8).digest(), "little"
                )
                row[(number >> 1) % self.dim] += weight if number & 1 else -weight
            if not row.any():
                row[0] = 1.0
        return unit(rows)


def _features(text: str) -> Iterator[tuple[str, float]]:
    for word in re.findall(r"\w+", clean(text).casefold()):
        yield word, 1.0
        padded = f"<{word}>"
        for i in range(len(padded) - 2):
            # Enough to bring inflections together, too little to outweigh a shared word.
            yield padded[i : i + 3], 0.25
