"""Commits as texts: the messages of a git repository, read in bulk and never changed."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from ragdocs.errors import NotFoundError, ReadOnlyError, UnavailableError
from ragdocs.system import git, repository
from ragdocs.text.formats.journal import LONGEST_MESSAGE
from ragdocs.types import Change, Commit, Revision, Scan, Source, Written

# Commits that are read; an older one of a long history is found by git itself.
MOST_COMMITS = 50_000
# Messages fetched in one step: the first time one, then twice as many each time while reading goes
# on.
MOST_AHEAD = 512
# Paths of one commit; one that touches more is a move or an import, and says nothing about any of
# them.
MOST_PATHS = 100
SECONDS = 60.0
BYTES = 256_000_000
# Whatever the repository's own configuration says about how a log looks.
LOG_SETTINGS = {"i18n.logOutputEncoding": "UTF-8", "log.showRoot": "true", "log.follow": "false"}
FIELDS = ("%H", "%h", "%at", "%an", "%ae")
LOG = (
    "log",
    "-z",
    "--date-order",
    "--no-merges",
    "--no-renames",
    "--raw",
    f"--format={'%x00'.join(FIELDS)}",
)

_DELETED = "D"
_ROW = re.compile(r":\d+ (\d+) \S+ \S+ ([A-Z])")
_ENTRY = re.compile(r"(?:(?P<section>.+)#)?(?P<hash>[0-9a-f]{40,64})\.md")


@dataclass(frozen=True, slots=True)
class Record:
    """One commit without its message.

    `paths` are the files it changed and whether each is there since.
    """

    hash: str
    short: str
    at: datetime
    author: str
    email: str
    paths: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class Ledger:
    """What is known of a repository at one moment.

    Where its refs point, and every commit they lead to.
    """

    branch: str = ""
    head: str = ""
    tips: frozenset[str] = frozenset()
    records: Mapping[str, Record] = field(default_factory=dict)


class CommitStore:
    """The commits that the head of a project's repository leads to.

    Each is one text, named by its hash.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.terms = git.Terms(seconds=SECONDS, most=BYTES, settings=LOG_SETTINGS)
        self._ledger = Ledger()
        self._stamps: dict[str, str] = {}
        self._messages: dict[str, str] = {}
        self._ahead = 1
        self._turn = threading.RLock()
        self._shared: Path | None = None
        place = git.top(root)
        # Below the top of a repository, only what happened there counts.
        self._inside = "" if place is None or place == root else root.relative_to(place).as_posix()

    # --- looking ---

    def scan(self, paths: Iterable[str] | None = None) -> Scan:
        """List all commits, or those whose names begin as these do.

        One that cannot be looked at loses nothing.
        """
        try:
            with self._turn:
                self.refresh()
                stamps = self._stamps
        except UnavailableError as error:
            git.warn(str(error))
            return Scan({}, {"": str(error)})
        if paths is None or "" in (wanted := tuple(paths)):
            return Scan(dict(stamps))
        if all(path in stamps for path in wanted):
            return Scan({path: stamps[path] for path in wanted})
        return Scan({path: stamp for path, stamp in stamps.items() if path.startswith(wanted)})

    def read(self, path: str) -> Source:
        """Read one commit as a text."""
        named = _ENTRY.fullmatch(path)
        record = self._ledger.records.get(named["hash"]) if named else None
        if named is None or record is None or path not in self._stamps:
            raise NotFoundError(f"there is no commit {path[:200]!r}")
        message = self.message(record.hash)
        return Source(
            path=path,
            text=self.text(record, message),
            version=record.hash,
            stamp=record.hash,
            size=len(message.encode()),
            modified_at=record.at,
            card=self.card(record, message),
        )

    def locate(self, path: str) -> str:
        """Tell where a commit is: in its repository, under its name."""
        return f"{self.root} {path.removesuffix('.md')}" if path else str(self.root)

    def watched(self) -> list[tuple[Path, bool]]:
        """List the folders where refs are moved, and whether everything below counts."""
        # Asked for every second while somebody waits for events: git tells it once.
        self._shared = self._shared or git.common_dir(self.root)
        folders = [(self._shared, False), (self._shared / "refs", True)] if self._shared else []
        return [(folder, deep) for folder, deep in folders if folder.is_dir()]

    def relative(self, path: str) -> str | None:
        """Say that a moved ref may concern everything, and anything else nothing."""
        return None if self._shared is None else moved_ref(path, self._shared)

    # --- what this store does not do ---

    def commit(self, changes: Sequence[Change], verb: str = "update") -> list[Written]:
        """Refuse: commits are made where the work is done."""
        raise ReadOnlyError(
            f"{len(changes)} changes cannot be written: commits are only read ({verb})"
        )

    def history(self, path: str = "") -> list[Revision]:
        """List nothing: a commit has no earlier text."""
        del path
        return []

    def recover(self, version: str) -> str:
        """Refuse: a commit has no earlier text."""
        raise NotFoundError(f"there is no text {version[:80]!r}")

    def commits(self) -> list[Commit]:
        """List nothing: what was committed is the texts themselves."""
        return []

    # --- texts ---

    def names(self, record: Record) -> Iterator[str]:
        """Name the texts that a commit is."""
        yield f"{record.hash}.md"

    def text(self, record: Record, message: str) -> str:
        """Return a message with the paths that it is about, to be found by them too."""
        paths = "\n".join(f"- {path}" for path, _ in record.paths[:MOST_PATHS])
        return f"{message.strip()}\n\nChanged:\n\n{paths}" if paths else message

    def card(self, record: Record, message: str) -> dict[str, object]:
        """Return what is known of a commit beside its message.

        Folders count as touched with their files.
        """
        files = [path for path, _ in record.paths[:MOST_PATHS]]
        folders = {folder for path in files for folder in _folders(path)}
        return {
            "title": message.strip().partition("\n")[0],
            "created_at": record.at.isoformat(),
            "source": record.author,
            "tags": [record.author, record.email],
            "git": {"commit": record.short, "files_changed": [*files, *sorted(folders)]},
        }

    def message(self, name: str) -> str:
        """Return the message of a commit.

        Those that follow it in the ledger are fetched with it.
        """
        with self._turn:
            if name not in self._messages:
                self._fetch(name)
            return self._messages[name]

    def _fetch(self, name: str) -> None:
        names = list(self._ledger.records)
        start = names.index(name) if self._ahead > 1 else 0
        wanted = names[start : start + self._ahead] if self._ahead > 1 else [name]
        try:
            self._messages = self._read_messages(wanted)
            self._ahead = min(2 * self._ahead, MOST_AHEAD)
        except UnavailableError:
            # One of many is too long to be a message; alone it is told apart.
            self._messages, self._ahead = self._read_messages([name]), 1

    def _read_messages(self, names: Sequence[str]) -> dict[str, str]:
        most = LONGEST_MESSAGE * 2 if len(names) == 1 else 64_000_000
        terms = git.Terms(seconds=SECONDS, most=most, settings=LOG_SETTINGS, here=self.terms.here)
        options = ["log", "-z", "--no-walk=unsorted", "--stdin", "--format=%H%x00%B"]
        out = git.run(self.root, options, stdin="\n".join(names).encode() + b"\n", terms=terms)
        parts = out.decode(errors="replace").split("\0")
        return {
            name: message.rstrip("\n")
            for name, message in zip(parts[::2], parts[1::2], strict=False)
        }

    # --- the ledger ---

    def refresh(self) -> Ledger:
        """Return the ledger as refs are now.

        Only what they lead to beyond the last look is read.
        """
        with self._turn:
            branch, head, tips = self._refs()
            known = self._ledger
            if (branch, head, tips) != (known.branch, known.head, known.tips):
                gone = bool(known.tips - tips) and self._lost(known.tips, tips)
                before = {} if gone else known.records
                fresh = self._read_log(tips, () if gone else known.tips)
                self._keep(Ledger(branch, head, tips, {**fresh, **before}))
            return self._ledger

    def _keep(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._stamps = {
            name: record.hash for record in ledger.records.values() for name in self.names(record)
        }
        self._ahead = 1

    def _refs(self) -> tuple[str, str, frozenset[str]]:
        """Return the branch, the commit at its head, and the commits from which history is read."""
        # One that cannot be believed is told as a problem.
        if repository.find(self.root) is None:
            return "", "", frozenset()
        out = git.run(
            self.root, ["rev-parse", "--verify", "--quiet", "HEAD"], terms=_any_code(self.terms)
        )
        head = out.decode().strip()
        return "", head, frozenset({head} if head else ())

    def _lost(self, before: Iterable[str], after: Iterable[str]) -> bool:
        """Tell whether a commit that was there is no longer reached.

        History was rewritten, or a branch deleted.
        """
        asked = "\n".join([*before, *(f"^{tip}" for tip in after)]).encode() + b"\n"
        try:
            return bool(
                git.run(
                    self.root,
                    ["rev-list", "--max-count=1", "--stdin"],
                    stdin=asked,
                    terms=self.terms,
                )
            )
        except UnavailableError:
            return True

    def _read_log(self, tips: Iterable[str], known: Iterable[str]) -> dict[str, Record]:
        wanted = sorted(tips)
        if not wanted:
            return {}
        asked = "\n".join([*wanted, *(f"^{tip}" for tip in known)]).encode() + b"\n"
        options = [*LOG, f"--max-count={MOST_COMMITS}", "--stdin"]
        options += ["--relative"] if self._inside else []
        paths = ["."] if self._inside else []
        out = git.run(self.root, options, paths=paths, stdin=asked, terms=self.terms)
        return {record.hash: record for record in _records(out.decode(errors="replace"))}


def moved_ref(path: str, folder: Path) -> str | None:
    """Return "", which stands for everything.

    If a path is one by which refs of a repository move.
    """
    name = path.removeprefix(f"{folder}/") if path.startswith(f"{folder}/") else ""
    moved = name in {"HEAD", "packed-refs"} or name.startswith("refs/")
    return "" if moved and not name.endswith(".lock") else None


def moment(seconds: str) -> datetime:
    """Return the time of a commit; one that no calendar has counts as the beginning of all."""
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC)


def _records(out: str) -> Iterator[Record]:
    words = iter(out.split("\0"))
    header: list[str] = []
    paths: list[tuple[str, bool]] = []
    for word in words:
        row = _ROW.fullmatch(word.lstrip("\n")) if header else None
        if row:
            path = next(words, "")
            # Links and other repositories are no texts.
            if row[1].startswith("100") or row[2] == _DELETED:
                paths.append((path, row[2] != _DELETED))
            continue
        if header:
            yield _record(header, paths)
        header, paths = [word.lstrip("\n"), *islice(words, len(FIELDS) - 1)], []
        if len(header) < len(FIELDS):
            return


def _record(header: Sequence[str], paths: Sequence[tuple[str, bool]]) -> Record:
    name, short, seconds, author, email = header
    return Record(name, short, moment(seconds), author, email, tuple(paths))


def _folders(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _any_code(terms: git.Terms) -> git.Terms:
    return git.Terms(
        seconds=terms.seconds,
        most=terms.most,
        codes=(0, 1),
        settings=terms.settings,
        here=terms.here,
    )
