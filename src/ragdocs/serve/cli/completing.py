"""Values for the shell's completion: names, tags and types, read from the files and no index.

A shell waits for them at every press of the key, so few modules are imported and long banks are
read in part. Nobody sees an error here: what cannot be read is left out.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragdocs.errors import RagdocsError
from ragdocs.system.patterns import later
from ragdocs.types import MEMORY_KINDS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from ragdocs.config import Config

# What a person waits for without wondering.
SECONDS = 0.5
# Names that a shell can still show.
MOST_NAMES = 1_000
# The block of fields stands at the beginning of a memory.
BLOCK_CHARACTERS = 2_000
STATUSES = ("active", "archived", "all")
CONTROL = later(r"[\x00-\x1f\x7f]")
FIELD = later(r"^(?P<name>type|tags):[ \t]*(?P<value>.*(?:\n[ \t]*- .*)*)$", re.MULTILINE)
WORD = later(r"[^\s,\[\]\"'#-][^\s,\[\]\"']*")

Complete = Callable[[click.Context, click.Parameter, str], list["CompletionItem"]]
# The values of one kind in a project.
Values = Callable[["Config"], Iterator[str]]


def complete(command: str, parameter: str) -> Complete | None:
    """Return what completes the values of a command's parameter, if anything does."""
    values = OF_COMMAND.get((command, parameter)) or OF_PARAMETER.get(parameter)
    if values is None or (command, parameter) in NEW_NAMES:
        return None

    def completed(
        ctx: click.Context, _parameter: click.Parameter, typed: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in _names(ctx, values, typed)]

    return completed


def _names(ctx: click.Context, values: Values, typed: str) -> list[str]:
    """Return the values that begin with what is typed; without any, those that contain it."""
    from ragdocs.serve.start import load_config

    names: set[str] = set()
    deadline = 0.0
    with suppress(RagdocsError, OSError):
        config = load_config(ctx.params.get("project"), ctx.params.get("settings") or ())
        for name in values(config):
            if not CONTROL.search(name):
                names.add(name)
            deadline = deadline or time.monotonic() + SECONDS
            if time.monotonic() > deadline:
                break
    ordered = sorted(names)
    beginning = [name for name in ordered if name.startswith(typed)]
    if not beginning:
        wanted = typed.casefold()
        beginning = [name for name in ordered if wanted in name.casefold()]
    return beginning[:MOST_NAMES]


def _memories(config: Config) -> Iterator[str]:
    """Yield the file names of memories."""
    from ragdocs.config import NO_DATABASE
    from ragdocs.project.layout import memory_root

    if config.team.database != NO_DATABASE:
        from ragdocs.workspace import Workspace

        yield from Workspace(config, lanes=("memory",)).corpus("memory").store.scan().stamps
        return
    root = memory_root(config)
    for folder, folders, files in os.walk(root):
        # History, trash and index are no memories.
        folders[:] = [name for name in folders if not name.startswith(".") and name != "indices"]
        for file in files:
            if file.endswith(".md") and not file.startswith("."):
                yield Path(folder, file).relative_to(root).as_posix()


def _documents(config: Config) -> Iterator[str]:
    """Yield the paths of documents."""
    from dataclasses import replace

    from ragdocs.lanes import DOCS
    from ragdocs.project.layout import docs_globs
    from ragdocs.stores.files.store import FileStore

    globs = docs_globs(config)
    lane = replace(
        DOCS, include=globs.include, exclude=globs.exclude, gitignore=config.docs.gitignore
    )
    yield from FileStore(config.root, lane).scan().stamps


def _texts(config: Config) -> Iterator[str]:
    """Yield the names of memories and of documents."""
    yield from _memories(config)
    yield from _documents(config)


def _tags(config: Config) -> Iterator[str]:
    return _fields(config, "tags")


def _kinds(config: Config) -> Iterator[str]:
    """Yield the usual types, and those that memories have."""
    yield from MEMORY_KINDS
    yield from _fields(config, "type")


def _statuses(_config: Config) -> Iterator[str]:
    yield from STATUSES


def _fields(config: Config, field: str) -> Iterator[str]:
    """Yield the words of a field of all memories."""
    from ragdocs.project.layout import memory_root

    root = memory_root(config)
    for name in _memories(config):
        with suppress(OSError), (root / name).open(encoding="utf-8", errors="replace") as file:
            block = file.read(BLOCK_CHARACTERS)
            if not block.startswith("---\n"):
                continue
            block = block[4:].partition("\n---")[0]
            for match in FIELD.finditer(block):
                if match["name"] == field:
                    yield from WORD.findall(match["value"])


OF_PARAMETER: dict[str, Values] = {
    "filename": _memories,
    "source_files": _memories,
    "target_file": _memories,
    "tags": _tags,
    "filter_tags": _tags,
    "filter_type": _kinds,
    "memory_type": _kinds,
    "status": _statuses,
    "target_document": _texts,
}
OF_COMMAND: dict[tuple[str, str], Values] = {
    ("open", "name"): _texts,
    ("docs read", "path"): _documents,
    ("explain", "path"): _texts,
    ("memory list", "kind"): _kinds,
    ("search", "kind"): _kinds,
    ("explain", "kind"): _kinds,
}
# A name that must not exist yet.
NEW_NAMES = frozenset({("memory create", "filename")})
