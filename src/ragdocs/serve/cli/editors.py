"""Opening a file at a line in the editor of the person who asks."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from pathlib import PurePath

from ragdocs.errors import UnavailableError, ValidationError
from ragdocs.system import platform

# How editors are told a line, by the names of their programs.
PLUS = frozenset(
    [
        "vi",
        "vim",
        "nvim",
        "gvim",
        "mvim",
        "view",
        "vimdiff",
        "nvi",
        "elvis",
        "vile",
        "nano",
        "pico",
        "rnano",
        "ne",
        "emacs",
        "emacsclient",
        "mg",
        "joe",
        "jed",
        "jmacs",
        "jpico",
        "micro",
        "kak",
        "gedit",
        "gnome-text-editor",
        "pluma",
        "xed",
        "ee",
        "mcedit",
        "less",
    ]
)
GOTO = frozenset(["code", "code-insiders", "codium", "vscodium", "cursor", "windsurf", "positron"])
COLON = frozenset(
    ["subl", "sublime_text", "hx", "helix", "zed", "zeditor", "atom", "pulsar", "lapce"]
)
LINE_OPTION = frozenset(
    [
        "idea",
        "pycharm",
        "webstorm",
        "phpstorm",
        "goland",
        "clion",
        "rubymine",
        "rider",
        "kate",
        "kwrite",
        "mate",
        "geany",
    ]
)


def find(environ: Mapping[str, str]) -> list[str]:
    """Return the words of the person's editor, or none where no editor is named."""
    for variable in ("VISUAL", "EDITOR"):
        written = environ.get(variable, "").strip()
        if not written:
            continue
        try:
            words = shlex.split(written, posix=not platform.is_windows())
        except ValueError as error:
            raise ValidationError(
                f"{variable} cannot be read: {error}", f"Set {variable} to a program, such as vim"
            ) from None
        return [word.strip('"') for word in words]
    return []


def command(editor: list[str], path: str, line: int | None) -> list[str]:
    """Return the words that open a file in an editor; a line only where the way is known."""
    if line is None:
        return [*editor, path]
    program = PurePath(editor[0]).name.casefold()
    for ending in (".exe", ".cmd"):
        program = program.removesuffix(ending)
    if program in PLUS:
        return [*editor, f"+{line}", path]
    if program in GOTO:
        return [*editor, "--goto", f"{path}:{line}"]
    if program in COLON:
        return [*editor, f"{path}:{line}"]
    if program in LINE_OPTION:
        return [*editor, "--line", str(line), path]
    return [*editor, path]


def run(editor: list[str], path: str, line: int | None) -> int:
    """Open a file and return the editor's exit code; no shell reads the name of the file."""
    words = command(editor, path, line)
    try:
        return subprocess.run(words, check=False).returncode  # noqa: S603 - the person's own choice
    except OSError as error:
        raise UnavailableError(
            f"the editor {editor[0]!r} cannot be started: {error.strerror}",
            "Set VISUAL or EDITOR to an editor that is installed, or use --print",
        ) from error
