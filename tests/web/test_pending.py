"""Work that takes longer than a page waits: it goes on, and whoever comes later has its result."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ragdocs.errors import UnavailableError
from ragdocs.serve.web.pending import Pending

PATIENCE = 60.0


def test_a_page_does_not_wait_and_the_next_one_has_the_result() -> None:
    gate = threading.Event()
    begun = []

    def work() -> int:
        begun.append(1)
        gate.wait(PATIENCE)
        return len(begun)

    state = [0]
    pending = Pending(work, lambda: state[0])

    async def visit() -> list[int | None]:
        early = [await pending.within(0.0), await pending.within(0.01)]
        gate.set()
        return [*early, await pending.within(PATIENCE), await pending.within(PATIENCE)]

    assert asyncio.run(visit()) == [None, None, 1, 1]
    # Only a change makes it begin again.
    state[0] += 1
    assert asyncio.run(pending.within(PATIENCE)) == 2
    # So does time, where a result holds for some time only.
    short = Pending(work, lambda: 0, holds_seconds=0.0)
    results = [asyncio.run(short.within(PATIENCE)) for _ in range(2)]
    assert results == [3, 4]


def test_a_failure_is_raised_and_tried_again() -> None:
    attempts: list[int] = []

    def work() -> str:
        attempts.append(1)
        if len(attempts) == 1:
            raise UnavailableError("no model yet")
        return "there"

    pending = Pending(work, lambda: 0)
    with pytest.raises(UnavailableError):
        asyncio.run(pending.within(PATIENCE))
    assert asyncio.run(pending.within(PATIENCE)) == "there"
