"""What site generators add to markdown, taken out of a text line by line.

Containers, admonitions, shortcodes and the code of MDX become the words that a reader of the site
sees. Every line stays on its line.
"""

from __future__ import annotations

import html
import re
from itertools import accumulate

from ragdocs.system.patterns import later
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

# Without any of these a text is the same in all flavours.
_SIGNS = later(
    r"^[ \t>]*+(?::::|!!!|\?\?\?|///|===[!+]?[ \t]++\"|[`~]{3,}+\{|--+8<|<<<|<!--[ \t]*+@)"
    r"|\{\{[<%#]|\{[%*]|&[#\w]{1,20}+;",
    re.MULTILINE,
)
_FENCE = later(r"[ \t]*+(?:[-*+>]|\d{1,9}[.)]|[ \t])*+(`{3,}+(?![^`]*+`)|~{3,}+)(.*)")
# MyST writes directives as fences.
_DIRECTIVE = later(
    r"\{(note|tip|hint|important|warning|caution|danger|attention|error|seealso|admonition|"
    r"deprecated|versionadded|versionchanged|dropdown|tab-item|tab-set|grid|grid-item|card)\}(.*)"
)
_COLONS = later(r"([ \t>]*+):{3,}+[ \t]*+(.*)")
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
_BRACES = later(r"\{[^{}]{0,300}+\}")

_IMPORT = later(
    r"import\b[ \t]*+(?:[\"'{*]|type\b|[\w$]++[ \t]*+(?:,|from\b))"
    r"|export[ \t]++(?:default|const|let|var|function|async|class|type|interface|\{|\*)"
)

_TEXTS = r"title|label|text|alt|caption|header|heading|summary|description|desc|name|tab|question"
_STRING = later(r"(?:\b([\w-]{1,40}+)[ \t]*+=[ \t]*+)?(?:\"([^\"]{0,500}+)\"|`([^`]{0,500}+)`)")
_SEEN = later(_TEXTS)
_NOTES = frozenset({"note", "tip", "info", "warning", "caution", "danger", "important", "alert"})
_LINKS = frozenset({"ref", "relref", "link", "url"})

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


def unwrapped(text: str, suffix: str) -> str:
    """Return a markdown text without the marks of site generators, with the same lines."""
    is_mdx = suffix == MDX
    has_html = not is_mdx and _HTML_SIGN.search(text) is not None
    if not is_mdx and not has_html and not _SIGNS.search(text):
        return text
    lines = _Lines(text, is_mdx=is_mdx)
    lines.read()
    body = "\n".join(lines.lines)
    spans = lines.code_spans()
    if "{{" in body or "{%" in body:
        body, _ = rewritten(body, Rewrite(_SHORTCODE, _shortcode), spans)
        # A tag may have been longer than what it says.
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

    def _open_fence(self, number: int, opening: re.Match[str]) -> None:
        directive = _DIRECTIVE.match(opening[2].strip())
        if directive is None or len(self.directives) == _DEPTH:
            self.fence = opening[1]
            self.is_code[number] = 1
            return
        self.directives.append(opening[1])
        self.lines[number] = _label(directive[1], directive[2])
        # Options of a directive say nothing to a reader.
        following = number + 1
        while following < len(self.lines) and _OPTION.match(self.lines[following]):
            self.lines[following] = ""
            following += 1

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
        colons = _COLONS.match(line)
        if colons:
            words = _BRACES.sub(lambda braces: f"{braces[0].strip('{}')} ", colons[2])
            name, _, title = words.replace("[", " ").partition(" ")
            self.lines[number] = colons[1] + _label(name, title.replace("]", " "))
            return
        slashes = _SLASHES.match(line)
        if slashes:
            label = _label(slashes["name"] or "", slashes["title"] or "")
            self.lines[number] = slashes[1] + label
            return
        indented = _INDENTED.match(line)
        if indented:
            label = _label(indented["name"] or "", indented["title"] or indented["tab"] or "")
            self.lines[number] = indented[1] + label
            if len(self.columns) < _DEPTH:
                self.columns.append(indent + _WIDTH)

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


def _closes(line: str, marks: str) -> bool:
    """Tell whether a line is nothing but the marks that close a fence."""
    bare = line.strip(" \t>\r")
    return len(bare) >= len(marks) and not bare.strip(marks[0])


def _label(name: str, title: str) -> str:
    """Return the kind and the title of a container as words."""
    words = [part.strip(" \t\"'{}:") for part in (name, title)]
    label = ": ".join(filter(None, words))
    if label and not words[1]:
        label += ":"
    return label


def _strings(arguments: str) -> list[str]:
    """Return the quoted words that a reader of the site sees."""
    words = []
    for match in _STRING.finditer(arguments):
        key, double, backticked = match.groups()
        if not key or _SEEN.fullmatch(key.casefold()):
            words.append(double or backticked or "")
    return words


def _shortcode(match: re.Match[str]) -> Replacement:
    name = match["name"]
    if name is None or match["closing"]:
        return "", "", ""
    words = _strings(match["arguments"])
    if name in _LINKS:
        return "".join(words[:1]), "", ""
    if name in _NOTES:
        return _label(name, " ".join(words)), "", ""
    return " ".join(words), "", ""


def _tag(match: re.Match[str]) -> Replacement:
    if match[0][0] == "`":
        return match[0], "", ""
    if (match["comment"] or "").strip().startswith("#"):
        # The id of a heading.
        return f"{{{match['comment'].strip()}}}", "", ""
    if match["name"] is None or match["closing"]:
        return "", "", ""
    arguments = match["arguments"]
    words = " ".join(" ".join(_strings(arguments)).split())
    href = _HREF.search(arguments)
    if words and href:
        return f"[{words}]({href[1]})", "", ""
    return words, "", ""


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
