"""How answers about documentation and commits look: what fits, ages, rounded scores."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from ragdocs.project.sources import split_path
from ragdocs.serve.surface import layouts
from ragdocs.serve.surface.shapes.docs import (
    DocHit,
    DocHits,
    DocText,
    Sibling,
    SourceList,
    SourceShape,
)
from ragdocs.serve.surface.shapes.journal import CommitHit, CommitHits
from ragdocs.text.formats.journal import SUFFIX
from ragdocs.types import Chunk, Document, Findings, Hit, Variant

if TYPE_CHECKING:
    from ragdocs.stores.sources.shelf import SourceState
    from ragdocs.text.sections import Section
    from ragdocs.verbs.docs import DocumentText, Surroundings

# Characters that an answer grows to for each hit, and for all of them at least; and those of a
# section that is shown around one.
ROOM_A_HIT = 1400
LEAST_ROOM = 2400
LONGEST_SECTION = 1600
# The share of an answer that the list of headings may take.
HEADINGS_SHARE = 4
# Paths of a commit that are listed.
MOST_PATHS = 10
# Other languages and versions of a page that are named.
MOST_SIBLINGS = 8


def passages(
    findings: Findings, surroundings: Sequence[Surroundings], room: int, *, explain: bool
) -> DocHits:
    """Lay out passages of the documentation, each with as much of its section as there is room."""
    shapes = [_passage(hit, explain=explain) for hit in findings.hits]
    sizes = [layouts.cost(hit.chunk.text) for hit in findings.hits]
    spare = _spare(shapes, sizes, room)
    sections = _grown(findings.hits, surroundings, sizes, spare)
    contents = []
    for shape, section in zip(shapes, sections, strict=True):
        contents.append(_joined(section))
        if len(section) > 1:
            shape["matched"] = shape["lines"]
            shape["lines"] = f"{section[0].start_line}-{section[-1].end_line}"
    results, notes = layouts.share_room(shapes, contents, room, layouts.CUT)
    omitted = findings.omitted + len(shapes) - len(results)
    return DocHits(result=results, omitted=omitted, notes=[*findings.notes, *notes])


def _spare(shapes: Sequence[DocHit], sizes: Sequence[int], room: int) -> int:
    """Return how many characters are left for the sections around hits of these sizes."""
    used = sum(sizes)
    for shape in shapes:
        used += layouts.cost(shape)
    return min(room, max(LEAST_ROOM, ROOM_A_HIT * len(shapes))) - used


def _grown(
    hits: Sequence[Hit],
    surroundings: Sequence[Surroundings],
    sizes: Sequence[int],
    spare: int,
) -> list[list[Chunk]]:
    """Return the passages that are shown for each hit, the better hits first in the choice.

    What follows a passage is more often wanted than what stands before it. No passage is shown
    twice.
    """
    taken = {hit.chunk.id for hit in hits}
    grown = []
    for hit, around, size in zip(hits, surroundings, sizes, strict=True):
        room = min(spare, LONGEST_SECTION - size)
        after, left = _fitting(around.after, taken, room)
        before, left = _fitting(around.before[::-1], taken, left)
        spare -= room - left
        grown.append([*before[::-1], hit.chunk, *after])
    return grown


def _fitting(passages: Sequence[Chunk], taken: set[str], room: int) -> tuple[list[Chunk], int]:
    """Take passages up to one that does not fit or is already shown; return the room left too."""
    fitting: list[Chunk] = []
    for passage in passages:
        # What it costs is found out only where that can fit: a text costs more than its length.
        if passage.id in taken or len(passage.text) > room:
            break
        size = layouts.cost(passage.text)
        if size > room:
            break
        room -= size
        taken.add(passage.id)
        fitting.append(passage)
    return fitting, room


def _joined(section: Sequence[Chunk]) -> str:
    """Return the text of passages that follow each other."""
    text = section[0].text
    for before, passage in pairwise(section):
        gap = passage.start_line - before.end_line
        text += (" ", "\n", "\n\n")[max(0, min(gap, 2))] + passage.text
    return text


def sources(states: Sequence[SourceState]) -> SourceList:
    """Lay out the documentation beyond the project."""
    shapes = []
    for state in states:
        shape = SourceShape(
            name=state.name,
            line=state.line,
            version=state.version,
            documents=state.documents,
            location=state.location,
            note=state.note,
            problem=state.problem,
        )
        shapes.append(shape)
    return SourceList(result=shapes)


def document(reading: DocumentText, room: int) -> DocText:
    """Lay out a document or the part of it that was asked for, with its headings if it is cut."""
    content, lines, omitted = _excerpt(reading, room)
    headings: list[str] = []
    # The headings help only where something is left to be asked for.
    if omitted and not reading.by_heading:
        headings = _headings(reading.sections, room // HEADINGS_SHARE)
        rest = room - layouts.cost(headings)
        content, lines, omitted = _excerpt(reading, rest)
    return DocText(
        path=reading.document.path,
        title=layouts.title(reading.document),
        content=content,
        lines=lines,
        headings=headings,
        omitted=omitted,
    )


def _excerpt(reading: DocumentText, room: int) -> tuple[str, str, str]:
    """Cut whole lines out of a document; lines are called as the file numbers them."""
    if not reading.numbers:
        return layouts.excerpt(reading.text, 1, reading.span, room)
    return layouts.numbered_excerpt(reading.text, reading.numbers, reading.span, room)


def commits(findings: Findings, now: datetime, room: int) -> CommitHits:
    """Lay out commits."""

    def shape(hit: Hit) -> CommitHit:
        return _commit(hit, now)

    results, omitted, notes = layouts.fit(findings, shape, room)
    return CommitHits(result=results, omitted=omitted, notes=notes)


def _passage(hit: Hit, *, explain: bool) -> DocHit:
    shape = DocHit(
        path=hit.document.path,
        score=round(hit.score, 3),
        content="",
        title=layouts.title(hit.document),
        header_path=layouts.header(hit),
        lines=layouts.lines(hit),
        tags=layouts.tags(hit.document),
        modified_at=layouts.moment(hit.document.modified_at),
        why=layouts.why(hit),
    )
    source = split_path(hit.document.path)
    if source is not None:
        shape["source"], shape["version"], _ = source
    if hit.siblings:
        shape["siblings"] = siblings(hit)
    if explain:
        shape["signals"] = layouts.signals(hit)
    return shape


def siblings(hit: Hit) -> list[Sibling]:
    """Lay out the other languages and versions of a page."""
    return list(map(_sibling, hit.siblings[:MOST_SIBLINGS]))


def _sibling(variant: Variant) -> Sibling:
    shape = Sibling(path=variant.path)
    if variant.language:
        shape["language"] = variant.language
    if variant.version:
        shape["version"] = variant.version
    return shape


def _headings(sections: Sequence[Section], room: int) -> list[str]:
    """Return the headings with their lines, and how many more there are."""
    rows = []
    for section in sections:
        block = section.block
        if block.title:
            rows.append(f"{'#' * block.level} {section.names[-1]} (line {section.line})")
    listed = layouts.within(rows, room)
    if len(listed) < len(rows):
        listed.append(f"… {len(rows) - len(listed)} more headings")
    return listed


def _commit(hit: Hit, now: datetime) -> CommitHit:
    document = hit.document
    files = _changed_files(document)
    shape = CommitHit(
        commit=document.path.removesuffix(SUFFIX),
        subject=layouts.title(document),
        content="",
        author=layouts.cut(document.source, layouts.LONGEST_ORIGIN),
        timestamp=layouts.moment(document.created_at),
        age=layouts.age(document.created_at, now),
        paths=files[:MOST_PATHS],
        score=round(hit.score, 3),
        why="",
    )
    if hit.signals:
        shape["why"] = layouts.why(hit)
    if len(files) > MOST_PATHS:
        shape["paths_total"] = len(files)
    return shape


def _changed_files(document: Document) -> list[str]:
    """Return the files that a commit changed, without the folders they are in."""
    if document.git is None:
        return []
    changed = [str(path) for path in document.git.files_changed]
    folders = {path.rpartition("/")[0] for path in changed}
    return [path for path in changed if path not in folders]
