"""A result as the page shows it: where it leads, its passage, and what its score is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ragdocs.search.floor import FLOOR
from ragdocs.search.query import query_words
from ragdocs.serve.web.excerpt import excerpt, query_terms
from ragdocs.text.terms import terms

# Lanes whose texts have a page of their own.
READABLE = ("docs", "sources", "memory")
# Lanes whose documents have a type that a reader wants to know.
TYPED = ("memory",)
COMMIT = "commit"
NOUNS = {
    "docs": "document",
    "sources": "document of a source",
    "memory": "memory",
    "journal": "journal entry",
    "commits": "commit",
}
# What became of linked files, and the sign that each has.
FLAGS = {"changed": "changed", "moved": "changed", "missing": "missing"}
# Of the drawing, in pixels.
BAR_WIDTH = 176
GAP = 1
MOST_WORDS = 8
# Characters of a commit's name that tell it from all others.
SHORT_COMMIT = 10


@dataclass(frozen=True, slots=True)
class Marking:
    """A query as results show it, and its words that are searched for."""

    query: str
    words: tuple[str, ...]

    @classmethod
    def of(cls, query: str) -> Marking:
        """Read a query; joining words are not searched for."""
        wanted = query_terms(query).terms
        words = []
        for word in query_words(query):
            if not wanted.isdisjoint(terms(word)):
                words.append(word)
        return cls(query, tuple(words))


def card_of(hit: Mapping[str, Any], marking: Marking, base: str) -> dict[str, Any]:
    """Return a hit with everything that its row shows."""
    lane = hit["lane"]
    kind = NOUNS.get(lane, lane)
    tags = hit["tags"]
    if lane in TYPED:
        kind = f"memory, {hit['type']}"
    address = f"{hit['location']}:{hit['line']}"
    if hit["type"] == COMMIT:
        address = hit["location"][:SHORT_COMMIT]
        # They name the author once more.
        tags = []
    headings = list(hit["headings"])
    if headings and headings[0] == hit["title"]:
        del headings[0]
    bar: list[dict[str, Any]] = []
    rows: list[tuple[str, float, str]] = []
    if "parts" in hit:
        bar = _bar(hit["parts"])
        rows = _rows(hit, marking)
    return {
        **hit,
        "kind": kind,
        "address": address,
        "href": _href(hit, base),
        "headings": headings,
        "tags": tags,
        "pieces": excerpt(hit["content"], marking.query),
        "bar": bar,
        "rows": rows,
        "is_below": hit["score"] < FLOOR,
        "flags": flags(hit),
    }


def flags(hit: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what is off about a memory: its sign, and the words beside it."""
    counts = hit.get("links", {})
    listed = []
    for state, sign in FLAGS.items():
        count = counts.get(state, 0)
        if count:
            noun = "linked file" if count == 1 else "linked files"
            listed.append((sign, f"{count} {noun} {state}"))
    if "branch_state" in hit:
        listed.append(("changed", hit["branch_state"]))
    return listed


def _href(hit: Mapping[str, Any], base: str) -> str:
    """Return where the text can be read at its line, or nothing."""
    if hit["lane"] not in READABLE:
        return ""
    return f"{base}/text/{hit['lane']}/{quote(hit['path'])}#L{hit['line']}"


def _bar(parts: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the rectangles of a score, one after the other, at the scale of 0 to 1."""
    rectangles = []
    begin = 0.0
    for name, part in parts.items():
        width = part * BAR_WIDTH
        if part > 0:
            drawn = max(GAP, width - GAP)
            rectangles.append({"name": name, "x": round(begin, 1), "width": round(drawn, 1)})
        begin += width
    return rectangles


def _rows(hit: Mapping[str, Any], marking: Marking) -> list[tuple[str, float, str]]:
    """Return the parts of a score, each with its reason in words."""
    signals: dict[str, Mapping[str, Any]] = {}
    for signal in hit["signals"]:
        signals[signal["source"]] = signal
    reasons = {
        "words": _about_words(hit["words"], marking),
        "meaning": _about_meaning(signals.get("vector")),
        "context": _about_context(signals.get("context"), signals.get("support")),
        "links": "another result links to it" if "graph" in signals else "no result links to it",
        "recency": _about_recency(hit, signals),
    }
    return [(name, part, reasons[name]) for name, part in hit["parts"].items()]


def _about_words(words: Sequence[str], marking: Marking) -> str:
    if not words:
        return "no word of the query is in it"
    text = _quoted(words)
    missing = [word for word in marking.words if word not in words]
    if missing:
        return f"{text}; not in it: {_quoted(missing)}"
    return f"{text}; all of the query"


def _quoted(words: Sequence[str]) -> str:
    quoted = [f"“{word}”" for word in words[:MOST_WORDS]]
    if len(words) > MOST_WORDS:
        quoted.append(f"{len(words) - MOST_WORDS} more")
    return ", ".join(quoted)


def _about_meaning(signal: Mapping[str, Any] | None) -> str:
    if signal is None:
        return "not found by meaning"
    text = f"cosine {signal['raw']:.2f}"
    if signal["rank"]:
        text += f", number {signal['rank']} in its lane"
    return text


def _about_context(near: Mapping[str, Any] | None, second: Mapping[str, Any] | None) -> str:
    reasons = []
    if near is not None:
        reasons.append(f"the better passage next to it scores {near['raw']:.2f}")
    if second is not None:
        reasons.append(f"another good passage of this document, {second['raw']:.2f}")
    return "; ".join(reasons) or "nothing around it matches"


def _about_recency(hit: Mapping[str, Any], signals: Mapping[str, Mapping[str, Any]]) -> str:
    reasons = []
    if "recency" in signals:
        reasons.append(f"written {hit['age']}; raised by {signals['recency']['raw'] - 1:.0%}")
    if "time" in signals:
        reasons.append("of the time that the query names")
    return "; ".join(reasons) or "not raised"


def verdict(hit: Mapping[str, Any]) -> str:
    """Say where a score stands to the floor, and what else changed it."""
    reasons = [f"above the floor of {FLOOR:.2f}"]
    if hit["score"] < FLOOR:
        reasons = [f"below the floor of {FLOOR:.2f}"]
    for signal in hit.get("signals", ()):
        if signal["source"] in ("importance", "confidence"):
            reasons.append(f"{signal['source']} changes all parts by {signal['raw'] - 1:+.0%}")
    return "; ".join(reasons)
