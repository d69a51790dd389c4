"""Signals that ask a process to end."""

from __future__ import annotations

import signal
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from ragdocs.system import platform

# Ctrl-C and the polite request to end; on Windows, Ctrl-Break and a console that is closed.
ENDINGS = [signal.SIGINT, signal.SIGTERM]
if hasattr(signal, "SIGBREAK"):
    ENDINGS.append(signal.SIGBREAK)


@contextmanager
def called_at_end(loop: AbstractEventLoop, action: Callable[[], None]) -> Iterator[None]:
    """Call an action in the loop when the process is asked to end, as often as it is asked."""
    if platform.is_windows() or platform.is_portable():
        with _called_by_python(loop, action):
            yield
        return
    # Through the loop, which a signal wakes: a function of Python's own would wait for the next
    # event if the signal came just before the loop went to rest.
    for number in ENDINGS:
        loop.add_signal_handler(number, action)
    try:
        yield
    finally:
        for number in ENDINGS:
            loop.remove_signal_handler(number)


@contextmanager
def _called_by_python(loop: AbstractEventLoop, action: Callable[[], None]) -> Iterator[None]:
    """Do the same where loops know no signals: that of Windows wakes for each by itself."""

    def pass_on(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(action)

    earlier = {}
    for number in ENDINGS:
        earlier[number] = signal.signal(number, pass_on)
    try:
        yield
    finally:
        for number, before in earlier.items():
            signal.signal(number, before)
