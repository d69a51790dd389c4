"""The database of claude-mem: observations of sessions, and their summaries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragdocs.errors import ParseError
from ragdocs.verbs.exchange import source
from ragdocs.verbs.exchange.note import Note, moment, slug

OBSERVATIONS = "observations"
SUMMARIES = "session_summaries"
# The columns of a summary, in the order of its headings.
PARTS = {
    "request": "Request",
    "investigated": "Investigated",
    "learned": "Learned",
    "completed": "Completed",
    "next_steps": "Next steps",
    "notes": "Notes",
}
FILES = ("files_read", "files_modified", "files_edited")


def is_one(path: Path) -> bool:
    """Tell whether a database is one of claude-mem."""
    with source.database(path) as connection:
        return {OBSERVATIONS, SUMMARIES} <= source.tables(connection)


def read(path: Path) -> Iterator[Note]:
    """Read observations and summaries; prompts and pending messages are left out."""
    with source.database(path) as connection:
        present = source.tables(connection)
        if not {OBSERVATIONS, SUMMARIES} <= present:
            raise ParseError(f"{path} has no tables of claude-mem", "Nothing was imported")
        for row in source.rows(connection, OBSERVATIONS):
            yield _observation(row)
        for row in source.rows(connection, SUMMARIES):
            yield _summary(row)


def _observation(row: dict[str, Any]) -> Note:
    title = _text(row, "title") or _text(row, "text").split("\n")[0][:80]
    parts = [f"# {title or 'Observation'}", _text(row, "subtitle"), _text(row, "narrative")]
    if not _text(row, "narrative"):
        parts.append(_text(row, "text"))
    facts = source.words(row.get("facts"))
    parts.append("\n".join(f"- {fact}" for fact in facts))
    kind = _text(row, "type")
    return Note(
        name=_name(row, title),
        text=_joined(parts),
        kind="observation",
        tags=(*source.words(row.get("concepts")), *filter(None, [kind])),
        fields=_fields(row),
        created=_created(row),
        project=_text(row, "project"),
        key=f"observation-{row.get('id')}",
    )


def _summary(row: dict[str, Any]) -> Note:
    title = _text(row, "request").split("\n")[0][:80] or "Session"
    parts = [f"# {title}"]
    for column, heading in PARTS.items():
        if _text(row, column):
            parts.append(f"## {heading}\n\n{_text(row, column)}")
    return Note(
        name=_name(row, f"session {title}"),
        text=_joined(parts),
        kind="journal",
        tags=("session",),
        fields=_fields(row),
        created=_created(row),
        project=_text(row, "project"),
        key=f"summary-{row.get('id')}",
    )


def _fields(row: dict[str, Any]) -> dict[str, object]:
    fields: dict[str, object] = {}
    if _text(row, "project"):
        fields["project"] = _text(row, "project")
    paths: list[str] = []
    for column in FILES:
        paths += source.words(row.get(column))
    if paths:
        fields["files"] = list(dict.fromkeys(paths))
    return fields


def _name(row: dict[str, Any], title: str) -> str:
    created = _created(row)
    day = f"{created:%Y-%m-%d}-" if created else ""
    return f"{day}{slug(title)}-{row.get('id')}"


def _created(row: dict[str, Any]) -> Any:
    return moment(row.get("created_at_epoch")) or moment(row.get("created_at"))


def _text(row: dict[str, Any], column: str) -> str:
    return str(row.get(column) or "").strip()


def _joined(parts: list[str]) -> str:
    return "\n\n".join(filter(None, parts)) + "\n"
