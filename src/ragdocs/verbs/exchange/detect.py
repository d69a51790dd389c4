"""Which format a path is in, and what reads and writes each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from ragdocs.errors import ValidationError
from ragdocs.verbs.exchange import (
    adr,
    basic_memory,
    claude_mem,
    json_lines,
    logseq,
    markdown,
    memory_rows,
    obsidian,
    page,
    rules,
    serena,
    server_memory,
    source,
)
from ragdocs.verbs.exchange.exported import Exported
from ragdocs.verbs.exchange.formats import FORMATS, READABLE, Format
from ragdocs.verbs.exchange.note import Note

READERS: dict[str, Callable[[Path], Iterator[Note]]] = {
    "markdown": markdown.read,
    "jsonl": json_lines.read,
    "server-memory": server_memory.read,
    "obsidian": obsidian.read,
    "rules": rules.read,
    "adr": adr.read,
    "mcp-memory-service": memory_rows.read,
    "claude-mem": claude_mem.read,
    "basic-memory": basic_memory.read,
    "serena": serena.read,
    "logseq": logseq.read,
}
# A file has no name; those of a folder have their paths.
WRITERS: dict[str, Callable[[Iterable[Exported]], Iterator[tuple[str, str]]]] = {
    "markdown": markdown.write,
    "jsonl": json_lines.write,
    "server-memory": server_memory.write,
    "obsidian": obsidian.write,
    "html": page.write,
}
# Tests of folders and of databases, in their order.
_FOLDERS = {
    "obsidian": obsidian.is_one,
    "logseq": logseq.is_one,
    "serena": serena.is_one,
    "adr": adr.is_one,
    "basic-memory": basic_memory.is_one,
}
_DATABASES = {"mcp-memory-service": memory_rows.is_one, "claude-mem": claude_mem.is_one}
_SUFFIXES = {".html": "html", ".htm": "html", ".jsonl": "jsonl", ".ndjson": "jsonl"}


def detect(path: Path) -> Format:
    """Return the format that a file or folder is in."""
    source.check_exists(path)
    if path.is_dir():
        name = _matching(path, _FOLDERS) or "markdown"
    elif source.is_database(path):
        name = _matching(path, _DATABASES)
    elif rules.is_one(path):
        name = "rules"
    elif path.suffix == ".md":
        name = "markdown"
    else:
        name = _of_lines(path)
    if not name:
        if path.is_file() and not path.stat().st_size:
            raise ValidationError(f"{path} is empty", "Nothing was imported")
        raise ValidationError(
            f"{path} is in none of the known formats", f"Name one of {', '.join(READABLE)}"
        )
    return FORMATS[name]


def _matching(path: Path, tests: Mapping[str, Callable[[Path], bool]]) -> str:
    for name, is_one in tests.items():
        if is_one(path):
            return name
    return ""


def _of_lines(path: Path) -> str:
    if path.suffix in (".jsonl", ".ndjson", ".json"):
        for _, first in source.json_lines(path):
            return "server-memory" if server_memory.is_one(first) else "jsonl"
    return ""


def detect_target(path: Path) -> Format:
    """Return the format that a path to write to asks for by its ending."""
    return FORMATS[_SUFFIXES.get(path.suffix.lower(), "markdown")]
