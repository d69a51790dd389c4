"""What a command costs: its help, a search and a hook, alone and through a warm server.

Wall and processor time of the whole command, also as a multiple of `python -c pass`, because
machines differ. The processor time of the server is not in it. Below a command stands what it costs
to import the same modules and do nothing: the rest is its work.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench._measure import quantile

from ragdocs.__main__ import SELDOM

RAGDOCS = (sys.executable, "-P", "-m", "ragdocs")
PROMPT = b'{"hook_event_name": "UserPromptSubmit", "prompt": "how are tokens refreshed"}'
SEARCH = (*RAGDOCS, "search", "how are tokens refreshed")
HOOK = (*RAGDOCS, "context", "--hook", "UserPromptSubmit")
# What no command can do without; what searches is made of numpy as well.
FLOORS = {
    "import click": (sys.executable, "-P", "-c", "import click"),
    "import click, numpy": (sys.executable, "-P", "-c", "import click, numpy"),
}
# Runs a command, then writes which modules it has imported to the file of its first argument.
LISTED = """\
import sys
from pathlib import Path
from ragdocs.__main__ import main
place = sys.argv.pop(1)
main()
Path(place).write_text("\\n".join(sys.modules))
"""
# Imports modules as `ragdocs` does; some names in the list are no modules.
IMPORTING = """\
import gc, importlib
from contextlib import suppress
gc.set_threshold({seldom})
for name in {names}:
    with suppress(ImportError):
        importlib.import_module(name)
"""
START_SECONDS = 60.0


class Goal(NamedTuple):
    """The most seconds that a command may take."""

    cpu: float
    wall: float | None = None

    def judged(self, wall: float, cpu: float) -> str:
        """Say what was wanted, and whether it was reached."""
        parts = [_judged("cpu", cpu, self.cpu)]
        if self.wall is not None:
            parts.append(_judged("wall", wall, self.wall))
        return ", ".join(parts)


def _judged(name: str, seconds: float, most: float) -> str:
    verdict = "pass" if seconds <= most else "MISS"
    return f"{name} ≤ {most * 1000:.0f} ms {verdict}"


HELP = Goal(0.06)
COLD = Goal(0.15)
# Where nothing changed since the last time.
LINT = Goal(0.15, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench commands", description=__doc__)
    parser.add_argument("--documents", type=int, default=200, help="of the project (default: 200)")
    parser.add_argument("--memories", type=int, default=1000, help="of the project (default: 1000)")
    parser.add_argument("--repeats", type=int, default=5, help="of each command (default: 5)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rd-", ignore_cleanup_errors=True) as folder:
        measure(Path(folder), options.documents, options.repeats, options.memories)


def measure(folder: Path, documents: int, repeats: int, memories: int = 0) -> None:
    project = folder / "project"
    write(project, documents)
    remember(project, memories)
    commit(project)
    environ = {**os.environ, "RAGDOCS_EMBEDDING_MODEL": "hash"}
    environ.pop("RAGDOCS_SERVER_SHARED", None)
    # An installed command has its bytecode, whatever the environment of a developer says.
    environ["PYTHONDONTWRITEBYTECODE"] = ""
    environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    for name in ("CACHE_HOME", "STATE_HOME", "DATA_HOME", "CONFIG_HOME", "RUNTIME_DIR"):
        directory = folder / name.casefold()
        directory.mkdir(mode=0o700)
        environ[f"XDG_{name}"] = str(directory)
    alone = {**environ, "RAGDOCS_SERVER_SHARED": "false"}
    once([*RAGDOCS, "index"], project, alone)
    print(f"{'':24}{'wall ms':>10}{'ratio':>8}{'cpu ms':>10}{'ratio':>8}  goal")
    empty = row("python -c pass", [sys.executable, "-c", "pass"], project, alone, repeats)
    for name, floor in FLOORS.items():
        row(name, floor, project, alone, repeats, empty)
    row("--help", [*RAGDOCS, "--help"], project, alone, repeats, empty, goal=HELP)
    row("search, alone", SEARCH, project, alone, repeats, empty)
    row("hook, alone", HOOK, project, alone, repeats, empty)
    if memories:
        name = f"{memories} memories"
        for word, goal in (("lint", LINT), ("recall", COLD)):
            command = [*RAGDOCS, word]
            row(f"{word}, {name}", command, project, alone, repeats, empty, goal=goal)
            imports = importing(word, project, alone)
            row(f"  imports of {word}", imports, project, alone, repeats, empty)
    window = subprocess.Popen(
        [*RAGDOCS, "mcp"], cwd=project, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        wait_for_server(Path(environ["XDG_RUNTIME_DIR"]))
        once(SEARCH, project, environ)
        row("search, warm server", SEARCH, project, environ, repeats, empty)
        row("hook, warm server", HOOK, project, environ, repeats, empty)
    finally:
        window.communicate(timeout=START_SECONDS)


def importing(word: str, project: Path, environ: Mapping[str, str]) -> Sequence[str]:
    """Return a command that imports what another one imports, and does nothing with it."""
    listing = project.parent / f"modules-of-{word}"
    once([sys.executable, "-P", "-c", LISTED, str(listing), word], project, environ)
    names = []
    for name in listing.read_text().splitlines():
        # Some modules put others under names of their own.
        if importlib.util.find_spec(name.partition(".")[0]) and name != "__main__":
            names.append(name)
    return sys.executable, "-P", "-c", IMPORTING.format(seldom=SELDOM, names=names)


def write(project: Path, documents: int) -> None:
    (project / "docs").mkdir(parents=True)
    (project / "config.toml").write_text("[memory]\nenabled = true\n")
    for number in range(documents):
        text = f"# Page {number}\n\nTokens of kind {number} are refreshed every {number} minutes.\n"
        (project / f"docs/page{number}.md").write_text(text)


def remember(project: Path, memories: int) -> None:
    """Write memories of some sentences, each about something else."""
    (project / ".memories").mkdir()
    for number in range(memories):
        text = f"---\ntype: fact\ntags: [t{number % 30}]\ncreated_at: 2026-01-02\n---\n"
        for part in range(8):
            name = f"{number * 7919 % 10007:x}part{part}"
            text += (
                f"The module {name} keeps its state in table{name} and reports to team{name}.\n\n"
            )
        (project / f".memories/{number}.md").write_text(
            f"{text}See [[docs/page{number % 5}.md]].\n"
        )


def commit(project: Path) -> None:
    """Make the project a repository, as most are: its folder of objects is looked at too."""
    signed = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "-m", "project")):
        subprocess.run(["git", "-C", str(project), *signed, *words], check=True)


def wait_for_server(runtime: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not list(runtime.glob("*/*.sock")):
        if time.monotonic() > deadline:
            sys.exit("the shared server did not start")
        time.sleep(0.05)


def row(  # noqa: PLR0913 - the cells of a row
    name: str,
    command: Sequence[str],
    project: Path,
    environ: Mapping[str, str],
    repeats: int,
    empty: tuple[float, float] | None = None,
    *,
    goal: Goal | None = None,
) -> tuple[float, float]:
    """Measure a command and print its row; return its median wall and processor time."""
    samples = [once(command, project, environ) for _ in range(repeats)]
    wall = quantile([sample[0] for sample in samples], 0.5)
    cpu = quantile([sample[1] for sample in samples], 0.5)
    base = empty or (wall, cpu)
    ratios = (wall / base[0], cpu / base[1])
    figures = f"{wall * 1000:10.0f}{ratios[0]:8.1f}{cpu * 1000:10.0f}{ratios[1]:8.1f}"
    verdict = "" if goal is None else goal.judged(wall, cpu)
    print(f"{name:24}{figures}  {verdict}".rstrip())
    return wall, cpu


def once(command: Sequence[str], project: Path, environ: Mapping[str, str]) -> tuple[float, float]:
    """Run a command; return its wall and its processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run(
        command, cwd=project, env=environ, input=PROMPT, stdout=subprocess.DEVNULL, check=True
    )
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu


if __name__ == "__main__":
    main()
