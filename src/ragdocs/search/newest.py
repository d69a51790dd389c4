"""The one order in which documents are newest first."""

from __future__ import annotations

from datetime import UTC, datetime

from ragdocs.text.times import SKEW
from ragdocs.types import Document

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


def age_order(
    document: Document, now: datetime, *, oldest: bool = False
) -> tuple[bool, float, float, str]:
    """Return what to sort by: date, then last change, then path; without a date last.

    A date in the future says nothing about when a text was written, so such a text counts as one
    without a date.
    """
    created = document.created_at
    is_dated = created is not None and created <= now + SKEW
    moment = document.modified_at
    if is_dated:
        moment = created
    direction = 1.0 if oldest else -1.0
    return (
        not is_dated,
        direction * _seconds(moment),
        direction * _seconds(document.modified_at),
        document.path,
    )


def _seconds(moment: datetime | None) -> float:
    return (moment or BEGINNING).timestamp()
