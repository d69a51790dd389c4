"""A text as a reader sees it: its body, the blocks in it, and where both stand in the file."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Any, NamedTuple

from ragdocs.system.patterns import later
from ragdocs.types import Block, BlockKind

# A heading is repeated in every passage below it, so an absurdly long one is shortened there.
TITLE_LIMIT = 200
# Nobody writes so many by hand. What stands below is plain text: a file of ten million number signs
# would otherwise hold up every start for minutes.
BLOCK_LIMIT = 20_000
LINE_LIMIT = 200_000
# References, and names for places, that are kept of one text.
REFERENCE_LIMIT = 5_000
# Marks within lines that are taken out of one text.
REWRITE_LIMIT = 500_000

_INK = later(r"\S")
_ITEM = later(r"[ \t]*+(?:[-*+•.]|\d{1,9}[.)]|[a-zA-Z][.)]|\*{2,5}|\.{2,5}|#\.)[ \t]")
_DECORATION = (
    (later(r"!\[[^\[\]]{0,200}+\]\([^()\s]{0,500}+\)|<[a-zA-Z/!][^<>]{0,300}+>"), ""),
    # Attributes as renderers read them: {#id} anywhere, { #id .class } and {: .class } at the end,
    # and there also { id="name" } and { data-name } behind a space.
    (
        later(
            r"\{#[^{}]{0,100}+\}|\{:?[ \t]*+[#.:][^{}]{0,200}+\}(?=[ \t#]*+$)"
            r"|(?<=[ \t])\{:?[ \t]*+(?:data-[\w-]{1,80}+|[\w-]{1,80}+=[\"'])"
            r"[^{}]{0,200}+\}(?=[ \t#]*+$)"
        ),
        "",
    ),
    (later(r"\[\[(?:[^\[\]|]{1,300}+\|)?([^\[\]|]{1,300}+)\]\]"), r"\1"),
    (later(r"\[([^\[\]]{0,300}+)\]\([^()\s]{0,500}+\)"), r"\1"),
    (later(r"(\*{1,3})(?=\S)([^*]{1,300}+)\1|`"), r"\2"),
)
# Code and escaped characters, in which nothing is decoration: `Box<T>`, \<script>.
_LITERAL = later(r"(?<!`)(`{1,2})(?!`)(.{1,300}?)(?<!`)\1(?!`)|\\([!-/:-@\[-`{-~])")
# What stands for these characters while decoration is taken away.
_SHIELDED = "[]<>{}*`!|#&"
_SHIELD = {ord(mark): 0xE000 + number for number, mark in enumerate(_SHIELDED)}
_UNSHIELD = {stand_in: mark for mark, stand_in in _SHIELD.items()}

# Without any of them there is nothing to take away; most headings have none.
_DECORATING = frozenset("[<{*`\\&")

_MARKED = frozenset("`{<[")

INCLUDES = "includes"


class Reference(NamedTuple):
    """A link of a text, by the offsets of its words in the body.

    It has a destination as it is written in the file, or the name of a place in some document.
    """

    start: int
    stop: int
    destination: str = ""
    name: str = ""
    # Nothing where the text only mentions what it leads to.
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A text as a reader sees it.

    `first_line` is the line of the file at which the body begins. Where the lines of the body are
    not those of the file, `numbers` has the file's line for each of them.
    """

    body: str
    blocks: Sequence[Block]
    title: str = ""
    # Metadata that is written above the text.
    card: Mapping[str, Any] = field(default_factory=dict)
    first_line: int = 1
    numbers: Sequence[int] = ()
    # None where the links are written in the body as markdown writes them.
    references: Sequence[Reference] | None = None
    problems: Sequence[str] = ()
    # The name of the format, and whether a text in it has headings.
    format: str = ""
    has_headings: bool = True

    @property
    def anchors(self) -> tuple[str, ...]:
        """The names that other documents may use for places in this one."""
        names: dict[str, None] = {}
        for block in self.blocks:
            names.update(dict.fromkeys(block.anchors))
        return tuple(names)[:REFERENCE_LIMIT]


def caption(text: str) -> str:
    """Return a heading or title as a reader sees it.

    Links, tags, emphasis and line breaks are taken out, and a long one is cut.
    """
    text = text[: 4 * TITLE_LIMIT]
    plain = text
    if not _DECORATING.isdisjoint(text):
        plain = _LITERAL.sub(_shielded, text)
        for pattern, replacement in _DECORATION:
            plain = pattern.sub(replacement, plain)
        plain = html.unescape(plain).translate(_UNSHIELD)
    # A title that is nothing but a comment is made of it by the generator of the site.
    plain = " ".join(plain.split()) or " ".join(text.replace("<!--", "").replace("-->", "").split())
    if len(plain) <= TITLE_LIMIT:
        return plain
    return plain[: TITLE_LIMIT - 1].rstrip() + "…"


def _shielded(literal: re.Match[str]) -> str:
    """Return what is written literally, so that no mark in it is taken for decoration."""
    written = literal[2] or literal[3]
    return written.translate(_SHIELD)


def names(listed: str) -> frozenset[str]:
    """Return the names in a text, which are separated by white space."""
    return frozenset(listed.split())


def indent_of(line: str) -> int:
    """Return the column of the first character that is not white space."""
    if line[:1] not in {" ", "\t"}:
        return 0
    width = len(line) - len(line.lstrip(" \t"))
    return len(line[:width].expandtabs(4))


def is_blank(line: str) -> bool:
    """Tell whether there is nothing to read on a line."""
    return not line or line.isspace()


class Part(NamedTuple):
    """A block by its first and last line; a heading has its title on the line `titled`."""

    kind: BlockKind
    first: int
    last: int
    level: int = 0
    titled: int = -1
    anchors: tuple[str, ...] = ()


class Sheet:
    """The lines of a text while a reader works on them.

    A reader takes marks out of lines, never lines out of the text: so the lines of the body are
    those of the file. It says which lines are headings, code and tables. All others are paragraphs.
    """

    def __init__(self, text: str) -> None:
        # What stands below the limit is one last line.
        self.lines = text.split("\n", LINE_LIMIT)
        self.parts: list[Part] = []
        # Links on whole lines, by line; the words of the line are those of the link.
        self.linked: list[tuple[int, Reference]] = []
        self.is_code = bytearray(len(self.lines))

    @property
    def count(self) -> int:
        """How many lines are read for their marks."""
        return min(len(self.lines), LINE_LIMIT)

    def blank(self, first: int, last: int | None = None) -> None:
        """Take everything out of a line, or of a run of lines."""
        for number in range(first, (first if last is None else last) + 1):
            self.lines[number] = ""

    def heading(self, number: int, level: int, anchors: Sequence[str] = ()) -> None:
        """Make a heading of a line."""
        self.parts.append(Part("heading", number, number, level, number, tuple(anchors)))

    def code(self, first: int, last: int) -> None:
        """Make code of a run of lines; blank lines around it do not belong to it."""
        while first <= last and is_blank(self.lines[first]):
            first += 1
        while last > first and is_blank(self.lines[last]):
            last -= 1
        if first > last or is_blank(self.lines[first]):
            return
        self.parts.append(Part("code", first, last))
        self.is_code[first : last + 1] = b"\1" * (last + 1 - first)

    def table(self, first: int, last: int) -> None:
        """Make a table of a run of lines."""
        if first <= last:
            self.parts.append(Part("table", first, last))

    def link(self, number: int, destination: str = "", name: str = "", kind: str = "") -> None:
        """Make a link of a line."""
        if len(self.linked) < REFERENCE_LIMIT:
            self.linked.append((number, Reference(0, 0, destination, name, kind)))

    def indented(self, number: int, column: int) -> int:
        """Return the last line of the run that is indented beyond a column, from a line on.

        Blank lines do not end it; without such a run it is the line before.
        """
        last = number - 1
        for following in range(number, self.count):
            line = self.lines[following]
            if is_blank(line):
                continue
            if indent_of(line) <= column:
                break
            last = following
        return last

    def titles(self) -> dict[str, str]:
        """Return the title of each section that has an id, by that id.

        One with marks in it is left out: they are taken out later.
        """
        titles = {}
        for part in self.parts:
            title = self.lines[part.titled]
            if part.anchors and _MARKED.isdisjoint(title):
                titles.update(dict.fromkeys(part.anchors, title))
        return titles

    def page(self, rewrite: Rewrite | None = None, title: str = "") -> Page:
        """Return the page of these lines, after links in the text were taken apart."""
        body = "\n".join(self.lines)
        references: list[Reference] = []
        if rewrite is not None:
            body, references = rewritten(body, rewrite, self._code_spans())
        rows = body.split("\n", LINE_LIMIT)
        starts = list(accumulate((len(row) + 1 for row in rows), initial=0))
        for number, reference in self.linked:
            start = starts[number]
            stop = start + len(rows[number])
            references.append(reference._replace(start=start, stop=stop))
        references.sort()
        blocks = list(_blocks(rows, starts, self.parts))
        return Page(
            body=body,
            blocks=covering(body, blocks),
            title=title,
            references=references[:REFERENCE_LIMIT],
        )

    def _code_spans(self) -> list[tuple[int, int]]:
        starts = list(accumulate((len(line) + 1 for line in self.lines), initial=0))
        spans = []
        for part in self.parts:
            if part.kind == "code":
                spans.append((starts[part.first], starts[part.last + 1]))
        return spans


def _blocks(rows: Sequence[str], starts: Sequence[int], parts: Sequence[Part]) -> Iterator[Block]:
    """Yield the blocks of all lines: the parts, and the paragraphs between them."""
    done = 0
    for part in parts:
        if part.first < done:
            # A part within another one, such as a table in code, is none.
            continue
        yield from _paragraphs(rows, starts, done, part.first)
        done = part.last + 1
        title = ""
        if part.titled >= 0:
            title = caption(rows[part.titled])
        joints: tuple[int, ...] = ()
        if part.kind == "table":
            joints = tuple(starts[part.first + 1 : done])
        start = starts[part.first]
        stop = starts[part.last] + len(rows[part.last])
        if stop > start:
            yield Block(part.kind, start, stop, part.level, title, joints, (), part.anchors)
    yield from _paragraphs(rows, starts, done, len(rows))


def _paragraphs(
    rows: Sequence[str], starts: Sequence[int], first: int, end: int
) -> Iterator[Block]:
    """Yield the runs of lines between blank lines.

    Long ones may be cut before list items and terms. A term that is marked as one is not cut from
    its definition by a blank line.
    """
    begin = last = -1
    joints: list[int] = []
    for number in range(first, end):
        row = rows[number]
        if is_blank(row):
            if begin >= 0 and not rows[last].endswith("::"):
                yield Block(
                    "text", starts[begin], starts[last] + len(rows[last]), joints=tuple(joints)
                )
                begin = -1
                joints = []
            continue
        last = number
        if begin < 0:
            begin = number
        elif _ITEM.match(row) or _is_term(rows, number, end):
            joints.append(starts[number])
    if begin >= 0:
        yield Block("text", starts[begin], starts[last] + len(rows[last]), joints=tuple(joints))


def _is_term(rows: Sequence[str], number: int, end: int) -> bool:
    """Tell whether the next line defines a line: it is indented further, or the line says so."""
    row = rows[number]
    if row.endswith("::"):
        return True
    if number + 1 == end or rows[number + 1][:1] not in {" ", "\t"}:
        return False
    below = rows[number + 1]
    return not is_blank(below) and indent_of(below) > indent_of(row)


def covering(text: str, blocks: Iterable[Block]) -> list[Block]:
    """Return no more blocks than the limit, and one for all text below them."""
    first_blocks: list[Block] = []
    for block in blocks:
        if len(first_blocks) == BLOCK_LIMIT:
            break
        first_blocks.append(block)
    end = 0
    if first_blocks:
        end = first_blocks[-1].stop
    rest = _INK.search(text, end)
    if rest:
        first_blocks.append(Block("text", rest.start(), len(text.rstrip())))
    return first_blocks


# What stands in the place of some words, and where these lead: a destination, a name, or nothing.
Replacement = tuple[str, str, str]


class Rewrite(NamedTuple):
    """A pattern of links and other marks in a text, and what is read in their place."""

    pattern: re.Pattern[str]
    replace: Callable[[re.Match[str]], Replacement]


def rewritten(
    body: str, rewrite: Rewrite, hidden: Sequence[tuple[int, int]] = ()
) -> tuple[str, list[Reference]]:
    """Replace the marks in a text outside of hidden spans; no line break is lost.

    Returns the new text and its links.
    """
    pieces: list[str] = []
    references: list[Reference] = []
    done = length = 0
    ends = [stop for _, stop in hidden]
    for match in islice(rewrite.pattern.finditer(body), REWRITE_LIMIT):
        start, stop = match.span()
        if _is_within(start, hidden, ends):
            continue
        words, destination, name = rewrite.replace(match)
        lost = match[0].count("\n") - words.count("\n")
        pieces += (body[done:start], words, "\n" * lost)
        length += start - done
        if (destination or name) and len(references) < REFERENCE_LIMIT:
            references.append(Reference(length, length + len(words), destination, name))
        length += len(words) + max(lost, 0)
        done = stop
    pieces.append(body[done:])
    return "".join(pieces), references


def _is_within(offset: int, spans: Sequence[tuple[int, int]], ends: Sequence[int]) -> bool:
    """Tell whether an offset lies in one of the spans, which are in order."""
    position = bisect_right(ends, offset)
    return position < len(spans) and spans[position][0] <= offset
