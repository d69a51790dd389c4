"""A kill, a power cut or a fault at every file call of every verb.

All or nothing, never a mix, never in silence.
"""

from __future__ import annotations

import errno
import functools
import itertools
import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
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
from ragdocs.types import Chunk, Document, Entry, Put
from ragdocs.verbs.memories.edit import Edits
from ragdocs.verbs.memories.history import Versions
from ragdocs.verbs.memories.merge import Merges
from ragdocs.verbs.memories.write import Memories
from ragdocs.verbs.quality.health import compare

from .disk import CHANGES, LOOKS, Blow, Call, KilledError, Platter, fail, kill, shorten, struck

if TYPE_CHECKING:
    from .conftest import Tally

NOW = datetime(2026, 2, 4, 12, 0, 0, tzinfo=UTC)
Texts = dict[str, str]


class World:
    """The memories of a project, in files; opened anew as by a process that starts."""

    def __init__(self, root: Path) -> None:
        self.root = root
        index = LocalIndex(None, recipe="1", encoder="none", dim=1)
        self.store = FileStore(root, MEMORY, now=lambda: NOW)
        corpus = Corpus(MEMORY, self.store, index, None)
        self.memories = Memories(corpus, lambda: NOW, 20_000)
        self.merges = Merges(corpus, lambda: NOW, 20_000)
        self.edits = Edits(corpus, 20_000)
        self.versions = Versions(corpus, lambda: NOW, 20_000)

    def texts(self) -> Texts:
        return {path: self.store.read(path).text for path in self.store.scan().stamps}

    def kept(self, path: str) -> list[str]:
        return [self.store.recover(revision.version) for revision in self.store.history(path)]


VERBS: dict[str, Callable[[World], object]] = {
    "create": lambda world: world.memories.create("new/n.md", "new", ["tag"]),
    "update": lambda world: world.memories.update("a.md", "changed"),
    "append": lambda world: world.memories.append("a.md", "more"),
    "delete": lambda world: world.memories.delete("a.md"),
    "restore": lambda world: world.versions.restore("b.md"),
    "restore deleted": lambda world: world.versions.restore("gone.md"),
    "merge": lambda world: world.merges.merge(["a", "b", "f/c"], "all", "a b c"),
    "merge into a source": lambda world: world.merges.merge(["a", "b"], "a", "a b"),
}


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let syncing take no time.

    What the kernel has is not lost with a process, and power cuts are reckoned here.
    """
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make memories that have been worked with.

    Some changed, one deleted in the second in which all of it happens.
    """
    root = tmp_path_factory.mktemp("template") / "memories"
    for path, text in {
        "a.md": "earlier a",
        "b.md": "earlier b",
        "f/c.md": "c",
        "gone.md": "gone",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    world = World(root)
    world.memories.update("b.md", "b")
    world.memories.delete("a.md")
    world.memories.delete("gone.md")
    (root / "a.md").write_text("a")
    return root


@pytest.fixture
def roots(scratch: Path, template: Path) -> Iterator[Path]:
    """Give a fresh copy of the template each time."""
    root = scratch / "memories"
    return (_copied(template, root) for _ in itertools.count())


def _copied(template: Path, root: Path) -> Path:
    shutil.rmtree(root, ignore_errors=True)
    return Path(shutil.copytree(template, root))


def run(
    root: Path, verb: str, blow: Blow, calls: tuple[str, ...] = CHANGES
) -> tuple[list[str], BaseException | None]:
    """Do what a verb does, with its file calls in the hands of `blow`.

    Return the calls and the error.
    """
    world = World(root)
    with struck(blow, calls) as log:
        try:
            VERBS[verb](world)
        except (RagdocsError, KilledError) as error:
            return log, error
    return log, None


def outcome(
    root: Path, verb: str, calls: tuple[str, ...] = CHANGES
) -> tuple[list[str], Texts, Texts]:
    """Return the calls of an undisturbed run, and the texts before and after it."""
    before = World(root).texts()
    log, error = run(root, verb, lambda call: call.go(), calls)
    assert error is None
    return log, before, World(root).texts()


def check(root: Path, before: Texts, trash: dict[str, bytes]) -> Texts:
    """Start on what is there.

    Nothing is half-made, everything that was there is found, and writing works.
    """
    world = World(root)
    texts = world.texts()
    assert not list((root / ".history").glob("*.json"))
    for path, text in before.items():
        assert texts.get(path) == text or text in world.kept(path)
    for name, data in trash.items():
        assert (root / ".trash" / name).read_bytes() == data
    with struck(lambda call: call.go()):
        world.store.commit([Put("z.md", "the store still works")])
    return texts


def trash_of(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / ".trash").iterdir()}


@pytest.mark.parametrize("verb", VERBS)
def test_a_kill_or_power_cut_at_any_call_leaves_all_or_nothing(
    roots: Iterator[Path], scratch: Path, tally: Tally, verb: str
) -> None:
    log, before, after = outcome(next(roots), verb)
    torn = [(at, True) for at, name in enumerate(log, 1) if name == "write"]
    seen = set()
    for at, half in [*((at, False) for at in range(1, len(log) + 1)), *torn]:
        root = next(roots)
        trash, platter = trash_of(root), Platter(root)
        _, error = run(root, verb, platter.watch(kill(at, torn=half)))
        assert isinstance(error, KilledError), (at, half, error)
        for chooser in (None, random.Random(at)):
            disk = platter.restart(scratch / "disk", chooser)
            assert check(disk, before, trash) in (before, after), (at, half, log[at - 1], chooser)
            tally("R1 power cut at every call", points=1, survived=1)
        texts = check(root, before, trash)
        assert texts in (before, after), (at, half, log[at - 1])
        seen.add(texts == before)
        tally("R1 kill at every call", points=1, survived=1)
    assert seen == {True, False}


@pytest.mark.parametrize("verb", VERBS)
def test_what_was_acknowledged_outlives_the_power(
    roots: Iterator[Path], scratch: Path, tally: Tally, verb: str
) -> None:
    _, before, after = outcome(next(roots), verb)
    root = next(roots)
    trash, platter = trash_of(root), Platter(root)
    run(root, verb, platter.watch(lambda call: call.go()))
    unsynced = platter.unsynced()
    tally(
        "R9 durability by recorded calls",
        acknowledged=1,
        alive=len(list(root.rglob("*"))),
        unsynced=len(unsynced),
    )
    assert unsynced == []
    assert check(platter.restart(scratch / "disk"), before, trash) == after


FAULTS: dict[str, tuple[Callable[[int], Blow], tuple[str, ...]]] = {
    "full once": (lambda at: fail(at, errno.ENOSPC), CHANGES),
    "broken once": (lambda at: fail(at, errno.EIO), (*CHANGES, *LOOKS)),
    "read-only for good": (lambda at: fail(at, errno.EROFS, lasting=True), CHANGES),
    "half a write, then full": (lambda at: shorten(at, full=True), ("write",)),
    "half a write, then the rest": (lambda at: shorten(at, full=False), ("write",)),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("verb", VERBS)
def test_a_fault_at_any_call_is_told_and_leaves_all_or_nothing(
    roots: Iterator[Path], tally: Tally, verb: str, fault: str
) -> None:
    blow, calls = FAULTS[fault]
    log, before, after = outcome(next(roots), verb, calls)
    told = 0
    for at in range(1, len(log) + 1):
        root = next(roots)
        trash = trash_of(root)
        _, error = run(root, verb, blow(at), calls)
        texts = check(root, before, trash)
        assert texts in ((before, after) if error else (after,)), (at, log[at - 1], error)
        assert not error or texts == before or "untouched" not in str(error), (
            at,
            log[at - 1],
            error,
        )
        told += error is not None
        tally(f"R2 {fault}, at every call", points=1, whole=1, told=error is not None)
        tally("R2 faults at every call", points=1, whole=1, silent=0)
    assert told or "then the rest" in fault


# --- a merge that was begun ---


@pytest.fixture
def reader(roots: Iterator[Path]) -> World:
    """Open memories before another process is killed while it merges them.

    One source is in the trash, two are not.
    """
    log, _, _ = outcome(next(roots), "merge")
    second = [at for at, name in enumerate(log, 1) if name == "rename"][1]
    reader = World(next(roots))
    run(reader.root, "merge", kill(second))
    assert not (reader.root / "a.md").exists()
    assert (reader.root / "b.md").exists()
    return reader


def test_an_edit_after_a_crash_is_kept_and_the_rest_undone(reader: World) -> None:
    (reader.root / "b.md").write_text("edited by hand")
    assert World(reader.root).texts() == {"a.md": "a", "b.md": "edited by hand", "f/c.md": "c"}


def test_a_reader_finishes_the_merge_of_a_killed_process(reader: World) -> None:
    assert list(reader.texts()) == ["all.md"]


# --- snapshots ---


def make(directory: Path) -> LocalIndex:
    return LocalIndex(directory, recipe="1", encoder="hash", dim=4, key=b"k" * 32)


def fill(index: LocalIndex, version: str) -> LocalIndex:
    for number in range(3):
        document = Document(
            id=f"t:{number}",
            lane="t",
            path=f"{number}.md",
            title="t",
            version=f"{version} {number}",
        )
        chunk = Chunk(f"t:{number}#0", document.id, (), f"{version} text", 1, 1, document.version)
        index.apply([Entry(document, (chunk,))])
        index.fill({chunk.digest: np.full(4, 0.5, dtype=np.float32)})
    return index


@pytest.fixture(scope="module")
def generations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with two generations, so that a third pushes one out."""
    place = tmp_path_factory.mktemp("generations") / "indices"
    for version in ("first", "second"):
        fill(make(place), version).save()
    return place


class Saving:
    """An index that was changed and is to be saved over and over.

    Beside what the generations held before.
    """

    def __init__(self, generations: Path | None, place: Path) -> None:
        self._generations = generations
        self.place = place
        self.index = fill(make(place), "third")
        self.index.save()
        self.outcomes = [self.index.contents()]
        if generations:
            old = make(generations)
            assert old.open()
            self.outcomes.append(old.contents())

    def run(
        self, blow: Blow, calls: tuple[str, ...] = CHANGES
    ) -> tuple[list[str], BaseException | None]:
        with struck(blow, calls) as log:
            try:
                self.index.save()
            except (RagdocsError, KilledError) as error:
                assert self.index.dirty
                return log, error
        return log, None

    def fresh(self) -> Saving:
        shutil.rmtree(self.place, ignore_errors=True)
        if self._generations:
            shutil.copytree(self._generations, self.place)
        else:
            self.place.mkdir()
        # Another stamp is enough of a change, and leaves the files of the index as many as they
        # were.
        self.index.apply([], (), {"0.md": "another stamp"})
        return self

    def check(self, place: Path, *, told: bool = True) -> None:
        """Open what is there: the old generation or the new one, whole.

        And nothing only where there was none.
        """
        index = make(place)
        if not index.open():
            assert told
            assert len(self.outcomes) == 1
            return
        found = index.contents()
        assert any(
            not compare(found, outcome)["difference"]
            for outcome in self.outcomes[: None if told else 1]
        )


@pytest.mark.parametrize("start", ["with two generations", "with nothing"])
def test_a_kill_or_power_cut_at_any_call_of_a_snapshot_leaves_a_whole_one(
    generations: Path, scratch: Path, tally: Tally, start: str
) -> None:
    saving = Saving(generations if start == "with two generations" else None, scratch / "indices")
    log, _ = saving.fresh().run(lambda call: call.go())
    torn = [(at, True) for at, name in enumerate(log, 1) if name == "write"]
    for at, half in [*((at, False) for at in range(1, len(log) + 1)), *torn]:
        platter = Platter(saving.fresh().place)
        _, error = saving.run(platter.watch(kill(at, torn=half)))
        assert isinstance(error, KilledError)
        for chooser in (None, random.Random(at)):
            saving.check(platter.restart(scratch / "disk", chooser))
            tally("R1 power cut at every call", points=1, survived=1)
        saving.check(saving.place)
        tally("R1 kill at every call", points=1, survived=1)
    platter = Platter(saving.fresh().place)
    assert saving.run(platter.watch(lambda call: call.go()))[1] is None
    assert platter.unsynced() == []
    saving.check(platter.restart(scratch / "disk"), told=False)
    alive = len(list(saving.place.rglob("*")))
    tally("R9 durability by recorded calls", acknowledged=1, alive=alive, unsynced=0)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_any_call_of_a_snapshot_is_told_and_leaves_a_whole_one(
    generations: Path, scratch: Path, tally: Tally, fault: str
) -> None:
    blow, calls = FAULTS[fault][0], FAULTS[fault][1]
    saving = Saving(generations, scratch / "indices")
    log, _ = saving.fresh().run(lambda call: call.go(), calls)
    for at in range(1, len(log) + 1):
        _, error = saving.fresh().run(blow(at), calls)
        saving.check(saving.place, told=error is not None)
        tally(f"R2 {fault}, at every call", points=1, whole=1, told=error is not None)
        tally("R2 faults at every call", points=1, whole=1, silent=0)


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
        writes = (
            event == "open"
            and isinstance(arguments[2], int)
            and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        )
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


def test_no_file_is_changed_behind_the_back_of_the_injection(
    template: Path, generations: Path, scratch: Path
) -> None:
    worlds = [World(Path(shutil.copytree(template, scratch / verb))) for verb in VERBS]
    works = [
        functools.partial(work, world) for work, world in zip(VERBS.values(), worlds, strict=True)
    ]
    assert missed([*works, Saving(generations, scratch / "indices").fresh().index.save]) == []
    assert len(missed([lambda: (scratch / "seen").write_text("x"), (scratch / "seen").unlink])) == 1
