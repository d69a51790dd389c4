"""The numbers of how texts are read: an index that was made by other ones is made anew.

By themselves, because opening an index must not import what makes one.
"""

from __future__ import annotations

# Of the terms of a text (`text/terms.py`): another way to find them is another number.
ANALYSER = "8"
# Of the passages of a document (`search/chunk.py`): another way of cutting is another number.
CHUNKER = "10"
