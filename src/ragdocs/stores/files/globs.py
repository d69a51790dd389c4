"""Which paths belong to a lane, by their names alone."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from ragdocs.lanes import Lane
from ragdocs.stores.files.patterns import Pattern, glob_segments
from ragdocs.system.names import INTERNAL, SKIPPED

_WILD = re.compile(r"[*?[\\]")


class Rules:
    """The globs of a lane, and the names that no lane includes."""

    def __init__(self, lane: Lane) -> None:
        self.gitignore = lane.gitignore
        self._globs = lane.include
        self._internal: frozenset[str] = frozenset()
        if lane.writable:
            self._internal = INTERNAL
        self._include = _patterns(lane.include)
        # Most exclusions name a folder, anywhere: they are looked up instead of matched.
        self._excluded_folders, others = _folders_anywhere(lane.exclude)
        self._exclude = _patterns(others)

    def folders(self) -> list[tuple[str, bool]]:
        """List the folders in which globs begin, each with whether its glob reaches deeper."""
        folders = []
        for glob in self._globs:
            names = glob.split("/")
            fixed = list(itertools.takewhile(_is_fixed, names[:-1]))
            is_deep = len(names) > len(fixed) + 1
            folders.append(("/".join(fixed), is_deep))
        return list(dict.fromkeys(folders))

    def hides(self, name: str, is_top: bool) -> bool:
        """Return whether a name is never looked at; `is_top` if it is in the root itself."""
        if name.startswith(".") or name in SKIPPED:
            return True
        return is_top and name.casefold() in self._internal

    def hides_any(self, path: Sequence[str]) -> bool:
        """Return whether a name on the way to a file is never looked at."""
        is_top = True
        for name in path:
            if self.hides(name, is_top):
                return True
            is_top = False
        return False

    def enters(self, folder: Sequence[str]) -> bool:
        """Return whether files below this folder can be wanted."""
        for glob in self._include:
            if glob.may_match_below(folder):
                return not self._excludes(folder)
        return False

    def wants(self, path: Sequence[str]) -> bool:
        """Return whether a file is wanted, provided that its folders are entered."""
        for glob in self._include:
            if glob.matches(path):
                return not self._excludes(path)
        return False

    def lists(self, path: str) -> bool:
        """Return whether a walk lists a file at this path, as far as names decide."""
        parts = path.split("/")
        if self.hides_any(parts):
            return False
        for depth in range(1, len(parts)):
            if not self.enters(parts[:depth]):
                return False
        return self.wants(parts)

    def _excludes(self, path: Sequence[str]) -> bool:
        if not self._excluded_folders.isdisjoint(path[:-1]):
            return True
        return any(glob.matches(path) for glob in self._exclude)


def _folders_anywhere(globs: Sequence[str]) -> tuple[frozenset[str], list[str]]:
    """Part the names of globs such as `**/name/**` from all other globs."""
    names = set()
    others = []
    for glob in globs:
        match glob.split("/"):
            case ["**", name, "**"] if name not in {"", ".", "**"} and _is_fixed(name):
                names.add(name)
            case _:
                others.append(glob)
    return frozenset(names), others


def _patterns(globs: Sequence[str]) -> list[Pattern]:
    return [Pattern(glob_segments(glob)) for glob in globs]


def _is_fixed(name: str) -> bool:
    return not _WILD.search(name)
