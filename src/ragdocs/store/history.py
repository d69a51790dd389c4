"""What was there before, and what was about to be: earlier texts, and the record of a half-made change."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, get_args

from ragdocs import fsio
from ragdocs.errors import NotFoundError, RagdocsError, StorageError, ValidationError
from ragdocs.types import Revision

FOLDER = ".history"
# A year covers every "what did this say last spring"; 50 MB is some ten thousand versions, and small beside an index.
KEEP_BYTES = 50_000_000
KEEP_AGE = timedelta(days=365)
# A clock that is a year ahead for one evening may not empty the history.
KEEP_ALWAYS = 100
# Every object takes at least one block on disk, so tiny texts may not fill the log without end.
BLOCK = 4096
LOG_LIMIT = 50_000_000
VERSION = re.compile(r"[0-9a-f]{16}\Z")
DIGEST = re.compile(r"[0-9a-f]{64}\Z")
Verb = Literal["update", "delete", "merge", "restore"]
VERBS = frozenset(get_args(Verb))


def digest_of(data: bytes) -> str:
    """Name a content."""
    return hashlib.sha256(data).hexdigest()


def version_of(data: bytes) -> str:
    """Name a content as callers see it: short enough to be copied, long enough to be unique."""
    return digest_of(data)[:16]


@dataclass(frozen=True, slots=True)
class Step:
    """One file's part of a change: its bytes before and after (None for no file), and where discarded bytes go."""

    path: str
    before: bytes | None
    after: bytes | None
    trash: str = ""


class History:
    """Earlier texts below `<root>/.history`; every writing call is made under the lock of the root."""

    def __init__(self, root: Path) -> None:
        self._root = root
        # So that the first text kept by a process prunes what others left.
        self._since_pruning = KEEP_BYTES

    def keep(self, step: Step, verb: Verb, at: datetime) -> None:
        """Keep the bytes that a step is about to overwrite or discard."""
        assert step.before is not None, step.path
        digest = self.store(step.before)
        revision = Revision(step.path, digest[:16], at, verb, len(step.before))
        fsio.append_line(self._place("log.jsonl"), json.dumps(_record(revision)).encode(), mode=0o600)
        self._since_pruning += len(step.before) + BLOCK

    def prune(self, now: datetime) -> None:
        """Drop the oldest texts over the limits, once in a while."""
        if self._since_pruning < KEEP_BYTES // 10:
            return
        self._since_pruning = 0
        kept: list[Revision] = []
        versions: set[str] = set()
        total = 0
        revisions = self.revisions()
        for revision in revisions:
            total += BLOCK if revision.version in versions else max(revision.size, BLOCK)
            old = now - revision.at > KEEP_AGE and len(kept) >= KEEP_ALWAYS
            if kept and (total > KEEP_BYTES or old):
                break
            kept.append(revision)
            versions.add(revision.version)
        if len(kept) < len(revisions):
            lines = [json.dumps(_record(revision)) + "\n" for revision in reversed(kept)]
            fsio.write_atomic(self._place("log.jsonl"), "".join(lines).encode(), mode=0o600)
        # After the log, so that a line never lacks its text.
        self._drop_objects(versions)

    def store(self, data: bytes) -> str:
        """Keep bytes under their digest and return it."""
        digest = digest_of(data)
        place = self._object(digest)
        with contextlib.suppress(RagdocsError):
            if fsio.read_bytes(place) == data:
                return digest
        self._prepare()
        fsio.make_directories(place.parent, 0o700)
        fsio.write_atomic(place, data, mode=0o600)
        return digest

    def load(self, digest: str) -> bytes:
        """Return the bytes with this digest, checked."""
        data = fsio.read_bytes(self._object(digest))
        if digest_of(data) != digest:
            raise StorageError(f"the kept text {digest[:16]} is damaged", "An earlier or later version may be whole")
        return data

    def recover(self, version: str) -> bytes:
        """Return the bytes that were kept under a version."""
        if not VERSION.match(version):
            raise ValidationError(f"{version[:80]!r} is not a version", "A version is 16 hexadecimal digits")
        folder = self._place(version[:2])
        with contextlib.suppress(OSError):
            for place in folder.iterdir():
                digest = folder.name + place.name
                if digest.startswith(version) and DIGEST.match(digest):
                    return self.load(digest)
        raise NotFoundError(f"no text is kept under version {version}", "List the history to see which are")

    def revisions(self, path: str = "") -> list[Revision]:
        """List what was kept, newest first, for one path or all."""
        return [revision for revision in reversed(list(self._log())) if path in {"", revision.path}]

    # --- the record of a half-made change ---

    def promise(self, steps: Sequence[Step]) -> None:
        """Record a change of several files before its first step, so that it can be finished or undone."""
        self._prepare()
        record = [
            {
                "path": step.path,
                "before": None if step.before is None else self.store(step.before),
                "after": None if step.after is None else self.store(step.after),
                "trash": step.trash,
            }
            for step in steps
        ]
        fsio.write_atomic(self._place("forward.json"), json.dumps(record).encode(), mode=0o600)

    def turn_back(self) -> None:
        """Record that the promised change is to be undone; a rename, because the disk may be full."""
        with fsio.explained("write", self._place("back.json")):
            self._place("forward.json").replace(self._place("back.json"))
            fsio.sync_directory(self._root / FOLDER)

    def promised(self) -> tuple[list[Step], bool] | None:
        """Return the steps of an unfinished change and whether it goes forward; None if there is none."""
        for name, forward in (("back.json", False), ("forward.json", True)):
            place = self._place(name)
            try:
                data = fsio.read_bytes(place)
            except NotFoundError:
                continue
            try:
                return self._steps(data), forward
            except (RagdocsError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
                # Nothing we wrote looks like this; it may not keep the store from working, nor be lost.
                with fsio.explained("write", place):
                    place.replace(place.with_suffix(".unreadable"))
        return None

    def fulfil(self) -> None:
        """Forget the promise, durably."""
        with fsio.explained("write", self._root):
            for name in ("back.json", "forward.json"):
                self._place(name).unlink(missing_ok=True)
            fsio.sync_directory(self._root / FOLDER)

    def pending(self) -> bool:
        """Tell whether there is an unfinished change, without a lock."""
        return any((self._root / FOLDER / name).exists() for name in ("back.json", "forward.json"))

    def _steps(self, data: bytes) -> list[Step]:
        steps = []
        for record in json.loads(data):
            # It may have come with a clone: names are checked as if an agent had given them.
            path = fsio.relative_name(record["path"])
            trash = record["trash"]
            if trash:
                fsio.relative_name(trash.removeprefix(".trash/"))
            before, after = (self._named(record[side]) for side in ("before", "after"))
            if path != record["path"] or (after is None and not trash.startswith(".trash/")):
                raise ValueError(path)
            steps.append(Step(path, before, after, trash))
        return steps

    def _named(self, digest: Any) -> bytes | None:
        if digest is None:
            return None
        if not DIGEST.match(digest):
            raise ValueError(digest)
        return self.load(digest)

    # --- files ---

    def _place(self, name: str) -> Path:
        # A link here could have come with a clone, and pruning behind it would remove other files.
        return fsio.contained(self._root, f"{FOLDER}/{name}", follow=False)

    def _object(self, digest: str) -> Path:
        return self._place(f"{digest[:2]}/{digest[2:]}")

    def _prepare(self) -> None:
        fsio.make_directories(fsio.contained(self._root, FOLDER, follow=False), 0o700)
        # Other people's versions are no part of a repository: they would bring back what was deleted.
        ignore = self._place(".gitignore")
        if not ignore.exists():
            fsio.write_atomic(ignore, b"*\n", mode=0o600)

    def _log(self) -> Iterator[Revision]:
        try:
            data = fsio.read_bytes(self._place("log.jsonl"), LOG_LIMIT)
        except NotFoundError:
            return
        for line in data.splitlines():
            with contextlib.suppress(
                ValueError, LookupError, TypeError, OverflowError, RecursionError
            ):  # torn or foreign
                record = json.loads(line)
                revision = Revision(
                    path=str(record["path"]),
                    version=str(record["version"]),
                    at=datetime.fromisoformat(record["at"]),
                    verb=record["verb"],
                    size=int(record["size"]),
                )
                if VERSION.match(revision.version) and revision.verb in VERBS and revision.at.tzinfo:
                    yield revision

    def _drop_objects(self, versions: set[str]) -> None:
        with fsio.explained("read", self._root / FOLDER):
            folders = [folder for folder in (self._root / FOLDER).iterdir() if re.fullmatch("[0-9a-f]{2}", folder.name)]
            for folder in folders:
                for place in self._place(folder.name).iterdir():
                    digest = folder.name + place.name
                    unknown = DIGEST.match(digest) and digest[:16] not in versions
                    # Under the lock nobody is writing: what is unfinished now will never be finished.
                    if unknown or place.name.endswith(fsio.TEMPORARY):
                        place.unlink()


def _record(revision: Revision) -> dict[str, Any]:
    return {**dataclasses.asdict(revision), "at": revision.at.isoformat()}
