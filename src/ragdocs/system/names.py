"""Which names may a caller give to a file? Those that mean the same on every file system.

And nothing else.
"""

from __future__ import annotations

import re
import unicodedata

from ragdocs.errors import ValidationError
from ragdocs.types import Document

HINT = "Give a plain relative name such as notes.md or 2026-02-04/143052_a1b2.md"
# File systems stop at 255 bytes; the trash adds a time to the name, and atomic writes need room
# beside it.
SEGMENT_BYTES = 200
NAME_BYTES = 1000
# Folders of the store itself that do not start with a dot.
INTERNAL = frozenset({"indices"})
# The id of a memory that was added without a name; and the folder in which entries are named by it.
OWN_ID = re.compile(r"mem_[0-9a-f]{12}")
ENTRIES = "entries"

# Devices on Windows, with any extension, in any case.
_DEVICES = frozenset(
    {"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"}
    | {f"{port}{number}" for port in ("COM", "LPT") for number in range(10)}
)
_FORBIDDEN = frozenset('<>:"|?*')
# They look like the separators they are not, and NFKC does not unmask them.
_SEPARATOR_TWINS = frozenset(
    "\u2044\u2215\u29f8\u2571\u27cb\u1735\u2216\u29f5\u29f9\u2572\u27cd\ua789\u2236\u05c3\u0589"
)
# Nothing is seen of them, though Unicode calls them letters, marks or symbols.
_INVISIBLE = frozenset(
    "\ufffe\uffff\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
) | frozenset(chr(code) for code in (*range(0xFE00, 0xFE0F), *range(0xE0100, 0xE01F0)))
_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
# Emoji are joined by them; anywhere else they only hide.
_JOINERS = frozenset("\u200d\ufe0f")
_SKIN_TONES = frozenset("\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")
_ENCODED_SEPARATOR = re.compile("%(?:00|25|2e|2f|3a|5c)", re.IGNORECASE)


def relative_name(name: str, suffix: str = ".md") -> str:
    """Return the clean relative path a caller means by `name`, with its suffix, or refuse it."""
    # Editors on macOS hand out decomposed letters; two spellings of one name must not become two
    # files.
    clean = unicodedata.normalize("NFC", name)
    reason = _objection(clean)
    if not reason:
        if clean[-len(suffix) :].casefold() == suffix:
            clean = clean[: -len(suffix)]
        clean += suffix
        reason = _size_objection(clean)
    if reason:
        raise ValidationError(f"{name[:80]!r} cannot be used as a name: {reason}", HINT)
    return clean


def own_id(document: Document) -> str:
    """Return the id that stands in a memory and stays when it is renamed.

    Or else that of its path.
    """
    written = document.extra.get("id")
    if isinstance(written, str) and OWN_ID.fullmatch(written):
        return written
    folder, _, name = document.path.removesuffix(".md").rpartition("/")
    return name if folder == ENTRIES and OWN_ID.fullmatch(name) else document.id


def link_key(name: str) -> str:
    """Return the form in which the names in links are compared.

    One Unicode spelling, no case, no outer slashes.
    """
    return unicodedata.normalize("NFC", name.replace("\\", "/").strip()).casefold().strip("/")


def file_keys(path: str) -> tuple[str, ...]:
    """Return the names of a file in links.

    Its path, that without .md, and its name alone without ending.
    """
    name = path.rpartition("/")[2]
    stem = name.rpartition(".")[0] or name
    keys = map(link_key, (path, path.removesuffix(".md"), stem))
    return tuple(dict.fromkeys(filter(None, keys)))


def link_keys(document: Document) -> tuple[str, ...]:
    """Return the names by which links may mean a document.

    Those of its file, its title, its aliases, its own id.
    """
    others = map(link_key, (document.title, *document.aliases, own_id(document)))
    return tuple(dict.fromkeys((*file_keys(document.path), *filter(None, others))))


def _objection(name: str) -> str:
    if not name.strip():
        return "it is empty"
    if name.startswith(("/", "\\", "~")) or re.match("[A-Za-z]:", name):
        return "it is not relative"
    folded = unicodedata.normalize("NFKC", name)
    if (
        "\\" in name
        or any(folded.count(mark) != name.count(mark) for mark in "/\\.:")
        or _SEPARATOR_TWINS & {*name}
    ):
        return "it contains something other than / that looks like a separator"
    if _ENCODED_SEPARATOR.search(name):
        return "it contains a percent-encoded separator"
    segments = name.split("/")
    if segments[0].casefold() in INTERNAL:
        return f"{segments[0]}/ belongs to the index"
    return _character_objection(name) or next(filter(None, map(_segment_objection, segments)), "")


def _character_objection(name: str) -> str:
    previous = "/"
    for character in name:
        category = unicodedata.category(character)
        if character in _JOINERS:
            # Emoji younger than this Python are not assigned (Cn).
            joins = (
                unicodedata.category(previous) in {"So", "Cn"} or previous in _JOINERS | _SKIN_TONES
            )
            hidden = not joins
        else:
            hidden = category in _UNPRINTABLE or character in _INVISIBLE
        if hidden:
            return f"it contains the invisible or control character U+{ord(character):04X}"
        if category == "Zs" and character != " ":
            return f"it contains the space U+{ord(character):04X}; use a plain one"
        if character in _FORBIDDEN:
            return f"it contains {character}, which some file systems refuse"
        previous = character
    return ""


def _segment_objection(segment: str) -> str:
    if not segment:
        return "it has an empty part between slashes"
    if segment.startswith("."):
        return "a part of it starts with a dot: such names are hidden or point elsewhere"
    if segment != segment.strip(" ") or segment.endswith("."):
        return "a part of it starts or ends with a space, or ends with a dot"
    if unicodedata.category(segment[0]).startswith("M"):
        return "a part of it starts with a combining mark"
    stem = unicodedata.normalize("NFKC", segment).split(".")[0].rstrip(" ").upper()
    if stem in _DEVICES:
        return f"{segment} is a device on Windows"
    return ""


def _size_objection(name: str) -> str:
    if len(name.encode()) > NAME_BYTES or any(
        len(part.encode()) > SEGMENT_BYTES for part in name.split("/")
    ):
        return (
            f"it is too long: at most {SEGMENT_BYTES} bytes between slashes and {NAME_BYTES} in all"
        )
    return ""
