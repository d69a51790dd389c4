"""What every encoder does to texts and to vectors."""

from __future__ import annotations

import unicodedata

from ragdocs.protocols import Vectors
from ragdocs.system.patterns import later

# What all-MiniLM-L6-v2 was trained to read, [CLS] and [SEP] included.
MAX_TOKENS = 256

# Tokenizing is linear in the text, and all but 254 tokens are thrown away. WordPiece looks into
# words of at most 100 characters, so 254 of those with a space after each suffice; only encoded
# data, all [UNK] to the model, loses tokens.
MAX_CHARACTERS = (MAX_TOKENS - 2) * 101

# Letters with and without accents, as they are written in Europe and Vietnam.
_LATIN = later("[A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]")
# A letter of Chinese, Japanese or Korean says as much as two or more Latin ones.
_WIDE = "WF"
# More of a text says nothing new about its script.
_LOOKED_AT = 4000


def unit(rows: Vectors) -> Vectors:
    """Scale each row to length 1; a row of zeros stays as it is."""
    import numpy as np

    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(norms > 0, norms, 1)).astype(np.float32)


def blank(dim: int) -> Vectors:
    """Return the vector of a text that a model cannot read: it is like no other."""
    import numpy as np

    return np.zeros(dim, dtype=np.float32)


def mostly_latin(text: str) -> bool:
    """Tell whether at least half of what a text says is written in Latin letters."""
    text = text[:_LOOKED_AT]
    if text.isascii():
        return True
    latin = len(_LATIN.findall(text))
    other = 0
    for letter in _LATIN.sub("", text):
        if letter.isalpha():
            other += 2 if unicodedata.east_asian_width(letter) in _WIDE else 1
    return latin >= other


def clean(text: str) -> str:
    """Replace characters that are none."""
    # Lone surrogates come from file names and broken JSON; tokenizers are written in Rust, whose
    # strings have none.
    return text.encode("utf-8", "replace").decode("utf-8")


def half_precision(vector: Vectors) -> Vectors:
    """Round a query's vector as those of passages are rounded, so that all engines agree."""
    import numpy as np

    return vector.astype(np.float16).astype(np.float32)
