"""HTML: what a reader of the page sees of it, without navigation, scripts and styles.

A pass over the tags is enough for that and keeps the line numbers; no tree is built.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from ragdocs.system.patterns import later
from ragdocs.text.formats.page import (
    BLOCK_LIMIT,
    LINE_LIMIT,
    REFERENCE_LIMIT,
    Page,
    Reference,
    caption,
    covering,
    names,
)
from ragdocs.types import Block, BlockKind

# Characters of a text that tell whether it is HTML.
_PROBE = 2_000
# Tags of a page; what stands below so many is left out.
_MOST_TAGS = 500_000
_TAG = later(
    r"<(?P<closing>/?)(?P<name>[a-zA-Z][a-zA-Z0-9:-]{0,40}+)"
    r"(?P<attributes>(?:[^<>\"']++|\"[^\"]{0,4000}+\"|'[^']{0,4000}+'){0,60}+)>"
)
_ATTRIBUTE = later(
    r"([a-zA-Z][\w:-]{0,40}+)[ \t\n]*+=[ \t\n]*+"
    r"(?:\"([^\"]{0,4000}+)\"|'([^']{0,4000}+)'|([^\s\"'<>]{1,4000}+))"
)
_MARKUP = later(r"<[a-zA-Z/!?]")
_SIGN = later(r"\s*+(?:<\?xml[^>]{0,200}+>\s*+)?<(?:!doctype\s++html|html\b)", re.IGNORECASE)
_SPACES = later(r"\s++")

# Elements whose content is no text, up to their closing tag.
_RAW = frozenset({"script", "style", "textarea", "template", "noscript", "svg", "math", "iframe"})
_CLOSING = {name: re.compile(f"</{name}", re.IGNORECASE) for name in (*_RAW, "main", "article")}
_HIDDEN = frozenset({"nav", "footer", "button", "select", "head"})
# Hidden outside of the main content only: in it they are headings and notes.
_HIDDEN_AROUND = frozenset({"header", "aside"})
_HIDDEN_ROLES = frozenset({"navigation", "banner", "contentinfo", "search"})
_HIDDEN_CLASSES = names(
    "nav navbar navigation sidebar sphinxsidebar breadcrumb breadcrumbs toc menu footer topbar "
    "pagination headerlink hash-link related nav-chapters nav-wrapper table-of-contents skip-link "
    "edit-this-page menu-bar"
)
# A number that no character has; Python refuses to read thousands of digits.
_LONG_NUMBER = later(r"&#[xX]?[0-9a-fA-F]{10,}+;?")
# What stands before the words of an item of a list, and of the definition of a term.
_MARKS = {"li": "- ", "dd": ": "}
# What an item may begin with and is still read behind its mark.
_ITEM_TEXTS = frozenset({"p", "div"})
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BREAKS = names(
    "p div section article main ul ol dl dt dd table thead tbody tr blockquote figure figcaption "
    "hr br address details summary fieldset pre body html caption li h1 h2 h3 h4 h5 h6"
)
# Elements without content, and those whose closing tag is often left out.
_VOID = names(
    "area base br col embed hr img input link meta source track wbr p li td th tr dt dd option "
    "thead tbody colgroup"
)
_MAIN = later(
    r"<(?P<name>main|article)\b|<(?P<role>[a-z]{1,10})\b[^<>]{0,500}\brole=[\"']?main\b",
    re.IGNORECASE,
)


def recognises(text: str) -> bool:
    """Tell whether a text is a page of HTML."""
    return bool(_SIGN.match(text[:_PROBE]))


def read(text: str, path: str) -> Page:  # noqa: ARG001 - every reader is told the path
    """Read the main content of a page, its title, headings and links."""
    return _Reader(text).page()


class _Run(NamedTuple):
    """Text between two tags, or a tag with its attributes; `start` is an offset in the file."""

    start: int
    text: str = ""
    tag: str = ""
    is_closing: bool = False
    attributes: str = ""


def _runs(text: str) -> Iterator[_Run]:
    """Yield texts and tags in order, without comments and without the content of scripts."""
    last_comment_end = text.rfind("-->")
    done = 0
    while True:
        opening = _MARKUP.search(text, done)
        if not opening:
            yield _Run(done, text[done:])
            return
        start = opening.start()
        if start > done:
            yield _Run(done, text[done:start])
        if text.startswith("<!--", start) and start + 4 <= last_comment_end:
            done = text.index("-->", start + 4) + 3
            continue
        tag = _TAG.match(text, start)
        if not tag:
            # A declaration, or a tag that is never closed or too long to be read.
            done = text.find(">", start) + 1 or len(text)
            continue
        done = tag.end()
        name = tag["name"].lower()
        yield _Run(start, "", name, bool(tag["closing"]), tag["attributes"])
        if name in _RAW and not tag["closing"] and not tag["attributes"].endswith("/"):
            closing = _CLOSING[name].search(text, done)
            done = closing.start() if closing else len(text)


def _unescaped(text: str) -> str:
    """Return a text with its character references replaced."""
    if "&" not in text:
        return text
    return html.unescape(_LONG_NUMBER.sub("\ufffd", text))


def _values(attributes: str) -> dict[str, str]:
    """Return the attributes of a tag."""
    values: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(attributes):
        value = match[2] or match[3] or match[4] or ""
        values.setdefault(match[1].lower(), _unescaped(value).strip())
    return values


class _Reader:
    """Collects the lines of a page; a block ends where a tag begins a new line."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines: list[str] = []
        self.numbers: list[int] = []
        self.blocks: list[Block] = []
        self.references: list[Reference] = []
        self.length = 0
        self.title = ""
        # The words of the line that is read, and the line of the file at which it begins.
        self.words: list[str] = []
        self.width = 0
        self.number = 1
        # Where the block begins that is read: its first line, and the offset of that.
        self.first_line = -1
        self.start = 0
        self.counted = 0
        self.current = 1
        # The kind of the block that is read, its level and its ids.
        self.kind: BlockKind = "text"
        self.level = 0
        self.anchors: list[str] = []
        self.hidden = _Hidden()
        self.has_main = False
        self.links: list[tuple[str, int]] = []

    def page(self) -> Page:
        """Read all runs."""
        begin, end = _main_span(self.text)
        self.has_main = begin > 0
        is_title = False
        problems = []
        for count, run in enumerate(_runs(self.text)):
            if count >= _MOST_TAGS:
                problems.append(f"only the first {_MOST_TAGS:,} tags and texts are read")
                break
            if run.tag == "title" and not self.title:
                is_title = not run.is_closing
            elif is_title and run.text:
                self.title = caption(_unescaped(run.text))
                is_title = False
            elif begin <= run.start < end and self._has_room():
                self._run(run)
        self._flush()
        body = "\n".join(self.lines)
        references = []
        for reference in self.references:
            stop = min(reference.stop, len(body))
            references.append(reference._replace(start=min(reference.start, stop), stop=stop))
        title = self.title
        if any(block.level == 1 for block in self.blocks):
            # The title of the window often names the site as well.
            title = ""
        return Page(
            body=body,
            blocks=covering(body, self.blocks),
            title=title,
            numbers=self.numbers or (1,),
            references=references,
            problems=problems,
        )

    def _has_room(self) -> bool:
        return len(self.blocks) < BLOCK_LIMIT and len(self.lines) < LINE_LIMIT

    def _run(self, run: _Run) -> None:
        if run.tag:
            self._tag(run)
        elif not self.hidden.depth:
            self._text(run)

    # --- tags ---

    def _tag(self, run: _Run) -> None:
        if self.hidden.depth or self._hides(run):
            self.hidden.follow(run)
            return
        name = run.tag
        if self.kind == "fence" and name != "pre":
            return
        if name in _BREAKS and not (self._is_bare_item and name in _ITEM_TEXTS):
            self._flush()
        if name in _HEADINGS:
            self._heading(run)
        elif name == "pre":
            self.kind = "text" if run.is_closing else "fence"
        elif name == "a":
            self._anchor(run)
        else:
            self._mark(run)

    def _mark(self, run: _Run) -> None:
        """Write what is seen of a tag by itself."""
        name = run.tag
        if name in _MARKS and not run.is_closing:
            self._mark_words(_MARKS[name], run.start)
        elif name in {"td", "th"} and run.is_closing:
            self._mark_words(" | ", run.start)
        elif name == "img" and "alt" in run.attributes:
            self._mark_words(_values(run.attributes).get("alt", ""), run.start)
        elif "id" in run.attributes and name in {"section", "div", "span"}:
            self._identify(run)

    def _hides(self, run: _Run) -> bool:
        """Tell whether an element is no part of what the page says."""
        if run.is_closing or run.tag in _VOID:
            return False
        if run.tag in _HIDDEN or run.tag in _RAW:
            return True
        if run.tag in _HIDDEN_AROUND and not self.has_main:
            return True
        attributes = run.attributes
        if "role" not in attributes and "class" not in attributes:
            return False
        values = _values(attributes)
        if values.get("role", "") in _HIDDEN_ROLES:
            return True
        classes = values.get("class", "").casefold().split()
        return not _HIDDEN_CLASSES.isdisjoint(classes)

    def _heading(self, run: _Run) -> None:
        if run.is_closing:
            self.kind, self.level = "text", 0
            return
        self.kind = "heading"
        self.level = _HEADINGS[run.tag]
        self._identify(run)

    def _identify(self, run: _Run) -> None:
        """Note the id of a heading, or of what stands right above one."""
        identifier = _values(run.attributes).get("id", "")
        if identifier and not run.is_closing:
            # Of an id that no heading follows at once, nothing is kept.
            self.anchors = [*self.anchors[-2:], identifier.casefold()[:200]]

    def _anchor(self, run: _Run) -> None:
        offset = self.length + self.width
        if not run.is_closing:
            values = _values(run.attributes)
            identifier = values.get("id") or values.get("name")
            if identifier:
                self.anchors = [*self.anchors[-2:], identifier.casefold()[:200]]
            self.links = [(values.get("href", ""), offset)]
        elif self.links:
            href, start = self.links.pop()
            is_room = len(self.references) < REFERENCE_LIMIT
            if href and not href.startswith("#") and is_room and offset > start:
                self.references.append(Reference(start, offset, href))

    # --- text ---

    def _text(self, run: _Run) -> None:
        """Add text line by line: its line breaks are those of the file."""
        number = self._line_of(run.start)
        for position, line in enumerate(run.text.split("\n", LINE_LIMIT)[:LINE_LIMIT]):
            if position:
                self._end_line()
                number += 1
            words = _unescaped(line).replace("\n", " ")
            if self.kind != "fence":
                words = _SPACES.sub(" ", words)
            self._add(words, number)

    def _mark_words(self, words: str, start: int) -> None:
        self._add(words, self._line_of(start))

    @property
    def _is_bare_item(self) -> bool:
        """Whether the mark of a list item waits for the item's text."""
        return len(self.words) == 1 and self.words[0] in _MARKS.values()

    def _add(self, words: str, number: int) -> None:
        if not self.words or self._is_bare_item:
            self.number = number
            if self.kind != "fence":
                words = words.lstrip()
        if words:
            self.words.append(words)
            self.width += len(words)

    def _line_of(self, offset: int) -> int:
        self.current += self.text.count("\n", self.counted, offset)
        self.counted = max(offset, self.counted)
        return self.current

    def _end_line(self) -> None:
        """Finish a line; a blank one counts in code only, and below other lines of it."""
        if self._is_bare_item:
            return
        line = "".join(self.words).rstrip()
        is_first = self.first_line < 0
        if line and is_first:
            self.first_line = len(self.lines)
            self.start = self.length
        if line or (self.kind == "fence" and not is_first):
            self._append(line)
        self.words = []
        self.width = 0

    def _append(self, line: str) -> None:
        if self.numbers:
            self.number = max(self.number, self.numbers[-1])
        self.lines.append(line)
        self.numbers.append(self.number)
        self.length += len(line) + 1

    def _flush(self) -> None:
        """Make a block of the lines since the last one."""
        if self._is_bare_item:
            self.words = []
            self.width = 0
        if self.words:
            self._end_line()
        first = self.first_line
        if first < 0:
            return
        self.first_line = -1
        while not self.lines[-1]:
            self.lines.pop()
            self.numbers.pop()
            self.length -= 1
        lines = self.lines[first:]
        title = ""
        anchors: tuple[str, ...] = ()
        if self.kind == "heading":
            title = caption(" ".join(lines).removesuffix("¶").removesuffix("#").strip())
            anchors = tuple(self.anchors)
        self.anchors = []
        if "".join(lines).strip(" |-"):
            stop = self.length - 1
            self.blocks.append(
                Block(self.kind, self.start, stop, self.level, title, anchors=anchors)
            )
        else:
            # Marks of an empty list or table.
            self._take_back(first)
        self._append("")

    def _take_back(self, first: int) -> None:
        for position in range(first, len(self.lines)):
            self.length -= len(self.lines[position])
            self.lines[position] = ""


class _Hidden:
    """How deep in elements that are not shown the reader is; only their own tags are counted."""

    def __init__(self) -> None:
        self.depth = 0
        self.name = ""

    def follow(self, run: _Run) -> None:
        """Take a tag of a hidden element, or the tag that begins one."""
        if not self.depth:
            self.name = run.tag
            self.depth = 1
        elif run.tag == self.name and not run.attributes.endswith("/"):
            self.depth += -1 if run.is_closing else 1


def _main_span(text: str) -> tuple[int, int]:
    """Return where the main content of a page begins and ends; without any it is all of it."""
    main = None
    for match in _MAIN.finditer(text):
        name = (match["name"] or match["role"]).lower()
        if main is None or name == "main":
            main = match
        if name != "article":
            break
    if main is None:
        return 0, len(text)
    name = (main["name"] or main["role"]).lower()
    if name not in {"main", "article"}:
        # Where an element like a div ends is not known without a tree.
        return main.start(), len(text)
    end = len(text)
    for closing in _CLOSING[name].finditer(text, main.start()):
        end = closing.start()
    return main.start(), end
