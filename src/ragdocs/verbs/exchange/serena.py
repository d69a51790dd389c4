"""The memories of Serena: plain markdown files below .serena/memories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ragdocs.verbs.exchange import source
from ragdocs.verbs.exchange.note import Note, moment

FOLDER = ".serena/memories"


def is_one(path: Path) -> bool:
    """Tell whether a folder holds memories of Serena, or is that folder."""
    return (path / FOLDER).is_dir() or path.absolute().as_posix().endswith(FOLDER)


def read(path: Path) -> Iterator[Note]:
    """Read the memories of a project, of the folder, or of one file."""
    folder = path / FOLDER
    if not folder.is_dir():
        folder = path
    for name, file in source.texts(folder):
        text, problem = source.read_text(file)
        yield Note(
            name=name,
            text=text,
            tags=("serena",),
            created=moment(file.stat().st_mtime),
            key=name,
            problem=problem,
        )
