"""The shapes of a repository's knowledge.

Field names are those of the document that describes it.
"""

from __future__ import annotations

from typing import NotRequired

# Pydantic reads nested TypedDicts of the standard library only from Python 3.12 on.
from typing_extensions import TypedDict


class Convention(TypedDict):
    """How something is done here."""

    id: str
    title: str
    content: str
    tags: list[str]
    createdAt: str
    updatedAt: str
    drift: NotRequired[str]
    branch_state: NotRequired[str]


class Decision(TypedDict):
    """What was chosen, why, and which files and folders it is about."""

    id: str
    summary: str
    rationale: str
    impactedPaths: list[str]
    createdAt: str
    updatedAt: str
    drift: NotRequired[str]
    branch_state: NotRequired[str]


class Note(TypedDict):
    """Something worth knowing, and whether a person, an agent or a tool said it."""

    id: str
    content: str
    source: str
    createdAt: str
    updatedAt: str
    drift: NotRequired[str]
    branch_state: NotRequired[str]


class Summary(TypedDict):
    """What a step of a run came to."""

    runId: str
    stepId: str
    timestamp: str
    summary: str
    tags: list[str]


class Upserted(TypedDict):
    """What became of a write.

    Whether the item is new, whether anything changed, and where it is.
    """

    created: bool
    changed: bool
    path: str
    warnings: list[str]


class SavedConvention(Convention, Upserted):
    """A convention as it stands now."""


class SavedDecision(Decision, Upserted):
    """A decision as it stands now."""


class SavedNote(Note, Upserted):
    """A note as it stands now."""


class RepoMemory(TypedDict):
    """The knowledge of one repository or branch, newest first.

    `omitted` counts by kind what did not fit.
    """

    repoHash: str
    branch: str
    branchScope: str
    conventions: list[Convention]
    decisions: list[Decision]
    notes: list[Note]
    summaries: list[Summary]
    omitted: dict[str, int]
    remarks: list[str]


class RepoDeleted(TypedDict):
    """Whether an item was moved to the trash, and where to."""

    kind: str
    id: str
    deleted: bool
    movedTo: str


class Appended(TypedDict):
    """A summary that was written, how many there are now, and how many old ones left for it."""

    runId: str
    stepId: str
    timestamp: str
    kept: int
    pruned: int
    path: str
    warnings: list[str]


class Copied(TypedDict):
    """What was copied from one branch to another.

    `left` names items that the other branch has already.
    """

    source: str
    target: str
    copied: list[str]
    left: list[str]
    summaries: int


class Pack(TypedDict):
    """What an agent should know when it begins, its size.

    And what was left out and how to get it.
    """

    context: str
    chars: int
    omitted: list[str]
