"""The files that an administrator starts from, as far as they can be checked without containers."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml
from tests.conftest import Project
from tests.postgres import free_port
from tests.team.conftest import Run
from tests.team.servers import PATIENCE_SECONDS

from ragdocs.serve.cli.app import build

EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "team"


def parses(words: list[str]) -> None:
    """Fail unless a command of ragdocs can be typed like this."""
    command: click.Command = build()
    while isinstance(command, click.Group):
        command = command.commands[words.pop(0)]
    command.make_context(str(command.name), words)


def test_the_containers_run_commands_that_exist_and_wait_for_each_other() -> None:
    compose = yaml.safe_load((EXAMPLES / "compose.yaml").read_text(encoding="utf-8"))
    services = compose["services"]
    for name in ("init", "server"):
        parses(list(services[name]["command"]))
        assert (EXAMPLES / services[name]["build"]["context"] / "pyproject.toml").is_file()
        file = services[name]["build"]["dockerfile"]
        assert (EXAMPLES.parent.parent / file).is_file()
        assert "RAGDOCS_DATABASE" in services[name]["environment"]
    assert services["init"]["depends_on"]["database"]["condition"] == "service_healthy"
    named = {
        volume.partition(":")[0] for part in services.values() for volume in part.get("volumes", ())
    }
    assert named == set(compose["volumes"])


def test_the_unit_starts_a_command_that_exists(tmp_path: Path) -> None:
    text = (EXAMPLES / "ragdocs.service").read_text(encoding="utf-8")
    (line,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    program, *words = shlex.split(line)
    assert program.endswith("/ragdocs")
    parses(words)
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd here")
    unit = tmp_path / "ragdocs.service"
    unit.write_text(text.replace(program, "/bin/true").replace("User=ragdocs", "User=root"))
    checked = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    # Of a key that it does not know, it only warns.
    assert checked.returncode == 0, checked.stderr
    assert "ragdocs.service" not in checked.stderr, checked.stderr


def test_a_text_of_the_team_that_is_no_file_is_not_opened(shop: Project, run: Run) -> None:
    shop.doc("cranes.md", "# Cranes\n\nCranes lift grain.\n")
    assert run("push").code == 0
    assert run("memory", "create", "plan.md", "--content", "Cranes.").code == 0
    assert run("open", "docs/cranes.md", "--print").out.strip() == str(shop.root / "docs/cranes.md")
    refused = run("open", "plan.md", "--print")
    assert refused.code == 1
    assert "in the team database and not in a file" in refused.err
    assert not (shop.root / ".memories").exists()


def test_the_server_of_the_containers_starts_once_its_token_is_made(
    shop: Project, run: Run
) -> None:
    text = (EXAMPLES / "compose.yaml").read_text(encoding="utf-8")
    (token,) = re.findall(r"run --rm server (.*)", text)
    server = yaml.safe_load(text)["services"]["server"]["command"]
    words = [sys.executable, "-P", "-m", "ragdocs", *server, "--port", str(free_port())]
    refused = subprocess.run(words, cwd=shop.root, capture_output=True, text=True, check=False)
    assert "there is no token" in refused.stderr
    assert run(*shlex.split(token)).code == 0
    started = subprocess.Popen(words, cwd=shop.root, stderr=subprocess.PIPE, text=True)
    try:
        assert started.stderr is not None
        assert "ragdocs serves http://" in started.stderr.readline()
    finally:
        started.terminate()
        started.communicate(timeout=PATIENCE_SECONDS)
