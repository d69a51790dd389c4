"""A kill, a power cut or a fault at every file call of an append.

Whole lines, and none that was acknowledged lost.
"""

from __future__ import annotations

import itertools
import json
import random
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ragdocs.errors import RagdocsError
from ragdocs.stores.summaries import Limits, SummaryFile
from ragdocs.text.redaction.redact import Redactor

from .disk import CHANGES, Blow, KilledError, Platter, kill, struck
from .test_calls import FAULTS

if TYPE_CHECKING:
    from .conftest import Tally

NOW = datetime(2026, 2, 4, 12, 0, 0, tzinfo=UTC)
# With room, and with one too many, so that the file is written anew.
LIMITS = {"append": Limits(10, 100, 1_000_000), "append and prune": Limits(10, 2, 1_000_000)}
BEFORE = ["0", "1"]


def store(root: Path, case: str) -> SummaryFile:
    return SummaryFile(root / "repos/x", LIMITS[case], Redactor({}))


@pytest.fixture
def roots(scratch: Path) -> Iterator[Path]:
    """Give a fresh copy of a folder with two summaries, again and again."""
    template = scratch / "template"
    for step in BEFORE:
        store(template, "append").append("r", step, "text " * 20, (), NOW)

    def copies() -> Iterator[Path]:
        for number in itertools.count():
            shutil.rmtree(scratch / f"{number - 1}", ignore_errors=True)
            yield Path(shutil.copytree(template, scratch / f"{number}"))

    return copies()


def run(
    root: Path, case: str, blow: Blow, calls: tuple[str, ...] = CHANGES
) -> tuple[list[str], BaseException | None]:
    kept = store(root, case)
    with struck(blow, calls) as log:
        try:
            kept.append("r", "2", "text " * 20, (), NOW)
        except (RagdocsError, KilledError) as error:
            return log, error
    return log, None


def steps(root: Path) -> list[str]:
    """Return the steps that are read, oldest first.

    The file has whole lines again after the next append.
    """
    kept = store(root, "append")
    found = [record.step_id for record in reversed(kept.newest())]
    kept.append("r", "next", "x", (), NOW)
    lines = [json.loads(line)["stepId"] for line in kept.path.read_bytes().splitlines()]
    assert lines == [*found, "next"]
    return found


def allowed(case: str, *, told: bool) -> list[list[str]]:
    after = [[*BEFORE, "2"], *([["1", "2"]] if case == "append and prune" else [])]
    return [BEFORE, *after] if told else after


@pytest.mark.parametrize("case", LIMITS)
def test_a_kill_or_power_cut_at_any_call_leaves_whole_lines(
    roots: Iterator[Path], scratch: Path, tally: Tally, case: str
) -> None:
    log, _ = run(next(roots), case, lambda call: call.go())
    torn = [(at, True) for at, name in enumerate(log, 1) if name == "write"]
    for at, half in [*((at, False) for at in range(1, len(log) + 1)), *torn]:
        root = next(roots)
        platter = Platter(root)
        _, error = run(root, case, platter.watch(kill(at, torn=half)))
        assert isinstance(error, KilledError), (at, half, error)
        for chooser in (None, random.Random(at)):
            disk = platter.restart(scratch / "disk", chooser)
            assert steps(disk) in allowed(case, told=True), (at, half, log[at - 1], chooser)
            tally("R1 power cut at every call", points=1, survived=1)
        assert steps(root) in allowed(case, told=True), (at, half, log[at - 1])
        tally("R1 kill at every call", points=1, survived=1)


@pytest.mark.parametrize("case", LIMITS)
def test_what_was_acknowledged_outlives_the_power(
    roots: Iterator[Path], scratch: Path, case: str
) -> None:
    root = next(roots)
    platter = Platter(root)
    assert run(root, case, platter.watch(lambda call: call.go()))[1] is None
    assert platter.unsynced() == []
    assert steps(platter.restart(scratch / "disk")) in allowed(case, told=False)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("case", LIMITS)
def test_a_fault_at_any_call_is_told_or_changes_nothing(
    roots: Iterator[Path], tally: Tally, case: str, fault: str
) -> None:
    blow, calls = FAULTS[fault]
    log, _ = run(next(roots), case, lambda call: call.go(), calls)
    for at in range(1, len(log) + 1):
        root = next(roots)
        _, error = run(root, case, blow(at), calls)
        assert steps(root) in allowed(case, told=error is not None), (at, log[at - 1], error)
        tally("R2 faults at every call", points=1, whole=1, silent=0)
