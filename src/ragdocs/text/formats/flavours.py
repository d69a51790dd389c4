"""What site generators add to markdown, taken out of a text line by line.

Containers, admonitions, shortcodes and the code of MDX become the words that a reader of the site
sees. Every line stays on its line.
"""

from __future__ import annotations

import html
import re
from itertools import accumulate

from ragdocs.system.patterns import later
from ragdocs.text.formats import directives
from ragdocs.text.formats.directives import label, strings
from ragdocs.text.formats.page import (
    LINE_LIMIT,
    Replacement,
    Rewrite,
    indent_of,
    is_blank,
    rewritten,
)

MDX = ".mdx"
# The content of an admonition is indented by so much.
_WIDTH = 4
# Lines of one import or export, and quotes or containers within each other.
_STATEMENT_LINES = 500
_DEPTH = 50
# Lines of the properties of a component.
_PROPERTIES = 100

# Without any of these a text is the same in all flavours.
_SIGNS = later(
    r"^[ \t>]*+(?:::|!!!|\?\?\?|///|===[!+]?[ \t]++\"|[`~]{3,}+\{|--+8<|<<<"
    r"|<!--[ \t]*+@|\([^()\n]{1,200}+\)=|</?[A-Z])"
    r"|\{\{[<%#]|\{[%*]|&[#\w]{1,20}+;|\{/\*",
    re.MULTILINE,
)
_FENCE = later(r"[ \t]*+(?:[-*+>]|\d{1,9}[.)]|[ \t])*+(`{3,}+(?![^`]*+`)|~{3,}+)(.*)")
# MyST writes directives as fences.
_DIRECTIVE = later(
    r"\{(note|tip|hint|important|warning|caution|danger|attention|error|seealso|admonition|"
    r"deprecated|versionadded|versionchanged|dropdown|tab-item|tab-set|grid|grid-item|card)\}(.*)"
)
# Of these the lines are names of documents, or the argument is the name of a file.
_LISTING = later(r"\{toctree\}")
_FILE = later(r"\{(?:include|literalinclude)\}[ \t]++(\S++)")
_SLASHES = later(r"([ \t]*+)/{3,}+(?:[ \t]++(?P<name>[\w-]++)[ \t]*+(?:\|(?P<title>.*))?)?$")
_INDENTED = later(
    r"([ \t]*+)(?:(?:!!!|\?\?\?\+?)[ \t]*+(?P<name>[\w -]{0,60}+)(?:\"(?P<title>[^\"]*+)\")?"
    r"|===[!+]?[ \t]++\"(?P<tab>[^\"]*+)\")[ \t]*+$"
)
# A shortcode around code, on a line of its own: Hugo's highlight, and that of Jekyll.
_CODE = later(
    r"([ \t]*+)(?:\{\{[<%][ \t]*+(?P<name>highlight|code-toggle|code)(?![\w-])"
    r"(?P<words>[^{}]{0,300}?)(?<!/)[>%]\}\}|\{%-?[ \t]*+(?P<liquid>highlight|code)\b"
    r"(?P<liquid_words>[^%{}]{0,300}+)-?%\})"
    r"[ \t]*+$"
)
_CODE_END = later(r"[ \t]*+(?:\{\{[<%][ \t]*+/[ \t]*+|\{%-?[ \t]*+end)(?P<name>[\w-]{1,40}+)")
_LANGUAGE = later(r"[ \t]*+([a-z][\w+#-]{0,20}+)(?![\w=.])")
# A file that is inserted, on a line of its own. Where the path begins, only some generators agree.
_INCLUDE = later(
    r"([ \t]*+)(?:\{\{#(?:include|rustdoc_include|playground)[ \t]++(?P<book>[^\s{}:]{1,300}+)"
    r"[^{}]{0,200}+\}\}"
    r"|<!--[ \t]*+@include:[ \t]*+(?P<page>[\w./-]{0,300}?[\w/])(?=[\s{#]|-->)[^\n>]{0,100}?-->"
    r"|-{2,}+8<-{2,}+[ \t]++[\"'](?P<snippet>[^\"']{1,300}+)[\"']"
    r"|\{\*[ \t]++(?P<lines>[^\s{}*]{1,300}+)[^{}*]{0,200}+\*\}"
    r"|<<<[ \t]++(?P<press>[^\s{}#]{1,300}+).{0,200}+)[ \t]*+$"
)
# Of these a reader sees nothing.
_UNSEEN = later(r"[ \t]*+<(style|script)(?=[\s>])", re.IGNORECASE)
_OPTION = later(r"[ \t]*+:[\w-]++:")

# What tells MDX in a file with the ending of markdown.
_MDX_SIGN = later(
    r"^(?:#{1,6}[ \t][^\n{]{0,300}+\{/\*|<[A-Z]"
    r"|import[ \t]++[^\n]{1,200}?[\"'][^\"'\n]{1,200}+[\"'])",
    re.MULTILINE,
)
# A component alone on its line; such a name within a sentence may stand for something.
_COMPONENT = later(
    r"[ \t]*+</?(?P<name>[A-Z][\w.]{0,60}+)(?P<arguments>(?:[ \t/][^<>]{0,1000}+)?)>[ \t]*+$"
)
_IMPORT = later(
    r"import\b[ \t]*+(?:[\"'{*]|type\b|[\w$]++[ \t]*+(?:,|from\b))"
    r"|export[ \t]++(?:default|const|let|var|function|async|class|type|interface|\{|\*)"
)

_NOTES = frozenset({"note", "tip", "info", "warning", "caution", "danger", "important", "alert"})
_LINKS = frozenset({"ref", "relref", "link", "url"})
# Liquid's own statements: strings in them are no words of the page.
_STATEMENTS = frozenset(
    {"assign", "capture", "case", "elsif", "for", "if", "set", "unless", "when"}
)
_TABS = frozenset({"Tab", "TabItem"})

_SHORTCODE = later(
    r"\{\{[<%]\s{0,20}+(?:/\*.{0,500}?\*/[ \t]*+[>%]\}\}"
    r"|(?P<closing>/?)[ \t]*+(?P<name>[\w./-]{1,80}+)(?P<arguments>[^{}]{0,1000}?)[>%]\}\})"
    r"|\{%-?[ \t]*+(?P<liquid>\w{0,40}+)[^%{}]{0,500}+-?%\}"
)
_ATTRIBUTES = (
    r"(?:[^<>{}\"'`]++|\"[^\"]{0,2000}+\"|'[^']{0,2000}+'|`[^`]{0,2000}+`"
    r"|\{(?:[^{}]++|\{(?:[^{}]++|\{[^{}]*+\}){0,50}+\}){0,50}+\}){0,60}+"
)
_JSX = later(
    r"`[^`\n]{1,300}+`"
    r"|\{/\*(?P<comment>(?:[^*{}]|\*(?!/)){0,500}+)\*/\}"
    r"|\{[ \t]*+(?:\" \"|' ')[ \t]*+\}"
    rf"|<(?P<closing>/?)(?P<name>[A-Za-z][\w.:-]{{0,60}}+)(?P<arguments>(?=[\s/>]){_ATTRIBUTES})>"
    r"|</?>"
)
# HTML that is written in markdown; other names between angle brackets stand for something. Anchors
# stay, because headings are known by them.
_HTML_NAMES = (
    "abbr|article|b|big|blockquote|br|center|code|dd|del|details|div|dl|dt|em|figcaption|figure|"
    "font|footer|h[1-6]|header|hr|i|iframe|img|ins|kbd|li|main|mark|nav|ol|p|picture|pre|s|section|"
    "small|source|span|strike|strong|sub|summary|sup|svg|table|tbody|td|tfoot|th|thead|tr|tt|u|ul|"
    "video"
)
# Names that also stand for something, as in --file <input>: these are tags with an attribute.
_FORM_NAMES = "button|caption|form|input|label|option|select|textarea"
_HTML_SIGN = later(rf"<(?:{_HTML_NAMES}|{_FORM_NAMES}|a|style|script)\b")
_HTML_ATTRIBUTES = r"(?:[^<>\"'`]++|\"[^\"]{0,2000}+\"|'[^']{0,2000}+'){0,60}+"
_HTML = later(
    r"`[^`\n]{1,300}+`"
    rf"|<(?P<title>h[1-6])(?=[\s>]){_HTML_ATTRIBUTES}>(?P<words>[^<>\n]{{1,300}}+)</h[1-6]>"
    r"|(?P<anchor><a\s[^<>]{0,200}?(?:id|name)=[^<>]{0,200}+></a>)"
    r"|<a(?=\s)[^<>]{0,500}?href=[\"'](?P<href>[^\"'\s<>]{1,500}+)[\"'][^<>]{0,500}+>"
    r"(?:(?P<label>[^<>\[\]\n]{1,300}+)</a>)?"
    r"|</a>"
    rf"|<(?P<closing>/?)(?P<name>{_HTML_NAMES})(?P<arguments>(?=[\s/>]){_HTML_ATTRIBUTES})>"
    rf"|<(?:{_FORM_NAMES})(?=\s[^<>=]{{0,100}}=){_HTML_ATTRIBUTES}>|</(?:{_FORM_NAMES})>"
)
_TITLE_BEFORE = later(r"</h[1-6]>[ \t]*+\n[ \t]*+\Z")
_TITLE_BEHIND = later(r"[ \t]*+\n[ \t]*+<h[1-6][\s>]")
_ENTITY = later(r"`[^`\n]{1,300}+`|&(?:[a-zA-Z]{2,20}+|#[0-9]{1,6}+|#[xX][0-9a-fA-F]{1,5}+);")
# What these stand for would be read as marks.
_MARKS = frozenset("<>|*_`[]#\\")
_ALT = later(r"\balt=[\"']([^\"']{1,500}+)[\"']")
# Tags that part words; others may stand within one.
_PARTING = frozenset({"br", "dd", "dt", "li", "p", "td", "th", "tr"})
_HREF = later(r"\b(?:href|to)=[\"']([^\"'\s]{1,500}+)[\"']")
_VALUE = later(r"\bvalue=[\"']([^\"'\n]{1,200}+)[\"']")


def unwrapped(text: str, suffix: str) -> str:
    """Return a markdown text without the marks of site generators, with the same lines."""
    is_mdx = suffix == MDX or _is_mdx(text)
    has_html = not is_mdx and _HTML_SIGN.search(text) is not None
    has_signs = is_mdx or has_html or _SIGNS.search(text) or directives.within_lines(text)
    if not has_signs:
        return text
    lines = _Lines(text, is_mdx=is_mdx)
    lines.read()
    body = "\n".join(lines.lines)
    spans = lines.code_spans()
    if "{{" in body or "{%" in body:
        body, _ = rewritten(body, Rewrite(_SHORTCODE, _shortcode), spans)
        # A tag may have been longer than what it says.
        spans = lines.code_spans(body)
    within = directives.within_lines(body)
    if within:
        body, _ = rewritten(body, within, lines.code_spans(body, indented=True))
        spans = lines.code_spans(body)
    if is_mdx and ("<" in body or "{" in body):
        body, _ = rewritten(body, Rewrite(_JSX, _tag), spans)
    if has_html:
        rewrite = Rewrite(_HTML, _Html(lines.first_heading(body)).words)
        body, _ = rewritten(body, rewrite, lines.code_spans(body, indented=True))
    if "&" in body:
        body, _ = rewritten(body, Rewrite(_ENTITY, _entity), lines.code_spans(body, indented=True))
    return body


class _Lines:
    """The lines of a text, with the fence and the containers that a line is in."""

    def __init__(self, text: str, *, is_mdx: bool) -> None:
        self.lines = text.split("\n", LINE_LIMIT)
        self.is_mdx = is_mdx
        self.is_code = bytearray(len(self.lines))
        # The marks that close the fence, and those that close directives written as fences.
        self.fence = ""
        self.directives: list[str] = []
        # The columns of the content of admonitions around a line.
        self.columns: list[int] = []
        # Up to which line the end of something was looked for and not found.
        self.unclosed: dict[str, int] = {}

    def read(self) -> None:
        """Take the marks out of every line."""
        number = 0
        while number < min(len(self.lines), LINE_LIMIT):
            if not is_blank(self.lines[number]):
                if self.is_mdx and self._is_statement(number):
                    number = self._skip_statement(number)
                    continue
                self._line(number)
            elif self.fence:
                self.is_code[number] = 1
            number += 1

    def code_spans(
        self, body: str | None = None, *, indented: bool = False
    ) -> list[tuple[int, int]]:
        """Return where code stands in the joined lines; with `indented`, also where it may."""
        rows = self.lines
        if body is not None:
            rows = body.split("\n", LINE_LIMIT)
        starts = list(accumulate((len(row) + 1 for row in rows), initial=0))
        spans: list[tuple[int, int]] = []
        for number, is_fenced in enumerate(self.is_code):
            is_code = is_fenced or (indented and indent_of(rows[number]) >= _WIDTH)
            if not is_code:
                continue
            start = starts[number]
            stop = starts[number + 1]
            if spans and spans[-1][1] == start:
                start, _ = spans.pop()
            spans.append((start, stop))
        return spans

    def first_heading(self, body: str) -> int:
        """Return where the first line of the joined lines is that begins with a number sign."""
        start = 0
        for is_fenced, row in zip(self.is_code, body.split("\n", LINE_LIMIT), strict=True):
            if not is_fenced and row.startswith("#"):
                return start
            start += len(row) + 1
        return start

    def _line(self, number: int) -> None:
        line = self.lines[number]
        indent = indent_of(line)
        while self.columns and indent < self.columns[-1]:
            self.columns.pop()
            self.fence = ""
        if self.columns:
            line = line.expandtabs(_WIDTH)[_WIDTH * len(self.columns) :]
            self.lines[number] = line
        if self.fence:
            self.is_code[number] = 1
            if _closes(line, self.fence):
                self.fence = ""
            elif "{{#" in line or "-8<-" in line:
                self._included_code(number, line)
            return
        if self.directives and _closes(line, self.directives[-1]):
            self.directives.pop()
            self.lines[number] = ""
            return
        opening = _FENCE.match(line)
        if opening:
            self._open_fence(number, opening)
            return
        if self._code(number, line) or self._unseen(number, line):
            return
        include = _INCLUDE.match(line)
        if include:
            self.lines[number] = include[1] + _included(include)
            return
        self._container(number, line, indent)

    def _included_code(self, number: int, line: str) -> None:
        """Leave the name of a file that is inserted into code."""
        include = _INCLUDE.match(line)
        if include:
            path = include["book"] or include["snippet"]
            self.lines[number] = f"{include[1]}{path}"

    def _open_fence(self, number: int, opening: re.Match[str]) -> None:
        written = opening[2].strip()
        if len(self.directives) < _DEPTH and self._leading(number, opening[1], written):
            return
        directive = _DIRECTIVE.match(written)
        if directive is None or len(self.directives) == _DEPTH:
            self.fence = opening[1]
            self.is_code[number] = 1
            return
        self.directives.append(opening[1])
        self.lines[number] = label(directive[1], directive[2])
        self._options(number + 1)

    def _leading(self, number: int, marks: str, written: str) -> bool:
        """Read a directive that is nothing but links to other files."""
        file = _FILE.match(written)
        if file is None and not _LISTING.match(written):
            return False
        self.directives.append(marks)
        self.lines[number] = ""
        self._options(number + 1)
        if file is not None:
            self.lines[number] = f"[{file[1]}]({file[1]})"
            return True
        for entry in range(number + 1, len(self.lines)):
            if _closes(self.lines[entry], marks) or _FENCE.match(self.lines[entry]):
                break
            self.lines[entry] = directives.entry(self.lines[entry])
        return True

    def _options(self, number: int) -> None:
        """Take out the options of a directive: they say nothing to a reader."""
        while number < len(self.lines) and _OPTION.match(self.lines[number]):
            self.lines[number] = ""
            number += 1

    def _code(self, number: int, line: str) -> bool:
        """Make a fence of a shortcode around code."""
        opening = _CODE.match(line)
        if not opening:
            return False
        name = opening["name"] or opening["liquid"]
        if number < self.unclosed.get(name, 0):
            return False
        end = min(number + _STATEMENT_LINES, len(self.lines), LINE_LIMIT)
        for last in range(number + 1, end):
            closing = _CODE_END.match(self.lines[last])
            if closing and closing["name"] == name:
                break
        else:
            self.unclosed[name] = end
            return False
        marks = "```"
        if any("```" in row for row in self.lines[number:last]):
            marks = "~~~~"
        language = _LANGUAGE.match(opening["words"] or opening["liquid_words"] or "")
        self.lines[number] = opening[1] + marks
        if language:
            self.lines[number] += language[1]
        self.lines[last] = opening[1] + marks
        self.fence = marks
        self.is_code[number] = 1
        return True

    def _unseen(self, number: int, line: str) -> bool:
        """Take out a style sheet or a script, if it ends before the next fence."""
        opening = _UNSEEN.match(line)
        if not opening:
            return False
        closing = f"</{opening[1].casefold()}>"
        if number < self.unclosed.get(closing, 0):
            return False
        end = min(number + _STATEMENT_LINES, len(self.lines), LINE_LIMIT)
        for last in range(number, end):
            row = self.lines[last]
            if closing in row.casefold():
                self.lines[number : last + 1] = [""] * (last + 1 - number)
                return True
            if _FENCE.match(row):
                break
        self.unclosed[closing] = end
        return False

    def _container(self, number: int, line: str, indent: int) -> None:
        """Replace the marks of a container by its kind and its title."""
        words = directives.container(line)
        if words is not None:
            self.lines[number] = words
            if ":{" in line:
                self._options(number + 1)
            elif directives.is_component(line):
                self._properties(number + 1)
            return
        anchor = directives.anchor(line)
        if anchor:
            self.lines[number] = anchor
            return
        component = _COMPONENT.match(line)
        if component and not self.is_mdx:
            self.lines[number] = _component_words(component)
            return
        slashes = _SLASHES.match(line)
        if slashes:
            words = label(slashes["name"] or "", slashes["title"] or "")
            self.lines[number] = slashes[1] + words
            return
        indented = _INDENTED.match(line)
        if indented:
            words = label(indented["name"] or "", indented["title"] or indented["tab"] or "")
            self.lines[number] = indented[1] + words
            if len(self.columns) < _DEPTH:
                self.columns.append(indent + _WIDTH)

    def _properties(self, number: int) -> None:
        """Take out the properties of a component, between lines of dashes right below it."""
        end = min(number + _PROPERTIES, len(self.lines), LINE_LIMIT)
        if number >= end or self.lines[number].strip() != "---":
            return
        for last in range(number + 1, end):
            if self.lines[last].strip() == "---":
                break
        else:
            return
        for inner in range(number, last + 1):
            self.lines[inner] = directives.property_seen(self.lines[inner])

    def _is_statement(self, number: int) -> bool:
        """Tell whether a line begins an import or an export, which stand below a blank line."""
        if self.fence or not _IMPORT.match(self.lines[number]):
            return False
        return number == 0 or is_blank(self.lines[number - 1])

    def _skip_statement(self, number: int) -> int:
        """Take out imports and exports up to a blank line outside of all brackets."""
        depth = 0
        end = min(number + _STATEMENT_LINES, len(self.lines), LINE_LIMIT)
        while number < end:
            line = self.lines[number]
            if is_blank(line) and depth <= 0:
                break
            for opening, closing in ("()", "[]", "{}"):
                depth += line.count(opening) - line.count(closing)
            self.lines[number] = ""
            number += 1
        return number


def _is_mdx(text: str) -> bool:
    """Tell whether a text is MDX under another ending.

    A heading with a comment in braces is, and a component below an import, outside of code.
    """
    if not _MDX_SIGN.search(text):
        return False
    fence = ""
    has_import = False
    for line in text.split("\n", LINE_LIMIT):
        opening = _FENCE.match(line)
        if fence:
            if _closes(line, fence):
                fence = ""
        elif opening:
            fence = opening[1]
        elif _MDX_SIGN.match(line):
            if line[0] == "#" or (has_import and line[0] == "<"):
                return True
            has_import = True
    return False


def _closes(line: str, marks: str) -> bool:
    """Tell whether a line is nothing but the marks that close a fence."""
    bare = line.strip(" \t>\r")
    return len(bare) >= len(marks) and not bare.strip(marks[0])


def _shortcode(match: re.Match[str]) -> Replacement:
    name = match["name"]
    if match["liquid"] and match["liquid"] not in _STATEMENTS:
        return " ".join(strings(match[0], named=True)), "", ""
    if name is None or match["closing"]:
        return "", "", ""
    words = strings(match["arguments"])
    if name in _LINKS:
        return "".join(words[:1]), "", ""
    if name in _NOTES:
        return label(name, " ".join(words)), "", ""
    return " ".join(words), "", ""


def _tag(match: re.Match[str]) -> Replacement:
    if match[0][0] == "`":
        return match[0], "", ""
    comment = (match["comment"] or "").strip()
    if comment.startswith("#") or (comment and _is_in_heading(match)):
        # The id of a heading.
        return f"{{#{comment.removeprefix('#')}}}", "", ""
    if match["name"] is None or match["closing"]:
        return "", "", ""
    return _component_words(match), "", ""


def _component_words(tag: re.Match[str]) -> str:
    """Return the titles and labels of a tag, as a link if it has a target."""
    arguments = tag["arguments"]
    words = " ".join(" ".join(strings(arguments)).split())
    href = _HREF.search(arguments)
    value = _VALUE.search(arguments)
    if not words and value and tag["name"] in _TABS:
        words = value[1]
    if words and href:
        words = f"[{words}]({href[1]})"
    return words


def _is_in_heading(match: re.Match[str]) -> bool:
    """Tell whether a mark is the end of a heading."""
    text = match.string
    start = text.rfind("\n", 0, match.start()) + 1
    is_last = text[match.end() : match.end() + 1] in {"", "\n"}
    return is_last and text.startswith("#", start)


def _included(include: re.Match[str]) -> str:
    """Return a link to a file that is inserted, or its path if that has another beginning."""
    path = include["book"] or include["page"]
    if path:
        return f"[{path}]({path})"
    return include["snippet"] or include["lines"] or include["press"]


def _entity(match: re.Match[str]) -> Replacement:
    """Return the character that is written as &mdash; or as &#8212;."""
    character = html.unescape(match[0])
    if character == "\xa0":
        return " ", "", ""
    if match[0][0] == "`" or character in _MARKS or not character.isprintable():
        return match[0], "", ""
    return character, "", ""


class _Html:
    """What a reader sees of HTML in markdown: words, titles, links and texts of images."""

    def __init__(self, first_heading: int) -> None:
        self.first_heading = first_heading

    def words(self, match: re.Match[str]) -> Replacement:
        """Return what stands in the place of a tag, or of a title or link with its words."""
        if match[0][0] == "`" or match["anchor"]:
            return match[0], "", ""
        if match["title"]:
            return self._title(match), "", ""
        if match["label"]:
            return f"[{match['label'].strip()}]({match['href']})", "", ""
        alt = _ALT.search(match["arguments"] or "")
        if alt and match["name"] == "img":
            return alt[1], "", ""
        if match["name"] in _PARTING:
            return " ", "", ""
        return "", "", ""

    def _title(self, match: re.Match[str]) -> str:
        """Return a heading; below one of markdown a main title, or a run of titles, shows HTML."""
        words = match["words"].strip()
        level = int(match["title"][1])
        start, stop = match.span()
        if start > self.first_heading:
            above = _TITLE_BEFORE.search(match.string[max(0, start - 80) : start])
            if level == 1 or above or _TITLE_BEHIND.match(match.string, stop):
                return words
        return f"{'#' * level} {words}"
