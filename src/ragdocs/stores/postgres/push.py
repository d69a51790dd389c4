"""The documentation of a working copy into a team database: what changed, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ragdocs.errors import RagdocsError
from ragdocs.stores.changes import Exact
from ragdocs.stores.files.history import version_of
from ragdocs.stores.files.store import FileStore
from ragdocs.stores.postgres.texts import RowStore
from ragdocs.system import files
from ragdocs.types import Discard, Expect

# Texts of one change set: a push that is interrupted goes on after the last of them.
BATCH = 100
BATCH_BYTES = 4_000_000

# Called with a stage, the number of texts that are done, and of all.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class PushPlan:
    """How pushed documentation differs from the files of a working copy."""

    changed: Sequence[str]
    removed: Sequence[str]
    unchanged: int
    # Files that cannot be pushed, with the reason.
    skipped: Mapping[str, str]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to push."""
        return not self.changed and not self.removed


@dataclass(frozen=True, slots=True)
class Push:
    """From the files of a working copy to the texts of a branch."""

    source: FileStore
    target: RowStore
    # Bytes of the largest file that is pushed.
    largest: int

    def compare(self, progress: Progress) -> PushPlan:
        """Compare the files with the versions that were pushed."""
        pushed = self.target.versions()
        scan = self.source.scan()
        skipped = dict(scan.unreadable)
        changed = []
        unchanged = 0
        for number, path in enumerate(sorted(scan.stamps), start=1):
            progress("comparing", number, len(scan.stamps))
            try:
                version = version_of(self._read(path)[0])
            except RagdocsError as error:
                skipped[path] = error.message
                continue
            if pushed.get(path) == version:
                unchanged += 1
            else:
                changed.append(path)
        # A file that cannot be read is not gone.
        removed = sorted(pushed.keys() - scan.stamps.keys() - scan.unreadable.keys())
        return PushPlan(changed, removed, unchanged, skipped)

    def send(self, plan: PushPlan, progress: Progress) -> None:
        """Make the pushed documentation that of the files, in steps that are whole each."""
        done = 0
        total = len(plan.changed) + len(plan.removed)
        for batch in self._batches(plan):
            self.target.commit_exactly(batch)
            done += len(batch)
            progress("pushing", done, total)

    def _batches(self, plan: PushPlan) -> Iterator[list[Exact | Discard]]:
        batch: list[Exact | Discard] = []
        size = 0
        for path in plan.changed:
            data, modified_at = self._read(path)
            batch.append(Exact(path, data, Expect.ANY, modified_at))
            size += len(data)
            if len(batch) >= BATCH or size >= BATCH_BYTES:
                yield batch
                batch = []
                size = 0
        for path in plan.removed:
            batch.append(Discard(path, Expect.ANY, trash=False))
            if len(batch) >= BATCH:
                yield batch
                batch = []
        if batch:
            yield batch

    def _read(self, path: str) -> tuple[bytes, datetime]:
        file = files.contained(self.source.root, path)
        data, status = files.read_file(file, self.largest)
        return data, datetime.fromtimestamp(status.st_mtime, UTC)
