"""A memory that gets another name.

The links that would no longer reach it are written anew, and nothing else is.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ragdocs.system.names import link_key
from ragdocs.text import frontmatter as metadata
from ragdocs.text import links
from ragdocs.text.formats import markdown as markup

# What would end a markdown destination, or mean something else in it.
_UNSAFE = re.compile(r"[\s()<>\\%?#]")
_WIKI = re.compile(r"(?<=\[\[)[^\[\]|#\n]+")


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
        return self.new.removesuffix(".md") if "/" in key else self.short

    def path(self, target: str) -> str | None:
        """Return the new path for the old one, with its ending or without."""
        if link_key(target) == link_key(self.old):
            return self.new
        return (
            self.new.removesuffix(".md") if f"{link_key(target)}.md" == link_key(self.old) else None
        )


def relink(text: str, path: str, move: Move) -> tuple[str, int]:
    """Return a memory's text with every link to the moved file written anew.

    And how many there were.

    The moved file itself, named by its old path, also gets its relative links right for its new
    folder.
    """
    block = markup.front(text)
    start = block[2] if block else 0
    front, changed = _relink_fields(text[:start], move)
    body = text[start:]
    edits = sorted(_edits(body, path, move))
    pieces = [front]
    done = 0
    for first, last, new in edits:
        pieces += (body[done:first], new)
        done = last
    return "".join((*pieces, body[done:])), changed + len(edits)


def _edits(body: str, path: str, move: Move) -> Iterator[tuple[int, int, str]]:
    # A line end of two characters hides blank lines from the patterns; one of the same length does
    # not.
    plain = body.replace("\r\n", " \n")
    shown = links.visible(plain, markup.blocks(plain, path))
    here = posixpath.join(move.base, path)
    there = posixpath.dirname(posixpath.join(move.base, move.new if path == move.old else path))
    moved = there != posixpath.dirname(here)
    for start, stop, target, is_wiki in links.places(shown, here):
        written = body[start:stop]
        if is_wiki:
            if (name := move.name(target)) is not None:
                yield start, stop, _padded(written, name)
            continue
        new = move.path(target.removeprefix(f"{move.base}/"))
        rooted = written.startswith("/")
        if new is not None or (moved and not rooted):
            meant = target if new is None else posixpath.join(move.base, new)
            fresh = f"/{meant}" if rooted else posixpath.relpath(meant, there or ".")
            is_angle = body[start - 1 : start] == "<"
            yield (
                start,
                stop,
                fresh if is_angle else _UNSAFE.sub(lambda sign: f"%{ord(sign[0]):02X}", fresh),
            )


# --- the frontmatter ---


def mentions(value: Any, move: Move) -> bool:
    """Tell whether a field names the moved file."""
    return bool(_renamed(value, move) != value)


def _relink_fields(front: str, move: Move) -> tuple[str, int]:
    found = markup.front(front)
    loaded = metadata.load(front[found[0] : found[1]])[0] if found else {}
    # What a memory calls itself is no link.
    changed = {
        key: _renamed(value, move)
        for key, value in loaded.items()
        if key not in ("title", "aliases") and mentions(value, move)
    }
    return (metadata.set_fields(front, changed), len(changed)) if changed else (front, 0)


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
    old, new = (name.removesuffix(".md") for name in (move.old, move.new))
    if value in (f"{old}.md", f"memory:{old}"):
        return value.replace(old, new)
    return _WIKI.sub(lambda name: _padded(name[0], move.name(name[0])), value)


def _padded(written: str, new: str | None) -> str:
    return written if new is None else written.replace(written.strip(), new)
