"""The configurations of MCP clients on this machine that start ragdocs, and whether they can."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragdocs.errors import ConfigError, ParseError
from ragdocs.serve.install.clients import configuration_files, machine
from ragdocs.serve.install.parts import NAME, words_of
from ragdocs.text import jsonc, toml_tables

# Files of clients also hold conversations; a configuration is not longer than this.
LARGEST = 20_000_000
MOST_NESTED = 12


@dataclass(frozen=True, slots=True)
class Finding:
    """A client's file that mentions ragdocs, and what is wrong with it, if anything."""

    file: str
    problem: str = ""
    fix: str = ""


def examine(root: Path | None) -> list[Finding]:
    """Look at the files of clients that mention ragdocs."""
    try:
        here = machine(root)
    except ConfigError:
        return []
    findings = []
    for client, file in configuration_files(here):
        text = _read(file)
        if NAME in text:
            findings.append(_finding(file, text, client.name))
    return findings


def _read(file: Path) -> str:
    try:
        if file.stat().st_size > LARGEST:
            return ""
        return file.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return ""


def _finding(file: Path, text: str, client: str) -> Finding:
    read: Any = jsonc.loads
    if file.suffix == ".toml":
        read = toml_tables.loads
    try:
        loaded = read(text)
    except ParseError as error:
        return Finding(str(file), f"it cannot be read: {error.message}", "Mend it in an editor")
    for words in _servers(loaded, 0):
        if not _exists(words[0]):
            return Finding(
                str(file),
                f"it starts {words[0]}, which does not exist",
                f"`ragdocs install {client}` writes the path of this installation",
            )
        project = _project(words)
        if project and "$" not in project and not Path(project).expanduser().is_dir():
            return Finding(
                str(file),
                f"it names the project {project}, which is not a folder",
                "Correct the path behind --project there",
            )
    return Finding(str(file))


def _servers(value: Any, depth: int) -> Iterator[list[str]]:
    """Yield every command that starts ragdocs, wherever a client keeps it."""
    if depth > MOST_NESTED or not isinstance(value, dict):
        return
    words = words_of(value)
    if words and any(NAME in word for word in words):
        yield words
        return
    for inner in value.values():
        yield from _servers(inner, depth + 1)


def _exists(command: str) -> bool:
    if "$" in command:
        return True
    if Path(command).is_absolute():
        return os.access(command, os.X_OK)
    return shutil.which(command) is not None


def _project(words: Sequence[str]) -> str:
    for position, word in enumerate(words):
        if word.startswith("--project="):
            return word.removeprefix("--project=")
        if word == "--project" and position + 1 < len(words):
            return words[position + 1]
    return ""
