"""Links to a memory that gets another name.

Those that would no longer reach it are rewritten, and nothing else is.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ragdocs.system.names import link_key
from ragdocs.text import frontmatter, links
from ragdocs.text.formats import markdown

# What would end a markdown destination, or mean something else in it.
_UNSAFE = re.compile(r"[\s()<>\\%?#]")
_WIKI = re.compile(r"(?<=\[\[)[^\[\]|#\n]+")
# Fields in which a memory names itself; they are no links.
_OWN_NAMES = ("title", "aliases")

# Where a text is replaced, and by what.
Replacement = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Move:
    """A file's old and new name below `base`.

    `lost` are the names that meant it alone and no longer do.
    """

    old: str
    new: str
    base: str
    lost: frozenset[str]
    # How links that gave no folder name it from now on.
    short: str

    def name(self, written: str) -> str | None:
        """Return what to write in [[…]] for a name that meant the file.

        Nothing if it did not, or still does.
        """
        key = link_key(written.removeprefix(f"{self.base}/"))
        if key not in self.lost:
            return None
        if key.endswith(".md"):
            return self.new
        if "/" in key:
            return self.new.removesuffix(".md")
        return self.short

    def path(self, target: str) -> str | None:
        """Return the new path for the old one, with its ending or without."""
        key = link_key(target)
        old = link_key(self.old)
        if key == old:
            return self.new
        if f"{key}.md" == old:
            return self.new.removesuffix(".md")
        return None


def relink(text: str, path: str, move: Move) -> tuple[str, int]:
    """Return a memory's text with every link to the moved file rewritten, and their number.

    The moved file itself, named by its old path, also gets its relative links right for its new
    folder.
    """
    start = 0
    block = markdown.front(text)
    if block:
        start = block[2]
    front, changed = _relink_fields(text[:start], move)
    body = text[start:]
    replacements = sorted(_replacements(body, path, move))
    parts = [front]
    done = 0
    for first, last, new in replacements:
        parts += (body[done:first], new)
        done = last
    parts.append(body[done:])
    return "".join(parts), changed + len(replacements)


# --- the body ---


def _replacements(body: str, path: str, move: Move) -> Iterator[Replacement]:
    # A line end of two characters hides blank lines from the patterns; one of the same length does
    # not.
    plain = body.replace("\r\n", " \n")
    visible = links.visible(plain, markdown.blocks(plain))
    here = posixpath.join(move.base, path)
    for start, stop, target, is_wiki in links.written_names(visible, here):
        written = body[start:stop]
        if is_wiki:
            name = move.name(target)
            if name is not None:
                yield start, stop, _padded(written, name)
            continue
        destination = _destination(written, target, path, move)
        if destination is not None:
            if body[start - 1 : start] != "<":
                destination = _UNSAFE.sub(_percent_encoded, destination)
            yield start, stop, destination


def _destination(written: str, target: str, path: str, move: Move) -> str | None:
    """Return where a markdown link must lead from now on, or nothing if it may stay."""
    old_folder = _folder(move, path)
    folder = old_folder
    if path == move.old:
        folder = _folder(move, move.new)
    new = move.path(target.removeprefix(f"{move.base}/"))
    is_rooted = written.startswith("/")
    if new is not None:
        target = posixpath.join(move.base, new)
    elif is_rooted or folder == old_folder:
        return None
    if is_rooted:
        return f"/{target}"
    return posixpath.relpath(target, folder or ".")


def _folder(move: Move, path: str) -> str:
    return posixpath.dirname(posixpath.join(move.base, path))


def _percent_encoded(match: re.Match[str]) -> str:
    return f"%{ord(match[0]):02X}"


# --- the frontmatter ---


def mentions(value: Any, move: Move) -> bool:
    """Tell whether a field names the moved file."""
    return bool(_renamed(value, move) != value)


def _relink_fields(front: str, move: Move) -> tuple[str, int]:
    block = markdown.front(front)
    if not block:
        return front, 0
    start, stop, _ = block
    fields, _ = frontmatter.load(front[start:stop])
    changed = {}
    for key, value in fields.items():
        if key not in _OWN_NAMES and mentions(value, move):
            changed[key] = _renamed(value, move)
    if not changed:
        return front, 0
    return frontmatter.set_fields(front, changed), len(changed)


def _renamed(value: Any, move: Move) -> Any:
    """Return a field's value with references to the file renamed.

    A text that is its path or id, or holds [[links]].
    """
    if isinstance(value, Mapping):
        return {key: _renamed(inner, move) for key, inner in value.items()}
    if isinstance(value, list):
        return [_renamed(inner, move) for inner in value]
    if not isinstance(value, str):
        return value
    old = move.old.removesuffix(".md")
    new = move.new.removesuffix(".md")
    if value in (f"{old}.md", f"memory:{old}"):
        return value.replace(old, new)

    def renamed_link(match: re.Match[str]) -> str:
        written = match[0]
        name = move.name(written)
        if name is None:
            return written
        return _padded(written, name)

    return _WIKI.sub(renamed_link, value)


def _padded(written: str, new: str) -> str:
    """Return the new name with the spaces around the old one."""
    return written.replace(written.strip(), new)
