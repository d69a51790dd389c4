"""Answers of remember and recall as text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from ragdocs.serve.surface.present import (
    inline,
    joined,
    listing,
    note_lines,
    provenance,
    quote,
    superseded,
    with_notes,
)
from ragdocs.serve.surface.shapes import GitShape, Recalled, RecalledMemory, Remembered
from ragdocs.text.visible import line

# Lines of a memory that are shown below its first.
MOST_LINES = 3


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


def days(memories: Sequence[Any]) -> list[dict[str, Any]]:
    """Group memories by day, the newest first, and by project within a day."""
    projects_of: dict[str, dict[str, list[Any]]] = {}
    for memory in sorted(memories, key=_newest_first):
        day = _moment(memory).date().isoformat()
        projects = projects_of.setdefault(day, {})
        projects.setdefault(memory.get("project", ""), []).append(memory)
    result = []
    for day, projects in projects_of.items():
        groups = []
        for name, group in projects.items():
            groups.append({"project": name, "memories": group})
        result.append({"day": day, "projects": groups})
    return result


def by_day(grouped: Sequence[Any], omitted: int, notes: Sequence[str]) -> str:
    """Write memories that were grouped by day and project."""
    blocks = list(map(_day_block, grouped))
    if not blocks:
        blocks.append("nothing is remembered that fits")
    if omitted:
        blocks.append(f"{omitted} more memories; raise --limit or narrow --since to see others")
    return "\n\n".join([*blocks, *note_lines(notes)])


def _day_block(day: Any) -> str:
    rows = [f"{datetime.fromisoformat(day['day']):%A %d %B %Y}"]
    for project in day["projects"]:
        if project["project"]:
            rows.append(f"  {line(project['project'])}")
        for memory in project["memories"]:
            rows += _memory_rows(memory)
    return "\n".join(rows)


def _memory_rows(memory: Any) -> list[str]:
    first, rest = _first_line(memory["content"])
    tags = "".join(f" #{tag}" for tag in memory["tags"])
    rows = [
        f"    {_moment(memory):%H:%M}  {first}{line(tags)}",
        f"           {line(written(memory))} · {line(memory['path'])}",
    ]
    for row in rest[:MOST_LINES]:
        rows.append(f"           | {row}")
    if len(rest) > MOST_LINES:
        rows.append(f"           | … {len(rest) - MOST_LINES} more lines")
    return rows


def _first_line(content: str) -> tuple[str, list[str]]:
    """Return the first line of a text without its heading marks, and the lines after it."""
    rows = list(filter(str.strip, content.splitlines()))
    if not rows:
        return "", []
    return rows[0].lstrip("# "), rows[1:]


def _newest_first(memory: Any) -> float:
    return -float(memory["timestamp"])


def _moment(memory: Any) -> datetime:
    return datetime.fromtimestamp(memory["timestamp"]).astimezone()
