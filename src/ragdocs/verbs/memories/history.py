"""The past of memories: what was changed, what a text said before, and the way back."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from ragdocs.errors import ConflictError, NotFoundError, ValidationError
from ragdocs.search.corpus import Corpus
from ragdocs.types import Change, ChangeSet, Discard, Expect, Put, Restore, Revision
from ragdocs.verbs import page as answers
from ragdocs.verbs.references import past_path
from ragdocs.verbs.shapes import Difference, Revisions, RevisionShape, Saved, Undone

# Fewer digits of a version are a slip of the pen.
LEAST_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Versions:
    """What can be asked about earlier texts."""

    corpus: Corpus
    clock: Callable[[], datetime]
    budget: int

    def history(self, filename: str = "", limit: int = 10) -> Revisions:
        """List the earlier texts that were kept, of one memory under all its names or of all.

        Newest first.
        """
        answers.check_limit(limit)
        name = past_path(self.corpus, filename) if filename else ""
        revisions = list(self._past(name))
        current = self._version(name) if name else ""
        if name and not revisions and not current:
            raise NotFoundError(
                f"{name} does not exist and no text of it is kept", "Leave filename out to list all"
            )
        shown = answers.within([self._shape(one) for one in revisions[:limit]], self.budget)
        notes = [] if revisions else ["no earlier texts are kept: nothing was changed yet"]
        return Revisions(
            result=shown, current=current, omitted=len(revisions) - len(shown), notes=notes
        )

    def restore(self, filename: str, version: str | None = None) -> Saved:
        """Bring back an earlier text of a memory.

        Unless a version is named the latest that is not there now.
        """
        name = past_path(self.corpus, filename)
        current = self._version(name)
        wanted = self._wanted(name, version, current)
        path = self.corpus.store.locate(name)
        if wanted == current:
            return Saved(status="unchanged", filename=name, path=path, version=current, warnings=[])
        written = self.corpus.commit(
            [self._back(name, wanted, current or Expect.ABSENT)], "restore"
        )[0]
        warnings = answers.removed(written)
        return Saved(
            status="restored", filename=name, path=path, version=written.version, warnings=warnings
        )

    def diff(
        self, filename: str, first: str | None = None, second: str | None = None
    ) -> Difference:
        """Compare an earlier text of a memory, the latest unless named.

        With another or with the one there now.
        """
        name = past_path(self.corpus, filename)
        current = self._version(name)
        before = self._wanted(name, first, current)
        after = self._wanted(name, second, current) if second else current
        old, new = (self._text(name, version, current) for version in (before, after))
        lines = difflib.unified_diff(
            old.splitlines(),
            new.splitlines(),
            f"{name} {before}",
            f"{name} {after or 'removed'}",
            lineterm="",
        )
        return Difference(filename=name, before=before, after=after, content="\n".join(lines))

    def undo(self) -> Undone:
        """Take back the last change that stands, whatever it was.

        With all its files or not at all.
        """
        commit = self._standing()
        changes: list[Change] = []
        for step in commit.steps:
            if step.version:
                changes.append(self._back(step.path, step.version, step.after or Expect.ABSENT))
            else:
                # What a rename made lives on under its old name; anything else may be wanted again.
                changes.append(Discard(step.path, step.after, trash=commit.verb != "rename"))
        try:
            written = self.corpus.commit(changes, "undo")
        except ConflictError as error:
            raise _refusal(commit, error.message) from error
        return Undone(
            status="undone",
            verb=commit.verb,
            at=answers.iso(commit.at),
            restored=[one.path for one in written if one.version],
            removed=[one.path for one in written if not one.version],
            moved_to=[one.moved_to for one in written if one.moved_to],
            warnings=[warning for one in written for warning in answers.removed(one)],
        )

    def _past(self, name: str) -> Iterator[Revision]:
        """Yield the kept texts of a memory under all the names it had, or of all memories.

        Newest first.
        """
        for commit in self.corpus.versioned.commits():
            made = [step.path for step in commit.steps if not step.version]
            gone = [step for step in commit.steps if not step.after]
            if commit.verb in ("rename", "undo") and made == [name] and len(gone) == 1:
                name = gone[0].path
            yield from (
                step for step in commit.steps if step.version and (not name or step.path == name)
            )

    def _standing(self) -> ChangeSet:
        """Find the last change that was made and not taken back.

        Refuse if its files were edited since.
        """
        now: dict[str, str] = {}
        undone: list[set[tuple[str, str]]] = []
        for commit in self.corpus.versioned.commits():
            for step in commit.steps:
                if step.path not in now:
                    now[step.path] = self._version(step.path)
            if all(now[step.path] == step.version for step in commit.steps):
                continue  # announced, but its process ended before it was made
            made = {(step.path, step.after) for step in commit.steps}
            if commit.verb == "undo":
                undone.append({(step.path, step.version) for step in commit.steps})
            elif made in undone:
                undone.remove(made)
            else:
                foreign = sorted(path for path, version in made if now[path] != version)
                if foreign:
                    raise _refusal(commit, f"{', '.join(foreign[:5])} changed since")
                return commit
            now.update(
                {step.path: step.version for step in commit.steps if now[step.path] == step.after}
            )
        raise NotFoundError("there is nothing to undo", "Only changes made by ragdocs are kept")

    def _wanted(self, name: str, version: str | None, current: str) -> str:
        """Return the full version that is meant."""
        kept = list(dict.fromkeys(one.version for one in self._past(name)))
        if version is None:
            other = next((one for one in kept if one != current), None)
            if other is None:
                raise NotFoundError(
                    f"no earlier text of {name} is kept", "It has not been changed by ragdocs"
                )
            return other
        if len(version) < LEAST_DIGITS:
            raise ValidationError(
                f"{version!r} is too short", f"Give at least {LEAST_DIGITS} digits of a version"
            )
        every = dict.fromkeys([*kept, *([current] if current else [])])
        found = [one for one in every if one.startswith(version.casefold())]
        if not found:
            hint = f"Kept versions: {', '.join(kept[:5]) or 'none'}"
            raise NotFoundError(f"no text of {name} is kept under version {version[:40]}", hint)
        if len(found) > 1:
            raise ValidationError(
                f"several versions start with {version}: {', '.join(found[:5])}", "Give more digits"
            )
        return found[0]

    def _back(self, path: str, version: str, expect: str | Expect) -> Change:
        """Return the change that brings a kept text back.

        Its very bytes, unless there is a secret in them.
        """
        text = self.corpus.versioned.recover(version)
        clean = not self.corpus.redactor.redact(text).findings
        return Restore(path, version, expect) if clean else Put(path, text, expect)

    def _text(self, name: str, version: str, current: str) -> str:
        if not version:
            return ""
        return (
            self.corpus.store.read(name).text
            if version == current
            else self.corpus.versioned.recover(version)
        )

    def _version(self, path: str) -> str:
        try:
            return self.corpus.store.read(path).version
        except NotFoundError:
            return ""

    def _shape(self, revision: Revision) -> RevisionShape:
        return RevisionShape(
            filename=revision.path,
            version=revision.version,
            at=answers.iso(revision.at),
            age=answers.age(revision.at, self.clock()),
            verb=revision.verb,
            size=revision.size,
            became=revision.after,
        )


def _refusal(commit: ChangeSet, why: str) -> ConflictError:
    names = ", ".join(step.path for step in commit.steps[:5])
    message = (
        f"the last change, {commit.verb} of {names}, cannot be undone: {why}; nothing was changed"
    )
    return ConflictError(
        message, "See `ragdocs memory log` and restore the versions you want one by one"
    )
