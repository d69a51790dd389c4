"""A journal: sections are files that hold what is understood now.

Entries are the commits that led there.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path

from ragdocs.errors import (
    AlreadyExistsError,
    ConfigError,
    ConflictError,
    NotFoundError,
    RagdocsError,
    UnavailableError,
    ValidationError,
)
from ragdocs.stores.git.checkout import Checkout, Move, blob_name
from ragdocs.stores.git.commits import LOG_SETTINGS, SECONDS, CommitStore, Ledger, Record, moved_ref
from ragdocs.stores.git.draft import Draft
from ragdocs.stores.git.plumbing import BRANCH, first_branch, read_blobs, read_refs, written_refs
from ragdocs.system import files as fsio
from ragdocs.system import git, repository
from ragdocs.system.locks import LOCK_FILE, lock
from ragdocs.text.formats.journal import (
    checked,
    is_section,
    overview,
    summary_of,
    title_of,
    with_count,
)
from ragdocs.types import Change, Commit, Expect, Put, Revision, Source, Written

AUTHOR = "Journal Server <journal@localhost>"
# Somebody who commits with plain git may come between; so often in a row nobody does.
ATTEMPTS = 8
# As git itself counts: this many loose objects in one of the 256 folders means some 6,700 in all.
LOOSE_IN_ONE_FOLDER = 27
# What a commit of entries needs to survive a loss of power; by default git leaves single objects to
# chance.
DURABLE = {"core.fsync": "committed,loose-object", "core.fsyncMethod": "fsync"}
# Sections whose text is kept at hand, by commit.
MOST_HELD = 64
# What git says when somebody else has moved the branch since we looked.
NOT_MOVED = "Not updating"
UNFINISHED = ("MERGE_HEAD", "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD")

_AUTHOR = re.compile(r"(?:[^<>\n\0]+ )?<[^<>\n\0]*>")

logger = logging.getLogger("ragdocs")


class JournalStore(CommitStore):
    """A repository of its own below a root.

    `ignored_by` is the project whose repository is told to leave it alone.
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
        super().__init__(root)
        git.program()
        if not _AUTHOR.fullmatch(author):
            raise ConfigError(
                f"journal.author {author[:80]!r} is no author", f'Write it as "{AUTHOR}"'
            )
        self._inside = ""
        self.terms = replace(self.terms, here=True)
        self._author = author
        self._auto_gc = auto_gc
        self._ignored_by = ignored_by
        self._now = now
        self.checkout = Checkout(root, self.terms)
        self._line: tuple[str, tuple[Record, ...]] = ("", ())
        self._by_path: dict[str, list[Record]] = {}
        self._held: dict[tuple[str, str], tuple[str, bytes] | None] = {}
        self._commits: tuple[str, list[Commit]] = ("", [])
        self._written: Mapping[str, bytes] | None = None
        self._collecting = threading.Lock()

    # --- looking ---

    def read(self, path: str) -> Source:
        """Read an entry, or what a section says now, as it was last committed."""
        if "#" in path:
            return super().read(path)
        with self._turn:
            ledger = self.refresh()
            path = self.spelled(path)
            found = self.blobs(ledger.head, [path])[0] if ledger.head else None
            last = self._by_path.get(path, [])[:1]
        if found is None:
            near = get_close_matches(path, self._by_path, n=3, cutoff=0.5)
            names = ", ".join(name.removesuffix(".md") for name in near)
            raise NotFoundError(
                f"there is no section {path.removesuffix('.md')!r}", names and f"There is {names}"
            )
        name, data = found
        problems = (
            ("the file has changes that are not committed",)
            if self.checkout.edited(path, name)
            else ()
        )
        text = overview(data)
        at = last[0].at if last else None
        return Source(path, text, name, name, len(text.encode()), modified_at=at, problems=problems)

    def locate(self, path: str) -> str:
        """Tell the file of a section, or of the section of an entry."""
        section = path.partition("#")[0].removesuffix(".md")
        return str(self.root / f"{section}.md") if section else str(self.root)

    def history(self, path: str = "") -> list[Revision]:
        """List the entries that lead to the present, of one section or of all, newest first."""
        if not path:
            return [step for commit in self.commits() for step in commit.steps]
        with self._turn:
            self.refresh()
            path = self.spelled(path)
            records = tuple(self._by_path.get(path, ()))
        return [step for record in records for step in _steps(record) if step.path == path]

    def commits(self) -> list[Commit]:
        """List what leads to the present, newest first.

        A step without a text afterwards removed its section.
        """
        with self._turn:
            self.refresh()
            head, line = self._line
            if self._commits[0] != head:
                self._commits = (
                    head,
                    [Commit(record.at, "append", tuple(_steps(record))) for record in line],
                )
            return list(self._commits[1])

    def recover(self, version: str) -> str:
        """Return what a section said, by the version that reading it gave."""
        if not git.is_hash(version):
            raise ValidationError(f"{version[:80]!r} is no version of a section")
        found = self.blobs("", [version])[0]
        if found is None:
            raise NotFoundError(f"the text of version {version[:16]} is not kept any more")
        return overview(found[1])

    def watched(self) -> list[tuple[Path, bool]]:
        """List the folders where refs are moved.

        Before there are any, where the journal will be.
        """
        place = self.root / ".git"
        if place.is_dir():
            return [(place, False), (place / "refs", True)]
        return [(self.root if self.root.is_dir() else self.root.parent, False)]

    def relative(self, path: str) -> str | None:
        """Say that a moved ref may concern everything, and anything else nothing."""
        return (
            ""
            if path in {str(self.root), f"{self.root}/.git"}
            else moved_ref(path, self.root / ".git")
        )

    # --- writing ---

    def commit(self, changes: Sequence[Change], verb: str = "append") -> list[Written]:
        """Make one commit of one section.

        The note is the entry, the text what is understood now.
        """
        if len(changes) != 1 or not isinstance(put := changes[0], Put) or not put.note.strip():
            raise ValidationError(
                f"a journal takes one entry at a time, not {len(changes)} changes ({verb})"
            )
        message = checked(put.note)
        self._found()
        with lock(self.root, timeout=15.0), self._turn:
            self.checkout.heal(self.refresh().head)
            self.refuse_unfinished()
            for _ in range(ATTEMPTS):
                if (written := self._append(put, message, self.refresh())) is not None:
                    break
            else:
                raise UnavailableError("the branch of the journal moves all the time", "Try again")
        self._tidy_up()
        return [written]

    def _append(self, put: Put, message: str, ledger: Ledger) -> Written | None:
        path = self._writable(put.path)
        before = self.blobs(ledger.head, [path])[0] if ledger.head else None
        self._check(put, path, before)
        data = with_count(put.text, len(self._by_path.get(path, [])) + 1)
        name = self.record(Draft(((path, data),), message), ledger)
        if name is None:
            return None
        after = blob_name(data, name)
        self._hold((name, path), (after, data))
        self.checkout.move(name, [Move(path, before[0] if before else "", after, data)])
        return Written(f"{path.removesuffix('.md')}#{name}.md", after)

    def record(self, draft: Draft, ledger: Ledger) -> str | None:
        """Make a commit on top of the branch and return its name.

        Or nothing if the branch moved meanwhile.
        """
        at = int(self._now().timestamp())
        who = f"{self._author} {at} +0000"
        ledger = replace(ledger, branch=ledger.branch or self.branch())
        stream = draft.stream(ledger.branch, ledger.head, who)
        self.checkout.begin()
        try:
            options = ["fast-import", "--quiet", "--date-format=raw"]
            terms = replace(self.terms, settings={**LOG_SETTINGS, **DURABLE})
            name = git.run(self.root, options, stdin=stream, terms=terms).decode().strip()
        except UnavailableError as error:
            if NOT_MOVED in error.message:
                return None
            if self._refs()[1] == ledger.head:
                raise
            hint = "Read the section before you write again: the entry may be there"
            raise UnavailableError(
                f"it is not known whether the entry was committed ({error.message})", hint
            ) from error
        self._extend(ledger, name, draft, at)
        return name

    def _extend(self, ledger: Ledger, name: str, draft: Draft, at: int) -> None:
        """Note a commit of our own without asking git for it again."""
        if draft.merged:
            self.refresh()
            return
        author, _, email = self._author.rpartition("<")
        moment = datetime.fromtimestamp(at, UTC)
        paths = tuple((path, data is not None) for path, data in draft.files)
        record = Record(name, name[:7], moment, author.strip(), email.rstrip(">"), paths)
        tips = frozenset({*ledger.tips, name} - {ledger.head})
        self._messages = {name: draft.message.rstrip("\n")}
        self._ledger = Ledger(ledger.branch, name, tips, {name: record, **ledger.records})
        self._stamps = {**dict.fromkeys(self.names(record), name), **self._stamps}
        self._line = (name, (record, *self._line[1]))
        for path, _ in paths:
            self._by_path.setdefault(path, []).insert(0, record)
        # Only if nothing but our branch has moved; else the next look asks git.
        written = written_refs(self.root / ".git")
        expected = {**(self._written or {}), ledger.branch: f"{name}\n".encode()}
        self._written = written if written == expected else None

    def _check(self, put: Put, path: str, found: tuple[str, bytes] | None) -> None:
        now = overview(found[1]) if found else ""
        if put.expect in {Expect.ANY, Expect.PRESENT if found else Expect.ABSENT}:
            return
        if isinstance(put.expect, str) and found:
            with suppress(NotFoundError):
                if put.expect == found[0] or self.recover(put.expect) == now:
                    return
        section = path.removesuffix(".md")
        what = "was removed" if found is None else "says something else now"
        hint = "Read it again with journal_read, put both together, and write once more"
        raise ConflictError(
            f"{section} {what} since you read it",
            hint,
            theirs=now,
            yours=put.text,
            version=found[0] if found else "",
        )

    def _writable(self, path: str) -> str:
        spelled = self.spelled(path)
        if spelled not in self._by_path:
            if any(part.endswith(".md") for part in spelled.split("/")[:-1]):
                raise ValidationError(f"{path!r} lies below a file", "Leave out .md")
            twin = next(
                (known for known in self._by_path if _folded(known) == _folded(spelled)), ""
            )
            if twin:
                message = f"{path!r} differs only in upper and lower case from {twin.removesuffix('.md')!r}"
                raise AlreadyExistsError(message, "Use that, or another name")
        return spelled

    def spelled(self, path: str) -> str:
        """Return the path of a section as it is committed, whatever form its letters have there."""
        if path in self._by_path:
            return path
        if "#" in path:
            raise ValidationError(
                f"{path[:80]!r} is no section: # begins the name of an entry", "Leave it out"
            )
        clean = fsio.relative_name(path)
        return next(
            (known for known in self._by_path if unicodedata.normalize("NFC", known) == clean),
            clean,
        )

    def _found(self) -> None:
        """Make the repository, if there is none; a folder with other things in it is not taken."""
        place = self.root / ".git"
        self._refuse_others()
        if place.is_dir():
            # A clone that a person has put there is to be left alone, too.
            if self._ignored_by:
                self.checkout.ignore(self._ignored_by)
                self._ignored_by = None
            return
        fsio.make_directories(self.root)
        with lock(self.root):
            if place.is_dir():
                return
            if any(entry.name != LOCK_FILE for entry in self.root.iterdir()):
                hint = "Set journal.path to a folder that is empty, new, or a git repository"
                raise UnavailableError(
                    f"{self.root} holds other things and is no git repository", hint
                )
            git.run(self.root, ["init", "--quiet", f"--initial-branch={BRANCH}"], terms=self.terms)
        self._found()

    def refuse_unfinished(self) -> None:
        """Refuse to write while a person merges or rebases by hand."""
        found = next((name for name in UNFINISHED if (self.root / ".git" / name).exists()), "")
        if found:
            hint = f"In {self.root}, finish it with git, or give it up (git merge --abort, git rebase --abort)"
            raise UnavailableError(
                "somebody is in the middle of a merge or a rebase in the journal", hint
            )

    def _tidy_up(self) -> None:
        """Let git pack what has piled up, in the background."""
        loose = self.root / ".git" / "objects" / "17"
        with suppress(OSError):
            if self._auto_gc and sum(1 for _ in loose.iterdir()) >= LOOSE_IN_ONE_FOLDER:
                threading.Thread(target=self.collect, name="ragdocs-gc", daemon=True).start()

    def collect(self) -> None:
        """Pack loose objects, unless somebody is at it."""
        if not self._collecting.acquire(blocking=False):
            return
        try:
            git.run(self.root, ["gc", "--quiet"], terms=replace(self.terms, seconds=10 * SECONDS))
        except RagdocsError as error:
            logger.warning("the journal could not be packed: %s", error)
        finally:
            self._collecting.release()

    # --- the ledger ---

    def names(self, record: Record) -> Iterator[str]:
        """Name a commit once for each section that it changed."""
        return (
            f"{path.removesuffix('.md')}#{record.hash}.md"
            for path, _ in record.paths
            if is_section(path)
        )

    def text(self, record: Record, message: str) -> str:
        """Return the message alone: the section is in its name."""
        del record
        return message

    def card(self, record: Record, message: str) -> dict[str, object]:
        """Return what is known of an entry.

        Its context stands in the title, which every passage is found by.
        """
        return {
            "title": title_of(message),
            "created_at": record.at.isoformat(),
            "source": record.author,
            "summary": summary_of(message),
        }

    def short(self, name: str) -> str:
        """Return a commit's name as git abbreviates it."""
        record = self._ledger.records.get(name)
        return record.short if record else name[:7]

    def blobs(self, commit: str, names: Sequence[str]) -> list[tuple[str, bytes] | None]:
        """Return the name and content of each of these files in a commit, or of these objects."""
        if not commit or len(names) != 1:
            return read_blobs(self.root, self.terms, commit, names)
        # What a commit holds never changes, and the same section is read, written and read again.
        key = (commit, names[0])
        if key not in self._held:
            self._hold(key, read_blobs(self.root, self.terms, commit, names)[0])
        return [self._held[key]]

    def _hold(self, key: tuple[str, str], found: tuple[str, bytes] | None) -> None:
        for old in list(self._held)[: len(self._held) - MOST_HELD + 1]:
            self._held.pop(old, None)
        self._held[key] = found

    def branch(self) -> str:
        """Return the branch that the first entry makes."""
        return first_branch(self.root, self.terms)

    def _refs(self) -> tuple[str, str, frozenset[str]]:
        return read_refs(self.root, self.terms)

    def refresh(self) -> Ledger:
        """Return the ledger as refs are now.

        Git is asked only when the files of refs say something else.
        """
        with self._turn:
            self._refuse_others()
            written = written_refs(self.root / ".git")
            if written is None or written != self._written:
                super().refresh()
                self._written = written
            return self._ledger

    def _refuse_others(self) -> None:
        """Raise if what is in the place of the journal's repository may be another project's."""
        if os.path.lexists(self.root / ".git"):
            repository.own_folder(self.root)

    def _keep(self, ledger: Ledger) -> None:
        super()._keep(ledger)
        order = ["rev-list", "--date-order", "--no-merges"]
        out = (
            git.run(self.root, order, [ledger.head], terms=self.terms).decode()
            if ledger.head
            else ""
        )
        line = tuple(ledger.records[name] for name in out.split() if name in ledger.records)
        self._line = (ledger.head, line)
        self._by_path = {}
        for record in line:
            for path, _ in record.paths:
                if is_section(path):
                    self._by_path.setdefault(path, []).append(record)


def _steps(record: Record) -> Iterator[Revision]:
    for path, stays in record.paths:
        if is_section(path):
            yield Revision(path, record.hash, record.at, "append", 0, record.short if stays else "")


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()
