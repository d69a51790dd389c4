"""Where the lanes of a project keep their texts and their indexes."""

from __future__ import annotations

import os
from pathlib import Path

from ragdocs.config import Config
from ragdocs.errors import UnavailableError
from ragdocs.lanes import Lane
from ragdocs.project.folders import (
    MEMORIES,
    Environ,
    cache_dir,
    data_dir,
    not_linked,
    project_key,
    resolved,
)


def memory_root(config: Config, environ: Environ | None = None) -> Path:
    """Return the directory that holds the memories."""
    if config.memory.storage_strategy == "user":
        return resolved(data_dir(environ) / "memories")
    return not_linked(config.root / MEMORIES)


def journal_root(config: Config) -> Path:
    """Return the directory of the journal; only the user may name one outside the project."""
    named = Path(config.journal.path).expanduser()
    path = named
    if not named.is_absolute():
        path = not_linked(config.root / named)
    folder = Path(os.path.realpath(path))
    root = Path(os.path.realpath(config.root))
    if root.is_relative_to(folder) or ".git" in map(str.casefold, folder.parts):
        raise UnavailableError(
            f"{path} cannot hold a journal: its entries would be commits of something else",
            "Set journal.path to a folder of its own, such as journal-data",
        )
    if not named.is_absolute() and not folder.is_relative_to(root):
        raise UnavailableError(
            f"{path} leads out of the project", "Replace the link by a directory"
        )
    return folder


def index_root(config: Config, lane: Lane, environ: Environ | None = None) -> Path:
    """Return the directory for the snapshots of one lane's index."""
    if lane.writable:
        return not_linked(memory_root(config, environ) / "indices")
    # A project that only has documents is never written to: its index is the user's cache.
    return resolved(cache_dir(environ) / "projects" / project_key(config.root) / lane.name)
