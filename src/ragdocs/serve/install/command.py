"""The command lines with which clients start this installation."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Sequence

from ragdocs.errors import UnavailableError
from ragdocs.import_path import SAFE_PATH
from ragdocs.system import platform

# One package of our own and some that we need: what is installed with them is found where they are.
_IMPORTABLE = """
from importlib.util import find_spec
raise SystemExit(not all(map(find_spec, ("ragdocs", "mcp", "numpy", "whoosh", "yaml"))))
"""
# `uvx` and `pipx run` make environments in their caches, which are cleared at any time, and which
# a variable may move: then only what is below them tells.
_IN_A_CACHE = re.compile(
    r"[/\\](?:archive|environments|builds)-v\d+[/\\]"
    r"|[/\\](?:\.cache|Caches|cache)[/\\]pipx[/\\]"
    r"|[/\\]pipx[/\\]\.cache[/\\]"
    r"|[/\\]\.cache[/\\][0-9a-f]{15}[/\\]"
)


def interpreter() -> tuple[str, ...]:
    """Return the Python of this installation with its options, by its absolute path.

    With these options it imports nothing from its working directory, which may be a stranger's
    repository. Entries of PYTHONPATH may be relative, so the variables of Python are ignored (-E)
    unless it needs them.
    """
    isolated = (sys.executable, "-E", SAFE_PATH)
    command = [*isolated, "-c", _IMPORTABLE]
    check = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - our own text
    if check.returncode == 0:
        return isolated
    return (sys.executable, SAFE_PATH)


def lasting_interpreter() -> tuple[str, ...]:
    """Return the Python of this installation, unless it may be gone tomorrow."""
    if _IN_A_CACHE.search(sys.executable):
        raise UnavailableError(
            f"this ragdocs runs from a cache ({sys.executable}) that is cleared at times",
            "Install it first, with `uv tool install ragdocs` or `pipx install ragdocs`",
        )
    return interpreter()


def server(python: Sequence[str], project: str) -> list[str]:
    """Return the command of the server, for a project or for the folder in which it starts."""
    command = [*python, "-m", "ragdocs", "mcp"]
    if project:
        command += ["--project", project]
    return command


def hook(python: Sequence[str], event: str, max_chars: int, project: str) -> str:
    """Return the line with which a shell runs a hook of this event."""
    command = [*python, "-m", "ragdocs", "context", "--hook", event]
    command += ["--max-chars", str(max_chars)]
    if project:
        command += ["--project", project]
    return joined(command)


def joined(command: Sequence[str]) -> str:
    """Return a command as one line for the shell of this system."""
    if platform.is_windows():
        return subprocess.list2cmdline(command)
    return shlex.join(command)
