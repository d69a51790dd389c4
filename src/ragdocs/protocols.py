"""The seams: what a corpus needs of a store, an index and an encoder."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    NewType,
    Protocol,
    TypeAlias,
    runtime_checkable,
)

from ragdocs.types import (
    AccessKind,
    AppendedSummary,
    Change,
    ChangeSet,
    Chunk,
    Document,
    Filter,
    IndexedDocument,
    Link,
    Revision,
    Scan,
    Source,
    StepSummary,
    Written,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# As texts: a command that lists memories does without numpy, which takes longest to import.
Vectors: TypeAlias = "npt.NDArray[np.float32]"
Floats: TypeAlias = "npt.NDArray[np.float64]"
Ints: TypeAlias = "npt.NDArray[np.int64]"
# Opaque: an engine hands keys out and takes them back. Nobody else sorts them or calculates.
PassageKey = NewType("PassageKey", object)
SourceName = Literal["keyword", "vector"]
# (probe, source), such as ("query", "keyword").
SignalName = tuple[str, str]
Order = Literal["path", "newest", "oldest"]
Facet = Literal["tags", "kind", "status", "source"]
Documents = list[Document]


@dataclass(frozen=True, slots=True)
class ProbeVector:
    """A text to search for; without words or without a vector that source is not searched.

    Its words are looked for by their stems in each of the languages.
    """

    name: str
    text: str
    vector: Vectors | None = None
    languages: tuple[str, ...] = ("en",)


@dataclass(frozen=True, slots=True)
class Candidates:
    """What scoring needs, fetched at once: one column a passage.

    All passages of each document are here, in the order of its text and side by side, because a
    passage lends a part of its score to its neighbours.
    """

    keys: Sequence[PassageKey]
    # The column where each document begins, and the document.
    starts: Ints
    documents: Sequence[Document]
    # What each source measures of every passage, found by it or not.
    raw: Mapping[SignalName, Floats]
    # The columns of the passages that each source found, best first.
    found: Mapping[SignalName, Sequence[int]]
    # The number of different terms that each probe is scored by.
    term_counts: Mapping[str, int]
    # Documents of a single passage among all that are indexed, from 0 to 1.
    lone_share: float
    # How long each source took.
    seconds: Mapping[str, float] = field(default_factory=dict)
    # The documents that pass the first filter, counted up to a number that was asked for.
    passing: int = 0


@dataclass(frozen=True, slots=True)
class Ties:
    """Links of some kinds, followed in both directions, and which documents may be shown."""

    kinds: Collection[str]
    where: Filter = field(default_factory=Filter)
    # Links that are followed one after the other.
    steps: int = 10


# Documents by their ids; with their first passage those that pass the filter and have one.
Tied = Mapping[str, tuple[Document, Chunk | None]]


class Loaded(NamedTuple):
    """Passages with their documents, the words that stand in each, and what they are tied to."""

    passages: Sequence[tuple[Document, Chunk, tuple[str, ...]]]
    tied: Tied


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """How much an index has, how it searches, and what its scores are measured by."""

    documents: int
    passages: int
    vectors: int
    links: int
    vector_search: str = "exact"
    calibration: Mapping[str, float] = field(default_factory=dict)
    # The number of passages in each language whose words have stems of their own, without English.
    languages: Mapping[str, int] = field(default_factory=dict)


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

    def is_own(self, change_set: ChangeSet, /) -> bool:
        """Tell whether the caller made a change set; without others, it made all of them."""


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


class Snapshot(Protocol):
    """One state of an index; a search makes at most three of these calls.

    Equal scores are ordered by path and by position in the document.
    """

    def candidates(
        self,
        probes: Sequence[ProbeVector],
        filters: Sequence[Filter],
        k: int,
        also: Collection[str] = (),
        count_up_to: int = 0,
    ) -> Candidates:
        """Find the k best passages by words and by vector under each of the filters.

        The documents with the ids in `also` are measured whether they are found or not. Those that
        pass the first filter are counted as far as it matters.
        """

    def neighbours(
        self, document_ids: Sequence[str], where: Filter
    ) -> Mapping[str, Sequence[tuple[Document, PassageKey]]]:
        """Map each document to those it links to that pass the filter, with their first passage."""

    def load(
        self,
        keys: Sequence[PassageKey],
        words: Sequence[str] = (),
        languages: Sequence[str] = ("en",),
        ties: Ties | None = None,
    ) -> Loaded:
        """Return passages with their documents, and which of these words stand in each.

        A word stands in a passage by its stems in any of the languages. With `ties`, what the
        documents are tied to comes with them.
        """

    def tied(self, documents: Sequence[Document], ties: Ties) -> Tied:
        """Return the other documents that ties join to these, directly or by way of others."""

    def get(self, names: Sequence[str]) -> Mapping[str, Document]:
        """Return documents by their ids or paths; where one name is both, the id counts."""

    def list(
        self,
        where: Filter,
        order: Order = "path",
        limit: int | None = None,
        offset: int = 0,
        now: datetime | None = None,
    ) -> Documents:
        """List documents; by age as seen from `now`, where those without a date come last."""

    def count(self, where: Filter) -> int:
        """Count documents."""

    def facets(self, field: Facet, where: Filter) -> Mapping[str, int]:
        """Count documents by the values of a field, the most frequent first."""

    def first_passages(
        self, document_ids: Sequence[str], room: int = 0
    ) -> Mapping[str, Sequence[Chunk]]:
        """Return the first passage of each document, and more up to so many characters."""

    def links(
        self, to: Sequence[str], among: Collection[str] | None = None
    ) -> Mapping[str, tuple[Link, ...]]:
        """Map documents, or those among these, to their links to any of these names."""

    def similar(
        self, where: Filter, threshold: float, limit: int | None = None
    ) -> Sequence[tuple[float, str, str]]:
        """Return pairs of document ids whose mean vectors are this alike, the most alike first."""


class Index(Protocol):
    """A cache of one lane: it may vanish at any time and comes back the same."""

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Read one state; changes made meanwhile are not seen."""

    def info(self) -> IndexInfo:
        """Return the counts and the calibration."""

    def stamps(self, paths: Iterable[str] | None = None) -> Mapping[str, tuple[str, str]]:
        """Map each indexed path, or each of these that is indexed, to its stamp and version."""

    def apply(
        self,
        changed: Sequence[IndexedDocument],
        removed: Sequence[str] = (),
        restamped: Mapping[str, str] | None = None,
    ) -> None:
        """Add or replace documents, drop paths, and note new stamps, in one step."""

    def claim_missing(
        self, limit: int, paths: Collection[str] = ()
    ) -> Sequence[tuple[Document, Chunk]]:
        """Take passages to encode, one for each digest, the most recently changed first.

        With `paths`, those of these paths only. A claim that is not filled becomes free again.
        """

    def fill(self, vectors: Mapping[str, Vectors]) -> None:
        """Give vectors to the passages with these digests."""

    def calibrate(self, calibration: Mapping[str, float]) -> None:
        """Keep what scores are measured by."""

    # Life. An engine that needs nothing does nothing here.

    def open(self) -> bool:
        """Take up what was saved; tell whether there was anything to use."""

    def prepare(self) -> None:
        """Bring into memory what the first search needs."""

    def save(self) -> str | None:
        """Save what changed; return the name of what was written, if anything was."""

    def contents(self) -> Mapping[str, Sequence[Any]]:
        """List everything by document and passage, so that two indexes can be compared."""

    def close(self) -> None:
        """Let go of what is open."""


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

    @property
    def latin_only(self) -> bool:
        """Whether vectors of texts in other than Latin letters say nothing."""

    def prepare(self) -> None:
        """Load what the first text needs."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector for each text, in order."""

    def rest(self, idle_seconds: float, /) -> bool:
        """Give memory back if no text came for so long, and tell whether there was any.

        The next text loads the model again.
        """

    def close(self) -> None:
        """Let go of the model and of files; the next text opens them again."""


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
