"""What a reader of a format hands over: one text that is to become a memory, and its name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ragdocs.errors import ValidationError
from ragdocs.system.names import relative_name

# What becomes of a note: it is written, it is there already, another text has its name, or it
# cannot be a memory.
NEW, PRESENT, KEPT, REFUSED = OUTCOMES = ("new", "present", "kept", "refused")
# Of a title in the name of a file.
LONGEST_NAME = 80
_DIGITS = 8
# Some file systems refuse these, or a link ends at them.
_UNUSABLE = re.compile(r'[<>:"|?*\\\x00-\x1f\x7f]+')
_ENDS_LINK = re.compile(r"[#^\[\]/]+")
_SPACES = re.compile(r"\s+")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class EarlierText:
    """A text that a memory had before, when and how that was changed, and by whom."""

    text: str
    at: datetime
    verb: str = "update"
    author: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A text of another tool, with what is known about it."""

    # The path that it asks for, with or without .md; it may not be usable as it is.
    name: str
    # A block between --- lines at its top wins over the fields below.
    text: str = ""
    kind: str = "fact"
    tags: tuple[str, ...] = ()
    fields: Mapping[str, object] = field(default_factory=dict)
    created: datetime | None = None
    # What names it in its source, whatever becomes of the memory; empty where the path does.
    key: str = ""
    # The project that the other tool noted it for, where it keeps several in one place.
    project: str = ""
    # A convention or a decision of the repository instead of a memory.
    item: str = ""
    # A text of ours, written as it is.
    is_whole: bool = False
    # Its texts before this one, oldest first.
    earlier: tuple[EarlierText, ...] = ()
    # Why it cannot be read.
    problem: str = ""


def usable_path(name: str) -> str:
    """Return a path that every file system takes, the same for the same name."""
    try:
        return relative_name(name)
    except ValidationError:
        pass
    segments = []
    for segment in name.replace("\\", "/").removesuffix(".md").split("/"):
        plain = _UNUSABLE.sub("-", segment).strip(" .")
        if plain:
            segments.append(_shortened(plain))
    try:
        return relative_name("/".join(segments))
    except ValidationError:
        return relative_name(f"note-{digest(name)}")


def file_name(title: str) -> str:
    """Return a name of one file for a title, which a link can name too."""
    plain = _ENDS_LINK.sub("-", _SPACES.sub(" ", title)).strip(" .")
    return usable_path(_shortened(plain)).removesuffix(".md")


def slug(text: str, most_words: int = 8) -> str:
    """Return the first words of a text as a name."""
    words = _WORD.findall(text[:400].casefold())[:most_words]
    return _shortened("-".join(words)).rstrip("-") or "note"


def digest(text: str) -> str:
    """Return a short name for a text."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:_DIGITS]


def moment(value: object) -> datetime | None:
    """Read a time: ISO 8601, or seconds or milliseconds since 1970; without a zone it is UTC."""
    try:
        if isinstance(value, int | float):
            # Seconds of this size would be 5,000 years away.
            seconds = value / 1000 if value > 1e11 else value  # noqa: PLR2004
            return datetime.fromtimestamp(seconds, UTC)
        time = datetime.fromisoformat(str(value))
    except (ValueError, OverflowError, OSError):
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return time


def _shortened(name: str) -> str:
    """Cut a name, without half a character at its end."""
    return name.encode(errors="ignore")[: 2 * LONGEST_NAME].decode(errors="ignore").strip(" .")
