"""How a hand-over looks: one page of markdown within a budget, every line with its source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragdocs.serve.surface import layouts
from ragdocs.serve.surface.shapes.care import HandoverChapter, HandoverLine, HandoverPage
from ragdocs.text.visible import line as one_line

if TYPE_CHECKING:
    from ragdocs.verbs.handover import Entry, Handover

HEADINGS = {
    "plans": "Open plans",
    "decisions": "Decisions",
    "docs": "Documentation that changed",
    "questions": "Unanswered questions",
    "steps": "Next steps",
}
LONGEST_LINE = 200
LEAST_CHARS = 500
MOST_CHARS = 40_000
# Where questions come from that were asked in a search.
QUESTION_LOG = "searches on this machine"


def page(handover: Handover, project: str, max_chars: int) -> HandoverPage:
    """Lay out a hand-over; each chapter gets its share of the room, and what others leave."""
    title = f"# Hand-over of {one_line(project)} since {handover.since.date().isoformat()}\n"
    chapters = {}
    for name, entries in handover.chapters.items():
        chapters[name] = list(map(_line, entries))
    rooms = _rooms(chapters, max_chars - len(title))
    sections = []
    text = title
    for name, lines in chapters.items():
        fitting = _fitting(lines, rooms[name])
        chapter = HandoverChapter(name=name, lines=fitting, omitted=len(lines) - len(fitting))
        sections.append(chapter)
        text += _chapter_text(chapter)
    return HandoverPage(since=layouts.iso(handover.since), chapters=sections, page=text)


def _line(entry: Entry) -> HandoverLine:
    source = entry.path or QUESTION_LOG
    if entry.line:
        source += f":{entry.line}"
    date = ""
    if entry.at is not None:
        date = entry.at.date().isoformat()
    text = layouts.cut(one_line(entry.text), LONGEST_LINE)
    remark = layouts.cut(one_line(entry.remark), LONGEST_LINE)
    return HandoverLine(text=text, source=one_line(source), date=date, remark=remark)


def _text(line: HandoverLine) -> str:
    parts = [line["text"]]
    if line["remark"]:
        parts[0] += f" ({line['remark']})"
    if line["date"]:
        parts.append(line["date"])
    parts.append(line["source"])
    return f"- {' · '.join(parts)}\n"


def _chapter_text(chapter: HandoverChapter) -> str:
    text = f"\n## {HEADINGS[chapter['name']]}\n\n"
    for line in chapter["lines"]:
        text += _text(line)
    if chapter["omitted"]:
        text += f"- {chapter['omitted']} more are not listed\n"
    elif not chapter["lines"]:
        text += "None.\n"
    return text


def _rooms(chapters: dict[str, list[HandoverLine]], room: int) -> dict[str, int]:
    """Share the room: small chapters take what they need, and the others share the rest."""
    empty = {}
    needs = {}
    for name, lines in chapters.items():
        rest = HandoverChapter(name=name, lines=[], omitted=len(lines))
        empty[name] = len(_chapter_text(rest))
        needs[name] = len("".join(map(_text, lines)))
    left = room - sum(empty.values())
    rooms = {}
    waiting = sorted(needs, key=lambda name: needs[name])
    for position, name in enumerate(waiting):
        rooms[name] = max(0, min(needs[name], left // (len(waiting) - position)))
        left -= rooms[name]
    return rooms


def _fitting(lines: Sequence[HandoverLine], room: int) -> list[HandoverLine]:
    fitting = []
    for line in lines:
        room -= len(_text(line))
        if room < 0:
            break
        fitting.append(line)
    return fitting
