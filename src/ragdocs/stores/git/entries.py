"""The entries of a journal: its commits by section, and how sections are spelled."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from ragdocs.errors import AlreadyExistsError, NotFoundError, ValidationError
from ragdocs.stores.git.ledger import Ledger, Record
from ragdocs.system.names import relative_name
from ragdocs.text.formats.journal import MARK, SUFFIX, is_section
from ragdocs.types import ChangeSet, Revision


@dataclass(frozen=True, slots=True)
class Entries:
    """What a ledger says about a journal.

    `stamps` has the entries of all branches, `line` the commits that led to the present, newest
    first, and `by_section` those of each section.
    """

    ledger: Ledger = field(default_factory=Ledger)
    stamps: Mapping[str, str] = field(default_factory=dict)
    line: tuple[Record, ...] = ()
    by_section: Mapping[str, Sequence[Record]] = field(default_factory=dict)

    def extended(self, ledger: Ledger, record: Record) -> Entries:
        """Return the entries with one more on top of the line."""
        stamps = _stamps([record])
        stamps.update(self.stamps)
        by_section = dict(self.by_section)
        for path in sections_of(record):
            earlier = by_section.get(path, ())
            by_section[path] = (record, *earlier)
        line = (record, *self.line)
        return Entries(ledger, stamps, line, by_section)

    def count(self, path: str) -> int:
        """Count the entries of a section."""
        return len(self.by_section.get(path, ()))

    def change_sets(self) -> list[ChangeSet]:
        """List the entries that led to the present, newest first."""
        change_sets = []
        for record in self.line:
            revisions = tuple(revisions_of(record))
            change_sets.append(ChangeSet(record.at, "append", revisions))
        return change_sets

    def spelled(self, path: str) -> str:
        """Return the path of a section as it is committed, whatever Unicode form it has there."""
        if path in self.by_section:
            return path
        if MARK in path:
            raise ValidationError(
                f"{path[:80]!r} is not a section: # begins the name of an entry", "Leave it out"
            )
        name = relative_name(path)
        for existing in self.by_section:
            if unicodedata.normalize("NFC", existing) == name:
                return existing
        return name

    def writable(self, path: str) -> str:
        """Return the path of a section that may be written, or refuse it."""
        spelled = self.spelled(path)
        if spelled in self.by_section:
            return spelled
        folders = spelled.split("/")[:-1]
        if any(folder.endswith(SUFFIX) for folder in folders):
            raise ValidationError(f"{path!r} lies below a file", f"Leave out {SUFFIX}")
        for existing in self.by_section:
            if _folded(existing) == _folded(spelled):
                section = existing.removesuffix(SUFFIX)
                raise AlreadyExistsError(
                    f"{path!r} differs only in upper and lower case from {section!r}",
                    "Use that, or another name",
                )
        return spelled

    def not_found(self, path: str) -> NotFoundError:
        """Return the error that names the sections most like a missing one."""
        near = get_close_matches(path, self.by_section, n=3, cutoff=0.5)
        names = ", ".join(name.removesuffix(SUFFIX) for name in near)
        hint = ""
        if names:
            hint = f"There is {names}"
        return NotFoundError(f"there is no section {path.removesuffix(SUFFIX)!r}", hint)


def entries_of(ledger: Ledger, order: Iterable[str]) -> Entries:
    """Sort a ledger's commits by section; `order` names those that led to the present."""
    line = []
    by_section: dict[str, list[Record]] = {}
    for name in order:
        record = ledger.records.get(name)
        if record is None:
            continue
        line.append(record)
        for path in sections_of(record):
            by_section.setdefault(path, []).append(record)
    stamps = _stamps(ledger.records.values())
    return Entries(ledger, stamps, tuple(line), by_section)


def entry_name(path: str, commit: str) -> str:
    """Return the name of the entry that a commit is in a section."""
    return f"{path.removesuffix(SUFFIX)}{MARK}{commit}{SUFFIX}"


def sections_of(record: Record) -> list[str]:
    """List the sections that a commit changed."""
    return [path for path, _ in record.paths if is_section(path)]


def revisions_of(record: Record) -> list[Revision]:
    """List what a commit did to each section; one that was removed has no version afterwards."""
    revisions = []
    for path, exists in record.paths:
        if is_section(path):
            after = record.short if exists else ""
            revision = Revision(path, record.hash, record.at, "append", 0, after)
            revisions.append(revision)
    return revisions


def _stamps(records: Iterable[Record]) -> dict[str, str]:
    stamps = {}
    for record in records:
        for path in sections_of(record):
            stamps[entry_name(path, record.hash)] = record.hash
    return stamps


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()
