"""What the verbs about living links return, laid out as answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from ragdocs.serve.surface import layouts
from ragdocs.serve.surface.flags import checked_words, drift_words, link_name, state_words
from ragdocs.serve.surface.shapes.living import (
    AffectedAnswer,
    AffectedShape,
    DriftedLink,
    DriftedShape,
    DriftReview,
    RelinkedShape,
    VerifiedShape,
)
from ragdocs.text.headings import STEP

if TYPE_CHECKING:
    # The verbs bring the engines with them: whoever answers has imported them.
    from ragdocs.verbs.living.affected import Affected, AffectedText
    from ragdocs.verbs.living.drift import DriftedMemory, LinkState, VerifiedMemory
    from ragdocs.verbs.living.relink import Relinked

# Links and characters of a diff that one memory shows.
MOST_LINKS = 8
LONGEST_DIFF = 2_000
LOST = "(the text at that time is not in git)"
NOT_KEPT = "that could not be written down: the record of links cannot be used"

# Returns the diff of a link's target.
Differ = Callable[["LinkState"], "list[str] | None"]
# Returns a path of a lane as seen from the root of the project.
Locate = Callable[[str, str], str]


def drift_review(
    memories: Sequence[DriftedMemory], limit: int, differ: Differ | None, room: int, now: datetime
) -> DriftReview:
    """Lay out memories to look at, as many as fit."""
    shapes: list[DriftedShape] = []
    used = 0
    for memory in memories[:limit]:
        shape = _drifted(memory, differ, now, max(room // 4, room - used))
        used += layouts.cost(shape)
        if shapes and used > room:
            break
        shapes.append(shape)
    return DriftReview(result=shapes, omitted=len(memories) - len(shapes), notes=[])


def _drifted(
    memory: DriftedMemory, differ: Differ | None, now: datetime, room: int
) -> DriftedShape:
    document = memory.document
    verified = ""
    if memory.check is not None:
        verified = checked_words(memory.check)
    links = []
    first_links = memory.links[:MOST_LINKS]
    for link in first_links:
        content = ""
        if differ is not None:
            content = _diff(differ(link), min(LONGEST_DIFF, room // (2 * len(first_links))))
        links.append(_link(link, content))
    return DriftedShape(
        filename=document.path,
        memory_id=document.id,
        title=layouts.title(document),
        type=document.kind,
        age=layouts.age(document.created_at, now),
        weight=round(memory.weight, 3),
        verified=verified,
        links=links,
    )


def _diff(lines: list[str] | None, room: int) -> str:
    if lines is None:
        return LOST
    return layouts.cut("\n".join(lines), max(room, layouts.LEAST_CONTENT))


def _link(link: LinkState, content: str) -> DriftedLink:
    return DriftedLink(
        target=link_name(link),
        state=link.state,
        words=state_words(link),
        since=layouts.moment(link.since),
        added=link.added,
        removed=link.removed,
        moved_to=link.moved_to,
        content=content,
    )


def verified(memory: VerifiedMemory, warnings: Sequence[str]) -> VerifiedShape:
    """Lay out that a memory is still true, and which of its links lead nowhere all the same."""
    deviating = []
    for link in memory.links:
        words = drift_words([link])
        if words not in ("", "ok"):
            deviating.append(words)
    notes = list(warnings)
    if not memory.is_kept:
        notes.append(NOT_KEPT)
    return VerifiedShape(
        status="verified",
        filename=memory.document.path,
        verified=checked_words(memory.check),
        links=deviating,
        warnings=notes,
    )


def relinked(memory: Relinked) -> RelinkedShape:
    """Lay out which links of a memory were written anew."""
    version = memory.document.version
    status = "unchanged"
    warnings = []
    if memory.written is not None:
        status = "updated"
        version = memory.written.version
        warnings = layouts.removed(memory.written)
    return RelinkedShape(
        status=status,
        filename=memory.document.path,
        version=version,
        links=[list(pair) for pair in memory.links],
        warnings=warnings,
    )


def affected(outcome: Affected, locate: Locate, limit: int, room: int) -> AffectedAnswer:
    """Lay out passages that speak about a change, as many as fit."""
    shapes = [_affected(text, locate) for text in outcome.texts[:limit]]
    listed = layouts.within(shapes, room)
    notes = []
    if outcome.weak:
        notes.append(f"not listed, because their connection is weak: {outcome.weak}")
    return AffectedAnswer(
        result=listed,
        omitted=len(outcome.texts) - len(listed),
        files=outcome.files,
        notes=notes,
    )


def _affected(text: AffectedText, locate: Locate) -> AffectedShape:
    document = text.document
    return AffectedShape(
        lane=document.lane,
        path=document.path,
        location=locate(document.lane, document.path),
        line=text.line,
        title=layouts.title(document),
        type=document.kind,
        header_path=STEP.join(text.headings),
        weight=text.weight,
        reasons=[reason.words for reason in text.reasons],
        changed=text.is_changed,
    )
