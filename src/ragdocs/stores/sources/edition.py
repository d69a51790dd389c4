"""One version of a source, and the store that reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from ragdocs.errors import UnavailableError
from ragdocs.lanes import Lane
from ragdocs.project.documentation import EXCLUDED
from ragdocs.project.formats import BY_SUFFIX, is_installed
from ragdocs.protocols import Readable, Watched
from ragdocs.stores.files.store import FileStore


class WatchedTexts(Readable, Watched, Protocol):
    """A store that is read and followed."""


@dataclass(frozen=True, slots=True)
class Edition:
    """One version of a source.

    The note says what a reader should know about it, such as that a package brings a README only.
    """

    version: str
    store: WatchedTexts
    note: str = ""
    # The file that names the version, where the store does not watch it.
    marker: Path | None = None


# Finds the version of a source that is there now.
Opener = Callable[[], Edition]


def folder_store(folder: Path, lane: Lane) -> FileStore:
    """Return the store of all documents below a folder that is there."""
    if not folder.is_dir():
        raise UnavailableError(f"{folder} is not a readable folder", "Is a disk missing?")
    include = []
    for suffix, kind in BY_SUFFIX.items():
        if is_installed(kind.extra):
            include.append(f"**/*{suffix}")
    lane = replace(lane, include=tuple(include), exclude=EXCLUDED)
    return FileStore(folder, lane, trusted_root=True)
