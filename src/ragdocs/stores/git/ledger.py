"""The commits of a repository, read in bulk: which there are, and their messages."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ragdocs.errors import UnavailableError
from ragdocs.system import git
from ragdocs.text.formats.journal import LONGEST_MESSAGE
from ragdocs.types import Scan

# Commits that are read; git itself finds the older ones of a long history.
MOST_COMMITS = 50_000
# Messages fetched at once: one at first, then twice as many each time while reading goes on.
MOST_AHEAD = 512
# Bytes of many messages fetched at once, and of one alone.
MESSAGES_BYTES = 64_000_000
MESSAGE_BYTES = LONGEST_MESSAGE * 2
SECONDS = 60.0
LOG_BYTES = 256_000_000
# These override whatever the repository's own configuration says about the form of a log.
LOG_SETTINGS = {"i18n.logOutputEncoding": "UTF-8", "log.showRoot": "true", "log.follow": "false"}
LOG_TERMS = git.Terms(seconds=SECONDS, most=LOG_BYTES, settings=LOG_SETTINGS)
FIELDS = ("%H", "%h", "%at", "%an", "%ae")
LOG = (
    "log",
    "-z",
    "--date-order",
    "--no-merges",
    "--no-renames",
    "--raw",
    f"--format={'%x00'.join(FIELDS)}",
    f"--max-count={MOST_COMMITS}",
    "--stdin",
)
MESSAGES = ("log", "-z", "--no-walk=unsorted", "--stdin", "--format=%H%x00%B")

_DELETED = "D"
_ROW = re.compile(r":\d+ (\d+) \S+ \S+ ([A-Z])")


@dataclass(frozen=True, slots=True)
class Record:
    """One commit without its message.

    `paths` are the files it changed, each with whether the file exists afterwards.
    """

    hash: str
    short: str
    at: datetime
    author: str
    email: str
    paths: tuple[tuple[str, bool], ...]


class Refs(NamedTuple):
    """Where refs point: the branch, the commit at its head, and all commits to read from."""

    branch: str = ""
    head: str = ""
    tips: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Ledger:
    """The refs of a repository at one moment, and every commit they lead to, newest first."""

    refs: Refs = field(default_factory=Refs)
    records: Mapping[str, Record] = field(default_factory=dict)

    @property
    def branch(self) -> str:
        """The branch that is checked out, such as refs/heads/main."""
        return self.refs.branch

    @property
    def head(self) -> str:
        """The commit at the head of the branch, or "" before the first one."""
        return self.refs.head


class CommitLog:
    """Reads the commits that refs lead to, and asks git only for those that are new.

    `read_refs` looks up the refs. With `is_part`, only commits below the root count, because the
    root lies inside a larger repository.
    """

    def __init__(
        self,
        root: Path,
        terms: git.Terms,
        read_refs: Callable[[], Refs],
        *,
        is_part: bool = False,
    ) -> None:
        self.turn = threading.RLock()
        self.ledger = Ledger()
        self._root = root
        self._terms = terms
        self._read_refs = read_refs
        self._is_part = is_part
        self._messages: dict[str, str] = {}
        self._ahead = 1

    def refresh(self) -> Ledger:
        """Return the ledger as refs are now."""
        with self.turn:
            refs = self._read_refs()
            if refs != self.ledger.refs:
                self.ledger = Ledger(refs, self._records_since(self.ledger, refs.tips))
                self._ahead = 1
            return self.ledger

    def extend(self, before: Ledger, record: Record, message: str) -> Ledger:
        """Add a commit of our own on top of a branch, without asking git for it."""
        tips = frozenset({*before.refs.tips, record.hash} - {before.head})
        refs = Refs(before.branch, record.hash, tips)
        self.ledger = Ledger(refs, {record.hash: record, **before.records})
        self._messages = {record.hash: message}
        return self.ledger

    def message(self, name: str) -> str:
        """Return the message of a commit; those that follow in the ledger are fetched with it."""
        with self.turn:
            if name not in self._messages:
                self._fetch(name)
            return self._messages[name]

    def _fetch(self, name: str) -> None:
        names = [name]
        if self._ahead > 1:
            ledger_names = list(self.ledger.records)
            start = ledger_names.index(name)
            names = ledger_names[start : start + self._ahead]
        try:
            self._messages = self._read_messages(names)
            self._ahead = min(2 * self._ahead, MOST_AHEAD)
        except UnavailableError:
            # One of many is too long to be a message; fetched alone, it fails alone.
            self._messages = self._read_messages([name])
            self._ahead = 1

    def _read_messages(self, names: Sequence[str]) -> dict[str, str]:
        limit = MESSAGE_BYTES if len(names) == 1 else MESSAGES_BYTES
        terms = replace(self._terms, most=limit)
        out = git.run(self._root, MESSAGES, stdin=_lines(names), terms=terms)
        parts = out.decode(errors="replace").split("\0")
        messages = {}
        for name, message in zip(parts[::2], parts[1::2], strict=False):
            messages[name] = message.rstrip("\n")
        return messages

    def _records_since(self, before: Ledger, tips: frozenset[str]) -> Mapping[str, Record]:
        """Return all records that these tips lead to; those of an earlier ledger stay."""
        earlier = before.refs.tips
        if earlier - tips and self._is_lost(earlier, tips):
            return self._read_log(tips, ())
        return {**self._read_log(tips, earlier), **before.records}

    def _is_lost(self, before: Iterable[str], after: Iterable[str]) -> bool:
        """Return whether a commit is no longer reached.

        Then history was rewritten, or a branch deleted.
        """
        options = ["rev-list", "--max-count=1", "--stdin"]
        stdin = _lines([*before, *_excluded(after)])
        try:
            return bool(git.run(self._root, options, stdin=stdin, terms=self._terms))
        except UnavailableError:
            return True

    def _read_log(self, tips: Iterable[str], earlier: Iterable[str]) -> dict[str, Record]:
        """Read the records that some tips lead to and earlier ones did not."""
        starts = sorted(tips)
        if not starts:
            return {}
        options = list(LOG)
        paths = []
        if self._is_part:
            options.append("--relative")
            paths.append(".")
        stdin = _lines([*starts, *_excluded(earlier)])
        out = git.run(self._root, options, paths=paths, stdin=stdin, terms=self._terms)
        records = _records(out.decode(errors="replace"))
        return {record.hash: record for record in records}


def select(stamps: Mapping[str, str], paths: Iterable[str] | None) -> Scan:
    """Return all stamps, or those of paths that begin as one of these do."""
    if paths is None:
        return Scan(dict(stamps))
    prefixes = tuple(paths)
    if "" in prefixes:
        return Scan(dict(stamps))
    if all(path in stamps for path in prefixes):
        return Scan({path: stamps[path] for path in prefixes})
    selected = {}
    for path, stamp in stamps.items():
        if path.startswith(prefixes):
            selected[path] = stamp
    return Scan(selected)


def moved_ref(path: str, folder: Path) -> str | None:
    """Return "", which stands for everything, if a change of this file moves refs; else None."""
    if path.endswith(".lock") or not path.startswith(f"{folder}/"):
        return None
    name = path.removeprefix(f"{folder}/")
    if name in {"HEAD", "packed-refs"} or name.startswith("refs/"):
        return ""
    return None


def _lines(words: Iterable[str]) -> bytes:
    return "\n".join(words).encode() + b"\n"


def _excluded(tips: Iterable[str]) -> Iterator[str]:
    """Name commits as git leaves them and their ancestors out."""
    return (f"^{tip}" for tip in tips)


def _records(out: str) -> Iterator[Record]:
    words = iter(out.split("\0"))
    header: list[str] = []
    paths: list[tuple[str, bool]] = []
    for word in words:
        row = None
        if header:
            row = _ROW.fullmatch(word.lstrip("\n"))
        if row:
            path = next(words, "")
            is_deleted = row[2] == _DELETED
            # Links and other repositories are no texts.
            if row[1].startswith("100") or is_deleted:
                paths.append((path, not is_deleted))
            continue
        if header:
            yield _record(header, paths)
        header = [word.lstrip("\n"), *islice(words, len(FIELDS) - 1)]
        paths = []
        if len(header) < len(FIELDS):
            return


def _record(header: Sequence[str], paths: Sequence[tuple[str, bool]]) -> Record:
    name, short, seconds, author, email = header
    return Record(name, short, _moment(seconds), author, email, tuple(paths))


def _moment(seconds: str) -> datetime:
    """Return the time of a commit; one outside the calendar counts as 1970."""
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)
