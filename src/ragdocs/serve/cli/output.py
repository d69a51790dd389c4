"""Printing an answer: JSON for scripts, plain text in a pipe, colours and a pager on a terminal."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from shutil import get_terminal_size
from typing import Any

import click

from ragdocs.text.visible import framed

HEADING = re.compile(r"\d+\. ")
QUOTED = re.compile(r" +\| ")


def print_answer(answer: Any, text: Callable[[Any], str], *, as_json: bool) -> None:
    """Print an answer with nothing hidden in it."""
    shown = framed(answer)
    if as_json:
        click.echo(json.dumps(shown, indent=2, ensure_ascii=False))
    else:
        print_text(text(shown))


def print_text(text: str) -> None:
    """Print a text; one that is longer than the terminal goes through a pager."""
    if not sys.stdout.isatty():
        click.echo(text)
        return
    styled = text if "NO_COLOR" in os.environ else _styled(text)
    if text.count("\n") >= get_terminal_size().lines:
        click.echo_via_pager(f"{styled}\n")
    else:
        click.echo(styled)


def _styled(text: str) -> str:
    if "\x1b[" in text:
        return text
    lines = []
    for line in text.split("\n"):
        if HEADING.match(line):
            lines.append(click.style(line, bold=True))
        elif QUOTED.match(line):
            lines.append(line)
        elif line.startswith("Note:"):
            lines.append(click.style(line, fg="yellow"))
        else:
            lines.append(line)
    return "\n".join(lines)
