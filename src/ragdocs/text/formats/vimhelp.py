"""Help files of Vim: sections between rules, tags as ids, links between bars, and examples."""

from __future__ import annotations

import re

from ragdocs.text.formats.page import (
    REFERENCE_LIMIT,
    Page,
    Replacement,
    Rewrite,
    Sheet,
    caption,
    indent_of,
    is_blank,
)

# Lines at the top in which the subject is named.
_TOP = 15
# Spaces before a line that stands in the middle of it.
_CENTRED = 8

_FIRST = re.compile(r"\*(?P<name>[\w.@-]{1,80}?)\.(?:txt|\w\wx)\*(?P<rest>.*)$")
_VERSION = re.compile(r"\bFor \w+ version\b.*|\bLast [Cc]hange:.*")
_RULE = re.compile(r"(=|-)\1{19,}+[ \t]*+$")
_TAG = re.compile(r"(?<![^\s])\*([^\s*|]{1,120}+)\*(?![^\s])")
# A heading in capital letters, perhaps with tags behind it.
_CAPITALS = re.compile(r"[A-Z][A-Z0-9 ,.:&/()'-]{2,78}+$")
_MODELINE = re.compile(r"[ \t]*+vim:[^\n]{1,200}+$")
_EXAMPLE = re.compile(r"(?:^|[ \t]):?>(?:[a-z]{1,20}+)?$")
_LINK = re.compile(r"\|(?P<name>[^\s|*]{1,120}+)\|")
_SIGN = re.compile(r"^[^\n]{0,200}?(?:\*[^\s*|]{1,120}\*|\|[^\s*|]{1,120}\|)", re.MULTILINE)


def recognises(text: str) -> bool:
    """Tell whether a text is a help file: its first line is a tag with the name of the file."""
    first, _, rest = text.lstrip("\ufeff\n").partition("\n")
    return _FIRST.match(first) is not None and _SIGN.search(rest[:20_000]) is not None


def read(text: str, path: str) -> Page:  # noqa: ARG001 - every reader is told the path
    """Read the sections, links and examples of a text."""
    return _Reader(text).page()


class _Reader:
    """Goes through the lines once."""

    def __init__(self, text: str) -> None:
        self.sheet = Sheet(text)
        # The tags of each section, by the position of its heading among the parts.
        self.tags: dict[int, list[str]] = {}
        self.section = -1

    def page(self) -> Page:
        """Read all lines."""
        title = self._title()
        number = 0
        level = 0
        while number < self.sheet.count:
            rule = _RULE.match(self.sheet.lines[number])
            if rule:
                self.sheet.blank(number)
                level = 1 if rule[1] == "=" else 2
            elif _MODELINE.match(self.sheet.lines[number]):
                self.sheet.blank(number)
            elif not is_blank(self.sheet.lines[number]):
                number = self._line(number, level)
                level = 0
            number += 1
        for position, tags in self.tags.items():
            heading = self.sheet.parts[position]
            self.sheet.parts[position] = heading._replace(anchors=tuple(tags))
        return self.sheet.page(Rewrite(_LINK, _link), title)

    def _title(self) -> str:
        """Return what the file is about, as its first lines say."""
        rows = self.sheet.lines
        first = next((row for row in rows if row.strip()), "")
        named = _FIRST.match(first)
        if not named:
            return ""
        title = _VERSION.sub("", named["rest"]).strip()
        start = rows.index(first) + 1
        for row in rows[start : start + _TOP]:
            words = _TAG.sub("", row).strip()
            if _RULE.match(row):
                break
            if words and _TAG.search(row):
                title = words
                break
            if words and indent_of(row) >= _CENTRED:
                title = words
        return caption(title or named["name"])

    def _line(self, number: int, level: int) -> int:
        """Read a line, and return the last one that was read with it."""
        rows = self.sheet.lines
        line = rows[number].rstrip()
        tags = _TAG.findall(line)
        words = _TAG.sub("", line).strip()
        follows_blank = number == 0 or is_blank(rows[number - 1])
        if follows_blank and not level and _CAPITALS.match(words) and not line[0].isspace():
            level = 3
        if level and words:
            rows[number] = words
            self.section = len(self.sheet.parts)
            self.sheet.heading(number, level)
        if tags and self.section >= 0:
            section = self.tags.setdefault(self.section, [])
            section += [tag.casefold() for tag in tags[: REFERENCE_LIMIT - len(section)]]
        if level and words:
            return number
        if tags:
            line = _TAG.sub(r"\1", line)
        line = line.removesuffix(" ~")
        rows[number] = line
        if _EXAMPLE.search(line):
            return self._example(number, line)
        return number

    def _example(self, number: int, line: str) -> int:
        """Read the lines below a sign: they are code until one is not indented."""
        rows = self.sheet.lines
        rows[number] = line[: line.rindex(">")].rstrip()
        last = self.sheet.indented(number + 1, 0)
        self.sheet.code(number + 1, last)
        end = last + 1
        if end < self.sheet.count and rows[end].startswith("<"):
            rows[end] = rows[end][1:]
        return max(number, last)


def _link(match: re.Match[str]) -> Replacement:
    return match["name"], "", match["name"].casefold()
