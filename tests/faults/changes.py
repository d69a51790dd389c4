"""Changes of files that are made again and again, and struck at chosen file calls."""

from __future__ import annotations

import errno
import functools
import json
import random
import shutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

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

NOW = datetime(2026, 2, 4, 12, 0, 0, tzinfo=UTC)


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


# --- where a change is struck ---

# Chooses among the file calls of a change; gives their numbers, the first of which is 1.
Choice = Callable[[Sequence[str]], list[int]]


def every_call(log: Sequence[str]) -> list[int]:
    return list(range(1, len(log) + 1))


def stages(log: Sequence[str], row: int, step: int) -> list[int]:
    """Choose each call that ends a row of calls not seen before, the last, and some on the way.

    What is done to one file after the other has the same rows, and every `step`-th call of it.
    """
    seen = set()
    chosen = []
    for number in every_call(log):
        latest = tuple(log[max(0, number - row) : number])
        if latest not in seen or number % step == 0 or number == len(log):
            chosen.append(number)
        seen.add(latest)
    return chosen


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


def kill_and_cut(change: Change, disk: Path, choose: Choice) -> Counter[str]:
    """Kill a change and cut its power at the chosen calls; give how often it survived."""
    log = calls_of(change)
    counts: Counter[str] = Counter()
    seen = set()
    for at in choose(log):
        for torn in (False, True) if log[at - 1] == "write" else (False,):
            platter = Platter(change.fresh())
            _, error = run(change, platter.watch(kill(at, torn=torn)))
            assert isinstance(error, KilledError), (at, torn, log[at - 1])
            for chooser in (None, random.Random(at)):
                seen.add(change.check(platter.restart(disk, chooser)))
                counts["power cuts"] += 1
            seen.add(change.check(change.root))
            counts["kills"] += 1
    assert seen == {True, False}
    return counts


FAULTS: dict[str, tuple[Callable[[int], Blow], tuple[str, ...]]] = {
    "full once": (lambda at: fail(at, errno.ENOSPC), CHANGES),
    "broken once": (lambda at: fail(at, errno.EIO), (*CHANGES, *LOOKS)),
    "read-only for good": (lambda at: fail(at, errno.EROFS, lasting=True), CHANGES),
    "half a write, then full": (lambda at: shorten(at, full=True), ("write",)),
    "half a write, then the rest": (lambda at: shorten(at, full=False), ("write",)),
}


def fail_calls(change: Change, fault: str, choose: Choice) -> Counter[str]:
    """Let the chosen calls of a change fail; give how many there were, and how many were told."""
    blow, calls = FAULTS[fault]
    log = calls_of(change, calls)
    counts: Counter[str] = Counter()
    for at in choose(log):
        change.fresh()
        _, error = run(change, blow(at), calls)
        is_before = change.check(change.root, failed=error is not None)
        if isinstance(change, MemoryChange):
            assert is_before or "untouched" not in str(error), (at, log[at - 1], error)
        counts["points"] += 1
        counts["told"] += error is not None
    assert counts["told"] or "then the rest" in fault
    return counts
