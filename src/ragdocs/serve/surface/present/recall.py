"""Answers of remember and recall as text."""

from __future__ import annotations

from ragdocs.serve.surface.present import (
    inline,
    joined,
    listing,
    provenance,
    quote,
    superseded,
    with_notes,
)
from ragdocs.serve.surface.shapes import GitShape, Recalled, RecalledMemory, Remembered


def remembered(answer: Remembered) -> str:
    """Confirm that something is remembered."""
    return with_notes(f"remembered {answer['id']} at {answer['path']}", answer["warnings"])


def recalled(answer: Recalled) -> str:
    """Write memories with when and where they were written."""
    blocks = []
    for number, memory in enumerate(inline(answer)["result"], start=1):
        head = (memory["id"], memory.get("project"), written(memory), _score(memory))
        blocks.append(
            f"{number}. {' · '.join(filter(None, head))}\n"
            f"   file: {memory['path']} · tags: {joined(memory['tags'])}"
            f"{_changed_files(memory['git'])}\n{superseded(memory)}"
            f"{quote(memory['content'])}"
        )
    return listing(blocks, answer["omitted"], answer["notes"], "memories")


def written(memory: RecalledMemory) -> str:
    """Say how old a memory is, on which branch it was written and after which commit."""
    state = memory["git"] or GitShape(branch="", commit="", dirty=False, files_changed=[])
    origin = provenance({**memory, **state})
    if state["commit"] and state["dirty"]:
        return f"{origin} with changes"
    return origin


def _score(memory: RecalledMemory) -> str:
    """Write the score of a memory that a query found."""
    if "score" not in memory:
        return ""
    return f"score {memory['score']:.2f}"


def _changed_files(state: GitShape | None) -> str:
    if not state or not state["files_changed"]:
        return ""
    files = f" · files: {', '.join(state['files_changed'])}"
    more = state.get("files_total", 0) - len(state["files_changed"])
    if more > 0:
        return f"{files} and {more} more"
    return files
