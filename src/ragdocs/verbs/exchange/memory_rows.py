"""The database of mcp-memory-service: one memory a row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragdocs.errors import ParseError
from ragdocs.types import ENTRY_KINDS, MEMORY_KINDS
from ragdocs.verbs.exchange import source
from ragdocs.verbs.exchange.note import Note, digest, moment, slug

TABLE = "memories"
NEEDED = {"content", "content_hash", "tags", "memory_type"}


def is_one(path: Path) -> bool:
    """Tell whether a database is one of mcp-memory-service."""
    with source.database(path) as connection:
        if TABLE not in source.tables(connection):
            return False
        return source.columns(connection, TABLE) >= NEEDED


def read(path: Path) -> Iterator[Note]:
    """Read every memory that was not deleted."""
    with source.database(path) as connection:
        is_known = TABLE in source.tables(connection)
        if not is_known or not source.columns(connection, TABLE) >= NEEDED:
            raise ParseError(f"{path} has no table of mcp-memory-service", "Nothing was imported")
        for row in source.rows(connection, TABLE):
            if not row.get("deleted_at"):
                yield _note(row)


def _note(row: dict[str, Any]) -> Note:
    text = str(row["content"] or "")
    kind = str(row["memory_type"] or "")
    fields: dict[str, object] = {}
    if kind and kind not in (*MEMORY_KINDS, *ENTRY_KINDS):
        fields["original_type"] = kind
        kind = ""
    if row.get("superseded_by"):
        fields["status"] = "archived"
    about = _metadata(row.get("metadata"))
    if about:
        fields["metadata"] = about
    key = str(row["content_hash"] or digest(text))
    return Note(
        name=f"{slug(text)}-{key[:8]}",
        text=text,
        kind=kind or "fact",
        tags=source.words(row["tags"]),
        fields=fields,
        created=moment(row.get("created_at")),
        key=key,
    )


def _metadata(value: object) -> dict[str, object]:
    """Return the plain values of what was noted about a memory."""
    try:
        loaded = json.loads(str(value or "{}"))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(loaded, dict):
        return {}
    plain: dict[str, object] = {}
    for key, item in loaded.items():
        if isinstance(item, str | int | float | bool) and key not in ("tags", "type"):
            plain[key] = item
    return plain
