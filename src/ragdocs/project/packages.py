"""Installed packages of a project: in its virtual environment and in its node_modules."""

from __future__ import annotations

import email.parser
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragdocs.errors import NotFoundError, RagdocsError, UnavailableError
from ragdocs.system import files

# Where people keep the environment of a project.
ENVIRONMENTS = (".venv", "venv", "env", ".env")
# Set in a shell where an environment is active.
ACTIVE_VARIABLE = "VIRTUAL_ENV"
METADATA_BYTES = 2_000_000
RECORD_BYTES = 8_000_000
_SEPARATORS = re.compile(r"[-_.]+")


@dataclass(frozen=True, slots=True)
class PythonPackage:
    """An installed distribution: its version, its folders, and the files that it brought."""

    version: str
    # The folder of site-packages, which all files are named from.
    site: Path
    # The environment; no file outside of it is read.
    environment: Path
    metadata: Path
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodePackage:
    """A package of node_modules: its version and its folder."""

    version: str
    folder: Path


def find_python_package(root: Path, name: str) -> PythonPackage:
    """Find a package in the virtual environment of a project, or raise that it is not there."""
    wanted = _normal(name)
    looked_in = []
    for environment in _environments(root):
        for site in _site_folders(environment):
            looked_in.append(str(environment))
            for folder in _information(site, wanted):
                return _python_package(folder, site, environment)
    if not looked_in:
        raise NotFoundError(
            f"{root} has no virtual environment",
            f"Make one in {root / ENVIRONMENTS[0]}, or start ragdocs in an active one",
        )
    raise NotFoundError(
        f"{name} is not installed in {', '.join(dict.fromkeys(looked_in))}",
        f"Install it there: pip install {name}",
    )


def find_node_package(root: Path, name: str) -> NodePackage:
    """Find a package in the node_modules of a project, or raise that it is not there."""
    folder = root / "node_modules" / name
    if not folder.is_dir():
        raise NotFoundError(
            f"{name} is not installed in {root / 'node_modules'}",
            f"Install it there: npm install {name}",
        )
    real = Path(os.path.realpath(folder))
    _refuse_outside(real, root, folder)
    try:
        card = json.loads(files.read_bytes(real / "package.json", METADATA_BYTES))
        version = str(card["version"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UnavailableError(f"{real / 'package.json'} does not name a version") from error
    return NodePackage(version, real)


def environment_folders(root: Path) -> list[Path]:
    """List the folders in which packages of Python come and go."""
    folders: list[Path] = []
    for environment in _environments(root):
        folders += _site_folders(environment)
    return folders


def is_information_of(name: str, folder: str) -> bool:
    """Tell whether a folder of site-packages is about an installation of a package."""
    stem, dot, _ = folder.partition(".dist-info")
    return bool(dot) and _normal(stem.rpartition("-")[0]) == _normal(name)


def _environments(root: Path) -> Iterator[Path]:
    """Yield the environments in a project, and then the one that is active."""
    for name in ENVIRONMENTS:
        folder = root / name
        if (folder / "pyvenv.cfg").is_file():
            real = Path(os.path.realpath(folder))
            _refuse_outside(real, root, folder)
            yield real
    active = os.environ.get(ACTIVE_VARIABLE, "")
    if Path(active).is_absolute():
        yield Path(os.path.realpath(active))


def _refuse_outside(real: Path, root: Path, link: Path) -> None:
    """Raise if a folder of a project is a link out of it: that may have come with a clone."""
    if not real.is_relative_to(os.path.realpath(root)):
        raise UnavailableError(
            f"{link} is a link that leads out of the project", "Replace it by a folder"
        )


def _site_folders(environment: Path) -> list[Path]:
    folders = [*sorted(environment.glob("lib/python3*/site-packages"))]
    folders.append(environment / "Lib" / "site-packages")
    inside = []
    for folder in folders:
        is_inside = Path(os.path.realpath(folder)).is_relative_to(environment)
        if folder.is_dir() and is_inside:
            inside.append(folder)
    return inside


def _information(site: Path, wanted: str) -> Iterator[Path]:
    """Yield the folder with the metadata of a distribution."""
    try:
        folders = sorted(site.iterdir())
    except OSError as error:
        raise UnavailableError(f"{site} cannot be read: {error.strerror}") from error
    for folder in folders:
        if is_information_of(wanted, folder.name):
            yield folder


def _python_package(folder: Path, site: Path, environment: Path) -> PythonPackage:
    metadata = folder / "METADATA"
    text = files.read_bytes(metadata, METADATA_BYTES).decode(errors="replace")
    version = email.parser.HeaderParser().parsestr(text, headersonly=True)["Version"]
    if not version:
        raise UnavailableError(f"{metadata} does not name a version")
    return PythonPackage(version, site, environment, metadata, tuple(_record(folder)))


def _record(folder: Path) -> Sequence[str]:
    """Return the files that an installation wrote, as far as it noted them."""
    try:
        text = files.read_bytes(folder / "RECORD", RECORD_BYTES).decode(errors="replace")
    except RagdocsError:
        return ()
    paths = []
    for row in text.splitlines():
        # The digest and the size come behind the last two commas.
        path = row.rsplit(",", 2)[0].strip('"')
        if path:
            paths.append(path)
    return paths


def description(metadata: str) -> tuple[str, str]:
    """Return the description in the metadata of a distribution, and the ending of its format."""
    card = email.parser.Parser().parsestr(metadata)
    kind = str(card["Description-Content-Type"] or "").partition(";")[0].strip().casefold()
    text = str(card.get_payload()).strip() or str(card["Description"] or "")
    endings = {"text/markdown": ".md", "text/plain": ".txt", "text/x-rst": ".rst"}
    # The rule of the package index: without a type, it is reStructuredText.
    return text, endings.get(kind, ".rst")


def _normal(name: str) -> str:
    return _SEPARATORS.sub("-", name).casefold()
