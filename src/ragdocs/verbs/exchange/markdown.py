"""A folder of markdown: each file a memory at the same path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from ragdocs.text import frontmatter
from ragdocs.verbs.exchange import source
from ragdocs.verbs.exchange.exported import Exported
from ragdocs.verbs.exchange.note import Note, moment

# Properties that people have for the day of a note.
TIMES = ("created", "date")


def read(path: Path) -> Iterator[Note]:
    """Read every text below a folder, or one file."""
    for name, file in source.texts(path):
        text, problem = source.read_text(file)
        created = _noted(text) or moment(file.stat().st_mtime)
        yield Note(name=name, text=text, created=created, problem=problem)


def _noted(text: str) -> datetime | None:
    """Return when a text says that it was made: a copy of its file is newer."""
    block = frontmatter.split(text)[0]
    if block is None:
        return None
    fields = frontmatter.load(block)[0]
    times = (moment(fields.get(key)) for key in TIMES)
    return next(filter(None, times), None)


def write(memories: Iterable[Exported]) -> Iterator[tuple[str, str]]:
    """Return every memory as it stands in its file."""
    for memory in memories:
        yield memory.document.path, memory.text
