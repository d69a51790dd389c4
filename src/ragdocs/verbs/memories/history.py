"""The past of memories: what was changed, earlier texts, and the way back."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragdocs.errors import ConflictError, NotFoundError, ParseError, ValidationError
from ragdocs.search.corpus import Corpus
from ragdocs.types import Change, ChangeSet, Discard, Expect, Put, Restore, Revision, Written
from ragdocs.verbs import page
from ragdocs.verbs.memories.write import SavedMemory
from ragdocs.verbs.references import past_path

# Fewer digits of a version are a slip of the pen.
LEAST_DIGITS = 4
# Of versions or paths in one message.
LISTED = 5
# Stands for the version of a file that is no text any more.
NO_TEXT = "no text"

# The versions of texts by their paths; an empty one means that there is none.
Texts = dict[str, str]


@dataclass(frozen=True, slots=True)
class History:
    """The latest revisions, newest first, and the number of all.

    `current` is the version now, where one memory was asked for.
    """

    revisions: Sequence[Revision]
    total: int
    current: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs between two versions of a memory, line by line; "" is a removed text."""

    path: str
    before: str
    after: str
    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class UndoneChange:
    """A change that was taken back, and what was written for it."""

    change: ChangeSet
    written: Sequence[Written]


@dataclass(frozen=True, slots=True)
class Versions:
    """What can be asked about earlier texts."""

    corpus: Corpus

    def history(self, filename: str = "", limit: int = 10) -> History:
        """List the earlier texts of one memory under all its names, or of all, newest first."""
        page.check_limit(limit)
        path = ""
        current = ""
        if filename:
            path = past_path(self.corpus, filename)
            current = self._version(path)
        revisions = list(self._revisions(path))
        if path and not revisions and not current:
            raise NotFoundError(
                f"{path} does not exist and no text of it is kept", "Leave filename out to list all"
            )
        return History(revisions[:limit], len(revisions), current)

    def restore(self, filename: str, version: str | None = None) -> SavedMemory:
        """Bring back an earlier text of a memory.

        Without a version, the latest that is not there now.
        """
        path = past_path(self.corpus, filename)
        current = self._version(path)
        wanted = self._full_version(path, version, current)
        if wanted == current:
            return self._saved("unchanged", path, Written(path, current))
        change = self._restoring(path, wanted, current or Expect.ABSENT)
        written = self.corpus.commit([change], "restore")[0]
        return self._saved("restored", path, written)

    def diff(
        self,
        filename: str,
        first: str | None = None,
        second: str | None = None,
    ) -> Comparison:
        """Compare an earlier text of a memory with another or with the one there now.

        Without a version, the latest earlier text.
        """
        path = past_path(self.corpus, filename)
        current = self._version(path)
        before = self._full_version(path, first, current)
        after = current
        if second:
            after = self._full_version(path, second, current)
        lines = difflib.unified_diff(
            self._text(path, before, current).splitlines(),
            self._text(path, after, current).splitlines(),
            f"{path} {before}",
            f"{path} {after or 'removed'}",
            lineterm="",
        )
        return Comparison(path, before, after, list(lines))

    def undo(self, expected_version: str | None = None) -> UndoneChange:
        """Take back the caller's last change that stands, with all its files or not at all.

        With a version, the change that made it, or that removed it, whoever did.
        """
        if expected_version:
            commit = self._change_to(expected_version)
        else:
            commit = self._last_standing()
        changes: list[Change] = []
        for step in commit.steps:
            if step.version:
                expect = step.after or Expect.ABSENT
                changes.append(self._restoring(step.path, step.version, expect))
            else:
                # What a rename made lives on under its old name; anything else may be wanted again.
                is_wanted = commit.verb != "rename"
                changes.append(Discard(step.path, step.after, trash=is_wanted))
        try:
            written = self.corpus.commit(changes, "undo")
        except ConflictError as error:
            raise _refusal(commit, error.message) from error
        return UndoneChange(commit, written)

    def _revisions(self, path: str) -> Iterator[Revision]:
        """Yield the kept texts of a memory under all its names, newest first.

        Without a path, those of all memories.
        """
        for commit in self.corpus.versioned.commits():
            path = _earlier_path(commit, path)
            for step in commit.steps:
                is_wanted = path in ("", step.path)
                if step.version and is_wanted:
                    yield step

    def _last_standing(self) -> ChangeSet:
        """Return the last change that the caller made and did not take back.

        Refuse if its files were edited since.
        """
        # The version of each file, as if the commits that were looked at had not been made.
        versions: Texts = {}
        undone: list[Texts] = []
        store = self.corpus.versioned
        commits = store.commits()
        own = list(filter(store.is_own, commits))
        for commit in own:
            before = {step.path: step.version for step in commit.steps}
            after = _texts_after(commit)
            for path in after:
                if path not in versions:
                    versions[path] = self._version_of_any(path)
            present = {path: versions[path] for path in after}
            if present == before:
                continue  # announced, but its process ended before it was made
            if commit.verb == "undo":
                undone.append(before)
            elif after in undone:
                undone.remove(after)
            else:
                _check_untouched(commit, after, present)
                return commit
            for path, version in present.items():
                if version == after[path]:
                    versions[path] = before[path]
        if len(own) < len(commits):
            raise NotFoundError(
                "there is no change of yours to undo",
                "See <list earlier texts>; a version takes back the change that made it",
            )
        raise NotFoundError("there is nothing to undo", "Only changes made by ragdocs are kept")

    def _change_to(self, version: str) -> ChangeSet:
        """Return the change that made or removed a version, if nothing came after it."""
        for commit in self.corpus.versioned.commits():
            is_meant = False
            for step in commit.steps:
                outcome = step.after or step.version
                is_meant = is_meant or outcome == version
            if not is_meant:
                continue
            after = _texts_after(commit)
            present = {path: self._version_of_any(path) for path in after}
            _check_untouched(commit, after, present)
            return commit
        raise NotFoundError(
            f"no change is known that made version {version[:40]}",
            "See <list earlier texts> and restore the version you want",
        )

    def _full_version(self, path: str, version: str | None, current: str) -> str:
        """Return the version that begins with these digits, or the latest earlier one."""
        revisions = self._revisions(path)
        earlier = list(dict.fromkeys(revision.version for revision in revisions))
        if version is None:
            return _latest_other(path, earlier, current)
        if len(version) < LEAST_DIGITS:
            raise ValidationError(
                f"{version!r} is too short", f"Give at least {LEAST_DIGITS} digits of a version"
            )
        candidates = list(earlier)
        if current and current not in earlier:
            candidates.append(current)
        digits = version.casefold()
        matches = [candidate for candidate in candidates if candidate.startswith(digits)]
        if not matches:
            hint = f"Kept versions: {', '.join(earlier[:LISTED]) or 'none'}"
            raise NotFoundError(f"no text of {path} is kept under version {version[:40]}", hint)
        if len(matches) > 1:
            listed = ", ".join(matches[:LISTED])
            raise ValidationError(
                f"several versions start with {version}: {listed}", "Give more digits"
            )
        return matches[0]

    def _restoring(self, path: str, version: str, expect: str | Expect) -> Change:
        """Return the change that brings a kept text back.

        Its very bytes, unless there is a secret in them.
        """
        text = self.corpus.versioned.recover(version)
        if self.corpus.redactor.redact(text).findings:
            return Put(path, text, expect)
        return Restore(path, version, expect)

    def _text(self, path: str, version: str, current: str) -> str:
        if not version:
            return ""
        if version == current:
            return self.corpus.store.read(path).text
        return self.corpus.versioned.recover(version)

    def _version(self, path: str) -> str:
        try:
            return self.corpus.store.read(path).version
        except NotFoundError:
            return ""

    def _version_of_any(self, path: str) -> str:
        """Return the version of a file, which may be no text any more: then it equals no other."""
        try:
            return self._version(path)
        except ParseError:
            return NO_TEXT

    def _saved(self, status: str, path: str, written: Written) -> SavedMemory:
        return SavedMemory(status, path, self.corpus.store.locate(path), written)


def _latest_other(path: str, versions: list[str], current: str) -> str:
    for version in versions:
        if version != current:
            return version
    raise NotFoundError(f"no earlier text of {path} is kept", "It has not been changed by ragdocs")


def _texts_after(commit: ChangeSet) -> Texts:
    return {step.path: step.after for step in commit.steps}


def _earlier_path(commit: ChangeSet, path: str) -> str:
    """Return the path that a memory had before a commit, which may have renamed it."""
    if commit.verb not in ("rename", "undo"):
        return path
    created = [step.path for step in commit.steps if not step.version]
    removed = [step.path for step in commit.steps if not step.after]
    if created == [path] and len(removed) == 1:
        return removed[0]
    return path


def _check_untouched(commit: ChangeSet, after: Texts, present: Texts) -> None:
    """Refuse to undo a commit whose files were edited since."""
    edited = []
    for path, version in sorted(after.items()):
        if present[path] != version:
            edited.append(path)
    if edited:
        raise _refusal(commit, f"{', '.join(edited[:LISTED])} changed since")


def _refusal(commit: ChangeSet, reason: str) -> ConflictError:
    paths = ", ".join(step.path for step in commit.steps[:LISTED])
    message = (
        f"the last change, {commit.verb} of {paths}, cannot be undone: {reason};"
        " nothing was changed"
    )
    return ConflictError(
        message, "See <list earlier texts> and restore the versions you want one by one"
    )
