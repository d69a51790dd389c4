"""Changing a part of a memory, and giving it another name."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ragdocs.errors import ConflictError, ParseError, RagdocsError, ValidationError
from ragdocs.search import parse
from ragdocs.search.corpus import Corpus
from ragdocs.system.names import file_keys, link_key, link_keys
from ragdocs.text import frontmatter as metadata
from ragdocs.text.merge import merge
from ragdocs.types import Change, Discard, Document, Expect, Put, Source, Written
from ragdocs.verbs import page as answers
from ragdocs.verbs.memories.rename import Move, mentions, relink
from ragdocs.verbs.memories.revise import Edit, Revised, revise
from ragdocs.verbs.memories.write import APPEND_TRIES, check_content, check_kind, check_tags
from ragdocs.verbs.references import memory_path, new_path
from ragdocs.verbs.shapes import Edited, Renamed

# Lines shown above and below a change, and of a change: enough to see that it is the right place.
AROUND = 2
SHOWN_LINES = 12
SHOWN = 1200
KEY_LENGTH = 100


@dataclass(frozen=True, slots=True)
class Edits:
    """Changes of memories that leave most of their text alone."""

    corpus: Corpus
    budget: int

    def edit(self, filename: str, edit: Edit, expected_version: str | None = None) -> Edited:
        """Change a part of a memory.

        The rest, and what it replaces in history, keep their bytes.
        """
        name = memory_path(self.corpus, filename)
        edit = replace(edit, fields=_checked(edit.fields)) if edit.fields else edit
        for attempt in range(APPEND_TRIES):
            before = self._read(name)
            if expected_version and expected_version != before.version:
                raise self._stale(before, edit, expected_version)
            revised = revise(before.text, before.path, edit)
            if revised.text == before.text:
                return self._edited(
                    "unchanged", before.path, revised, Written(before.path, before.version)
                )
            check_content(revised.text)
            try:
                written = self.corpus.commit(
                    [Put(before.path, revised.text, before.version)], "edit"
                )[0]
            except ConflictError as error:
                if expected_version:
                    raise self._stale(self._read(name), edit, expected_version) from error
                if attempt == APPEND_TRIES - 1:
                    raise
            else:
                return self._edited("edited", before.path, revised, written)
        raise AssertionError  # the loop returns or raises

    def rename(self, filename: str, new_name: str, expected_version: str | None = None) -> Renamed:
        """Give a memory another name and rewrite the links that would no longer reach it.

        All of it, or nothing.
        """
        old, new = memory_path(self.corpus, filename), new_path(self.corpus, new_name)
        # Links that were written by hand a moment ago count too.
        unread = self.corpus.sync().skipped
        source = self._read(old)
        if source.path == new:
            raise ValidationError(f"{new} is its name already", "Give another new_name")
        move, warnings = self._move(source, new)
        warnings += [
            f"links in {path} are as they were: {reason}" for path, reason in unread.items()
        ]
        text, own = relink(source.text, source.path, move)
        discard = Discard(source.path, expected_version or source.version, trash=False)
        changes: list[Change] = [Put(new, _mark(source) + text, Expect.ABSENT), discard]
        files = {new: own} if own else {}
        for path in self._pointing(move):
            try:
                other = self._read(path)
            except RagdocsError as error:
                warnings.append(f"links in {path} are as they were: {error}")
                continue
            text, count = relink(other.text, path, move)
            if count:
                changes.append(Put(path, text, other.version))
                files[path] = count
        written = self.corpus.commit(changes, "rename")
        warnings += [warning for one in written for warning in answers.removed(one)]
        shown = dict(answers.within(files.items(), self.budget // 2))
        if len(shown) < len(files):
            warnings.append(
                f"{len(files) - len(shown)} more files with rewritten links are not listed"
            )
        return Renamed(
            status="renamed",
            filename=new,
            previous=source.path,
            path=self.corpus.store.locate(new),
            version=written[0].version,
            links=sum(files.values()),
            files=shown,
            warnings=answers.within(warnings, self.budget // 4),
        )

    def _read(self, name: str) -> Source:
        source = self.corpus.store.read(name)
        if source.problems:
            raise ParseError(
                f"{source.path} is {source.problems[0]}",
                "Save it as UTF-8 first: nothing was changed",
            )
        return source

    def _stale(self, current: Source, edit: Edit, expected: str) -> ConflictError:
        """Tell what the edit would have made of the text it was meant for.

        And what it makes of the one there now.
        """
        base = yours = merged = ""
        overlaps = 0
        with suppress(RagdocsError):
            merged = revise(current.text, current.path, edit).text
        with suppress(RagdocsError):
            base = self.corpus.versioned.recover(expected)
            yours = revise(base, current.path, edit).text
            if not merged:
                both = merge(*(text.replace("\r\n", "\n") for text in (base, current.text, yours)))
                merged, overlaps = both.text, both.overlaps
        message = f"{current.path} changed since version {expected[:16]} was read"
        hint = "Look at the text there now, and repeat the edit with its version"
        error = ConflictError(
            message, hint, theirs=current.text, yours=yours, version=current.version
        )
        error.base, error.merged, error.overlaps = base, merged, overlaps
        return error

    def _edited(self, status: str, name: str, revised: Revised, written: Written) -> Edited:
        first = revised.text.count("\n", 0, revised.start) + 1
        last = first + revised.text.count("\n", revised.start, max(revised.start, revised.stop - 1))
        lines = revised.text.replace("\r\n", "\n").split("\n")
        low, high = max(1, first - AROUND), min(len(lines), first + SHOWN_LINES, last + AROUND)
        return Edited(
            status=status,
            filename=name,
            path=self.corpus.store.locate(name),
            version=written.version,
            places=revised.places,
            lines=f"{low}-{high}",
            # What was taken out of the file may not come back in the answer.
            content="" if written.removed else answers.cut("\n".join(lines[low - 1 : high]), SHOWN),
            warnings=answers.removed(written),
        )

    def _move(self, source: Source, new: str) -> tuple[Move, list[str]]:
        """Find out which names no longer mean the file.

        And which are left because they mean others as well.
        """
        lane = self.corpus.lane
        before = parse.parse(source, lane).document
        after = parse.parse(replace(source, path=new), lane).document
        others = [
            link_keys(one) for one in self.corpus.index.documents() if one.path != source.path
        ]
        taken = {name for each in others for name in each}
        # Who wrote the file's name meant the file, even where its title happens to be the same
        # word.
        lost = {*file_keys(source.path)} - {*file_keys(new)}
        lost |= {*link_keys(before)} - {*link_keys(after)}
        exact = {link_key(source.path), link_key(source.path.removesuffix(".md"))}
        shared = (lost & taken) - exact
        stem = new.removesuffix(".md").rpartition("/")[2]
        short = stem if link_key(stem) not in taken else new.removesuffix(".md")
        pointing = self.corpus.index.links_to(sorted(shared)) if shared else {}
        warnings = [
            f"links to {', '.join(sorted(shared))} are as they were: others have that name too"
        ]
        move = Move(source.path, new, lane.base, frozenset(lost - shared), short)
        return move, warnings if any(pointing.values()) else []

    def _pointing(self, move: Move) -> list[str]:
        """List the other memories that link to the file, in the text or in the frontmatter."""
        index = self.corpus.index
        linked = index.links_to(sorted(move.lost))

        def points(document: Document) -> bool:
            return document.id in linked or mentions([document.source, dict(document.extra)], move)

        return [one.path for one in index.documents() if one.path != move.old and points(one)]


def _checked(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields as they may be written."""
    for key in fields:
        if not key.strip() or len(key) > KEY_LENGTH or "\n" in key or "\r" in key:
            raise ValidationError(
                f"{key[:60]!r} is not the name of a field", "Use one word, such as status"
            )
    checked = dict(fields)
    if isinstance(tags := checked.get("tags"), list | str):
        words = tags.split(",") if isinstance(tags, str) else tags
        checked["tags"] = check_tags([metadata.as_text(word) for word in words])
    if checked.get("type") is not None:
        check_kind(metadata.as_text(checked["type"]))
    return checked


def _mark(source: Source) -> str:
    """Return the byte order mark that reading took off, if there was one."""
    return "\ufeff" if source.size > len(source.text.encode()) else ""
