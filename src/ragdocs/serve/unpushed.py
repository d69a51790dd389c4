"""How the documentation of a working copy differs from what was pushed to the team."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragdocs.lanes import DOCS
from ragdocs.project import layout

if TYPE_CHECKING:
    # Opening a workspace imports every engine.
    from ragdocs.workspace import Workspace

# Files that are read to tell; a larger working copy is not compared.
MOST_READ = 5_000


def status_notes(workspace: Workspace) -> dict[str, list[str]]:
    """Say which branch is searched, and how many files here are others than those pushed."""
    from ragdocs.stores.files.store import FileStore
    from ragdocs.stores.postgres.push import Push
    from ragdocs.stores.postgres.texts import RowStore

    open_lane = workspace.open_lanes.get(DOCS.name)
    if open_lane is None or not isinstance(open_lane.store, RowStore):
        return {}
    branch = workspace.team.docs_branch()
    notes = [f"the documentation of branch {branch}, as it was pushed"]
    lane = layout.docs_lane(workspace.config)
    source = FileStore(workspace.config.root, lane)
    files = len(source.scan().stamps)
    # A server without a clone has no files to compare.
    if files and files <= MOST_READ:
        plan = Push(source, open_lane.store, lane.largest).compare(_silently)
        count = len(plan.changed) + len(plan.removed)
        if count:
            notes.append(f"{count} files here differ from it; `ragdocs push` sends them")
    return {DOCS.name: notes}


def _silently(_stage: str, _done: int, _total: int) -> None:
    pass
