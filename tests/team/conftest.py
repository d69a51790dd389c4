"""A project in a team database, and people who work on it."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from tests.conftest import Project
from tests.plain_git import plain_git

from ragdocs import caller
from ragdocs.caller import Caller, Role
from ragdocs.serve.cli import app as cli

REMOTE = "git@host.example:shop/api.git"
IDENTITY = "host.example/shop/api"


@dataclass
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)


Run = Callable[..., Ended]


@contextmanager
def asking(name: str, role: str = "admin") -> Iterator[None]:
    """Do something on behalf of somebody."""
    with caller.acting(Caller(name=name, role=cast("Role", role))):
        yield


def clone(folder: Path) -> Project:
    """Make a repository with the remote of the team's project."""
    folder.mkdir()
    plain_git(folder, "init", "-b", "main")
    plain_git(folder, "remote", "add", "origin", REMOTE)
    project = Project(folder)
    project.write("config.toml", "[memory]\nenabled = true\n")
    return project


@pytest.fixture
def shop(tmp_path: Path, team_address: str, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A clone of the team's project; the user who runs the tests is admin of everything."""
    monkeypatch.setenv("RAGDOCS_DATABASE", team_address)
    monkeypatch.setenv("RAGDOCS_EMBEDDING_MODEL", "hash")
    project = clone(tmp_path.resolve() / "shop")
    assert cli.main(["team", "init", "--project", str(project.root)]) == 0
    return project


@pytest.fixture
def run(shop: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in the clone."""

    def run(*words: str, stdin: str = "", folder: Path = shop.root) -> Ended:
        capsys.readouterr()
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        code = cli.main([*words, "--project", str(folder)])
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    return run
