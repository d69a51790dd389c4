"""How answers about searches and the state of an index look: what fits, figures, reasons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ragdocs.serve.surface import ServerState, layouts
from ragdocs.serve.surface.shapes.quality import (
    Explained,
    LaneStatus,
    Linted,
    ProblemShape,
    Status,
    Verified,
    VerifiedLane,
)

if TYPE_CHECKING:
    from ragdocs.verbs.quality.explain import Explanation
    from ragdocs.verbs.quality.health import LaneState, ProjectState, Verification
    from ragdocs.verbs.quality.lint import Problem
    from ragdocs.verbs.quality.repairs import Repaired

# Enough to act on, and small enough that two lanes fit into one answer; the rest are counted.
PROBLEM_CHARS = 3_500
PROBLEM_LENGTH = 160
# Digits of a score behind the point.
DIGITS = 4


def status(project: ProjectState, server: ServerState) -> Status:
    """Lay out the state of a project and of the server that answers."""
    return Status(
        project=project.root,
        version=project.version,
        ready=server.ready,
        watcher=server.watcher,
        heartbeat=server.heartbeat,
        lanes=list(map(_lane, project.lanes)),
    )


def linted(problems: Sequence[Problem], room: int, notes: Sequence[str] = ()) -> Linted:
    """Lay out the problems that fit, each a row."""
    rows = []
    for problem in problems:
        level = "note" if problem.is_note else "warning"
        row = ProblemShape(
            path=problem.path,
            line=problem.line or None,
            problem=problem.text,
            rule=problem.rule,
            level=level,
        )
        rows.append(row)
    # Notes come last: what is cut off first is no fault.
    rows.sort(key=lambda row: row["level"] == "note")
    fitting = layouts.within(rows, room)
    return Linted(result=fitting, omitted=len(rows) - len(fitting), notes=list(notes))


def repaired(answer: Linted, repaired: Repaired, locate: Callable[[str], str], room: int) -> Linted:
    """Add to problems what was repaired, or would be, and the diff of it."""
    rows = []
    for repair in repaired.repairs:
        row = ProblemShape(
            path=locate(repair.path),
            line=repair.line,
            problem=repair.text,
            rule=repair.rule,
            level="note",
        )
        rows.append(row)
    fitting = layouts.within(rows, room // 2)
    notes = answer["notes"]
    if len(fitting) < len(rows):
        notes = [*notes, f"{len(rows) - len(fitting)} more repairs are not listed"]
    lines: list[str] = []
    for difference in repaired.differences:
        lines += difference.lines
    diff = layouts.cut("\n".join(lines), room)
    return {
        **answer,
        "repairs": fitting,
        "diff": diff,
        "is_repaired": bool(repaired.version),
        "notes": notes,
    }


def verified(lanes: Mapping[str, Verification]) -> Verified:
    """Lay out how each index stands to its files."""
    shapes = {}
    for name, verification in lanes.items():
        shapes[name] = _verified_lane(verification)
    identical = not any(shape["difference"] for shape in shapes.values())
    return Verified(identical=identical, lanes=shapes)


def explained(explanation: Explanation) -> Explained:
    """Lay out where a document stands for a query."""
    answer = Explained(
        query=explanation.query,
        path=explanation.path,
        stage=explanation.stage,
        why=_why(explanation),
        place=explanation.position,
        score=0.0,
        lines="",
        words=[],
        missing=list(explanation.missing),
        keyword=0.0,
        keyword_rank=0,
        meaning=0.0,
        meaning_rank=0,
        signals=[],
    )
    measured = explanation.measured
    if measured is not None:
        answer["lines"] = f"{measured.passage.start_line}-{measured.passage.end_line}"
        answer["words"] = list(measured.words)
        answer["keyword"] = round(measured.keyword, DIGITS)
        answer["keyword_rank"] = measured.keyword_rank
        answer["meaning"] = round(measured.meaning, DIGITS)
        answer["meaning_rank"] = measured.meaning_rank
    if explanation.hit is not None:
        answer["score"] = round(explanation.hit.score, DIGITS)
        answer["signals"] = layouts.signals(explanation.hit)
    return answer


def _lane(state: LaneState) -> LaneStatus:
    reasons = {}
    for path, reason in state.problems.items():
        reasons[path] = layouts.cut(reason, PROBLEM_LENGTH)
    listed = dict(layouts.within(reasons.items(), PROBLEM_CHARS))
    notes = list(state.notes)
    if len(listed) < len(reasons):
        unlisted = len(reasons) - len(listed)
        notes.append(f"{unlisted} more files have problems; `ragdocs lint` lists them all")
    return LaneStatus(
        lane=state.lane,
        root=state.root,
        documents=state.documents,
        chunks=state.chunks,
        vectors=state.vectors,
        links=state.links,
        embedder=state.embedder,
        vector_search=state.vector_search,
        problems=listed,
        notes=notes,
    )


def _verified_lane(verification: Verification) -> VerifiedLane:
    return VerifiedLane(
        compared=dict(verification.comparison.compared),
        difference=verification.comparison.difference,
        stale=list(verification.behind.stale),
        missing=list(verification.behind.missing),
        extra=list(verification.behind.extra),
    )


def _why(explanation: Explanation) -> str:
    """Say in a sentence why a document was found, or why not."""
    if explanation.expired_at is not None:
        return f"{explanation.reason} at {layouts.iso(explanation.expired_at)}"
    if explanation.reason:
        return explanation.reason
    position = explanation.position
    if explanation.hit is None:
        return _not_found(explanation)
    if explanation.stage == "below the floor":
        return _below_the_floor(explanation.hit.score)
    if explanation.stage == "cut by limit":
        return f"cut by limit: it is number {position}, and {explanation.limit} were asked for"
    return f"shown as number {position}: {layouts.why(explanation.hit)}"


def _not_found(explanation: Explanation) -> str:
    """Say why neither words nor meaning made a document a candidate."""
    from ragdocs.search.query import LEAST_CANDIDATES
    from ragdocs.verbs.page import MOST_RESULTS

    measured = explanation.measured
    assert measured is not None
    by_meaning = measured.meaning_rank
    if explanation.stage == "other words":
        why = "other words: no word of the query stands in it"
        if by_meaning:
            why += f", and by meaning ({measured.meaning:.2f})"
            why += f" its best passage is only number {by_meaning}"
        return why
    ranks = f"number {measured.keyword_rank} by words and {by_meaning or 'none'} by meaning"
    candidates = max(LEAST_CANDIDATES, MOST_RESULTS * 5)
    bound = f"the first {candidates} of each are looked at"
    return f"not a candidate: its best passage is {ranks}; {bound}"


def _below_the_floor(score: float) -> str:
    from ragdocs.search.calibration import FALSE_ALARMS
    from ragdocs.search.floor import FLOOR

    bar = f"{FLOOR} is what {FALSE_ALARMS:.0%} of unrelated questions reach"
    return f"below the floor: its score is {score:.2f}, and {bar}"
