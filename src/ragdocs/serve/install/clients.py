"""The clients that ragdocs knows: where each keeps its settings, and in which form."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ragdocs.errors import ConfigError
from ragdocs.project import folders
from ragdocs.system import platform

Scope = Literal["project", "user"]
# Where a client's server finds its project: in the folder in which it starts, or by its name.
STARTS_IN_PROJECT = ""
NAMED = "{root}"
# Replaced by the editor.
WORKSPACE = "${workspaceFolder}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One client; paths begin with a folder of `Machine.folders`, or are relative to the project.

    Of several names for a file, the first that exists is taken, else the first.
    """

    name: str
    title: str
    # Its programs on the PATH, its own folders, and its folders in a project: any of them shows
    # that it is used here.
    programs: tuple[str, ...] = ()
    traces: tuple[str, ...]
    project_traces: tuple[str, ...] = ()
    user_files: tuple[str, ...]
    project_files: tuple[str, ...] = ()
    # The key of its servers.
    key: str = "mcpServers"
    # How a server's command is written: two keys, one list, or two keys with a type.
    shape: Literal["plain", "list", "typed"] = "plain"
    user_project: str = NAMED
    project: str = NAMED
    # Files that its agents read as instructions: for all projects, and in one.
    user_rules: str = ""
    project_rules: str = ""
    # Files with its hooks.
    user_hooks: str = ""
    project_hooks: str = ""
    # What a person has to do besides.
    note: str = ""
    # The same for its own file, where that differs.
    user_note: str = ""
    hooks_note: str = ""

    @property
    def is_toml(self) -> bool:
        """Whether its settings are TOML; those of the others are JSON, some with comments."""
        return self.user_files[0].endswith(".toml")

    def entry(self, command: list[str]) -> dict[str, Any]:
        """Return how the client writes down a server with this command."""
        program, *arguments = command
        if self.shape == "list":
            return {"type": "local", "command": command, "enabled": True}
        entry = {"command": program, "args": arguments}
        if self.shape == "typed":
            return {"type": "stdio", **entry}
        return entry


RESTART = "restart it"
SLASH_MCP = "/mcp shows the server in your next session"
CLIENTS = {
    client.name: client
    for client in (
        Client(
            name="claude-code",
            title="Claude Code",
            programs=("claude",),
            traces=("{claude}", "{claude_home}/.claude.json"),
            project_traces=(".mcp.json", ".claude", "CLAUDE.md"),
            user_files=("{claude_home}/.claude.json",),
            project_files=(".mcp.json",),
            user_project=STARTS_IN_PROJECT,
            user_rules="{claude}/CLAUDE.md",
            project_rules="CLAUDE.md",
            user_hooks="{claude}/settings.json",
            project_hooks=".claude/settings.local.json",
            note="it asks once whether you trust a server of a project; /mcp shows it",
            user_note=SLASH_MCP,
        ),
        Client(
            name="claude-desktop",
            title="Claude Desktop",
            traces=("{applications}/Claude",),
            user_files=("{applications}/Claude/claude_desktop_config.json",),
            note="quit and start it again; one entry serves one project",
        ),
        Client(
            name="cursor",
            title="Cursor",
            programs=("cursor", "cursor-agent"),
            traces=("{home}/.cursor",),
            project_traces=(".cursor", ".cursorrules"),
            user_files=("{home}/.cursor/mcp.json",),
            project_files=(".cursor/mcp.json",),
            user_project=WORKSPACE,
            project_rules=".cursor/rules/ragdocs.mdc",
            user_hooks="{home}/.cursor/hooks.json",
            project_hooks=".cursor/hooks.json",
            note="switch the server on in its settings, under MCP",
        ),
        Client(
            name="vscode",
            title="VS Code",
            programs=("code",),
            traces=("{applications}/Code",),
            project_traces=(".vscode",),
            user_files=("{applications}/Code/User/mcp.json",),
            project_files=(".vscode/mcp.json",),
            key="servers",
            shape="typed",
            user_project=WORKSPACE,
            project=WORKSPACE,
            project_rules="AGENTS.md",
            note="start the server from the file, or with the command MCP: List Servers",
        ),
        Client(
            name="zed",
            title="Zed",
            programs=("zed", "zeditor"),
            traces=("{zed}",),
            project_traces=(".zed",),
            user_files=("{zed}/settings.json",),
            project_files=(".zed/settings.json",),
            key="context_servers",
            project_rules="AGENTS.md",
            note="trust the project when Zed asks",
            user_note="its agent settings list the server",
        ),
        Client(
            name="codex",
            title="Codex",
            programs=("codex",),
            traces=("{codex}",),
            project_traces=(".codex",),
            user_files=("{codex}/config.toml",),
            project_files=(".codex/config.toml",),
            key="mcp_servers",
            user_project=STARTS_IN_PROJECT,
            user_rules="{codex}/AGENTS.md",
            project_rules="AGENTS.md",
            user_hooks="{codex}/hooks.json",
            project_hooks=".codex/hooks.json",
            note="it reads a project's file once you trust the project",
            user_note=SLASH_MCP,
            hooks_note="review and trust the hooks there with /hooks, or they do not run",
        ),
        Client(
            name="gemini",
            title="Gemini CLI",
            programs=("gemini",),
            traces=("{home}/.gemini",),
            project_traces=(".gemini", "GEMINI.md"),
            user_files=("{home}/.gemini/settings.json",),
            project_files=(".gemini/settings.json",),
            user_project=STARTS_IN_PROJECT,
            user_rules="{home}/.gemini/GEMINI.md",
            project_rules="GEMINI.md",
            user_hooks="{home}/.gemini/settings.json",
            project_hooks=".gemini/settings.json",
            note="it reads a project's file once you trust the folder",
            user_note=SLASH_MCP,
        ),
        Client(
            name="opencode",
            title="opencode",
            programs=("opencode",),
            traces=("{xdg}/opencode",),
            project_traces=(".opencode", "opencode.json", "opencode.jsonc"),
            user_files=("{xdg}/opencode/opencode.json", "{xdg}/opencode/opencode.jsonc"),
            project_files=("opencode.json", "opencode.jsonc"),
            key="mcp",
            shape="list",
            user_project=STARTS_IN_PROJECT,
            user_rules="{xdg}/opencode/AGENTS.md",
            project_rules="AGENTS.md",
            user_hooks="{xdg}/opencode/plugins/ragdocs.js",
            project_hooks=".opencode/plugins/ragdocs.js",
            note=RESTART,
        ),
        Client(
            name="windsurf",
            title="Windsurf",
            programs=("windsurf",),
            traces=("{home}/.codeium/windsurf",),
            project_traces=(".windsurf",),
            user_files=("{home}/.codeium/windsurf/mcp_config.json",),
            project_rules=".windsurf/rules/ragdocs.md",
            note="refresh the servers in Cascade; one entry serves one project",
        ),
        Client(
            name="junie",
            title="JetBrains Junie",
            programs=("junie",),
            traces=("{home}/.junie",),
            project_traces=(".junie",),
            user_files=("{home}/.junie/mcp/mcp.json",),
            project_files=(".junie/mcp/mcp.json",),
            project_rules=".junie/guidelines.md",
            note="switch the server on under Settings, Tools, Junie, MCP Settings",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Machine:
    """The folders of a user, and the project that one is in, if any."""

    folders: Mapping[str, Path]
    root: Path | None

    @property
    def home(self) -> Path:
        """The home folder."""
        return self.folders["home"]

    def path(self, name: str) -> Path:
        """Return the file that a client's entry names."""
        if name.startswith("{"):
            folder, _, rest = name.removeprefix("{").partition("}")
            return self.folders[folder] / rest.lstrip("/")
        assert self.root is not None
        return self.root / name

    def inside(self, name: str) -> Path:
        """Return the folder that a client's file may not lead out of.

        It is the project, the home, or a folder elsewhere that a variable of the user names.
        """
        if not name.startswith("{"):
            return self.path("")
        folder = self.folders[name.removeprefix("{").partition("}")[0]]
        if folder.is_relative_to(self.home):
            return self.home
        return folder

    def first(self, names: tuple[str, ...]) -> Path:
        """Return the first of these files that exists, else the first."""
        paths = [self.path(name) for name in names]
        for path in paths:
            if os.path.lexists(path):
                return path
        return paths[0]

    def has(self, client: Client) -> bool:
        """Tell whether there are traces of a client."""
        names = client.traces
        if self.root is not None:
            names += client.project_traces
        if any(os.path.lexists(self.path(name)) for name in names):
            return True
        return any(map(shutil.which, client.programs))


def machine(root: Path | None, environ: Mapping[str, str] | None = None) -> Machine:
    """Return the folders of whoever runs this."""
    if environ is None:
        environ = os.environ
    home = folders.home(environ)
    if home is None:
        raise ConfigError("the user's home directory is not known", "Set HOME to an absolute path")
    xdg = Path(environ.get("XDG_CONFIG_HOME", ""))
    # The XDG specification has a relative path ignored.
    if not xdg.is_absolute():
        xdg = home / ".config"
    applications = xdg
    zed = xdg / "zed"
    if platform.is_mac():
        applications = home / "Library/Application Support"
    if platform.is_windows():
        applications = Path(environ.get("APPDATA") or home / "AppData/Roaming")
        zed = applications / "Zed"
    claude = environ.get("CLAUDE_CONFIG_DIR")
    return Machine(
        {
            "home": home,
            "xdg": xdg,
            "applications": applications,
            "zed": zed,
            "codex": Path(environ.get("CODEX_HOME") or home / ".codex"),
            "claude": Path(claude or home / ".claude"),
            "claude_home": Path(claude or home),
        },
        root,
    )


def configuration_files(machine: Machine) -> Iterator[tuple[Client, Path]]:
    """Yield every file in which a client may name its servers."""
    for client in CLIENTS.values():
        for name in client.user_files:
            yield client, machine.path(name)
    if machine.root is None:
        return
    for client in CLIENTS.values():
        for name in client.project_files:
            yield client, machine.path(name)
