"""JSON lines: one memory a line; ours with everything, others with at least a text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ragdocs.text import frontmatter
from ragdocs.verbs.exchange import source
from ragdocs.verbs.exchange.exported import Exported
from ragdocs.verbs.exchange.note import EarlierText, Note, digest, file_name, moment, slug

# A line of ours says so, because its text is written as it is.
FORMAT = "ragdocs-memory-1"
# A type is one word.
_WORD = re.compile(r"[^\W\d_][\w-]{0,39}")
_TEXTS = ("text", "content", "body", "memory")
_TITLES = ("title", "name")
_PATHS = ("path", "filename", "file")
_TIMES = ("created_at", "created", "timestamp", "date")


def read(path: Path) -> Iterator[Note]:
    """Read the memories of a file."""
    for number, record in source.json_lines(path):
        text = _first(record, _TEXTS)
        if not text and not any(isinstance(record.get(key), str) for key in _TEXTS):
            raise source.broken(path, number, f"no text in any of {', '.join(_TEXTS)}")
        if record.get("format") == FORMAT and isinstance(record.get("path"), str):
            earlier = tuple(_earlier(path, number, record.get("history", [])))
            yield Note(name=record["path"], text=text, is_whole=True, earlier=earlier)
        else:
            yield _foreign(record, text)


def _earlier(path: Path, number: int, history: object) -> Iterator[EarlierText]:
    """Read the earlier texts of a memory."""
    if not isinstance(history, list):
        raise source.broken(path, number, "the history is not a list")
    for entry in history:
        at = None
        if isinstance(entry, dict):
            at = moment(entry.get("at"))
        if at is None or not isinstance(entry.get("text"), str):
            raise source.broken(path, number, "an entry of the history has no text or no time")
        verb = str(entry.get("verb", "update"))
        author = str(entry.get("author", ""))
        yield EarlierText(entry["text"], at, verb, author)


def _foreign(record: dict[str, Any], text: str) -> Note:
    title = _first(record, _TITLES)
    name = _first(record, _PATHS)
    if not name and title:
        name = file_name(title)
    fields: dict[str, object] = {}
    if title:
        fields["title"] = title
    created = None
    for key in _TIMES:
        created = created or moment(record.get(key))
    kind = record.get("type") or "fact"
    if not isinstance(kind, str) or not _WORD.fullmatch(kind):
        fields["original_type"] = kind
        kind = "fact"
    return Note(
        name=name or f"{slug(text)}-{digest(text)}",
        text=text,
        kind=kind,
        tags=source.words(record.get("tags")),
        fields=fields,
        created=created,
    )


def _first(record: dict[str, Any], keys: Iterable[str]) -> str:
    for key in keys:
        value = record.get(key)
        if isinstance(value, str) and value.strip():
            return value
    return ""


def write(memories: Iterable[Exported]) -> Iterator[tuple[str, str]]:
    """Return one file with a line for every memory."""
    lines = []
    for memory in memories:
        lines.append(json.dumps(_record(memory), ensure_ascii=False))
    yield "", "".join(f"{line}\n" for line in lines)


def _record(memory: Exported) -> dict[str, object]:
    document = memory.document
    block = frontmatter.split(memory.text)[0]
    fields = {}
    if block is not None:
        fields = frontmatter.load(block)[0]
    links = []
    for link in document.links:
        links.append({"target": link.target, "kind": link.kind})
    return {
        "format": FORMAT,
        "path": document.path,
        "id": document.id,
        "title": document.title,
        "type": document.kind,
        "status": document.status,
        "tags": list(document.tags),
        "fields": fields,
        "links": links,
        "text": memory.text,
        "history": [_entry(earlier) for earlier in memory.earlier],
    }


def _entry(earlier: EarlierText) -> dict[str, str]:
    return {
        "at": earlier.at.isoformat(),
        "verb": earlier.verb,
        "author": earlier.author,
        "text": earlier.text,
    }
