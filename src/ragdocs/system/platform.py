"""What this system is and has: nothing outside `system/` asks which system it runs on.

`ragdocs mcp` uses this before it is connected, so it imports what Python has loaded anyway.
"""

from __future__ import annotations

import os
import sys

# Set to use only what every system and every file system has. Some network mounts need it, and the
# tests run with it as if this were Windows.
PORTABLE_VARIABLE = "RAGDOCS_PORTABLE"
# Without a setting of the machine, Windows refuses longer paths as if they did not exist.
LONGEST_WINDOWS_PATH = 248
_WATCHES = "/proc/sys/fs/inotify/max_user_watches"


def is_portable() -> bool:
    """Tell whether to do without flock, Unix sockets, descriptors of folders and /proc."""
    return os.environ.get(PORTABLE_VARIABLE, "").strip().casefold() in {"1", "true", "yes", "on"}


def is_windows() -> bool:
    """Tell whether this is Windows."""
    return sys.platform == "win32"


def is_mac() -> bool:
    """Tell whether this is macOS."""
    return sys.platform == "darwin"


def user_id() -> int | None:
    """Return the number of the user, or nothing where users have none."""
    if sys.platform == "win32":
        return None
    return os.geteuid()


def read_zone_again() -> None:
    """Follow the variable TZ as it is now; Windows reads it once, when a process starts."""
    import time

    if hasattr(time, "tzset"):
        time.tzset()


def host_name() -> str:
    """Return the name of this machine."""
    # The module `platform` asks Windows by way of a slow interface.
    if sys.platform == "win32":
        return os.environ.get("COMPUTERNAME", "")
    return os.uname().nodename


def is_too_long(path: str) -> bool:
    """Tell whether a path may be refused here for its length."""
    return is_windows() and len(path) >= LONGEST_WINDOWS_PATH


def watch_limit() -> int | None:
    """Return how many folders a user may watch, or nothing where there is no such limit."""
    try:
        with open(_WATCHES, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        # Only Linux has this limit.
        return None
