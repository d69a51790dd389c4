"""The help of `ragdocs` itself, and which modules a command is in, known without importing them.

Both are in a file that `python3 tasks.py docs` writes from the commands; a test compares it with
them. Help comes from it before click is imported, so little is imported here.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from ragdocs import __version__

# Set by the shell when it asks for completions.
COMPLETION = "_RAGDOCS_COMPLETE"
FILE = os.path.join(os.path.dirname(__file__), "commands.json")
# The help fits into so many columns; a narrower terminal has it wrapped by the command line.
COLUMNS = 80
WRONG_USAGE = 2


def show(words: Sequence[str]) -> int | None:
    """Print the help or the version if that is asked for; return the exit code, else nothing."""
    if COMPLETION in os.environ:
        return None
    if list(words) == ["--version"]:
        return _print(f"ragdocs {__version__}\n", 0)
    if list(words) not in ([], ["--help"]) or _columns() < COLUMNS:
        return None
    code = 0
    if not words:
        code = WRONG_USAGE
    return _print(read()["help"], code)


def modules(name: str) -> list[str]:
    """Return the modules that declare a command or the commands of a group, if it is one."""
    declaring: list[str] = read()["modules"].get(name, [])
    return declaring


def read() -> dict[str, Any]:
    """Return the content of the file."""
    with open(FILE, encoding="utf-8") as file:
        content: dict[str, Any] = json.load(file)
    return content


def _print(text: str, code: int) -> int:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output, such as `head`, has seen enough.
        sys.stderr.close()
        return 0
    return code


def _columns() -> int:
    """Return the width of the terminal as `shutil` does, whose import costs more than the help."""
    variable = os.environ.get("COLUMNS", "")
    try:
        columns = int(variable)
    except ValueError:
        columns = 0
    if columns > 0:
        return columns
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    except (AttributeError, ValueError, OSError):
        # Not a terminal, or none that says how wide it is.
        columns = 0
    return columns or COLUMNS
