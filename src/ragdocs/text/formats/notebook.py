"""Jupyter notebooks: the cells of text and code, with the lines that they have in the file.

The file is JSON. It is read token by token, so that every line of a cell keeps its line number and
a notebook that was cut off is read as far as it goes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate, islice

from ragdocs.text.formats import markdown
from ragdocs.text.formats.flavours import unwrapped
from ragdocs.text.formats.page import LINE_LIMIT, Page, covering, is_blank
from ragdocs.types import Block

# Nothing that is read of a notebook lies deeper.
_DEPTH = 40
# Strings and brackets; a notebook of ten megabytes has a tenth of it.
_MOST_TOKENS = 2_000_000
# Output that is longer says less than the code: tables of figures, logs, traces.
_OUTPUT_LENGTH = 400
_OUTPUT_LINES = 12

# A string that is never closed reaches to the end: nothing behind it could be read either.
_TOKEN = re.compile(
    r"\"(?P<string>(?:[^\"\\]++|\\.)*+)(?:\"|\\?\Z)(?P<key>\s*+:)?|[\[\]{}]", re.DOTALL
)
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]")
_OBJECT = re.compile(r"<[^<>]{1,300}+>\Z")
_BACKTICKS = re.compile(r"`{3,}+")

# A line of a cell, and the line of the file that it begins on.
Row = tuple[str, int]


@dataclass(slots=True)
class _Cell:
    """A cell: its kind, the lines of its source, and its outputs."""

    kind: str = ""
    level: int = 0
    source: list[Row] = field(default_factory=list)
    outputs: list[list[Row]] = field(default_factory=list)


def read(text: str, path: str) -> Page:  # noqa: ARG001 - every reader is told the path
    """Read the cells of a notebook; code is fenced, and names its cell."""
    sheet = _Rows()
    language = _language(text)
    number = 0
    for number, cell in enumerate(_cells(text), 1):
        if len(sheet.lines) > LINE_LIMIT:
            break
        if cell.kind == "code":
            sheet.fence(cell.source, f"{language} cell {number}".strip())
            for output in cell.outputs:
                if _is_short(output):
                    sheet.fence(output, f"text output of cell {number}")
        elif cell.source:
            sheet.prose(cell.source, f"(cell {number})")
    problems = []
    if not number:
        problems.append("no cells were found: this is not a notebook")
    return sheet.page(problems)


class _Rows:
    """The lines of a notebook as they are read, each with its line in the file."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.numbers: list[int] = []
        # The first and the last line of each fence.
        self.fences: list[tuple[int, int]] = []

    def add(self, line: str, number: int) -> None:
        """Add a line; lines never go back in the file."""
        if self.numbers:
            number = max(number, self.numbers[-1])
        self.lines.append(line)
        self.numbers.append(number)

    def fence(self, rows: list[Row], info: str) -> None:
        """Add code or output."""
        if all(is_blank(line) for line, _ in rows):
            return
        marks = "```"
        for line, _ in rows:
            for run in _BACKTICKS.findall(line):
                marks = max(marks, f"{run}`", key=len)
        first = len(self.lines)
        self.add(f"{marks}{info}", rows[0][1])
        for line, number in rows:
            self.add(line, number)
        self.add(marks, rows[-1][1])
        self.fences.append((first, len(self.lines) - 1))
        self.add("", rows[-1][1])

    def prose(self, rows: list[Row], label: str) -> None:
        """Add text, and the label of its cell below a heading that it begins with."""
        seen = unwrapped("\n".join(line for line, _ in rows), ".md").split("\n")
        rows = [(line, number) for line, (_, number) in zip(seen, rows, strict=True)]
        first, number = rows[0]
        if _HEADING.match(first):
            self.add(first, number)
            self.add(label, number)
            rows = rows[1:]
        else:
            self.add(label, number)
        for line, number in rows:
            self.add(line, number)
        self.add("", number)

    def page(self, problems: list[str]) -> Page:
        """Return the page: the blocks of the texts, and a fence for all code."""
        body = "\n".join(self.lines)
        starts = list(accumulate((len(line) + 1 for line in self.lines), initial=0))
        blocks: list[Block] = []
        done = 0
        for first, last in [*self.fences, (len(self.lines), -1)]:
            start = starts[first]
            for block in markdown.blocks(body[done:start]):
                blocks.append(_shifted(block, done))
            if last >= 0:
                done = starts[last] + len(self.lines[last])
                blocks.append(Block("fence", start, done))
        return Page(
            body=body,
            blocks=covering(body, blocks),
            numbers=self.numbers or (1,),
            problems=problems,
        )


def _shifted(block: Block, offset: int) -> Block:
    """Return a block of a part of the text as one of the whole text."""
    code = [(start + offset, stop + offset) for start, stop in block.code]
    return block._replace(
        start=block.start + offset,
        stop=block.stop + offset,
        joints=tuple(joint + offset for joint in block.joints),
        code=tuple(code),
    )


def _is_short(output: list[Row]) -> bool:
    """Tell whether an output is worth reading: a few lines, and not the name of an object."""
    text = "\n".join(line for line, _ in output).strip()
    if not text or len(text) > _OUTPUT_LENGTH or len(output) > _OUTPUT_LINES:
        return False
    return not _OBJECT.match(text)


_LANGUAGE = re.compile(r"\"language\"\s{0,20}:\s{0,20}\"([\w+#-]{1,30})\"")
_LANGUAGE_INFO = re.compile(
    r"\"language_info\"\s{0,20}:\s{0,20}\{[^{}]{0,500}(?:\{[^{}]{0,500}\}[^{}]{0,500})?"
    r"\"name\"\s{0,20}:\s{0,20}\"([\w+#-]{1,30})\""
)


def _language(text: str) -> str:
    """Return the language of the code, as the metadata at the end or the beginning say."""
    for part in (text[-20_000:], text[:20_000]):
        match = _LANGUAGE_INFO.search(part) or _LANGUAGE.search(part)
        if match:
            return match[1].casefold()
    return "python"


@dataclass(slots=True)
class _Frame:
    """An open object or array: its key in the object around it, and the key that is read."""

    key: str
    is_object: bool
    cell: _Cell | None = None
    inner_key: str = ""


def _cells(text: str) -> Iterator[_Cell]:
    """Yield the cells in order."""
    frames: list[_Frame] = []
    line = 1
    counted = 0
    for token in islice(_TOKEN.finditer(text), _MOST_TOKENS):
        mark = token[0]
        if mark in {"{", "["}:
            if len(frames) == _DEPTH:
                break
            frames.append(_opened(frames, mark))
        elif not frames:
            continue
        elif mark in {"}", "]"}:
            frame = frames.pop()
            if frame.cell is not None and _is_cell(frames):
                yield frame.cell
        elif token["key"]:
            frames[-1].inner_key = token["string"]
        else:
            line += text.count("\n", counted, token.start())
            counted = token.start()
            _string(frames, token, line)
    yield from _unfinished(frames)


def _unfinished(frames: list[_Frame]) -> Iterator[_Cell]:
    """Yield the cell in which a notebook was cut off."""
    for depth, frame in enumerate(frames):
        if frame.cell is not None and _is_cell(frames[:depth]):
            yield frame.cell


def _is_cell(around: list[_Frame]) -> bool:
    """Tell whether an object in these frames is a cell."""
    return bool(around) and around[-1].key == "cells" and not around[-1].is_object


def _opened(frames: list[_Frame], mark: str) -> _Frame:
    """Return the frame of an object or array that begins."""
    is_object = mark == "{"
    key = ""
    cell = None
    if frames:
        key = frames[-1].inner_key or frames[-1].key
        if not frames[-1].is_object:
            key = frames[-1].key
        cell = frames[-1].cell
    if is_object and _is_cell(frames):
        return _Frame("", is_object, _Cell())
    if cell is not None and is_object and key == "outputs":
        cell.outputs.append([])
    return _Frame(key, is_object, cell)


def _string(frames: list[_Frame], token: re.Match[str], line: int) -> None:
    """Take a string of a cell: its kind, a line of its source, or a line of an output."""
    frame = frames[-1]
    cell = frame.cell
    if cell is None:
        return
    is_cell = _is_cell(frames[:-1])
    key = frame.inner_key
    if not frame.is_object:
        key = frame.key
        is_cell = len(frames) > 1 and _is_cell(frames[:-2])
    if is_cell and key == "cell_type":
        cell.kind = token["string"]
    elif is_cell and key in {"source", "input"}:
        _append(cell.source, _decoded(token["string"]), line)
    elif key in {"text", "text/plain"} and cell.outputs and not is_cell:
        _append(cell.outputs[-1], _decoded(token["string"]), line)


def _decoded(string: str) -> str:
    if "\\" not in string:
        return string
    try:
        words = json.loads(f'"{string}"', strict=False)
    except ValueError:
        return string
    assert isinstance(words, str)
    # Half a character cannot be written anywhere.
    return words.encode("utf-8", "replace").decode()


def _append(rows: list[Row], text: str, line: int) -> None:
    """Add a string to the lines of a cell; strings end with a line break, except the last one."""
    if len(rows) > LINE_LIMIT:
        return
    parts = text.split("\n")
    for part in parts:
        rows.append((part.rstrip("\r"), line))
    if not parts[-1]:
        rows.pop()
