"""Texts that a person names instead of typing them: files and standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO

from ragdocs.errors import StorageError, ValidationError
from ragdocs.serve.surface import bounds


def read_text(file: str | Path) -> str:
    """Return the text of a file."""
    try:
        with Path(file).open(encoding="utf-8") as opened:
            return bounded(opened, str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{file} cannot be read: {error}") from error


def read_input() -> str:
    """Return the text that is piped in."""
    if sys.stdin.isatty():
        raise ValidationError("there is no text", "Give --content or --file, or pipe the text in")
    try:
        return bounded(sys.stdin, "standard input")
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"standard input cannot be read: {error}") from error


def bounded(file: TextIO, name: str) -> str:
    """Read as far as a text may be long, and refuse a longer one."""
    text = file.read(bounds.TEXT.longest + 1)
    if len(text) > bounds.TEXT.longest:
        raise bounds.refuse_longer(name, bounds.TEXT)
    return text
