"""How a journal is written down.

The message of an entry, the file of a section, and which names both may have.
"""

from __future__ import annotations

import functools
import re
from contextlib import suppress

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
    context = f"{_WORK_CONTEXT} {_one_line(work_context)}" if work_context.strip() else ""
    return "\n\n".join(
        filter(None, (_one_line(summary), context, entry.replace("\r\n", "\n").strip("\n")))
    )


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
    lines = (line.strip().lstrip("#").strip() for line in entry.split("\n"))
    said = summary or next(filter(None, lines), "") or context
    return said if len(said) <= LONGEST_SUMMARY else f"{said[: LONGEST_SUMMARY - 1].rstrip()}…"


def title_of(message: str) -> str:
    """Return what every passage of an entry is found by.

    The work it came from, or else its summary.
    """
    return parts_of(message)[1] or summary_of(message)


def checked(note: str) -> str:
    """Return an entry as the message of a commit, or refuse it."""
    message = note.replace("\r\n", "\n").strip("\n").encode(errors="replace").decode() + "\n"
    if "\0" in message or len(message.encode()) > LONGEST_MESSAGE:
        hint = f"Leave out NUL characters, and keep it below {LONGEST_MESSAGE} bytes"
        raise ValidationError("this entry cannot be the message of a commit", hint)
    return message


def overview(data: bytes) -> str:
    """Return what a section's file says, without the count at its end."""
    return _COUNT.sub("", data.decode(errors="replace").replace("\r\n", "\n")).strip("\n")


def with_count(text: str, count: int) -> bytes:
    """Return a section's file: what is understood, and how many entries led there."""
    said = overview(text.encode(errors="replace"))
    return (f"{said}\n\n" if said else "").encode() + f"<!-- entry count: {count} -->\n".encode()


@functools.lru_cache(maxsize=10_000)
def is_section(path: str) -> bool:
    """Tell whether a file may be a section.

    By the rules for any name, because a clone may hold anything.
    """
    with suppress(ValidationError):
        return path.endswith(SUFFIX) and MARK not in path and bool(relative_name(path))
    return False


def _one_line(text: str) -> str:
    return " ".join(text.split())
