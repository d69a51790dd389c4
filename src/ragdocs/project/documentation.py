"""Which documentation a project has: its formats, its files, and what is read without a config."""

from __future__ import annotations

import os
import stat
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ragdocs.errors import UnavailableError
from ragdocs.lanes import DOCS
from ragdocs.project.formats import Format, format_of, is_installed
from ragdocs.system import git
from ragdocs.system.patterns import later

# Enough for the names of half a million files.
GIT_OUTPUT = 64_000_000
GIT_SECONDS = 10.0
# Bounds of a walk through a folder without git.
MOST_ENTRIES = 200_000
WALK_SECONDS = 5.0
# Entries of docs/ that are looked at to tell whether there is any documentation in it.
MOST_DOCS_ENTRIES = 5_000
# Without a configuration nobody has chosen the files: beyond this many, only the upper folders
# are read.
MOST_BY_DEFAULT = 5_000
# With more top folders than this, a few globs for all of them do.
MOST_TOP_FOLDERS = 24
# A folder of source code has a README or two; one with more documents may get folders of them.
MOST_SINGLE_FILES = 2
# In place of a folder: all of them.
EVERYWHERE = "."

# Folders with these names hold documentation, whatever its format.
DOCS_FOLDERS = frozenset(
    {"docs", "doc", "documentation", "content", "guide", "guides", "manual", "wiki", "handbook"}
)
# Folders that other programs write; no file below them is meant to be searched.
BUILT = (
    "node_modules",
    "bower_components",
    "site-packages",
    "_build",
    "_site",
    "_generated",
    "_autosummary",
    "__pycache__",
)
# Folders in a site's source whose pages are templates and parts of a theme.
THEMES = ("_static", "_templates", "_themes", "_layouts")
# A walk without git leaves these out: nobody keeps documentation in them.
_UNVISITED = frozenset({*BUILT, "venv", "target", "dist"})
# What nobody means to search without having said so.
EXCLUDED = tuple(f"**/{name}/**" for name in (*BUILT, *THEMES))
_SPECIAL = later(r"[*?\[\\]")


class Globs(NamedTuple):
    """Which files are documents, as globs relative to the project."""

    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """The documentation files of a project, sorted, and how they were listed."""

    paths: tuple[str, ...]
    # Files of any kind that were listed.
    files: int
    from_git: bool
    # Why the list may have gaps, or nothing.
    gap: str = ""


def documentation_format(path: str) -> Format | None:
    """Return the format of a documentation file, or nothing for any other file."""
    kind = format_of(path)
    if kind is None:
        return None
    # No lane looks at hidden names.
    if path.startswith(".") or "/." in path:
        return None
    if not kind.only_in_docs:
        return kind
    if is_in_docs_folder(path.split("/")[:-1]):
        return kind
    return None


def is_readable(path: str) -> bool:
    """Tell whether a file is documentation in a format that is read with what is installed."""
    kind = documentation_format(path)
    return kind is not None and is_installed(kind.extra)


def is_in_docs_folder(folders: Iterable[str]) -> bool:
    """Tell whether one of these folders is meant for documentation."""
    return not DOCS_FOLDERS.isdisjoint(map(str.casefold, folders))


def list_documentation(root: Path) -> Listing:
    """List the documentation of a project from git, or by a bounded walk where git is no help."""
    try:
        paths = _from_git(root)
    except UnavailableError:
        return _walk(root)
    return Listing(_documentation(paths), len(paths), from_git=True)


def _documentation(paths: Iterable[str]) -> tuple[str, ...]:
    documents = []
    for path in paths:
        if documentation_format(path) is not None:
            documents.append(path)
    return tuple(sorted(documents))


def _from_git(root: Path) -> set[str]:
    """Return the files that git tracks below a folder, and new ones that it does not ignore."""
    terms = git.Terms(seconds=GIT_SECONDS, most=GIT_OUTPUT)
    options = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    output = git.run(root, options, terms=terms)
    return set(filter(None, output.decode(errors="replace").split("\0")))


def _walk(root: Path) -> Listing:
    """List the documentation below a folder, except in hidden folders and those of builds."""
    deadline = time.monotonic() + WALK_SECONDS
    paths: list[str] = []
    folders = [""]
    gap = ""
    while folders:
        if len(paths) > MOST_ENTRIES or time.monotonic() > deadline:
            gap = f"only the first {len(paths):,} files were looked at"
            break
        folder = folders.pop()
        below, names = _entries(root, folder)
        folders += below
        paths += names
    return Listing(_documentation(paths), len(paths), from_git=False, gap=gap)


def _entries(root: Path, folder: str) -> tuple[list[str], list[str]]:
    """Return the folders and the files in a folder that may hold documentation."""
    folders: list[str] = []
    names: list[str] = []
    prefix = f"{folder}/" if folder else ""
    try:
        with os.scandir(root / folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _UNVISITED:
                        folders.append(prefix + entry.name)
                elif entry.is_file(follow_symlinks=False):
                    names.append(prefix + entry.name)
    except OSError:
        # A folder that cannot be read holds nothing that could be indexed.
        return [], []
    return folders, names


def file_size(root: Path, path: str) -> int | None:
    """Return the size of a regular file, or nothing for a link or a file that is gone."""
    try:
        status = os.lstat(root / path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return status.st_size


def default_globs(root: Path) -> Globs:
    """Return which files are read where no configuration names any.

    These are docs/ and the README if there is documentation in docs/, and otherwise every
    documentation file of the project, as far as a folder is not written by a build.
    """
    if _has_documentation(root, "docs"):
        return _of_docs()
    by_top: defaultdict[str, list[str]] = defaultdict(list)
    documents = list(filter(is_readable, list_documentation(root).paths))
    for path in documents:
        by_top[top_folder(path)].append(path)
    if not documents:
        # There may be a docs/ later.
        return _of_docs()
    exclude = EXCLUDED
    if len(documents) > MOST_BY_DEFAULT:
        suffixes = suffixes_of(documents)
        return Globs((*patterns("", suffixes), *patterns("*", suffixes, deep=False)), exclude)
    include = patterns("", [".md"])
    for top, paths in sorted(by_top.items()):
        # Only folders with documentation are walked and watched: builds write elsewhere.
        folder = common_folder(paths)
        is_deep = len(paths) > MOST_SINGLE_FILES or is_in_docs_folder(folder.split("/"))
        has_folders = any("/" in path.removeprefix(f"{folder}/") for path in paths)
        if top and len(by_top) > MOST_TOP_FOLDERS:
            folder = EVERYWHERE
        include += patterns(escaped(folder), suffixes_of(paths), deep=is_deep or has_folders)
    return Globs(tuple(dict.fromkeys(include)), exclude)


def _of_docs() -> Globs:
    """Return the globs of docs/, for all formats that are read with what is installed."""
    include = []
    for glob in DOCS.include:
        kind = format_of(glob)
        if kind is None or is_installed(kind.extra):
            include.append(glob)
    return Globs(tuple(include), EXCLUDED)


def top_folder(path: str) -> str:
    """Return the first folder of a path, or nothing for a file of the top folder."""
    folder, slash, _ = path.partition("/")
    if slash:
        return folder
    return ""


def common_folder(paths: Iterable[str]) -> str:
    """Return the deepest folder that all paths are in."""
    return os.path.commonpath([path.rpartition("/")[0] for path in paths])


def suffixes_of(paths: Iterable[str]) -> list[str]:
    """Return the endings of files, as they are written."""
    return sorted({f".{path.rpartition('.')[2]}" for path in paths})


def patterns(folder: str, suffixes: Iterable[str], *, deep: bool = True) -> list[str]:
    """Return the globs of the files with these endings in a folder, and below it if `deep`."""
    prefix = f"{folder}/"
    if deep:
        prefix = f"{folder}/**/"
    if folder == EVERYWHERE:
        prefix = "**/"
    elif not folder:
        prefix = ""
    return [f"{prefix}*{suffix}" for suffix in suffixes]


def escaped(path: str) -> str:
    """Return a path as a glob that matches it alone."""
    return _SPECIAL.sub(r"\\\g<0>", path)


def _has_documentation(root: Path, top: str) -> bool:
    """Tell whether people write documents in a folder; a very large one is taken to hold some."""
    folders = [top]
    count = 0
    while folders:
        below, names = _entries(root, folders.pop())
        folders += below
        for name in names:
            kind = documentation_format(name)
            if kind is not None and not kind.is_often_built and is_installed(kind.extra):
                return True
        count += len(names)
        if count > MOST_DOCS_ENTRIES:
            return True
    return False
