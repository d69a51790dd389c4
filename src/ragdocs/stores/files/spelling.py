"""How names are written on disk.

Where some file systems tell apart what others take for the same.
"""

from __future__ import annotations

import functools
import os
import unicodedata
from pathlib import Path
from typing import NamedTuple


class _Listing(NamedTuple):
    """The names of a folder as a file system that ignores case sees them.

    And when the folder last changed.
    """

    changed: int
    folded: str


class Spelling:
    """Finds the spelling of paths below a root.

    Listing a folder of thousands is avoided where it tells nothing new.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._listings: dict[str, _Listing] = {}

    def find(self, path: str) -> str:
        """Return a path as existing files spell it, where only case or Unicode form differ."""
        folder, spelled = self._root, []
        for part in path.split("/"):
            self._refresh(folder)
            is_plain = _is_exact if os.path.lexists(f"{folder}/{part}") else self._is_new
            spelled.append(part if is_plain(folder, part) else _listed(folder, part))
            folder = f"{folder}/{spelled[-1]}"
        return "/".join(spelled)

    def wrote(self, path: str) -> None:
        """Take note of a file that was written since its path was found.

        So that its folder need not be listed again.

        What somebody else put there in between goes unseen until the folder changes once more.
        """
        place, _, name = f"{self._root}/{path}".rpartition("/")
        if (listing := self._listings.get(place)) is not None:
            seen = folded(name)
            known = f"/{seen}/" in listing.folded
            self._listings[place] = _Listing(
                _changed(place), listing.folded if known else f"{listing.folded}{seen}/"
            )

    def _is_new(self, folder: str, name: str) -> bool:
        """Tell whether nothing in a folder may be taken for this name."""
        listing = self._listings.get(folder)
        if listing is None:
            changed, names = _changed(folder), _names(folder)
            joined = "/".join(names)
            # All at once: a folder may have thousands.
            seen = joined.lower() if joined.isascii() else "/".join(map(folded, names))
            listing = self._listings[folder] = _Listing(changed, f"/{seen}/")
        return f"/{folded(name)}/" not in listing.folded

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
    """Tell whether a name that is there is there exactly so.

    Where case is ignored, its opposite is there too.
    """
    other = name.swapcase()
    return name.isascii() and (other == name or not os.path.lexists(f"{folder}/{other}"))


def _listed(folder: str, name: str) -> str:
    names, wanted = _names(folder), folded(name)
    return (
        name
        if name in names
        else min((one for one in names if folded(one) == wanted), default=name)
    )


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
