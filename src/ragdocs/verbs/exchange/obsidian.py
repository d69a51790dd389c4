"""An Obsidian vault: notes with properties, tags and wikilinks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ragdocs.system.names import file_keys, link_key
from ragdocs.types import Document
from ragdocs.verbs.exchange import markdown
from ragdocs.verbs.exchange.exported import Exported, Names
from ragdocs.verbs.exchange.note import Note

SETTINGS = ".obsidian"


def is_one(path: Path) -> bool:
    """Tell whether a folder is a vault."""
    return (path / SETTINGS).is_dir()


def read(path: Path) -> Iterator[Note]:
    """Read the notes of a vault; its settings, trash and attachments are left out."""
    return markdown.read(path)


def write(memories: Iterable[Exported]) -> Iterator[tuple[str, str]]:
    """Return a vault: links by title or id name the file instead, because Obsidian needs that."""
    memories = list(memories)
    names = Names(memories)
    for memory in memories:
        yield memory.document.path, names.rewritten(memory.text, _file)
    yield f"{SETTINGS}/app.json", "{}\n"


def _file(document: Document, target: str) -> str:
    """Return a name of the memory's file: the one that is written, if it is one."""
    if link_key(target) in file_keys(document.path):
        return target
    return document.path.removesuffix(".md")
