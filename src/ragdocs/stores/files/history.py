"""What was there before, and what was about to be.

Earlier texts, and the record of a half-made change.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, get_args

from ragdocs.errors import NotFoundError, RagdocsError, StorageError, ValidationError
from ragdocs.system import files as fsio
from ragdocs.types import ChangeSet, Revision, Verb

FOLDER = ".history"
# A year covers every "what did this say last spring"; 50 MB is some ten thousand versions, and
# small beside an index.
KEEP_BYTES = 50_000_000
KEEP_AGE = timedelta(days=365)
# A clock that is a year ahead for one evening may not empty the history.
KEEP_ALWAYS = 100
# Every object takes at least one block on disk, so tiny texts may not fill the log without end.
BLOCK = 4096
# A line about a file that was not there before has no text to keep.
LINE = 256
# What is read of the log, from its end. Pruning keeps it below; a clone or a failed pruning may
# not.
LOG_LIMIT = 50_000_000
VERSION = re.compile(r"[0-9a-f]{16}\Z")
DIGEST = re.compile(r"[0-9a-f]{64}\Z")
VERBS = frozenset(get_args(Verb))


def digest_of(data: bytes) -> str:
    """Name a content."""
    return hashlib.sha256(data).hexdigest()


def version_of(data: bytes) -> str:
    """Name a content as callers see it: short enough to be copied, long enough to be unique."""
    return digest_of(data)[:16]


@dataclass(frozen=True, slots=True)
class Step:
    """One file's part of a change.

    Its bytes before and after (None for no file), and where discarded bytes go.
    """

    path: str
    before: bytes | None
    after: bytes | None
    trash: str = ""


class History:
    """Earlier texts below `<root>/.history`.

    Every writing call is made under the lock of the root.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        # So that the first text kept by a process prunes what others left.
        self._since_pruning = KEEP_BYTES

    def keep(self, steps: Sequence[Step], verb: Verb, at: datetime) -> None:
        """Keep the bytes that a change is about to overwrite or discard.

        And log the change in one line.
        """
        if not steps:
            return
        if verb == "update" and all(step.before is None for step in steps):
            verb = "create"
        elif verb == "update" and all(step.after is None for step in steps):
            verb = "delete"
        log = self._place("log.jsonl")
        if not log.exists():
            self._prepare()
        revisions = []
        for step in steps:
            version = "" if step.before is None else self.store(step.before)[:16]
            after = "" if step.after is None else version_of(step.after)
            revisions.append(Revision(step.path, version, at, verb, len(step.before or b""), after))
            self._since_pruning += revisions[-1].size + BLOCK if version else LINE
        line = json.dumps(_record(ChangeSet(at, verb, tuple(revisions))))
        fsio.append_line(log, line.encode(), mode=0o600)

    def prune(self, now: datetime) -> bool:
        """Drop the oldest texts over the limits, once in a while; tell whether that was done."""
        if self._since_pruning < KEEP_BYTES // 10:
            return False
        # If it fails, it is tried again soon, but not with every change.
        self._since_pruning = KEEP_BYTES // 10 - KEEP_BYTES // 100
        kept: list[ChangeSet] = []
        versions: set[str] = set()
        total = 0
        logged, is_cut = self._log()
        commits = logged[::-1]
        if not commits:
            place = self._place("log.jsonl")
            raise StorageError(
                f"{place} has no line that can be read", "Move it away; the texts beside it stay"
            )
        for commit in commits:
            for one in commit.steps:
                seen = one.version in versions
                # As JSON, one letter of a name may take six bytes.
                total += (
                    max(one.size * (not seen), BLOCK) if one.version else LINE + 6 * len(one.path)
                )
            old = now - commit.at > KEEP_AGE and len(kept) >= KEEP_ALWAYS
            if kept and (total > KEEP_BYTES or old):
                break
            kept.append(commit)
            versions.update(one.version for one in commit.steps)
        if is_cut or len(kept) < len(commits):
            lines = [json.dumps(_record(commit)) + "\n" for commit in reversed(kept)]
            fsio.write_atomic(self._place("log.jsonl"), "".join(lines).encode(), mode=0o600)
        # After the log, so that a line never lacks its text.
        self._drop_objects(versions)
        self._since_pruning = 0
        return True

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
            raise StorageError(
                f"the kept text {digest[:16]} is damaged",
                "An earlier or later version may be whole",
            )
        return data

    def recover(self, version: str) -> bytes:
        """Return the bytes that were kept under a version."""
        if not VERSION.match(version):
            raise ValidationError(
                f"{version[:80]!r} is not a version", "A version is 16 hexadecimal digits"
            )
        folder = self._place(version[:2])
        with contextlib.suppress(OSError):
            for place in folder.iterdir():
                digest = folder.name + place.name
                if digest.startswith(version) and DIGEST.match(digest):
                    return self.load(digest)
        raise NotFoundError(
            f"no text is kept under version {version}", "List the history to see which are"
        )

    def revisions(self, path: str = "") -> list[Revision]:
        """List the texts that were kept, newest first, of one path or all."""
        every = (one for commit in self.commits() for one in commit.steps if one.version)
        return [revision for revision in every if path in {"", revision.path}]

    def commits(self) -> list[ChangeSet]:
        """List what was logged, newest first."""
        return self._log()[0][::-1]

    # --- the record of a half-made change ---

    def promise(self, steps: Sequence[Step]) -> None:
        """Record a change of several files before its first step.

        So that it can be finished or undone.
        """
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
        """Record that the promised change is to be undone.

        A rename, because the disk may be full.
        """
        fsio.rename(self._place("forward.json"), "back.json")

    def promised(self) -> tuple[list[Step], bool] | None:
        """Return the steps of an unfinished change and whether it goes forward.

        None if there is none.
        """
        for name, forward in (("back.json", False), ("forward.json", True)):
            place = self._place(name)
            try:
                # A promise that was cut is no JSON, and put aside below like anything that is not
                # ours.
                data = fsio.read_end(place, LOG_LIMIT)[0]
            except NotFoundError:
                continue
            try:
                return self._steps(data), forward
            except (
                RagdocsError,
                ValueError,
                LookupError,
                TypeError,
                AttributeError,
                RecursionError,
            ):
                # Nothing we wrote looks like this; it may not keep the store from working, nor be
                # lost.
                fsio.rename(place, place.with_suffix(".unreadable").name)
        return None

    def fulfil(self) -> None:
        """Forget the promise, durably."""
        fsio.remove(self._place("back.json"), self._place("forward.json"), missing_ok=True)

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
            if (
                path != record["path"]
                or before is after is None
                or not (trash or ".trash/").startswith(".trash/")
            ):
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
        # Other people's versions are no part of a repository: they would bring back what was
        # deleted.
        ignore = self._place(".gitignore")
        if not ignore.exists():
            fsio.write_atomic(ignore, b"*\n", mode=0o600)

    def _log(self) -> tuple[list[ChangeSet], bool]:
        """Return what the end of the log says, oldest first.

        And whether there is more before it.
        """
        try:
            data, is_cut = fsio.read_end(self._place("log.jsonl"), LOG_LIMIT)
        except NotFoundError:
            return [], False
        lines = data.split(b"\n")
        # The first line of a cut log begins anywhere.
        found = map(_logged, lines[1:] if is_cut else lines)
        return [commit for commit in found if commit is not None], is_cut

    def _drop_objects(self, versions: set[str]) -> None:
        with (
            fsio.explained("read", self._root / FOLDER),
            fsio.Folder(self._root / FOLDER) as history,
        ):
            prefixes = [name for name in history.names() if re.fullmatch("[0-9a-f]{2}", name)]
        for prefix in prefixes:
            place = self._place(prefix)
            with fsio.explained("write", place), fsio.Folder(place) as folder:
                for name in folder.names():
                    digest = prefix + name
                    unknown = DIGEST.match(digest) and digest[:16] not in versions
                    # Under the lock nobody is writing: what is unfinished now will never be
                    # finished.
                    if unknown or name.endswith(fsio.TEMPORARY):
                        folder.unlink(name)


def _logged(line: bytes) -> ChangeSet | None:
    """Return what a line of the log says, or nothing if it is torn or foreign."""
    try:
        commit = _commit(json.loads(line))
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError):
        return None
    versions = {version for one in commit.steps for version in (one.version, one.after)} - {""}
    is_ours = (
        commit.verb in VERBS
        and commit.at.tzinfo
        and commit.steps
        and all(map(VERSION.match, versions))
    )
    return commit if is_ours else None


def _record(commit: ChangeSet) -> dict[str, Any]:
    steps = [
        {"path": one.path, "version": one.version, "size": one.size, "after": one.after}
        for one in commit.steps
    ]
    return {"at": commit.at.isoformat(), "verb": commit.verb, "steps": steps}


def _commit(record: Any) -> ChangeSet:
    at, verb = datetime.fromisoformat(record["at"]), record["verb"]
    steps = (
        Revision(
            str(one["path"]), str(one["version"]), at, verb, int(one["size"]), str(one["after"])
        )
        for one in record["steps"]
    )
    return ChangeSet(at, verb, tuple(steps))
