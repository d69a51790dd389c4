"""Freed memory goes back to the system, where glibc would keep it for later."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def without_collection() -> Iterator[None]:
    """Keep the garbage collector off while objects that stay are made, and off them later."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()


def give_back() -> None:
    """Return freed memory, of which loading the model and encoding each leave a good part."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
