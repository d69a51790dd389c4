"""How answers about the journal look: what fits, ages, rounded scores, times as text."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from ragdocs.serve.surface import layouts
from ragdocs.serve.surface.shapes import journal as shapes
from ragdocs.text.formats.journal import SUFFIX
from ragdocs.types import Exchanged, Hit

if TYPE_CHECKING:
    from ragdocs.text.merge import Merge
    from ragdocs.verbs.docs import Span
    from ragdocs.verbs.journal import (
        EntryList,
        JournalFindings,
        JournalReading,
        SectionTree,
        WrittenEntry,
    )

LONGEST_CONTEXT = 200
INSTRUCTIONS = """\
The draft keeps every line of both versions. {disagreements} Write one text that says what is true \
now{context}: keep what they agree on, decide or name what they disagree about, drop repetitions \
and marks. Then read the section with <read the journal> and send the text as overview with \
<write to the journal>, with an entry that says how you decided."""


def text(reading: JournalReading, span: Span | None, room: int) -> shapes.JournalText:
    """Lay out an overview or an entry, or some lines of it."""
    content, lines, omitted = layouts.excerpt(reading.text, 1, span, room)
    return shapes.JournalText(
        id=reading.id,
        type=reading.kind,
        content=content,
        lines=lines,
        version=reading.version,
        timestamp=layouts.moment(reading.at),
        entry_count=reading.entry_count,
        exists=reading.exists,
        omitted=omitted,
        notes=list(reading.notes),
    )


def written(entry: WrittenEntry) -> shapes.JournalWritten:
    """Lay out an entry that was committed."""
    return shapes.JournalWritten(
        id=entry.id,
        path=entry.path,
        commit=entry.commit,
        entry_count=entry.entry_count,
        overview_changed=entry.overview_changed,
        rebased=entry.rebased,
        warnings=[*layouts.removed(entry.written), *entry.problems],
    )


def contents(tree: SectionTree, room: int) -> shapes.Contents:
    """Lay out the tree of sections; those that do not fit are counted."""
    shape = _section(tree)
    shape["notes"] = []
    if "subsections" in shape:
        below = shape["subsections"]
        fitting = layouts.within(below, room)
        shape["subsections"] = fitting
        unfit = len(below) - len(fitting)
        if unfit:
            note = f"{unfit} more do not fit; ask for less depth or for one of them"
            shape["notes"].append(note)
    return cast("shapes.Contents", shape)


def entries(listed: EntryList, room: int) -> shapes.ListedEntries:
    """Lay out a list of entries."""
    rows = []
    for entry in listed.entries:
        moment = layouts.iso(entry.at)
        rows.append(shapes.ListedEntry(id=entry.id, timestamp=moment, summary=entry.summary))
    fitting = layouts.within(rows, room)
    notes = []
    if len(fitting) < len(rows):
        notes.append(f"{len(rows) - len(fitting)} did not fit; ask for fewer")
    return shapes.ListedEntries(result=fitting, total=listed.total, notes=notes)


def hits(findings: JournalFindings, now: datetime, room: int) -> shapes.JournalHits:
    """Lay out the entries that a search found."""

    def shape(hit: Hit) -> shapes.JournalHit:
        match = findings.matches[hit.chunk.id]
        return shapes.JournalHit(
            id=match.id,
            content="",
            work_context_score=round(match.context_score, 3),
            content_score=round(match.content_score, 3),
            combined_score=round(hit.score, 3),
            timestamp=layouts.moment(hit.document.created_at),
            age=layouts.age(hit.document.created_at, now),
        )

    results, omitted, notes = layouts.fit(findings.findings, shape, room)
    return shapes.JournalHits(result=results, omitted=omitted, notes=notes)


def exchanged(outcome: Exchanged) -> shapes.Exchanged:
    """Lay out what came from a remote and what went there."""
    return shapes.Exchanged(
        remote=outcome.remote,
        branch=outcome.branch,
        received=outcome.received,
        sent=outcome.sent,
        merged=[path.removesuffix(SUFFIX) for path in outcome.merged],
        notes=[],
    )


def synthesis(section: str, merged: Merge, work_context: str) -> shapes.Synthesis:
    """Lay out a draft of two versions, and what to do with it."""
    context = " ".join(work_context.split())[:LONGEST_CONTEXT]
    if context:
        context = f" for {context}"
    disagreements = _disagreements(merged.overlaps)
    return shapes.Synthesis(
        section=section,
        draft=merged.text,
        disagreements=merged.overlaps,
        synthesis="",
        model="",
        instructions=INSTRUCTIONS.format(disagreements=disagreements, context=context),
    )


def _disagreements(overlaps: int) -> str:
    if not overlaps:
        return "The versions do not conflict."
    count = f"{overlaps} places"
    if overlaps == 1:
        count = "one place"
    return f"They disagree in {count}, between <<<<<<< and >>>>>>>."


def _section(tree: SectionTree) -> dict[str, Any]:
    shape: dict[str, Any] = {
        "id": tree.id,
        "type": tree.kind,
        "last_updated": layouts.moment(tree.last_updated),
        "entry_count": tree.entry_count,
    }
    if tree.below is not None:
        shape["subsections"] = list(map(_section, tree.below))
    return shape
