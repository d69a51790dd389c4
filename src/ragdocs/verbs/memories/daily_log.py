"""What was added on a day, line by line, for people: a file that is never searched."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from ragdocs.system import files as fsio
from ragdocs.system.locks import lock

# Folders with a dot in front belong to no lane, so what is logged is not found a second time as a
# memory.
FOLDER = ".daily"
LONGEST = 200
# The entry is written already, and its writer waits.
LOCK_SECONDS = 1.0


def append(root: Path, now: datetime, kind: str, source: str, text: str) -> None:
    """Add one line to the log of the day, in the zone of `now`."""
    path = fsio.contained(root, f"{FOLDER}/{now:%Y-%m-%d}.md", follow=False)
    if not path.exists():
        _begin(path, f"# {now:%Y-%m-%d}\n\n")
    said = " ".join(text.split())
    said = said if len(said) <= LONGEST else f"{said[: LONGEST - 1]}…"
    fsio.append_line(path, f"- **{now:%H:%M:%S}** [{kind}] ({source}) {said}".encode())


def _begin(path: Path, header: str) -> None:
    """Make the file with its header; whoever comes second finds it made."""
    fsio.make_directories(path.parent)
    with lock(path.parent, timeout=LOCK_SECONDS):
        if not path.exists():
            fsio.write_atomic(path, header.encode())
