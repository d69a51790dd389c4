"""A unified diff as rows of a page."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PLACE = re.compile(r"@@ -(?P<old>\d+)(?:,\d+)? \+(?P<new>\d+)(?:,\d+)? @@")
# The names of the two texts.
HEADER_LINES = 2


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a diff; `sign` is "+", "-", " ", or "…" where lines are left out."""

    sign: str
    number: int
    text: str


def rows(unified: str) -> list[Row]:
    """Return the lines of a diff with their numbers in the text that has them."""
    rows: list[Row] = []
    old = new = 1
    for line in unified.split("\n")[HEADER_LINES:]:
        place = _PLACE.match(line)
        if place:
            first = int(place["new"])
            if first > new:
                rows.append(Row("…", new, f"lines {new} to {first - 1} are the same"))
            old = int(place["old"])
            new = first
        elif line.startswith("-"):
            rows.append(Row("-", old, line[1:]))
            old += 1
        else:
            rows.append(Row(line[:1] or " ", new, line[1:]))
            new += 1
            old += not line.startswith("+")
    return rows
