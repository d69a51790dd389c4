"""Whether what was found is about the question, and what an answer says of that."""

from __future__ import annotations

from dataclasses import replace

from ragdocs.search import calibration
from ragdocs.search.calibration import Gauge, Gauges
from ragdocs.search.fields import meant
from ragdocs.search.floor import FLOOR, NOTHING_RELEVANT, WEAK_MATCHES
from ragdocs.search.query import FEW_DOCUMENTS, Plan, query_words
from ragdocs.types import Findings

# Who scores at least as much as the floor by chance.
FLOOR_RATE = f"{calibration.FALSE_ALARMS:.0%} of unrelated questions"
# Words of a query that a note names.
MOST_MISSING = 5


def judged(findings: Findings, plan: Plan, gauges: Gauges) -> Findings:
    """Leave weak hits out, or say that they are weak."""
    is_measured = gauges.both.measured
    findings = _floored(findings, is_measured=is_measured)
    if not is_measured:
        return findings
    gauge = gauges.both
    if plan.unread_probes:
        gauge = gauges.other_script
    return with_doubt(findings, plan.text, gauge)


def _floored(findings: Findings, *, is_measured: bool) -> Findings:
    """Leave weak hits out, unless there is little else that could have been found."""
    if not _is_weak(findings):
        if is_measured:
            return _with_floor(findings)
        return findings
    if not is_measured:
        return _with_weak_note(findings, "so small a collection has no measured floor")
    if 0 < findings.passing <= FEW_DOCUMENTS:
        left = findings.passing
        return _with_weak_note(findings, f"the filter leaves {left} of all documents")
    return _with_floor(findings)


def _with_floor(findings: Findings) -> Findings:
    """Leave everything out if not even the best scores more than unrelated questions do."""
    below = _count_below(findings)
    if not below:
        return findings
    if below < len(findings.hits):
        note = (
            f"{below} of these score below {FLOOR}, which {FLOOR_RATE} reach: "
            "they may be about something else"
        )
        return replace(findings, notes=(*findings.notes, note))
    best = findings.hits[0]
    lines = f"{best.document.path}:{best.chunk.start_line}-{best.chunk.end_line}"
    count = findings.omitted + len(findings.hits)
    note = (
        f"{NOTHING_RELEVANT}: {count} passages share words or meaning with this, "
        f"but none scores {FLOOR}, which {FLOOR_RATE} reach; "
        f"the best of them is {lines} with {best.score:.2f}"
    )
    return replace(findings, hits=(), omitted=0, notes=(*findings.notes, note))


def _is_weak(findings: Findings) -> bool:
    """Tell whether there are hits and all of them score below the floor."""
    return bool(findings.hits) and _count_below(findings) == len(findings.hits)


def _with_weak_note(findings: Findings, reason: str) -> Findings:
    """Say that all hits score below the floor, and why they are shown all the same."""
    note = (
        f"{WEAK_MATCHES}: none of these scores {FLOOR}, so they may be about something "
        f"else; they are shown because {reason}"
    )
    return replace(findings, notes=(*findings.notes, note))


def with_doubt(findings: Findings, text: str, gauge: Gauge) -> Findings:
    """Mark an answer as weak whose best hit scores little, and name the words that no hit has.

    A hit that is far ahead of other documents needs a lower score than one among equals.
    """
    if not findings.hits or _is_weak(findings):
        return findings
    best = max(hit.score for hit in findings.hits)
    if best >= gauge.weak_below(findings.lead):
        return findings
    nearness = ""
    if best >= calibration.WEAK:
        nearness = " and many other documents nearly as much"
    note = (
        f"{WEAK_MATCHES}: the best of these scores {best:.2f}{nearness}, as questions do that "
        "nothing here answers"
    )
    missing = _missing(findings, text)
    if missing:
        note += f"; none of them has {', '.join(missing)}"
    return replace(findings, notes=(*findings.notes, note))


def _missing(findings: Findings, text: str) -> list[str]:
    """Return the first words of a query that no hit has."""
    present = {word for hit in findings.hits for word in hit.words}
    missing = []
    for word in query_words(text):
        if word not in present and meant(word):
            missing.append(word)
    return missing[:MOST_MISSING]


def _count_below(findings: Findings) -> int:
    return sum(hit.score < FLOOR for hit in findings.hits)
