"""Documentation beyond the project: what one line of the user's configuration means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ragdocs.errors import ValidationError

Kind = Literal["folder", "git", "pip", "npm", "llms"]

# What the project's own documentation is called beside other sources.
OWN = "project"
# The version of a source that has none: the files as they are on this disk.
LOCAL = "local"
HEAD = "HEAD"
_LINE = re.compile(
    r"(?:(?P<name>[A-Za-z0-9][\w.-]*)=)?(?:(?P<kind>git|pip|npm|llms):)?(?P<rest>.+)"
)
_GIT = re.compile(r"(?P<location>.+?)(?:@(?P<revision>[^@:]+)(?::(?P<folder>[^@]*))?)?")
_PACKAGE = re.compile(r"(?:@[\w.-]+/)?[A-Za-z0-9][\w.-]*")
_UNFIT = re.compile(r"[^\w.+-]+")
_PATH = re.compile(r"(?P<name>[^/@]+)@(?P<version>[^/]+)(?:/(?P<rest>.*))?")
_HOW = (
    "Write a folder as ~/handbook, a repository as git:~/src/tool@v2.1, an installed package as "
    "pip:starlette or npm:zod, an llms.txt as llms:~/docs/tool/llms.txt; name= before it names it"
)


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One source as configured: a folder, a revision of a repository, or a package."""

    line: str
    kind: Kind
    name: str
    # A path, or the name of a package.
    location: str
    revision: str = ""
    # Of a repository, the folder that is read.
    folder: str = ""

    @property
    def usual_version(self) -> str:
        """The version of a source that cannot be read just now, as far as its line says it."""
        if self.kind == "git":
            return tidy(self.revision)
        if self.kind in {"pip", "npm"}:
            return ""
        return LOCAL

    @property
    def path(self) -> Path:
        """Where a source is that has a path."""
        return Path(self.location).expanduser()


def parse_source(line: str) -> SourceLine:
    """Read one line of the configuration."""
    match = _LINE.fullmatch(line.strip())
    if match is None:
        raise ValidationError(f"{line[:80]!r} is not a source", _HOW)
    kind: Kind = match["kind"] or "folder"  # type: ignore[assignment]
    location, revision, folder = match["rest"].strip(), "", ""
    if kind in {"pip", "npm"}:
        if not _PACKAGE.fullmatch(location):
            raise ValidationError(f"{location[:80]!r} is not the name of a package", _HOW)
    else:
        if kind == "git":
            location, revision, folder = _git_parts(location)
        if not Path(location).expanduser().is_absolute():
            raise ValidationError(f"{line[:80]!r} is not a source: its path is not absolute", _HOW)
    name = match["name"] or _usual_name(kind, location)
    if not name or name == OWN:
        raise ValidationError(f"{line[:80]!r} needs a name", "Write name= before it")
    return SourceLine(line, kind, name, location, revision, folder)


def _git_parts(text: str) -> tuple[str, str, str]:
    match = _GIT.fullmatch(text)
    if match is None:
        raise ValidationError(f"{text[:80]!r} does not name a revision", _HOW)
    return match["location"], match["revision"] or HEAD, (match["folder"] or "").strip("/")


def _usual_name(kind: Kind, location: str) -> str:
    """Return what a source is called that nobody has named."""
    if kind in {"pip", "npm"}:
        return tidy(location.removeprefix("@"))
    path = Path(location).expanduser()
    if kind == "llms":
        path = path.parent
    return tidy(path.name.removesuffix(".git"))


def tidy(text: str) -> str:
    """Return a name or a version as one part of a path."""
    return _UNFIT.sub("-", text).strip("-.")


def split_path(path: str) -> tuple[str, str, str] | None:
    """Return the source, the version and the rest of a path such as zod@3.1.0/README.md."""
    match = _PATH.fullmatch(path)
    if match is None:
        return None
    return match["name"], match["version"], match["rest"] or ""
