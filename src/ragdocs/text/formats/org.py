"""Org: headlines, blocks, drawers and links."""

from __future__ import annotations

import re
from dataclasses import replace

from ragdocs.text.formats.page import INCLUDES, Page, Replacement, Rewrite, Sheet, caption

_HEADLINE = re.compile(r"(\*{1,50}+)[ \t]++(\S.*)$")
_STATE = re.compile(r"(?:TODO|DONE|NEXT|WAITING|CANCELLED|CANCELED|STARTED|HOLD)[ \t]++(?=\S)")
_PRIORITY = re.compile(r"\[#[A-Z0-9]\][ \t]*+(?=\S)")
_TAGS = re.compile(r"[ \t]++:(?:[\w@#%]{1,60}+:){1,30}+[ \t]*+$")
_KEYWORD = re.compile(r"[ \t]*+#\+([\w-]{1,60}+)(?:\[[^\]]{0,200}+\])?:[ \t]*+(.*)$")
_BEGIN = re.compile(r"[ \t]*+#\+begin_([\w-]{1,60}+)", re.IGNORECASE)
_END = re.compile(r"[ \t]*+#\+end_", re.IGNORECASE)
# The headline of a table of contents that a program keeps: it repeats the other headlines.
_CONTENTS = re.compile(r"[ \t]:(?:[\w@#%]{1,60}:){0,10}TOC(?:_\w{1,20})?:")
_LISTED = re.compile(r"[ \t]*+(?:[-+]|\d{1,3}[.)])[ \t]")
_DRAWER = re.compile(r"[ \t]*+:[\w-]{1,60}+:[ \t]*+$")
_PROPERTY = re.compile(r"[ \t]*+:(CUSTOM_ID|ID):[ \t]++(\S++)", re.IGNORECASE)
_TABLE_RULE = re.compile(r"[ \t]*+\|[-+|]{2,}+[ \t]*+$")
_QUOTED = re.compile(r"\"([^\"]{1,500}+)\"")
_LINK = re.compile(
    r"\[\[(?P<target>(?:[^\[\]\n]|\n(?![ \t]*+\n)){1,600}+)\]"
    r"(?:\[(?P<words>[^\[\]]{1,500}+)\])?\]"
    # A macro, of which its arguments are seen: {{{kbd(M-RET)}}}.
    r"|\{\{\{[\w-]{1,60}+(?:\((?P<arguments>[^{}]{0,500}?)\))?\}\}\}"
    # A place that is named within a text.
    r"|<<(?P<place>[^<>\n]{1,100}+)>>"
)
_REMOTE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:")

_CODE = frozenset({"src", "example"})
# Written for another format, or for nobody.
_UNSEEN = frozenset({"export", "comment", "html", "latex"})
# What programs write into a drawer: times, and earlier states.
_RECORDS = frozenset({":logbook:", ":clock:"})
_SEEN = frozenset({"title", "subtitle", "description", "caption"})


def read(text: str, path: str) -> Page:  # noqa: ARG001 - every reader is told the path
    """Read the headlines, links and code of a text."""
    return _Reader(text).page()


class _Reader:
    """Goes through the lines once."""

    def __init__(self, text: str) -> None:
        self.sheet = Sheet(text)
        self.title = ""
        # Ids of the whole file, above the first headline.
        self.ids: list[str] = []
        # Up to which line the end of a drawer was looked for and not found.
        self.unclosed = 0

    def page(self) -> Page:
        """Read all lines."""
        number = 0
        while number < self.sheet.count:
            number = self._line(number)
        page = self.sheet.page(Rewrite(_LINK, _link), caption(self.title))
        if not self.ids or not page.blocks:
            return page
        first, *others = page.blocks
        first = first._replace(anchors=(*self.ids, *first.anchors))
        return replace(page, blocks=[first, *others])

    def _line(self, number: int) -> int:
        """Read a line, and return the next one to read."""
        rows = self.sheet.lines
        line = rows[number].rstrip()
        bare = line.lstrip()
        if not bare:
            return number + 1
        headline = _HEADLINE.match(line)
        if headline and _CONTENTS.search(line):
            return self._contents(number)
        if headline:
            self._headline(number, headline)
        elif bare[0] == "#":
            return self._keyword(number, line, bare)
        elif bare[0] == "|":
            if _TABLE_RULE.match(line):
                rows[number] = ""
        elif bare[0] == ":":
            return self._colon(number, line, bare)
        return number + 1

    def _headline(self, number: int, headline: re.Match[str]) -> None:
        words = _STATE.sub("", headline[2], count=1)
        words = _PRIORITY.sub("", words, count=1)
        words = _TAGS.sub("", words)
        self.sheet.lines[number] = words
        self.sheet.heading(number, len(headline[1]))

    def _contents(self, number: int) -> int:
        """Take out a table of contents: the headline, and the list below it."""
        following = number + 1
        while following < self.sheet.count:
            line = self.sheet.lines[following]
            if line.strip() and not _LISTED.match(line):
                break
            following += 1
        self.sheet.blank(number, following - 1)
        return following

    def _keyword(self, number: int, line: str, bare: str) -> int:
        """Read a block, a keyword or a comment."""
        rows = self.sheet.lines
        begin = _BEGIN.match(line)
        if begin:
            return self._block(number, begin[1].casefold())
        keyword = _KEYWORD.match(line)
        if keyword:
            name = keyword[1].casefold()
            rows[number] = ""
            if name in _SEEN:
                rows[number] = keyword[2]
            if name == "title":
                self.title = self.title or keyword[2]
            if name == "include":
                self._include(number, keyword[2])
        elif bare == "#" or bare.startswith(("# ", "#+")):
            rows[number] = ""
        return number + 1

    def _include(self, number: int, arguments: str) -> None:
        """Read the file that is inserted, and the headline or id in it."""
        quoted = _QUOTED.match(arguments)
        written = arguments.partition(" ")[0]
        if quoted:
            written = quoted[1]
        self.sheet.lines[number] = written.partition("::")[0]
        self.sheet.link(number, _destination(written), kind=INCLUDES)

    def _block(self, number: int, name: str) -> int:
        """Read a block up to its end; most blocks are only unwrapped."""
        self.sheet.blank(number)
        if name not in _CODE and name not in _UNSEEN:
            return number + 1
        end = number + 1
        while end < self.sheet.count and not _END.match(self.sheet.lines[end]):
            end += 1
        if name in _UNSEEN:
            self.sheet.blank(number, end - 1)
        if end < self.sheet.count:
            self.sheet.blank(end)
        self.sheet.code(number + 1, end - 1)
        return end + 1

    def _colon(self, number: int, line: str, bare: str) -> int:
        """Read a drawer, or lines of code that begin with a colon."""
        if bare == ":" or bare.startswith(": "):
            last = number
            while last + 1 < self.sheet.count:
                following = self.sheet.lines[last + 1].strip()
                if following != ":" and not following.startswith(": "):
                    break
                last += 1
            self.sheet.code(number, last)
            return last + 1
        if not _DRAWER.match(line):
            return number + 1
        if bare.casefold() == ":properties:":
            return self._properties(number)
        self.sheet.blank(number)
        if bare.casefold() in _RECORDS:
            return self._records(number)
        return number + 1

    def _records(self, number: int) -> int:
        """Take out a drawer that ends before the next headline."""
        for end in range(max(number + 1, self.unclosed), self.sheet.count):
            line = self.sheet.lines[end]
            if line.strip().casefold() == ":end:":
                self.sheet.blank(number, end)
                return end + 1
            self.unclosed = end
            if _HEADLINE.match(line):
                break
        return number + 1

    def _properties(self, number: int) -> int:
        """Take out the properties of a headline; its id is an anchor."""
        anchors = []
        end = number
        while end < self.sheet.count:
            line = self.sheet.lines[end].strip()
            match = _PROPERTY.match(line)
            if match:
                anchors.append(match[2].casefold())
            is_inside = line.startswith(":")
            if is_inside:
                self.sheet.blank(end)
            if not is_inside or line.casefold() == ":end:":
                break
            end += 1
        if not self.sheet.parts:
            self.ids += anchors
        elif anchors and self.sheet.parts[-1].kind == "heading":
            heading = self.sheet.parts.pop()
            self.sheet.parts.append(heading._replace(anchors=tuple(anchors)))
        return end + 1


def _link(match: re.Match[str]) -> Replacement:
    """Return the words of a link or a macro, and where it leads."""
    if match["target"] is None:
        return match["place"] or match["arguments"] or "", "", ""
    target = " ".join(match["target"].split()).removeprefix("file:")
    words = match["words"] or match["target"].removeprefix("file:").lstrip("*#")
    path = target.partition("::")[0]
    if target.startswith("id:"):
        return words, "", target.removeprefix("id:").casefold()
    if target[0] in "*#" or (_REMOTE.match(path) and "/" not in path.partition(":")[0]):
        return words, "", ""
    is_file = "/" in path or "." in path
    if not is_file:
        return words, "", ""
    return words, _destination(target), ""


def _destination(target: str) -> str:
    """Return the path of a file, with the headline or id in it as the heading of a link."""
    path, _, search = target.partition("::")
    if search:
        path = f"{path}#{search.lstrip('*#')}"
    return path
