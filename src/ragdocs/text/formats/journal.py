"""A journal as it is written: the message of an entry, the file of a section, their names."""

from __future__ import annotations

import functools
import re

from ragdocs.errors import ValidationError
from ragdocs.system.names import relative_name

SUFFIX = ".md"
# Between a section and an entry of it.
MARK = "#"
# A message is worth reading up to here; more is a file that somebody committed as its own
# description.
LONGEST_MESSAGE = 1_000_000
LONGEST_SUMMARY = 120

_WORK_CONTEXT = "work_context:"
_COUNT = re.compile(r"\s*<!-- entry count: \d+ -->\s*\Z")


def compose(entry: str, summary: str = "", work_context: str = "") -> str:
    """Return the message of an entry: a summary, the work it came from, and what was learned."""
    context = _one_line(work_context)
    if context:
        context = f"{_WORK_CONTEXT} {context}"
    body = entry.replace("\r\n", "\n").strip("\n")
    parts = (_one_line(summary), context, body)
    return "\n\n".join(filter(None, parts))


def parts_of(message: str) -> tuple[str, str, str]:
    """Take a message apart: summary, work context, and entry; each but the entry may be missing."""
    head, _, rest = message.strip("\n").partition("\n\n")
    if head.startswith(_WORK_CONTEXT) and "\n" not in head:
        return "", head.removeprefix(_WORK_CONTEXT).strip(), rest
    second, _, entry = rest.partition("\n\n")
    if second.startswith(_WORK_CONTEXT) and "\n" not in head + second:
        return head, second.removeprefix(_WORK_CONTEXT).strip(), entry
    return "", "", message


def summary_of(message: str) -> str:
    """Return an entry in one line: its summary, or else the first line that says something."""
    summary, context, entry = parts_of(message)
    line = summary or _first_words(entry) or context
    if len(line) <= LONGEST_SUMMARY:
        return line
    return f"{line[: LONGEST_SUMMARY - 1].rstrip()}…"


def _first_words(entry: str) -> str:
    """Return the first line that has words, without the marks of a heading."""
    for line in entry.split("\n"):
        words = line.strip().lstrip("#").strip()
        if words:
            return words
    return ""


def title_of(message: str) -> str:
    """Return what finds every passage of an entry: the work it came from, or else its summary."""
    _, work_context, _ = parts_of(message)
    return work_context or summary_of(message)


def checked(note: str) -> str:
    """Return an entry as the message of a commit, or refuse it."""
    text = note.replace("\r\n", "\n").strip("\n")
    message = text.encode(errors="replace").decode() + "\n"
    if "\0" in message or len(message.encode()) > LONGEST_MESSAGE:
        hint = f"Leave out NUL characters, and keep it below {LONGEST_MESSAGE} bytes"
        raise ValidationError("this entry cannot be the message of a commit", hint)
    return message


def overview(data: bytes) -> str:
    """Return what a section's file says, without the count at its end."""
    text = data.decode(errors="replace").replace("\r\n", "\n")
    return _COUNT.sub("", text).strip("\n")


def with_count(text: str, count: int) -> bytes:
    """Return a section's file: what is understood, and how many entries led there."""
    words = overview(text.encode(errors="replace"))
    if words:
        words += "\n\n"
    return f"{words}<!-- entry count: {count} -->\n".encode()


@functools.lru_cache(maxsize=10_000)
def is_section(path: str) -> bool:
    """Tell whether a file may be a section.

    The rules for any name hold, because a clone may contain anything.
    """
    if not path.endswith(SUFFIX) or MARK in path:
        return False
    try:
        return bool(relative_name(path))
    except ValidationError:
        return False


def _one_line(text: str) -> str:
    return " ".join(text.split())
