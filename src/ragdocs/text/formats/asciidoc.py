"""AsciiDoc: sections, delimited blocks, attributes, includes and cross references."""

from __future__ import annotations

import re

from ragdocs.text.formats.page import INCLUDES, Page, Replacement, Rewrite, Sheet, is_blank

# Characters of a text that tell whether it is AsciiDoc.
_PROBE = 20_000
# References to attributes that are replaced in one text, and the length of a value.
_MOST_VALUES = 10_000
_LONGEST_VALUE = 200

_HEADING = re.compile(r"(={1,6})[ \t]++(\S.*)$")
_UNDERLINE = re.compile(r"([=~^+-])\1++\s*+$")
# What a title of two lines does not begin with: space, attributes, block titles, lists.
_NO_TITLE = frozenset(" \t[.|*-=+:/'")
_LEVELS = {"=": 1, "-": 2, "~": 3, "^": 4, "+": 5}
_DELIMITER = re.compile(
    r"(-{4,}+|\.{4,}+|\+{4,}+|={4,}+|\*{4,}+|_{4,}+|/{4,}+|--|[|,:!]===)[ \t]*+$"
)
_OPEN_BLOCK = "--"
_FENCE = re.compile(r"```+")
_ATTRIBUTE = re.compile(r":(!?[\w][\w-]{0,80}+!?):(?:[ \t]++(.*))?$")
_ANCHOR = re.compile(r"\[\[([^\[\],]{1,200}+)(?:,[^\[\]]{0,200}+)?\]\][ \t]*+$")
_BLOCK_LINE = re.compile(r"\[([^\[\]]{0,500}+)\][ \t]*+$")
_SHORT_ID = re.compile(r"#([\w:.-]{1,200}+)")
_BLOCK_TITLE = re.compile(r"\.([^\s.].*)$")
_CONDITION = re.compile(r"(?:ifdef|ifndef|ifeval|endif)::[^\[\s]{0,200}+\[(.*)\][ \t]*+$")
_INCLUDE = re.compile(r"include::([^\[]{1,500}+)\[.*\][ \t]*+$")
_IMAGE = re.compile(r"(?:image|video|audio)::[^\[]{1,500}+\[([^\]]{0,500}+)\][ \t]*+$")
_SIGN = re.compile(
    r"^={2,5} \S|^include::\S++\[|^\[\[[\w-]{1,100}+\]\]$|^:[\w-]{1,60}+: |xref:\S++\["
    r"|^\[(?:source|NOTE|TIP)\b",
    re.MULTILINE,
)
# Antora keeps the files of a component in modules, and those of a module by their families.
_MODULE = re.compile(r"(?P<above>(?:.*/)?modules/)(?P<name>[^/]+)/")
_ADMONITIONS = frozenset({"NOTE", "TIP", "WARNING", "CAUTION", "IMPORTANT"})
_SOURCE = frozenset({"source", "listing", "literal", "stem", "latexmath", "asciimath"})
_SEEN_ATTRIBUTES = frozenset({"description", "title", "doctitle", "navtitle"})
# Macros whose target says nothing to a reader.
_PICTURES = frozenset({"image", "icon", "video", "audio"})
# Attributes that every text has, for characters that would be read as marks.
_CHARACTERS = {
    "amp": "&",
    "apos": "'",
    "asterisk": "*",
    "backslash": "\\",
    "backtick": "`",
    "caret": "^",
    "cpp": "C++",
    "endsb": "]",
    "gt": ">",
    "lt": "<",
    "nbsp": " ",
    "plus": "+",
    "quot": '"',
    "sp": " ",
    "startsb": "[",
    "tilde": "~",
    "two-colons": "::",
    "two-semicolons": ";;",
    "vbar": "|",
}
_REFERENCE = re.compile(r"\{(?P<attribute>[\w][\w-]{0,80}+)\}")
_INLINE = re.compile(
    r"xref:(?P<xref>[^\s\[\]]{1,500}+)\[(?P<words>[^\[\]]{0,500}+)\]"
    r"|<<(?P<internal>[^<>,\n]{1,300}+)(?:,[ \t\n]*+(?P<label>[^<>]{0,300}+))?>>"
    r"|(?P<url>link:[^\s\[\]]{1,500}+|https?://[^\s\[\]<>]{1,500}+"
    r"|\{[\w-]{1,80}+\}/[^\s\[\]<>]{1,500}+)\[(?P<text>[^\[\]]{0,500}+)\]"
    # A macro of any other name: kbd:[Ctrl+C], image:logo.png[Logo], or one of an extension.
    r"|(?<![\w:/`])(?P<macro>[a-z][a-z-]{1,30}+)::?(?P<target>[^\s\[\]`:][^\s\[\]`]{0,300}+)?"
    r"\[(?P<given>[^\[\]\n]{0,500}+)\]"
    r"|\[\[[^\[\]\n]{1,200}+\]\]"
    r"|\{(?P<attribute>[\w][\w-]{0,80}+)\}"
)


def recognises(text: str) -> bool:
    """Tell whether a text is AsciiDoc: a title of one line, and another sign."""
    text = text[:_PROBE].lstrip("\n")
    is_titled = text.startswith("= ") or "\n= " in text
    return is_titled and bool(_SIGN.search(text))


def read(text: str, path: str) -> Page:
    """Read the sections, links and code of a text."""
    return _Reader(text, path).page()


class _Reader:
    """Goes through the lines once, and remembers what stands above a block."""

    def __init__(self, text: str, path: str) -> None:
        self.sheet = Sheet(text)
        # The module of Antora that the text is in, if it is in one.
        self.module = _MODULE.match(path)
        self.attributes: dict[str, str] = {}
        self.replaced = 0
        # Ids that stand above the next section.
        self.anchors: list[str] = []
        # The titles of sections by their ids, which stand where a reference has no words.
        self.titles: dict[str, str] = {}
        # Whether the next paragraph is code.
        self.is_source = False

    def page(self) -> Page:
        """Read all lines."""
        number = 0
        while number < self.sheet.count:
            number = self._line(number)
        self.titles = self.sheet.titles()
        return self.sheet.page(Rewrite(_INLINE, self._inline))

    def _line(self, number: int) -> int:
        """Read a line, and return the next one to read."""
        rows = self.sheet.lines
        line = rows[number].rstrip()
        if not line:
            return number + 1
        heading = _HEADING.match(line)
        if heading:
            return self._heading(number, len(heading[1]), heading[2])
        level = self._underlined(number, line)
        if level:
            self.sheet.blank(number + 1)
            return self._heading(number, level, line) + 1
        delimiter = _DELIMITER.match(line)
        if delimiter or _FENCE.match(line):
            return self._delimited(number, line)
        if self.is_source:
            return self._source_paragraph(number)
        return self._marks(number, line)

    def _heading(self, number: int, level: int, title: str) -> int:
        closing = "=" * level
        words = title.removesuffix(f" {closing}")
        own = _ANCHOR.search(words)
        if own:
            self.anchors.append(own[1].casefold())
            words = words[: own.start()]
        self.sheet.lines[number] = words.strip() or title
        self.sheet.heading(number, level, self.anchors)
        self.anchors = []
        self.is_source = False
        return number + 1

    def _underlined(self, number: int, line: str) -> int:
        """Return the level of a title of two lines, 0 if there is none."""
        if number + 1 >= self.sheet.count or line[0] in _NO_TITLE:
            return 0
        if not any(map(str.isalnum, line)):
            return 0
        if number and not is_blank(self.sheet.lines[number - 1]):
            return 0
        below = self.sheet.lines[number + 1].rstrip()
        if below == _OPEN_BLOCK:
            return 0
        rule = _UNDERLINE.match(below)
        if not rule or abs(len(below) - len(line)) > 1:
            return 0
        return _LEVELS[rule[1]]

    def _delimited(self, number: int, delimiter: str) -> int:
        """Read a block between two lines of marks; most blocks are only unwrapped."""
        is_source, self.is_source = self.is_source, False
        kind = delimiter[0]
        is_open = delimiter == _OPEN_BLOCK
        if kind in "=*_" or (is_open and not is_source):
            self.sheet.blank(number)
            return number + 1
        last = self._closing(number, delimiter)
        first = number + 1
        self.sheet.blank(number)
        if last < self.sheet.count:
            self.sheet.blank(last)
        end = min(last, self.sheet.count) - 1
        if kind in "/+":
            # Comments, and marks for another format.
            self.sheet.blank(first, end)
        elif kind in "|,:!":
            self.sheet.table(first, end)
        else:
            self.sheet.code(first, end)
        return last + 1

    def _closing(self, number: int, delimiter: str) -> int:
        """Return the line that closes a block, or that behind the last one."""
        marks = delimiter
        if delimiter[0] == "`":
            marks = delimiter[: len(delimiter) - len(delimiter.lstrip("`"))]
        for following in range(number + 1, self.sheet.count):
            if self.sheet.lines[following].rstrip() == marks:
                return following
        return self.sheet.count

    def _source_paragraph(self, number: int) -> int:
        self.is_source = False
        last = number
        while last + 1 < self.sheet.count and not is_blank(self.sheet.lines[last + 1]):
            last += 1
        self.sheet.code(number, last)
        return last + 1

    def _marks(self, number: int, line: str) -> int:
        """Take the marks out of a line that is not text by itself."""
        rows = self.sheet.lines
        if line.startswith("//") and not line.startswith("///"):
            rows[number] = ""
        elif line[0] == ":" and _ATTRIBUTE.match(line):
            self._attribute(number, line)
        elif line[0] == "[":
            self._above_block(number, line)
        elif line in {"+", "'''", "<<<", "---", "***"}:
            rows[number] = ""
        elif line[0] == ".":
            title = _BLOCK_TITLE.match(line)
            if title:
                rows[number] = title[1]
        elif "::" in line:
            self._macro(number, line)
        return number + 1

    def _attribute(self, number: int, line: str) -> None:
        attribute = _ATTRIBUTE.match(line)
        assert attribute is not None
        name = attribute[1].casefold()
        value = (attribute[2] or "").strip()
        self.attributes[name] = value[:_LONGEST_VALUE]
        words = ""
        if name in _SEEN_ATTRIBUTES:
            words = value
        self.sheet.lines[number] = words

    def _above_block(self, number: int, line: str) -> None:
        """Read what stands in brackets above a block: an id, a style, or attributes."""
        anchor = _ANCHOR.match(line)
        if anchor:
            self.anchors.append(anchor[1].casefold())
            self.sheet.blank(number)
            return
        attributes = _BLOCK_LINE.match(line)
        if not attributes:
            return
        style = attributes[1].partition(",")[0].partition("%")[0]
        short_id = _SHORT_ID.search(style)
        if short_id:
            self.anchors.append(short_id[1].casefold())
        name = re.split("[#.]", style)[0]
        self.is_source = name in _SOURCE or attributes[1].startswith(",")
        words = ""
        if name in _ADMONITIONS:
            words = f"{name}:"
        self.sheet.lines[number] = words

    def _macro(self, number: int, line: str) -> None:
        rows = self.sheet.lines
        condition = _CONDITION.match(line)
        include = _INCLUDE.match(line)
        image = _IMAGE.match(line)
        if condition:
            rows[number] = condition[1]
        elif include:
            rows[number] = include[1]
            target = include[1]
            if "$" in target:
                target = self._resource(target)
            self.sheet.link(number, target, kind=INCLUDES)
        elif image:
            rows[number] = image[1].partition(",")[0]

    # --- within lines ---

    def _inline(self, match: re.Match[str]) -> Replacement:
        """Return the words of a cross reference, and where it leads."""
        if match["attribute"]:
            return self._value(match), "", ""
        if match["url"]:
            target = match["url"].removeprefix("link:")
            destination = _REFERENCE.sub(self._value, target)
            if "{" in destination:
                # An attribute that is defined elsewhere: nobody knows where this leads.
                destination = ""
            return match["text"] or target, destination, ""
        if match["macro"]:
            return _macro_words(match), "", ""
        written = _REFERENCE.sub(self._value, (match["xref"] or match["internal"] or "").strip())
        target = written.rpartition(":")[2]
        name = target.removeprefix("#").casefold()
        words = match["words"] or match["label"] or self.titles.get(name, target)
        if "." in target.partition("#")[0]:
            return words, self._resource(written), ""
        return words, "", name

    def _resource(self, written: str) -> str:
        """Return where the name of a page or another file leads, which may have a module.

        Within a module of Antora names begin at its folder for files of that family.
        """
        if "{" in written or "://" in written:
            # An attribute that is defined elsewhere, or another site.
            return ""
        coordinates, _, path = written.rpartition(":")
        family, has_family, rest = path.rpartition("$")
        if self.module is None or rest.startswith("."):
            return rest
        component, _, module = coordinates.rpartition("@")[2].rpartition(":")
        if component:
            # Where other components are is not known here: only the name of the page is.
            return f"/{rest}"
        folder = f"{family}s" if has_family else "pages"
        return f"/{self.module['above']}{module or self.module['name']}/{folder}/{rest}"

    def _value(self, match: re.Match[str]) -> str:
        """Return the value of an attribute that this text defines; others stay as written."""
        name = match["attribute"].casefold()
        value = self.attributes.get(name) or _CHARACTERS.get(name)
        if not value or self.replaced >= _MOST_VALUES:
            return match[0]
        self.replaced += 1
        return value


def _macro_words(match: re.Match[str]) -> str:
    """Return what a reader sees of a macro: the words in its brackets, or what it names.

    Options, as in [format=full], are no words; a number is a section, as of a manual page.
    """
    name = match["macro"]
    target = match["target"] or ""
    given = match["given"].strip()
    if name in _PICTURES:
        return given.partition(",")[0]
    if given.isdecimal() and target:
        return f"{target}({given})"
    if not given or "=" in given:
        return target
    return given
