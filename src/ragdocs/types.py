"""The nouns: frozen values that every layer may hold."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

# What a text that says nothing about itself is worth, from 1 to 10, and how sure it is, from 0 to
# 1.
UNSAID_IMPORTANCE = 5.0
UNSAID_CONFIDENCE = 1.0
# Before the stamp of a file that was written so recently that it may change within one tick.
FRESH = "racy-"
# The usual kinds of memories; any other word is accepted with a warning.
MEMORY_KINDS = ("journal", "plan", "fact", "observation", "reflection")
# The kinds of what a repository knows about itself, and those of entries; no others are accepted.
ITEM_KINDS = ("convention", "decision", "note")
ENTRY_KINDS = ("fact", "preference", "event", "insight", "task", "relationship")


@dataclass(frozen=True, slots=True)
class Link:
    """One link as its author wrote it: where to, what kind, and the words around it."""

    target: str
    kind: str
    context: str
    heading: str = ""


@dataclass(frozen=True, slots=True)
class GitContext:
    """The state of the working tree when a text was written.

    `files_total` counts those that were not listed, too.
    """

    branch: str
    commit: str
    dirty: bool
    files_changed: tuple[str, ...] = ()
    files_total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The card of one text: everything but its body."""

    id: str
    lane: str
    path: str
    title: str
    version: str
    kind: str = ""
    status: str = "active"
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    created_at: datetime | None = None
    modified_at: datetime | None = None
    expires_at: datetime | None = None
    links: tuple[Link, ...] = ()
    importance: float | None = None
    confidence: float | None = None
    source: str = ""
    git: GitContext | None = None
    size: int = 0
    extra: Mapping[str, object] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    # The name of the format that the text was read as.
    format: str = ""
    # Names that other documents may use in links to sections of this one.
    anchors: tuple[str, ...] = ()


BlockKind = Literal["heading", "fence", "code", "list", "table", "text", "comment", "front"]


class Block(NamedTuple):
    """A run of lines that belong together, by offsets into the text.

    `joints` are the inner offsets to cut at, `code` the spans of indented code in a list, `anchors`
    the ids that links may use for a heading beside those in its own text.
    """

    kind: BlockKind
    start: int
    stop: int
    level: int = 0
    title: str = ""
    joints: tuple[int, ...] = ()
    code: tuple[tuple[int, int], ...] = ()
    anchors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Parsed:
    """A card and the body that belongs to it, with its blocks.

    `first_line` is the body's line number in the file. Where the lines of the body are not those of
    the file, `numbers` has the file's line for each of them.
    """

    document: Document
    body: str
    blocks: Sequence[Block]
    first_line: int = 1
    numbers: Sequence[int] = ()


class Chunk(NamedTuple):
    """A passage of one document, with its position in the file."""

    id: str
    doc_id: str
    headings: tuple[str, ...]
    text: str
    start_line: int
    end_line: int
    digest: str


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A document cut into chunks, ready to be indexed.

    `stamp` tells whether its source changed since.
    """

    document: Document
    chunks: tuple[Chunk, ...]
    stamp: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What a hit must satisfy; an empty field asks for nothing.

    Words compare caselessly; `hidden` names statuses.
    """

    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    prefix: str = ""
    linked_to: tuple[str, ...] = ()
    min_importance: float = 0.0
    min_confidence: float = 0.0
    alive_at: datetime | None = None
    # Paths that are left out: of pages that another language or version stands for.
    without: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Probe:
    """One text to search for; a query may have several, each with its weight."""

    text: str
    name: str = "query"
    weight: float = 1.0


# What becomes of hits that others supersede: nothing, their successors are named, they come right
# below their successors, or these come in their place.
Superseded = Literal["listed", "named", "below", "left out"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What to look for, among what, and how many."""

    probes: tuple[Probe, ...]
    limit: int = 5
    where: Filter = field(default_factory=Filter)
    min_score: float = 0.0
    # How much meaning and words count, if not as the lane has it; what counts nothing is not asked.
    weights: tuple[float, float] | None = None
    # Whether to find nothing rather than what any question would find.
    floored: bool = False
    # Candidates of each source, if not as many as the limit needs.
    pool: int = 0
    # Importance that documents have earned, by id, on top of what they say themselves.
    earned: Mapping[str, float] = field(default_factory=dict)
    # The language and the version that are shown of a page which has several, if not those of the
    # question and of the lane.
    language: str = ""
    version: str = ""
    superseded: Superseded = "listed"


@dataclass(frozen=True, slots=True)
class Variant:
    """A page in one language and version, as the names of its folders say; "" if none does."""

    path: str
    language: str = ""
    version: str = ""


class Signal(NamedTuple):
    """One contribution to a score; the shares of a hit add up to its score."""

    probe: str
    source: str
    rank: int
    raw: float
    share: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that answers a query, with the reasons why.

    `words` are those of the query that stand in it, `siblings` the same page in other languages and
    versions.
    """

    document: Document
    chunk: Chunk
    score: float
    signals: tuple[Signal, ...]
    links: tuple[Link, ...] = ()
    words: tuple[str, ...] = ()
    # The documents that say that they supersede this one.
    successors: tuple[Document, ...] = ()
    siblings: tuple[Variant, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The answer to a query.

    Hits, how many more there were, what was missing while looking, and the time it took.
    """

    hits: tuple[Hit, ...]
    omitted: int = 0
    notes: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    # The part of the best score that the tenth-best document lacks; None where there are fewer.
    lead: float | None = None
    # The documents that pass the filter, counted up to a few where weak hits are left out.
    passing: int = 0
    # Successors of hits, by id, that are no hits themselves.
    successors: Mapping[str, Hit] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one pass over a store changed in the index."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    skipped: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0


class Expect(enum.Enum):
    """What a writer expects to find, when it is not one exact version."""

    ABSENT = "absent"
    ANY = "any"
    PRESENT = "present"


@dataclass(frozen=True, slots=True)
class Put:
    """Write this text at this path.

    `expect` is a version or an `Expect`; a store may keep the `note` with the change.
    """

    path: str
    text: str
    expect: str | Expect = Expect.ANY
    note: str = ""


@dataclass(frozen=True, slots=True)
class Discard:
    """Move this path to the trash, or without `trash` only away.

    `expect` is a version or an `Expect`.
    """

    path: str
    expect: str | Expect = Expect.PRESENT
    trash: bool = True


@dataclass(frozen=True, slots=True)
class Restore:
    """Write at this path the exact bytes of an earlier version.

    `expect` is a version or an `Expect`.
    """

    path: str
    version: str
    expect: str | Expect = Expect.ANY


Change = Put | Discard | Restore
Verb = Literal["create", "update", "append", "edit", "delete", "merge", "rename", "restore", "undo"]


@dataclass(frozen=True, slots=True)
class Written:
    """The outcome of one change.

    It has a new version, or the path in the trash that the old text was moved to. `removed` names
    the secrets that were replaced, `notes` what failed beside the change, which is made.
    `before` is the version that was there, where the store can recover it.
    """

    path: str
    version: str = ""
    moved_to: str = ""
    before: str = ""
    removed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """A text as read from its store; `problems` say what had to be mended to read it at all.

    A store that has the metadata of its texts gives them as `card`; then the text has no front
    matter.
    """

    path: str
    text: str
    version: str
    stamp: str
    size: int
    modified_at: datetime | None = None
    problems: tuple[str, ...] = ()
    card: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Scan:
    """The state of a store: a stamp for each path.

    `unreadable` maps the files and whole folders that could not be read to the reason, `modified`
    those whose last change is known to its time.
    """

    stamps: Mapping[str, str]
    unreadable: Mapping[str, str] = field(default_factory=dict)
    modified: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Revision:
    """One file in a change set: the version it replaced (`version`) and the new one (`after`).

    A version is "" where there is no file.
    """

    path: str
    version: str
    at: datetime
    verb: Verb
    size: int
    after: str = ""
    # Who changed it: a program or a person, where that is known.
    author: str = ""


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """Changes that a store made at once, all or none.

    A store that several people share knows the `author`.
    """

    at: datetime
    verb: Verb
    steps: tuple[Revision, ...]
    author: str = ""


AccessKind = Literal["get", "search", "used"]


@dataclass(frozen=True, slots=True)
class Question:
    """A question that found nothing relevant, and how often it was asked."""

    text: str
    count: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class StepSummary:
    """The outcome of one step of a run, as it was written down.

    `timestamp` is in ISO 8601.
    """

    run_id: str
    step_id: str
    timestamp: str
    text: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AppendedSummary:
    """A summary as it was written, without secrets.

    `total` counts the summaries there are now, `pruned` the old ones that were dropped for it.
    `redacted` names the rules by which secrets were replaced.
    """

    summary: StepSummary
    total: int
    pruned: int
    path: str
    redacted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Exchanged:
    """An exchange with a remote: commits received and sent, and the files that were merged."""

    remote: str
    branch: str
    received: int
    sent: int
    merged: tuple[str, ...]
