"""Storms of file events, and none at all: the index follows and encodes nothing twice."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from tests.faults import scoreboard
from tests.faults.nursery import QUIET, SAVE
from tests.faults.servers import Yard
from tests.faults.storm import LIMITS, namespaces_work, until

from .world import judge

if TYPE_CHECKING:
    from tests.tally import Tally


def test_a_storm_over_all_files_encodes_nothing_again_and_loses_nothing(
    yard: Yard, tally: Tally
) -> None:
    judge(scoreboard.shaken_files(yard, 200), tally)


def test_files_that_never_rest_do_not_put_off_the_snapshot_for_ever(yard: Yard) -> None:
    root = yard.project("restless")
    note, pointer = root / ".memories/a.md", root / ".memories/indices/current"
    edits = itertools.count()

    def saved() -> bool:
        # More often than the two seconds that a snapshot otherwise waits for.
        note.write_text(f"edit {next(edits)}")
        return pointer.exists()

    with yard.start(root, environment={SAVE: "1", QUIET: "60"}) as line:
        line.greet().call("get_memory_stats")
        until(saved, 30, "a snapshot")


@pytest.mark.skipif(not namespaces_work(), reason="the kernel lets nobody make a user namespace")
@pytest.mark.parametrize("limit", ["few watches", "used up later"])
def test_where_the_kernel_gives_no_events_changes_are_found_and_said_to_be_polled(
    yard: Yard, tally: Tally, limit: str
) -> None:
    judge(scoreboard.limits(yard, {limit: LIMITS[limit]}), tally)
