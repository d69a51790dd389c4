"""A folder of markdown: each file a memory at the same path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ragdocs.verbs.exchange import source
from ragdocs.verbs.exchange.exported import Exported
from ragdocs.verbs.exchange.note import Note, moment


def read(path: Path) -> Iterator[Note]:
    """Read every text below a folder, or one file."""
    for name, file in source.texts(path):
        text, problem = source.read_text(file)
        yield Note(name=name, text=text, created=moment(file.stat().st_mtime), problem=problem)


def write(memories: Iterable[Exported]) -> Iterator[tuple[str, str]]:
    """Return every memory as it stands in its file."""
    for memory in memories:
        yield memory.document.path, memory.text
