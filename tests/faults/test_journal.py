"""The journal under kills, processes at once, old locks, and clones full of traps."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.plain_git import plain_git as plain

from ragdocs.errors import RagdocsError, UnavailableError
from ragdocs.stores.git.draft import Draft
from ragdocs.stores.git.exchange import Exchange
from ragdocs.stores.git.journal import JournalStore
from ragdocs.text.formats.journal import overview
from ragdocs.types import Put

from .disk import CHANGES, KilledError, kill, struck
from .test_clone import VECTORS, Clone

if TYPE_CHECKING:
    from tests.tally import Tally

WRITER = """
import sys
from pathlib import Path
from ragdocs.stores.git.journal import JournalStore
from ragdocs.types import Put
store = JournalStore(Path(sys.argv[1]))
for number in range(6):
    store.commit([Put("a.md", "# A", note=f"{sys.argv[2]} {number}")])
"""
HOOKS = (
    "pre-commit", "post-commit", "reference-transaction", "pre-push", "post-checkout", "post-merge",
)  # fmt: skip
ALONE = (
    *("filter with an odd name", "promised object", "repository among the documents", "submodule"),
    # Each gives the remote an address of its own.
    *("ssh command", "remote helper", "upload pack", "git proxy"),
)


def add(root: Path, section: str, entry: str, text: str = "") -> None:
    JournalStore(root).commit([Put(f"{section}.md", text, note=entry)])


def is_whole(root: Path) -> bool:
    """Tell whether git has nothing to complain about, and files say what commits say."""
    plain(root, "fsck", "--strict", "--no-dangling")
    counted = plain(root, "rev-list", "--count", "HEAD", "--", "a.md")
    said = (root / "a.md").read_text()
    return plain(root, "status", "--porcelain") == "" and f"<!-- entry count: {counted} -->" in said


@pytest.mark.parametrize("begun", [True, False], ids=["in a journal", "the first entry"])
def test_a_write_killed_at_any_call_leaves_a_clean_repository(
    scratch: Path, tally: Tally, begun: bool
) -> None:
    template = scratch / "template"
    template.mkdir()
    if begun:
        add(template, "a", "first", "# Before")
        add(template, "sub/b", "other")
    points = 0
    for point in range(1, 500):
        root = scratch / "journal"
        shutil.copytree(template, root)
        try:
            with struck(kill(point), CHANGES) as log:
                add(root, "a", "killed", "# After")
        except KilledError:
            points += 1
        else:
            assert len(log) < point
            break
        made = "killed" in plain(root, "log", "--format=%s", check=False).split("\n")
        add(root, "a", "next", "# After" if made else "# Before")
        assert is_whole(root), f"killed at call {point}, {log[-1]}"
        entries = plain(root, "log", "--format=%s", "--", "a.md").split("\n")
        assert entries == ["next", *(["killed"] if made else []), *(["first"] if begun else [])]
        shutil.rmtree(root)
    assert points > 10
    tally("R1 kill at any call", journal_points=points, journal_survived=points)


def test_processes_that_write_one_section_at_once_lose_nothing(
    tmp_path: Path, tally: Tally
) -> None:
    root = tmp_path / "journal"
    add(root, "a", "first", "# A")
    names = ("one", "two", "three")
    children = [subprocess.Popen([sys.executable, "-c", WRITER, str(root), name]) for name in names]
    # A person commits with plain git meanwhile, to another file.
    for number in range(4):
        (root / "person.md").write_text(f"{number}\n")
        commit = ("commit", "-q", "-m", f"person {number}", "--", "person.md")
        for words in (("add", "person.md"), commit):
            deadline = time.monotonic() + 30
            while True:
                with contextlib.suppress(subprocess.CalledProcessError):
                    plain(root, *words)
                    break
                assert time.monotonic() < deadline
    assert [child.wait(60) for child in children] == [0, 0, 0]
    entries = plain(root, "log", "--format=%s").split("\n")
    assert sorted(entries) == sorted(
        ["first"]
        + [f"{name} {number}" for name in names for number in range(6)]
        + [f"person {number}" for number in range(4)]
    )
    add(root, "a", "last", "# A")
    assert is_whole(root)
    assert (root / "a.md").read_text() == "# A\n\n<!-- entry count: 20 -->\n"
    tally("R2 writers at once", journal_entries=24, journal_lost=0)


@pytest.mark.parametrize("name", ["index.lock", "HEAD.lock", "refs/heads/main.lock"])
def test_a_lock_that_a_killed_git_left_behind_is_broken_when_it_is_old(
    tmp_path: Path, name: str
) -> None:
    root = tmp_path / "journal"
    add(root, "a", "first")
    lock = root / ".git" / name
    lock.touch()
    (root / ".git" / "ragdocs-writing").touch()
    # It may be of a person who is at work.
    with contextlib.suppress(UnavailableError):
        add(root, "a", "second")
    assert lock.exists()
    os.utime(lock, (1, 1))
    (root / ".git" / "ragdocs-writing").touch()
    add(root, "a", "third")
    assert not lock.exists()
    assert is_whole(root)


def test_an_edit_by_hand_is_neither_lost_nor_committed(tmp_path: Path) -> None:
    root = tmp_path / "journal"
    add(root, "a", "first", "# A")
    (root / "a.md").write_text("# A, by hand\n")
    store = JournalStore(root)
    assert store.read("a.md").problems == ("the file has changes that are not committed",)
    store.commit([Put("a.md", "# A", note="second")])
    assert (root / "a.md").read_text() == "# A, by hand\n"
    assert plain(root, "status", "--porcelain") == "M a.md"
    plain(root, "commit", "-qam", "by hand")
    assert store.read("a.md").text == "# A, by hand"
    store.commit([Put("a.md", "# A, by hand", note="fourth")])
    assert is_whole(root)
    (root / "a.md").unlink()
    store.commit([Put("a.md", "# A", note="fifth")])
    assert not (root / "a.md").exists()


def life(root: Path) -> int:
    """Do all that is ever done to a journal; count what worked."""
    done = 0
    store = JournalStore(root)
    for step in (
        store.scan,
        lambda: store.read("a.md"),
        lambda: store.commit([Put("a.md", "# New", note="an entry")]),
        lambda: store.commit([Put("b/c.md", "# Other", note="another")]),
        lambda: [store.read(path) for path in store.scan().stamps],
        lambda: store.recover(store.read("a.md").version),
        store.commits,
        store.collect,
        lambda: Exchange(store).run("", {}),
    ):
        with contextlib.suppress(RagdocsError):
            step()
            done += 1
    return done


@pytest.mark.parametrize("name", ["all of these at once", *ALONE])
def test_no_trap_of_a_clone_springs_in_the_life_of_a_journal(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    clone = Clone(tmp_path)
    plain_config = (clone.root / ".git" / "config").read_text()
    names = [one for one in VECTORS if one not in ALONE] if name not in VECTORS else [name]
    for one in names:
        VECTORS[one][0](clone)
    for hook in HOOKS:
        shutil.copy(clone.trap, clone.root / ".git" / "hooks" / hook)
    clone.set(remote__origin__receivepack=str(clone.trap), gc__recentObjectsHook=str(clone.trap))
    for variable, value in clone.environ.items():
        monkeypatch.setenv(variable, value)
    clone.fired()
    with pytest.raises(UnavailableError, match=r"config sets .* which a journal is not used with"):
        JournalStore(clone.root).commit([Put("a.md", "# New", note="an entry")])
    life(clone.root)
    assert not clone.fired()
    # A person follows the advice; hooks and attributes are still there.
    (clone.root / ".git" / "config").write_text(plain_config)
    done = life(clone.root)
    assert not clone.fired()
    if name not in VECTORS:
        assert done >= 8, "all but meeting the remote"
        assert overview(clone.git("show", "HEAD:a.md").encode()) == "# New"
    clone.git("commit", "--allow-empty", "-m", "x")
    clone.git("status")
    tally("S2 hostile clone", journal_traps=len(names) + 8, journal_fired=0)


def test_a_branch_that_moved_since_it_was_looked_at_is_not_overwritten(tmp_path: Path) -> None:
    root = tmp_path / "journal"
    add(root, "a", "first", "# A")
    store = JournalStore(root)
    before = store.refresh()
    plain(root, "commit", "-q", "--allow-empty", "-m", "by a person")
    assert store.record(Draft((("a.md", b"x\n"),), "late\n"), before) is None
    assert plain(root, "log", "--format=%s").split("\n") == ["by a person", "first"]
    store.commit([Put("a.md", "# A", note="again")])
    assert plain(root, "log", "--format=%s").split("\n") == ["again", "by a person", "first"]
    assert is_whole(root)
