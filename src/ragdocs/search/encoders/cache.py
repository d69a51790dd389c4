"""Vectors that were computed once, kept on disk for every process and project of a user."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from ragdocs.protocols import Encoder, Vectors
from ragdocs.system.sqlite_cache import SideFile

# Texts looked up or encoded at a time: bounds what is lost when a process is stopped.
PORTION = 256

# Vectors kept in a cache: three projects of 30,000 chunks, about 200 MB. The ones written first go
# first.
CACHE_LIMIT = 100_000

# Long enough for any writer of one portion, short enough that a search does not seem dead.
WAIT_SECONDS = 2.0

# A plain rowid table: rowids grow, so they tell which vectors are the oldest.
_TABLES = "CREATE TABLE IF NOT EXISTS vectors (key BLOB NOT NULL UNIQUE, vector BLOB NOT NULL);"


class CachedEncoder:
    """Remembers the vectors of another encoder on disk, for every process that shares the file."""

    def __init__(self, encoder: Encoder, path: Path) -> None:
        self._encoder = encoder
        self._file = SideFile(path, _TABLES, name="vector cache", wait_seconds=WAIT_SECONDS)
        self._lock = threading.Lock()
        self.encoded = 0

    @property
    def identity(self) -> str:
        """Name what the wrapped encoder names: a cached vector is the same vector."""
        return self._encoder.identity

    @property
    def dim(self) -> int:
        """The number of components of a vector."""
        return self._encoder.dim

    @property
    def latin_only(self) -> bool:
        """Whether the wrapped encoder reads Latin letters only."""
        return self._encoder.latin_only

    def prepare(self) -> None:
        """Load what the first new text needs."""
        self._encoder.prepare()

    def rest(self, idle_seconds: float, /) -> bool:
        """Give the model's memory back if no new text came for so long."""
        return self._encoder.rest(idle_seconds)

    def close(self) -> None:
        """Let go of the file with the vectors, and of the model."""
        self._file.close()
        self._encoder.close()

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector for each text, in order.

        Encode only the texts never seen before.
        """
        if not texts:
            return self._encoder.encode(texts)
        keys = [self._key(text) for text in texts]
        wanted = dict(zip(keys, texts, strict=True))
        vectors = self._file.ask(partial(_select, list(wanted), self.dim)) or {}
        missing = {}
        for key, text in wanted.items():
            if key not in vectors:
                missing[key] = text
        vectors.update(self._encoded(missing))
        import numpy as np

        return np.stack([vectors[key] for key in keys])

    def _key(self, text: str) -> bytes:
        """Return what a text is found by: one file serves every model a person tries."""
        content = text.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(self.identity.encode() + b"\0" + content).digest()

    def _encoded(self, texts: Mapping[bytes, str]) -> dict[bytes, Vectors]:
        """Encode texts by their keys, and keep each portion as soon as it is there."""
        encoded: dict[bytes, Vectors] = {}
        keys = list(texts)
        values = list(texts.values())
        for start in range(0, len(texts), PORTION):
            stop = start + PORTION
            vectors = self._encoder.encode(values[start:stop])
            fresh = dict(zip(keys[start:stop], vectors, strict=True))
            with self._lock:
                self.encoded += len(fresh)
            self._file.ask(partial(_insert, fresh))
            encoded.update(fresh)
        return encoded


def _select(
    keys: Sequence[bytes], dim: int, connection: sqlite3.Connection
) -> dict[bytes, Vectors]:
    vectors: dict[bytes, Vectors] = {}
    for start in range(0, len(keys), PORTION):
        part = keys[start : start + PORTION]
        marks = ",".join("?" * len(part))
        # Only question marks are put into it.
        query = f"SELECT key, vector FROM vectors WHERE key IN ({marks})"  # noqa: S608
        for key, blob in connection.execute(query, part):
            vector = _vector(blob, dim)
            if vector is not None:
                vectors[key] = vector
    return vectors


def _vector(blob: object, dim: int) -> Vectors | None:
    """Return a stored vector, or nothing if its size or its length is wrong."""
    if not isinstance(blob, bytes) or len(blob) != dim * 4:
        return None
    import numpy as np

    vector = np.frombuffer(blob, dtype="<f4").astype(np.float32)
    # Asked this way round, because every comparison with a number that is none is false.
    if abs(float(vector @ vector) - 1) < 1e-3:  # noqa: PLR2004 - far above rounding
        return vector
    return None


def _insert(vectors: dict[bytes, Vectors], connection: sqlite3.Connection) -> None:
    rows = [(key, vector.astype("<f4").tobytes()) for key, vector in vectors.items()]
    with connection:
        connection.executemany("INSERT OR REPLACE INTO vectors (key, vector) VALUES (?, ?)", rows)
        connection.execute(
            "DELETE FROM vectors WHERE rowid <= (SELECT MAX(rowid) FROM vectors) - ?",
            (CACHE_LIMIT,),
        )
