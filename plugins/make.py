"""Write what marketplaces, registries and examples hold, from one template and this version.

    python3 tasks.py plugins

The Claude Code plugin, the .mcpb bundle, server.json of the MCP registry, and the examples for
Codex and opencode say the same things in different forms. A test holds that they are up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ragdocs import __version__
from ragdocs.serve.install import hooks, rules
from ragdocs.serve.install.clients import CLIENTS
from ragdocs.serve.install.command import server
from ragdocs.serve.install.parts import OPENCODE_SCHEMA
from ragdocs.text import jsonc, toml_tables

ROOT = Path(__file__).resolve().parent.parent
NAME = "ragdocs"
AUTHOR = "the ragdocs maintainers"
ABOUT = "Documentation search and a memory graph for the agents in your IDE, offline."
# The registry wants a namespace; its PyPI package proves the name with a line in its README.
REGISTRY_NAME = "io.github.ragdocs/ragdocs"
REGISTRY_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
KEYWORDS = ["documentation", "memory", "rag", "search", "mcp"]
# A plugin starts the program on the PATH: it does not know where people install.
PROGRAM = ("ragdocs",)
# As the pages of docs/ write them.
PYTHON = ("/path/to/python", "-E", "-P")
PROJECT = "/path/to/your-project"


def files() -> dict[str, str]:
    """Return every file that is made, by its path in the repository."""
    return {
        ".claude-plugin/marketplace.json": _json(_marketplace()),
        "server.json": _json(_registry()),
        **_claude_code(),
        **_bundle(),
        **_examples(),
    }


def _json(value: Any) -> str:
    return f"{jsonc.dumps(value)}\n"


# --- Claude Code ---


def _marketplace() -> dict[str, Any]:
    plugin = {"name": NAME, "source": "./plugins/claude-code", "description": ABOUT}
    plugin["version"] = __version__
    return {
        "name": NAME,
        "owner": {"name": AUTHOR},
        "metadata": {"description": ABOUT, "version": __version__},
        "plugins": [plugin],
    }


def _claude_code() -> dict[str, str]:
    manifest = {
        "name": NAME,
        "version": __version__,
        "description": ABOUT,
        "author": {"name": AUTHOR},
        "license": "MIT",
        "keywords": KEYWORDS,
    }
    command = [*PROGRAM, "mcp", "--project", "${CLAUDE_PROJECT_DIR}"]
    servers = {"mcpServers": {NAME: CLIENTS["claude-code"].entry(command)}}
    line = f"{NAME} context --hook SessionStart --max-chars {hooks.START_CHARS}"
    hook = {"type": "command", "command": line, "timeout": hooks.START_SECONDS}
    start = {"matcher": hooks.EVENTS["claude-code"][0].matcher, "hooks": [hook]}
    folder = "plugins/claude-code"
    return {
        f"{folder}/.claude-plugin/plugin.json": _json(manifest),
        f"{folder}/.mcp.json": _json(servers),
        f"{folder}/hooks/hooks.json": _json({"hooks": {"SessionStart": [start]}}),
        f"{folder}/skills/project-memory/SKILL.md": SKILL,
        f"{folder}/commands/recall.md": RECALL,
        f"{folder}/commands/remember.md": REMEMBER,
        f"{folder}/README.md": PLUGIN_README,
    }


SKILL = f"""\
---
name: project-memory
description: Look up this project's documentation and earlier decisions, and write down new ones. \
Use before starting a task, when a question is about why something is as it is, and after a \
decision was made.
---

{rules.TEXT}

If no tool of ragdocs is offered, the project may not be set up: `ragdocs init` in its folder turns
documentation and memories on, and `ragdocs doctor` says what is wrong.
"""
RECALL = """\
---
description: What is known about a subject, from earlier work and the documentation
argument-hint: [subject]
---

Find out what this project knows about: $ARGUMENTS

Call the tool `recall` of ragdocs with the subject, then `search_docs`. Answer in a few sentences,
each with its source (the file of the memory or of the page), and say which of it may be out of
date. Say so if nothing was found; do not guess.
"""
REMEMBER = """\
---
description: Write down what was decided or learnt, for later sessions
argument-hint: [fact]
---

Write this down for later sessions: $ARGUMENTS

Without a fact, take what was decided or found out in this conversation and is not written down yet.
First call `recall` of ragdocs, so that nothing is written twice. Then call `remember` once for each
fact: one sentence with its reason, and the files that it is about. Never write secrets. Say at the
end what was written, in one line each.
"""
PLUGIN_README = """\
# ragdocs for Claude Code

The plugin starts the MCP server of ragdocs for the project that is open, gives the model a context
pack when a session starts, and adds a skill and two commands: `/ragdocs:recall` and
`/ragdocs:remember`.

It starts the program `ragdocs` on your PATH, so install that first:

```sh
uv tool install ragdocs      # or: pipx install ragdocs
ragdocs init                 # in your project
```

Then, in Claude Code, add this repository as a marketplace with `/plugin marketplace add` and
install the plugin with `/plugin install ragdocs@ragdocs`. Use either the plugin or
`ragdocs install claude-code`, not both: they start the same server.
"""


# --- the bundle for Claude Desktop and others ---


def _bundle() -> dict[str, str]:
    project = {
        "type": "directory",
        "title": "Project",
        "description": "The folder whose documentation and memories are served",
        "required": True,
    }
    entry_point = "server/main.py"
    words = ["run", "--directory", "${__dirname}", entry_point]
    command = {"command": "uv", "args": [*words, "--project", "${user_config.project}"]}
    manifest = {
        "manifest_version": "0.4",
        "name": NAME,
        "display_name": NAME,
        "version": __version__,
        "description": ABOUT,
        "author": {"name": AUTHOR},
        "server": {"type": "uv", "entry_point": entry_point, "mcp_config": command},
        "tools_generated": True,
        "keywords": KEYWORDS,
        "license": "MIT",
        "compatibility": {
            "platforms": ["darwin", "linux", "win32"],
            "runtimes": {"python": ">=3.11"},
        },
        "user_config": {"project": project},
    }
    folder = "plugins/mcpb"
    return {
        f"{folder}/manifest.json": _json(manifest),
        f"{folder}/pyproject.toml": BUNDLE_PROJECT,
        f"{folder}/{entry_point}": BUNDLE_MAIN,
    }


BUNDLE_PROJECT = f"""\
[project]
name = "ragdocs-bundle"
version = "{__version__}"
requires-python = ">=3.11"
dependencies = ["ragdocs=={__version__}"]
"""
BUNDLE_MAIN = '''\
"""Serve the project that the user chose over MCP."""

import sys

from ragdocs.__main__ import main

if __name__ == "__main__":
    sys.argv.insert(1, "mcp")
    sys.exit(main())
'''


# --- the registry ---


def _registry() -> dict[str, Any]:
    project = {
        "type": "named",
        "name": "--project",
        "description": "The folder of the project; without it, the folder in which it starts",
        "format": "filepath",
        "isRequired": False,
    }
    package = {
        "registryType": "pypi",
        "identifier": NAME,
        "version": __version__,
        "runtimeHint": "uvx",
        "transport": {"type": "stdio"},
        "packageArguments": [{"type": "positional", "value": "mcp"}, project],
    }
    return {
        "$schema": REGISTRY_SCHEMA,
        "name": REGISTRY_NAME,
        "title": NAME,
        "description": ABOUT,
        "version": __version__,
        "packages": [package],
    }


# --- examples to copy ---


def _examples() -> dict[str, str]:
    command = server(PYTHON, PROJECT)
    codex = CLIENTS["codex"]
    opencode = CLIENTS["opencode"]
    table = toml_tables.put("", (codex.key, NAME), codex.entry(command))
    items = hooks.items("codex", PYTHON, PROJECT)
    settings = {"$schema": OPENCODE_SCHEMA, opencode.key: {NAME: opencode.entry(command)}}
    return {
        "plugins/codex/config.toml": f"# For .codex/config.toml of a project.\n{table}",
        "plugins/codex/hooks.json": hooks.put("", "codex", items),
        "plugins/codex/AGENTS.md": rules.put(""),
        "plugins/opencode/opencode.json": _json(settings),
        "plugins/opencode/plugins/ragdocs.js": hooks.plugin(PYTHON, PROJECT),
    }


def outdated() -> list[str]:
    """Return the files that are not as they are made now."""
    names = []
    for name, text in files().items():
        path = ROOT / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            names.append(name)
    return names


def main() -> int:
    """Write what is not up to date."""
    made = files()
    for name in outdated():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made[name], encoding="utf-8", newline="\n")
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
