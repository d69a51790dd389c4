"""Which entries may be written, and which may be asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ragdocs.errors import ValidationError
from ragdocs.text.checks import check_content, check_tags
from ragdocs.types import UNSAID_CONFIDENCE, UNSAID_IMPORTANCE, Filter
from ragdocs.verbs.memories import record

LOWEST_IMPORTANCE = 1
HIGHEST_IMPORTANCE = 10
LONGEST_SOURCE = 100
LONGEST_CONTEXT = 2000
# In microseconds.
MILLISECOND = 1000
# What a caller that says nothing gets, by field of the frontmatter.
UNSAID: dict[str, object] = {
    "type": "fact",
    "source": "manual",
    "confidence": UNSAID_CONFIDENCE,
    "importance": int(UNSAID_IMPORTANCE),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntry:
    """What is to be added; `expires_at` is ISO 8601, or milliseconds since 1970."""

    content: str
    kind: str = "fact"
    source: str = "manual"
    context: str = ""
    confidence: float = UNSAID_CONFIDENCE
    importance: int = int(UNSAID_IMPORTANCE)
    tags: Sequence[str] = ()
    expires_at: str | int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What an entry must be to be found."""

    kinds: Sequence[str] = ()
    min_importance: float | None = None
    min_confidence: float | None = None
    tags: Sequence[str] = ()


def fields(new: NewEntry, now: datetime) -> dict[str, object]:
    """Return the fields above the content of a new entry, or refuse them."""
    check_content(new.content)
    record.check_entry_kind(new.kind)
    if not LOWEST_IMPORTANCE <= new.importance <= HIGHEST_IMPORTANCE:
        hint = (
            f"Give a whole number from {LOWEST_IMPORTANCE} to {HIGHEST_IMPORTANCE}; 5 is ordinary"
        )
        raise ValidationError(f"importance is {new.importance}", hint)
    _check_confidence("confidence", new.confidence)
    described = record.fields(new.kind, check_tags(new.tags), now)
    described["importance"] = new.importance
    described["confidence"] = new.confidence
    described["source"] = _line("source", new.source, LONGEST_SOURCE) or "manual"
    context = _line("context", new.context, LONGEST_CONTEXT)
    if context:
        described["context"] = context
    if new.expires_at is not None:
        described["expires_at"] = iso(_expiry(new.expires_at, now))
    return described


def _check_confidence(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ValidationError(
            f"{name} is {value}", "Give a number from 0.0 (a guess) to 1.0 (certain)"
        )


def _line(name: str, text: str, longest: int) -> str:
    if not text.strip():
        return ""
    check_content(text, name)
    line = " ".join(text.split())
    if len(line) > longest:
        raise ValidationError(
            f"{name} is longer than {longest} characters", "Say it shorter, or in the content"
        )
    return line


def _expiry(value: str | int, now: datetime) -> datetime:
    hint = 'Give a time to come, as "2027-01-31T09:00:00Z" or in milliseconds since 1970'
    try:
        moment = _moment(value)
    except (ValueError, OverflowError, OSError):
        raise ValidationError(
            f"expiresAt is {str(value)[:40]!r}, which is not a time", hint
        ) from None
    if moment <= now:
        raise ValidationError(f"expiresAt is {iso(moment)}, which is in the past", hint)
    return moment


def _moment(value: str | int) -> datetime:
    """Read a time; as in every memory, one without an offset is UTC."""
    if isinstance(value, int):
        return datetime.fromtimestamp(value / 1000, UTC)
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC)


def iso(moment: datetime) -> str:
    """Write a moment as it stands in the frontmatter."""
    precision = "seconds"
    if moment.microsecond >= MILLISECOND:
        precision = "milliseconds"
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def where(wanted: Wanted) -> Filter:
    """Return the filter for the wanted entries, or refuse values that no entry can have."""
    for kind in wanted.kinds:
        record.check_entry_kind(kind)
    least = wanted.min_importance
    if least is not None and not LOWEST_IMPORTANCE <= least <= HIGHEST_IMPORTANCE:
        hint = f"Give a number from {LOWEST_IMPORTANCE} to {HIGHEST_IMPORTANCE}"
        raise ValidationError(f"minImportance is {least}", hint)
    if wanted.min_confidence is not None:
        _check_confidence("minConfidence", wanted.min_confidence)
    return Filter(
        kinds=tuple(wanted.kinds),
        tags=tuple(check_tags(wanted.tags)),
        min_importance=least or 0.0,
        min_confidence=wanted.min_confidence or 0.0,
    )
