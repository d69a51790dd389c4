"""The files on disk that an llms.txt links to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ragdocs.errors import NotFoundError
from ragdocs.lanes import Lane
from ragdocs.stores.sources.edition import folder_store
from ragdocs.system import files
from ragdocs.types import Scan, Source

LARGEST_LIST = 2_000_000
MOST_LINKS = 20_000
# What sites leave off the address of a page in markdown.
_ENDINGS = ("", ".md", ".mdx", "/index.md", ".txt")
_LINK = re.compile(r"\]\(\s*<?([^)\s>]{1,2000})")


class LinkedFiles:
    """An llms.txt and the files in its folder that it links to, by a path or an address."""

    def __init__(self, listing: Path, lane: Lane) -> None:
        self._listing = listing
        self._store = folder_store(listing.parent, lane)
        self._stamp: tuple[int, int] = (0, 0)
        self._wanted: frozenset[str] = frozenset()
        self._missing = 0
        self._refresh()

    @property
    def note(self) -> str:
        """How many links lead to nothing on this disk."""
        if not self._missing:
            return ""
        return f"{self._missing} of its links lead to no file on this disk"

    def scan(self, paths: Iterable[str] | None = None) -> Scan:
        """Return a stamp for each file that is linked to."""
        self._refresh()
        scan = self._store.scan(paths)
        stamps = {path: scan.stamps[path] for path in scan.stamps if path in self._wanted}
        return Scan(stamps, scan.unreadable, scan.modified)

    def read(self, path: str) -> Source:
        """Read one of the files."""
        if path not in self._wanted:
            raise NotFoundError(f"{self._listing} does not link to {path[:200]!r}")
        return self._store.read(path)

    def locate(self, path: str) -> str:
        """Return the path of a file, or of the list."""
        return self._store.locate(path) if path else str(self._listing)

    def watched(self) -> list[tuple[Path, bool]]:
        """List the folders to watch."""
        return self._store.watched()

    def relative(self, path: str) -> str | None:
        """Return the path that a changed file concerns; the list concerns all of them."""
        if path == str(self._listing):
            return ""
        return self._store.relative(path)

    def _refresh(self) -> None:
        """Read the list again if it has changed."""
        data, status = files.read_file(self._listing, LARGEST_LIST)
        stamp = (status.st_mtime_ns, status.st_size)
        if stamp == self._stamp:
            return
        wanted = {self._listing.name}
        self._missing = 0
        for target in _LINK.findall(data.decode(errors="replace"))[:MOST_LINKS]:
            path = self._linked(target)
            if path:
                wanted.add(path)
            else:
                self._missing += 1
        self._wanted = frozenset(wanted)
        self._stamp = stamp

    def _linked(self, target: str) -> str:
        """Return the file in the folder of the list that a link means, or nothing."""
        name = unquote(urlsplit(target).path).strip("/")
        root = self._store.root
        for ending in _ENDINGS:
            path = os.path.normpath(f"{name}{ending}")
            if path.startswith(("..", "/")):
                return ""
            # Whether it is a link that leads out is for the store to say.
            if (root / path).is_file():
                return path.replace(os.sep, "/")
        return ""
