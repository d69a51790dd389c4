"""Texts that a person names instead of typing them: files and standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from ragdocs.errors import StorageError, ValidationError


def read_text(file: str | Path) -> str:
    """Return the text of a file."""
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{file} cannot be read: {error}") from error


def read_input() -> str:
    """Return the text that is piped in."""
    if sys.stdin.isatty():
        raise ValidationError("there is no text", "Give --content or --file, or pipe the text in")
    try:
        return sys.stdin.read()
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"standard input cannot be read: {error}") from error
