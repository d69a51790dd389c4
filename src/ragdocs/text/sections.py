"""The sections of a text: one name for each, and the way from a name to its section."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ragdocs.errors import NotFoundError, ValidationError
from ragdocs.text.formats import markdown as markup
from ragdocs.text.formats.markdown import Block

# Between the headings of a path.
STEP = " \u203a "
# Between the title of a document and a path in it: no path begins with a title that is not a
# heading.
TITLE_MARK = " · "
# Sections that one message names.
LISTED = 8
SHOWN = 120

_STEPS = re.compile(r" [\u203a>] ")
# What a listing of headings puts around a name: "## Install (line 12)".
_MARKS = re.compile(r"^#{1,6}(?:[ \t]+|(?=[^\W\d]))")
_LINE_NUMBER = re.compile(r" \(line (\d{1,9})\)$")
_ATTRIBUTES = re.compile(r"\{:?[^{}]{0,200}?#(?P<id>[^\s{}#]{1,100})[^{}]{0,200}\}[ \t#]*$")
_HTML_ANCHOR = re.compile(
    r"<a\s[^<>]{0,200}?(?:id|name)=[\"']?(?P<id>[^\s\"'<>]{1,100})", re.IGNORECASE
)

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


def heading_names(headings: Sequence[Block]) -> list[Names]:
    """Return the path of each heading, different for all of them.

    One without a title has that of its parent.

    Headings that would have the same path are numbered in their order: "Install (1)", "Install
    (2)".
    """
    parents = _parents(headings)
    titles = _titles(headings, parents)
    written = Counter(map(STEP.join, titles))
    names: list[Names] = []
    groups = _groups(headings, parents)
    taken: set[str] = set()
    numbers: Counter[str] = Counter()
    for heading, parent, group in zip(headings, parents, groups, strict=True):
        above = names[parent] if parent is not None else ()
        if not heading.title:
            names.append(above)
            continue
        path = (*above, heading.title)
        base = STEP.join(path)
        while group > 1 or STEP.join(path) in taken:
            numbers[base] += 1
            path = (*above, f"{heading.title} ({numbers[base]})")
            # A number must not make the name that another heading was given by its author.
            if STEP.join(path) not in taken and STEP.join(path) not in written:
                break
        taken.add(STEP.join(path))
        names.append(path)
    return names


def outline(text: str, path: str, *, top: bool = False, first_line: int = 1) -> list[Section]:
    """List the sections of a text.

    `first_line` is the number that its first line has in the file.
    """
    headings = [block for block in markup.blocks(text, path, top=top) if block.kind == "heading"]
    parents = _parents(headings)
    stops = _stops(headings, len(text))
    starts = [heading.start for heading in headings]
    lines = _line_numbers(text, [*starts, *stops], first_line)
    titles = _titles(headings, parents)
    slugs = _slugs(headings)
    sections = []
    for number, names in enumerate(heading_names(headings)):
        heading, stop = headings[number], stops[number]
        at_end = stop == len(text)
        sections.append(
            Section(
                block=heading,
                titles=titles[number],
                names=names,
                anchors=_anchors(text[heading.start : heading.stop]),
                slug=slugs[number],
                line=lines[heading.start],
                last_line=lines[stop] if at_end else lines[stop] - 1,
                inner=starts[number + 1] if number + 1 < len(starts) else len(text),
                stop=stop,
            )
        )
    return sections


def find(sections: Sequence[Section], wanted: str, *, anchor: bool = False) -> Section:
    """Return the one section that a name means, or say why there is none or which ones it may mean.

    A path as answers print it comes first; then the last parts of a path; then the same whatever
    the case and the markup; then some of the headings above; then the ids of links, which come
    earlier if it was written as one.
    """
    named = [section for section in sections if section.block.title]
    asked = wanted.strip()
    readings = [asked, *_untitled(asked)]
    ways = [_exactly, _ending, _folded, _below, _anchored]
    if anchor:
        ways = [_exactly, _anchored, _ending, _folded, _below]
    for reading in [*readings, *_bare(readings)]:
        numbered = _LINE_NUMBER.search(reading)
        plain = reading[: numbered.start()] if numbered else reading
        for way in ways:
            matches = way(named, reading)
            if not matches and numbered:
                matches = way(named, plain)
                at_line = [section for section in matches if section.line == int(numbered[1])]
                matches = at_line or matches
            if len(matches) == 1:
                return matches[0]
            if matches:
                raise _ambiguous(asked, matches)
    raise _missing(asked, named)


def short(text: str) -> str:
    """Return a text as messages quote it: on one line, not too long."""
    flat = " ".join(text.split())
    return f'"{flat[:SHOWN]}…"' if len(flat) > SHOWN else f'"{flat}"'


# --- names ---


def _parents(headings: Sequence[Block]) -> list[int | None]:
    """Return for each heading the position of the one that it stands below."""
    parents: list[int | None] = []
    opened: list[int] = []
    for number, heading in enumerate(headings):
        while opened and headings[opened[-1]].level >= heading.level:
            opened.pop()
        parents.append(opened[-1] if opened else None)
        opened.append(number)
    return parents


def _titles(headings: Sequence[Block], parents: Sequence[int | None]) -> list[Names]:
    titles: list[Names] = []
    for heading, parent in zip(headings, parents, strict=True):
        above = titles[parent] if parent is not None else ()
        titles.append((*above, heading.title) if heading.title else above)
    return titles


def _groups(headings: Sequence[Block], parents: Sequence[int | None]) -> list[int]:
    """Count for each heading those with its title below the same heading."""
    keys = []
    for heading, parent in zip(headings, parents, strict=True):
        above = parent
        # What stands below a heading without a title has the path of what stands beside it.
        while above is not None and not headings[above].title:
            above = parents[above]
        keys.append((above, heading.title))
    counts = Counter(keys)
    return [counts[key] for key in keys]


def _stops(headings: Sequence[Block], end: int) -> list[int]:
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
    line, counted = first_line, 0
    for offset in sorted(set(offsets)):
        line += text.count("\n", counted, offset)
        counted = offset
        lines[offset] = line
    return lines


def _anchors(heading: str) -> Names:
    """Return the ids that a heading gives itself: `{ #id }`, or an HTML anchor."""
    first = heading.partition("\n")[0].rstrip()
    found = [match["id"] for match in _HTML_ANCHOR.finditer(first)]
    attributes = _ATTRIBUTES.search(first)
    if attributes:
        found.append(attributes["id"])
    return tuple(identifier.casefold() for identifier in found)


def _slugs(headings: Sequence[Block]) -> list[str]:
    """Return the ids that renderers make of titles; the second of a kind has -1 behind it."""
    counts: Counter[str] = Counter()
    slugs = []
    for heading in headings:
        slug = _slug(heading.title)
        slugs.append(f"{slug}-{counts[slug]}" if counts[slug] else slug)
        counts[slug] += 1
    return slugs


def _slug(title: str) -> str:
    # Renderers differ in what a removed sign leaves behind: "A & B" is a--b here and a-b there.
    kept = [sign for sign in title.casefold() if sign.isalnum() or sign in " -_"]
    spaced = "".join(kept).replace("-", " ")
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
    wanted = form(name)
    if not wanted:
        return []
    matches = []
    for section in sections:
        paths = {form(section.path), form(STEP.join(section.titles))}
        if any(path == wanted or path.endswith(f"{STEP}{wanted}") for path in paths):
            matches.append(section)
    whole = [
        section
        for section in matches
        if wanted in (form(section.path), form(STEP.join(section.titles)))
    ]
    return whole or matches


def _below(sections: Sequence[Section], name: str) -> list[Section]:
    """Return the sections with the last of these titles that stand below the others.

    Whatever is in between.
    """
    *above, last = _fold(name).split(STEP)
    if not above:
        return []
    matches = []
    for section in sections:
        rest = iter(_fold(title) for title in section.titles[:-1])
        if _fold(section.block.title) == last and all(title in rest for title in above):
            matches.append(section)
    return matches


def _anchored(sections: Sequence[Section], name: str) -> list[Section]:
    """Return the section with this id; words with spaces between them are a title and no id."""
    identifier = name.removeprefix("#").casefold()
    own = [section for section in sections if identifier in section.anchors]
    slug = "" if " " in name else _slug(name)
    if own or not slug:
        return own
    return [section for section in sections if section.slug == slug]


def _stepped(path: str) -> str:
    return _STEPS.sub(STEP, path)


def _fold(path: str) -> str:
    """Return a path as it is compared with others: no markup, no case, one Unicode spelling."""
    steps = [markup.caption(step) for step in _STEPS.split(path)]
    return unicodedata.normalize("NFC", STEP.join(steps)).casefold()


def _bare(names: Sequence[str]) -> Iterator[str]:
    """Yield names without the marks of a heading.

    "## Install" and "#Install" are Install, "#1" is not 1.
    """
    for name in names:
        yield STEP.join(_MARKS.sub("", step, count=1).strip() for step in _STEPS.split(name))


def _untitled(name: str) -> list[str]:
    """Return a path without the document's title, which text answers put in front of it."""
    return [name[mark.end() :] for mark in re.finditer(re.escape(TITLE_MARK), name)][:LISTED]


# --- what is said where no section, or more than one, is meant ---


def _ambiguous(wanted: str, matches: Sequence[Section]) -> ValidationError:
    places = "; ".join(f"{section.path} (line {section.line})" for section in matches[:LISTED])
    more = f"; and {len(matches) - LISTED} more" if len(matches) > LISTED else ""
    message = f"{len(matches)} sections are called {short(wanted)}: {places}{more}"
    return ValidationError(message, f'Give the whole path, such as "{matches[0].path}"')


def _missing(wanted: str, sections: Sequence[Section]) -> NotFoundError:
    paths = [section.path for section in sections]
    titles = {section.block.title: section.path for section in reversed(sections)}
    near = difflib.get_close_matches(wanted[:SHOWN], [*paths, *titles], n=3, cutoff=0.4)
    listed = list(dict.fromkeys(titles.get(name, name) for name in near)) or paths[:LISTED]
    hint = f"Sections here: {'; '.join(listed)}" if listed else "There are no headings in this text"
    return NotFoundError(f"there is no section {short(wanted)}", hint)
