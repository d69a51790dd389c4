"""A journal in git: sections are files with the present overview, entries the commits to it."""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from ragdocs.errors import (
    ConfigError,
    ConflictError,
    NotFoundError,
    RagdocsError,
    UnavailableError,
    ValidationError,
)
from ragdocs.stores.git.checkout import Checkout, Move, blob_name
from ragdocs.stores.git.draft import Draft
from ragdocs.stores.git.entries import Entries, entries_of, entry_name, revisions_of
from ragdocs.stores.git.ledger import (
    LOG_SETTINGS,
    LOG_TERMS,
    SECONDS,
    CommitLog,
    Ledger,
    Record,
    Refs,
    moved_ref,
    select,
)
from ragdocs.stores.git.plumbing import BRANCH, Blob, Blobs, first_branch, read_refs, written_refs
from ragdocs.system import files, git, repository
from ragdocs.system.locks import LOCK_FILE, lock
from ragdocs.text.formats.journal import (
    MARK,
    SUFFIX,
    checked,
    overview,
    summary_of,
    title_of,
    with_count,
)
from ragdocs.types import Change, ChangeSet, Expect, Put, Revision, Scan, Source, Written

AUTHOR = "Journal Server <journal@localhost>"
# Somebody may commit with plain git between our look and our commit, but not so often in a row.
ATTEMPTS = 8
LOCK_SECONDS = 15.0
# As git itself estimates: this many loose objects in one of 256 folders mean some 6,700 in all.
LOOSE_IN_ONE_FOLDER = 27
# A commit of an entry must survive a loss of power; by default git does not sync single objects.
DURABLE = {"core.fsync": "committed,loose-object", "core.fsyncMethod": "fsync"}
# The words of git when somebody else has moved the branch since we looked.
NOT_MOVED = "Not updating"

_AUTHOR = re.compile(r"(?:[^<>\n\0]+ )?<[^<>\n\0]*>")
_ENTRY = re.compile(rf".+{MARK}(?P<hash>[0-9a-f]{{40,64}})\.md")

logger = logging.getLogger("ragdocs")


class JournalStore:
    """A repository of its own below a root.

    `ignored_by` is a project whose own repository is made to ignore the journal.
    """

    def __init__(
        self,
        root: Path,
        *,
        author: str = AUTHOR,
        auto_gc: bool = True,
        ignored_by: Path | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        git.program()
        if not _AUTHOR.fullmatch(author):
            raise ConfigError(
                f"journal.author {author[:80]!r} is not an author", f'Write it as "{AUTHOR}"'
            )
        self.root = root
        self.terms = replace(LOG_TERMS, here=True)
        self.checkout = Checkout(root, self.terms)
        self.blobs = Blobs(root, self.terms)
        self._git_folder = root / ".git"
        self._log = CommitLog(root, self.terms, self._refs)
        self._author = author
        self._auto_gc = auto_gc
        self._ignored_by = ignored_by
        self._now = now
        self._entries = Entries()
        # Listed for one state of the entries, because listing thousands takes time.
        self._change_sets: tuple[Entries, list[ChangeSet]] = (self._entries, [])
        # The files of refs at the last look; None if they must be looked up through git.
        self._written: Mapping[str, bytes] | None = None
        self._collecting = threading.Lock()

    # --- reading ---

    def scan(self, paths: Iterable[str] | None = None) -> Scan:
        """List all entries, or those whose names begin as these do.

        A repository that cannot be read is unreadable, never empty.
        """
        try:
            stamps = self._current_entries().stamps
        except UnavailableError as error:
            git.warn(str(error))
            return Scan({}, {"": str(error)})
        return select(stamps, paths)

    def read(self, path: str) -> Source:
        """Read an entry, or the overview of a section as it was last committed."""
        if MARK in path:
            return self._read_entry(path)
        entries = self._current_entries()
        path = entries.spelled(path)
        blob = self.blobs.of(entries.ledger.head, path)
        if blob is None:
            raise entries.not_found(path)
        problems: tuple[str, ...] = ()
        if self.checkout.edited(path, blob.name):
            problems = ("the file has changes that are not committed",)
        modified_at = None
        if entries.count(path):
            modified_at = entries.by_section[path][0].at
        text = overview(blob.data)
        return Source(
            path=path,
            text=text,
            version=blob.name,
            stamp=blob.name,
            size=len(text.encode()),
            modified_at=modified_at,
            problems=problems,
        )

    def _read_entry(self, path: str) -> Source:
        record = None
        name = _ENTRY.fullmatch(path)
        if name and path in self._entries.stamps:
            record = self._log.ledger.records.get(name["hash"])
        if record is None:
            raise NotFoundError(f"there is no commit {path[:200]!r}")
        message = self._log.message(record.hash)
        # Every passage is found by the title, so that is where the work context goes.
        card = {
            "title": title_of(message),
            "created_at": record.at.isoformat(),
            "source": record.author,
            "summary": summary_of(message),
        }
        return Source(
            path=path,
            text=message,
            version=record.hash,
            stamp=record.hash,
            size=len(message.encode()),
            modified_at=record.at,
            card=card,
        )

    def locate(self, path: str) -> str:
        """Return the file of a section, or of the section of an entry."""
        section = path.partition(MARK)[0].removesuffix(SUFFIX)
        if not section:
            return str(self.root)
        return str(self.root / f"{section}{SUFFIX}")

    def short(self, name: str) -> str:
        """Return a commit's name as git abbreviates it."""
        record = self._log.ledger.records.get(name)
        if record is None:
            return name[:7]
        return record.short

    # --- watching ---

    def watched(self) -> list[tuple[Path, bool]]:
        """List the folders where refs are moved, or the one where the journal will be."""
        if self._git_folder.is_dir():
            return [(self._git_folder, False), (self._git_folder / "refs", True)]
        if self.root.is_dir():
            return [(self.root, False)]
        return [(self.root.parent, False)]

    def relative(self, path: str) -> str | None:
        """Return "", which stands for everything, if a file moves refs; else None."""
        if path in {str(self.root), str(self._git_folder)}:
            return ""
        return moved_ref(path, self._git_folder)

    # --- revisions ---

    def history(self, path: str = "") -> list[Revision]:
        """List the entries that led to the present, of one section or of all, newest first."""
        revisions: list[Revision] = []
        if not path:
            for change_set in self.commits():
                revisions += change_set.steps
            return revisions
        entries = self._current_entries()
        path = entries.spelled(path)
        for record in entries.by_section.get(path, ()):
            revisions += [revision for revision in revisions_of(record) if revision.path == path]
        return revisions

    def commits(self) -> list[ChangeSet]:
        """List the entries that led to the present, newest first."""
        with self._log.turn:
            entries = self._current_entries()
            if self._change_sets[0] is not entries:
                self._change_sets = (entries, entries.change_sets())
            return list(self._change_sets[1])

    def is_own(self, _change_set: ChangeSet, /) -> bool:
        """Tell that there is nobody else."""
        return True

    def recover(self, version: str) -> str:
        """Return an overview of a section by the version that reading it gave."""
        if not git.is_hash(version):
            raise ValidationError(f"{version[:80]!r} is not a version of a section")
        blob = self.blobs.named(version)
        if blob is None:
            raise NotFoundError(f"the text of version {version[:16]} is not kept any more")
        return overview(blob.data)

    # --- writing ---

    def commit(self, changes: Sequence[Change], verb: str = "append") -> list[Written]:
        """Commit one entry: its note is the message, its text the section's new overview."""
        put = changes[0] if len(changes) == 1 else None
        if not isinstance(put, Put) or not put.note.strip():
            raise ValidationError(
                f"a journal takes one entry at a time, not {len(changes)} changes ({verb})"
            )
        message = checked(put.note)
        self._ensure_repository()
        with lock(self.root, timeout=LOCK_SECONDS), self._log.turn:
            self.checkout.heal(self.refresh().head)
            self.checkout.refuse_unfinished()
            written = self._append(put, message)
        self._tidy_up()
        return [written]

    def _append(self, put: Put, message: str) -> Written:
        for _ in range(ATTEMPTS):
            ledger = self.refresh()
            path = self._entries.writable(put.path)
            before = self.blobs.of(ledger.head, path)
            self._check_expectation(put, path, before)
            data = with_count(put.text, self._entries.count(path) + 1)
            commit = self.record(Draft(((path, data),), message), ledger)
            if commit is None:
                continue
            after = Blob(blob_name(data, commit), data)
            self.blobs.cache(commit, path, after)
            before_name = before.name if before else ""
            self.checkout.move(commit, [Move(path, before_name, after.name, data)])
            return Written(entry_name(path, commit), after.name)
        raise UnavailableError("others committed to the journal at every try", "Try again")

    def record(self, draft: Draft, ledger: Ledger) -> str | None:
        """Make a commit on top of the branch and return its name.

        Return None if somebody else has moved the branch since the ledger was read.
        """
        if not ledger.branch:
            refs = ledger.refs._replace(branch=self.branch())
            ledger = replace(ledger, refs=refs)
        seconds = int(self._now().timestamp())
        stream = draft.stream(ledger.branch, ledger.head, f"{self._author} {seconds} +0000")
        self.checkout.begin()
        options = ["fast-import", "--quiet", "--date-format=raw"]
        terms = replace(self.terms, settings={**LOG_SETTINGS, **DURABLE})
        try:
            commit = git.run(self.root, options, stdin=stream, terms=terms).decode().strip()
        except UnavailableError as error:
            if NOT_MOVED in error.message:
                return None
            if self._refs().head == ledger.head:
                raise
            hint = "Read the section before you write again: the entry may be there"
            raise UnavailableError(
                f"it is not known whether the entry was committed ({error.message})", hint
            ) from error
        self._extend(ledger, commit, draft, seconds)
        return commit

    def _extend(self, ledger: Ledger, commit: str, draft: Draft, seconds: int) -> None:
        """Add a commit of our own to the entries, without asking git for it."""
        if draft.merged:
            self.refresh()
            return
        author, _, email = self._author.rpartition("<")
        record = Record(
            hash=commit,
            short=commit[:7],
            at=datetime.fromtimestamp(seconds, UTC),
            author=author.strip(),
            email=email.rstrip(">"),
            paths=tuple((path, data is not None) for path, data in draft.files),
        )
        extended = self._log.extend(ledger, record, draft.message.rstrip("\n"))
        self._entries = self._entries.extended(extended, record)
        # If anything but our own branch has moved, the next look asks git.
        written = written_refs(self._git_folder)
        expected = {**(self._written or {}), ledger.branch: f"{commit}\n".encode()}
        self._written = written if written == expected else None

    def _check_expectation(self, put: Put, path: str, current: Blob | None) -> None:
        state = Expect.ABSENT if current is None else Expect.PRESENT
        if put.expect in {Expect.ANY, state}:
            return
        theirs = ""
        version = ""
        what = "was removed"
        if current is not None:
            theirs = overview(current.data)
            version = current.name
            what = "says something else now"
            if isinstance(put.expect, str) and self._is_current(put.expect, current):
                return
        raise ConflictError(
            f"{path.removesuffix(SUFFIX)} {what} since you read it",
            "Read it again with <read the journal>, put both together, and write once more",
            theirs=theirs,
            yours=put.text,
            version=version,
        )

    def _is_current(self, version: str, current: Blob) -> bool:
        """Return whether a version has the present overview; its count of entries may differ."""
        if version == current.name:
            return True
        with suppress(NotFoundError):
            return self.recover(version) == overview(current.data)
        return False

    # --- the repository ---

    def refresh(self) -> Ledger:
        """Return the ledger as refs are now; git is asked only when their files have changed."""
        with self._log.turn:
            self._refuse_foreign()
            written = written_refs(self._git_folder)
            if written is None or written != self._written:
                ledger = self._log.refresh()
                if ledger is not self._entries.ledger:
                    self._entries = entries_of(ledger, self._order(ledger.head))
                self._written = written
            return self._log.ledger

    def branch(self) -> str:
        """Return the branch that the first entry creates."""
        return first_branch(self.root, self.terms)

    def collect(self) -> None:
        """Pack loose objects, unless another thread is packing them."""
        if not self._collecting.acquire(blocking=False):
            return
        try:
            git.run(self.root, ["gc", "--quiet"], terms=replace(self.terms, seconds=10 * SECONDS))
        except RagdocsError as error:
            logger.warning("the journal could not be packed: %s", error)
        finally:
            self._collecting.release()

    def _current_entries(self) -> Entries:
        with self._log.turn:
            self.refresh()
            return self._entries

    def _order(self, head: str) -> list[str]:
        """Name the commits that led to a head, newest first."""
        if not head:
            return []
        options = ["rev-list", "--date-order", "--no-merges"]
        output = git.run(self.root, options, [head], terms=self.terms)
        return output.decode().split()

    def _refs(self) -> Refs:
        return read_refs(self.root, self.terms)

    def _ensure_repository(self) -> None:
        """Create the repository if missing; refuse a folder that is not empty."""
        self._refuse_foreign()
        if not self._git_folder.is_dir():
            self._create_repository()
            self._refuse_foreign()
        # A clone that a person has put there is to be ignored by the project, too.
        if self._ignored_by:
            self.checkout.ignore(self._ignored_by)
            self._ignored_by = None

    def _create_repository(self) -> None:
        files.make_directories(self.root)
        with lock(self.root):
            if self._git_folder.is_dir():
                return
            if any(entry.name != LOCK_FILE for entry in self.root.iterdir()):
                hint = "Set journal.path to a folder that is empty, new, or a git repository"
                raise UnavailableError(
                    f"{self.root} is not empty and is not a git repository", hint
                )
            git.run(self.root, ["init", "--quiet", f"--initial-branch={BRANCH}"], terms=self.terms)

    def _refuse_foreign(self) -> None:
        """Raise if the repository at the journal's path may belong to another project."""
        if os.path.lexists(self._git_folder):
            repository.own_folder(self.root)

    def _tidy_up(self) -> None:
        """Let git pack loose objects in the background, once there are many."""
        if not self._auto_gc:
            return
        with suppress(OSError):
            objects = list((self._git_folder / "objects" / "17").iterdir())
            if len(objects) >= LOOSE_IN_ONE_FOLDER:
                threading.Thread(target=self.collect, name="ragdocs-gc", daemon=True).start()
