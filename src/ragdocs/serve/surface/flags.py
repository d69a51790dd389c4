"""What answers say beside a memory: whether its links still hold, and of which branch it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ragdocs.serve.surface import Ask, layouts
from ragdocs.types import Document

if TYPE_CHECKING:
    # The verbs bring the engines with them: whoever answers has imported them.
    from ragdocs.verbs.living.branches import OtherBranch
    from ragdocs.verbs.living.drift import LinkState
    from ragdocs.verbs.living.ledger import Check

# Links that are named; the others are counted.
MOST_NAMED = 3
LONGEST_NAME = 120
COMPARED = ("ok", "changed", "moved", "missing")


class Flags:
    """What became of the links and the branches of some memories."""

    def __init__(
        self,
        links: Mapping[str, Sequence[LinkState]] | None = None,
        branches: Mapping[str, OtherBranch] | None = None,
    ) -> None:
        self._links = links or {}
        self._branches = branches or {}

    def add(self, shape: Any, document: Document) -> Any:
        """Return the shape of an answer with what is to be said beside it."""
        drift = drift_words(self._links.get(document.id, ()))
        if drift:
            shape["drift"] = drift
        other = self._branches.get(document.id)
        if other is not None:
            shape["branch_state"] = branch_words(other)
        return shape

    def counts(self, document: Document) -> dict[str, int]:
        """Count the links of a memory by what became of them."""
        counts: dict[str, int] = {}
        for link in self._links.get(document.id, ()):
            if link.state in COMPARED:
                counts[link.state] = counts.get(link.state, 0) + 1
        return counts


def flags_of(ask: Ask, documents: Sequence[Document]) -> Flags:
    """Return what is to be said beside memories.

    A server reads only linked files that changed since it last showed a memory, and no longer than
    an answer may wait.
    """
    if ask.state is None:
        return compared(ask, documents)
    living = ask.workspace.living
    memories = _memories(ask, documents)
    return Flags(living.drift.quick_states(memories), living.branches.cached(memories))


def compared(ask: Ask, documents: Sequence[Document]) -> Flags:
    """Return what is to be said beside memories, with their links compared now."""
    living = ask.workspace.living
    memories = _memories(ask, documents)
    return Flags(living.drift.look(memories), living.branches.other(memories))


def _memories(ask: Ask, documents: Sequence[Document]) -> list[Document]:
    """Leave out texts of lanes that nobody writes to through us."""
    memories = []
    for document in documents:
        open_lane = ask.workspace.open_lanes.get(document.lane)
        if open_lane is not None and open_lane.corpus.lane.writable:
            memories.append(document)
    return memories


def drift_words(links: Sequence[LinkState], most: int = MOST_NAMED) -> str:
    """Say what became of the links of a memory: "ok", or which of them are not what they were."""
    deviating = [link for link in links if link.state in COMPARED[1:]]
    if not deviating:
        if any(link.state in COMPARED for link in links):
            return "ok"
        return ""
    named = [f"{link_name(link)} {state_words(link)}" for link in deviating[:most]]
    if len(deviating) > most:
        named.append(f"and {len(deviating) - most} more")
    return "; ".join(named)


def link_name(link: LinkState) -> str:
    """Return the target of a link as it is written."""
    return layouts.cut(link.name, LONGEST_NAME)


def state_words(link: LinkState) -> str:
    """Say what became of one link."""
    if link.state == "changed":
        return f"changed since {_changed(link)}"
    if link.state == "moved":
        words = f"moved to {layouts.cut(link.moved_to, LONGEST_NAME)}"
        if link.added or link.removed:
            words += f", changed since {_changed(link)}"
        return words
    return link.state


def _changed(link: LinkState) -> str:
    since = day(link.since)
    if link.added is None:
        return since
    return f"{since} (+{link.added} -{link.removed} lines)"


def day(moment: datetime | None) -> str:
    """Return the date of a moment."""
    if moment is None:
        return "an unknown day"
    return moment.date().isoformat()


def checked_words(check: Check) -> str:
    """Say when a memory was found to be still true, and by whom."""
    words = day(check.at)
    if check.author:
        words += f" by {layouts.cut(check.author, layouts.LONGEST_ORIGIN)}"
    return words


def branch_words(other: OtherBranch) -> str:
    """Say what became of the branch that a memory was written on."""
    if other.merged:
        if other.gone:
            return "merged here, the branch is gone"
        return "merged here"
    if other.gone:
        return "the branch is gone"
    if other.merged is None:
        return "another branch"
    return "another branch, not merged here"
