"""Printing an answer: JSON for scripts, plain text in a pipe, colours and a pager on a terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ragdocs.system.patterns import later

FORMATS = ("json", "md", "table", "text")
HEADING = later(r"\d+\. ")
QUOTED = later(r" +\| ")
# Code in a quotation begins and ends with it.
FENCE = later(r" +\| \s*(?:```|~~~)")
# A text that is shown as it is, to be copied, stands between these lines.
VERBATIM = later(r"--- (?:text|end of text) [0-9a-f]{16}")
# As `click.style` writes them; importing click takes longer than a command that a server answers.
BOLD = "\x1b[1m"
YELLOW = "\x1b[33m"
PLAIN = "\x1b[0m"
# The colours of diff on a terminal, by the first character of a line.
DIFF = later(r"--- .*\n\+\+\+ ")
DIFF_COLOURS = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m"}
# Narrower terminals wrap lines themselves.
NARROWEST = 40


class Written(NamedTuple):
    """An answer in the words that are printed, and the table that a terminal draws instead."""

    text: str
    is_json: bool
    table: Mapping[str, Any] | None = None


def print_answer(
    answer: Any,
    text: Callable[[Any], str],
    *,
    as_json: bool,
    form: str | None = None,
    columns: Sequence[str] = (),
    formats: Mapping[str, Callable[[Any], str]] | None = None,
) -> None:
    """Print an answer with nothing hidden in it."""
    print_written(
        written(answer, text, as_json=as_json, form=form, columns=columns, formats=formats)
    )


def written(
    answer: Any,
    text: Callable[[Any], str],
    *,
    as_json: bool,
    form: str | None = None,
    columns: Sequence[str] = (),
    formats: Mapping[str, Callable[[Any], str]] | None = None,
) -> Written:
    """Return an answer as it is printed, with nothing hidden in it.

    `formats` are those that only this answer has.
    """
    from ragdocs.text.visible import framed

    shown = framed(answer)
    if formats and form and form in formats:
        return Written(formats[form](shown), is_json=True)
    if as_json or form == "json":
        return Written(json.dumps(shown, indent=2, ensure_ascii=False), is_json=True)
    if form not in ("md", "table"):
        return Written(text(shown), is_json=False)
    from ragdocs.serve.cli import tables

    table = tables.of_answer(_listed(shown), columns)
    if form == "md":
        return Written(tables.markdown(table), is_json=False)
    return Written(tables.plain(table), is_json=False, table=table.as_json())


def _listed(answer: Any) -> Mapping[str, Any]:
    """Return an answer with its results under one name."""
    if isinstance(answer, list):
        return {"result": answer}
    listed: Mapping[str, Any] = answer
    return listed


def print_written(answer: Written) -> None:
    """Print an answer: as it is for scripts, fitted to the width on a terminal."""
    if answer.is_json or not sys.stdout.isatty():
        print_line(answer.text)
    elif answer.table is None:
        print_text(answer.text)
    else:
        from ragdocs.serve.cli import tables

        table = tables.Table(**answer.table)
        _print_on_terminal(tables.drawn(table, _width(), colours=_has_colours()))


def print_text(text: str, *, paged: bool = True) -> None:
    """Print a text; on a terminal with colours, wrapped, and through a pager if it is long."""
    if not sys.stdout.isatty():
        print_line(text)
        return
    fitted = wrapped(text, _width())
    if _has_colours():
        fitted = _styled(fitted)
    if paged:
        _print_on_terminal(fitted)
    else:
        print_line(fitted)


def print_line(text: str) -> None:
    """Print a text as it is, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def print_error(text: str) -> None:
    """Print what went wrong; a terminal gets it wrapped, but for a text that is to be copied."""
    if sys.stderr.isatty():
        message, mark, quoted = text.partition("\n--- ")
        text = wrapped(message, _width()) + mark + quoted
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _print_on_terminal(text: str) -> None:
    from shutil import get_terminal_size

    if text.count("\n") >= get_terminal_size().lines:
        import click

        click.echo_via_pager(f"{text}\n")
    else:
        print_line(text)


def _has_colours() -> bool:
    """Tell whether this terminal wants colours; see no-color.org."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _width() -> int:
    from shutil import get_terminal_size

    return get_terminal_size().columns


def wrapped(text: str, width: int) -> str:
    """Break long lines between words; code, diffs and texts to copy stay whole."""
    if width < NARROWEST or DIFF.match(text):
        return text
    lines = []
    is_verbatim = False
    is_code = False
    for line in text.split("\n"):
        if VERBATIM.match(line):
            is_verbatim = line.startswith("--- text")
        if not QUOTED.match(line):
            is_code = False
        elif FENCE.match(line):
            is_code = not is_code
        if is_verbatim or is_code or len(line) <= width:
            lines.append(line)
        else:
            lines += _wrapped_line(line, width)
    return "\n".join(lines)


def _wrapped_line(line: str, width: int) -> list[str]:
    """Break one line; what follows is indented, and behind the mark of a quotation again."""
    import textwrap

    quoted = QUOTED.match(line)
    if quoted:
        mark = quoted[0]
    else:
        mark = " " * (len(line) - len(line.lstrip(" ")) + 3)
    parts = textwrap.wrap(
        line,
        width,
        subsequent_indent=mark,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
    return parts or [line]


def _styled(text: str) -> str:
    style = _style
    if DIFF.match(text):
        style = _diff_style
    lines = []
    for line in text.split("\n"):
        colour = style(line)
        if colour:
            lines.append(f"{colour}{line}{PLAIN}")
        else:
            lines.append(line)
    return "\n".join(lines)


def _style(line: str) -> str:
    if HEADING.match(line):
        return BOLD
    if line.startswith("Note:"):
        return YELLOW
    return ""


def _diff_style(line: str) -> str:
    return DIFF_COLOURS.get(line[:1], "")
