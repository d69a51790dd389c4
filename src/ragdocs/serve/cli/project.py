"""Opening the project that a command is about: the lanes it needs, brought up to their files."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from ragdocs.errors import LockAcquisitionError, RagdocsError
from ragdocs.serve.cli.progress import Progress
from ragdocs.serve.start import load_config

if TYPE_CHECKING:
    from ragdocs.workspace import Workspace

# A person reads in a terminal that scrolls; an agent's answers have a budget of their own.
ROOM = 1_000_000


def open_workspace(
    project: str | None,
    settings: Sequence[str],
    *,
    lanes: Collection[str] | None = None,
    needed: Mapping[str, object] | None = None,
    current: bool = True,
    embed: bool = True,
) -> Workspace:
    """Open these lanes of a project and bring them up to their files.

    With progress where that takes a while.
    """
    from ragdocs.workspace import Workspace

    workspace = Workspace(load_config(project, settings, needed), lanes=lanes, room=ROOM)
    workspace.load()
    if not current:
        return workspace
    with Progress() as progress:
        workspace.sync(progress.show)
        if embed:
            workspace.embed(progress.show)
    save(workspace)
    return workspace


def save(workspace: Workspace) -> None:
    """Keep the index for the next start; a project that cannot be written to is still searched."""
    try:
        workspace.save()
    except LockAcquisitionError:
        return
    except RagdocsError as error:
        print(f"ragdocs: the index was not saved: {error}", file=sys.stderr)
