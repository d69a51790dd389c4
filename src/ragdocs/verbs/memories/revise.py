"""Changing a part of a text: a passage by its words, a section by its heading, fields by name.

The rest stays.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragdocs.errors import NotFoundError, ValidationError
from ragdocs.text import frontmatter, sections
from ragdocs.text.formats import markdown
from ragdocs.text.sections import SHOWN, Section

MODES = ("replace", "replace_all", "append", "prepend")
# Lines that are compared with a passage that was not found; a longer text costs too much to be
# helpful.
NEAR_LINES = 5000
# Of lines in one message.
LISTED = 8
NEAR_LISTED = 3

_LEADING = re.compile(r"(?:[ \t\r]*+\n)*+")
_BULLET = re.compile(r"[ \t]*+(?:[-*+]|\d{1,9}[.)])[ \t]")


@dataclass(frozen=True, slots=True)
class Edit:
    """What to change: `text` at a passage, a section, or an end of the body.

    And fields, None to remove one.
    """

    text: str | None = None
    find: str | None = None
    section: str | None = None
    mode: str = "replace"
    fields: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Revised:
    """A text after an edit, the offsets of the first new passage, and the number of changes."""

    text: str
    start: int
    stop: int
    places: int


def revise(text: str, edit: Edit) -> Revised:
    """Make one edit; whatever it does not name keeps its bytes."""
    if edit.mode not in MODES:
        raise ValidationError(f"{edit.mode[:40]!r} is not a mode", f"Use one of {', '.join(MODES)}")
    start = 0
    block = markdown.front(text)
    if block:
        start = block[2]
    front = text[:start]
    body = text[start:]
    if edit.text is None:
        return _revise_fields(text, body, edit)
    fields = edit.fields or {}
    changed = _revise_body(body, front, edit)
    if fields:
        front = frontmatter.set_fields(text, fields)
    return Revised(
        front + changed.text,
        len(front) + changed.start,
        len(front) + changed.stop,
        changed.places + len(fields),
    )


def _revise_fields(text: str, body: str, edit: Edit) -> Revised:
    if edit.find is not None or edit.section is not None:
        raise ValidationError("there is no text", 'Give the new text; "" removes what was found')
    if not edit.fields:
        raise ValidationError(
            "there is nothing to change", "Give text with find or section, or fields"
        )
    front = frontmatter.set_fields(text, edit.fields)
    return Revised(front + body, 0, len(front), len(edit.fields))


def _revise_body(body: str, front: str, edit: Edit) -> Revised:
    end = frontmatter.newline(front + body)
    text = _plain(edit.text or "").replace("\n", end)
    section = None
    if edit.section is not None:
        outline = sections.outline(body, markdown.blocks(body), first_line=front.count("\n") + 1)
        section = sections.find(outline, edit.section)
    if edit.find is not None:
        return _revise_passages(body, front, text, edit, section)
    if edit.mode == "replace_all" or (section is None and edit.mode == "replace"):
        hint = (
            "Give find, or section, or mode append or prepend;"
            " <replace a memory> replaces the whole text"
        )
        raise ValidationError(f"mode {edit.mode} needs to know what to replace", hint)
    text = text.strip("\r\n")
    if section is None:
        return _insert(body, (0, len(body)), text, edit.mode)
    stop = section.inner
    # A subsection goes behind the other subsections; anything else belongs to the section itself,
    # above them.
    if edit.mode == "replace" or _begins_with_heading(text):
        stop = section.stop
    start = section.block.stop - body[: section.block.stop].endswith("\r")
    return _insert(body, (start, stop), text, edit.mode)


def _begins_with_heading(text: str) -> bool:
    blocks = markdown.blocks(text)
    if not blocks:
        return False
    return blocks[0].kind == "heading" and blocks[0].start == 0


# --- a span of the body ---


def _insert(
    body: str,
    span: tuple[int, int],
    text: str,
    mode: str,
) -> Revised:
    """Put text into a span: in place of its content, before it or behind it.

    The blank lines around the content stay.
    """
    start, stop = span
    before, content, after = body[:start], body[start:stop], body[stop:]
    end = frontmatter.newline(body)
    lead, core, tail = _trimmed(content)
    if not core:
        lead = ""
        tail = content
        if before:
            # Below a heading without content: a blank line on both sides.
            lead = 2 * end
            tail = _blank_line_below(content, after, end)
    above = below = ""
    if mode == "replace" or not core:
        if not text:
            lead = ""
    elif mode == "append":
        above = core + _joint(core, text, end)
    else:
        below = _joint(text, core, end) + core
    before += lead + above
    revised = before + text + below + tail + after
    return Revised(revised, len(before), len(before) + len(text), 1)


def _trimmed(content: str) -> tuple[str, str, str]:
    """Cut a content into the blank lines above, the text, and the white space below."""
    leading = _LEADING.match(content)
    assert leading is not None
    lead = leading[0]
    core = content[len(lead) :].rstrip()
    return lead, core, content[len(lead) + len(core) :]


def _blank_line_below(content: str, after: str, end: str) -> str:
    if after:
        return 2 * end
    if "\n" in content:
        return end
    return ""


def _joint(above: str, below: str, end: str) -> str:
    """Return what goes between two texts: items of a list and rows of a table stay together."""
    last_line = above.rpartition("\n")[2]
    are_rows = last_line.lstrip().startswith("|") and below.startswith("|")
    are_items = _BULLET.match(last_line) and _BULLET.match(below)
    if are_rows or are_items:
        return end
    return 2 * end


# --- passages of the body ---


def _revise_passages(
    body: str,
    front: str,
    text: str,
    edit: Edit,
    section: Section | None,
) -> Revised:
    wanted = _plain(edit.find or "")
    if not wanted:
        raise ValidationError(
            "find is empty", "Give some words of the passage exactly as they are in the text"
        )
    low = 0
    high = len(body)
    if section is not None:
        low = section.block.start
        high = section.stop
    lines = map(re.escape, wanted.split("\n"))
    pattern = re.compile("\r?\n".join(lines))
    matches = list(pattern.finditer(body, low, high))
    if not matches:
        raise _missing(body, front, wanted, section)
    first = matches[0]
    is_repeated = len(matches) > 1 or pattern.search(body, first.start() + 1, high)
    if is_repeated and edit.mode != "replace_all":
        raise _ambiguous(body, front, wanted, matches)
    parts: list[str] = []
    done = 0
    for match in matches:
        parts.append(body[done : match.start()])
        parts.append(_changed(match[0], text, edit.mode))
        done = match.end()
    parts.append(body[done:])
    start = first.start()
    if edit.mode == "append":
        start = first.end()
    return Revised("".join(parts), start, start + len(text), len(matches))


def _changed(passage: str, text: str, mode: str) -> str:
    if mode == "append":
        return passage + text
    if mode == "prepend":
        return text + passage
    return text


def _ambiguous(
    body: str,
    front: str,
    wanted: str,
    matches: Sequence[re.Match[str]],
) -> ValidationError:
    """Say where a passage stands that should stand in the text only once."""
    lines = []
    for match in matches[:LISTED]:
        line = _line(front, body, match.start())
        lines.append(str(line))
    count = f"more than once in line {lines[0]}"
    if len(matches) > 1:
        listed = ", ".join(lines)
        if len(matches) > LISTED:
            listed += "…"
        count = f"{len(matches)} times, in lines {listed}"
    return ValidationError(
        f"{sections.short(wanted)} occurs in the text {count}",
        "Give more of the words around the one you mean, name its section, or use mode replace_all",
    )


def _missing(
    body: str,
    front: str,
    wanted: str,
    section: Section | None,
) -> NotFoundError:
    """Say that a passage is not there, and which text is like it."""
    where = "memory"
    if section is not None:
        where = f"section {sections.short(section.path)}"
    message = f"not found in the {where}: {sections.short(wanted)}"
    if wanted in _plain(front):
        return NotFoundError(message, "It is in the frontmatter: use fields to change that")
    match = _loose_match(wanted, body)
    if match is not None:
        line = _line(front, body, match.start())
        if section is not None and wanted in _plain(match[0]):
            return NotFoundError(message, f"It is in line {line}: name that section, or none")
        return NotFoundError(
            message, f"Line {line} differs from it only in spaces: {sections.short(match[0])}"
        )
    near = _near_lines(body, wanted, front.count("\n") + 1)
    if near:
        return NotFoundError(message, f"These lines are like it:{near}")
    return NotFoundError(message, "<read a memory> shows the text")


def _loose_match(wanted: str, body: str) -> re.Match[str] | None:
    """Find a passage whatever the spaces between its words are."""
    words = wanted.split()
    if not words:
        return None
    pattern = r"\s++".join(map(re.escape, words))
    return re.search(pattern, body)


def _near_lines(body: str, wanted: str, first_line: int) -> str:
    """Quote the lines that are most like the longest line of a passage, with their numbers."""
    lines = body.split("\n")[:NEAR_LINES]
    longest = max(wanted.split("\n"), key=len)
    candidates = {line[:SHOWN] for line in lines if line.strip()}
    near = difflib.get_close_matches(longest[:SHOWN], candidates, n=NEAR_LISTED, cutoff=0.5)
    quoted = []
    for number, line in enumerate(lines, first_line):
        if line[:SHOWN] in near:
            quoted.append(f"\n   | {number}: {line[:SHOWN].rstrip()}")
    return "".join(quoted[:NEAR_LISTED])


def _line(front: str, body: str, offset: int) -> int:
    """Return the line of an offset in the body, counted from the top of the file."""
    return front.count("\n") + body.count("\n", 0, offset) + 1


def _plain(text: str) -> str:
    """Return a text with line ends of one character."""
    return text.replace("\r\n", "\n")
