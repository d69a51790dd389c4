"""What was added on a day, line by line, for people: a file that is never searched."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from ragdocs.system import files
from ragdocs.system.locks import lock

# Folders with a dot in front belong to no lane, so what is logged is not found a second time as a
# memory.
FOLDER = ".daily"
LONGEST = 200
# The entry is written already, and its writer waits.
LOCK_SECONDS = 1.0


def append(root: Path, now: datetime, kind: str, source: str, text: str) -> None:
    """Add one line to the log of the day, in the zone of `now`."""
    path = files.contained(root, f"{FOLDER}/{now:%Y-%m-%d}.md", follow=False)
    if not path.exists():
        _begin(path, f"# {now:%Y-%m-%d}\n\n")
    summary = " ".join(text.split())
    if len(summary) > LONGEST:
        summary = f"{summary[: LONGEST - 1]}…"
    line = f"- **{now:%H:%M:%S}** [{kind}] ({source}) {summary}"
    files.append_line(path, line.encode())


def _begin(path: Path, header: str) -> None:
    """Create the file with its header, unless another process just did."""
    files.make_directories(path.parent)
    with lock(path.parent, timeout=LOCK_SECONDS):
        if not path.exists():
            files.write_atomic(path, header.encode())
