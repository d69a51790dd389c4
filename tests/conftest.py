"""Projects made of real files, with the small deterministic encoder."""

from __future__ import annotations

import gc
import itertools
import os
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from weakref import WeakSet

import pytest
from hypothesis import HealthCheck, settings
from tests import postgres
from tests.tally import pytest_configure, pytest_terminal_summary, tally

from ragdocs import caller, config
from ragdocs.system.postgres.database import Database
from ragdocs.workspace import Workspace

# The counts that tests of any folder add up.
__all__ = ["pytest_configure", "pytest_terminal_summary", "tally"]

# How long an example takes says more about the machine than about the code. A run has the same
# examples as the last one, so that it fails for a change and not by chance; with RAGDOCS_EXPLORE=1
# it has new ones. The stories of git repositories are as many times more as that number says.
settings.register_profile(
    "untimed",
    deadline=None,
    derandomize=not os.environ.get("RAGDOCS_EXPLORE"),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("untimed")

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
TESTS_BEFORE_COLLECTING = 50
# How many tests this process has run.
finished = [0]


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give one folder after the other; asking pytest for each would list all that there are."""
    base = tmp_path_factory.mktemp("homes")
    return (base / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def own_directories(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep every test away from the caches, keys and settings of whoever runs it."""
    home = next(homes)
    home.mkdir()
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


def pytest_collection_finish() -> None:
    """Let no later collection look at what was imported: there is a lot of it."""
    gc.freeze()


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Let go of files that only cycles of objects hold: a process may have so many open."""
    finished[0] += 1
    if finished[0] % TESTS_BEFORE_COLLECTING == 0:
        with warnings.catch_warnings():
            # Whoever left something open is not this test.
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


@pytest.fixture(autouse=True)
def own_caller() -> Iterator[None]:
    """Keep a test from asking on behalf of somebody whom an earlier one left behind."""
    with caller.acting(caller.NOBODY):
        yield


@pytest.fixture
def sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let windows share servers, whose sockets need a short name.

    The folder of a test may be too deep for them.
    """
    monkeypatch.delenv("RAGDOCS_SERVER_SHARED")
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


@pytest.fixture(params=["as it is", "portable"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test twice: with what this system has, and with what every system has."""
    monkeypatch.setenv("RAGDOCS_PORTABLE", str(int(request.param == "portable")))
    return str(request.param)


@pytest.fixture
def own_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use what this system has, also in a run with the switch: the test is about that alone."""
    monkeypatch.setenv("RAGDOCS_PORTABLE", "0")


@pytest.fixture
def portable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use only what every system has."""
    monkeypatch.setenv("RAGDOCS_PORTABLE", "1")


class Project:
    """A project folder that tests write to as people do."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.flags: dict[str, object] = {"embedding.model": "hash", "memory.enabled": True}
        self.clock: Callable[[], datetime] = lambda: NOW
        self._writes = 0
        self._opened: WeakSet[Workspace] = WeakSet()

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
        self._opened.add(workspace)
        workspace.load()
        workspace.sync()
        workspace.embed()
        return workspace

    def close(self) -> None:
        """Let go of the files of everything that was opened."""
        for workspace in list(self._opened):
            workspace.close()


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    root = tmp_path / "project"
    root.mkdir()
    project = Project(root)
    yield project
    project.close()


@pytest.fixture(scope="session")
def cluster() -> Iterator[postgres.Cluster]:
    """A PostgreSQL server that all tests of this process share.

    Nobody cuts its power, and each test makes and drops a database, for which it would sync twice.
    """
    if reason := postgres.unavailable():
        pytest.skip(reason)
    cluster = postgres.Cluster(fsync="off", full_page_writes="off")
    cluster.start()
    yield cluster
    cluster.remove()
    postgres.clean_up()


@pytest.fixture
def team_address(cluster: postgres.Cluster) -> Iterator[str]:
    """The address of a team database with all tables and nothing in them."""
    address = cluster.lend()
    yield address
    cluster.take_back(address)


@pytest.fixture
def database(team_address: str) -> Iterator[Database]:
    """An empty team database."""
    database = Database(team_address)
    yield database
    database.close()
