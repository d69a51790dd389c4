"""The zone of this process."""

from __future__ import annotations

import time


def read_zone_again() -> None:
    """Follow the variable TZ as it is now; Windows reads it once, when a process starts."""
    if hasattr(time, "tzset"):
        time.tzset()
