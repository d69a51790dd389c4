"""The blocks of a text: headings, fences, code, lists, tables, comments and paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ragdocs.project.formats import suffix_of
from ragdocs.system.patterns import later
from ragdocs.text.formats import myst
from ragdocs.text.formats.flavours import unwrapped
from ragdocs.text.formats.page import LINE_LIMIT, Page, caption, covering, indent_of
from ragdocs.text.sections import heading_slugs
from ragdocs.types import Block


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
        return indent_of(self.text)


# A line indented by more than this, within its container, is code and no markup.
_CODE_INDENT = 3

# Characters of a text that tell whether it is markdown.
_PROBE = 20_000

_SIGN = later(r"^(?:#{1,6} \S|```|---$|\[[^\]\n]{1,100}\]: )|\]\(", re.MULTILINE)
_LINE = later(r"[^\n]+")
_FRONT_OPEN = later(r"---[ \t]*+\r?\n")
_FRONT_CLOSE = later(r"^---[ \t]*+\r?(?:\n|\Z)", re.MULTILINE)
_ATX = later(r" {0,3}(#{1,6})(?=[ \t\r]|$)")
_SETEXT = later(r" {0,3}(=++|-++)\s*+$")
_ITEM = later(r"([ \t]*+)([-*+]|\d{1,9}[.)])([ \t]++|$)")
_RULE = later(r"[ \t]*+([-*_])(?:[ \t]*+\1){2,}+\s*+$")
_QUOTE = later(r"[ \t]{0,3}>")
_FENCE = later(
    r"(?P<lead>(?: {0,3}>| {0,12}(?:[-*+]|\d{1,9}[.)])(?= ))*)(?P<indent> *+)"
    r"(?P<fence>`{3,}+(?![^`]*+`)|~{3,}+)"
)
_DEFINES = (": ", ":\t")
# What Python-Markdown and others give content that is indented by four: admonitions, tabs,
# footnotes, definitions.
_CONTAINER = later(r"""[ \t]*+(?:!!!|\?\?\?\+?|===[!+]?[ \t]++"|\[\^[^\[\]]{1,100}+\]:|:[ \t])""")


def front(text: str) -> tuple[int, int, int] | None:
    """Return where the block between `---` lines at the very top starts and stops, and the rest."""
    opening = _FRONT_OPEN.match(text)
    if not opening:
        return None
    closing = _FRONT_CLOSE.search(text, opening.end())
    if not closing:
        return None
    return opening.end(), closing.start(), closing.end()


def recognises(text: str) -> bool:
    """Tell whether a text has the headings, fences or metadata of markdown."""
    return bool(_SIGN.search(text[:_PROBE]))


def read(text: str, path: str, *, top: bool = False) -> Page:
    """Read a text in any flavour of markdown; `top` says that the text begins with the file."""
    body = unwrapped(text, suffix_of(path))
    found = blocks(body, top=top)
    if myst.recognises(text):
        slugs = heading_slugs([block for block in found if block.kind == "heading"])
        body = myst.linked(body, found, frozenset(slugs))
        found = myst.labelled(text, body, blocks(body, top=top))
    return Page(body=body, blocks=found)


def blocks(text: str, *, top: bool = False) -> list[Block]:
    """Read the blocks of a markdown text; `top` says that the text begins with the file."""
    return covering(text, _blocks(text, top))


def _blocks(text: str, top: bool) -> Iterator[Block]:
    body = 0
    metadata = front(text) if top else None
    if metadata:
        # Metadata that could not be read: words to be found, but no headings and no links.
        body = metadata[2]
        lines = _lines(text[:body], 0)
        joints = _starts(lines[1:])
        yield Block("front", 0, lines[-1].stop, joints=joints)
    yield from _Markdown(text, _lines(text, body)).blocks()


def _lines(text: str, start: int) -> list[Line]:
    """Return the lines that are not blank, no more than the limit."""
    lines: list[Line] = []
    for match in _LINE.finditer(text, start):
        line = match[0]
        if not line.isspace():
            lines.append(Line(match.start(), line))
            if len(lines) == LINE_LIMIT:
                break
    return lines


def _starts(lines: list[Line]) -> tuple[int, ...]:
    return tuple([line.start for line in lines])


def _is_rule(line: str) -> bool:
    return _RULE.match(line) is not None


def _is_table_rule(line: str) -> bool:
    return "|" in line and "-" in line and not line.strip("|:- \t\r")


def _atx(line: str) -> tuple[int, str] | None:
    """Return the level and the title of a heading that begins with number signs."""
    match = _ATX.match(line)
    if not match:
        return None
    title = line[match.end() :].strip()
    unclosed = title.rstrip("#")
    # Number signs right behind a word belong to the title.
    if unclosed[-1:] in {"", " ", "\t"}:
        title = unclosed
    return len(match[1]), caption(title)


class _Fence(NamedTuple):
    """The marks of an opening fence, the column of its container, and whether it is quoted."""

    marks: str
    column: int
    quoted: bool

    def goes_on(self, line: Line) -> bool:
        """Tell whether a line is still in the fence's container."""
        if self.quoted:
            return line.text.lstrip()[0] == ">"
        return line.indent >= self.column

    def is_closed_by(self, line: Line) -> bool:
        """Tell whether a line is the closing fence."""
        margin = " \t"
        if self.quoted:
            margin = "> \t"
        closing = line.text.lstrip(margin).rstrip()
        if len(closing) < len(self.marks) or closing.strip(self.marks[0]):
            return False
        return self.quoted or line.indent - self.column <= _CODE_INDENT


class _Markdown:
    """Reads lines forward, remembering the columns of the list items it is in."""

    def __init__(self, text: str, lines: list[Line]) -> None:
        self.text = text
        self.lines = lines
        self.columns: list[int] = []
        self.last_comment_end = text.rfind("-->")

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks in order."""
        index = 0
        while index < len(self.lines):
            self._leave_items(self.lines[index])
            block = self._block(index)
            yield block
            while index < len(self.lines) and self.lines[index].start < block.stop:
                index += 1

    def _block(self, index: int) -> Block:
        """Read the block that begins with a line."""
        line = self.lines[index]
        return (
            self._code(index)
            or self._fence(index)
            or self._comment(line)
            or self._heading(line)
            or self._list(index)
            or self._table(index)
            or self._text(index)
        )

    def _leave_items(self, line: Line) -> None:
        """Forget the list items that a line is not indented enough to belong to."""
        while self.columns and line.indent < self.columns[-1]:
            self.columns.pop()

    def _begins_block(self, index: int) -> bool:
        """Tell whether a line cannot continue the paragraph above it."""
        line = self.lines[index]
        if self._is_code(line):
            return False
        if line.text.lstrip(" \t")[0].isalpha() and "|" not in line.text:
            return False
        if self._interrupts(line) or self._is_table(index):
            return True
        item = _ITEM.match(line.text)
        # A number that a line happens to begin with starts no list, unless it is the first.
        return bool(item and item[3] and item[2] in {"-", "*", "+", "1.", "1)"})

    def _interrupts(self, line: Line) -> bool:
        """Tell whether a line is a fence, a heading, a comment or a rule."""
        if self._opening(line) or self._heading(line) or self._comment_stop(line):
            return True
        return _is_rule(line.text)

    def _follows_blank(self, index: int) -> bool:
        return self.lines[index].start != self.lines[index - 1].stop + 1

    def _is_code(self, line: Line) -> bool:
        """Tell whether a line is indented so far that it is code, if it continues no paragraph."""
        indent = line.indent
        if self.columns:
            indent -= self.columns[-1]
        return indent > _CODE_INDENT

    def _code(self, index: int) -> Block | None:
        """Read indented code; blank lines do not end it."""
        if not self._is_code(self.lines[index]):
            return None
        stop = index + 1
        while stop < len(self.lines) and self._is_code(self.lines[stop]):
            stop += 1
        first = self.lines[index]
        last = self.lines[stop - 1]
        return Block("code", first.start, last.stop)

    def _heading(self, line: Line) -> Block | None:
        heading = _atx(line.text)
        if not heading:
            return None
        return Block("heading", line.start, line.stop, *heading)

    def _comment_stop(self, line: Line) -> int:
        """Return where the comment that begins with a line ends, 0 if there is none."""
        inside = line.start + 4
        # A comment that is never closed hides nothing.
        if inside > self.last_comment_end or not line.text.lstrip(" ").startswith("<!--"):
            return 0
        return self.text.index("-->", inside) + 3

    def _comment(self, line: Line) -> Block | None:
        stop = self._comment_stop(line)
        if not stop:
            return None
        end_of_line = self.text.find("\n", stop)
        if end_of_line < 0:
            end_of_line = len(self.text)
        return Block("comment", line.start, end_of_line)

    def _opening(self, line: Line) -> _Fence | None:
        """Return the fence that a line opens."""
        if "```" not in line.text and "~~~" not in line.text:
            return None
        match = _FENCE.match(line.text.expandtabs(4))
        if not match:
            return None
        lead = match["lead"]
        if ">" in lead:
            return _Fence(match["fence"], 0, quoted=True)
        if lead:
            return _Fence(match["fence"], len(lead), quoted=False)
        indent = len(match["indent"])
        column = 0
        for item_column in self.columns:
            if item_column <= indent:
                column = max(column, item_column)
        if indent - column > _CODE_INDENT:
            return None
        return _Fence(match["fence"], column, quoted=False)

    def _fence(self, index: int) -> Block | None:
        first = self.lines[index]
        fence = self._opening(first)
        if not fence:
            return None
        last = first
        for number in range(index + 1, len(self.lines)):
            line = self.lines[number]
            if not fence.goes_on(line):
                break
            last = line
            if fence.is_closed_by(line):
                break
        return Block("fence", first.start, last.stop)

    def _list(self, index: int) -> Block | None:
        first = self.lines[index]
        if not self._begins_list(first):
            return None
        joints: list[int] = []
        code: list[tuple[int, int]] = []
        last = first
        in_code = False
        for number in range(index, len(self.lines)):
            line = self.lines[number]
            is_first = number == index
            gap = not is_first and self._follows_blank(number)
            # Only a blank line makes code of what is indented further than the item's text.
            in_code = bool(self.columns) and (in_code or gap) and self._is_code(line)
            if in_code:
                code.append((line.start, line.stop))
                last = line
                continue
            item = _item(line)
            if item or gap:
                self._leave_items(line)
            if not is_first:
                is_outside = gap and not item and not self.columns
                if is_outside or self._ends_list(line):
                    break
                if item or gap:
                    joints.append(line.start)
            if item:
                self.columns.append(line.indent + _item_width(item))
            last = line
        return Block(
            "list",
            first.start,
            last.stop,
            joints=tuple(joints),
            code=tuple(code),
        )

    def _begins_list(self, line: Line) -> bool:
        if not _item(line):
            return False
        return bool(self.columns) or line.indent <= _CODE_INDENT

    def _ends_list(self, line: Line) -> bool:
        if line.text.lstrip(" \t")[0].isalpha():
            return False
        return self._interrupts(line)

    def _is_table(self, index: int) -> bool:
        """Tell whether a line is the head of a table: a rule of dashes follows it at once."""
        below = index + 1
        if "|" not in self.lines[index].text or below == len(self.lines):
            return False
        return not self._follows_blank(below) and _is_table_rule(self.lines[below].text)

    def _table(self, index: int) -> Block | None:
        if not self._is_table(index):
            return None
        stop = index + 2
        while stop < len(self.lines) and self._is_row(stop):
            stop += 1
        rows = self.lines[index:stop]
        first = rows[0]
        last = rows[-1]
        return Block("table", first.start, last.stop, joints=_starts(rows[2:]))

    def _is_row(self, index: int) -> bool:
        return "|" in self.lines[index].text and not self._follows_blank(index)

    def _text(self, index: int) -> Block:
        first = self.lines[index]
        if _CONTAINER.match(first.text):
            self.columns.append(first.indent + _CODE_INDENT + 1)
        below = index + 1
        if below == len(self.lines) or self._follows_blank(below):
            return Block("text", first.start, first.stop)
        line = self.lines[below]
        # Only one line above the rule: several are rather a paragraph whose author forgot the
        # blank line.
        underline = _SETEXT.match(line.text)
        if underline and _may_be_title(first):
            level = 1 if underline[1][0] == "=" else 2
            title = caption(first.text)
            return Block("heading", first.start, line.stop, level, title)
        # A rule is no paragraph: what is right below it may be code or a title.
        if _is_rule(first.text):
            return Block("text", first.start, first.stop)
        stop, terms = self._paragraph(index)
        return Block("text", first.start, stop, joints=terms)

    def _paragraph(self, index: int) -> tuple[int, tuple[int, ...]]:
        """Return where the paragraph ends that begins with a line, and where terms in it begin."""
        number = index + 1
        terms: list[int] = []
        while number < len(self.lines):
            if self._follows_blank(number) or self._begins_block(number):
                break
            if self.lines[number].text.startswith(_DEFINES) and number - 1 > index:
                terms.append(self.lines[number - 1].start)
            number += 1
        return self.lines[number - 1].stop, tuple(terms)


def _item(line: Line) -> re.Match[str] | None:
    """Return the mark of a list item at the beginning of a line."""
    item = _ITEM.match(line.text)
    if not item or _is_rule(line.text):
        return None
    return item


def _item_width(item: re.Match[str]) -> int:
    """Return how far the text of an item is from the item's mark."""
    padding = len(item[3])
    if not 0 < padding <= _CODE_INDENT + 1:
        padding = 1
    return len(item[2]) + padding


def _may_be_title(line: Line) -> bool:
    """Tell whether a rule below this line makes a heading of it."""
    if line.indent > _CODE_INDENT:
        return False
    return not _is_rule(line.text) and not _QUOTE.match(line.text)
