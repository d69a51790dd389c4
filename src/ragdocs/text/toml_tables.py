"""Tables of a TOML file, added, changed and taken out in place: every other line stays as it is.

A library that keeps comments (tomlkit) is a second parser and a dependency of every installation,
for two keys in one file of one client. Here a file is cut into statements, and Python's own parser
says whether the result holds what was meant.
"""

from __future__ import annotations

import contextlib
import copy
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragdocs.errors import ParseError
from ragdocs.keys import toml

_BARE = r"[A-Za-z0-9_-]+"
_KEY = rf"(?:{_BARE}|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*')"
_ASSIGNED = re.compile(rf"[ \t]*{_KEY}(?:[ \t]*\.[ \t]*{_KEY})*[ \t]*=[ \t]*")
_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|'
    r"'''.*?'{3,5}|"
    r'"(?:[^"\\\n]|\\.)*"|'
    r"'[^'\n]*'|"
    r"#[^\n]*|"
    r"[\[\]{}\n]",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Statement:
    """A line of a file, or several: the header of a table, an assignment, or nothing of these."""

    start: int
    # Behind its newline.
    end: int
    header: tuple[str, ...] | None = None
    # The key, and where its value begins and ends.
    key: str = ""
    value: tuple[int, int] = (0, 0)
    is_blank: bool = False


def loads(text: str) -> dict[str, Any]:
    """Return the values of a text."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ParseError(str(error)) from None


def put(text: str, name: Sequence[str], values: Mapping[str, Any]) -> str:
    """Return the text with these keys in a table, which is added at the end if it is missing."""
    before = loads(text)
    expected = copy.deepcopy(before)
    table = expected
    for key in name:
        table = table.setdefault(key, {})
        if not isinstance(table, dict):
            raise ParseError(f"{'.'.join(name)} is not a table")
    table.update(values)
    if expected == before:
        return text
    headers = [each for each in _statements(text) if each.header == tuple(name)]
    if headers:
        changed = _with_values(text, headers[0], values)
    else:
        changed = text + _separator(text) + _written(text, name, values)
    return _checked(changed, expected)


def remove(text: str, name: Sequence[str]) -> str:
    """Return the text without a table and the tables below it."""
    expected = loads(text)
    parent = expected
    for key in name[:-1]:
        parent = parent.get(key, {})
    if name[-1] not in parent:
        return text
    del parent[name[-1]]
    for start, end in reversed(list(_spans(text, tuple(name)))):
        text = text[:start] + text[end:]
    left = loads(text)
    # The header made the tables above it, too.
    for depth in range(len(name) - 1, 0, -1):
        _drop_if_empty(expected, left, name[:depth])
    return _checked(text, expected)


def _drop_if_empty(expected: dict[str, Any], left: dict[str, Any], name: Sequence[str]) -> None:
    *above, last = name
    for key in above:
        expected = expected[key]
        left = left.get(key, {})
    if expected[last] == {} and last not in left:
        del expected[last]


def _spans(text: str, name: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Yield where a table and those below it stand, without comments that lead to the next one."""
    start = end = -1
    blank_before = blank = -1
    for statement in _statements(text):
        if statement.header is not None:
            if start >= 0:
                yield _without_gap(text, start, end, blank_before)
            start = -1
            if statement.header[: len(name)] == name:
                start = statement.start
                blank_before = blank
        blank = -1
        if statement.is_blank:
            if not text[statement.start : statement.end].strip():
                blank = statement.start
        else:
            end = statement.end
    if start >= 0:
        yield _without_gap(text, start, end, blank_before)


def _without_gap(text: str, start: int, end: int, blank_before: int) -> tuple[int, int]:
    """Include the empty line before a table if another or the end of the file follows it."""
    following = text[end:].split("\n", 1)[0]
    if blank_before >= 0 and not following.strip():
        start = blank_before
    return start, end


def _written(text: str, name: Sequence[str], values: Mapping[str, Any]) -> str:
    lines = [f"[{'.'.join(map(_quoted, name))}]"]
    for key, value in values.items():
        lines.append(f"{key} = {toml(value)}")
    newline = _newline(text)
    return newline.join([*lines, ""])


def _quoted(key: str) -> str:
    if re.fullmatch(_BARE, key):
        return key
    return toml(key)


def _separator(text: str) -> str:
    newline = _newline(text)
    if not text:
        return ""
    if text.endswith("\n"):
        return newline
    return newline + newline


def _newline(text: str) -> str:
    first = text.find("\n")
    if first > 0 and text[first - 1] == "\r":
        return "\r\n"
    return "\n"


def _with_values(text: str, header: _Statement, values: Mapping[str, Any]) -> str:
    """Replace the values of keys that a table has, and add the others below its header."""
    edits: list[tuple[int, int, str]] = []
    missing = dict(values)
    inside = False
    for statement in _statements(text):
        if statement.header is not None:
            inside = statement.start == header.start
        elif inside and statement.key in missing:
            value = missing.pop(statement.key)
            edits.append((*statement.value, toml(value)))
    newline = _newline(text)
    start = newline
    if text[: header.end].endswith("\n"):
        start = ""
    lines = [f"{key} = {toml(value)}{newline}" for key, value in missing.items()]
    edits.append((header.end, header.end, start + "".join(lines)))
    for begin, end, written in sorted(edits, reverse=True):
        text = text[:begin] + written + text[end:]
    return text


def _statements(text: str) -> Iterator[_Statement]:
    """Cut a text into statements; what is inside a string or a list begins none."""
    start = 0
    while start < len(text):
        assigned = _ASSIGNED.match(text, start)
        value_start = assigned.end() if assigned else start
        value_end, end = _end(text, value_start)
        line = text[start:end]
        if assigned:
            key = _only_keys(tomllib.loads(line[: assigned.end() - start] + "0"))
            value = (value_start, value_end)
            yield _Statement(start, end, key=".".join(key), value=value)
        elif line.lstrip().startswith("["):
            yield _Statement(start, end, header=_only_keys(tomllib.loads(line)))
        else:
            yield _Statement(start, end, is_blank=True)
        start = end


def _only_keys(value: Any) -> tuple[str, ...]:
    """Return the keys that lead to the innermost table of a header, or to an assigned value."""
    keys: list[str] = []
    while value:
        if isinstance(value, list):
            # One of several tables of a name: never ours.
            keys.append("[]")
            value = value[0]
            continue
        ((key, value),) = value.items()
        keys.append(key)
    return tuple(keys)


def _end(text: str, start: int) -> tuple[int, int]:
    """Return where the value that begins here ends, and where its line does."""
    depth = 0
    value_end = -1
    for token in _TOKEN.finditer(text, start):
        first = token[0][0]
        if first in "[{":
            depth += 1
        elif first in "]}":
            depth -= 1
        elif first == "#" and depth == 0 and value_end < 0:
            value_end = token.start()
        elif first == "\n" and depth <= 0:
            if value_end < 0:
                value_end = token.start()
            return start + len(text[start:value_end].rstrip()), token.end()
    if value_end < 0:
        value_end = len(text)
    return start + len(text[start:value_end].rstrip()), len(text)


def _checked(text: str, expected: dict[str, Any]) -> str:
    """Return a text if it says what it should; a text that is not understood is left alone."""
    # A table inside braces cannot grow; the parser would name a line that only we see.
    with contextlib.suppress(ParseError):
        if loads(text) == expected:
            return text
    raise ParseError("it is written in a way that cannot be changed safely")
