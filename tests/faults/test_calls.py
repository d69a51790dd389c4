"""A kill, a power cut or a fault at every file call of a change leaves all of it or nothing."""

from __future__ import annotations

import errno
import functools
import json
import os
import random
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from ragdocs.engines.local.index import LocalIndex
from ragdocs.errors import RagdocsError
from ragdocs.lanes import MEMORY
from ragdocs.search.corpus import Corpus
from ragdocs.stores.files.store import FileStore
from ragdocs.stores.summaries import Limits, SummaryFile
from ragdocs.text.redaction.redact import Redactor
from ragdocs.types import Chunk, Document, IndexedDocument, Put
from ragdocs.verbs.memories.edit import Edits
from ragdocs.verbs.memories.history import Versions
from ragdocs.verbs.memories.merge import Merges
from ragdocs.verbs.memories.revise import Edit
from ragdocs.verbs.memories.write import Memories
from ragdocs.verbs.quality.health import compare

from .disk import CHANGES, LOOKS, Blow, Call, KilledError, Platter, fail, kill, shorten, struck

if TYPE_CHECKING:
    from tests.tally import Tally

NOW = datetime(2026, 2, 4, 12, 0, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let syncing take no time: a kill loses nothing in the kernel, and `Platter` cuts the power."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def notes_of(answer: Any) -> list[str]:
    """Return what a verb says went wrong beside the change that it made."""
    written = getattr(answer, "written", answer)
    notes = list(getattr(answer, "warnings", ()))
    for change in written if isinstance(written, list | tuple) else [written]:
        notes += getattr(change, "notes", ())
    return notes


class Change(ABC):
    """A change of files that is made again and again from one start."""

    def __init__(self, scratch: Path) -> None:
        self._start = scratch / "start"
        self.root = scratch / "root"
        self.prepare(self._start)

    def fresh(self) -> Path:
        """Put the files back as they were before the change."""
        shutil.rmtree(self.root, ignore_errors=True)
        return Path(shutil.copytree(self._start, self.root))

    @abstractmethod
    def prepare(self, root: Path) -> None:
        """Make the files that the change begins with."""

    @abstractmethod
    def begin(self) -> Callable[[], object]:
        """Open the files, as a process that starts does, and return the change itself."""

    @abstractmethod
    def check(self, root: Path, *, failed: bool = True) -> bool:
        """See that all of a change is there, or nothing if it failed; tell whether it is nothing."""


# --- memories ---


class World:
    """The memories of a project, opened anew as by a process that starts."""

    def __init__(self, root: Path) -> None:
        self.root = root
        index = LocalIndex(None, recipe="1", encoder="none", dim=1)
        self.store = FileStore(root, MEMORY, now=lambda: NOW)
        corpus = Corpus(MEMORY, self.store, index, None)
        self.memories = Memories(corpus, lambda: NOW)
        self.merges = Merges(corpus, lambda: NOW)
        self.edits = Edits(corpus)
        self.versions = Versions(corpus)

    def texts(self) -> dict[str, str]:
        return {path: self.store.read(path).text for path in self.store.scan().stamps}

    def revisions(self, path: str) -> list[str]:
        return [self.store.recover(revision.version) for revision in self.store.history(path)]


Work = Callable[[World], object]
EDIT = Edit("changed", find="words", fields={"status": "done"})
VERBS: dict[str, Work] = {
    "create": lambda world: world.memories.create("new/n.md", "new", ["tag"]),
    "update": lambda world: world.memories.update("a.md", "changed"),
    "append": lambda world: world.memories.append("a.md", "more"),
    "delete": lambda world: world.memories.delete("a.md"),
    "edit": lambda world: world.edits.edit("a", EDIT),
    "rename": lambda world: world.edits.rename("a", "deep/new"),
    "restore": lambda world: world.versions.restore("b.md"),
    "restore deleted": lambda world: world.versions.restore("gone.md"),
    "merge": lambda world: world.merges.merge(["a", "b", "f/c"], "all", "a b c"),
    "merge into a source": lambda world: world.merges.merge(["a", "b"], "a", "a b"),
}
UNDONE = ("create", "update", "delete", "rename", "merge", "merge into a source")


class MemoryChange(Change):
    """A verb on memories that link to each other, or its undoing."""

    def __init__(self, scratch: Path, verb: str, *, undo: bool = False) -> None:
        self._verb = VERBS[verb]
        self._undo = undo
        super().__init__(scratch)
        self.before = World(self.fresh()).texts()
        self._trash = {path: path.read_bytes() for path in (self._start / ".trash").rglob("*.md")}
        self.begin()()
        self.after = World(self.root).texts()
        assert self.after != self.before

    def prepare(self, root: Path) -> None:
        earlier = {"a.md": "earlier a", "b.md": "earlier b", "gone.md": "gone"}
        for path, text in {**earlier, "f/c.md": "see [a](../a.md)\n"}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        world = World(root)
        world.memories.update("b.md", "see [[a]]\n")
        # One of that name is in the trash already, from the same second.
        world.memories.delete("a.md")
        world.memories.delete("gone.md")
        (root / "a.md").write_text("some words\n")
        if self._undo:
            self._verb(World(root))

    def begin(self) -> Callable[[], object]:
        self._warnings: list[str] = []
        world = World(self.root)
        return world.versions.undo if self._undo else functools.partial(self._work, world)

    def _work(self, world: World) -> None:
        self._warnings = notes_of(self._verb(world))

    def check(self, root: Path, *, failed: bool = True) -> bool:
        world = World(root)
        texts = world.texts()
        assert not list((root / ".history").glob("*.json"))
        for path, text in self.before.items():
            assert texts.get(path) == text or text in world.revisions(path)
        for place, data in self._trash.items():
            assert (root / place.relative_to(self._start)).read_bytes() == data
        world.store.commit([Put("z.md", "the store still works")])
        if failed and texts == self.before:
            return True
        # A file or folder that could not be read keeps its links, and the answer names it.
        warnings = "\n".join(self._warnings)
        for path in self.before.keys() & self.after.keys():
            if any(f"links in {place} " in warnings for place in (path, Path(path).parent)):
                texts[path] = self.after[path]
        assert texts == self.after
        return False


# --- snapshots of an index ---


def make(directory: Path) -> LocalIndex:
    return LocalIndex(directory, recipe="1", encoder="hash", dim=4, key=b"k" * 32)


def fill(index: LocalIndex, version: str) -> LocalIndex:
    for number in range(3):
        name, own = f"t:{number}", f"{version} {number}"
        document = Document(id=name, lane="t", path=f"{number}.md", title="t", version=own)
        chunk = Chunk(f"{name}#0", name, (), f"{version} text", 1, 1, own)
        index.apply([IndexedDocument(document, (chunk,))])
        index.fill({chunk.digest: np.full(4, 0.5, dtype=np.float32)})
    return index


class Snapshot(Change):
    """The saving of an index, beside as many generations as there were before."""

    def __init__(self, scratch: Path, generations: int) -> None:
        self._generations = generations
        super().__init__(scratch)
        self._index = fill(make(self.root), "third")
        self._index.save()
        old = make(self._start)
        assert old.open() == bool(generations)
        self._before = old.contents()

    def prepare(self, root: Path) -> None:
        root.mkdir()
        for version in ("first", "second")[: self._generations]:
            fill(make(root), version).save()

    def begin(self) -> Callable[[], object]:
        # Another stamp is enough of a change, and leaves the files of the index as many as before.
        self._index.apply([], (), {"0.md": "another stamp"})
        return self._save

    def _save(self) -> None:
        try:
            self._index.save()
        except BaseException:
            assert self._index.dirty
            raise

    def check(self, root: Path, *, failed: bool = True) -> bool:
        index = make(root)
        if not index.open():
            assert failed
            assert not self._generations
            return True
        if not compare(index.contents(), self._index.contents()).difference:
            return False
        assert failed
        assert not compare(index.contents(), self._before).difference
        return True


# --- summaries of steps ---


class Summary(Change):
    """One more summary in a file of two; the limit of lines may make it write the file anew."""

    def __init__(self, scratch: Path, most: int) -> None:
        self._most = most
        super().__init__(scratch)

    def _open(self, root: Path, most: int = 100) -> SummaryFile:
        return SummaryFile(root / "repos/x", Limits(10, most, 1_000_000), Redactor({}))

    def prepare(self, root: Path) -> None:
        for step in ("0", "1"):
            self._open(root).append("r", step, "text " * 20, (), NOW)

    def begin(self) -> Callable[[], object]:
        summaries = self._open(self.root, self._most)
        return functools.partial(summaries.append, "r", "2", "text " * 20, (), NOW)

    def check(self, root: Path, *, failed: bool = True) -> bool:
        summaries = self._open(root)
        steps = [record.step_id for record in reversed(summaries.newest())]
        # The file has whole lines again after the next append.
        summaries.append("r", "next", "x", (), NOW)
        lines = [json.loads(line)["stepId"] for line in summaries.path.read_bytes().splitlines()]
        assert lines == [*steps, "next"]
        if failed and steps == ["0", "1"]:
            return True
        pruned = steps == ["1", "2"] and self._most == 2
        assert pruned or steps == ["0", "1", "2"]
        return False


MAKERS: dict[str, Callable[[Path], Change]] = {
    **{verb: functools.partial(MemoryChange, verb=verb) for verb in VERBS},
    **{f"undo {verb}": functools.partial(MemoryChange, verb=verb, undo=True) for verb in UNDONE},
    "first snapshot": functools.partial(Snapshot, generations=0),
    "third snapshot": functools.partial(Snapshot, generations=2),
    "append a summary": functools.partial(Summary, most=100),
    "append and prune": functools.partial(Summary, most=2),
}


@pytest.fixture(params=MAKERS)
def change(request: pytest.FixtureRequest, scratch: Path) -> Change:
    return MAKERS[request.param](scratch)


def run(
    change: Change, blow: Blow, calls: Sequence[str] = CHANGES
) -> tuple[list[str], BaseException | None]:
    """Make a change with its file calls in the hands of `blow`; return the calls and the error."""
    work = change.begin()
    with struck(blow, calls) as log:
        try:
            work()
        except (RagdocsError, KilledError) as error:
            return log, error
    return log, None


def calls_of(change: Change, calls: Sequence[str] = CHANGES) -> list[str]:
    """Return the file calls of a change that nothing disturbs."""
    change.fresh()
    log, error = run(change, Call.go, calls)
    assert error is None
    return log


def test_a_kill_or_power_cut_at_any_call_leaves_all_or_nothing(
    change: Change, scratch: Path, tally: Tally
) -> None:
    log = calls_of(change)
    points = [(at, False) for at in range(1, len(log) + 1)]
    points += [(at, True) for at, name in enumerate(log, 1) if name == "write"]
    seen = set()
    for at, torn in points:
        platter = Platter(change.fresh())
        _, error = run(change, platter.watch(kill(at, torn=torn)))
        assert isinstance(error, KilledError), (at, torn, log[at - 1])
        for chooser in (None, random.Random(at)):
            seen.add(change.check(platter.restart(scratch / "disk", chooser)))
            tally("R1 power cut at every call", points=1, survived=1)
        seen.add(change.check(change.root))
        tally("R1 kill at every call", points=1, survived=1)
    assert seen == {True, False}


def test_what_was_acknowledged_outlives_the_power(
    change: Change, scratch: Path, tally: Tally
) -> None:
    platter = Platter(change.fresh())
    assert run(change, platter.watch(Call.go))[1] is None
    lost, alive = platter.unsynced(), len(list(change.root.rglob("*")))
    tally("R9 durability by recorded calls", acknowledged=1, alive=alive, unsynced=len(lost))
    assert lost == []
    assert not change.check(platter.restart(scratch / "disk"), failed=False)


FAULTS: dict[str, tuple[Callable[[int], Blow], tuple[str, ...]]] = {
    "full once": (lambda at: fail(at, errno.ENOSPC), CHANGES),
    "broken once": (lambda at: fail(at, errno.EIO), (*CHANGES, *LOOKS)),
    "read-only for good": (lambda at: fail(at, errno.EROFS, lasting=True), CHANGES),
    "half a write, then full": (lambda at: shorten(at, full=True), ("write",)),
    "half a write, then the rest": (lambda at: shorten(at, full=False), ("write",)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_any_call_is_told_and_leaves_all_or_nothing(
    change: Change, tally: Tally, fault: str
) -> None:
    blow, calls = FAULTS[fault]
    told = 0
    for at, name in enumerate(calls_of(change, calls), 1):
        change.fresh()
        _, error = run(change, blow(at), calls)
        is_before = change.check(change.root, failed=error is not None)
        if isinstance(change, MemoryChange):
            assert is_before or "untouched" not in str(error), (at, name, error)
        told += error is not None
        tally(f"R2 {fault}, at every call", points=1, whole=1, told=error is not None)
        tally("R2 faults at every call", points=1, whole=1, silent=0)
    assert told or "then the rest" in fault


# --- a merge that was begun ---


@pytest.fixture
def reader(scratch: Path) -> World:
    """Open memories before another process is killed in a merge, with one source in the trash."""
    merge = MemoryChange(scratch, "merge")
    renames = [at for at, name in enumerate(calls_of(merge), 1) if name == "rename"]
    reader = World(merge.fresh())
    run(merge, kill(renames[1]))
    assert not (reader.root / "a.md").exists()
    assert (reader.root / "b.md").exists()
    return reader


def test_an_edit_after_a_crash_is_kept_and_the_rest_undone(reader: World) -> None:
    (reader.root / "b.md").write_text("edited by hand")
    texts = World(reader.root).texts()
    assert (texts["a.md"], texts["b.md"]) == ("some words\n", "edited by hand")
    assert list(texts) == ["a.md", "b.md", "f/c.md"]


def test_a_reader_finishes_the_merge_of_a_killed_process(reader: World) -> None:
    assert list(reader.texts()) == ["all.md"]


# --- nothing goes past the injection ---

EVENTS = (
    "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate",
    "os.chmod", "os.chown",
)  # fmt: skip


def missed(works: Sequence[Callable[[], object]]) -> list[str]:
    """List what the interpreter says was changed, but by no call that faults are injected into."""
    found: list[str] = []
    following = inside = False

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        writes = False
        if event == "open" and isinstance(arguments[2], int):
            writes = bool(arguments[2] & (os.O_WRONLY | os.O_RDWR))
        if following and not inside and (writes or event in EVENTS):
            found.append(f"{event} {arguments}")

    def blow(call: Call) -> Any:
        nonlocal inside
        inside = True
        try:
            return call.go()
        finally:
            inside = False

    sys.addaudithook(hook)
    with struck(blow):
        following = True
        for work in works:
            work()
        # A hook stays for good; from here on it has nothing to say.
        following = False
    return found


def test_no_file_is_changed_behind_the_back_of_the_injection(scratch: Path) -> None:
    works = []
    for name, maker in MAKERS.items():
        (scratch / name).mkdir()
        change = maker(scratch / name)
        change.fresh()
        works.append(change.begin())
    assert missed(works) == []
    assert len(missed([lambda: (scratch / "seen").write_text("x"), (scratch / "seen").unlink])) == 1
