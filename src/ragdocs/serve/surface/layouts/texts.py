"""What the verbs of single texts return, laid out as answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from ragdocs.serve.surface import layouts
from ragdocs.serve.surface.flags import COMPARED, state_words
from ragdocs.serve.surface.shapes import (
    ComparedTexts,
    LinkBackShape,
    LinkOutShape,
    PieceShape,
    RegionShape,
    SecretsFound,
    SecretShape,
    SimilarShape,
    TextLinks,
    TextShape,
)
from ragdocs.text.link_kinds import TOUCHES
from ragdocs.text.visible import visible
from ragdocs.types import Document

if TYPE_CHECKING:
    # The verbs bring the engines with them: whoever answers has imported them.
    from ragdocs.text.merge import Region
    from ragdocs.text.redaction.passes import Redaction
    from ragdocs.text.redaction.spans import Finding
    from ragdocs.verbs.living.drift import LinkState
    from ragdocs.verbs.texts import LinkBack, LinkOut, Neighbourhood, WholeText


def text(whole: WholeText, now: datetime) -> TextShape:
    """Lay out a whole text with its card."""
    document = whole.document
    content = whole.source.text
    return TextShape(
        lane=document.lane,
        path=document.path,
        title=layouts.title(document),
        type=document.kind,
        status=document.status,
        tags=list(document.tags),
        version=whole.source.version,
        content=content,
        first_line=whole.first_line,
        fields=dict(whole.fields),
        location=whole.location,
        created_at=layouts.moment(document.created_at),
        age=layouts.age(document.created_at, now),
        modified_at=layouts.moment(whole.source.modified_at),
        modified_age=layouts.age(whole.source.modified_at, now),
        problems=[*document.problems],
        crlf="\r\n" in content,
        hidden=visible(content) != content,
    )


def links(neighbourhood: Neighbourhood, room: int, now: datetime) -> TextLinks:
    """Lay out the links of a text, as many as fit."""
    out = [_link_out(outward) for outward in neighbourhood.out]
    back = [_link_back(backward, now) for backward in neighbourhood.back]
    similar = []
    for document, score in neighbourhood.similar:
        shape = SimilarShape(
            path=document.path,
            title=layouts.title(document),
            type=document.kind,
            score=round(score, 2),
        )
        similar.append(shape)
    shown_out = layouts.within(out, room // 2)
    shown_back = layouts.within(back, room // 2)
    return TextLinks(
        out=shown_out,
        out_omitted=len(out) - len(shown_out),
        back=shown_back,
        back_omitted=len(back) - len(shown_back),
        similar=similar,
    )


def add_states(answer: TextLinks, states: Sequence[LinkState]) -> None:
    """Say beside each link of a memory what became of its target."""
    by_target = {(state.link.target, state.link.heading): state for state in states}
    for shape in answer["out"]:
        state = by_target.get((shape["target"], shape["heading"]))
        if state is None or state.state not in COMPARED or shape["kind"] == TOUCHES:
            continue
        shape["drift_state"] = state.state
        shape["drift"] = state_words(state)
        if state.moved_to:
            shape["moved_to"] = state.moved_to


def draft_links(outward: Sequence[LinkOut], room: int) -> TextLinks:
    """Lay out the links of a text that is not saved; nothing can link to it yet."""
    out = [_link_out(link) for link in outward]
    visible_links = layouts.within(out, room)
    return TextLinks(
        out=visible_links,
        out_omitted=len(out) - len(visible_links),
        back=[],
        back_omitted=0,
        similar=[],
    )


def _link_out(outward: LinkOut) -> LinkOutShape:
    link = outward.link
    shape = LinkOutShape(
        target=link.target,
        heading=link.heading,
        kind=link.kind,
        context=link.context,
        state=outward.destination.state,
        lane="",
        path="",
        title="",
        type="",
    )
    document = outward.destination.document
    if document is not None:
        shape["lane"] = document.lane
        shape["path"] = document.path
        shape["title"] = layouts.title(document)
        shape["type"] = document.kind
    return shape


def _link_back(backward: LinkBack, now: datetime) -> LinkBackShape:
    document = backward.document
    return LinkBackShape(
        lane=document.lane,
        path=document.path,
        title=layouts.title(document),
        type=document.kind,
        kind=backward.link.kind,
        context=backward.link.context,
        age=layouts.age(_moment(document), now),
    )


def _moment(document: Document) -> datetime | None:
    return document.created_at or document.modified_at


def secrets(content: str, redaction: Redaction, source: Callable[[Finding], str]) -> SecretsFound:
    """Lay out the secrets of a text: their lines and kinds, never themselves."""
    rows = []
    for finding in redaction.findings:
        rows.append(SecretShape(line=finding.line, kind=source(finding)))
    return SecretsFound(result=rows, lines=content.count("\n") + 1)


def compared(base: str, theirs: str, yours: str) -> ComparedTexts:
    """Lay out two changes of a text region by region."""
    from ragdocs.text import frontmatter, merge

    texts = [text.replace("\r\n", "\n") for text in (base, theirs, yours)]
    first_line = frontmatter.split(texts[0])[2]
    regions = []
    heading = ""
    for region in merge.regions(*texts):
        region_heading = heading
        if region.line < first_line:
            region_heading = "Front matter"
        regions.append(_region(region, region_heading))
        heading = _last_heading(region.base, heading)
    return ComparedTexts(result=regions)


def _region(region: Region, heading: str) -> RegionShape:
    from ragdocs.text import merge

    origin = region.origin
    merged = region.theirs
    if origin == "yours":
        merged = region.yours
    if origin == "overlap":
        merged = merge.merged_words(region)
    return RegionShape(
        origin=origin,
        line=region.line,
        heading=heading,
        base=region.base,
        theirs=region.theirs,
        yours=region.yours,
        merged=merged,
        theirs_pieces=_pieces(origin, region.base, region.theirs),
        yours_pieces=_pieces(origin, region.base, region.yours),
    )


def _pieces(origin: str, old: str, new: str) -> list[PieceShape]:
    from ragdocs.text import merge

    if origin == "same":
        return []
    pieces = []
    for words, is_new in merge.added_words(old, new):
        pieces.append(PieceShape(text=words, added=is_new))
    return pieces


def _last_heading(lines: str, heading: str) -> str:
    """Return the heading that the lines after these stand under."""
    for line in lines.split("\n"):
        if line.startswith("#") and " " in line:
            heading = line.lstrip("#").strip()
    return heading
