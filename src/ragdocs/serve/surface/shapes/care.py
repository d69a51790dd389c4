"""The shapes of answers about links, drafts of merges, the past and clients."""

from __future__ import annotations

# Pydantic reads nested TypedDicts of the standard library only from Python 3.12 on.
from typing_extensions import TypedDict


class NodeShape(TypedDict):
    """A text, or with an empty lane a target that is not indexed; `links` counts neighbours."""

    id: str
    lane: str
    path: str
    title: str
    type: str
    links: int


class EdgeShape(TypedDict):
    """A link between two nodes, by their ids."""

    source: str
    target: str
    type: str


class NeighbourShape(NodeShape):
    """A node next to the one in the middle; `direction` is out or back."""

    edge: str
    direction: str


class CentreShape(NodeShape):
    """The node that was asked about."""

    age: str
    author: str
    beginning: str
    neighbours: list[NeighbourShape]


class LinkGraph(TypedDict):
    """Nodes and the links between them; `omitted` counts nodes that were asked for besides."""

    nodes: list[NodeShape]
    edges: list[EdgeShape]
    centre: CentreShape | None
    total: int
    omitted: int
    notes: list[str]


class TextName(TypedDict):
    """A text by its lane, path, title and type."""

    lane: str
    path: str
    title: str
    type: str


class BrokenLink(TypedDict):
    """A link of a memory to a file that does not exist."""

    memory: TextName
    target: str
    context: str


class AmbiguousLink(TypedDict):
    """A link of a memory that several texts could be meant by."""

    memory: TextName
    target: str
    context: str
    candidates: list[TextName]


class GapShape(TypedDict):
    """A target that several memories name and no document covers."""

    target: str
    is_file: bool
    memory_count: int
    memories: list[TextName]
    oldest: str | None
    newest: str | None


class LinkReview(TypedDict):
    """Links to look at; `omitted` counts those that are not listed."""

    broken: list[BrokenLink]
    ambiguous: list[AmbiguousLink]
    gaps: list[GapShape]
    omitted: int
    notes: list[str]


class QuestionShape(TypedDict):
    """A question that found nothing relevant."""

    question: str
    count: int
    first_at: str
    last_at: str


class SectionShape(TypedDict):
    """A section of a document, by its first line."""

    path: str
    line: int


class RepeatedShape(TypedDict):
    """A heading under which several sections say nearly the same."""

    heading: str
    sections: list[SectionShape]


class DocumentationGaps(TypedDict):
    """What the documentation lacks; `omitted` counts what is not listed."""

    targets: list[GapShape]
    questions: list[QuestionShape]
    unlinked: list[TextName]
    repeated: list[RepeatedShape]
    omitted: int
    notes: list[str]


class ClaimShape(TextName):
    """One side of a contradiction; line and text are empty where the authors said so."""

    version: str
    line: int | None
    text: str


class ContradictionShape(TypedDict):
    """Two memories that cannot both hold, and the words in which they differ."""

    first: ClaimShape
    second: ClaimShape
    how: str


class SupersededMemory(TypedDict):
    """A memory that others supersede."""

    memory: TextName
    version: str
    successors: list[TextName]


class ConflictingMemories(TypedDict):
    """What a person should decide; `omitted` counts what is not listed."""

    contradictions: list[ContradictionShape]
    superseded: list[SupersededMemory]
    omitted: int
    notes: list[str]


class RestatedMemory(TypedDict):
    """A memory that a section says already; `diff` puts a link in the place of its text."""

    memory: TextName
    page: TextName
    heading: str
    lines: str
    share: float
    section: str
    diff: str


class PatchedPage(TypedDict):
    """A memory that is used often and stable; `diff` adds it to a page."""

    memory: TextName
    page: TextName
    uses: int
    diff: str


class DocsSuggestions(TypedDict):
    """What could move between memories and documentation; nothing was changed."""

    restated: list[RestatedMemory]
    patches: list[PatchedPage]
    omitted: int
    notes: list[str]


class HandoverLine(TypedDict):
    """One line: what is said, and where it stands (a path with its line, or where it was kept)."""

    text: str
    source: str
    date: str
    remark: str


class HandoverChapter(TypedDict):
    """One chapter; `omitted` counts lines for which there was no room."""

    name: str
    lines: list[HandoverLine]
    omitted: int


class HandoverPage(TypedDict):
    """What somebody who takes over should know; `page` is the whole as markdown."""

    since: str
    chapters: list[HandoverChapter]
    page: str


class StatementShape(TypedDict):
    """A paragraph, an item or a heading, and the numbers of the memories that say it.

    `contradicts` has the words in which it contradicts the one before it, or nothing.
    """

    text: str
    sources: list[int]
    contradicts: str


class SideShape(TextName):
    """One of the memories of a merge."""

    version: str
    age: str
    statements: list[StatementShape]


class MergeDraftShape(TypedDict):
    """A proposal for one memory in the place of several; nothing was changed."""

    sides: list[SideShape]
    target: str
    version: str
    statements: list[StatementShape]
    content: str


class EventShape(TextName):
    """A change of memories; `version` is the text that it replaced, `became` the new one."""

    verb: str
    at: str
    time: str
    others: list[str]
    exists: bool
    author: str
    branch: str
    version: str
    became: str


class SessionShape(TypedDict):
    """Changes with less than an hour between them, newest first."""

    begins: str
    ends: str
    branches: list[str]
    authors: list[str]
    events: list[EventShape]


class DayShape(TypedDict):
    """The sessions of one day, newest first."""

    day: str
    sessions: list[SessionShape]


class MemoryTimeline(TypedDict):
    """Days, newest first; `omitted` counts earlier changes."""

    days: list[DayShape]
    omitted: int
    notes: list[str]


class ClientShape(TypedDict):
    """A client that is connected, or asked within the last minutes."""

    program: str
    user: str
    last_call: str
    age: str
    calls: int
    is_caller: bool


class ConnectedClients(TypedDict):
    """Clients, the latest first."""

    result: list[ClientShape]
