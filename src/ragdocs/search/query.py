"""From a query to hits: what is asked of the index, and what is left out of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from ragdocs.search import calibration as gauge
from ragdocs.text import times
from ragdocs.types import Document, Filter, Findings


def query_filters(where: Filter, young: datetime | None, meant: times.Span | None) -> list[Filter]:
    """Return the filters to ask with.

    What a boost may lift must not be lost among many other candidates.
    """
    wheres = [where]
    if young is not None:
        wheres.append(replace(where, since=max(young, where.since or young)))
    if meant is not None:
        since, until = (
            max(meant[0], where.since or meant[0]),
            min(meant[1], where.until or meant[1]),
        )
        wheres.append(replace(where, since=since, until=until))
    return wheres


def passages_of_time(
    keys: Sequence[int], owners: Sequence[Document], meant: times.Span
) -> list[tuple[int, float]]:
    """Return the chunks of documents that are of this time."""
    pairs = zip(keys, owners, strict=True)
    return [
        (key, 1.0) for key, one in pairs if one.created_at and meant[0] <= one.created_at < meant[1]
    ]


def with_floor(found: Findings) -> Findings:
    """Leave out everything if not even the best is better than what unrelated questions find.

    And say so.
    """
    below = sum(hit.score < gauge.FLOOR for hit in found.hits)
    if not below:
        return found
    rate = f"{gauge.FALSE_ALARMS:.0%} of unrelated questions"
    if below < len(found.hits):
        note = f"{below} of these score below {gauge.FLOOR}, which {rate} reach: they may be about something else"
        return replace(found, notes=(*found.notes, note))
    best = found.hits[0]
    place = f"{best.document.path}:{best.chunk.start_line}-{best.chunk.end_line}"
    more = found.omitted + len(found.hits)
    note = (
        f"nothing relevant: {more} passages share words or meaning with this, but none scores {gauge.FLOOR}, "
        f"which {rate} reach; the best of them is {place} with {best.score:.2f}"
    )
    return replace(found, hits=(), omitted=0, notes=(*found.notes, note))
