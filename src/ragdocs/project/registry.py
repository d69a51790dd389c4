"""Which projects of this user have memories.

A small file that `remember` keeps and a global `recall` reads.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragdocs.errors import NotFoundError, ParseError, RagdocsError
from ragdocs.project import folders as project
from ragdocs.system import files as fsio
from ragdocs.system import git
from ragdocs.system.locks import lock

FILE_NAME = "registry.json"
VERSION = 1
# An entry so young says the same as a new one: a burst of memories writes the file once.
FRESH_SECONDS = 60
LOCK_SECONDS = 1.0
# Far beyond any person's projects; the ones not used for longest leave first.
MOST_PROJECTS = 1_000
LARGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class Registered:
    """A project that had memories when it was last heard of."""

    path: Path
    name: str
    last_access: int


def register(root: Path, moment: float, environ: project.Environ | None = None) -> None:
    """Note that a project has memories; an entry of the last minute is left as it is."""
    path = Path(os.path.realpath(project.data_dir(environ))) / FILE_NAME
    if _is_fresh(_load(path), root, moment):
        return
    fsio.make_directories(path.parent, 0o700)
    with lock(path.parent, timeout=LOCK_SECONDS):
        known = _load(path)
        entries = _entries(known)
        before = entries.get(str(root), {})
        # A clock that was put back does not make a project older.
        access = max(int(moment), _seconds(before))
        entries[str(root)] = {**before, "lastAccess": access, "name": main_worktree(root).name}
        kept = sorted(entries, key=lambda name: -_seconds(entries[name]))[:MOST_PROJECTS]
        projects = {name: entry for name, entry in entries.items() if name in {*kept}}
        text = json.dumps({**known, "version": VERSION, "projects": projects}, indent=2)
        fsio.write_atomic(path, f"{text}\n".encode(), mode=0o600)


def projects(environ: project.Environ | None = None) -> tuple[list[Registered], list[str]]:
    """List the projects that still have memories, the last used first.

    And what was wrong with the files.
    """
    found: dict[Path, Registered] = {}
    problems = []
    for path in _files(environ):
        try:
            known = _load(path)
        except RagdocsError as error:
            problems.append(str(error))
            continue
        for one in _listed(known):
            if one.path not in found or found[one.path].last_access < one.last_access:
                found[one.path] = one
    newest = sorted(found.values(), key=lambda one: (-one.last_access, one.path))
    return [one for one in newest if os.path.lexists(one.path / project.MEMORIES)], problems


def main_worktree(root: Path) -> Path:
    """Return a project's place in the main worktree of its repository.

    All its worktrees are one project.

    No program is run. A folder that claims to be a worktree is believed only if the repository
    knows it, or a clone could pass for another project.
    """
    repository = git.find(root)
    if repository is None or not repository.is_linked:
        return root
    shared = repository.shared
    main = (
        shared.parent
        if shared.name == ".git"
        else shared.with_name(shared.name.removesuffix(".git"))
    )
    place = main / root.relative_to(repository.top)
    # A link below the main worktree could lead to another project.
    return place if os.path.realpath(place) == str(place) else root


def _files(environ: project.Environ | None) -> Iterator[Path]:
    yield project.data_dir(environ) / FILE_NAME
    user = project.home(environ)
    if user:
        # Where an earlier design kept the same list.
        yield user / ".koi" / FILE_NAME


def _load(path: Path) -> dict[str, Any]:
    """Read a registry; one that is not there is empty.

    And one that cannot be understood stays as it is.
    """
    try:
        known = json.loads(fsio.read_bytes(path, LARGEST))
    except NotFoundError:
        return {"version": VERSION, "projects": {}}
    except (ValueError, RecursionError):
        known = None
    if (
        not isinstance(known, dict)
        or known.get("version") != VERSION
        or not isinstance(known.get("projects"), dict)
    ):
        hint = "Mend it or delete it; the memories themselves are not in it"
        raise ParseError(f"{path} is not a registry of projects", hint)
    return known


def _entries(known: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        path: entry if isinstance(entry, dict) else {} for path, entry in known["projects"].items()
    }


def _listed(known: Mapping[str, Any]) -> Iterator[Registered]:
    for name, entry in _entries(known).items():
        if Path(name).is_absolute() and "\0" not in name:
            path = Path(os.path.realpath(name))
            label = entry.get("name")
            yield Registered(
                path, label if label and isinstance(label, str) else path.name, _seconds(entry)
            )


def _seconds(entry: Mapping[str, Any]) -> int:
    value = entry.get("lastAccess", 0)
    return int(value) if isinstance(value, int | float) and 0 <= value < 1e12 else 0  # noqa: PLR2004 - a date


def _is_fresh(known: Mapping[str, Any], root: Path, moment: float) -> bool:
    entry = _entries(known).get(str(root))
    return entry is not None and abs(moment - _seconds(entry)) < FRESH_SECONDS
