"""Documents of office programs: converted in a process of their own, then read.

Such a file may crash what reads it, or unfold to gigabytes. So another process converts it, within
limits of time, memory and size, and only text comes back.
"""

from __future__ import annotations

import hashlib
import subprocess

from ragdocs.errors import ParseError, UnavailableError
from ragdocs.import_path import server_command, server_environment
from ragdocs.project.formats import Format, is_installed
from ragdocs.text.formats import markdown, webpage
from ragdocs.text.formats.page import Page

# The module that converts a file, started by its name.
CONVERTER = "ragdocs.text.formats.office_process"
# Seconds that one file may take. A manual of 36 pages takes half a second.
MOST_SECONDS = 30.0
# Converted texts that are kept, because a file that is indexed is often read right after.
_KEPT = 8
_LONGEST_REASON = 200
_texts: dict[bytes, str] = {}


def convert(data: bytes, kind: Format, name: str) -> str:
    """Return the text of a document: markdown, or HTML with the same headings."""
    if not is_installed(kind.extra):
        raise UnavailableError(
            f"{name} is not read: {kind.name} needs ragdocs[{kind.extra}]",
            f"Install it with pip install 'ragdocs[{kind.extra}]', or exclude the file",
        )
    key = hashlib.sha256(data).digest()
    text = _texts.get(key)
    if text is None:
        try:
            text = _converted(data, kind.suffixes[0])
        except ParseError as error:
            raise ParseError(f"{name} cannot be converted: {error.message}", error.hint) from None
        if len(_texts) >= _KEPT:
            _texts.clear()
        _texts[key] = text
    return text


def _converted(data: bytes, suffix: str) -> str:
    command = [*server_command(CONVERTER), suffix]
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter, with a module of ours
            command,
            input=data,
            capture_output=True,
            timeout=MOST_SECONDS,
            check=False,
            env=server_environment(),
        )
    except subprocess.TimeoutExpired:
        raise ParseError(f"it took more than {MOST_SECONDS:g} seconds", "Exclude it") from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        reason = "the converter crashed"
        if lines and done.returncode > 0:
            reason = lines[-1][:_LONGEST_REASON]
        raise ParseError(reason, "Is it damaged or encrypted? Save it anew, or exclude it")
    return done.stdout.decode(errors="replace")


def read(text: str, path: str) -> Page:
    """Read the text that a document was converted to."""
    if webpage.recognises(text):
        return webpage.read(text, path)
    return markdown.read(text, path)
