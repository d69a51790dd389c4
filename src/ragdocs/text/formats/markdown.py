"""What the lines of a text are.

Headings, fences, indented code, lists, tables, comments and paragraphs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Literal, NamedTuple

Kind = Literal["heading", "fence", "code", "list", "table", "text", "comment", "front"]


class Block(NamedTuple):
    """A run of lines that belong together, by offsets into the text.

    `joints` are the inner offsets to cut at, `code` the spans of indented code in a list.
    """

    kind: Kind
    start: int
    stop: int
    level: int = 0
    title: str = ""
    joints: tuple[int, ...] = ()
    code: tuple[tuple[int, int], ...] = ()


class Line(NamedTuple):
    """A line that is not blank, and its offset; blank lines are the gaps between them."""

    start: int
    text: str

    @property
    def stop(self) -> int:
        """The offset just after the line."""
        return self.start + len(self.text)

    @property
    def indent(self) -> int:
        """The column of the first character that is not white space."""
        return _indent(self.text)


# A heading is repeated in every passage below it, so an absurdly long one is shortened there.
TITLE_LIMIT = 200
# Nobody writes so many by hand. What stands below is plain text: a file of ten million number signs
# would otherwise hold up every start for minutes.
BLOCK_LIMIT = 20_000
LINE_LIMIT = 200_000
# A line indented by more than this, within its container, is code and no markup.
_CODE_INDENT = 3

_LINE = re.compile(r"[^\n]+")
_INK = re.compile(r"\S")
_FRONT_OPEN = re.compile(r"---[ \t]*+\r?\n")
_FRONT_CLOSE = re.compile(r"^---[ \t]*+\r?(?:\n|\Z)", re.MULTILINE)
_ATX = re.compile(r" {0,3}(#{1,6})(?=[ \t\r]|$)")
_SETEXT = re.compile(r" {0,3}(=++|-++)\s*+$")
_ITEM = re.compile(r"([ \t]*+)([-*+]|\d{1,9}[.)])([ \t]++|$)")
_RULE = re.compile(r"[ \t]*+([-*_])(?:[ \t]*+\1){2,}+\s*+$")
_QUOTE = re.compile(r"[ \t]{0,3}>")
_FENCE = re.compile(
    r"(?P<lead>(?: {0,3}>| {0,12}(?:[-*+]|\d{1,9}[.)])(?= ))*)(?P<indent> *+)(?P<fence>`{3,}+(?![^`]*+`)|~{3,}+)"
)
# What Python-Markdown and others give content that is indented by four: admonitions, tabs,
# footnotes, definitions.
_CONTAINER = re.compile(
    r"""[ \t]*+(?:!!!|\?\?\?\+?|===[!+]?[ \t]++"|\[\^[^\[\]]{1,100}+\]:|:[ \t])"""
)
_RST_RULE = re.compile(r"([!-/:-@\[-`{-~])\1{2,}+\s*+$")
_DECORATION = (
    (re.compile(r"!\[[^\[\]]{0,200}+\]\([^()\s]{0,500}+\)|<[a-zA-Z/!][^<>]{0,300}+>"), ""),
    # Attributes as renderers read them: {#id} anywhere, { #id .class } and {: .class } at the end.
    (re.compile(r"\{#[^{}]{0,100}+\}|\{:?[ \t]*+[#.:][^{}]{0,200}+\}(?=[ \t#]*+$)"), ""),
    (re.compile(r"\[\[(?:[^\[\]|]{1,300}+\|)?([^\[\]|]{1,300}+)\]\]"), r"\1"),
    (re.compile(r"\[([^\[\]]{0,300}+)\]\([^()\s]{0,500}+\)"), r"\1"),
    (re.compile(r"(\*{1,3})(?=\S)([^*]{1,300}+)\1|`"), r"\2"),
)

# Without any of them there is nothing to take away; most headings have none.
_DECORATING = frozenset("[<{*`")


def front(text: str) -> tuple[int, int, int] | None:
    """Find a block between two `---` lines at the very top.

    Where it starts, where it stops, where the rest starts.
    """
    opening = _FRONT_OPEN.match(text)
    closing = opening and _FRONT_CLOSE.search(text, opening.end())
    return (opening.end(), closing.start(), closing.end()) if opening and closing else None


def blocks(text: str, path: str, *, top: bool = False) -> list[Block]:
    """Read the blocks of a text in the markup its file name tells.

    `top` says that the text begins with the file.
    """
    found = list(islice(_blocks(text, path, top), BLOCK_LIMIT))
    rest = _INK.search(text, found[-1].stop if found else 0)
    if rest:
        # Every line with something on it is in a block, unless there are too many of either.
        found.append(Block("text", rest.start(), len(text.rstrip())))
    return found


def _blocks(text: str, path: str, top: bool) -> Iterator[Block]:
    skipped = 0
    if path.endswith(".rst"):
        yield from _rst(_lines(text, 0))
        return
    if path.endswith(".txt"):
        yield from _plain(_lines(text, 0))
        return
    if top and (block := front(text)):
        # Metadata that could not be read: words to be found, but no headings and no links.
        skipped = block[2]
        lines = _lines(text[:skipped], 0)
        yield Block("front", 0, lines[-1].stop, joints=tuple(line.start for line in lines[1:]))
    yield from _Markdown(text, _lines(text, skipped)).blocks()


def caption(text: str) -> str:
    """Return a heading or title as a reader sees it.

    No links, tags, emphasis or line breaks, not too long.
    """
    seen = text = text[: 4 * TITLE_LIMIT]
    if not _DECORATING.isdisjoint(seen):
        for pattern, replacement in _DECORATION:
            seen = pattern.sub(replacement, seen)
    seen = " ".join(seen.split()) or " ".join(text.split())
    return seen if len(seen) <= TITLE_LIMIT else seen[: TITLE_LIMIT - 1].rstrip() + "…"


def _lines(text: str, start: int) -> list[Line]:
    found = (
        Line(match.start(), match[0])
        for match in _LINE.finditer(text, start)
        if not match[0].isspace()
    )
    return list(islice(found, LINE_LIMIT))


def _indent(line: str) -> int:
    if line[0] not in " \t":
        return 0
    return len(line[: len(line) - len(line.lstrip(" \t"))].expandtabs(4))


def _is_rule(line: str) -> bool:
    return _RULE.match(line) is not None


def _is_table_rule(line: str) -> bool:
    return "|" in line and "-" in line and not line.strip("|:- \t\r")


def _atx(line: str) -> tuple[int, str] | None:
    match = _ATX.match(line)
    if not match:
        return None
    title = line[match.end() :].strip()
    unclosed = title.rstrip("#")
    return len(match[1]), caption(unclosed if unclosed[-1:] in {"", " ", "\t"} else title)


class _Markdown:
    """Reads lines forward, remembering the list items it is in."""

    def __init__(self, text: str, lines: list[Line]) -> None:
        self.text = text
        self.lines = lines
        self.columns: list[int] = []
        self.last_comment_end = text.rfind("-->")

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks in order."""
        index = 0
        while index < len(self.lines):
            line = self.lines[index]
            while self.columns and line.indent < self.columns[-1]:
                self.columns.pop()
            block = (
                self._code(index)
                or self._fence(index)
                or self._comment(line)
                or self._heading(line)
            )
            block = block or self._list(index) or self._table(index) or self._text(index)
            yield block
            while index < len(self.lines) and self.lines[index].start < block.stop:
                index += 1

    def _begins_block(self, index: int) -> bool:
        """Tell whether a line cannot continue the paragraph above it."""
        line = self.lines[index]
        head = line.text.lstrip(" \t")[0]
        if self._is_code(line):
            return False
        if head.isalpha() and "|" not in line.text:
            return False
        if (
            self._opening(line)
            or self._heading(line)
            or self._comment_stop(line)
            or self._is_table(index)
        ):
            return True
        item = _ITEM.match(line.text)
        # A number that a line happens to begin with starts no list, unless it is the first.
        return _is_rule(line.text) or bool(
            item and item[3] and item[2] in {"-", "*", "+", "1.", "1)"}
        )

    def _gap(self, index: int) -> bool:
        return self.lines[index].start != self.lines[index - 1].stop + 1

    def _is_code(self, line: Line) -> bool:
        """Tell whether a line is indented so far that it is code.

        Unless it continues a paragraph.
        """
        return line.indent - (self.columns[-1] if self.columns else 0) > _CODE_INDENT

    def _code(self, index: int) -> Block | None:
        """Read indented code; blank lines do not end it."""
        if not self._is_code(self.lines[index]):
            return None
        stop = index + 1
        while stop < len(self.lines) and self._is_code(self.lines[stop]):
            stop += 1
        return Block("code", self.lines[index].start, self.lines[stop - 1].stop)

    def _heading(self, line: Line) -> Block | None:
        found = _atx(line.text)
        return Block("heading", line.start, line.stop, *found) if found else None

    def _comment_stop(self, line: Line) -> int:
        # A comment that is never closed hides nothing.
        opens = line.text.lstrip(" ").startswith("<!--") and line.start + 4 <= self.last_comment_end
        return opens and self.text.index("-->", line.start + 4) + 3

    def _comment(self, line: Line) -> Block | None:
        stop = self._comment_stop(line)
        if not stop:
            return None
        end_of_line = self.text.find("\n", stop)
        return Block("comment", line.start, end_of_line if end_of_line >= 0 else len(self.text))

    def _opening(self, line: Line) -> tuple[str, int, bool] | None:
        """Return the marks of an opening fence, the column its container starts at.

        And whether it is quoted.
        """
        if "```" not in line.text and "~~~" not in line.text:
            return None
        match = _FENCE.match(line.text.expandtabs(4))
        if not match:
            return None
        if match["lead"]:
            return (
                match["fence"],
                0 if ">" in match["lead"] else len(match["lead"]),
                ">" in match["lead"],
            )
        indent = len(match["indent"])
        column = max((column for column in self.columns if column <= indent), default=0)
        return (match["fence"], column, False) if indent - column <= _CODE_INDENT else None

    def _fence(self, index: int) -> Block | None:
        opening = self._opening(self.lines[index])
        if not opening:
            return None
        marks, column, quoted = opening
        last = self.lines[index]
        for number in range(index + 1, len(self.lines)):
            line = self.lines[number]
            if line.text.lstrip()[0] != ">" if quoted else line.indent < column:
                break
            last = line
            closing = line.text.lstrip("> \t" if quoted else " \t").rstrip()
            if len(closing) < len(marks) or closing.strip(marks[0]):
                continue
            if quoted or line.indent - column <= _CODE_INDENT:
                break
        return Block("fence", self.lines[index].start, last.stop)

    def _list(self, index: int) -> Block | None:
        first = self.lines[index]
        if (
            not _ITEM.match(first.text)
            or _is_rule(first.text)
            or (not self.columns and first.indent > _CODE_INDENT)
        ):
            return None
        joints: list[int] = []
        code: list[tuple[int, int]] = []
        last = first
        in_code = False
        for number in range(index, len(self.lines)):
            line = self.lines[number]
            gap = number > index and self._gap(number)
            item = None if _is_rule(line.text) else _ITEM.match(line.text)
            # Only a blank line makes code of what is indented further than the item's text.
            in_code = bool(self.columns) and (in_code or gap) and self._is_code(line)
            if in_code:
                code.append((line.start, line.stop))
                last = line
                continue
            if item or gap:
                while self.columns and line.indent < self.columns[-1]:
                    self.columns.pop()
            if number > index and (
                self._ends_list(line) or (gap and not item and not self.columns)
            ):
                break
            if item:
                padding = len(item[3]) if 0 < len(item[3]) <= _CODE_INDENT + 1 else 1
                self.columns.append(line.indent + len(item[2]) + padding)
            if number > index and (item or gap):
                joints.append(line.start)
            last = line
        return Block("list", first.start, last.stop, joints=tuple(joints), code=tuple(code))

    def _ends_list(self, line: Line) -> bool:
        if line.text.lstrip(" \t")[0].isalpha():
            return False
        return bool(
            self._opening(line) or self._heading(line) or self._comment_stop(line)
        ) or _is_rule(line.text)

    def _is_table(self, index: int) -> bool:
        following = (
            index + 1 < len(self.lines) and not self._gap(index + 1) and self.lines[index + 1].text
        )
        return bool(following and "|" in self.lines[index].text and _is_table_rule(following))

    def _table(self, index: int) -> Block | None:
        if not self._is_table(index):
            return None
        stop = index + 2
        while stop < len(self.lines) and not self._gap(stop) and "|" in self.lines[stop].text:
            stop += 1
        rows = self.lines[index:stop]
        return Block(
            "table", rows[0].start, rows[-1].stop, joints=tuple(row.start for row in rows[2:])
        )

    def _text(self, index: int) -> Block:
        first = last = self.lines[index]
        ruled = _is_rule(first.text) or _QUOTE.match(first.text) or first.indent > _CODE_INDENT
        if _CONTAINER.match(first.text):
            self.columns.append(first.indent + _CODE_INDENT + 1)
        for number in range(index + 1, len(self.lines)):
            line = self.lines[number]
            if self._gap(number):
                break
            # Only one line above the rule: several are rather a paragraph whose author forgot the
            # blank line.
            if number == index + 1 and not ruled and (mark := _SETEXT.match(line.text)):
                level = 1 if mark[1][0] == "=" else 2
                return Block("heading", first.start, line.stop, level, caption(first.text))
            # A rule is no paragraph, so code below it continues nothing.
            below_rule = number == index + 1 and _is_rule(first.text) and self._is_code(line)
            if below_rule or self._begins_block(number):
                break
            last = line
        return Block("text", first.start, last.stop)


def _plain(lines: list[Line]) -> Iterator[Block]:
    """Yield the paragraphs between blank lines."""
    start = 0
    for number in range(1, len(lines) + 1):
        if number == len(lines) or lines[number].start != lines[number - 1].stop + 1:
            if lines:
                yield Block("text", lines[start].start, lines[number - 1].stop)
            start = number


def _rst(lines: list[Line]) -> Iterator[Block]:
    """Yield paragraphs and underlined headings.

    Whose level is the order in which their styles appear.
    """
    styles: list[str] = []
    start = number = 0
    while number < len(lines):
        if heading := _rst_heading(lines, number, fresh=number == start):
            yield from _plain(lines[start:number])
            style, title, size = heading
            if style not in styles:
                styles.append(style)
            stop = lines[number + size - 1].stop
            yield Block(
                "heading", lines[number].start, stop, styles.index(style) + 1, caption(title)
            )
            start = number = number + size
        else:
            number += 1
    yield from _plain(lines[start:])


def _rst_heading(lines: list[Line], number: int, *, fresh: bool) -> tuple[str, str, int] | None:
    """Return the style, the title and the number of lines of a heading that starts at this line."""
    if not fresh and lines[number].start == lines[number - 1].stop + 1:
        return None
    rows = [line.text.rstrip() for line in lines[number : number + 3]]
    over = _RST_RULE.match(rows[0])
    if over and len(rows) > 2 and rows[2] == rows[0] and len(rows[1].strip()) <= len(rows[0]):  # noqa: PLR2004 - three rows
        return over[1] * 2, rows[1], 3
    under = (
        _RST_RULE.match(rows[1])
        if len(rows) > 1 and not over and not rows[0][0].isspace()
        else None
    )
    return (under[1], rows[0], 2) if under and len(rows[1]) >= len(rows[0]) else None
