"""What a search over all lanes returns, laid out as an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ragdocs.serve.surface import Ask, layouts
from ragdocs.serve.surface.flags import flags_of
from ragdocs.serve.surface.layouts import docs as layout_docs

if TYPE_CHECKING:
    # The verbs bring the engines with them: whoever answers has imported them.
    from ragdocs.verbs.finding import Filters, Found, LaneHit

# Kinds of documents that are no files: their names have an ending that nobody knows.
NO_FILES = ("commit", "entry")
SUFFIX = ".md"
# Returns a path of a lane as seen from the root of the project.
Locate = Callable[[str, str], str]


def filters(
    lanes: Sequence[str],
    kinds: Sequence[str] | None,
    tags: Sequence[str] | None,
    path: str,
    since: str | None,
    status: str,
) -> Filters:
    """Return the arguments of a search as its filters."""
    from ragdocs.verbs.finding import Filters

    return Filters(
        lanes=tuple(lanes),
        kinds=tuple(kinds or ()),
        tags=tuple(tags or ()),
        path=path,
        since=since or "",
        status=status,
    )


def page_of_hits(
    result: Found, locate: Locate, ask: Ask, offset: int, explain: bool
) -> dict[str, Any]:
    """Lay out one page of hits, and the counts beside it."""
    now = ask.now
    documents = [lane_hit.hit.document for lane_hit in result.hits]
    flags = flags_of(ask, documents)
    hits = []
    for lane_hit, document in zip(result.hits, documents, strict=True):
        shape = _hit(lane_hit, locate, now, explain)
        hits.append(shape)
        flags.add(shape, document)
        counts = flags.counts(document)
        if counts:
            shape["links"] = counts
    below = None
    if result.below is not None:
        below = _hit(result.below, locate, now, explain)
    end = offset + len(hits)
    following = None
    if end < result.total:
        following = end
    return {
        "result": hits,
        "total": result.total,
        "more": result.is_cut,
        "next": following,
        "below": below,
        "facets": {name: dict(counts) for name, counts in result.facets.items()},
        "passages": result.passages,
        "notes": list(result.notes),
    }


def _hit(lane_hit: LaneHit, locate: Locate, now: datetime, explain: bool) -> dict[str, Any]:
    from ragdocs.verbs.finding import parts

    hit = lane_hit.hit
    document = hit.document
    written = document.created_at or document.modified_at
    shape: dict[str, Any] = {
        "lane": lane_hit.lane,
        "path": document.path,
        "location": _location(lane_hit, locate),
        "title": layouts.title(document),
        "header_path": layouts.header(hit),
        "headings": list(hit.chunk.headings),
        "lines": layouts.lines(hit),
        "line": hit.chunk.start_line,
        "type": document.kind,
        "status": document.status,
        "tags": layouts.tags(document),
        "author": layouts.cut(_author(lane_hit), layouts.LONGEST_ORIGIN),
        "written_at": layouts.moment(written),
        "age": layouts.age(written, now),
        "score": round(hit.score, 3),
        "content": hit.chunk.text,
    }
    if hit.successors:
        shape["superseded_by"] = [successor.path for successor in hit.successors]
    if hit.signals:
        shape["parts"] = parts(hit)
        shape["words"] = list(hit.words)
        shape["why"] = layouts.why(hit)
    if hit.siblings:
        shape["siblings"] = layout_docs.siblings(hit)
    if explain and hit.signals:
        shape["signals"] = layouts.signals(hit)
    return shape


def _location(lane_hit: LaneHit, locate: Locate) -> str:
    document = lane_hit.hit.document
    location = locate(lane_hit.lane, document.path)
    if document.kind in NO_FILES:
        return location.removesuffix(SUFFIX)
    return location


def _author(lane_hit: LaneHit) -> str:
    document = lane_hit.hit.document
    return str(document.extra.get("author") or document.source)
