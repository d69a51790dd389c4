"""What a link can mean in a file: the whole, a section under a heading, or a definition."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from ragdocs.errors import RagdocsError
from ragdocs.project.formats import format_of, suffix_of
from ragdocs.text.headings import STEP

# What reads a file is imported for the first link that means a part of one.
if TYPE_CHECKING:
    from ragdocs.text import outline, sections

WHOLE, SECTION, SYMBOL = "file", "section", "symbol"
# Of a line in a signature: 48 bits tell the lines of one file apart.
LINE_BYTES = 6
# Longer texts are compared as bags of lines, which costs no more than their length.
MOST_COMPARED = 3_000
# The share of its lines that a part must have kept to be the same under another name.
LIKENESS = 0.6
# A part with fewer lines below its name looks like many others.
LEAST_LINES = 2
# Readers of these formats start processes or unpack archives.
_NOT_READ = frozenset({"office", "notebook"})


@dataclass(frozen=True)
class Part:
    """A part of a file: of which kind, its name, its lines and where it begins."""

    kind: str
    name: str
    lines: tuple[bytes, ...]
    line: int = 1

    @cached_property
    def digest(self) -> str:
        """The name of this content."""
        return hashlib.blake2b(b"\n".join(self.lines), digest_size=16).hexdigest()

    @cached_property
    def signature(self) -> bytes:
        """A few bytes for each line: enough to count changed lines, and no text."""
        return b"".join(map(_line_digest, self.lines))

    @property
    def text(self) -> list[str]:
        """The lines as text."""
        return [line.decode(errors="replace") for line in self.lines]


def whole(data: bytes) -> Part:
    """Return a whole file; line ends and empty lines at its end do not count."""
    return Part(WHOLE, "", _lines(data))


def find(path: str, data: bytes, name: str) -> Part | None:
    """Return the part that a name means in a file, or None if it has no such part."""
    if not name:
        return whole(data)
    from ragdocs.text import outline

    if suffix_of(path) in outline.GRAMMARS:
        return _symbol(path, data, name)
    return _section(path, data, name)


def all_parts(path: str, data: bytes) -> list[Part]:
    """Return all sections or all definitions of a file."""
    from ragdocs.text import outline

    if suffix_of(path) in outline.GRAMMARS:
        return list(map(partial(_symbol_part, data), outline.symbols(path, data)))
    text, outlined = _sections(path, data)
    return list(map(partial(_section_part, text), outlined))


def own_name(kind: str, name: str) -> str:
    """Return what a part is called, without its owners or the headings above it."""
    if kind == SYMBOL:
        return name.rpartition(".")[2]
    return name.rpartition(STEP)[2]


def alike(part_signature: bytes, candidates: Sequence[Part]) -> Part | None:
    """Return the one candidate with the lines of a part, or the one that kept most of them.

    The first line is the name, which may differ.
    """
    same = [part for part in candidates if part.signature == part_signature]
    if len(same) == 1:
        return same[0]
    old = Counter(_rows(part_signature)[1:])
    if old.total() < LEAST_LINES:
        return None
    best: Part | None = None
    best_share = LIKENESS
    for candidate in candidates:
        new = Counter(_rows(candidate.signature)[1:])
        share = (old & new).total() / max(old.total(), new.total())
        if share > best_share:
            best = candidate
            best_share = share
    return best


def changed_lines(old: bytes, new: bytes) -> tuple[int, int]:
    """Count the lines that came and those that went between two signatures."""
    before = _rows(old)
    after = _rows(new)
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    stop = 0
    most = min(len(before), len(after)) - start
    while stop < most and before[-1 - stop] == after[-1 - stop]:
        stop += 1
    before = before[start : len(before) - stop]
    after = after[start : len(after) - stop]
    if max(len(before), len(after)) > MOST_COMPARED:
        gone = Counter(before)
        come = Counter(after)
        return (come - gone).total(), (gone - come).total()
    import difflib

    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    unchanged = sum(block.size for block in matcher.get_matching_blocks())
    return len(after) - unchanged, len(before) - unchanged


def _rows(signature: bytes) -> list[bytes]:
    starts = range(0, len(signature), LINE_BYTES)
    return [signature[start : start + LINE_BYTES] for start in starts]


def _line_digest(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=LINE_BYTES).digest()


def _lines(data: bytes) -> tuple[bytes, ...]:
    text = data.replace(b"\r\n", b"\n").rstrip(b"\n")
    return tuple(text.split(b"\n"))


def _symbol(path: str, data: bytes, name: str) -> Part | None:
    """Return the definition of this name: the whole of it first, then the last part alone."""
    from ragdocs.text import outline

    wanted = name.strip().removesuffix("()").replace("::", ".")
    symbols = outline.symbols(path, data)
    for symbol in symbols:
        if symbol.name == wanted:
            return _symbol_part(data, symbol)
    for symbol in symbols:
        if symbol.name.endswith(f".{wanted}"):
            return _symbol_part(data, symbol)
    return None


def _symbol_part(data: bytes, symbol: outline.Symbol) -> Part:
    line = data.count(b"\n", 0, symbol.start) + 1
    return Part(SYMBOL, symbol.name, _lines(data[symbol.start : symbol.stop]), line)


def _section(path: str, data: bytes, name: str) -> Part | None:
    from ragdocs.text import sections

    text, outlined = _sections(path, data)
    try:
        section = sections.find(outlined, name, anchor=True)
    except RagdocsError:
        return None
    return _section_part(text, section)


def _sections(path: str, data: bytes) -> tuple[str, list[sections.Section]]:
    from ragdocs.text import sections
    from ragdocs.text.formats.reading import read

    kind = format_of(path)
    if kind is None or kind.reader in _NOT_READ:
        return "", []
    page = read(data.decode(errors="replace"), path)
    outlined = sections.outline(
        page.body, page.blocks, first_line=page.first_line, numbers=page.numbers
    )
    return page.body, outlined


def _section_part(text: str, section: sections.Section) -> Part:
    content = text[section.block.start : section.stop].encode(errors="replace")
    return Part(SECTION, section.path, _lines(content), section.line)
