"""Real servers, killed, crowded, and on full disks; the long runs are in bench/."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.faults import scoreboard, soak
from tests.faults.ledger import Ledger, Operation, Toll, is_whole, paragraph
from tests.faults.servers import Yard
from tests.faults.storm import namespaces_work

from .world import judge, open_yard

if TYPE_CHECKING:
    from tests.tally import Tally

needs_namespaces = pytest.mark.skipif(
    not namespaces_work(), reason="the kernel lets nobody make a user namespace"
)


@pytest.fixture
def crowded_yard(tmp_path: Path) -> Yard:
    # Eight servers that follow each other's writes cost most of the time, and the files do not
    # depend on it; the long run lets them.
    return open_yard(tmp_path, "watch.enabled=false")


# --- killed ---


def test_no_kill_loses_or_tears_an_acknowledged_write_or_prevents_the_next_start(
    yard: Yard, tally: Tally
) -> None:
    judge(scoreboard.kills(yard, 11, 1), tally)


def test_writers_that_are_killed_harm_neither_each_other_nor_readers(
    crowded_yard: Yard, tally: Tally
) -> None:
    judge(scoreboard.writers(crowded_yard, 200, 3), tally)


# --- crowded ---


def test_appends_of_several_processes_to_one_memory_all_arrive(
    crowded_yard: Yard, tally: Tally
) -> None:
    judge(scoreboard.appends(crowded_yard, (2, 8), 4), tally)


def test_updates_with_the_version_that_was_read_are_never_lost(
    crowded_yard: Yard, tally: Tally
) -> None:
    judge(scoreboard.updates(crowded_yard, 8, 6), tally)


def test_a_stale_write_is_refused_and_told_the_current_version_and_both_texts(
    crowded_yard: Yard, tally: Tally
) -> None:
    judge(scoreboard.stale(crowded_yard, 15), tally)


def test_a_reader_never_sees_half_a_write(crowded_yard: Yard, tally: Tally) -> None:
    judge(scoreboard.reading(crowded_yard, 1000, 40), tally)


# --- on hard ground ---


@needs_namespaces
def test_on_a_full_or_locked_disk_searching_goes_on_and_writing_says_why_not(
    yard: Yard, tally: Tally
) -> None:
    judge(scoreboard.disk(yard, 1), tally)


# --- for long ---


@pytest.mark.parametrize(("servers", "calls"), [(1, 120), (3, 60)])
def test_a_mixed_load_over_changing_files_ends_without_errors_and_with_a_true_index(
    yard: Yard, tally: Tally, servers: int, calls: int
) -> None:
    # Memory is judged in the long run: so short a one is all warm-up.
    judge(list(soak.soak(yard, servers, calls))[:1], tally)


# --- the scales themselves ---


@pytest.mark.parametrize(
    ("counts", "met"),
    [
        ({"kills": 3}, True),
        ({"kills": 2}, False),
        ({"kills": 3, "lost": 1}, False),
        ({"kills": 3, "deadlocks": 1}, False),
        ({"kills": 3, "snapshots": 1}, True),
    ],
)
def test_a_bar_is_missed_by_trying_too_little_and_by_any_harm(
    counts: dict[str, int], met: bool
) -> None:
    judged = scoreboard.row("R3", "kills", Toll(Counter(counts)), {"kills": 3, "lost": 0})
    assert judged.met is met


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """A ledger that was promised two memories, and the files that keep the promise."""
    made = Ledger(root=tmp_path, rng=random.Random(1))
    for name in ("m1.md", "m2.md"):
        made.acknowledge(
            Operation("update_memory", {}, {name: (paragraph(1, 5),)}), {"version": ""}
        )
        place = tmp_path / ".memories" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(paragraph(1, 5))
    return made


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (paragraph(1, 5), ""),
        (paragraph(1, 5)[:-3], "torn"),
        (paragraph(2, 5), "lost"),
        ("", "lost"),
        (f"{paragraph(1, 5)}\n\nx", "torn"),
    ],
)
def test_the_ledger_notices_every_kind_of_loss_and_nothing_else(
    ledger: Ledger, tmp_path: Path, text: str, kind: str
) -> None:
    place = tmp_path / ".memories/m1.md"
    place.write_text(text)
    if not text:
        place.unlink()
    ledger.check()
    assert [problem.partition(":")[0] for problem in ledger.problems] == [kind] * bool(kind)


def test_the_ledger_notices_half_a_merge(ledger: Ledger, tmp_path: Path) -> None:
    after = {"m1.md": None, "m2.md": None, "m3.md": (paragraph(3, 5),)}
    ledger.doubts.append(Operation("merge_memories", {}, after))
    (tmp_path / ".memories/m1.md").unlink()
    ledger.check()
    assert ledger.counts["lost"] == 1


def test_a_paragraph_is_whole_only_to_its_last_letter() -> None:
    text = paragraph(7)
    assert is_whole(text)
    assert not any(
        is_whole(other)
        for other in (text[:-1], text[1:], f"{text}x", text.replace(" has ", " had "))
    )
