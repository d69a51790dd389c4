"""The fixture project, another one, the user's folders, and the way back to the start."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.golden import texts
from tests.golden.normal import Normal
from tests.golden.still import START, Clock, Tokens, date_files, stand_still

# Paths are part of answers, and answers have a largest size: they must be of one length everywhere.
LENGTH = 220
FOLDERS = ("CACHE", "STATE", "DATA", "CONFIG")


class World:
    """Everything that a scenario may touch, below one folder; `restore` undoes what it did."""

    def __init__(self, base: Path) -> None:
        self.root = padded(base.resolve()) / "world"
        self.project = self.root / "harbour"
        self.other = self.root / "lighthouse"
        self.home = self.root / "home"
        self.remote = self.root / "remote.git"
        self.clock = Clock()
        self.tokens = Tokens()
        self._saved = base / "saved"
        self._states: dict[str, tuple[int, ...]] = {}
        self.teammate = self.root / "teammate"
        self.new = self.root / "new"
        places = {
            self.project: "<project>",
            self.other: "<other>",
            self.home: "<home>",
            self.root: "<world>",
        }
        places[Path(sys.executable)] = "<python>"
        self.normal = Normal({str(path): name for path, name in places.items()})

    @contextmanager
    def entered(self, scenario: str) -> Iterator[None]:
        """Run a block in this world, at its start, with its folders as the user's."""
        with pytest.MonkeyPatch.context() as patch:
            for name in list(os.environ):
                if name.startswith(("RAGDOCS_", "XDG_", "GIT_")):
                    patch.delenv(name)
            for name in FOLDERS:
                patch.setenv(f"XDG_{name}_HOME", str(self.home / name.lower()))
            patch.setenv("HOME", str(self.home))
            patch.setenv("RAGDOCS_SERVER_SHARED", "false")
            patch.setenv("RAGDOCS_EMBEDDING_MODEL", "hash")
            patch.setenv("RAGDOCS_WATCH_ENABLED", "false")
            patch.setenv("NO_COLOR", "1")
            patch.chdir(self.project)
            self.clock.put(START)
            self.tokens.begin(scenario)
            with stand_still(self.clock, self.tokens):
                yield

    def move_in(self) -> None:
        """Do what comes before the first command; nothing where texts are files."""

    def save(self) -> None:
        """Keep the present state as the one that scenarios begin with.

        What linked files were is worked out from history: the database of it may be half written.
        """
        for file in (self.home / "state/ragdocs").glob("links.sqlite*"):
            file.unlink()
        shutil.copytree(self.root, self._saved, symlinks=True)
        self._states = states(self.root)

    def restore(self) -> None:
        """Go back to the state that was saved.

        Only what a scenario touched is copied, and every text.

        An index knows files by their inodes and times. All texts are new to it in every scenario,
        whatever the one before has touched.
        """
        now = states(self.root)
        project = f"{self.project.relative_to(self.root)}/"
        touched = set()
        for name, state in now.items():
            is_own_text = name.startswith(project) and is_text(name)
            if is_own_text or self._states.get(name) != state:
                touched.add(name)
        # Deepest first: a folder is removed after what it holds.
        for name in sorted(touched, reverse=True):
            remove(self.root / name)
        for name in sorted(self._states):
            if name in touched or name not in now:
                put_back(self._saved / name, self.root / name)
        self._states = states(self.root)


def is_text(path: str) -> bool:
    """Tell whether a path is a file that people write, not one of git or of an index."""
    if not path.endswith((".md", ".rst", ".txt")):
        return False
    return not {".git", "indices", ".history"} & {*path.split("/")}


def states(root: Path) -> dict[str, tuple[int, ...]]:
    """Tell of each file and folder below a root what changes when it is changed."""
    listed: dict[str, tuple[int, ...]] = {}
    # Plain strings: thousands of files are looked at before every scenario.
    above = len(str(root)) + 1
    for folder, folders, names in os.walk(root):
        for name in folders:
            listed[f"{folder}/{name}"[above:]] = ()
        for name in names:
            path = f"{folder}/{name}"
            status = os.lstat(path)
            listed[path[above:]] = (
                status.st_ino,
                status.st_mtime_ns,
                status.st_ctime_ns,
                status.st_size,
            )
    return listed


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink()


def put_back(saved: Path, path: Path) -> None:
    if saved.is_dir():
        path.mkdir(exist_ok=True)
    else:
        shutil.copy2(saved, path)


def padded(base: Path) -> Path:
    """Return a folder below the base whose path has the same length wherever the base is."""
    missing = LENGTH - len(str(base)) - 1
    assert missing > 0, f"{base} is too long a path for golden files; set TMPDIR to a shorter one"
    folder = base / ("x" * missing)
    folder.mkdir()
    return folder


def write_files(world: World) -> None:
    """Write the project's files and its git history, and a second project."""
    for folder in (world.project, world.other, world.home, world.new):
        folder.mkdir(parents=True)
    git(world.project, "init", "-q", "--template=", "-b", "main")
    everything = {**texts.DOCS, **texts.SOURCES, "config.toml": texts.CONFIG}
    changed: dict[str, int] = {}
    for days, author, message, names in texts.COMMITS:
        for name in names:
            changed[name] = changed.get(name, 0) + 1
            # An earlier version of a file that a later commit changes again.
            last = sum(name in commit[3] for commit in texts.COMMITS) == changed[name]
            write(
                world.project / name, everything[name] if last else f"An earlier text of {name}.\n"
            )
        commit(world.project, author, message, START - timedelta(days=days))
    for name, text in everything.items():
        write(world.project / name, text)
    (world.project / "docs" / "latin.md").write_bytes("# Café\n\nNot in UTF-8.\n".encode("latin-1"))
    commit(
        world.project, "Ada <ada@example.org>", "docs: the other pages", START - timedelta(days=2)
    )
    for name, text in texts.MEMORIES.items():
        write(world.project / ".memories" / name, text)
    write(world.other / "config.toml", "[memory]\nenabled = true\n")
    write(
        world.other / ".memories" / "lamp.md",
        "---\ntype: fact\ntags: [ops]\n---\n\nThe lamp turns every 10 s.\n",
    )
    write(world.teammate / "config.toml", "[journal]\nenabled = true\n")
    write(world.root / "resolved.md", "# API client\n\nFive attempts, as agreed.\n")
    git(world.root, "init", "-q", "--template=", "--bare", "-b", "main", str(world.remote))
    date_files(world.root, START - timedelta(days=1))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def commit(root: Path, author: str, message: str, moment: datetime) -> None:
    """Commit everything, so that the hash is the same everywhere."""
    name, _, address = author.removesuffix(">").partition(" <")
    people = {f"GIT_{role}_{field}": value for role in ("AUTHOR", "COMMITTER") for field, value in
              (("NAME", name), ("EMAIL", address), ("DATE", moment.isoformat()))}  # fmt: skip
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", message, **people)


def git(root: Path, *words: str, **environ: str) -> None:
    fixed = {
        "HOME": str(root),
        "PATH": os.environ["PATH"],
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    settings = ("-c", "core.autocrlf=false", "-c", "core.fileMode=false", "-c", "gc.auto=0")
    command = ["git", "-C", str(root), *settings, *words]
    subprocess.run(command, env={**fixed, **environ}, check=True, capture_output=True)
