"""Servers to be hurt, for the tests of this folder that need many: one nursery forks them all."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults.nursery import shared_nursery
from tests.faults.servers import Yard

if TYPE_CHECKING:
    from tests.faults.scoreboard import Row
    from tests.tally import Tally


def open_yard(work: Path, *settings: str) -> Yard:
    return Yard(work, shared_nursery(), settings)


def judge(rows: Iterable[Row], tally: Tally) -> None:
    """Count what was tried under its line of the scoreboard, and fail where a bar is missed."""
    for row in rows:
        tally(f"{row.number} {row.name}".strip(), **row.counts)
        assert row.met, (row.counts, row.bar, row.problems)
