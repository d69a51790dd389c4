"""How answers about a repository's knowledge look: what fits of each kind, times as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from ragdocs.serve.surface import layouts
from ragdocs.serve.surface.flags import Flags
from ragdocs.serve.surface.shapes.context import (
    Appended,
    Convention,
    Copied,
    Decision,
    Note,
    RepoDeleted,
    RepoMemory,
    SavedConvention,
    SavedDecision,
    SavedNote,
    Summary,
)
from ragdocs.types import AppendedSummary, StepSummary

if TYPE_CHECKING:
    from ragdocs.verbs.context.items import Item
    from ragdocs.verbs.context.repo import CopiedBranch, DeletedItem, RepoKnowledge, SavedItem

# What an item takes in an answer beside its text.
BESIDE_TEXT = 300
LONGEST_TITLE = 400
CUT_REMARK = "texts ending in … are cut; kind and id of one item bring the whole"
OMITTED_REMARK = "what is omitted is older; ask for one kind to see more"
REVIVED = "it was archived or had expired; it is active again"


def saved_convention(saved: SavedItem, room: int) -> SavedConvention:
    """Lay out a convention that was written."""
    shape = _convention(saved.item, room // 2)
    return cast("SavedConvention", {**shape, **_outcome(saved)})


def saved_decision(saved: SavedItem, room: int) -> SavedDecision:
    """Lay out a decision that was written."""
    shape = _decision(saved.item, room // 2)
    return cast("SavedDecision", {**shape, **_outcome(saved)})


def saved_note(saved: SavedItem, room: int) -> SavedNote:
    """Lay out a note that was written."""
    shape = _note(saved.item, room // 2)
    return cast("SavedNote", {**shape, **_outcome(saved)})


def knowledge(known: RepoKnowledge, room: int, flags: Flags) -> RepoMemory:
    """Lay out items and summaries.

    Each kind has its share, and the room that one leaves goes to the next.
    """
    groups = []
    for kind, items in known.items.items():
        groups.append(_Group(f"{kind}s", items, partial(_flagged, SHAPES[kind], flags)))
    groups.append(_Group("summaries", known.summaries, _summary))
    waiting = [group for group in groups if group.members]
    results: dict[str, list[Any]] = {}
    omitted = {}
    left = room - BESIDE_TEXT
    for position, group in enumerate(waiting):
        share = left // (len(waiting) - position)
        fitting = group.fitting(share)
        left -= sum(layouts.cost(result) + 2 for result in fitting)
        results[group.name] = fitting
        if len(fitting) < len(group.members):
            omitted[group.name] = len(group.members) - len(fitting)
    return RepoMemory(
        repoHash=known.scope.identity,
        branch=known.scope.branch,
        branchScope=known.scope.policy,
        conventions=results.get("conventions", []),
        decisions=results.get("decisions", []),
        notes=results.get("notes", []),
        summaries=results.get("summaries", []),
        omitted=omitted,
        remarks=_remarks(results, omitted, known.unlisted),
    )


def deleted(item: DeletedItem) -> RepoDeleted:
    """Lay out whether an item was deleted."""
    return RepoDeleted(
        kind=item.kind, id=item.id, deleted=bool(item.moved_to), movedTo=item.moved_to
    )


def appended(written: AppendedSummary) -> Appended:
    """Lay out a summary that was written."""
    warnings = [f"a secret was replaced by a placeholder: {rule}" for rule in written.redacted]
    return Appended(
        runId=written.summary.run_id,
        stepId=written.summary.step_id,
        timestamp=written.summary.timestamp,
        kept=written.total,
        pruned=written.pruned,
        path=written.path,
        warnings=warnings,
    )


def copied(branch: CopiedBranch) -> Copied:
    """Lay out what was copied from one branch to another."""
    return Copied(
        source=branch.source,
        target=branch.target,
        copied=list(branch.copied),
        left=list(branch.left),
        summaries=branch.summaries,
    )


@dataclass(frozen=True, slots=True)
class _Group:
    """The items of one kind, and how one of them looks in a room of some size."""

    name: str
    members: Sequence[Any]
    shape: Callable[[Any, int], Any]

    def fitting(self, share: int) -> list[Any]:
        """Return the first items that fit, with texts of equal room."""
        each = max(layouts.LEAST_CONTENT, share // len(self.members) - BESIDE_TEXT)
        return layouts.within([self.shape(member, each) for member in self.members], share)


def _remarks(
    results: Mapping[str, Sequence[Any]], omitted: Mapping[str, int], unlisted: int
) -> list[str]:
    remarks = []
    if any(map(_is_cut, chain.from_iterable(results.values()))):
        remarks.append(CUT_REMARK)
    if omitted:
        remarks.append(OMITTED_REMARK)
    if unlisted:
        count = f"{unlisted} archived or expired items"
        remarks.append(f"{count} are not listed; their ids still show them")
    return remarks


def _is_cut(result: Mapping[str, Any]) -> bool:
    return any(str(value).endswith(layouts.ELLIPSIS) for value in result.values())


def _outcome(saved: SavedItem) -> dict[str, object]:
    """Return what became of a write."""
    warnings = []
    if saved.written is not None:
        warnings += layouts.removed(saved.written)
    if saved.revived:
        warnings.append(REVIVED)
    return {
        "created": saved.created,
        "changed": saved.changed,
        "path": saved.location,
        "warnings": warnings,
    }


def _convention(item: Item, room: int) -> Convention:
    return Convention(
        id=item.id,
        title=layouts.cut(item.title, LONGEST_TITLE),
        content=layouts.cut(item.body, room),
        tags=layouts.tags(item.document),
        createdAt=layouts.iso(item.created),
        updatedAt=layouts.iso(item.updated),
    )


def _decision(item: Item, room: int) -> Decision:
    return Decision(
        id=item.id,
        summary=layouts.cut(item.title, LONGEST_TITLE),
        rationale=layouts.cut(item.body, room),
        impactedPaths=layouts.within(item.paths, max(layouts.LEAST_CONTENT, room // 2)),
        createdAt=layouts.iso(item.created),
        updatedAt=layouts.iso(item.updated),
    )


def _note(item: Item, room: int) -> Note:
    return Note(
        id=item.id,
        content=layouts.cut(item.body, room),
        source=item.source,
        createdAt=layouts.iso(item.created),
        updatedAt=layouts.iso(item.updated),
    )


def _flagged(shape: Callable[[Item, int], Any], flags: Flags, item: Item, room: int) -> Any:
    """Return the shape of an item with what became of its links and its branch."""
    return flags.add(shape(item, room), item.document)


def _summary(record: StepSummary, room: int) -> Summary:
    return Summary(
        runId=record.run_id,
        stepId=record.step_id,
        timestamp=record.timestamp,
        summary=layouts.cut(record.text, room),
        tags=list(record.tags[: layouts.MOST_TAGS]),
    )


SHAPES: dict[str, Callable[[Item, int], Any]] = {
    "convention": _convention,
    "decision": _decision,
    "note": _note,
}
