"""The `ragdocs init` action.

A project gets its configuration, its memory directory and the way to be served.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ragdocs import config as configuration
from ragdocs.config import KEYS
from ragdocs.import_path import SAFE_PATH
from ragdocs.keys import FILE_NAME, toml
from ragdocs.lanes import MEMORY
from ragdocs.project import folders as project
from ragdocs.project import layout
from ragdocs.system import files as fsio

# The two sections a newcomer changes; everything else has a default that is meant to be kept.
_SHOWN = ("docs", "memory")
# One package of our own and some that we need: what is installed with them is found where they are.
_IMPORTABLE = """
from importlib.util import find_spec
raise SystemExit(not all(map(find_spec, ("ragdocs", "mcp", "numpy", "whoosh", "yaml"))))
"""


def init(directory: Path, environ: Mapping[str, str] | None = None) -> list[str]:
    """Prepare a directory as a project, change nothing that exists, and tell what was done."""
    root = project.checked_root(project.settled(directory), environ)
    file = root / FILE_NAME
    lines = [_write_new(file, _template())]
    config = configuration.load(root, environ=environ, project=root)
    lines += config.problems
    if config.memory.enabled:
        ignore_file = layout.index_root(config, MEMORY, environ) / ".gitignore"
        # The index is a cache of this machine, which git should not see.
        lines.append(_write_new(ignore_file, "*\n"))
    elif any(problem.startswith(str(file)) for problem in config.problems):
        lines.append(
            "Memory is off; to turn it on, give the server RAGDOCS_MEMORY_ENABLED=true in its environment"
        )
    else:
        lines.append(f"Memory is off; to turn it on, write into {file}:\n[memory]\nenabled = true")
    next_step = "Next: paste this into the configuration of your MCP client and restart it"
    return [*lines, next_step, client_configuration(root)]


def client_configuration(root: Path) -> str:
    """Return what an MCP client needs to start the server.

    It names everything, since clients pass on little.
    """
    arguments = [*_flags(), "-m", "ragdocs", "mcp", "--project", str(root)]
    server = {"command": sys.executable, "args": arguments}
    return json.dumps({"mcpServers": {"ragdocs": server}}, indent=2, ensure_ascii=False)


def _flags() -> list[str]:
    """Return the options with which Python imports nothing from the folder in which a client starts it.

    Entries of PYTHONPATH may be relative, so the variables of Python are left aside (-E) unless it needs them.
    """
    isolated = [sys.executable, "-E", SAFE_PATH]
    check = subprocess.run([*isolated, "-c", _IMPORTABLE], capture_output=True, check=False)  # noqa: S603 - our own text
    return isolated[1:] if check.returncode == 0 else [SAFE_PATH]


def _write_new(path: Path, text: str) -> str:
    fsio.make_directories(path.parent)
    written = fsio.create(path, text.encode())
    return f"{'Wrote' if written else 'Kept'} {path}"


def _template() -> str:
    lines = [
        "# Settings of ragdocs for this project; `ragdocs check-config` shows what is in force.",
        "",
    ]
    for section in _SHOWN:
        lines.append(f"[{section}]")
        for key in KEYS.values():
            # A line that a project's file may only repeat would be a trap.
            if key.section == section and not key.project_choices:
                switched_on = key.full_name == "memory.enabled"
                setting = f"{key.name} = {toml(True if switched_on else key.default)}"
                lines += [f"# {key.about}", setting if switched_on else f"# {setting}"]
        lines.append("")
    return "\n".join(lines)
