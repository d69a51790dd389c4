"""All sources of a user as one store: each below a folder of its name and version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ragdocs.errors import NotFoundError, RagdocsError
from ragdocs.project.sources import SourceLine, parse_source
from ragdocs.stores.sources.edition import Edition, Opener
from ragdocs.types import Scan, Source

# Documents of one source; a whole disk is no documentation.
MOST_DOCUMENTS = 20_000


@dataclass(frozen=True, slots=True)
class SourceState:
    """One source as it stands: its version, or why it cannot be read."""

    name: str
    line: str
    # What the paths of its documents begin with.
    folder: str
    version: str = ""
    location: str = ""
    documents: int = 0
    note: str = ""
    problem: str = ""


@dataclass(slots=True)
class _Shelved:
    """A configured source, and the version of it that was found last."""

    line: str
    name: str
    open: Opener | None
    usual_version: str = ""
    edition: Edition | None = None
    problem: str = ""

    @property
    def prefix(self) -> str:
        """The folder of all its documents; without a version, its name."""
        version = self.usual_version
        if self.edition is not None:
            version = self.edition.version
        if not version:
            return self.name
        return f"{self.name}@{version}"


class Shelf:
    """The documents of several sources.

    A source that cannot be read is reported and leaves the others alone.
    """

    def __init__(
        self,
        lines: Sequence[str],
        opener: Callable[[SourceLine], Opener],
        clean: Callable[[str], str],
    ) -> None:
        """Take the lines of the configuration; `clean` takes secrets out of a text."""
        self._clean = clean
        self._sources: list[_Shelved] = []
        for line in lines:
            self._sources.append(_shelved(line, opener))

    def scan(self, paths: Iterable[str] | None = None) -> Scan:
        """Return a stamp for each document of all sources, or of these paths and folders only."""
        wanted = None if paths is None else list(paths)
        if wanted is not None and "" in wanted:
            wanted = None
        stamps: dict[str, str] = {}
        unreadable: dict[str, str] = {}
        modified: dict[str, int] = {}
        for source in self._sources:
            inside = None if wanted is None else list(_inside(source, wanted))
            if inside == []:
                continue
            scan = self._scan(source, inside, set(stamps))
            for path, stamp in scan.stamps.items():
                stamps[f"{source.prefix}/{path}"] = stamp
            for path, moment in scan.modified.items():
                modified[f"{source.prefix}/{path}"] = moment
            for path, reason in scan.unreadable.items():
                unreadable[f"{source.prefix}/{path}".rstrip("/")] = reason
        return Scan(stamps, unreadable, modified)

    def read(self, path: str) -> Source:
        """Read one document, without secrets."""
        for source in self._sources:
            if source.edition is None and path.startswith(f"{source.name}@"):
                self._refresh(source)
            if source.edition is not None and path.startswith(f"{source.prefix}/"):
                rest = path.removeprefix(f"{source.prefix}/")
                text = source.edition.store.read(rest)
                return replace(
                    text, path=f"{source.prefix}/{text.path}", text=self._clean(text.text)
                )
        raise NotFoundError(f"there is no document {path[:200]!r} in the sources")

    def locate(self, path: str) -> str:
        """Return where a person finds a document; for all of them, the names of the sources."""
        for source in self._sources:
            if source.edition is not None and path.startswith(f"{source.prefix}/"):
                return source.edition.store.locate(path.removeprefix(f"{source.prefix}/"))
        if path:
            return path
        return ", ".join(source.name for source in self._sources)

    def watched(self) -> list[tuple[Path, bool]]:
        """List the folders to watch."""
        folders: list[tuple[Path, bool]] = []
        for edition in self._editions():
            folders += edition.store.watched()
        return list(dict.fromkeys(folders))

    def relative(self, path: str) -> str | None:
        """Return which document, source or ("") sources a changed file may concern, or None."""
        for source in self._sources:
            if source.edition is None:
                continue
            relative = source.edition.store.relative(path)
            if relative == "" or path == str(source.edition.marker):
                # It may have another version now.
                return ""
            if relative is not None:
                return f"{source.prefix}/{relative}"
        return None

    def states(self) -> list[SourceState]:
        """Tell the version of each source, how many documents it has, or what is wrong with it."""
        stamps = self.scan().stamps
        states = []
        for source in self._sources:
            state = SourceState(source.name, source.line, source.prefix, problem=source.problem)
            if source.edition is not None and not source.problem:
                below = [path for path in stamps if path.startswith(f"{source.prefix}/")]
                state = replace(
                    state,
                    version=source.edition.version,
                    location=source.edition.store.locate(""),
                    documents=len(below),
                    note=source.edition.note,
                )
            states.append(state)
        return states

    def _editions(self) -> Iterator[Edition]:
        for source in self._sources:
            if source.edition is not None:
                yield source.edition

    def _scan(self, source: _Shelved, paths: Sequence[str] | None, taken: set[str]) -> Scan:
        """Look at one source; what cannot be read is one unreadable folder, never nothing."""
        if paths is None or source.edition is None:
            self._refresh(source)
        if source.edition is None or source.problem:
            return Scan({}, {"": source.problem})
        if any(path.startswith(f"{source.prefix}/") for path in taken):
            source.problem = f"another source is called {source.prefix}: write name= before one"
            return Scan({}, {"": source.problem})
        try:
            scan = source.edition.store.scan(paths)
        except RagdocsError as error:
            source.problem = str(error)
            return Scan({}, {"": source.problem})
        return _bounded(scan)

    def _refresh(self, source: _Shelved) -> None:
        """Find the version of a source that is there now; an error leaves the last one."""
        if source.open is None:
            return
        try:
            edition = source.open()
        except NotFoundError as error:
            # A package that was uninstalled is gone, and not only unreadable.
            source.edition = None
            source.problem = str(error)
        except RagdocsError as error:
            source.problem = str(error)
        else:
            source.edition = edition
            source.problem = ""


def _shelved(line: str, opener: Callable[[SourceLine], Opener]) -> _Shelved:
    try:
        source = parse_source(line)
    except RagdocsError as error:
        return _Shelved(line, line, None, problem=str(error))
    return _Shelved(line, source.name, opener(source), source.usual_version)


def _inside(source: _Shelved, paths: Iterable[str]) -> Iterator[str]:
    """Yield which paths of a source are meant; "" for all of it."""
    for path in paths:
        if path.rstrip("/") == source.prefix:
            yield ""
        elif path.startswith(f"{source.prefix}/"):
            yield path.removeprefix(f"{source.prefix}/")


def _bounded(scan: Scan) -> Scan:
    """Leave out what one source has too many of, and say so."""
    if len(scan.stamps) <= MOST_DOCUMENTS:
        return scan
    stamps: Mapping[str, str] = dict(sorted(scan.stamps.items())[:MOST_DOCUMENTS])
    reason = f"only the first {MOST_DOCUMENTS:,} of {len(scan.stamps):,} documents are read"
    return replace(scan, stamps=stamps, unreadable={**scan.unreadable, "": reason})
