"""From files to an index: read, parse, chunk and apply."""

from __future__ import annotations

import time
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from ragdocs.errors import NotFoundError, RagdocsError
from ragdocs.lanes import Lane
from ragdocs.protocols import Index, Readable
from ragdocs.system.turns import give_way
from ragdocs.types import FRESH, Document, IndexedDocument, Scan, Source

# Processor time that one file may take before it is written to the index; ordinary text of 10 MB
# takes a quarter of it.
FILE_SECONDS = 20.0


@dataclass(slots=True)
class ReadFiles:
    """What one step over files came to: how many are new, changed, the same, and looked at."""

    documents: list[Document] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    new: int = 0
    changed: int = 0
    same: int = 0
    looked: int = 0


class Reading:
    """Reads the files of a lane into its index, and remembers those that it had to leave out."""

    def __init__(self, lane: Lane, store: Readable, index: Index) -> None:
        self.lane = lane
        self.store = store
        self.index = index
        # Why files are left out, by path.
        self.skipped: dict[str, str] = {}
        # Stamp and reason of files that would hold up all others, so that not every scan tries them
        # again.
        self._refused: dict[str, tuple[str, str]] = {}

    def refused(self, scan: Scan) -> dict[str, str]:
        """Return which files of a scan would hold up all others, and why.

        They are not indexed until they change.
        """
        refused = {}
        for path, (stamp, reason) in self._refused.items():
            # A stamp taken right after a write is marked until the file has rested.
            if scan.stamps.get(path, "").removeprefix(FRESH) == stamp.removeprefix(FRESH):
                refused[path] = reason
        return refused

    def read(self, paths: Sequence[str], most: int) -> ReadFiles:
        """Read, parse, chunk and apply paths until there are so many chunks."""
        stamps = self.index.stamps(paths)
        result = ReadFiles()
        entries: list[IndexedDocument] = []
        same: dict[str, str] = {}
        chunks = 0
        for path in paths:
            if chunks >= most:
                break
            give_way()
            result.looked += 1
            source = self._source(path, result.gone)
            if source is None:
                continue
            _, version = stamps.get(path, ("", ""))
            if version == source.version:
                same[path] = source.stamp
                continue
            entry = self._entry(source)
            if entry is None:
                result.gone.append(path)
                continue
            entries.append(entry)
            chunks += len(entry.chunks)
        self.index.apply(entries, result.gone, same)
        result.documents = [entry.document for entry in entries]
        result.new = sum(document.path not in stamps for document in result.documents)
        result.changed = len(entries) - result.new
        result.same = len(same)
        return result

    def _source(self, path: str, gone: list[str]) -> Source | None:
        """Read a file; one that went away is gone, one that cannot be read is left out."""
        self.skipped.pop(path, None)
        self._refused.pop(path, None)
        try:
            return self.store.read(path)
        except NotFoundError:
            gone.append(path)
        except RagdocsError as error:
            self.skipped[path] = str(error)
        return None

    def _entry(self, source: Source) -> IndexedDocument | None:
        """Parse and cut a text, unless it would hold up all others."""
        # For the first file that changed: most commands meet none.
        from ragdocs.search import chunk, parse
        from ragdocs.search.fields import objection

        started = time.thread_time()
        parsed = parse.parse(source, self.lane)
        chunks = chunk.chunk(parsed, self.lane.chunking)
        entry = IndexedDocument(parsed.document, chunks, source.stamp)
        reason = objection(entry, FILE_SECONDS - (time.thread_time() - started))
        if not reason:
            return entry
        self.skipped[source.path] = reason
        self._refused[source.path] = (source.stamp, reason)
        return None

    def gone(self, scan: Scan, only: Sequence[str] | None) -> list[str]:
        """Return the indexed paths that a look at the store, or at these paths, did not meet."""
        indexed = set(self.index.stamps(only))
        if only is not None:
            unknown = set(only) - indexed - scan.stamps.keys()
            if unknown:
                # What is neither a document nor a file may be a folder that went away with
                # everything in it.
                folders = indexed | unknown
                indexed = {path for path in self.index.stamps() if is_below(path, folders)}
        gone = []
        for path in sorted(indexed - scan.stamps.keys()):
            if not is_below(path, scan.unreadable.keys()):
                gone.append(path)
        return gone


def is_below(path: str, folders: AbstractSet[str]) -> bool:
    """Tell whether a path is one of these or below one; costs its depth, not their number."""
    parts = path.split("/")
    names = ["", "."]
    for depth in range(1, len(parts) + 1):
        names.append("/".join(parts[:depth]))
    return not folders.isdisjoint(names)
