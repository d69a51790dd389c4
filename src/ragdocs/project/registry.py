"""The projects of this user that have memories, in a small file of the user."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ragdocs.errors import NotFoundError, ParseError, RagdocsError
from ragdocs.project import folders
from ragdocs.system import files, git
from ragdocs.system.locks import lock

FILE_NAME = "registry.json"
VERSION = 1
# An entry this young is not written again: a burst of memories writes the file once.
FRESH_SECONDS = 60
LOCK_SECONDS = 1.0
# Far beyond any person's projects; the ones not used for longest leave first.
MOST_PROJECTS = 1_000
LARGEST = 1_000_000
# A time after this one is no date.
LATEST = 1e12


@dataclass(frozen=True, slots=True)
class Registered:
    """A project that had memories at its last access."""

    path: Path
    name: str
    last_access: int


def register(root: Path, moment: float, environ: folders.Environ | None = None) -> None:
    """Note that a project has memories; an entry of the last minute is left as it is."""
    path = Path(os.path.realpath(folders.data_dir(environ))) / FILE_NAME
    if _is_fresh(_load(path), root, moment):
        return
    files.make_directories(path.parent, 0o700)
    with lock(path.parent, timeout=LOCK_SECONDS):
        registry = _load(path)
        entries = _entries(registry)
        before = entries.get(str(root), {})
        # A clock that was put back does not make a project older.
        access = max(int(moment), _seconds(before))
        entries[str(root)] = {**before, "lastAccess": access, "name": main_worktree(root).name}
        _drop_oldest(entries)
        text = json.dumps({**registry, "version": VERSION, "projects": entries}, indent=2)
        files.write_atomic(path, f"{text}\n".encode(), mode=0o600)


def _drop_oldest(entries: dict[str, dict[str, Any]]) -> None:
    """Remove the entries that were not used for longest, if there are too many."""
    newest_first = sorted(entries, key=lambda name: -_seconds(entries[name]))
    for name in newest_first[MOST_PROJECTS:]:
        del entries[name]


def projects(environ: folders.Environ | None = None) -> tuple[list[Registered], list[str]]:
    """List the projects that still have memories, the last used first, and unreadable files."""
    latest: dict[Path, Registered] = {}
    problems = []
    for path in _files(environ):
        try:
            registry = _load(path)
        except RagdocsError as error:
            problems.append(str(error))
            continue
        for project in _registered(registry):
            other = latest.get(project.path)
            if other is None or other.last_access < project.last_access:
                latest[project.path] = project
    present = []
    for project in sorted(latest.values(), key=_newest_first):
        if os.path.lexists(project.path / folders.MEMORIES):
            present.append(project)
    return present, problems


def _newest_first(project: Registered) -> tuple[int, Path]:
    return -project.last_access, project.path


def main_worktree(root: Path) -> Path:
    """Return a project's folder in the main worktree of its repository, without running git.

    All worktrees are one project. A folder that claims to be a worktree is believed only if the
    repository knows it, or a clone could pass for another project.
    """
    repository = git.find(root)
    if repository is None or not repository.is_linked:
        return root
    shared = repository.shared
    if shared.name == ".git":
        main = shared.parent
    else:
        main = shared.with_name(shared.name.removesuffix(".git"))
    folder = main / root.relative_to(repository.top)
    if os.path.realpath(folder) != str(folder):
        # A link below the main worktree could lead to another project.
        return root
    return folder


def _files(environ: folders.Environ | None) -> Iterator[Path]:
    yield folders.data_dir(environ) / FILE_NAME
    user = folders.home(environ)
    if user:
        # Where an earlier design kept the same list.
        yield user / ".koi" / FILE_NAME


def _load(path: Path) -> dict[str, Any]:
    """Read a registry: empty if it is missing, an error if it cannot be understood."""
    try:
        registry = json.loads(files.read_bytes(path, LARGEST))
    except NotFoundError:
        return {"version": VERSION, "projects": {}}
    except (ValueError, RecursionError):
        registry = None
    if not _is_registry(registry):
        hint = "Mend it or delete it; the memories themselves are not in it"
        raise ParseError(f"{path} is not a registry of projects", hint)
    return cast("dict[str, Any]", registry)


def _is_registry(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("version") != VERSION:
        return False
    return isinstance(value.get("projects"), dict)


def _entries(registry: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the entries by path; an entry of another type counts as empty."""
    entries: dict[str, dict[str, Any]] = {}
    for path, entry in registry["projects"].items():
        entries[path] = {}
        if isinstance(entry, dict):
            entries[path] = entry
    return entries


def _registered(registry: Mapping[str, Any]) -> Iterator[Registered]:
    for name, entry in _entries(registry).items():
        if not Path(name).is_absolute() or "\0" in name:
            continue
        path = Path(os.path.realpath(name))
        label = entry.get("name")
        if not label or not isinstance(label, str):
            label = path.name
        yield Registered(path, label, _seconds(entry))


def _seconds(entry: Mapping[str, Any]) -> int:
    value = entry.get("lastAccess", 0)
    if isinstance(value, int | float) and 0 <= value < LATEST:
        return int(value)
    return 0


def _is_fresh(registry: Mapping[str, Any], root: Path, moment: float) -> bool:
    entry = _entries(registry).get(str(root))
    return entry is not None and abs(moment - _seconds(entry)) < FRESH_SECONDS
