"""Upkeep: the state of the index."""

from __future__ import annotations

from ragdocs.serve import indexing
from ragdocs.serve.surface import Ask, ServerState, layout_quality, present_quality, verb
from ragdocs.serve.surface.quality_shapes import Status

LANES = ("docs", "memory", "journal", "commits")
# A command answers from an index that it has just brought up to date, and watches nothing.
ALONE = ServerState(ready=True, watcher="off", heartbeat=None)


@verb(
    command="status",
    toolset="docs",
    title="State of the index",
    situation="missing results",
    effect="read",
    lanes=LANES,
    current=False,
    text=present_quality.status,
    about="what is indexed, what is not, and why",
)
def index_status(ask: Ask) -> Status:
    """Show what is indexed. Call it when results are missing or out of date.

    Returns documents, passages and vectors for each lane, the embedding model, and files with
    problems.
    """
    from ragdocs.serve import outside, unpushed

    status = layout_quality.status(ask.workspace.status(), ask.state or ALONE)
    notes = outside.status_notes(ask.workspace)
    if ask.workspace.shared_lanes:
        notes = unpushed.status_notes(ask.workspace)
    processes = indexing.at_work(ask.workspace.config)
    for lane in status["lanes"]:
        lane["notes"] += notes.get(lane["lane"], [])
        for process in processes:
            if process.stage.startswith(f"{lane['lane']}:"):
                lane["notes"].append(process.words)
    return status
