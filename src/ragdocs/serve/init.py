"""The `ragdocs init` command: it gives a project its configuration and its memory directory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ragdocs import config as configuration
from ragdocs.config import FILE_NAME, KEYS, Config, Key, toml
from ragdocs.import_path import SAFE_PATH
from ragdocs.lanes import MEMORY
from ragdocs.project import folders, layout
from ragdocs.system import files

# The two sections a newcomer changes; the defaults of all others are meant to stay.
_SECTIONS = ("docs", "memory")
_TITLE = "# Settings of ragdocs for this project; `ragdocs check-config` shows what is in force."
_SWITCHED_ON = "memory.enabled"
# One package of our own and some that we need: what is installed with them is found where they are.
_IMPORTABLE = """
from importlib.util import find_spec
raise SystemExit(not all(map(find_spec, ("ragdocs", "mcp", "numpy", "whoosh", "yaml"))))
"""


def init(directory: Path, environ: Mapping[str, str] | None = None) -> list[str]:
    """Prepare a directory as a project, change nothing that exists, and say what was done."""
    root = folders.checked_root(folders.settled(directory), environ)
    file = root / FILE_NAME
    lines = [_write_new(file, _template())]
    config = configuration.load(root, environ=environ, project=root)
    lines += config.problems
    if config.memory.enabled:
        ignore_file = layout.index_root(config, MEMORY, environ) / ".gitignore"
        # The index is a cache of this machine, which git should not see.
        lines.append(_write_new(ignore_file, "*\n"))
    else:
        lines.append(_how_to_switch_on(config, file))
    next_step = "Next: paste this into the configuration of your MCP client and restart it"
    return [*lines, next_step, client_configuration(root)]


def _how_to_switch_on(config: Config, file: Path) -> str:
    for problem in config.problems:
        # The file belongs to another program.
        if problem.startswith(str(file)):
            return (
                "Memory is off; to turn it on, give the server "
                "RAGDOCS_MEMORY_ENABLED=true in its environment"
            )
    return f"Memory is off; to turn it on, write into {file}:\n[memory]\nenabled = true"


def client_configuration(root: Path) -> str:
    """Return the configuration with which an MCP client starts the server.

    It names everything, since clients pass on little.
    """
    arguments = [*_flags(), "-m", "ragdocs", "mcp", "--project", str(root)]
    server = {"command": sys.executable, "args": arguments}
    return json.dumps({"mcpServers": {"ragdocs": server}}, indent=2, ensure_ascii=False)


def _flags() -> list[str]:
    """Return the options with which Python imports nothing from its working directory.

    Entries of PYTHONPATH may be relative, so the variables of Python are ignored (-E) unless it
    needs them.
    """
    isolated = [sys.executable, "-E", SAFE_PATH]
    command = [*isolated, "-c", _IMPORTABLE]
    check = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - our own text
    if check.returncode == 0:
        return isolated[1:]
    return [SAFE_PATH]


def _write_new(path: Path, text: str) -> str:
    files.make_directories(path.parent)
    if files.create(path, text.encode()):
        return f"Wrote {path}"
    return f"Kept {path}"


def _template() -> str:
    lines = [_TITLE, ""]
    for section in _SECTIONS:
        lines.append(f"[{section}]")
        for key in KEYS.values():
            # A project's file may only repeat the default of such a key: that would be a trap.
            if key.section == section and not key.project_choices:
                lines += [f"# {key.about}", _template_line(key)]
        lines.append("")
    return "\n".join(lines)


def _template_line(key: Key) -> str:
    if key.full_name == _SWITCHED_ON:
        return f"{key.name} = {toml(True)}"
    return f"# {key.name} = {toml(key.default)}"
