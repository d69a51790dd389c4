"""The one order in which documents are newest first."""

from __future__ import annotations

from datetime import UTC, datetime

from ragdocs.text.times import SKEW
from ragdocs.types import Document

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


def age_order(document: Document, now: datetime) -> tuple[bool, float, float, str]:
    """Return what to sort by.

    Those with a date first, the latest first, then the last changed, then by path.

    A date that is not yet says nothing about when a text was written, so such a text is one without
    a date.
    """
    created = document.created_at
    dated = created is not None and created <= now + SKEW
    moment = created if dated else document.modified_at
    return (not dated, -_seconds(moment), -_seconds(document.modified_at), document.path)


def _seconds(moment: datetime | None) -> float:
    return (moment or BEGINNING).timestamp()
