"""A folder that becomes a link under a server, as after `git pull`, is not written behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ragdocs.engines.local import snapshot
from ragdocs.errors import RagdocsError
from ragdocs.lanes import MEMORY
from ragdocs.serve.init.project import init
from ragdocs.stores.files.store import FileStore
from ragdocs.system import files as fsio
from ragdocs.system.folder import Folder
from ragdocs.system.locks import lock
from ragdocs.types import Discard, Put
from ragdocs.verbs import journal
from ragdocs.verbs.memories.entry_rules import NewEntry
from ragdocs.verbs.memories.revise import Edit
from ragdocs.workspace import Workspace

if TYPE_CHECKING:
    from tests.conftest import Project
    from tests.tally import Tally

SCORE = "S2 hostile clone"
GENERATION = "01700000000000000000-0123abcd"

# Of the system call renameat2, which Python has no function for.
AT_FDCWD, RENAME_EXCHANGE = -100, 2

Contents = dict[str, bytes | None]


def contents(folder: Path) -> Contents:
    """Return every path below a folder with its bytes, or nothing for a folder."""
    return {
        str(path): None if path.is_dir() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


# Whatever we might look for in a folder of ours.
PRIVATE = (
    "a.md", "b.md", "log.jsonl", "forward.json", "current", "n.md", "2026-11-16.md", "inner/c.md",
    ".history/log.jsonl", ".trash/a.md", "thesis/chapter.md", "ab/cdef", f"ab/{'0' * 62}",
    f".0{fsio.TEMPORARY}", f"ab/.1{fsio.TEMPORARY}", f"{GENERATION}/manifest.json",
    "01600000000000000000-0123abcd/x", "indices/01500000000000000000-0123abcd/y",
    f"indices/{GENERATION}/manifest.json", "indices/current",
)  # fmt: skip


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """Make a folder of somebody else."""
    folder = tmp_path / "victim"
    old = time.time() - 100_000
    for name in PRIVATE:
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"private {name}\n")
        os.utime(place, (old, old))
    return folder


def save_again(own: Workspace, stamp: str) -> None:
    """Save the index once more, with as little of a change as counts."""
    index = own.open_lanes["memory"].index
    index.apply([], (), dict.fromkeys(index.stamps(), stamp))
    own.save()


VERBS: dict[str, Callable[[Workspace], Any]] = {
    "create": lambda own: own.memories.create("n.md", "new", ["tag"]),
    "create below": lambda own: own.memories.create("inner/n.md", "new", []),
    "update": lambda own: own.memories.update("inner/c.md", "changed"),
    "append": lambda own: own.memories.append("a.md", "more"),
    "delete": lambda own: own.memories.delete("inner/c.md"),
    "delete another": lambda own: own.memories.delete("b.md"),
    "edit": lambda own: own.edits.edit("a.md", Edit(text="omega", find="alpha")),
    "rename": lambda own: own.edits.rename("a.md", "inner/moved.md"),
    "merge": lambda own: own.merges.merge(["a", "inner/c"], "inner/all", "both"),
    "restore": lambda own: own.versions.restore("b.md"),
    "undo": lambda own: own.versions.undo(),
    "add an entry": lambda own: own.entries.add(
        NewEntry(content="A fact that is worth a line in the log of the day.")
    ),
    "scan": lambda own: own.sync(),
    "save": lambda own: own.save(),
    "save again": lambda own: save_again(own, "x"),
    "init": lambda own: init(own.config.root),
}
SWAPPED = (
    ".memories", ".memories/indices", ".memories/.trash", ".memories/.history", ".memories/inner",
    ".memories/.daily", ".memories/.trash/inner", ".memories/indices/generation",
)  # fmt: skip


@pytest.fixture
def workspace(project: Project) -> Workspace:
    """Open a project that has been worked with, with two generations of its index."""
    texts = {"a.md": "alpha", "b.md": "beta", "inner/c.md": "gamma", "inner/d.md": "delta"}
    for name, text in texts.items():
        project.memory(name, f"{text}\n")
    own = project.open()
    own.save()
    own.memories.update("b.md", "changed once")
    own.memories.delete("inner/d.md")
    own.entries.add(NewEntry(content="The first entry of the day."))
    own.save()
    return own


def swap(root: Path, name: str, victim: Path) -> None:
    """Put a link to the victim in the place of a folder of the project."""
    place = root / name
    if place.name == "generation":
        indices = place.parent
        live = (indices / "current").read_text()
        place = next(old for old in indices.iterdir() if old.is_dir() and old.name != live)
    if place.is_dir():
        place.rename(root / "aside")
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(victim, target_is_directory=True)


@pytest.mark.parametrize("swapped", SWAPPED)
def test_no_verb_changes_anything_behind_a_folder_that_became_a_link_and_is_a_folder_again(
    workspace: Workspace, victim: Path, swapped: str, tally: Tally
) -> None:
    root = workspace.config.root
    swap(root, swapped, victim)
    before = contents(victim)
    for verb, action in VERBS.items():
        with contextlib.suppress(RagdocsError):
            action(workspace)
        assert contents(victim) == before, verb
        tally(SCORE, swapped_folders=1, changed_behind=0)
    for link in [path for path in root.rglob("*") if path.is_symlink()]:
        link.unlink()
        if (root / "aside").exists():
            (root / "aside").rename(link)
    workspace.memories.create("last.md", "the last one", [])
    workspace.save()
    assert (root / ".memories" / "last.md").exists()


# --- a swap in the middle of a call ---


RACE_SECONDS = 1.0
PATIENCE_SECONDS = 60.0


def racing(folder: Path, victim: Path, stop: threading.Event) -> None:
    """Put the link and the folder in each other's place, in one step, over and over."""
    link = folder.with_name(".link")
    link.symlink_to(victim, target_is_directory=True)
    exchange = ctypes.CDLL(None).renameat2
    names = (AT_FDCWD, os.fsencode(folder), AT_FDCWD, os.fsencode(link), RENAME_EXCHANGE)
    while not stop.is_set():
        exchange(*names)
        time.sleep(0.0005)
        exchange(*names)
        # Long enough for a commit to come through now and then, short enough to be in the middle of
        # most.
        time.sleep(random.uniform(0, 0.015))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges two names in one step")
@pytest.mark.parametrize("swapped", ["", "inner", ".history", ".trash"])
def test_a_swap_between_check_and_write_changes_nothing_behind_the_link(
    tmp_path: Path,
    victim: Path,
    swapped: str,
    monkeypatch: pytest.MonkeyPatch,
    tally: Tally,
    own_system: None,
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    root = tmp_path / "project" / ".memories"
    for folder in ("inner", ".history", ".trash"):
        (root / folder).mkdir(parents=True)
    store = FileStore(root, MEMORY)
    before, made, stop = contents(victim), 0, threading.Event()
    thread = threading.Thread(target=racing, args=(root / swapped, victim, stop))
    thread.start()
    try:
        end = time.monotonic() + RACE_SECONDS
        # A machine with other work may need longer until something comes through.
        while time.monotonic() < end or (not made and time.monotonic() < end + PATIENCE_SECONDS):
            for change in (Put("inner/c.md", f"text {time.monotonic_ns()}"), Discard("inner/c.md")):
                try:
                    store.commit([change])
                except (RagdocsError, OSError):
                    continue
                made += 1
    finally:
        stop.set()
        thread.join()
    assert contents(victim) == before
    assert made, "nothing came through, so nothing was tried"
    tally(SCORE, commits_in_a_race=made, changed_behind=0)


# --- each way of writing ---


WAYS: dict[str, Callable[[Path], object]] = {
    "write": lambda folder: fsio.write_atomic(folder / "a.md", b"x"),
    "append": lambda folder: fsio.append_line(folder / "log.jsonl", b"x"),
    "create": lambda folder: fsio.create(folder / "new", b"x"),
    "cut": lambda folder: fsio.cut(folder / "a.md", 1),
    "remove": lambda folder: fsio.remove(folder / "a.md"),
    "sweep": lambda folder: fsio.sweep(folder / f".0{fsio.TEMPORARY}", 60),
    "rename": lambda folder: fsio.rename(folder / "forward.json", "back.json"),
    "move out": lambda folder: fsio.move(folder / "a.md", folder.parent / "a.md"),
    "move in": lambda folder: fsio.move(folder.parent / "file", folder / "new.md"),
    "make": lambda folder: fsio.make_directories(folder / "new" / "folder"),
    "snapshot": lambda folder: snapshot.save(folder, {"x": [b"x"]}, {}, b"k" * 32),
    "lock": lambda folder: lock(folder).__enter__(),
}


@pytest.mark.parametrize("portable", ["", "1"], ids=["as the platform can", "portable"])
@pytest.mark.parametrize("depth", ["", "inner"])
@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_written_through_a_link(
    tmp_path: Path,
    victim: Path,
    way: str,
    depth: str,
    portable: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAGDOCS_PORTABLE", portable)
    (tmp_path / "file").write_text("own")
    (tmp_path / "link").symlink_to(victim, target_is_directory=True)
    before = contents(victim)
    with pytest.raises(RagdocsError, match="is a symbolic link"):
        WAYS[way](tmp_path / "link" / depth)
    assert contents(victim) == before
    assert (tmp_path / "file").read_text() == "own"


def test_without_descriptors_of_folders_files_are_written_by_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGDOCS_PORTABLE", "1")
    own = tmp_path / "own"
    fsio.make_directories(own / "inner")
    fsio.write_atomic(own / "inner" / "a", b"x")
    fsio.move(own / "inner" / "a", own / "b")
    assert contents(own) == {str(own / "b"): b"x", str(own / "inner"): None}


def test_a_folder_that_may_only_be_passed_through_is_no_hindrance(tmp_path: Path) -> None:
    inner = tmp_path / "closed" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "closed").chmod(0o711)
    fsio.write_atomic(inner / "a", b"x")
    assert (inner / "a").read_bytes() == b"x"


def test_descriptors_are_given_back(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "link").symlink_to(victim, target_is_directory=True)
    before = len([*Path("/proc/self/fd").iterdir()])
    for _ in range(20):
        fsio.make_directories(tmp_path / "x" / "y")
        fsio.write_atomic(tmp_path / "x" / "a", b"x")
        with pytest.raises(OSError, match="symbolic link"):
            Folder(tmp_path / "link" / "inner")
    assert len([*Path("/proc/self/fd").iterdir()]) == before


# --- pruning ---


def test_only_signed_generations_are_removed(workspace: Workspace, project: Project) -> None:
    indices = project.root / ".memories" / "indices"
    foreign = {
        "thesis": "chapter.md",
        "01600000000000000000-0123abcd": "notes.md",
        "01500000000000000000-0123abcd": "manifest.json",
        "0123": "manifest.json",
    }
    signed = next(path for path in indices.iterdir() if path.is_dir()) / "manifest.json"
    for folder, name in foreign.items():
        (indices / folder).mkdir()
        (indices / folder / name).write_text('{"files": {}, "recipe": {}, "signature": "00"}')
    (indices / "own-copy").mkdir()
    (indices / "own-copy" / "manifest.json").write_bytes(signed.read_bytes())
    for number in range(4):
        save_again(workspace, str(number))
    folders = {path.name for path in indices.iterdir() if path.is_dir()}
    assert folders >= {*foreign, "own-copy"}
    assert len(folders - {*foreign, "own-copy"}) == snapshot.KEPT
    for folder, name in foreign.items():
        assert (indices / folder / name).exists()


def test_the_journal_is_not_written_behind_a_link(project: Project, tmp_path: Path) -> None:
    own = project.open(**{"journal.enabled": True})
    reads: journal.Reads = {}
    own.journal.read("notes", reads=reads)
    entry = journal.NewEntry("An entry.", work_context="Starting.")
    own.journal.write("notes", entry, reads)
    place = project.root / "journal-data"
    assert (place / "notes.md").exists()
    shutil.copytree(place, tmp_path / "victim")
    remote = tmp_path / "remote"
    subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)
    subprocess.run(
        ["git", "-C", str(tmp_path / "victim"), "remote", "add", "origin", str(remote)], check=True
    )
    swap(project.root, "journal-data", tmp_path / "victim")
    before = contents(tmp_path / "victim")
    with pytest.raises(RagdocsError, match=r"leads outside|is a symbolic link"):
        own.journal.write("notes", entry, reads)
    with pytest.raises(RagdocsError, match="is a symbolic link"):
        own.journal.sync()
    assert contents(tmp_path / "victim") == before
