"""A file of a client: where it really is, whether it may be changed, and its text."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ragdocs.errors import (
    NotFoundError,
    ParseError,
    ReadOnlyError,
    StorageError,
    ValidationError,
)
from ragdocs.system import files, private

BOM = "\ufeff"
# Some clients keep conversations beside their settings.
LARGEST = 50_000_000


@dataclass(frozen=True, slots=True)
class Target:
    """A file as it is now."""

    # As the client calls it, and where its bytes are.
    named: Path
    path: Path
    # None if there is no file.
    data: bytes | None

    @property
    def text(self) -> str:
        """The text without its byte order mark; none of a missing file."""
        if self.data is None:
            return ""
        try:
            return self.data.decode("utf-8").removeprefix(BOM)
        except UnicodeDecodeError:
            raise ParseError("it is not UTF-8") from None

    def encoded(self, text: str) -> bytes:
        """Return a new text as bytes, with the mark that the old one began with."""
        if self.data is not None and self.data.startswith(BOM.encode()):
            text = BOM + text
        return text.encode()


def look(named: Path, inside: Path) -> Target:
    """Read a file below a folder; a link is followed if it stays there and its end is ours.

    A clone may bring a link to any file of the user, and a file of somebody else may be shared.
    """
    inside = Path(os.path.realpath(inside))
    path = Path(os.path.realpath(named))
    if not path.is_relative_to(inside):
        raise ValidationError(f"{named} is a link to {path}, outside {inside}")
    try:
        data, status = files.read_file(path, LARGEST)
    except StorageError:
        if path.is_dir():
            raise ValidationError(f"{path} is a folder, not a file") from None
        raise
    except NotFoundError:
        return Target(named, path, None)
    _check_owner(path, status)
    return Target(named, path, data)


def _check_owner(path: Path, status: os.stat_result) -> None:
    if private.is_of_another_user(status):
        raise ReadOnlyError(f"{path} belongs to somebody else")


def check_writable(target: Target) -> None:
    """Refuse a file that is marked as read-only: replacing it would be possible, but not wanted."""
    if target.data is None:
        return
    if private.is_read_only(str(target.path)):
        raise ReadOnlyError(f"{target.path} is read-only", "Make it writable")
