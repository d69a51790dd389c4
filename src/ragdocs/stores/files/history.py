"""The earlier texts of a file store, and the record of a change that is half made."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, get_args

from ragdocs.errors import NotFoundError, RagdocsError, StorageError, ValidationError
from ragdocs.system import files
from ragdocs.system.patterns import later
from ragdocs.types import ChangeSet, Revision, Verb

FOLDER = ".history"
# A year covers the questions about last spring; 50 MB is some ten thousand versions, and small
# beside an index.
KEEP_BYTES = 50_000_000
KEEP_AGE = timedelta(days=365)
# A clock that is a year ahead for one evening may not empty the history.
KEEP_ALWAYS = 100
# Every object takes at least one block on disk, so tiny texts may not fill the log without end.
BLOCK = 4096
# A line about a file that was not there before has no object; as JSON, one character of its name
# may take six bytes.
LINE = 256
CHARACTER = 6
# Bytes that are read of the log, from its end. Pruning keeps it below; a clone or a failed pruning
# may not.
LOG_LIMIT = 50_000_000
VERSION = later(r"[0-9a-f]{16}\Z")
DIGEST = later(r"[0-9a-f]{64}\Z")
PREFIX = later(r"[0-9a-f]{2}\Z")
VERBS = frozenset(get_args(Verb))
LOG = "log.jsonl"
LONGEST_AUTHOR = 80
# The record of a change of several files that goes on, or that is being undone.
FORWARD = "forward.json"
BACK = "back.json"
TRASH = ".trash"
# What reading a record raises that we did not write.
FOREIGN = (
    RagdocsError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
)


def digest_of(data: bytes) -> str:
    """Return the name of a content."""
    return hashlib.sha256(data).hexdigest()


def version_of(data: bytes) -> str:
    """Return the name of a content as callers see it: short enough to copy, and still unique."""
    return digest_of(data)[:16]


@dataclass(frozen=True, slots=True)
class Step:
    """One file in a change set.

    Its bytes before and after (None for no file), and the path in the trash if it is discarded.
    """

    path: str
    before: bytes | None
    after: bytes | None
    trash: str = ""
    # The digest of the bytes after, where only that is known.
    made: str = ""

    def is_done(self, current: bytes | None) -> bool:
        """Tell whether a file is as it should be after the step."""
        if self.made:
            return current is not None and digest_of(current) == self.made
        return current == self.after


class History:
    """Earlier texts below `<root>/.history`.

    Every writing call is made under the lock of the root.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        # So that the first change of a process prunes what others left.
        self._since_pruning = KEEP_BYTES

    def keep(self, steps: Sequence[Step], verb: Verb, at: datetime, author: str = "") -> None:
        """Keep the bytes that a change set is about to replace, and log it in one line."""
        if not steps:
            return
        if verb == "update":
            verb = exact_verb(steps)
        log = self._path(LOG)
        if not log.exists():
            self._prepare()
        revisions = []
        for step in steps:
            version = ""
            if step.before is not None:
                version = self.store(step.before)[:16]
            revision = _revision(step, version, verb, at)
            self._since_pruning += revision.size + BLOCK if version else LINE
            revisions.append(revision)
        line = _encoded(ChangeSet(at, verb, tuple(revisions), author[:LONGEST_AUTHOR]))
        files.append_line(log, line, mode=0o600)

    def adopt(self, revisions: Sequence[tuple[Revision, str]], texts: Mapping[str, str]) -> None:
        """Keep texts as if they had been replaced here, each by the next one of its path.

        The last one of a path by what `texts` has for it. What is in the history stays once.
        """
        self._prepare()
        present = {(existing.path, existing.version, existing.at) for existing in self.revisions()}
        following = {path: version_of(text.encode()) for path, text in texts.items()}
        lines = []
        for revision, text in reversed(revisions):
            data = text.encode()
            version = self.store(data)[:16]
            after = following.get(revision.path, "")
            following[revision.path] = version
            if (revision.path, version, revision.at) in present:
                continue
            adopted = replace(revision, version=version, size=len(data), after=after)
            self._since_pruning += adopted.size + BLOCK
            lines.append(_encoded(ChangeSet(adopted.at, adopted.verb, (adopted,), adopted.author)))
        for line in reversed(lines):
            files.append_line(self._path(LOG), line, mode=0o600)

    def prune(self, now: datetime) -> bool:
        """Drop the oldest texts over the limits, once in a while; return whether it was done."""
        if self._since_pruning < KEEP_BYTES // 10:
            return False
        # If it fails, it is tried again soon, but not with every change.
        self._since_pruning = KEEP_BYTES // 10 - KEEP_BYTES // 100
        logged, is_cut = self._log()
        if not logged:
            raise StorageError(
                f"{self._path(LOG)} has no line that can be read",
                "Move it away; the texts beside it stay",
            )
        newest = _newest_within_limits(logged, now)
        if is_cut or len(newest) < len(logged):
            lines = [_encoded(change_set) + b"\n" for change_set in newest]
            files.write_atomic(self._path(LOG), b"".join(lines), mode=0o600)
        # After the log, so that a line never lacks its text.
        self._drop_objects(_versions(newest))
        self._since_pruning = 0
        return True

    def store(self, data: bytes) -> str:
        """Keep bytes under their digest and return it."""
        digest = digest_of(data)
        path = self._object(digest)
        with contextlib.suppress(RagdocsError):
            if files.read_bytes(path) == data:
                return digest
        self._prepare()
        files.make_directories(path.parent, 0o700)
        files.write_atomic(path, data, mode=0o600)
        return digest

    def load(self, digest: str) -> bytes:
        """Return the bytes with this digest, checked."""
        data = files.read_bytes(self._object(digest))
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
        folder = self._path(version[:2])
        with contextlib.suppress(OSError):
            for path in folder.iterdir():
                digest = folder.name + path.name
                if digest.startswith(version) and DIGEST.match(digest):
                    return self.load(digest)
        raise NotFoundError(
            f"no text is kept under version {version}", "List the history to see which are"
        )

    def revisions(self, path: str = "") -> list[Revision]:
        """List the revisions that have a text, newest first, of one path or all."""
        revisions = []
        for change_set in self.commits():
            for revision in change_set.steps:
                if revision.version and path in {"", revision.path}:
                    revisions.append(revision)
        return revisions

    def commits(self) -> list[ChangeSet]:
        """List the change sets in the log, newest first."""
        change_sets, _ = self._log()
        change_sets.reverse()
        return change_sets

    # --- the record of a half-made change ---

    def promise(self, steps: Sequence[Step]) -> None:
        """Record a change of several files before its first step, so that it can be completed."""
        self._prepare()
        if all(step.before is None for step in steps):
            self._promise_new(steps)
            return
        records = []
        for step in steps:
            record = {
                "path": step.path,
                "before": self._stored(step.before),
                "after": self._stored(step.after),
                "trash": step.trash,
            }
            records.append(record)
        files.write_atomic(self._path(FORWARD), json.dumps(records).encode(), mode=0o600)

    def _promise_new(self, steps: Sequence[Step]) -> None:
        """Record that files are made: an unfinished change is undone, for which names are enough.

        Keeping the texts of an import of thousands would write each of them twice.
        """
        records = []
        for step in steps:
            if step.after is not None:
                records.append({"path": step.path, "made": digest_of(step.after)})
        files.write_atomic(self._path(BACK), json.dumps(records).encode(), mode=0o600)

    def turn_back(self) -> None:
        """Record that the promised change is to be undone.

        This is a rename, because the disk may be full.
        """
        files.rename(self._path(FORWARD), BACK)

    def promised(self) -> tuple[list[Step], bool] | None:
        """Return the steps of an unfinished change and whether it goes forward, if there is one."""
        for name, is_forward in ((BACK, False), (FORWARD, True)):
            path = self._path(name)
            try:
                # A record that was cut is no JSON, and put aside below like anything foreign.
                data = files.read_end(path, LOG_LIMIT)[0]
            except NotFoundError:
                continue
            try:
                return self._steps(data), is_forward
            except FOREIGN:
                # It must not keep the store from working, nor be lost.
                files.rename(path, path.with_suffix(".unreadable").name)
        return None

    def fulfil(self) -> None:
        """Remove the record of the promised change, durably."""
        files.remove(self._path(BACK), self._path(FORWARD), missing_ok=True)

    def pending(self) -> bool:
        """Return whether there is an unfinished change, without a lock."""
        return any((self._root / FOLDER / name).exists() for name in (BACK, FORWARD))

    def _stored(self, data: bytes | None) -> str | None:
        if data is None:
            return None
        return self.store(data)

    def _steps(self, data: bytes) -> list[Step]:
        steps = []
        for record in json.loads(data):
            # It may have come with a clone: names are checked as if an agent had given them.
            path = files.relative_name(record["path"])
            if "made" in record:
                steps.append(_made(path, record))
                continue
            trash = record["trash"]
            if trash:
                files.relative_name(trash.removeprefix(f"{TRASH}/"))
                if not trash.startswith(f"{TRASH}/"):
                    raise ValueError(trash)
            before = self._loaded(record["before"])
            after = self._loaded(record["after"])
            if path != record["path"] or before is after is None:
                raise ValueError(path)
            steps.append(Step(path, before, after, trash))
        return steps

    def _loaded(self, digest: Any) -> bytes | None:
        if digest is None:
            return None
        if not DIGEST.match(digest):
            raise ValueError(digest)
        return self.load(digest)

    # --- files ---

    def _path(self, name: str) -> Path:
        # A link here could have come with a clone, and pruning behind it would remove other files.
        return files.contained(self._root, f"{FOLDER}/{name}", follow=False)

    def _object(self, digest: str) -> Path:
        return self._path(f"{digest[:2]}/{digest[2:]}")

    def _prepare(self) -> None:
        files.make_directories(files.contained(self._root, FOLDER, follow=False), 0o700)
        # Other people's versions are no part of a repository: they would bring back what was
        # deleted.
        ignore = self._path(".gitignore")
        if not ignore.exists():
            files.write_atomic(ignore, b"*\n", mode=0o600)

    def _log(self) -> tuple[list[ChangeSet], bool]:
        """Return the change sets at the end of the log, oldest first, and whether it has more."""
        try:
            data, is_cut = files.read_end(self._path(LOG), LOG_LIMIT)
        except NotFoundError:
            return [], False
        lines = data.split(b"\n")
        if is_cut:
            # The first line of a cut log begins anywhere.
            del lines[0]
        change_sets = []
        for line in lines:
            change_set = _logged(line)
            if change_set is not None:
                change_sets.append(change_set)
        return change_sets, is_cut

    def _drop_objects(self, versions: set[str]) -> None:
        """Remove all objects but those of these versions."""
        history = self._root / FOLDER
        with files.explained("read", history), files.Folder(history) as folder:
            prefixes = [name for name in folder.names() if PREFIX.match(name)]
        for prefix in prefixes:
            path = self._path(prefix)
            with files.explained("write", path), files.Folder(path) as folder:
                for name in folder.names():
                    digest = prefix + name
                    is_unused = DIGEST.match(digest) and digest[:16] not in versions
                    # Under the lock nobody is writing: an unfinished file stays unfinished.
                    if is_unused or name.endswith(files.TEMPORARY):
                        folder.unlink(name)


def _made(path: str, record: dict[str, Any]) -> Step:
    """Return the step of a file that was being made, whose text is known by its digest only."""
    made = record["made"]
    if path != record["path"] or not DIGEST.match(made):
        raise ValueError(path)
    return Step(path, None, None, made=made)


def exact_verb(steps: Sequence[Step]) -> Verb:
    """Return the verb for an update that only creates or only removes files."""
    if all(step.before is None for step in steps):
        return "create"
    if all(step.after is None for step in steps):
        return "delete"
    return "update"


def _revision(step: Step, version: str, verb: Verb, at: datetime) -> Revision:
    after = ""
    if step.after is not None:
        after = version_of(step.after)
    return Revision(step.path, version, at, verb, len(step.before or b""), after)


def _newest_within_limits(logged: Sequence[ChangeSet], now: datetime) -> Sequence[ChangeSet]:
    """Return the end of a log, as far as it is young enough and takes little enough room."""
    versions: set[str] = set()
    count = 0
    total = 0
    for change_set in reversed(logged):
        for revision in change_set.steps:
            total += _room(revision, revision.version in versions)
        is_old = now - change_set.at > KEEP_AGE and count >= KEEP_ALWAYS
        if count and (total > KEEP_BYTES or is_old):
            break
        count += 1
        versions |= _versions([change_set])
    return logged[len(logged) - count :]


def _room(revision: Revision, is_known: bool) -> int:
    """Estimate the bytes that a revision takes; a text that several share is counted once."""
    if not revision.version:
        return LINE + CHARACTER * len(revision.path)
    if is_known:
        return BLOCK
    return max(revision.size, BLOCK)


def _versions(change_sets: Sequence[ChangeSet]) -> set[str]:
    """Return the versions that were replaced by some change sets."""
    versions: set[str] = set()
    for change_set in change_sets:
        versions.update(revision.version for revision in change_set.steps)
    return versions


def _logged(line: bytes) -> ChangeSet | None:
    """Return the change set of a line of the log, or None if it is torn or foreign."""
    try:
        change_set = _decoded(json.loads(line))
    except FOREIGN:
        return None
    if not change_set.steps or change_set.at.tzinfo is None:
        return None
    for revision in change_set.steps:
        for version in (revision.version, revision.after):
            if version and not VERSION.match(version):
                return None
    return change_set


def _encoded(change_set: ChangeSet) -> bytes:
    steps = []
    for revision in change_set.steps:
        step = {
            "path": revision.path,
            "version": revision.version,
            "size": revision.size,
            "after": revision.after,
        }
        steps.append(step)
    record = {"at": change_set.at.isoformat(), "verb": change_set.verb, "steps": steps}
    if change_set.author:
        record["author"] = change_set.author
    return json.dumps(record).encode()


def _decoded(record: Any) -> ChangeSet:
    at = datetime.fromisoformat(record["at"])
    verb = record["verb"]
    if verb not in VERBS:
        raise ValueError(verb)
    # Lines of earlier versions have none, and a foreign one may have anything.
    author = str(record.get("author", ""))[:LONGEST_AUTHOR]
    revisions = []
    for step in record["steps"]:
        revision = Revision(
            path=str(step["path"]),
            version=str(step["version"]),
            at=at,
            verb=verb,
            size=int(step["size"]),
            after=str(step["after"]),
            author=author,
        )
        revisions.append(revision)
    return ChangeSet(at, verb, tuple(revisions), author)
