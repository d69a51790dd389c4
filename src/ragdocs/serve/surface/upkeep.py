"""Upkeep: the state of the index."""

from __future__ import annotations

from ragdocs.serve import indexing
from ragdocs.serve.surface import Ask, ServerState, verb
from ragdocs.serve.surface.layouts import quality as layout_quality
from ragdocs.serve.surface.present import quality as present_quality
from ragdocs.serve.surface.shapes.quality import LaneStatus, Status

LANES = ("docs", "sources", "memory", "journal", "commits")
# Lanes that are made of several sources.
LISTED_BY_SOURCE = ("sources",)
# A command answers from an index that it has just brought up to date, and watches nothing.
ALONE = ServerState(ready=True, watcher="off", heartbeat=None)


def _add_sources(ask: Ask, lane: LaneStatus) -> None:
    """Say which version of each source is read or why none is, and that a team has none of it."""
    for source in ask.workspace.sources():
        if source.problem:
            lane["problems"][source.folder] = source.problem
            continue
        note = f"{source.name} {source.version}: {source.documents} documents"
        lane["notes"].append("; ".join(filter(None, [note, source.note])))
    if ask.workspace.shared_lanes:
        lane["notes"].append(
            "sources are on this machine only: others of your team do not see them"
        )


@verb(
    command="status",
    toolset="docs",
    title="State of the index",
    situation="missing results",
    effect="read",
    lanes=LANES,
    current=False,
    text=present_quality.status,
    about="show what is indexed, what is not, and why",
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
        if lane["lane"] in LISTED_BY_SOURCE:
            _add_sources(ask, lane)
        for process in processes:
            if process.stage.startswith(f"{lane['lane']}:"):
                lane["notes"].append(process.words)
    return status
