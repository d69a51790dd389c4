"""Globs as git reads them, one by one and as the lines of an ignore file."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

_WILD = re.compile(r"[*?[\\]")

Segment = Callable[[str], object] | None


@dataclass(frozen=True, slots=True)
class Pattern:
    """One glob, cut at its slashes; a segment of None stands for `**`."""

    segments: tuple[Segment, ...]

    def matches(self, path: Sequence[str]) -> bool:
        """Tell whether the whole path matches; linear, whatever the pattern."""
        if len(self.segments) == 2 and self.segments[0] is None and self.segments[1] is not None:  # noqa: PLR2004
            # `**/name`, as most lines of an ignore file are: only the last name counts, and a scan
            # takes a third.
            return bool(path and self.segments[1](path[-1]))
        place = at = 0
        retry: tuple[int, int] | None = None
        while at < len(path):
            if place < len(self.segments):
                segment = self.segments[place]
                if segment is None:
                    retry = (place, at)
                    place += 1
                    continue
                if segment(path[at]):
                    place, at = place + 1, at + 1
                    continue
            if retry is None:
                return False
            retry = (retry[0], retry[1] + 1)
            place, at = retry[0] + 1, retry[1]
        return all(segment is None for segment in self.segments[place:])

    def may_match_below(self, folder: Sequence[str]) -> bool:
        """Tell whether some path below this folder could match."""
        for name, segment in zip(folder, self.segments, strict=False):
            if segment is None:
                return True
            if not segment(name):
                return False
        return len(folder) < len(self.segments)


def glob_segments(glob: str) -> tuple[Segment, ...]:
    """Cut a glob at its slashes."""
    names = _names(glob)
    if names[-1:] == ["**"]:
        names.append("*")  # everything below a folder, but not the folder
    return tuple(None if name == "**" else _segment(name) for name in names)


def _names(glob: str) -> list[str]:
    return [name for name in glob.split("/") if name not in {"", "."}]


def _segment(glob: str) -> Segment:
    if not _WILD.search(glob):
        return glob.__eq__
    # What git writes otherwise than fnmatch: a backslash before a character, and ^ for "none of
    # these".
    glob = re.sub(r"\\(.)", lambda found: f"[{found[1]}]" if found[1] in "*?[" else found[1], glob)
    # fnmatch gives atomic groups: `*a*a*a*a*b` stays linear, where a plain regular expression takes
    # half a minute.
    return re.compile(fnmatch.translate(glob.replace("[^", "[!"))).match


@dataclass(frozen=True)
class Line:
    """A line of an ignore file.

    Of all lines that match, the one with the highest `number` decides.
    """

    number: int
    glob: str
    negated: bool
    folders_only: bool

    @functools.cached_property
    def pattern(self) -> Pattern:
        """The glob, compiled when it is first tried: most lines never are."""
        return Pattern(glob_segments(self.glob))


# Lines by a text that decides alone whether they match.
Table = dict[str, list[Line]]


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """The lines of an ignore file, most of which are looked up and not tried.

    Lines that name a path, a file, or the beginning or end of a file's name are found in tables,
    whatever their number. The other lines, `globs`, are tried one after the other, the last line
    first.
    """

    paths: Table = field(default_factory=dict)
    names: Table = field(default_factory=dict)
    starts: Table = field(default_factory=dict)
    ends: Table = field(default_factory=dict)
    globs: tuple[Line, ...] = ()
    start_lengths: tuple[int, ...] = ()
    end_lengths: tuple[int, ...] = ()

    @property
    def steps(self) -> int:
        """How many comparisons a path costs at most."""
        return 2 + len(self.start_lengths) + len(self.end_lengths) + len(self.globs)

    def limited(self, steps: int) -> IgnoreFile:
        """Return this file, or as many of its last globs as so many steps allow.

        Or none of its lines.
        """
        if self.steps <= steps:
            return self
        room = steps - (self.steps - len(self.globs))
        return replace(self, globs=self.globs[:room]) if room >= 0 else IgnoreFile()

    def decides(self, path: Sequence[str], folder: bool) -> bool | None:
        """Tell whether a path is ignored, or nothing if no line speaks of it."""
        if not path:
            return None
        last = self._looked_up(path, folder)
        for line in self.globs:
            if last is not None and line.number < last.number:
                break
            if (folder or not line.folders_only) and line.pattern.matches(path):
                last = line
                break
        return None if last is None else not last.negated

    def _looked_up(self, path: Sequence[str], folder: bool) -> Line | None:
        """Return the last line of the tables that matches."""
        name = path[-1]
        found = [*self.paths.get("/".join(path), ()), *self.names.get(name, ())]
        for length in self.start_lengths:
            found += self.starts.get(name[:length], ())
        for length in self.end_lengths:
            if length <= len(name):
                found += self.ends.get(name[len(name) - length :], ())
        lines = [line for line in found if folder or not line.folders_only]
        return max(lines, key=lambda line: line.number, default=None)


@functools.lru_cache(maxsize=1024)
def ignore_file(data: bytes) -> IgnoreFile:
    """Read an ignore file."""
    written = data.decode("utf-8-sig", errors="replace").splitlines()
    tables: dict[str, Table] = {"paths": {}, "names": {}, "starts": {}, "ends": {}}
    globs = []
    # Of lines with the same glob, only the last can decide, whichever of them begin with "!".
    seen: set[tuple[str, bool]] = set()
    for number, text in reversed(list(enumerate(written))):
        line = _line(number, text)
        if line is None or (line.glob, line.folders_only) in seen:
            continue
        seen.add((line.glob, line.folders_only))
        table, key = _table(line.glob)
        if table:
            tables[table].setdefault(key, []).append(line)
        else:
            globs.append(line)
    starts, ends = (
        tuple(sorted({len(key) for key in tables[name]})) for name in ("starts", "ends")
    )
    return IgnoreFile(**tables, globs=tuple(globs), start_lengths=starts, end_lengths=ends)


def _line(number: int, text: str) -> Line | None:
    while text.endswith(" ") and not text.endswith("\\ "):
        text = text[:-1]
    if not text or text.startswith("#"):
        return None
    glob = text.removeprefix("!").removesuffix("/")
    if "/" not in glob:
        glob = f"**/{glob}"
    if not _names(glob):
        return None
    return Line(number, glob, text.startswith("!"), text.endswith("/"))


def _table(glob: str) -> tuple[str, str]:
    """Return the table that a glob belongs to and its key there.

    Or no table if it has to be tried.
    """
    names = _names(glob)
    if not _WILD.search(glob):
        return "paths", "/".join(names)
    if len(names) != 2 or names[0] != "**":  # noqa: PLR2004 - any folder and a name
        return "", ""
    name = names[1]
    if not _WILD.search(name):
        return "names", name
    if name.endswith("*") and not _WILD.search(name[:-1]):
        return "starts", name[:-1]
    if name.startswith("*") and not _WILD.search(name[1:]):
        return "ends", name[1:]
    return "", ""
