"""From a line of the configuration to the store that reads it."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

from ragdocs.config import Config
from ragdocs.errors import UnavailableError
from ragdocs.lanes import Lane
from ragdocs.project import layout, packages
from ragdocs.project.packages import PythonPackage
from ragdocs.project.sources import LOCAL, SourceLine, tidy
from ragdocs.stores.files.store import FileStore
from ragdocs.stores.sources.edition import Edition, Opener, folder_store
from ragdocs.stores.sources.linked import LinkedFiles
from ragdocs.stores.sources.package import PackageStore
from ragdocs.stores.sources.shelf import Shelf
from ragdocs.stores.sources.tree import GitTree
from ragdocs.text.redaction.redact import Redactor

SHORT_COMMIT = 10
# Stores that stay in memory between two looks at them.
MOST_OPEN = 64
README_ONLY = "README only: the package bundles no documentation"


def open_shelf(config: Config, redactor: Redactor) -> Shelf:
    """Return the store of all sources that a user has configured, without secrets."""
    lane = layout.sources_lane(config)
    return Shelf(
        config.docs.sources,
        lambda source: opener(source, config.root, lane),
        lambda text: redactor.redact(text).text,
    )


def opener(source: SourceLine, root: Path, lane: Lane) -> Opener:
    """Return what finds the version of a source that is there now."""
    openers = {"folder": _folder, "git": _git, "pip": _pip, "npm": _npm, "llms": _llms}
    return partial(openers[source.kind], source, root, lane)


def _folder(source: SourceLine, root: Path, lane: Lane) -> Edition:
    del root
    return Edition(LOCAL, folder_store(_real(source), lane))


def _git(source: SourceLine, root: Path, lane: Lane) -> Edition:
    del root
    tree = _tree(_real(source), source.revision, source.folder, lane)
    tree.scan([])
    return Edition(tidy(source.revision), tree, f"commit {tree.commit[:SHORT_COMMIT]}")


def _pip(source: SourceLine, root: Path, lane: Lane) -> Edition:
    package = packages.find_python_package(root, source.location)
    store = _package_store(root, source.location, package, lane)
    return Edition(tidy(package.version), store, store.note)


def _npm(source: SourceLine, root: Path, lane: Lane) -> Edition:
    package = packages.find_node_package(root, source.location)
    # Whoever installs packages tells git to ignore them.
    store = folder_store(package.folder, replace(lane, gitignore=False))
    marker = package.folder / "package.json"
    return Edition(tidy(package.version), store, _npm_note(store), marker)


@lru_cache(MOST_OPEN)
def _tree(root: Path, revision: str, folder: str, lane: Lane) -> GitTree:
    """Return the same object as last time: it lists its files once for each commit."""
    return GitTree(root, revision, folder, lane)


@lru_cache(MOST_OPEN)
def _package_store(root: Path, name: str, package: PythonPackage, lane: Lane) -> PackageStore:
    """Return the same object as long as the same files are installed."""
    return PackageStore(root, name, package, lane)


def _npm_note(store: FileStore) -> str:
    for path in store.scan().stamps:
        if "/" in path:
            return ""
    return README_ONLY


def _llms(source: SourceLine, root: Path, lane: Lane) -> Edition:
    del root
    path = source.path
    if path.is_dir():
        path /= "llms.txt"
    if not path.is_file():
        raise UnavailableError(f"{path} is not a readable file")
    listed = LinkedFiles(Path(os.path.realpath(path)), lane)
    return Edition(LOCAL, listed, listed.note)


def _real(source: SourceLine) -> Path:
    """Return the folder of a source; the user may have named a link."""
    path = source.path
    if not path.is_dir():
        raise UnavailableError(f"{path} is not a readable folder", "Is a disk missing?")
    return Path(os.path.realpath(path))
