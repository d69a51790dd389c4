from __future__ import annotations

import threading
import time

import pytest

from ragdocs.system import turns
from ragdocs.system.turns import answering, give_way


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
