"""How many results a verb gives, and in which order without a query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from ragdocs.errors import ValidationError
from ragdocs.types import Filter, Findings, Hit

if TYPE_CHECKING:
    # Whoever searches has imported it; whoever only renders an answer need not.
    from ragdocs.search.corpus import Corpus

MOST_RESULTS = 50


def check_limit(limit: int) -> int:
    """Refuse a number of results that cannot be meant."""
    if not 1 <= limit <= MOST_RESULTS:
        raise ValidationError(f"limit is {limit}", f"Ask for 1 to {MOST_RESULTS} results")
    return limit


def check_listed(limit: int) -> int:
    """Refuse a list without rows: it would read as if there was nothing to list."""
    if limit < 1:
        raise ValidationError(f"limit is {limit}", "Ask for 1 or more")
    return limit


NO_QUERY = "the query is empty"
WHAT_TO_ASK = "Say in a few words what to look for"


def check_query(query: str) -> str:
    """Refuse a query without words: it would find nothing, as if there was nothing."""
    if not query.strip():
        raise ValidationError(NO_QUERY, WHAT_TO_ASK)
    return query


def newest(corpus: Corpus, where: Filter, limit: int, now: datetime) -> Findings:
    """Return the beginnings of the documents that pass a filter, the newest first."""
    documents = corpus.documents(where, order="newest", now=now)
    chosen = documents[:limit]
    beginnings = corpus.passages([document.id for document in chosen])
    hits = []
    for document in chosen:
        for passage in beginnings[document.id]:
            hits.append(Hit(document, passage, 0.0, ()))
    omitted = len(documents) - len(hits)
    return Findings(hits=tuple(hits), omitted=omitted, notes=corpus.notes())


def parse_lines(text: str | None) -> tuple[int, int] | None:
    """Read a line range such as "10-40" or "12"."""
    if text is None or not text.strip():
        return None
    start, _, end = text.strip().partition("-")
    if not start.strip().isdecimal() or (end and not end.strip().isdecimal()):
        raise ValidationError(f'"{text[:40]}" is not a line range', 'Write it as "10-40" or "12"')
    return int(start), int(end or start)


def tally(values: Sequence[str]) -> dict[str, int]:
    """Count values, the most frequent first."""
    counts = Counter(values)
    ordered = sorted(counts.items(), key=_most_frequent_first)
    return dict(ordered)


def _most_frequent_first(counted: tuple[str, int]) -> tuple[int, str]:
    value, count = counted
    return -count, value
