"""A kill, a power cut or a fault at any file call of a change leaves all of it or nothing.

The suite strikes at the stages of each change; `bench faults --only calls` strikes at every call.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .changes import (
    FAULTS,
    MAKERS,
    Change,
    MemoryChange,
    World,
    calls_of,
    fail_calls,
    kill_and_cut,
    run,
    stages,
)
from .disk import Call, Platter, kill, struck

if TYPE_CHECKING:
    from tests.tally import Tally

KILLED = functools.partial(stages, row=3, step=5)
FAILED = functools.partial(stages, row=2, step=10)


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let syncing take no time: a kill loses nothing in the kernel, and `Platter` cuts the power."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture(params=MAKERS)
def change(request: pytest.FixtureRequest, scratch: Path) -> Change:
    return MAKERS[request.param](scratch)


def test_a_kill_or_power_cut_at_any_stage_leaves_all_or_nothing(
    change: Change, scratch: Path, tally: Tally
) -> None:
    counts = kill_and_cut(change, scratch / "disk", KILLED)
    kills, cuts = counts["kills"], counts["power cuts"]
    tally("R1 kill at the stages of a change", points=kills, survived=kills)
    tally("R1 power cut at the stages of a change", points=cuts, survived=cuts)


def test_what_was_acknowledged_outlives_the_power(
    change: Change, scratch: Path, tally: Tally
) -> None:
    platter = Platter(change.fresh())
    assert run(change, platter.watch(Call.go))[1] is None
    lost, alive = platter.unsynced(), len(list(change.root.rglob("*")))
    tally("R9 durability by recorded calls", acknowledged=1, alive=alive, unsynced=len(lost))
    assert lost == []
    assert not change.check(platter.restart(scratch / "disk"), failed=False)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_any_stage_is_told_and_leaves_all_or_nothing(
    change: Change, tally: Tally, fault: str
) -> None:
    counts = fail_calls(change, fault, FAILED)
    points, told = counts["points"], counts["told"]
    tally(f"R2 {fault}, at the stages of a change", points=points, whole=points, told=told)
    tally("R2 faults at the stages of a change", points=points, whole=points, silent=0)


def test_the_stages_of_a_change_are_its_new_rows_of_calls_and_some_that_repeat() -> None:
    log = ["open", "write", *["rename", "fsync"] * 4, "unlink"]
    assert stages(log, row=2, step=4) == [1, 2, 3, 4, 5, 8, 11]


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
