from __future__ import annotations

import threading
import time

import pytest

from ragdocs.system import turns
from ragdocs.system.turns import answering, give_way, ranking


def waited() -> float:
    started = time.monotonic()
    give_way()
    return time.monotonic() - started


def answered(is_begun: threading.Event, is_over: threading.Event) -> None:
    with answering():
        is_begun.set()
        is_over.wait(10)


def test_work_goes_on_at_once_when_nobody_waits_or_the_answer_is_its_own() -> None:
    assert waited() < turns.PATIENCE
    with answering():
        assert waited() < turns.PATIENCE


def test_work_waits_for_an_answer_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE", 0.5)
    is_begun, is_over = threading.Event(), threading.Event()
    asking = threading.Thread(target=answered, args=(is_begun, is_over))
    asking.start()
    assert is_begun.wait(10)
    assert waited() >= 0.4
    # Its patience is at an end: now it works for as long.
    assert waited() < 0.3
    time.sleep(0.6)
    threading.Timer(0.1, is_over.set).start()
    assert 0.05 < waited() < 0.45
    asking.join(10)


def rank(numbers: list[int], counts: list[int]) -> None:
    with ranking() as turn:
        turn.take()
        # Once more is the same turn.
        turn.take()
        numbers.append(threading.get_ident())
        counts.append(len(numbers))
        time.sleep(0.005)
        numbers.remove(threading.get_ident())


def test_answers_rank_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE", 10.0)
    numbers: list[int] = []
    counts: list[int] = []
    threads = [threading.Thread(target=rank, args=(numbers, counts)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert counts == [1] * 8


def test_an_answer_that_hangs_holds_up_others_for_a_moment_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ranking() as hanging:
        hanging.take()
        other = threading.Thread(target=rank, args=([], []))
        other.start()
        other.join(10)
        assert not other.is_alive()
        monkeypatch.setattr(turns, "PATIENCE", 0.01)
        with ranking() as impatient:
            impatient.take()
        # Who went on without a turn has not ended that of another one.
        assert turns.is_somebody_ranking()
    assert not turns.is_somebody_ranking()


def test_who_only_reads_takes_no_turn() -> None:
    with ranking():
        assert not turns.is_somebody_ranking()
