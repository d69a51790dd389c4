"""How names are spelled on disk: some file systems distinguish names that others do not."""

from __future__ import annotations

import functools
import os
import unicodedata
from pathlib import Path
from typing import NamedTuple


class _Listing(NamedTuple):
    """The names of a folder, folded and joined by slashes, and when the folder last changed."""

    changed: int
    folded: str

    def has(self, name: str) -> bool:
        """Return whether a name is listed, in any case or Unicode form."""
        return f"/{folded(name)}/" in self.folded


class Spelling:
    """Finds the spelling of paths below a root.

    The listing of a folder is remembered until it changes, because it may have thousands of names.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._listings: dict[str, _Listing] = {}

    def find(self, path: str) -> str:
        """Return a path as existing files spell it, where only case or Unicode form differ."""
        folder = self._root
        spelled = []
        for name in path.split("/"):
            existing = self._find_in(folder, name)
            spelled.append(existing)
            folder = f"{folder}/{existing}"
        return "/".join(spelled)

    def wrote(self, path: str) -> None:
        """Add a file that was written since its path was found, to save listing its folder again.

        Another file that somebody put there in between is missed until the folder changes again.
        """
        folder, _, name = f"{self._root}/{path}".rpartition("/")
        listing = self._listings.get(folder)
        if listing is None:
            return
        names = listing.folded
        if not listing.has(name):
            names = f"{names}{folded(name)}/"
        self._listings[folder] = _Listing(_changed(folder), names)

    def _find_in(self, folder: str, name: str) -> str:
        """Return a name as an existing file in a folder spells it, or else as it is."""
        self._refresh(folder)
        if os.path.lexists(f"{folder}/{name}"):
            is_as_given = _is_exact(folder, name)
        else:
            is_as_given = not self._listing(folder).has(name)
        if is_as_given:
            return name
        return _listed(folder, name)

    def _listing(self, folder: str) -> _Listing:
        listing = self._listings.get(folder)
        if listing is None:
            changed = _changed(folder)
            listing = _Listing(changed, f"/{_folded_names(_names(folder))}/")
            self._listings[folder] = listing
        return listing

    def _refresh(self, folder: str) -> None:
        listing = self._listings.get(folder)
        if listing is not None and listing.changed != _changed(folder):
            self._listings.pop(folder, None)


@functools.lru_cache(maxsize=65_536)
def folded(name: str) -> str:
    """Spell a name as file systems that ignore case or Unicode form see it."""
    return composed(composed(name).casefold())


def composed(name: str) -> str:
    """Spell a name in the one Unicode form that is compared and shown."""
    return unicodedata.normalize("NFC", name)


def _is_exact(folder: str, name: str) -> bool:
    """Return whether an existing name is spelled exactly so, without listing the folder.

    Where case or Unicode form is ignored, the name exists in another one too.
    """
    others = {name.swapcase(), composed(name), unicodedata.normalize("NFD", name)} - {name}
    return not any(os.path.lexists(f"{folder}/{other}") for other in others)


def _listed(folder: str, name: str) -> str:
    """Return the name in a folder that is like this one, or this one."""
    names = _names(folder)
    if name in names:
        return name
    alike = [other for other in names if folded(other) == folded(name)]
    return min(alike, default=name)


def _folded_names(names: list[str]) -> str:
    joined = "/".join(names)
    if joined.isascii():
        # All at once, because there may be thousands.
        return joined.lower()
    return "/".join(map(folded, names))


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names are asked for, thousands at times
    except (OSError, ValueError):
        return []


def _changed(folder: str) -> int:
    try:
        return Path(folder).stat().st_mtime_ns
    except (OSError, ValueError):
        return -1
