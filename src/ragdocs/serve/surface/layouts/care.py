"""How answers about links, drafts, the past and clients look."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ragdocs.serve.surface import layouts
from ragdocs.serve.surface.clients import Client
from ragdocs.serve.surface.shapes.care import (
    AmbiguousLink,
    BrokenLink,
    CentreShape,
    ClaimShape,
    ClientShape,
    ConflictingMemories,
    ContradictionShape,
    DayShape,
    DocsSuggestions,
    DocumentationGaps,
    EdgeShape,
    EventShape,
    GapShape,
    LinkGraph,
    LinkReview,
    MemoryTimeline,
    MergeDraftShape,
    NeighbourShape,
    NodeShape,
    PatchedPage,
    QuestionShape,
    RepeatedShape,
    RestatedMemory,
    SectionShape,
    SessionShape,
    SideShape,
    StatementShape,
    SupersededMemory,
    TextName,
)
from ragdocs.types import Document

if TYPE_CHECKING:
    from ragdocs.verbs.links import Centre, Gap, Graph, LinkProblems, Node
    from ragdocs.verbs.memories.draft import MergeDraft, Side, Statement
    from ragdocs.verbs.memories.restating import DocsChanges
    from ragdocs.verbs.memories.timeline import Event, Events
    from ragdocs.verbs.quality.contradictions import Contradiction
    from ragdocs.verbs.quality.contradictions import Side as Claim
    from ragdocs.verbs.quality.gaps import MissingDocs

# Links of each kind that are listed.
MOST_LINKS = 50
MOST_NEIGHBOURS = 60
BEGINNING = 240
LONGEST_SECTION = 1_200
# Sections that are listed for one heading.
MOST_SECTIONS = 10
NO_QUESTIONS = (
    "questions that find nothing are not kept; write keep_questions = true under [server] in your "
    "own config.toml to keep them on this machine"
)
LONGEST_CONTEXT = 160
_HEADING = re.compile(r"(?:^|(?<= ))#{1,6} ")
_LINK = re.compile(r"\[\[(?:[^\[\]|]{1,1000}\|)?([^\[\]|]{1,1000})\]\]")


def graph(drawing: Graph, notes: Sequence[str], now: datetime) -> LinkGraph:
    """Lay out nodes and edges."""
    edges = []
    for edge in drawing.edges:
        edges.append(EdgeShape(source=edge.source, target=edge.target, type=edge.kind))
    centre = None
    if drawing.centre is not None:
        centre = _centre(drawing.centre, now)
    return LinkGraph(
        nodes=list(map(_node, drawing.nodes)),
        edges=edges,
        centre=centre,
        total=drawing.total,
        omitted=drawing.total - len(drawing.nodes),
        notes=list(notes),
    )


def _node(node: Node) -> NodeShape:
    if node.document is None:
        # The last step of a path is what people call a file.
        title = node.name.rstrip("/").rpartition("/")[2]
        return NodeShape(
            id=node.id, lane="", path=node.name, title=title, type="", links=node.links
        )
    return NodeShape(id=node.id, links=node.links, **_name(node.document))


def _centre(centre: Centre, now: datetime) -> CentreShape:
    neighbours = []
    for direction, links in (("out", centre.out), ("back", centre.back)):
        for node, kind in links:
            neighbours.append(NeighbourShape(edge=kind, direction=direction, **_node(node)))
    document = centre.node.document
    age = author = ""
    if document is not None:
        age = layouts.age(document.created_at or document.modified_at, now)
        author = layouts.provenance(document).get("author", "")
    return CentreShape(
        age=age,
        author=author,
        beginning=layouts.cut(_without_marks(centre), BEGINNING),
        neighbours=neighbours[:MOST_NEIGHBOURS],
        **_node(centre.node),
    )


def _without_marks(centre: Centre) -> str:
    """Return how a text begins, without its title and the marks of headings and links."""
    text = centre.beginning
    if centre.node.document is not None:
        text = text.removeprefix(f"# {centre.node.document.title} ")
    return _LINK.sub(r"\1", _HEADING.sub("", text))


def _name(document: Document) -> TextName:
    return TextName(
        lane=document.lane,
        path=document.path,
        title=layouts.title(document),
        type=document.kind,
    )


def _names(documents: Iterable[Document]) -> list[TextName]:
    return list(map(_name, documents))


def link_review(problems: LinkProblems, notes: Sequence[str]) -> LinkReview:
    """Lay out links that a person should look at."""
    broken = []
    for item in problems.broken[:MOST_LINKS]:
        context = layouts.cut(item.link.context, LONGEST_CONTEXT)
        broken.append(
            BrokenLink(memory=_name(item.document), target=item.link.target, context=context)
        )
    ambiguous = []
    for item in problems.ambiguous[:MOST_LINKS]:
        context = layouts.cut(item.link.context, LONGEST_CONTEXT)
        ambiguous.append(
            AmbiguousLink(
                memory=_name(item.document),
                target=item.link.target,
                context=context,
                candidates=_names(item.candidates),
            )
        )
    gaps = list(map(_gap, problems.gaps[:MOST_LINKS]))
    total = len(problems.broken) + len(problems.ambiguous) + len(problems.gaps)
    listed = len(broken) + len(ambiguous) + len(gaps)
    return LinkReview(
        broken=broken,
        ambiguous=ambiguous,
        gaps=gaps,
        omitted=total - listed,
        notes=list(notes),
    )


def _gap(gap: Gap) -> GapShape:
    return GapShape(
        target=gap.target,
        is_file=gap.is_file,
        memory_count=gap.total,
        memories=_names(gap.memories),
        oldest=layouts.moment(gap.oldest),
        newest=layouts.moment(gap.newest),
    )


def gaps(missing: MissingDocs, notes: Sequence[str], limit: int, room: int) -> DocumentationGaps:
    """Lay out what the documentation lacks, as much of each kind as fits."""
    questions = []
    for question in missing.questions or ():
        questions.append(
            QuestionShape(
                question=question.text,
                count=question.count,
                first_at=layouts.iso(question.first_at),
                last_at=layouts.iso(question.last_at),
            )
        )
    repeated = []
    for group in missing.repeated:
        sections = []
        for section in group.sections[:MOST_SECTIONS]:
            sections.append(SectionShape(path=section.document.path, line=section.line))
        repeated.append(RepeatedShape(heading=group.heading, sections=sections))
    groups: list[list[Any]] = [
        list(map(_gap, missing.targets)),
        questions,
        _names(missing.unlinked),
        repeated,
    ]
    share = room // len(groups)
    fitting_groups: list[list[Any]] = []
    omitted = 0
    for items in groups:
        fitting = layouts.within(items[:limit], share)
        omitted += len(items) - len(fitting)
        fitting_groups.append(fitting)
    targets, listed, unlinked, same = fitting_groups
    notes = list(notes)
    if missing.questions is None:
        notes.append(NO_QUESTIONS)
    return DocumentationGaps(
        targets=targets,
        questions=listed,
        unlinked=unlinked,
        repeated=same,
        omitted=omitted,
        notes=notes,
    )


def conflicts(
    contradictions: Sequence[Contradiction],
    superseded: Sequence[tuple[Document, Sequence[Document]]],
    notes: Sequence[str],
    room: int,
) -> ConflictingMemories:
    """Lay out memories that cannot all hold, as many as fit."""
    pairs = []
    for item in contradictions:
        pairs.append(
            ContradictionShape(first=_claim(item.first), second=_claim(item.second), how=item.how)
        )
    replaced = []
    for document, successors in superseded:
        replaced.append(
            SupersededMemory(
                memory=_name(document), version=document.version, successors=_names(successors)
            )
        )
    some = layouts.within(pairs, room // 2)
    others = layouts.within(replaced, room // 2)
    return ConflictingMemories(
        contradictions=some,
        superseded=others,
        omitted=len(pairs) - len(some) + len(replaced) - len(others),
        notes=list(notes),
    )


def _claim(side: Claim) -> ClaimShape:
    return ClaimShape(
        version=side.document.version,
        line=side.line or None,
        text=layouts.cut(side.text, LONGEST_CONTEXT),
        **_name(side.document),
    )


def docs_changes(changes: DocsChanges, room: int) -> DocsSuggestions:
    """Lay out what could move between memories and documentation, as much as fits."""
    restated = []
    for item in changes.restated:
        restated.append(
            RestatedMemory(
                memory=_name(item.memory),
                page=_name(item.page),
                heading=" > ".join(item.position.headings),
                lines=f"{item.position.line}-{item.passage.end_line}",
                share=round(item.share, 3),
                section=layouts.cut(item.passage.text, LONGEST_SECTION),
                diff="\n".join(item.replacement.lines),
            )
        )
    patches = []
    for patch in changes.patches:
        patches.append(
            PatchedPage(
                memory=_name(patch.memory),
                page=_name(patch.page),
                uses=patch.uses,
                diff="\n".join(patch.patch.lines),
            )
        )
    some = layouts.within(restated, room // 2)
    others = layouts.within(patches, room // 2)
    return DocsSuggestions(
        restated=some,
        patches=others,
        omitted=len(restated) - len(some) + len(patches) - len(others),
        notes=list(changes.notes),
    )


def merge_draft(draft: MergeDraft, now: datetime) -> MergeDraftShape:
    """Lay out a proposal for a merge."""
    return MergeDraftShape(
        sides=[_side(side, now) for side in draft.sides],
        target=draft.target,
        version=draft.version,
        statements=list(map(_statement, draft.statements)),
        content=draft.content,
    )


def _side(side: Side, now: datetime) -> SideShape:
    moment = side.document.created_at or side.document.modified_at
    return SideShape(
        version=side.version,
        age=layouts.age(moment, now),
        statements=list(map(_statement, side.statements)),
        **_name(side.document),
    )


def _statement(statement: Statement) -> StatementShape:
    return StatementShape(
        text=statement.text,
        sources=list(statement.sources),
        contradicts=statement.contradicts,
    )


def timeline(events: Events, gap_seconds: float, now: datetime) -> MemoryTimeline:
    """Lay out what happened by days and sessions, newest first."""
    days: list[DayShape] = []
    last: Event | None = None
    for event in events.events:
        day = event.at.astimezone(now.tzinfo).date().isoformat()
        is_new_day = not days or days[-1]["day"] != day
        if is_new_day:
            days.append(DayShape(day=day, sessions=[]))
        pause = 0.0
        if last is not None:
            pause = (last.at - event.at).total_seconds()
        if is_new_day or pause > gap_seconds:
            session = SessionShape(begins="", ends="", branches=[], authors=[], events=[])
            days[-1]["sessions"].append(session)
        _add_event(days[-1]["sessions"][-1], _event(event, now))
        last = event
    return MemoryTimeline(days=days, omitted=events.omitted, notes=[])


def _add_event(session: SessionShape, event: EventShape) -> None:
    session["events"].append(event)
    session["begins"] = event["time"]
    session["ends"] = session["ends"] or event["time"]
    if event["branch"] and event["branch"] not in session["branches"]:
        session["branches"].append(event["branch"])
    if event["author"] and event["author"] not in session["authors"]:
        session["authors"].append(event["author"])


def _event(event: Event, now: datetime) -> EventShape:
    name = TextName(lane="memory", path=event.path, title=event.path, type="")
    author = event.author
    branch = ""
    if event.document is not None:
        name = _name(event.document)
        origin = layouts.provenance(event.document)
        author = author or origin.get("author") or origin.get("source", "")
        branch = origin.get("branch", "")
    return EventShape(
        verb=event.verb,
        at=layouts.iso(event.at),
        time=f"{event.at.astimezone(now.tzinfo):%H:%M}",
        others=list(event.others),
        exists=event.exists,
        author=author,
        branch=branch,
        version=event.before,
        became=event.after,
        **name,
    )


def client(record: Client, session: str, now: datetime) -> ClientShape:
    """Lay out what is known about a client."""
    return ClientShape(
        program=record.program,
        user=record.user,
        last_call=record.verb,
        age=layouts.age(record.last_at, now),
        calls=record.calls,
        is_caller=record.session == session,
    )
