"""Projects made of real files, with the small deterministic encoder."""

from __future__ import annotations

import os
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from ragdocs import config
from ragdocs.workspace import Workspace

# How long an example takes says more about the machine than about the code.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def own_directories(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Keep every test away from the caches, keys and settings of whoever runs it."""
    home = tmp_path_factory.mktemp("home")
    for variable, folder in (
        ("CACHE", "cache"),
        ("STATE", "state"),
        ("DATA", "data"),
        ("CONFIG", "config"),
    ):
        monkeypatch.setenv(f"XDG_{variable}_HOME", str(home / folder))
    # A shared server would outlive the test; the tests of sharing turn it on.
    monkeypatch.setenv("RAGDOCS_SERVER_SHARED", "false")
    return home


@pytest.fixture
def sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let windows share servers, whose sockets need a short name.

    The folder of a test may be too deep for them.
    """
    monkeypatch.delenv("RAGDOCS_SERVER_SHARED")
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


class Project:
    """A project folder that tests write to as people do."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.flags: dict[str, object] = {"embedding.model": "hash", "memory.enabled": True}
        self.clock: Callable[[], datetime] = lambda: NOW
        self._writes = 0

    def write(self, path: str, text: str) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        # Files are a little older than the fixed clock, whatever day it is, and no two have one
        # time.
        self._writes += 1
        moment = NOW.timestamp() - 3600 + self._writes / 1000
        os.utime(target, (moment, moment))
        return target

    def doc(self, name: str, text: str) -> Path:
        return self.write(f"docs/{name}", text)

    def memory(self, name: str, text: str) -> Path:
        return self.write(f".memories/{name}", text)

    def config(self, **flags: object) -> config.Config:
        return config.load(self.root, project=self.root, flags={**self.flags, **flags})

    def open(self, **flags: object) -> Workspace:
        """Do what a server does when it starts: snapshot, reconcile, encode."""
        workspace = Workspace(self.config(**flags), self.clock)
        workspace.load()
        workspace.sync()
        workspace.embed()
        return workspace


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "project"
    root.mkdir()
    return Project(root)
