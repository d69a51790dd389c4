"""A folder of architecture decision records as decisions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from ragdocs.text import frontmatter
from ragdocs.verbs.exchange import source
from ragdocs.verbs.exchange.note import Note, file_name, moment

_NUMBERED = re.compile(r"(?:adr-?)?\d{2,5}[-_ ].+\.md", re.IGNORECASE)
_HEADING = re.compile(r"^#[ \t]+(.+)$", re.MULTILINE)
_NUMBER = re.compile(r"(?:ADR[ -]?)?\d{1,5}(?:[.:]|[ \t]+[-:])[ \t]*|ADR[ -]?\d{1,5}[ \t]+")
_LINE = re.MULTILINE | re.IGNORECASE
_DATE = re.compile(r"^[* \t-]{0,9}date[* \t]{0,9}:[* \t]{0,9}(\d{4}-\d{2}-\d{2})", _LINE)
_STATUS = re.compile(r"^##[ \t]+status[ \t]*\n{1,4}[ \t]*([A-Za-z]+)", _LINE)
_STATUS_LINE = re.compile(r"^[* \t-]{0,9}status[* \t]{0,9}:[* \t]{0,9}([A-Za-z]+)", _LINE)
# What these say does not hold any more.
_OVER = frozenset({"superseded", "superceded", "deprecated", "rejected"})
_LONGEST_TITLE = 200


def is_one(path: Path) -> bool:
    """Tell whether the texts of a folder are numbered as decisions are."""
    count = numbered = 0
    for file in path.glob("*.md"):
        if file.name.lower() != "readme.md":
            count += 1
            numbered += bool(_NUMBERED.fullmatch(file.name))
    return numbered >= 2 and 2 * numbered > count  # noqa: PLR2004 - a series


def read(path: Path) -> Iterator[Note]:
    """Read each record as a decision; those that are superseded are archived."""
    for name, file in source.texts(path):
        lower = file.name.lower()
        if path.is_dir() and (lower in {"readme.md", "index.md"} or "template" in lower):
            continue
        text, problem = source.read_text(file)
        block, body, _ = frontmatter.split(text)
        properties: dict[str, Any] = {}
        if block is not None:
            properties = frontmatter.load(block)[0]
        properties.pop("type", None)
        heading = _HEADING.search(body)
        title = file.stem
        if heading:
            title = _NUMBER.sub("", heading[1].strip(), count=1)
        date = properties.pop("date", None) or _first(_DATE, body)
        state = properties.pop("status", None) or _first(_STATUS, body)
        state = state or _first(_STATUS_LINE, body)
        tags = source.words(properties.pop("tags", []))
        fields: dict[str, object] = {**properties, "title": title[:_LONGEST_TITLE]}
        if state:
            fields["adr_status"] = str(state).lower()
        if str(state).lower().split(" ")[0] in _OVER:
            fields["status"] = "archived"
        yield Note(
            name=file_name(name.removesuffix(".md").replace("/", "-")),
            text=body,
            item="decision",
            tags=tags,
            fields=fields,
            created=moment(date) or _modified(file),
            key=name,
            problem=problem,
        )


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    if match is None:
        return ""
    return match[1]


def _modified(file: Path) -> datetime | None:
    return moment(file.stat().st_mtime)
