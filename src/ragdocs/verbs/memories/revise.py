"""Changing a part of a text: a passage by its words, a section by its heading, fields by name.

The rest stays.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragdocs.errors import NotFoundError, ValidationError
from ragdocs.text import frontmatter as metadata
from ragdocs.text import sections
from ragdocs.text.formats import markdown as markup
from ragdocs.text.sections import SHOWN, Section

MODES = ("replace", "replace_all", "append", "prepend")
# Lines that are compared with a passage that was not found; a longer text costs too much to be
# helpful.
NEAR_LINES = 5000
# Of places in one message.
LISTED = 8

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
    """A text after an edit, where the first new passage stands in it.

    And how many places were changed.
    """

    text: str
    start: int
    stop: int
    places: int


def revise(text: str, path: str, edit: Edit) -> Revised:
    """Make one edit; whatever it does not name keeps its bytes."""
    if edit.mode not in MODES:
        raise ValidationError(f"{edit.mode[:40]!r} is not a mode", f"Use one of {', '.join(MODES)}")
    block = markup.front(text)
    start = block[2] if block else 0
    front, body = text[:start], text[start:]
    fields = edit.fields or {}
    if edit.text is None:
        if edit.find is not None or edit.section is not None:
            raise ValidationError(
                "there is no text", 'Give the new text; "" removes what was found'
            )
        if not fields:
            raise ValidationError(
                "there is nothing to change", "Give text with find or section, or fields"
            )
        front = metadata.set_fields(text, fields)
        return Revised(front + body, 0, len(front), len(fields))
    changed = _revise_body(body, front, path, edit)
    front = metadata.set_fields(text, fields) if fields else front
    start, stop = (len(front) + offset for offset in (changed.start, changed.stop))
    return Revised(front + changed.text, start, stop, changed.places + len(fields))


def _revise_body(body: str, front: str, path: str, edit: Edit) -> Revised:
    text = (edit.text or "").replace("\r\n", "\n").replace("\n", metadata.newline(front + body))
    section = None
    if edit.section is not None:
        outline = sections.outline(body, path, first_line=front.count("\n") + 1)
        section = sections.find(outline, edit.section)
    if edit.find is not None:
        return _revise_passages(body, front, text, edit, section)
    if edit.mode == "replace_all" or (section is None and edit.mode == "replace"):
        hint = "Give find, or section, or mode append or prepend; update_memory replaces the whole text"
        raise ValidationError(f"mode {edit.mode} needs to know what to replace", hint)
    text = text.strip("\r\n")
    if section is None:
        return _place(body, (0, len(body)), text, edit.mode)
    # A subsection goes behind the other subsections; anything else belongs to the section itself,
    # above them.
    whole = edit.mode == "replace" or _begins_with_heading(text, path)
    start = section.block.stop - body[: section.block.stop].endswith("\r")
    return _place(body, (start, section.stop if whole else section.inner), text, edit.mode)


def _begins_with_heading(text: str, path: str) -> bool:
    blocks = markup.blocks(text, path)
    return bool(blocks) and blocks[0].kind == "heading" and blocks[0].start == 0


def _place(body: str, span: tuple[int, int], text: str, mode: str) -> Revised:
    """Put text into a span.

    In place of its content, before it or behind it, between the blank lines that are there.
    """
    content = body[span[0] : span[1]]
    end = metadata.newline(body)
    leading = _LEADING.match(content)
    lead = leading[0] if leading else ""
    core = content[len(lead) :].rstrip()
    tail = content[len(lead) + len(core) :]
    if not core:
        lead, tail = "", content
        if span[0]:
            # Below a heading without content: a blank line on both sides.
            lead = 2 * end
            tail = 2 * end if span[1] < len(body) else end if "\n" in content else ""
    if mode == "replace" or not core:
        new, at = text, 0
        if not text:
            lead = ""
    elif mode == "append":
        joint = _joint(core.rpartition("\n")[2], text, end)
        new, at = core + joint + text, len(core) + len(joint)
    else:
        joint = _joint(text.rpartition("\n")[2], core, end)
        new, at = text + joint + core, 0
    start = span[0] + len(lead) + at
    return Revised(
        body[: span[0]] + lead + new + tail + body[span[1] :], start, start + len(text), 1
    )


def _joint(above: str, below: str, end: str) -> str:
    """Return what goes between two pieces: items of a list and rows of a table stay together."""
    rows = above.lstrip().startswith("|") and below.startswith("|")
    return end if rows or (_BULLET.match(above) and _BULLET.match(below)) else 2 * end


def _revise_passages(
    body: str, front: str, text: str, edit: Edit, section: Section | None
) -> Revised:
    wanted = (edit.find or "").replace("\r\n", "\n")
    if not wanted:
        raise ValidationError(
            "find is empty", "Give some words of the passage as they stand in the text"
        )
    low, high = (section.block.start, section.stop) if section else (0, len(body))
    pattern = re.compile("\r?\n".join(map(re.escape, wanted.split("\n"))))
    matches = list(pattern.finditer(body, low, high))
    if not matches:
        raise _missing(body, front, wanted, section)
    first = _line(front + body, len(front) + matches[0].start())
    more = edit.mode != "replace_all" and (
        len(matches) > 1 or pattern.search(body, matches[0].start() + 1, high)
    )
    if more:
        lines = [_line(front + body, len(front) + match.start()) for match in matches[:LISTED]]
        places = ", ".join(map(str, lines)) + ("…" if len(matches) > LISTED else "")
        count = (
            f"{len(matches)} times, in lines {places}"
            if len(matches) > 1
            else f"more than once in line {first}"
        )
        hint = "Give more of the words around the one you mean, name its section, or use mode replace_all"
        raise ValidationError(f"{sections.short(wanted)} stands in the text {count}", hint)
    pieces: list[str] = []
    done = 0
    for match in matches:
        kept = {"append": (match[0], ""), "prepend": ("", match[0])}.get(edit.mode, ("", ""))
        pieces += (body[done : match.start()], kept[0], text, kept[1])
        done = match.end()
    start = matches[0].start() + (len(matches[0][0]) if edit.mode == "append" else 0)
    return Revised("".join((*pieces, body[done:])), start, start + len(text), len(matches))


def _missing(body: str, front: str, wanted: str, section: Section | None) -> NotFoundError:
    """Say that a passage is not there, and what stands there that is like it."""
    where = f" in the section {sections.short(section.path)}" if section else ""
    message = f"{sections.short(wanted)} does not stand in the text{where}; 0 places match"
    text = front + body
    if wanted in front.replace("\r\n", "\n"):
        return NotFoundError(message, "It stands in the frontmatter: use fields to change that")
    loose = re.compile(r"\s++".join(map(re.escape, wanted.split()))) if wanted.split() else None
    if loose and (match := loose.search(body)):
        line = _line(text, len(front) + match.start())
        if section and wanted in match[0].replace("\r\n", "\n"):
            return NotFoundError(message, f"It stands in line {line}: name that section, or none")
        return NotFoundError(
            message, f"Line {line} differs from it only in spaces: {sections.short(match[0])}"
        )
    lines = body.split("\n")[:NEAR_LINES]
    sample = max(wanted.split("\n"), key=len)[:SHOWN]
    near = difflib.get_close_matches(
        sample, {line[:SHOWN] for line in lines if line.strip()}, n=3, cutoff=0.5
    )
    first = front.count("\n") + 1
    numbered = [(n, line) for n, line in enumerate(lines, first) if line[:SHOWN] in near]
    shown = "".join(f"\n   | {n}: {line[:SHOWN].rstrip()}" for n, line in numbered[:3])
    return NotFoundError(
        message, f"These lines are like it:{shown}" if shown else "read_memory shows the text"
    )


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return f'"{flat[:SHOWN]}…"' if len(flat) > SHOWN else f'"{flat}"'
