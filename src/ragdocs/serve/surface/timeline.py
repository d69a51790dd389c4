"""Memories as one would tell them: day by day, project by project."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from ragdocs.serve.surface import present
from ragdocs.text.visible import line

# Lines of a memory that are shown below its first.
SHOWN_LINES = 3


def days(memories: Sequence[Any]) -> list[dict[str, Any]]:
    """Group memories by day, the newest first, and by project within a day."""
    grouped: dict[str, dict[str, list[Any]]] = {}
    for memory in sorted(memories, key=lambda memory: -memory["timestamp"]):
        projects = grouped.setdefault(_moment(memory).date().isoformat(), {})
        projects.setdefault(memory.get("project", ""), []).append(memory)
    result = []
    for day, projects in grouped.items():
        listed = [{"project": name, "memories": group} for name, group in projects.items()]
        result.append({"day": day, "projects": listed})
    return result


def text(grouped: Sequence[Any], omitted: int, notes: Sequence[str]) -> str:
    """Write memories that were grouped by day and project."""
    lines: list[str] = []
    for day in grouped:
        lines += ["", f"{datetime.fromisoformat(day['day']):%A %d %B %Y}"]
        for project in day["projects"]:
            if project["project"]:
                lines.append(f"  {line(project['project'])}")
            for memory in project["memories"]:
                lines += _entry(memory)
    lines = lines[1:] or ["nothing is remembered that fits"]
    if omitted:
        lines += ["", f"{omitted} more memories; raise --limit or narrow --since to see others"]
    for note in notes:
        lines.append(f"\nNote: {line(note)}")
    return "\n".join(lines)


def _entry(memory: Any) -> Iterator[str]:
    written = [row for row in memory["content"].splitlines() if row.strip()]
    first = written[0].lstrip("# ") if written else ""
    tags = "".join(f" #{tag}" for tag in memory["tags"])
    yield f"    {_moment(memory):%H:%M}  {first}{line(tags)}"
    yield f"           {line(present.written(memory))} · {line(memory['path'])}"
    rest = written[1:]
    for row in rest[:SHOWN_LINES]:
        yield f"           | {row}"
    if len(rest) > SHOWN_LINES:
        yield f"           | … {len(rest) - SHOWN_LINES} more lines"


def _moment(memory: Any) -> datetime:
    return datetime.fromtimestamp(memory["timestamp"]).astimezone()
