"""From a body to chunks.

Cut at headings, then paragraphs, then sentences, and never inside code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise

from ragdocs.lanes import Chunking
from ragdocs.text.headings import STEP
from ragdocs.text.sections import heading_names
from ragdocs.types import Block, Chunk, Parsed

# Blocks that are never cut.
CODE = ("fence", "code")

# A section shorter than this says too little to be found alone, so what follows it may join it.
_TINY = 200
# Full stops of western and of CJK text, the former with the quotes and brackets that may close
# after them.
_SENTENCE_END = re.compile(r"[.!?\u2026][\"'\u201d\u2019)\]*_]{0,3}+\s|[\u3002\uff01\uff1f]")
_SPACE = re.compile(r"\s*+")
# A line longer than this is a paragraph, not a term.
_LONGEST_TERM = 200
_MARGIN = re.compile(r"[ \t]*+")
_DEFINITION = re.compile(r"[ \t]*+:[ \t]")
_DEFINING = frozenset(" \t:")

Span = tuple[int, int]


def chunk(parsed: Parsed, chunking: Chunking) -> tuple[Chunk, ...]:
    """Cut a document into chunks that cover every line with text on it, in order."""
    body = parsed.body
    document = parsed.document
    cut: list[Chunk] = []
    line = 0
    counted = 0
    for section in _joined(list(_sections(parsed.blocks)), chunking):
        for start, stop in _whole_tails(_packed(body, section.blocks, chunking), chunking):
            line += body.count("\n", counted, start)
            counted = start
            lines = _numbers(parsed, line, line + body.count("\n", start, stop))
            cut.append(_chunk(parsed, len(cut), section.path, body[start:stop], lines))
    # A document without text can still be found by its name.
    return tuple(cut) or (_chunk(parsed, 0, (), document.title, (1, 1)),)


def passage(title: str, headings: Sequence[str], text: str) -> str:
    """Return what is embedded for a chunk.

    One line that says where it stands, unless the text begins with it.
    """
    steps = headings
    if not headings or headings[0] != title:
        steps = (title, *headings)
    header = STEP.join(steps)
    # A text without a heading may have got its first words for a title; said twice they would
    # outweigh the rest.
    if text.startswith(header.removesuffix("\u2026")):
        return text
    return f"{header}\n{text}"


@dataclass(slots=True)
class _Section:
    """A heading and what stands below it; level 0 is what stands above the first heading."""

    path: tuple[str, ...]
    level: int
    blocks: list[Block]

    @property
    def start(self) -> int:
        return self.blocks[0].start

    @property
    def stop(self) -> int:
        return self.blocks[-1].stop

    @property
    def is_bare(self) -> bool:
        return all(block.kind == "heading" for block in self.blocks)


def _chunk(
    parsed: Parsed, number: int, path: tuple[str, ...], text: str, lines: tuple[int, int]
) -> Chunk:
    document = parsed.document
    embedded = passage(document.title, path, text).encode("utf-8", "surrogatepass")
    digest = blake2b(embedded, digest_size=16).hexdigest()
    return Chunk(f"{document.id}#{number}", document.id, path, text, *lines, digest)


def _numbers(parsed: Parsed, first: int, last: int) -> tuple[int, int]:
    """Return the lines of the file that lines of the body, counted from 0, have."""
    if parsed.numbers:
        return parsed.numbers[first], parsed.numbers[last]
    return parsed.first_line + first, parsed.first_line + last


def _sections(blocks: Sequence[Block]) -> Iterator[_Section]:
    """Yield sections; a heading without text of its own opens the section of its first child."""
    paths = iter(heading_names([block for block in blocks if block.kind == "heading"]))
    section: _Section | None = None
    for block in blocks:
        if block.kind != "heading":
            section = section or _Section((), 0, [])
            section.blocks.append(block)
            continue
        path = next(paths)
        if section and section.is_bare and block.level > _deepest(section):
            section.path = path
            section.blocks.append(block)
            continue
        if section:
            yield section
        section = _Section(path, block.level, [block])
    if section:
        yield section


def _deepest(section: _Section) -> int:
    return section.blocks[-1].level


def _joined(sections: Sequence[_Section], chunking: Chunking) -> Iterator[_Section]:
    """Let tiny sections take in the siblings or children after them.

    Under the headings that all of them share.
    """
    current: _Section | None = None
    for section in sections:
        if (
            current
            and current.stop - current.start < _TINY
            and section.level >= current.level
            and section.stop - current.start <= chunking.target
        ):
            # What stands above the first heading belongs to the document, so the heading after it
            # names them both.
            path = section.path
            if current.level:
                path = _shared(current.path, section.path)
            current = _Section(path, max(1, current.level), current.blocks + section.blocks)
            continue
        if current:
            yield current
        current = section
    if current:
        yield current


def _shared(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    count = 0
    for heading, other_heading in zip(first, second, strict=False):
        if heading != other_heading:
            break
        count += 1
    return tuple(first[:count])


def _packed(body: str, blocks: Sequence[Block], chunking: Chunking) -> Iterator[Span]:
    """Fill chunks up to the target with whole pieces; a heading stays with what follows it."""
    start = stop = -1
    bare = True
    for block in _with_definitions(body, blocks):
        room = chunking.limit
        beside_heading = chunking.limit - (block.start - start)
        if stop >= 0 and bare and beside_heading > chunking.target:
            room = beside_heading
        for piece in _pieces(body, block, chunking, room):
            size = piece[1] - start
            joins = size <= chunking.target or (
                bare and (size <= chunking.limit or block.kind in CODE)
            )
            if stop >= 0 and not joins:
                yield start, stop
                stop = -1
                bare = True
            if stop < 0:
                start = piece[0]
            stop = piece[1]
            bare = bare and block.kind == "heading"
    if stop >= 0:
        yield start, stop


def _with_definitions(body: str, blocks: Iterable[Block]) -> Iterator[Block]:
    """Make one block of a term and the text that defines it, so that none is cut from the other."""
    above: Block | None = None
    for block in blocks:
        whole = block
        if above is not None and _is_defined(body, above, block):
            whole = block._replace(start=above.start)
        elif above is not None:
            yield above
        above = whole
    if above is not None:
        yield above


def _is_defined(body: str, term: Block, block: Block) -> bool:
    """Tell whether a block is a term, and the one below it begins with what the term means.

    That has a mark, or it is indented further than the term, or the term has a mark.
    """
    if term.kind != "text" or term.stop - term.start > _LONGEST_TERM:
        return False
    if block.kind not in {"text", "list"}:
        return False
    is_marked = body.endswith("::", term.start, term.stop)
    if not is_marked and body[block.start] not in _DEFINING:
        return False
    if "\n" in body[term.start : term.stop]:
        return False
    if is_marked or _DEFINITION.match(body, block.start):
        return True
    return _margin(body, block) > _margin(body, term)


def _margin(body: str, block: Block) -> int:
    margin = _MARGIN.match(body, block.start)
    assert margin is not None
    return margin.end() - block.start


def _whole_tails(spans: Iterable[Span], chunking: Chunking) -> Iterator[Span]:
    """Give the tiny rest of a section to the chunk before it.

    A line or two under a heading resemble every question about that heading.
    """
    start = stop = -1
    for span in spans:
        if stop >= 0 and span[1] - span[0] < _TINY and span[1] - start <= chunking.limit:
            stop = span[1]
            continue
        if stop >= 0:
            yield start, stop
        start, stop = span
    if stop >= 0:
        yield start, stop


def _pieces(body: str, block: Block, chunking: Chunking, room: int) -> Iterator[Span]:
    """Yield a block whole if it may be, else its items or rows, else its sentences."""
    if block.kind in CODE or block.stop - block.start <= chunking.target:
        yield block.start, block.stop
        return
    edges = [block.start, *block.joints, block.stop]
    for first, last in pairwise(edges):
        yield from _cut(body, first, last, chunking, room)
        room = chunking.limit


def _cut(body: str, start: int, stop: int, chunking: Chunking, room: int) -> Iterator[Span]:
    """Yield stretches of text no longer than the limit, the first no longer than `room`.

    Without outer white space.
    """
    stop = start + len(body[start:stop].rstrip())
    while stop - start > room:
        end = start + _boundary(body[start : min(stop, start + chunking.limit)], chunking)
        yield start, start + len(body[start:end].rstrip())
        space = _SPACE.match(body, end, stop)
        start = end
        if space:
            start = space.end()
        room = chunking.limit
    if stop > start:
        yield start, stop


def _boundary(window: str, chunking: Chunking) -> int:
    """Return where to end a stretch.

    After a sentence, a line or a word, or else in the middle of a word.
    """
    near = window[: chunking.target]
    half = len(near) // 2
    ends = [match.end() for match in _SENTENCE_END.finditer(near, half)]
    if ends:
        return ends[-1]
    for mark in ("\n", " "):
        if (end := near.rfind(mark, half)) > 0:
            return end + 1
    last_space = max(window.rfind(mark) for mark in (" ", "\n", "\t"))
    if last_space > 0:
        return last_space + 1
    return len(window)
