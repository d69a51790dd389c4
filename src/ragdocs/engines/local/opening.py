"""Where a local index is kept, and under which key."""

from __future__ import annotations

import os
from pathlib import Path

from ragdocs.engines.local.index import LocalIndex
from ragdocs.engines.local.snapshot import POINTER
from ragdocs.project.folders import cache_dir
from ragdocs.project.signing import signing_key
from ragdocs.system import files


def open_index(directory: Path | None, *, recipe: str, encoder: str, dim: int) -> LocalIndex:
    """Return the index in a directory, or one that leaves nothing on disk."""
    if directory is None:
        return LocalIndex(None, recipe=recipe, encoder=encoder, dim=dim, key=b"")
    # Nobody else writes into the cache folder.
    private = Path(os.path.realpath(cache_dir()))
    key = signing_key()
    return LocalIndex(directory, recipe=recipe, encoder=encoder, dim=dim, key=key, private=private)


def is_saved(directory: Path) -> bool:
    """Tell whether an index was ever saved in a directory."""
    return (directory / POINTER).exists()


def current_generation(directory: Path) -> bytes:
    """Return what names the current generation of an index."""
    return files.read_bytes(directory / POINTER, limit=200)
