"""Texts of a folder into a team database and out of it, byte for byte."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from ragdocs.errors import AlreadyExistsError, ConflictError, RagdocsError, ValidationError
from ragdocs.lanes import Lane
from ragdocs.stores.changes import Exact
from ragdocs.stores.files.history import version_of
from ragdocs.stores.files.spelling import Spelling, composed, folded
from ragdocs.stores.files.store import SIZE_LIMIT, FileStore
from ragdocs.stores.postgres.texts import RowStore
from ragdocs.system import files
from ragdocs.system.locks import lock
from ragdocs.types import Expect

# Texts of one change set: an import that is interrupted goes on after the last of them.
BATCH = 100
BATCH_BYTES = 4_000_000
DIFFERS = "the two texts differ; neither was changed"
# Says of a text why it should not come in, or nothing.
Refusal = Callable[[str], str]

# Called with the number of texts that were looked at, and of all.
Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Transfer:
    """What came of an import or export: nothing that exists is ever overwritten.

    `conflicts` are texts that differ on both sides, `skipped` those that cannot be copied, each
    with the reason.
    """

    copied: list[str] = field(default_factory=list)
    unchanged: int = 0
    conflicts: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


def _silently(_looked_at: int, _all: int) -> None:
    pass


def _never(_text: str) -> str:
    return ""


def import_texts(
    store: RowStore,
    folder: Path,
    lane: Lane,
    progress: Progress = _silently,
    refusal: Refusal = _never,
) -> Transfer:
    """Bring the texts of a folder into a store, without the hidden ones and the trash.

    Each comes in byte for byte or, if `refusal` has a reason against it, not at all.
    """
    scan = FileStore(folder, lane, trusted_root=True).scan()
    transfer = Transfer(skipped=dict(scan.unreadable))
    root = Path(os.path.realpath(folder))
    existing = _Existing(store.versions())
    changes = _new_texts(root, scan.stamps, existing, transfer, progress, refusal)
    for batch in _batches(changes):
        _bring_in(store, batch, transfer)
    return transfer


def export_texts(store: RowStore, folder: Path, progress: Progress = _silently) -> Transfer:
    """Write every text of a store as a file, without touching files that are there already."""
    files.make_directories(folder)
    export = _Export(store, Path(os.path.realpath(folder)))
    versions = store.versions()
    for number, (path, version) in enumerate(versions.items(), start=1):
        export.write(path, version)
        progress(number, len(versions))
    return export.transfer


class _Existing:
    """The versions of a store, found in any case or Unicode form of their path."""

    def __init__(self, versions: Mapping[str, str]) -> None:
        self._versions = versions
        self._paths = {folded(path): path for path in versions}

    def conflict(self, path: str, version: str) -> str | None:
        """Say why a text cannot come in: "" if it is there already, None if it can."""
        existing = self._paths.get(folded(path))
        if existing is None:
            return None
        return _conflict(path, version, existing, self._versions[existing])


def _conflict(path: str, version: str, existing: str, existing_version: str) -> str:
    if composed(existing) != composed(path):
        return f"it differs only in upper and lower case from {existing}"
    if existing_version != version:
        return DIFFERS
    return ""


def _new_texts(
    root: Path,
    paths: Iterable[str],
    existing: _Existing,
    transfer: Transfer,
    progress: Progress,
    refusal: Refusal,
) -> Iterator[Exact]:
    """Yield the texts of a folder that the store does not have."""
    names = sorted(paths)
    for number, path in enumerate(names, start=1):
        try:
            data, status = files.read_file(files.contained(root, path), SIZE_LIMIT)
        except RagdocsError as error:
            transfer.skipped[path] = error.message
            continue
        reason = existing.conflict(path, version_of(data))
        refused = ""
        if reason is None:
            refused = refusal(path) or refusal(data.decode(errors="replace"))
        if refused:
            transfer.skipped[path] = refused
        elif reason is None:
            yield Exact(path, data, Expect.ABSENT, _modified(status))
        elif reason:
            transfer.conflicts[path] = reason
        else:
            transfer.unchanged += 1
        progress(number, len(names))


def _modified(status: os.stat_result) -> datetime:
    try:
        return datetime.fromtimestamp(status.st_mtime, UTC)
    except (OverflowError, ValueError, OSError):
        # A time that no calendar has.
        return datetime.now(UTC)


def _batches(changes: Iterable[Exact]) -> Iterator[list[Exact]]:
    batch: list[Exact] = []
    size = 0
    for change in changes:
        batch.append(change)
        size += len(change.data)
        if len(batch) >= BATCH or size >= BATCH_BYTES:
            yield batch
            batch = []
            size = 0
    if batch:
        yield batch


def _bring_in(store: RowStore, batch: Sequence[Exact], transfer: Transfer) -> None:
    """Bring in texts at once, or one by one if one of them cannot come in."""
    with contextlib.suppress(AlreadyExistsError, ConflictError, ValidationError):
        transfer.copied += [written.path for written in store.commit_exactly(batch)]
        return
    for change in batch:
        try:
            transfer.copied += [written.path for written in store.commit_exactly([change])]
        except (AlreadyExistsError, ConflictError) as error:
            transfer.conflicts[change.path] = error.message
        except ValidationError as error:
            transfer.skipped[change.path] = error.message


class _Export:
    """Writes texts of a store into a folder, each as a file that is not there yet."""

    def __init__(self, store: RowStore, root: Path) -> None:
        self.transfer = Transfer()
        self._store = store
        self._root = root
        self._spelling = Spelling(str(root))

    def write(self, path: str, version: str) -> None:
        """Write one text, or note why not."""
        try:
            # Against a server that serves this folder.
            with lock(self._root):
                reason = self._conflict(path, version)
                if reason is None:
                    self._create(path)
        except RagdocsError as error:
            self.transfer.skipped[path] = error.message
            return
        if reason is None:
            self.transfer.copied.append(path)
        elif reason:
            self.transfer.conflicts[path] = reason
        else:
            self.transfer.unchanged += 1

    def _conflict(self, path: str, version: str) -> str | None:
        """Say why a text cannot be written: "" if it is there already, None if it can."""
        spelled = self._spelling.find(path)
        target = files.contained(self._root, spelled, follow=False)
        if os.path.lexists(target):
            current = files.read_bytes(target, SIZE_LIMIT)
            return _conflict(path, version, spelled, version_of(current))
        if composed(spelled) != composed(path):
            return f"it differs only in upper and lower case from {spelled}"
        return None

    def _create(self, path: str) -> None:
        data, modified_at = self._store.read_exactly(path)
        target = self._root / self._spelling.find(path)
        files.make_directories(target.parent)
        files.write_atomic(target, data)
        moment = modified_at.timestamp()
        with files.explained("write", target):
            os.utime(target, (moment, moment))
