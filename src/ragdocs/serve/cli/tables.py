"""Tables of answers: aligned in a pipe, in markdown, and drawn on a terminal."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

# Between two columns of a table in a pipe.
GAP = "  "
# Headings that read better than the names of the fields.
HEADINGS = {"filename": "memory", "memory_id": "memory", "file_path": "file"}
# Columns whose values are numbers or sizes, which are compared by their last digits.
RIGHT = frozenset({"size", "score", "bytes", "line", "places"})
# Columns of words that may go over several lines; the others stay whole, to be copied.
PROSE = frozenset(
    {
        "title",
        "tags",
        "header path",
        "preview",
        "reasons",
        "subject",
        "problem",
        "value",
        "origin",
    }
)
# So many characters of such a column have to fit beside the others.
NARROWEST_PROSE = 24
# Between the values of a row that has its own lines.
SEPARATOR = " · "
INDENT = "   "
CYAN = "\x1b[36m"
PLAIN = "\x1b[0m"
# A commit is told from all others by so many digits.
COMMIT_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Table:
    """Headings and rows of plain words, and the lines below them."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    remarks: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the table as a server sends it to a command."""
        return {
            "headings": list(self.headings),
            "rows": list(map(list, self.rows)),
            "remarks": list(self.remarks),
        }


def of_answer(answer: Mapping[str, Any], columns: Sequence[str]) -> Table:
    """Return the results of an answer as a table of these fields."""
    return of_rows(answer["result"], columns, _remarks(answer))


def of_rows(
    results: Sequence[Mapping[str, Any]], columns: Sequence[str], remarks: Sequence[str] = ()
) -> Table:
    """Return a table of these fields; a column that is empty in every row is left out."""
    used = []
    for column in columns:
        if any(_cell(result.get(column)) for result in results):
            used.append(column)
    rows = []
    for result in results:
        cells = [_cell(result.get(column)) for column in used]
        if used[:1] == ["commit"]:
            cells[0] = cells[0][:COMMIT_DIGITS]
        rows.append(cells)
    headings = [HEADINGS.get(column, column.replace("_", " ")) for column in used]
    return Table(headings, rows, remarks)


def _remarks(answer: Mapping[str, Any]) -> list[str]:
    remarks = []
    if not answer["result"]:
        remarks.append("nothing found")
    if answer.get("omitted"):
        remarks.append(f"{answer['omitted']} more are not listed; raise --limit to see them")
    for note in answer.get("notes") or ():
        remarks.append(f"Note: {note}")
    return remarks


def _cell(value: Any) -> str:
    """Write a value on one line."""
    from ragdocs.text.visible import line

    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, (list, tuple)):
        return line(", ".join(map(str, value)))
    return line(str(value))


def plain(table: Table) -> str:
    """Write a table with aligned columns, for a pipe."""
    lines = []
    if table.rows:
        widths = _widths(table)
        for row in (table.headings, *table.rows):
            cells = []
            for heading, cell, width in zip(table.headings, row, widths, strict=True):
                padded = cell.ljust(width)
                if heading in RIGHT:
                    padded = cell.rjust(width)
                cells.append(padded)
            lines.append(GAP.join(cells).rstrip())
    return "\n".join([*lines, *table.remarks])


def _widths(table: Table) -> list[int]:
    widths = []
    for number, heading in enumerate(table.headings):
        longest = max(len(row[number]) for row in table.rows)
        widths.append(max(len(heading), longest))
    return widths


def markdown(table: Table) -> str:
    """Write a table as markdown has it."""
    lines = []
    if table.rows:
        lines.append(_markdown_row(table.headings))
        lines.append("|" + "---|" * len(table.headings))
        for row in table.rows:
            lines.append(_markdown_row(row))
    if lines and table.remarks:
        lines.append("")
    return "\n".join([*lines, *table.remarks])


def _markdown_row(cells: Sequence[str]) -> str:
    row = "|"
    for cell in cells:
        escaped = cell.replace("\\", "\\\\").replace("|", "\\|")
        row += f" {escaped} |"
    return row


def drawn(table: Table, width: int, *, colours: bool) -> str:
    """Draw a table that fits a terminal of this width, or its rows as a list where none does."""
    if not table.rows:
        return "\n".join(table.remarks)
    if _least_width(table) > width:
        return _as_list(table, width, colours=colours)
    from rich import box
    from rich.console import Console
    from rich.table import Table as Drawing
    from rich.text import Text

    drawing = Drawing(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), header_style="bold")
    for heading in table.headings:
        justify: Literal["left", "right"] = "left"
        if heading in RIGHT:
            justify = "right"
        is_whole = heading not in PROSE
        drawing.add_column(heading, justify=justify, no_wrap=is_whole, overflow="fold")
    # The first column is what a person types next.
    drawing.columns[0].style = "cyan"
    for row in table.rows:
        # Values were written by others: what looks like markup in them is none.
        drawing.add_row(*map(Text, row))
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colours, no_color=not colours)
    console.print(drawing)
    lines = map(str.rstrip, out.getvalue().strip("\n").split("\n"))
    return "\n".join([*lines, *table.remarks])


def _least_width(table: Table) -> int:
    """Return how wide a terminal has to be for a table in which nothing but prose is wrapped."""
    width = 0
    for heading, longest in zip(table.headings, _widths(table), strict=True):
        least = longest
        if heading in PROSE:
            least = min(longest, NARROWEST_PROSE)
        width += least + len(GAP)
    return width


def _as_list(table: Table, width: int, *, colours: bool) -> str:
    """Write what a person types next on a line of its own, and the rest of the row below it."""
    lines = []
    for first, *others in table.rows:
        if colours:
            lines.append(f"{CYAN}{first}{PLAIN}")
        else:
            lines.append(first)
        details = SEPARATOR.join(filter(None, others))
        lines += textwrap.wrap(
            details,
            width,
            initial_indent=INDENT,
            subsequent_indent=INDENT,
            break_on_hyphens=False,
        )
    return "\n".join([*lines, *table.remarks])
