"""Memory that is freed goes back to the system.

Glibc would keep it for the next large thing, which may never come.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def without_collection() -> Iterator[None]:
    """Build what will stay without the collector walking over it again and again.

    And keep it out of its way later.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()


def give_back() -> None:
    """Return freed memory: loading the model and a batch of passages each leave a fair part of the whole."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
