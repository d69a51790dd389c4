"""The names that a caller may give to a file: those that mean the same on every file system."""

from __future__ import annotations

import re
import unicodedata

from ragdocs.errors import ValidationError
from ragdocs.system.patterns import later
from ragdocs.types import Document

HINT = "Give a plain relative name such as notes.md or 2026-02-04/143052_a1b2.md"
# File systems stop at 255 bytes; the trash adds a time to the name, and atomic writes need room
# beside it.
SEGMENT_BYTES = 200
NAME_BYTES = 1000
# Folders of the store itself that do not start with a dot.
INTERNAL = frozenset({"indices"})
# Other people's packages and machine-made files; nobody means them by docs/**.
SKIPPED = frozenset({"node_modules", "site-packages", "venv", "__pycache__"})
# The id of a memory that was added without a name; and the folder in which entries are named by it.
OWN_ID = later(r"mem_[0-9a-f]{12}")
ENTRIES = "entries"

# Devices on Windows, with any extension, in any case.
_DEVICES = frozenset({"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"})
_NUMBERED_DEVICE = later("(?:COM|LPT)[0-9]")
_FORBIDDEN = frozenset('<>:"|?*')
# They look like the separators they are not, and NFKC does not unmask them.
_SEPARATOR_TWINS = frozenset(
    "\u2044\u2215\u29f8\u2571\u27cb\u1735\u2216\u29f5\u29f9\u2572\u27cd\ua789\u2236\u05c3\u0589"
)
# Nothing is seen of them, though Unicode calls them letters, marks or symbols.
_INVISIBLE = frozenset(
    "\ufffe\uffff\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
) | frozenset(map(chr, (*range(0xFE00, 0xFE0F), *range(0xE0100, 0xE01F0))))
_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
# Emoji are joined by them; anywhere else they only hide.
_JOINERS = frozenset("\u200d\ufe0f")
_SKIN_TONES = frozenset("\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")
_ENCODED_SEPARATOR = later("%(?:00|25|2e|2f|3a|5c)", re.IGNORECASE)


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
    """Return the id that is written in a memory and outlives renaming, else that of its path."""
    written_id = document.extra.get("id")
    if isinstance(written_id, str) and OWN_ID.fullmatch(written_id):
        return written_id
    folder, _, name = document.path.removesuffix(".md").rpartition("/")
    if folder == ENTRIES and OWN_ID.fullmatch(name):
        return name
    return document.id


def link_key(name: str) -> str:
    """Return a name as names in links are compared: without case and outer slashes."""
    text = name.replace("\\", "/").strip()
    if text.isascii():
        # Most names are, and a lane of memories has thousands.
        return text.lower().strip("/")
    return unicodedata.normalize("NFC", text).casefold().strip("/")


def file_keys(path: str) -> tuple[str, ...]:
    """Return the names of a file in links: its path, that without .md, and its bare name."""
    name = path.rpartition("/")[2]
    stem = name.rpartition(".")[0] or name
    keys = map(link_key, (path, path.removesuffix(".md"), stem))
    return tuple(dict.fromkeys(filter(None, keys)))


def link_keys(document: Document) -> tuple[str, ...]:
    """Return the names of a document in links: those of its file, title, aliases, id and places."""
    names = (document.title, *document.aliases, own_id(document), *document.anchors)
    others = map(link_key, names)
    return tuple(dict.fromkeys((*file_keys(document.path), *filter(None, others))))


def _objection(name: str) -> str:
    if not name.strip():
        return "it is empty"
    if name.startswith(("/", "\\", "~")) or re.match("[A-Za-z]:", name):
        return "it is not relative"
    if "\\" in name or _has_separator_twin(name):
        return "it contains something other than / that looks like a separator"
    if _ENCODED_SEPARATOR.search(name):
        return "it contains a percent-encoded separator"
    segments = name.split("/")
    if segments[0].casefold() in INTERNAL:
        return f"{segments[0]}/ belongs to the index"
    objection = _character_objection(name)
    for segment in segments:
        objection = objection or _segment_objection(segment)
    return objection


def _has_separator_twin(name: str) -> bool:
    """Tell whether a character looks like a separator, or becomes one in another spelling."""
    if not _SEPARATOR_TWINS.isdisjoint(name):
        return True
    folded = unicodedata.normalize("NFKC", name)
    return any(folded.count(mark) != name.count(mark) for mark in "/\\.:")


def _character_objection(name: str) -> str:
    previous = "/"
    for character in name:
        category = unicodedata.category(character)
        if character in _JOINERS:
            is_hidden = not _joins_emoji(previous)
        else:
            is_hidden = category in _UNPRINTABLE or character in _INVISIBLE
        if is_hidden:
            return f"it contains the invisible or control character U+{ord(character):04X}"
        if category == "Zs" and character != " ":
            return f"it contains the space U+{ord(character):04X}; use a plain one"
        if character in _FORBIDDEN:
            return f"it contains {character}, which some file systems refuse"
        previous = character
    return ""


def _joins_emoji(previous: str) -> bool:
    """Tell whether a joiner may follow a character."""
    # Emoji younger than this Python are not assigned (Cn).
    return (
        unicodedata.category(previous) in {"So", "Cn"}
        or previous in _JOINERS
        or previous in _SKIN_TONES
    )


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
    if stem in _DEVICES or _NUMBERED_DEVICE.fullmatch(stem):
        return f"{segment} is a device on Windows"
    return ""


def _size_objection(name: str) -> str:
    whole = name.encode()
    longest_segment = max(map(len, whole.split(b"/")))
    if len(whole) > NAME_BYTES or longest_segment > SEGMENT_BYTES:
        return (
            f"it is too long: at most {SEGMENT_BYTES} bytes between slashes and {NAME_BYTES} in all"
        )
    return ""
