"""What an installed Python package says about itself: bundled documents, README, docstrings."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from ragdocs.errors import NotFoundError, ParseError
from ragdocs.lanes import Lane
from ragdocs.project import packages
from ragdocs.project.documentation import documentation_format
from ragdocs.project.formats import is_installed
from ragdocs.project.packages import PythonPackage
from ragdocs.stores.changes import decoded, readable_text
from ragdocs.stores.files.history import version_of
from ragdocs.stores.files.walk import stamp
from ragdocs.system import files
from ragdocs.text import docstrings
from ragdocs.types import Scan, Source

# Where the docstrings of modules stand.
API = "api"
README = "README"
# Files of one package; more are data.
MOST_FILES = 20_000


class PackageStore:
    """The documents of an installed package; no code of it is run."""

    def __init__(self, root: Path, name: str, package: PythonPackage, lane: Lane) -> None:
        self._root = root
        self._name = name
        self._package = package
        self._lane = lane
        # The file that each document is made from.
        self._files = self._documents()

    @property
    def note(self) -> str:
        """What the package brings, where that is less than documentation."""
        made = 0
        for path in self._files:
            made += path.startswith((f"{API}/", f"{README}."))
        if made < len(self._files):
            return ""
        if not self._package.files:
            return "README only: the installation lists no files"
        return "README and docstrings only: the package bundles no documentation"

    def scan(self, paths: Iterable[str] | None = None) -> Scan:
        """Return a stamp for each document, or for those at or below these paths."""
        wanted = None if paths is None else [path.rstrip("/") for path in paths]
        stamps = {}
        unreadable = {}
        for path, file in self._files.items():
            if wanted is not None and not _is_below(path, wanted):
                continue
            try:
                stamps[path] = stamp(file.stat())
            except OSError as error:
                unreadable[path] = error.strerror or str(error)
        return Scan(stamps, unreadable)

    def read(self, path: str) -> Source:
        """Read one document; a README and docstrings are taken out of other files."""
        file = self._files.get(path)
        if file is None:
            raise NotFoundError(f"there is no document {path[:200]!r} in {self._name}")
        data, status = files.read_file(file, self._lane.largest)
        text, problems = self._text(path, data)
        return Source(
            path=path,
            text=text,
            version=version_of(data),
            stamp=stamp(status),
            size=len(data),
            modified_at=datetime.fromtimestamp(status.st_mtime, UTC),
            problems=problems,
        )

    def locate(self, path: str) -> str:
        """Return the file that a document is made from, or the folder of all packages."""
        return str(self._files.get(path, self._package.site))

    def watched(self) -> list[tuple[Path, bool]]:
        """List the folders in which the package is installed and removed."""
        return [(folder, False) for folder in packages.environment_folders(self._root)]

    def relative(self, path: str) -> str | None:
        """Return "", which stands for everything, if the package was installed; else None."""
        if packages.is_information_of(self._name, Path(path).name):
            return ""
        return None

    def _documents(self) -> dict[str, Path]:
        documents: dict[str, Path] = {}
        metadata, _ = files.read_file(self._package.metadata, packages.METADATA_BYTES)
        text, ending = packages.description(metadata.decode(errors="replace"))
        if text.strip():
            documents[f"{README}{ending}"] = self._package.metadata
        for name in self._package.files[:MOST_FILES]:
            file = self._inside(name)
            path = _document_path(name)
            if file is not None and path:
                documents.setdefault(path, file)
        return documents

    def _inside(self, name: str) -> Path | None:
        """Return the file of a record, unless it leads out of the environment."""
        file = Path(os.path.realpath(self._package.site / name))
        if file.is_relative_to(self._package.environment) and file.is_file():
            return file
        return None

    def _text(self, path: str, data: bytes) -> tuple[str, tuple[str, ...]]:
        if path.startswith(f"{README}.") and self._files[path] == self._package.metadata:
            return packages.description(data.decode(errors="replace"))[0], ()
        if not path.startswith(f"{API}/"):
            return readable_text(path, data)
        source, problems = decoded(path, data)
        name = path.removeprefix(f"{API}/").removesuffix(".md")
        try:
            return docstrings.reference(name, source), problems
        except ValueError as error:
            raise ParseError(f"{self._files[path]} cannot be read: {error}") from error


def _document_path(name: str) -> str:
    """Return what the document of an installed file is called, or nothing if it has none."""
    module = docstrings.module_name(name)
    if module:
        return f"{API}/{module}.md"
    # Files in share/doc are named from site-packages upward.
    path = posixpath.normpath(name)
    while path.startswith("../"):
        path = path.removeprefix("../")
    # Licences and entry points stand beside the metadata.
    is_information = ".dist-info/" in path
    kind = documentation_format(path)
    if kind is None or is_information or not is_installed(kind.extra):
        return ""
    return path


def _is_below(path: str, wanted: Iterable[str]) -> bool:
    for folder in wanted:
        if folder in {"", path} or path.startswith(f"{folder}/"):
            return True
    return False
