"""reStructuredText: titles, directives, roles and labels."""

from __future__ import annotations

import posixpath
import re

from ragdocs.text.formats.page import (
    INCLUDES,
    Page,
    Replacement,
    Rewrite,
    Sheet,
    indent_of,
    is_blank,
    names,
)

# Characters of a text that tell whether it is reStructuredText.
_PROBE = 20_000
# An underline that is shorter than its title, but as long as this, is still one.
_SURE_RULE = 4

_RULE = re.compile(r"([!-/:-@\[-`{-~])\1{1,}+\s*+$")
# Above everything else, for the generator of a site.
_FILE_SETTING = re.compile(r":(?:tocdepth|orphan|nocomments|no-?search):")
_MARKUP = re.compile(r"([ \t]*+)\.\.(?:[ \t]++|$)")
_LABEL = re.compile(r"_(?:`([^`]{1,200}+)`|([^:`][^:]{0,200}?)):[ \t]*+(\S.*)?$")
_NAMED = re.compile(r"(?:\|[^|]{1,100}+\|[ \t]++)?([\w+:.-]{1,80}?)::(?:[ \t]++(.*))?$")
_OPTION = re.compile(r"[ \t]++:([\w -]{1,40}+):(?:[ \t]++(.*))?$")
_ENTRY = re.compile(
    r"[ \t]*+(?:(?P<title>[^<>]{1,300}+)<(?P<named>[^<>]{1,500}+)>|(?P<bare>\S++))[ \t]*+$"
)
_TABLE_RULE = re.compile(r"[ \t]*+(?:\+[-=+]{2,}+|=++(?:[ ]++=++)++|-++(?:[ ]++-++)++)[ \t]*+$")
_SIGN = re.compile(
    r"^\.\. (?:[\w-]{2,40}+::|_[^:\n]{1,100}+:)|:[a-z]{2,20}+:`[^`\n]++`|^[^\n]{1,200}::\n\n[ \t]",
    re.MULTILINE,
)

_CODE = names(
    "code code-block sourcecode parsed-literal doctest testcode testoutput prompt math "
    "console ipython highlight-code productionlist graphviz mermaid uml"
)
# Directives of which a reader sees nothing.
_UNSEEN = names("raw index meta testsetup testcleanup")
_MARKS_ONLY = names(
    "toctree contents highlight image figure rst-class class-style container only tabularcolumns "
    "tabs grid list-table csv-table table default-role sectnum autosummary"
)
_FILES = frozenset({"include", "literalinclude"})
_SEEN_OPTIONS = frozenset({"alt", "caption", "title", "header"})
_CHARACTERS = r"(?:[^`\n\\]|\\.|\n(?![ \t]*+\n)){1,600}?"
_INLINE = re.compile(
    r"``[^\n]{1,400}?``"
    rf"|:(?P<role>[a-zA-Z][\w:+.-]{{0,60}}):`(?P<content>{_CHARACTERS})`"
    rf"|(?<![\w`])`(?P<text>{_CHARACTERS})`(?P<link>__?+)(?!\w)"
)
# An ending that a backslash parts from the markup before it: ``QuerySet``\\s.
_ENDING = re.compile(r"([`*])\\(?=\w)")
_TARGET = re.compile(r"(.*?)\s*<([^<>]{1,500})>\s*\Z", re.DOTALL)


def recognises(text: str) -> bool:
    """Tell whether a text is reStructuredText, by its first lines and its directives."""
    text = text[:_PROBE]
    if _SIGN.search(text):
        return True
    lines = text.lstrip("\n").split("\n", 4)
    is_titled = len(lines) > 1 and _title_size(Sheet("\n".join(lines)), 0) > 0
    return is_titled and not lines[0].startswith("#")


def read(text: str, path: str) -> Page:
    """Read the sections, links and code of a text."""
    return _Reader(text, path).page()


def _title_size(sheet: Sheet, number: int) -> int:
    """Return how many lines the title has that begins with a line, 0 if none does."""
    rows = [line.rstrip() for line in sheet.lines[number : number + 3]]
    first, second, third = [*rows, "", ""][:3]
    if _RULE.match(first):
        is_framed = third == first and 0 < len(second.strip()) <= len(first)
        if is_framed and not _RULE.match(second):
            return 3
        return 0
    if not first or first[0].isspace() or first.startswith(".. ") or second == "::":
        return 0
    rule = _RULE.match(second)
    if not rule or len(second) < min(len(first), _SURE_RULE):
        return 0
    return 2


class _Reader:
    """Goes through the lines once, and looks at the content of a directive where it begins."""

    def __init__(self, text: str, path: str) -> None:
        self.sheet = Sheet(text)
        self.path = path
        self.styles: list[str] = []
        # Labels that stand above the next title.
        self.labels: list[str] = []
        # The titles of sections by their labels, which stand where a reference has no words.
        self.titles: dict[str, str] = {}

    def page(self) -> Page:
        """Read all lines."""
        number = 0
        while number < self.sheet.count:
            number = self._line(number)
        self.titles = self.sheet.titles()
        return self.sheet.page(Rewrite(_INLINE, self._inline))

    def _line(self, number: int) -> int:
        """Read a line, and return the next one to read."""
        line = self.sheet.lines[number]
        if is_blank(line):
            return number + 1
        markup = _MARKUP.match(line)
        if markup:
            return self._explicit(number, markup)
        if number == 0 or is_blank(self.sheet.lines[number - 1]):
            size = _title_size(self.sheet, number)
            if size:
                return self._title(number, size)
        if _TABLE_RULE.match(line) or self._is_mark(number):
            self.sheet.blank(number)
            return number + 1
        self.labels = []
        if line.rstrip().endswith("::"):
            return self._literal(number)
        return number + 1

    def _is_mark(self, number: int) -> bool:
        """Tell whether a line says nothing: a rule between paragraphs, or a setting of the file."""
        line = self.sheet.lines[number].rstrip()
        if _RULE.fullmatch(line):
            around = self.sheet.lines[max(0, number - 1) : number + 2]
            return sum(map(is_blank, around)) == len(around) - 1
        return bool(_FILE_SETTING.match(line)) and not any(
            map(str.strip, self.sheet.lines[:number])
        )

    def _title(self, number: int, size: int) -> int:
        rows = self.sheet.lines
        rule = rows[number + 1].strip()[0]
        titled = number
        if size > 2:  # noqa: PLR2004 - over and under the title
            rule = rows[number].strip()[0] * 2
            titled = number + 1
            self.sheet.blank(number)
        self.sheet.blank(number + size - 1)
        rows[titled] = _ENDING.sub(r"\1", rows[titled].strip())
        if rule not in self.styles:
            self.styles.append(rule)
        self.sheet.heading(titled, self.styles.index(rule) + 1, self.labels)
        self.labels = []
        return number + size

    def _literal(self, number: int) -> int:
        """Read the code below a line that ends with two colons."""
        rows = self.sheet.lines
        line = rows[number].rstrip()
        following = number + 1
        if following < self.sheet.count and not is_blank(rows[following]):
            # The paragraph goes on.
            return following
        last = self.sheet.indented(following, indent_of(line))
        rows[number] = line[:-1] if line.strip() != "::" else ""
        self.sheet.code(following, last)
        return max(following, last + 1)

    # --- explicit markup ---

    def _explicit(self, number: int, markup: re.Match[str]) -> int:
        """Read a label, a footnote, a directive or a comment."""
        rows = self.sheet.lines
        column = indent_of(rows[number])
        rest = rows[number][markup.end() :].rstrip()
        label = _LABEL.match(rest)
        if label:
            self.sheet.blank(number)
            if not label[3]:
                self.labels.append(_label_key(label[1] or label[2]))
            return number + 1
        directive = _NAMED.match(rest)
        if directive:
            return self._directive(number, column, directive)
        if rest.startswith("["):
            rows[number] = f"{markup[1]}{rest}"
            return number + 1
        last = max(number, self.sheet.indented(number + 1, column))
        if not rest and number + 1 < self.sheet.count and is_blank(rows[number + 1]):
            # Two dots alone end what stands above them.
            last = number
        self.sheet.blank(number, last)
        return last + 1

    def _directive(self, number: int, column: int, directive: re.Match[str]) -> int:
        rows = self.sheet.lines
        name = directive[1].casefold()
        argument = (directive[2] or "").strip()
        margin = " " * column
        following = self._options(number + 1, column)
        if name in _UNSEEN:
            last = max(number, self.sheet.indented(following, column))
            self.sheet.blank(number, last)
            return last + 1
        if name in _CODE:
            rows[number] = ""
            last = self.sheet.indented(following, column)
            self.sheet.code(following, last)
            return max(following, last + 1)
        if name in _FILES:
            rows[number] = f"{margin}{argument}"
            self.sheet.link(number, argument, kind=INCLUDES)
            return following
        if name in _MARKS_ONLY:
            rows[number] = ""
            if name == "toctree":
                return self._entries(following, column)
            if name.endswith("table"):
                rows[number] = f"{margin}{argument}"
            return following
        words = filter(None, (directive[1], argument))
        if name == "admonition":
            words = filter(None, (argument,))
        rows[number] = margin + ": ".join(words)
        if not argument:
            rows[number] += ":"
        return following

    def _options(self, number: int, column: int) -> int:
        """Take out the options right below a directive, except those that a reader sees."""
        rows = self.sheet.lines
        while number < self.sheet.count:
            option = _OPTION.match(rows[number])
            if not option or indent_of(rows[number]) <= column:
                break
            words = ""
            if option[1] in _SEEN_OPTIONS:
                words = option[2] or ""
            rows[number] = words
            number += 1
        return number

    def _entries(self, number: int, column: int) -> int:
        """Read the entries of a table of contents as links to documents."""
        last = self.sheet.indented(number, column)
        for following in range(number, last + 1):
            entry = _ENTRY.match(self.sheet.lines[following])
            if entry:
                target = entry["named"] or entry["bare"]
                self.sheet.link(following, self._document(target))
        return max(number, last + 1)

    # --- within lines ---

    def _inline(self, match: re.Match[str]) -> Replacement:
        """Return the words of a role or a link, and where it leads."""
        written = match["content"] or match["text"]
        if written is None:
            return match[0], "", ""
        words = written
        target = written
        explicit = _TARGET.match(written)
        if explicit:
            words, target = explicit.groups()
        if match["content"] is None:
            is_link = explicit is not None
            return words or target, target if is_link else "", ""
        return self._role(match["role"], words, target)

    def _role(self, role: str, words: str, target: str) -> Replacement:
        """Return the words of a role, and where it leads."""
        name = role.rpartition(":")[2].casefold()
        is_explicit = words != target
        target = " ".join(target.split())
        if name == "doc":
            return words, self._document(target), ""
        if name == "download":
            return words, target, ""
        if name in {"ref", "numref", "any"}:
            label = _label_key(target)
            if not is_explicit:
                words = self.titles.get(label, words)
            return words, "", label
        if is_explicit:
            return words, "", ""
        return f"`{words.lstrip('~!')}`", "", ""

    def _document(self, target: str) -> str:
        """Return where the name of a document leads: names have no ending, and may be absolute."""
        if "://" in target or "*" in target or target == "self":
            return ""
        suffix = posixpath.splitext(self.path)[1]
        if not target.endswith(suffix):
            target += suffix
        if target.startswith("/"):
            return f"/{_source_folder(self.path)}{target}".replace("//", "/")
        return target


def _label_key(label: str) -> str:
    return " ".join(label.casefold().split())


def _source_folder(path: str) -> str:
    """Return the folder in which a project's documentation begins, as far as a path tells."""
    folders = path.split("/")[:-1]
    for position, folder in enumerate(folders):
        if folder.casefold() in {"doc", "docs", "documentation"}:
            end = position + 1
            if folders[end : end + 1] in (["source"], ["src"]):
                end += 1
            return "/".join(folders[:end])
    return "/".join(folders[:1])
