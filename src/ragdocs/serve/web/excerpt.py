"""The part of a passage that a result shows, with the words of the query marked."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache

from ragdocs.text.languages import ENGLISH, detect, stem
from ragdocs.text.terms import meaningful, terms

# Characters of a passage that a result shows, and how many of them may come before a marked word.
SHOWN = 320
LEAD = 70
ELLIPSIS = "…"
_WORD = re.compile(r"[^\W_]+")
_HEADING = re.compile(r"#{1,6}\s")
_FENCE = ("```", "~~~")
_BOLD = "**"
# Links are shown as what a reader of the rendered text would see.
_WIKILINK = re.compile(r"\[\[(?:[^\[\]|]{1,1000}\|)?([^\[\]|]{1,1000})\]\]")
_LINK = re.compile(r"\[([^\[\]]{1,1000})\]\([^()\s]{1,1000}\)")


@dataclass(frozen=True, slots=True)
class Run:
    """Characters that are marked or not."""

    text: str
    is_marked: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """Runs that are code or not."""

    runs: tuple[Run, ...]
    is_code: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """The terms that are marked in passages of one language."""

    terms: frozenset[str]
    language: str


@lru_cache(256)
def query_terms(query: str, language: str = ENGLISH) -> Wanted:
    """Return the terms of a query that are marked; joining words only if it has no others."""
    wanted = frozenset(meaningful(query, (language,)))
    return Wanted(wanted or frozenset(terms(query, language)), language)


def excerpt(passage: str, query: str) -> list[Piece]:
    """Return the part of a passage that has the most words of a query."""
    wanted = query_terms(query, detect(passage) or ENGLISH)
    text = _plain(passage)
    start = 0
    end = len(text)
    if end > SHOWN:
        spans = _spans(text, wanted)
        start, end = _window(text, spans)
    visible = text[start:end]
    if text[:start].count("`") % 2:
        # It begins within code.
        visible = f"`{visible}"
    pieces = _pieces(visible, wanted)
    if start:
        pieces.insert(0, _unmarked(f"{ELLIPSIS} "))
    if end < len(text):
        pieces.append(_unmarked(f" {ELLIPSIS}"))
    return pieces


def _unmarked(text: str) -> Piece:
    run = Run(text, is_marked=False)
    return Piece((run,), is_code=False)


def _plain(passage: str) -> str:
    """Return a passage on one line, without headings, which stand above it, and without fences."""
    lines = []
    for line in passage.split("\n"):
        if not _HEADING.match(line) and not line.lstrip().startswith(_FENCE):
            lines.append(line)
    words = " ".join(lines).replace(_BOLD, "").split()
    text = " ".join(words)
    text = _WIKILINK.sub(r"\1", text)
    text = _LINK.sub(r"\1", text)
    return text or " ".join(passage.split())


def _spans(text: str, wanted: Wanted) -> list[tuple[int, int]]:
    """Return where the words of a text are that have one of these terms."""
    spans = []
    for match in _WORD.finditer(text):
        if _has_term(match[0], wanted):
            spans.append(match.span())
    return spans


# The same words are in many passages, and each passage is looked at once for every key.
@lru_cache(8192)
def _has_term(word: str, wanted: Wanted) -> bool:
    # Nearly all words are of this kind, and their stems are known already.
    if wanted.language == ENGLISH and word.isascii() and (word.islower() or word.istitle()):
        return stem(word.casefold()) in wanted.terms
    return not wanted.terms.isdisjoint(terms(word, wanted.language))


def _window(text: str, spans: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the part of a text that has the most marked words, cut between words."""
    starts = [start for start, _ in spans]
    best = 0
    most = 0
    for number, start in enumerate(starts):
        count = bisect_left(starts, start - LEAD + SHOWN) - number
        if count > most:
            most = count
            best = max(0, start - LEAD)
    begin = min(best, len(text) - SHOWN)
    if begin:
        begin = text.find(" ", begin) + 1
    end = begin + SHOWN
    if end < len(text):
        end = max(text.rfind(" ", begin, end), begin + 1)
    return begin, min(end, len(text))


def _pieces(text: str, wanted: Wanted) -> list[Piece]:
    parts = text.split("`")
    pieces = []
    for number, part in enumerate(parts):
        # A last mark that nothing closes makes no code.
        is_code = number % 2 == 1 and number < len(parts) - 1
        if part:
            runs = tuple(_runs(part, wanted))
            pieces.append(Piece(runs, is_code))
    return pieces


def _runs(text: str, wanted: Wanted) -> list[Run]:
    runs = []
    position = 0
    for start, end in _spans(text, wanted):
        if start > position:
            runs.append(Run(text[position:start], is_marked=False))
        runs.append(Run(text[start:end], is_marked=True))
        position = end
    if position < len(text):
        runs.append(Run(text[position:], is_marked=False))
    return runs
