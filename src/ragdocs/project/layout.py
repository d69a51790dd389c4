"""The lanes of a project as configured, and where they keep texts and indexes."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ragdocs.config import Config
from ragdocs.errors import UnavailableError
from ragdocs.keys import USER_FILE
from ragdocs.lanes import COMMITS, DOCS, JOURNAL, MEMORY, SOURCES, Lane
from ragdocs.project.folders import (
    MEMORIES,
    Environ,
    cache_dir,
    data_dir,
    not_linked,
    project_key,
    resolved,
)

if TYPE_CHECKING:
    from ragdocs.project.documentation import Globs

# How lanes are turned on that have no section of their own.
SWITCHES = {
    COMMITS.name: "Turn it on: write commits = true under [docs] in config.toml",
    SOURCES.name: f"Add a line to sources under [docs] in {USER_FILE}",
}


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


def docs_globs(config: Config) -> Globs:
    """Return the globs of the documents: as configured, or by what the project has."""
    from ragdocs.project.documentation import Globs, default_globs

    docs = config.docs
    if config.origin("docs.include") != "default":
        return Globs(tuple(docs.include), tuple(docs.exclude))
    include, exclude = default_globs(config.root)
    # The journal's entries are a lane of their own.
    journal = f"{config.journal.path}/**"
    return Globs(include, (*exclude, journal, *docs.exclude))


def docs_lane(config: Config) -> Lane:
    """Return the documentation lane as configured."""
    docs = config.docs
    globs = docs_globs(config)
    return replace(
        DOCS,
        include=globs.include,
        exclude=globs.exclude,
        gitignore=docs.gitignore,
        version=docs.version,
        largest=config.watch.largest_kb * 1000,
    )


def sources_lane(config: Config) -> Lane:
    """Return the lane of the documentation beyond the project."""
    return replace(SOURCES, version=config.docs.version, largest=config.watch.largest_kb * 1000)


def memory_lane(config: Config) -> Lane:
    """Return the memory lane as configured."""
    memory = config.memory
    ranking = replace(
        MEMORY.ranking,
        recency_days=memory.recency_boost_days,
        recency_factor=memory.recency_boost_factor,
    )
    # The user's bank lies in no project, so nothing can be reached from it by a relative link.
    base = "" if memory.storage_strategy == "user" else MEMORY.base
    return replace(MEMORY, ranking=ranking, base=base, largest=config.watch.largest_kb * 1000)


def journal_lane(config: Config) -> Lane:
    """Return the lane of the journal as configured."""
    journal = config.journal
    ranking = replace(
        JOURNAL.ranking,
        half_life_days=journal.half_life_days,
        fresh_min_score=journal.minimum_salience,
        # Fresh entries need so little that they must not be lost among older candidates; their
        # score stays as it is.
        recency_days=math.ceil(2 * journal.half_life_days),
    )
    return replace(JOURNAL, ranking=ranking)
