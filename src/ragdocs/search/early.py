"""The newest files of a lane, read for a caller before the first look at all of them has ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from ragdocs.protocols import Index, Readable
from ragdocs.types import FRESH, Scan

# The stamp and the version of each indexed path.
Stamps = Mapping[str, tuple[str, str]]

# What a caller waits for at most: about two hundred short files.
EARLY_SECONDS = 0.5
# Where nothing is indexed yet, a caller waits this much longer for another reader that is at work:
# an empty answer would say that there is nothing.
EMPTY_SECONDS = 4.0
# Within this time the files are not looked at again.
PAUSE_SECONDS = 0.5
# Files that are read in one step.
PORTION = 32


class EarlyReader:
    """Brings the newest files into the index while the first look at all files is under way."""

    def __init__(
        self, store: Readable, index: Index, read: Callable[[Sequence[str], float], int]
    ) -> None:
        """Take a function that reads the first of some paths into the index before a deadline.

        It returns how many, 0 if the index is busy until then.
        """
        self._store = store
        self._index = index
        self._read = read
        self._one_at_a_time = threading.Lock()
        self._ended_at = -float("inf")
        self._unread = 0

    def read_newest(self) -> int:
        """Read the newest files, as many as a caller can wait for; return how many are left."""
        with self._one_at_a_time:
            if time.monotonic() - self._ended_at > PAUSE_SECONDS:
                self._unread = self._read_until(time.monotonic() + EARLY_SECONDS)
                self._ended_at = time.monotonic()
            return self._unread

    def _read_until(self, deadline: float) -> int:
        scan = self._store.scan()
        paths = self._newest_first(scan)
        patience = deadline
        if len(paths) == len(scan.stamps):
            patience += EMPTY_SECONDS
        # The first files are read even if looking for them took all the time.
        done = self._read(paths[:PORTION], patience)
        while 0 < done < len(paths) and time.monotonic() < deadline:
            count = self._read(paths[done : done + PORTION], deadline)
            if not count:
                break
            done += count
        return len(paths) - done

    def _newest_first(self, scan: Scan) -> list[str]:
        """Return the files that the index has not as they are now."""
        indexed = self._index.stamps(scan.stamps)
        paths = [path for path in scan.stamps if not _is_indexed(path, scan, indexed)]
        return newest_first(paths, scan, indexed)


def newest_first(paths: Iterable[str], scan: Scan, indexed: Stamps) -> list[str]:
    """Sort the paths of a scan by their last change.

    Files that were indexed just after they had changed are read again, but after all others.
    """
    # Files of a fresh checkout have one time: then names with dates decide.
    newest = sorted(paths, key=lambda path: (scan.modified.get(path, 0), path), reverse=True)
    return sorted(newest, key=lambda path: _is_indexed(path, scan, indexed))


def unread_count(paths: Iterable[str], scan: Scan, indexed: Stamps) -> int:
    """Count the paths of a scan whose files are not indexed as they look now."""
    return sum(not _is_indexed(path, scan, indexed) for path in paths)


def _is_indexed(path: str, scan: Scan, indexed: Stamps) -> bool:
    """Tell whether a file is indexed as it looks now, if perhaps too early to be sure."""
    indexed_stamp, _ = indexed.get(path, ("", ""))
    return indexed_stamp.removeprefix(FRESH) == scan.stamps[path].removeprefix(FRESH)
