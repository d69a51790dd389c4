"""The sections of a text: one name for each, and the way from a name to its section."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from ragdocs.errors import NotFoundError, ValidationError
from ragdocs.system.patterns import later
from ragdocs.text.formats.page import caption
from ragdocs.text.headings import STEP, TITLE_MARK
from ragdocs.types import Block

# Sections that one message names.
LISTED = 8
SHOWN = 120

_STEPS = later(r" [\u203a>] ")
# What a listing of headings puts around a name: "## Install (line 12)".
_MARKS = later(r"^#{1,6}(?:[ \t]+|(?=[^\W\d]))")
_LINE_NUMBER = later(r" \(line (\d{1,9})\)$")
_ATTRIBUTES = later(
    r"\{:?[^{}]{0,200}?(?:#|\bid=[\"']?)(?P<id>[^\s{}#\"']{1,100})[^{}]{0,200}\}[ \t#]*$"
)
_HTML_ANCHOR = later(r"<a\s[^<>]{0,200}?(?:id|name)=[\"']?(?P<id>[^\s\"'<>]{1,100})", re.IGNORECASE)

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the text below it, by offsets into the text and by lines of the file.

    `names` are the titles from the top down, numbered where two headings would have the same path.
    `inner` is where the first subsection starts, `stop` where the section ends; `anchors` are the
    ids that links may use.
    """

    block: Block
    titles: Names
    names: Names
    anchors: Names
    slug: str
    line: int
    last_line: int
    inner: int
    stop: int

    @property
    def path(self) -> str:
        """The one name that means this section and no other."""
        return STEP.join(self.names)


_Way = Callable[[Sequence[Section], str], list[Section]]


def heading_names(headings: Sequence[Block]) -> list[Names]:
    """Return the path of each heading, different for all that have a title.

    Headings that would have the same path are numbered in their order: "Install (1)", "Install
    (2)". One without a title has the path of its parent.
    """
    parents = _parents(headings)
    namer = _Namer(_titles(headings, parents))
    names: list[Names] = []
    for number, siblings in enumerate(_siblings(headings, parents)):
        above = _above(names, parents[number])
        title = headings[number].title
        path = above
        if title:
            path = namer.free(above, title, is_repeated=siblings > 1)
        names.append(path)
    return names


class _Namer:
    """Gives every heading a path of its own."""

    def __init__(self, titles: Sequence[Names]) -> None:
        # A number must not make the name that another heading was given by its author.
        self._written = set(map(STEP.join, titles))
        self._taken: set[str] = set()
        self._numbers: Counter[str] = Counter()

    def free(self, above: Names, title: str, *, is_repeated: bool) -> Names:
        """Return the path of a heading, numbered if others have its title or its path."""
        names = (*above, title)
        path = STEP.join(names)
        if is_repeated or path in self._taken:
            names = self._numbered(above, title, path)
            path = STEP.join(names)
        self._taken.add(path)
        return names

    def _numbered(self, above: Names, title: str, path: str) -> Names:
        while True:
            self._numbers[path] += 1
            names = (*above, f"{title} ({self._numbers[path]})")
            numbered = STEP.join(names)
            if numbered not in self._taken and numbered not in self._written:
                return names


def _above(paths: Sequence[Names], parent: int | None) -> Names:
    if parent is None:
        return ()
    return paths[parent]


def outline(
    text: str, blocks: Sequence[Block], *, first_line: int = 1, numbers: Sequence[int] = ()
) -> list[Section]:
    """List the sections of a text with these blocks.

    `first_line` is the number that its first line has in the file, `numbers` those of all lines
    where they do not follow each other.
    """
    headings = [block for block in blocks if block.kind == "heading"]
    titles = _titles(headings, _parents(headings))
    slugs = _slugs(headings)
    starts = [heading.start for heading in headings]
    starts.append(len(text))
    stops = _stops(headings, len(text))
    lines = _line_numbers(text, starts + stops, first_line)
    if numbers:
        lines = {offset: numbers[line - first_line] for offset, line in lines.items()}
    sections = []
    for number, names in enumerate(heading_names(headings)):
        heading = headings[number]
        stop = stops[number]
        section = Section(
            block=heading,
            titles=titles[number],
            names=names,
            anchors=(*heading.anchors, *_anchors(text[heading.start : heading.stop])),
            slug=slugs[number],
            line=lines[heading.start],
            last_line=_last_line(lines, heading.start, stop, len(text)),
            inner=starts[number + 1],
            stop=stop,
        )
        sections.append(section)
    return sections


def _last_line(lines: Mapping[int, int], start: int, stop: int, end: int) -> int:
    """Return the last line of a section; that of a heading behind it is none of its lines."""
    if stop == end:
        return lines[stop]
    # Several sections may stand on one line of a file.
    return max(lines[start], lines[stop] - 1)


def find(sections: Sequence[Section], wanted: str, *, anchor: bool = False) -> Section:
    """Return the one section that a name means, or say why there is none or which ones it may mean.

    A path as answers print it comes first; then the last parts of a path; then the same whatever
    the case and the markup; then some of the headings above; then the ids of links, which come
    earlier if it was written as one.
    """
    named = [section for section in sections if section.block.title]
    name = wanted.strip()
    ways = [_exactly, _ending, _folded, _below, _anchored]
    if anchor:
        ways = [_exactly, _anchored, _ending, _folded, _below]
    for reading in _readings(name):
        for way in ways:
            matches = way(named, reading) or _numbered(named, reading, way)
            if len(matches) == 1:
                return matches[0]
            if matches:
                raise _ambiguous(name, matches)
    raise _missing(name, named)


def _numbered(sections: Sequence[Section], name: str, way: _Way) -> list[Section]:
    """Return the sections of a name that ends with a line number, at that line if there is one."""
    number = _LINE_NUMBER.search(name)
    if not number:
        return []
    matches = way(sections, name[: number.start()])
    for section in matches:
        if section.line == int(number[1]):
            return [section]
    return matches


def short(text: str) -> str:
    """Return a text as messages quote it: on one line, not too long."""
    flat = " ".join(text.split())
    if len(flat) > SHOWN:
        return f'"{flat[:SHOWN]}…"'
    return f'"{flat}"'


# --- names ---


def _parents(headings: Sequence[Block]) -> list[int | None]:
    """Return for each heading the position of the one that it stands below."""
    parents: list[int | None] = []
    opened: list[int] = []
    for number, heading in enumerate(headings):
        while opened and headings[opened[-1]].level >= heading.level:
            opened.pop()
        parent = None
        if opened:
            parent = opened[-1]
        parents.append(parent)
        opened.append(number)
    return parents


def _titles(headings: Sequence[Block], parents: Sequence[int | None]) -> list[Names]:
    """Return the titles from the top down to each heading."""
    titles: list[Names] = []
    for heading, parent in zip(headings, parents, strict=True):
        names = _above(titles, parent)
        if heading.title:
            names = (*names, heading.title)
        titles.append(names)
    return titles


def _siblings(headings: Sequence[Block], parents: Sequence[int | None]) -> list[int]:
    """Count for each heading those with its title below the same heading."""
    keys = []
    for heading, parent in zip(headings, parents, strict=True):
        above = parent
        # What stands below a heading without a title has the path of what stands beside it.
        while above is not None and not headings[above].title:
            above = parents[above]
        keys.append((above, heading.title))
    return list(map(Counter(keys).__getitem__, keys))


def _stops(headings: Sequence[Block], end: int) -> list[int]:
    """Return for each heading where its section ends: at the next one that is not below it."""
    stops = [end] * len(headings)
    opened: list[int] = []
    for number, heading in enumerate(headings):
        while opened and headings[opened[-1]].level >= heading.level:
            stops[opened.pop()] = heading.start
        opened.append(number)
    return stops


def _line_numbers(text: str, offsets: Sequence[int], first_line: int) -> dict[int, int]:
    """Map offsets to line numbers, in one pass over the text."""
    lines = {}
    line = first_line
    counted = 0
    for offset in sorted(set(offsets)):
        line += text.count("\n", counted, offset)
        counted = offset
        lines[offset] = line
    return lines


def _anchors(heading: str) -> Names:
    """Return the ids that a heading gives itself: `{ #id }`, or an HTML anchor."""
    first_line = heading.partition("\n")[0].rstrip()
    anchors = []
    for match in _HTML_ANCHOR.finditer(first_line):
        anchors.append(match["id"].casefold())
    attributes = _ATTRIBUTES.search(first_line)
    if attributes:
        anchors.append(attributes["id"].casefold())
    return tuple(anchors)


def _slugs(headings: Sequence[Block]) -> list[str]:
    """Return the ids that renderers make of titles; the second of a kind has -1 behind it."""
    counts: Counter[str] = Counter()
    slugs = []
    for heading in headings:
        slug = _slug(heading.title)
        earlier = counts[slug]
        counts[slug] += 1
        if earlier:
            slug = f"{slug}-{earlier}"
        slugs.append(slug)
    return slugs


def _slug(title: str) -> str:
    # Renderers differ in what a removed sign leaves behind: "A & B" is a--b here and a-b there.
    signs = [sign for sign in title.casefold() if sign.isalnum() or sign in " -_"]
    spaced = "".join(signs).replace("-", " ")
    return "-".join(spaced.split())


# --- the ways of naming a section, the strictest first ---


def _exactly(sections: Sequence[Section], name: str) -> list[Section]:
    return [section for section in sections if section.path == name]


def _ending(sections: Sequence[Section], name: str) -> list[Section]:
    """Return the sections whose path ends with this one."""
    return _matching(sections, name, _stepped)


def _folded(sections: Sequence[Section], name: str) -> list[Section]:
    return _matching(sections, name, _fold)


def _matching(sections: Sequence[Section], name: str, form: Callable[[str], str]) -> list[Section]:
    """Return the sections whose path is this one in some form, or else those it ends with."""
    wanted = form(name)
    if not wanted:
        return []
    ending = f"{STEP}{wanted}"
    whole = []
    partial = []
    for section in sections:
        numbered = form(section.path)
        written = form(STEP.join(section.titles))
        if wanted in {numbered, written}:
            whole.append(section)
        elif numbered.endswith(ending) or written.endswith(ending):
            partial.append(section)
    return whole or partial


def _below(sections: Sequence[Section], name: str) -> list[Section]:
    """Return the sections with the last of these titles, below the others at any depth."""
    *above, last = _fold(name).split(STEP)
    if not above:
        return []
    matches = []
    for section in sections:
        if _fold(section.block.title) != last:
            continue
        # An iterator, so that each title is looked for behind the one before it.
        rest = map(_fold, section.titles[:-1])
        if all(title in rest for title in above):
            matches.append(section)
    return matches


def _anchored(sections: Sequence[Section], name: str) -> list[Section]:
    """Return the section with this id; words with spaces between them are a title and no id."""
    identifier = name.removeprefix("#").casefold()
    own = [section for section in sections if identifier in section.anchors]
    if own or " " in name:
        return own
    slug = _slug(name)
    if not slug:
        return []
    return [section for section in sections if section.slug == slug]


def _stepped(path: str) -> str:
    return _STEPS.sub(STEP, path)


def _fold(path: str) -> str:
    """Return a path as it is compared with others: no markup, no case, one Unicode spelling."""
    steps = map(caption, _STEPS.split(path))
    return unicodedata.normalize("NFC", STEP.join(steps)).casefold()


def _readings(name: str) -> list[str]:
    """Return what a name may mean: as written, without the document's title, without marks."""
    readings = [name]
    marks = re.finditer(re.escape(TITLE_MARK), name)
    for mark in islice(marks, LISTED):
        readings.append(name[mark.end() :])
    return readings + list(map(_bare, readings))


def _bare(name: str) -> str:
    """Return a name without the marks of a heading; "## Install" is Install, "#1" is not 1."""
    steps = []
    for step in _STEPS.split(name):
        steps.append(_MARKS.sub("", step, count=1).strip())
    return STEP.join(steps)


# --- what is said where no section, or more than one, is meant ---


def _ambiguous(wanted: str, matches: Sequence[Section]) -> ValidationError:
    listed = []
    for section in matches[:LISTED]:
        listed.append(f"{section.path} (line {section.line})")
    if len(matches) > LISTED:
        listed.append(f"and {len(matches) - LISTED} more")
    message = f"{len(matches)} sections are called {short(wanted)}: {'; '.join(listed)}"
    return ValidationError(message, f'Give the whole path, such as "{matches[0].path}"')


def _missing(wanted: str, sections: Sequence[Section]) -> NotFoundError:
    import difflib

    paths = [section.path for section in sections]
    by_title: dict[str, str] = {}
    # The first section of a title, but titles in the order from the end.
    for section in reversed(sections):
        by_title[section.block.title] = section.path
    names = [*paths, *by_title]
    close = difflib.get_close_matches(wanted[:SHOWN], names, n=3, cutoff=0.4)
    near: list[str] = []
    for name in close:
        path = by_title.get(name, name)
        if path not in near:
            near.append(path)
    listed = near or paths[:LISTED]
    hint = "There are no headings in this text"
    if listed:
        hint = f"Sections here: {'; '.join(listed)}"
    return NotFoundError(f"there is no section {short(wanted)}", hint)
