"""Globs as git reads them, one by one and as the lines of an ignore file."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

_WILD = re.compile(r"[*?[\\]")
_ESCAPED = re.compile(r"\\(.)")

Segment = Callable[[str], object] | None


@dataclass(frozen=True, slots=True)
class Pattern:
    """One glob, cut at its slashes; a segment of None stands for `**`."""

    segments: tuple[Segment, ...]

    def matches(self, path: Sequence[str]) -> bool:
        """Return whether the whole path matches; the time is linear, whatever the pattern."""
        segments = self.segments
        if len(segments) == 2 and segments[0] is None and segments[1] is not None:  # noqa: PLR2004
            # `**/name`, as most lines of an ignore file are: only the last name counts, and a scan
            # takes a third of the time.
            return bool(path and segments[1](path[-1]))
        segment_index = 0
        name_index = 0
        # The last `**`, and the first name after those that it stands for.
        stars_index = -1
        resume_index = 0
        while name_index < len(path):
            if segment_index < len(segments):
                segment = segments[segment_index]
                if segment is None:
                    stars_index = segment_index
                    resume_index = name_index
                    segment_index += 1
                    continue
                if segment(path[name_index]):
                    segment_index += 1
                    name_index += 1
                    continue
            if stars_index < 0:
                return False
            # Let the last `**` stand for one name more, and try the rest again.
            resume_index += 1
            name_index = resume_index
            segment_index = stars_index + 1
        return all(segment is None for segment in segments[segment_index:])

    def may_match_below(self, folder: Sequence[str]) -> bool:
        """Return whether some path below this folder could match."""
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
    return tuple(_segment(name) for name in names)


def _names(glob: str) -> list[str]:
    return [name for name in glob.split("/") if name not in {"", "."}]


def _segment(glob: str) -> Segment:
    if glob == "**":
        return None
    if not _WILD.search(glob):
        return glob.__eq__
    # git writes two things otherwise than fnmatch: a backslash before a character, and ^ for "none
    # of these".
    glob = _ESCAPED.sub(_unescaped, glob)
    # fnmatch gives atomic groups: `*a*a*a*a*b` stays linear, where a plain regular expression takes
    # half a minute.
    return re.compile(fnmatch.translate(glob.replace("[^", "[!"))).match


def _unescaped(escape: re.Match[str]) -> str:
    """Write a character after a backslash as fnmatch takes it literally."""
    character = escape[1]
    if character in "*?[":
        return f"[{character}]"
    return character


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
        """The number of comparisons that a path costs at most."""
        return 2 + len(self.start_lengths) + len(self.end_lengths) + len(self.globs)

    def limited(self, steps: int) -> IgnoreFile:
        """Return this file with as many of its last globs as so many steps allow.

        If even its tables cost more, return a file without lines.
        """
        if self.steps <= steps:
            return self
        room = steps - (self.steps - len(self.globs))
        if room < 0:
            return IgnoreFile()
        return replace(self, globs=self.globs[:room])

    def decides(self, path: Sequence[str], is_folder: bool) -> bool | None:
        """Return whether a path is ignored, or None if no line matches it."""
        if not path:
            return None
        last = self._look_up(path, is_folder)
        for line in self.globs:
            if last is not None and line.number < last.number:
                break
            if line.folders_only and not is_folder:
                continue
            if line.pattern.matches(path):
                last = line
                break
        if last is None:
            return None
        return not last.negated

    def _look_up(self, path: Sequence[str], is_folder: bool) -> Line | None:
        """Return the last line of the tables that matches."""
        name = path[-1]
        lines = list(self.paths.get("/".join(path), ()))
        lines += self.names.get(name, ())
        for length in self.start_lengths:
            lines += self.starts.get(name[:length], ())
        for length in self.end_lengths:
            if length <= len(name):
                lines += self.ends.get(name[len(name) - length :], ())
        last = None
        for line in lines:
            if line.folders_only and not is_folder:
                continue
            if last is None or line.number > last.number:
                last = line
        return last


@functools.lru_cache(maxsize=1024)
def ignore_file(data: bytes) -> IgnoreFile:
    """Read an ignore file."""
    texts = data.decode("utf-8-sig", errors="replace").splitlines()
    tables: dict[str, Table] = {"paths": {}, "names": {}, "starts": {}, "ends": {}}
    globs = []
    # Of lines with the same glob, only the last can decide, whichever of them begin with "!".
    seen: set[tuple[str, bool]] = set()
    for number, text in reversed(list(enumerate(texts))):
        line = _line(number, text)
        if line is None or (line.glob, line.folders_only) in seen:
            continue
        seen.add((line.glob, line.folders_only))
        table, key = _table(line.glob)
        if table:
            tables[table].setdefault(key, []).append(line)
        else:
            globs.append(line)
    return IgnoreFile(
        **tables,
        globs=tuple(globs),
        start_lengths=_lengths(tables["starts"]),
        end_lengths=_lengths(tables["ends"]),
    )


def _lengths(table: Table) -> tuple[int, ...]:
    return tuple(sorted({len(key) for key in table}))


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
    """Return the table that a glob belongs to and its key there, or "" if it must be tried."""
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
