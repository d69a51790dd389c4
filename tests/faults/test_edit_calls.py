"""A kill, a power cut or a fault at every file call of edits, renames and undoing.

All or nothing as ever.
"""

from __future__ import annotations

import errno
import itertools
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ragdocs.errors import RagdocsError
from ragdocs.verbs.memories.revise import Edit

from .disk import Blow, KilledError, Platter, fail, kill, struck
from .test_calls import World, check, unsynced

if TYPE_CHECKING:
    from .conftest import Tally

__all__ = ["unsynced"]

Work = Callable[[World], object]


def rename(world: World) -> object:
    return world.edits.rename("a", "deep/new")


def undo(world: World) -> object:
    return world.versions.undo()


# What happened before, and the verb that is disturbed.
VERBS: dict[str, tuple[Work | None, Work]] = {
    "edit": (
        None,
        lambda world: world.edits.edit(
            "a", Edit("changed", find="words", fields={"status": "done"})
        ),
    ),
    "rename": (None, rename),
    "undo a create": (lambda world: world.memories.create("new", "text", []), undo),
    "undo an update": (lambda world: world.memories.update("a", "changed"), undo),
    "undo a delete": (lambda world: world.memories.delete("a"), undo),
    "undo a merge": (lambda world: world.merges.merge(["a", "b", "f/c"], "all", "all of it"), undo),
    "undo a merge into a source": (lambda world: world.merges.merge(["a", "b"], "a", "both"), undo),
    "undo a rename": (rename, undo),
}


@pytest.fixture(params=VERBS)
def verb(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def roots(tmp_path: Path, verb: str) -> Iterator[Path]:
    """Give a fresh copy of memories that link to each other each time."""
    template, root = tmp_path / "template", tmp_path / "memories"
    for path, text in {
        "a.md": "some words\n",
        "b.md": "see [[a]]\n",
        "f/c.md": "see [a](../a.md)\n",
    }.items():
        (template / path).parent.mkdir(parents=True, exist_ok=True)
        (template / path).write_text(text)
    world = World(template)
    world.memories.create("gone", "gone", [])
    world.memories.delete("gone")
    if prepare := VERBS[verb][0]:
        prepare(world)

    def copied() -> Path:
        shutil.rmtree(root, ignore_errors=True)
        return Path(shutil.copytree(template, root))

    return (copied() for _ in itertools.count())


def trash_of(root: Path) -> dict[str, bytes]:
    trash = root / ".trash"
    return {path.relative_to(trash).as_posix(): path.read_bytes() for path in trash.rglob("*.md")}


def run(root: Path, verb: str, blow: Blow) -> tuple[list[str], BaseException | None]:
    """Do what a verb does, with the file calls of its writing in the hands of `blow`.

    Reading is no risk.
    """
    world = World(root)
    log: list[str] = []
    commit = world.store.commit

    def disturbed(*arguments: Any) -> Any:
        nonlocal log
        with struck(blow) as log:
            return commit(*arguments)

    world.store.commit = disturbed  # type: ignore[method-assign, assignment]
    try:
        VERBS[verb][1](world)
    except (RagdocsError, KilledError) as error:
        return log, error
    return log, None


def test_a_kill_or_power_cut_at_any_call_leaves_all_or_nothing(
    roots: Iterator[Path], verb: str, tmp_path: Path, tally: Tally
) -> None:
    root = next(roots)
    before = World(root).texts()
    log, error = run(root, verb, lambda call: call.go())
    assert error is None
    after = World(root).texts()
    assert after != before
    seen = set()
    for at in range(1, len(log) + 1):
        root = next(roots)
        trash, platter = trash_of(root), Platter(root)
        _, error = run(
            root, verb, platter.watch(kill(at, torn=log[at - 1] == "write" and at % 2 == 0))
        )
        assert isinstance(error, KilledError)
        disk = platter.restart(tmp_path / "disk", random.Random(at))
        assert check(disk, before, trash) in (before, after), (at, log[at - 1])
        texts = check(root, before, trash)
        assert texts in (before, after), (at, log[at - 1])
        seen.add(texts == before)
        tally("R1 kill at every call", points=1, survived=1)
        tally("R1 power cut at every call", points=1, survived=1)
    assert seen == {True, False}


@pytest.mark.parametrize("verb", ["rename", "undo a merge", "undo a rename"], indirect=True)
def test_a_full_disk_at_any_call_is_told_and_leaves_all_or_nothing(
    roots: Iterator[Path], verb: str, tally: Tally
) -> None:
    root = next(roots)
    before = World(root).texts()
    log, _ = run(root, verb, lambda call: call.go())
    after = World(root).texts()
    for at in range(1, len(log) + 1):
        root = next(roots)
        trash = trash_of(root)
        _, error = run(root, verb, fail(at, errno.ENOSPC))
        texts = check(root, before, trash)
        assert texts in ((before, after) if error else (after,)), (at, log[at - 1], error)
        tally("R2 faults at every call", points=1, whole=1, silent=0)
