"""JSON with comments and trailing commas, changed in place: every other character stays as it is.

Clients let people comment their settings, and `json.dumps` would lose that. So a text is scanned
into nodes that know where they stand, a change is a few insertions and deletions, and the result is
read again: it must hold the same values but for the one that was meant.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragdocs.errors import ParseError

Key = str | int
Path = Sequence[Key]
# Replace what is between two offsets.
Edit = tuple[int, int, str]

MOST_NESTED = 100
INDENT = "  "
_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)+", re.DOTALL)
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_NEWLINE = re.compile(r"\r?\n|\r")
_LINE_END = re.compile(r"[ \t]*[\r\n]")
_BLANK = re.compile(r"[ \t]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD = re.compile(r"[-+.\w]+")
# What may follow a value on its line: its comment belongs to it.
_REST_OF_LINE = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/)")
_BRACKETS = {"{": "}", "[": "]"}


@dataclass(slots=True)
class Node:
    """A value and where it stands; objects and lists have members."""

    start: int
    end: int
    value: Any
    members: list[Member] = field(default_factory=list)


@dataclass(slots=True)
class Member:
    """A part of an object or list: from its key, if it has one, to the end of its value."""

    key: Key
    start: int
    node: Node
    # The offset behind its comma, or of its end if it has none.
    end: int

    @property
    def has_comma(self) -> bool:
        """Whether a comma follows it."""
        return self.end > self.node.end


class _Scanner:
    """Reads one text from the left to the right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.offset = 0

    def document(self) -> Node | None:
        """Read the whole text; nothing if there are only spaces and comments in it."""
        self.skip()
        if self.offset == len(self.text):
            return None
        node = self.node(0)
        self.skip()
        if self.offset < len(self.text):
            raise self.error("there is something behind the end")
        return node

    def skip(self) -> None:
        """Go on behind spaces and comments."""
        match = _SPACE.match(self.text, self.offset)
        if match:
            self.offset = match.end()

    def node(self, depth: int) -> Node:
        """Read a value."""
        if depth > MOST_NESTED:
            raise self.error("it is nested too deep")
        start = self.offset
        first = self.text[start : start + 1]
        if first in ("{", "["):
            return self.container(first, depth)
        if first == '"':
            value: Any = self.string()
        else:
            value = self.word()
        return Node(start, self.offset, value)

    def container(self, bracket: str, depth: int) -> Node:
        """Read an object or a list."""
        start = self.offset
        closing = _BRACKETS[bracket]
        members: list[Member] = []
        self.offset += 1
        self.skip()
        while self.text[self.offset : self.offset + 1] != closing:
            if members and not members[-1].has_comma:
                raise self.error(f"a comma or {closing} is missing")
            members.append(self.member(bracket, len(members), depth))
        self.offset += 1
        if bracket == "[":
            return Node(start, self.offset, [each.node.value for each in members], members)
        return Node(start, self.offset, {each.key: each.node.value for each in members}, members)

    def member(self, bracket: str, position: int, depth: int) -> Member:
        """Read a member with the comma behind it."""
        start = self.offset
        key: Key = position
        if bracket == "{":
            key = self.string()
            self.skip()
            if self.text[self.offset : self.offset + 1] != ":":
                raise self.error("a colon is missing")
            self.offset += 1
            self.skip()
        node = self.node(depth + 1)
        self.skip()
        end = node.end
        if self.text[self.offset : self.offset + 1] == ",":
            self.offset += 1
            end = self.offset
            self.skip()
        return Member(key, start, node, end)

    def string(self) -> str:
        """Read a string."""
        match = _STRING.match(self.text, self.offset)
        if match is None:
            raise self.error("a string in double quotes is missing")
        return str(self.loaded(match))

    def word(self) -> Any:
        """Read a number or a constant."""
        match = _WORD.match(self.text, self.offset)
        if match is None or match[0] in {"NaN", "Infinity", "-Infinity"}:
            raise self.error("a value is missing")
        return self.loaded(match)

    def loaded(self, match: re.Match[str]) -> Any:
        """Return the value of a token."""
        try:
            value = json.loads(match[0])
        except ValueError:
            raise self.error(f"{match[0][:40]!r} is not a value") from None
        self.offset = match.end()
        return value

    def error(self, reason: str) -> ParseError:
        """Return an error that names the line."""
        line = self.text.count("\n", 0, self.offset) + 1
        return ParseError(f"line {line}: {reason}")


def loads(text: str) -> Any:
    """Return the value of a text; nothing if there are only spaces and comments in it."""
    node = _Scanner(text).document()
    if node is None:
        return None
    return node.value


def put(text: str, path: Path, value: Any) -> str:
    """Return the text with a value at a path; missing objects on the way are added."""

    def change(parent: dict[Key, Any]) -> None:
        parent[path[-1]] = value

    return _changed(text, path, value, change, grows=False)


def append(text: str, path: Path, value: Any) -> str:
    """Return the text with a value at the end of the list at a path, which is made if missing."""

    def change(parent: dict[Key, Any]) -> None:
        parent.setdefault(path[-1], []).append(value)

    return _changed(text, path, value, change, grows=True)


def remove(text: str, path: Path) -> str:
    """Return the text without the member at a path."""
    root = _document(text)
    *above, last = path
    parent = root
    for key in above:
        member = _member(parent, key)
        if member is None:
            return text
        parent = member.node
    member = _member(parent, last)
    if member is None:
        return text
    expected = copy.deepcopy(root.value)
    del _within(expected, above)[last]
    return _checked(_apply(text, _removal(text, parent, member)), expected)


def existing(text: str, path: Path) -> int:
    """Return how many keys of a path lead somewhere."""
    node = _Scanner(text).document()
    for depth, key in enumerate(path):
        member = node and _member(node, key)
        if not member:
            return depth
        node = member.node
    return len(path)


def _changed(
    text: str, path: Path, value: Any, change: Callable[[Any], None], *, grows: bool
) -> str:
    if _Scanner(text).document() is None:
        return _fresh(text, path, [value] if grows else value)
    root = _document(text)
    expected = copy.deepcopy(root.value)
    parent = root
    for depth, key in enumerate(path):
        if not isinstance(parent.value, dict):
            raise ParseError(f"{_named(path[:depth])} is not an object")
        member = _member(parent, key)
        if member is None:
            rest = _nested(path[depth + 1 :], [value] if grows else value)
            edits = _insertion(text, parent, key, rest)
            break
        parent = member.node
    else:
        edits = _at_the_end_of_path(text, parent, path, value, grows=grows)
    change(_made(expected, path[:-1]))
    return _checked(_apply(text, edits), expected)


def _at_the_end_of_path(
    text: str, node: Node, path: Path, value: Any, *, grows: bool
) -> list[Edit]:
    """Return how a node that exists gets its value, or one item more."""
    if grows:
        if not isinstance(node.value, list):
            raise ParseError(f"{_named(path)} is not a list")
        return _insertion(text, node, len(node.members), value)
    if node.value == value:
        return []
    written = _dumped(value, _newline(text), _indent(text), _line_indent(text, node.start))
    return [(node.start, node.end, written)]


def _document(text: str) -> Node:
    node = _Scanner(text).document()
    if node is None or not isinstance(node.value, dict):
        raise ParseError("it is not a JSON object")
    return node


def _member(node: Node, key: Key) -> Member | None:
    members = [member for member in node.members if member.key == key]
    if len(members) > 1:
        raise ParseError(f"it has {json.dumps(key)} twice")
    if not members:
        return None
    return members[0]


def _named(path: Path) -> str:
    return ".".join(map(str, path)) or "the whole"


def _nested(keys: Path, value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _within(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def _made(value: Any, path: Path) -> Any:
    for key in path:
        value = value.setdefault(key, {})
    return value


# --- how it is written ---


def _fresh(text: str, path: Path, value: Any) -> str:
    """Write the first value of a text, behind the comments that it may have."""
    newline = _newline(text)
    written = _dumped(_nested(path, value), newline, INDENT, "") + newline
    if not text.strip():
        return written
    if not text.endswith(("\n", "\r")):
        text += newline
    return text + written


def _dumped(value: Any, newline: str, indent: str, line_indent: str) -> str:
    lines = dumps(value, indent).split("\n")
    return (newline + line_indent).join(lines)


def dumps(value: Any, indent: str = INDENT) -> str:
    """Write a value as people do: an object has a line for each member, a plain list has one."""
    if not isinstance(value, dict | list) or not value:
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        parts = [
            f"{json.dumps(key, ensure_ascii=False)}: {dumps(value[key], indent)}" for key in value
        ]
        return _in_lines("{", parts, "}", indent)
    parts = [dumps(item, indent) for item in value]
    if "\n" in "".join(parts):
        return _in_lines("[", parts, "]", indent)
    return f"[{', '.join(parts)}]"


def _in_lines(opening: str, parts: Sequence[str], closing: str, indent: str) -> str:
    lines = ",\n".join(parts).replace("\n", f"\n{indent}")
    return f"{opening}\n{indent}{lines}\n{closing}"


def _newline(text: str) -> str:
    first = text.find("\n")
    if first > 0 and text[first - 1] == "\r":
        return "\r\n"
    return "\n"


def _indent(text: str) -> str:
    """Return by how much the first member of the text is indented, if by spaces or tabs alone."""
    node = _Scanner(text).document()
    if node is None or not node.members:
        return INDENT
    return _own_line_indent(text, node.members[0].start) or INDENT


def _line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1


def _line_indent(text: str, offset: int) -> str:
    """Return the spaces at the beginning of a line."""
    match = _BLANK.match(text, _line_start(text, offset))
    assert match is not None
    return match[0]


def _own_line_indent(text: str, offset: int) -> str | None:
    """Return the spaces before an offset if there is nothing else before it in its line."""
    before = text[_line_start(text, offset) : offset]
    if before.strip(" \t"):
        return None
    return before


def _insertion(text: str, parent: Node, key: Key, value: Any) -> list[Edit]:
    """Return the edits that add a member at the end of an object or list."""
    newline = _newline(text)
    indent = _indent(text)
    name = ""
    if isinstance(parent.value, dict):
        name = f"{json.dumps(key, ensure_ascii=False)}: "
    line_indent = _line_indent(text, parent.start)
    if not parent.members:
        member_indent = line_indent + indent
        written = name + _dumped(value, newline, indent, member_indent)
        start = parent.start + 1
        is_bare = not text[start : parent.end - 1].strip()
        if is_bare:
            inner = f"{newline}{member_indent}{written}{newline}{line_indent}"
            return [(start, parent.end - 1, inner)]
        return [(start, start, f"{newline}{member_indent}{written}")]
    last = parent.members[-1]
    own_indent = _own_line_indent(text, last.start)
    if own_indent is None:
        # All in one line.
        written = name + json.dumps(value, ensure_ascii=False)
        if last.has_comma:
            return [(last.end, last.end, f" {written},")]
        return [(last.end, last.end, f", {written}")]
    written = f"{newline}{own_indent}{name}{_dumped(value, newline, indent, own_indent)}"
    rest = _REST_OF_LINE.match(text, last.end)
    end = last.end
    if rest:
        end = rest.end()
    if last.has_comma:
        return [(end, end, f"{written},")]
    return [(last.end, last.end, ","), (end, end, written)]


def _removal(text: str, parent: Node, member: Member) -> list[Edit]:
    """Return the edits that take a member out, with the spaces and the comma that came with it."""
    position = parent.members.index(member)
    is_last = member is parent.members[-1]
    start = parent.start + 1
    if position:
        start = parent.members[position - 1].end
    before = start + len(text[start : member.start].rstrip())
    if _ends_in_line_comment(text[start:before]) and not _LINE_END.match(text, member.end):
        # The comment would run on.
        newline = _NEWLINE.search(text, before)
        assert newline is not None
        before = newline.end()
    if len(parent.members) == 1:
        last = parent.end - 1
        before_it = text[start : member.start]
        after_it = text[member.end : last]
        if not before_it.strip() and not after_it.strip():
            return [(start, last, "")]
        return [(before, member.end, "")]
    if not is_last:
        following = text[member.end :]
        return [(member.start, member.end + len(following) - len(following.lstrip()), "")]
    edits: list[Edit] = []
    if not member.has_comma:
        edits.append((start - 1, start, ""))
        before = max(before, start)
    return [*edits, (before, member.end, "")]


def _ends_in_line_comment(gap: str) -> bool:
    comments = _COMMENT.findall(gap)
    return bool(comments) and comments[-1].startswith("//")


def _apply(text: str, edits: Sequence[Edit]) -> str:
    # From the end, so that offsets stay right; of two at one offset, the second is written behind.
    for start, end, written in reversed(edits):
        text = text[:start] + written + text[end:]
    return text


def _checked(text: str, expected: Any) -> str:
    """Return a text if it says what it should; a text that is not understood is left alone."""
    if loads(text) != expected:
        raise ParseError("it is written in a way that cannot be changed safely")
    return text
