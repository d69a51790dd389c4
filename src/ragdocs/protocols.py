"""The seams: what a corpus needs of a store, an index and an encoder."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ragdocs.types import (
    AccessKind,
    AppendedSummary,
    Change,
    ChangeSet,
    Chunk,
    Document,
    Entry,
    Filter,
    Link,
    Revision,
    Scan,
    Source,
    StepSummary,
    Written,
)

Vectors = npt.NDArray[np.float32]
Scored = list[tuple[int, float]]
Keys = npt.NDArray[np.int64]


class Siblings(NamedTuple):
    """All chunks of some documents, in order, and the place where each document begins."""

    keys: Keys
    starts: Keys
    # The share of documents with a single chunk among all that are indexed.
    lone: float

    @property
    def sizes(self) -> Keys:
        """How many chunks each document has."""
        return np.diff(np.append(self.starts, len(self.keys)))


class Readable(Protocol):
    """A store whose texts can be listed and read."""

    def scan(self, paths: Iterable[str] | None = None) -> Scan:
        """Return a stamp for each text of the store, or of these paths only.

        A stamp changes whenever the text does. What cannot be read is reported, never left out.
        """

    def read(self, path: str) -> Source:
        """Read one text."""

    def locate(self, path: str) -> str:
        """Return where a person finds this path, or the store itself for ""."""


@runtime_checkable
class Versioned(Protocol):
    """A store whose texts can be changed, and that keeps what was overwritten."""

    def commit(self, changes: Sequence[Change], verb: str = "update") -> list[Written]:
        """Make all these changes or none."""

    def history(self, path: str = "") -> list[Revision]:
        """List the revisions of one path, or of all, newest first."""

    def recover(self, version: str) -> str:
        """Return an earlier text by its version."""

    def commits(self) -> list[ChangeSet]:
        """List the change sets, newest first.

        The last one may have been announced and never made.
        """


class Watched(Protocol):
    """A store whose changes show up as changed files."""

    def watched(self) -> list[tuple[Path, bool]]:
        """List the folders to watch, each with whether everything below it counts."""

    def relative(self, path: str) -> str | None:
        """Return which path of the store a changed file may concern, or None.

        The answer can be passed to `scan`; "" stands for everything.
        """


class Store(Readable, Versioned, Watched, Protocol):
    """A store of texts that we write; the only truth."""


class Index(Protocol):
    """Finds chunks; a cache that may vanish at any time.

    Chunks are named by opaque integer keys.
    """

    # What scores are measured by, kept with the index that it was measured on.
    gauge: Mapping[str, float] | None

    def stamps(self, paths: Iterable[str] | None = None) -> Mapping[str, tuple[str, str]]:
        """Map each indexed path, or each of these that is indexed.

        To the stamp and version it had.
        """

    def restamp(self, stamps: Mapping[str, str]) -> None:
        """Remember new stamps of paths whose text did not change."""

    def apply(self, changed: Sequence[Entry], removed: Sequence[str] = ()) -> None:
        """Add or replace documents and drop the paths in `removed`, in one step."""

    def objection(self, entry: Entry, seconds: float) -> str:
        """Say why a document would hold up all others, for so much processor time at most.

        Or nothing.
        """

    def documents(self, where: Filter | None = None) -> list[Document]:
        """List document cards, in the order of their paths."""

    def document(self, doc_id: str) -> Document | None:
        """Return one card, if there is such a document."""

    def missing(self, limit: int, paths: Collection[str] = ()) -> list[tuple[Document, Chunk]]:
        """List chunks without a vector, one for each digest, most recently changed first.

        Or those of these paths.
        """

    def fill(self, vectors: Mapping[str, Vectors]) -> None:
        """Give vectors to the chunks with these digests."""

    def nearest(self, vector: Vectors, k: int, *wheres: Filter) -> Scored:
        """Return the k chunks with the largest inner product among those that pass each of the filters."""

    def match(self, text: str, k: int, *wheres: Filter) -> Scored:
        """Return the k best chunks by keyword score among those that pass each of the filters.

        1.0 is every term once in a passage of average length.
        """

    def weigh(self, text: str, vector: Vectors | None, keys: Keys) -> tuple[Vectors, Vectors]:
        """Return the keyword score and the inner product of each of these chunks, found or not."""

    def siblings(self, keys: Keys) -> Siblings:
        """Return all chunks of the documents that have these chunks."""

    def asked(self, text: str) -> int:
        """Count the different words that a query asks for."""

    def matched(self, text: str, keys: Sequence[int]) -> list[tuple[str, ...]]:
        """Return for each chunk the words of a query that stand in it, as the query wrote them."""

    def linked(self, doc_ids: Sequence[str], where: Filter) -> list[Collection[str]]:
        """Return, for each of these, the documents it links to that pass the filter."""

    def links_to(
        self, names: Sequence[str], among: Collection[str] | None = None
    ) -> Mapping[str, tuple[Link, ...]]:
        """Map each document, or each among these, to its links to any of these names."""

    def owners(self, keys: Sequence[int]) -> list[Document]:
        """Return the documents that have the chunks with these keys."""

    def load(self, keys: Sequence[int]) -> list[tuple[Document, Chunk]]:
        """Return the chunks with these keys and their documents."""

    def chunks(self, doc_id: str) -> list[int]:
        """Return the keys of one document's chunks, in order."""

    def vectors(self, doc_ids: Sequence[str]) -> Vectors:
        """Return one unit vector for each document, zero where it has none yet."""

    @property
    def vector_search(self) -> str:
        """Say how vectors are searched."""

    def held(self) -> AbstractContextManager[object]:
        """Keep the index as it is while several things are asked of it."""

    def counts(self) -> dict[str, int]:
        """Count documents, chunks, vectors and links."""


class Encoder(Protocol):
    """Turns texts into unit vectors."""

    @property
    def identity(self) -> str:
        """Name model, file, pooling and truncation.

        Two vectors may be compared only under one identity.
        """

    @property
    def dim(self) -> int:
        """The number of components of a vector."""

    def prepare(self) -> None:
        """Load what the first text needs."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector for each text, in order."""


class AccessLog(Protocol):
    """Counts how often memories are found, read and used."""

    def note(
        self,
        kind: AccessKind,
        accessed: Sequence[tuple[str, float | None]],
        at: datetime,
        query: str = "",
    ) -> bool:
        """Note accesses to memories, each with its score in a search, if it was found by one.

        Return whether they were noted; a log that cannot be written is no error.
        """

    def counts(self, kind: AccessKind) -> dict[str, int]:
        """Map each memory that was ever accessed in this way to the number of times."""

    def of(self, memory_id: str) -> tuple[dict[str, int], datetime | None]:
        """Return how often one memory was accessed, by kind, and when last."""

    def totals(self) -> dict[str, int]:
        """Count all accesses to the memories of this project, by kind."""


class Summaries(Protocol):
    """Keeps the summaries of steps of one scope, the newest of them up to a limit."""

    @property
    def shown(self) -> int:
        """The number of summaries that a context pack has at most."""

    @property
    def name(self) -> str:
        """The name under which a context pack cites the summaries."""

    def append(
        self, run_id: str, step_id: str, summary: str, tags: Sequence[str], now: datetime
    ) -> AppendedSummary:
        """Write one summary, durably and without secrets, and drop the oldest over the limits.

        The texts are those of a checked request: not empty, and only characters of a text file.
        """

    def newest(self, count: int | None = None) -> list[StepSummary]:
        """Return summaries by time, newest first.

        Of the same moment, the one that was written later comes first.
        """

    def take(self, other: Summaries) -> int:
        """Add the summaries of another scope that are not here yet, and return their number."""
