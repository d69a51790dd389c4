"""What Linux says of running processes: descendants, processor time, memory."""

from __future__ import annotations

import os
import time
from pathlib import Path


def tree(root: int) -> list[int]:
    """List a process and everything below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def process_seconds(pid: int) -> float:
    """Return the processor time of any process, all its threads included, to the nanosecond."""
    try:
        # How Linux names the clock of another process: clock_getcpuclockid(3), which Python does
        # not offer.
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def rss_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def resident_kb(ending: str, folder: Path | str = "") -> int:
    """Return how much of the files with such names below a folder this process has in memory."""
    resident = 0
    is_meant = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        key, *values = line.split()
        if "-" in key:
            is_meant = line.endswith(ending) and str(folder) in line
        elif key == "Rss:" and is_meant:
            resident += int(values[0])
    return resident


def is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True
