"""Changing a part of a memory, and giving it another name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ragdocs.errors import ConflictError, ParseError, RagdocsError, ValidationError
from ragdocs.search import parse
from ragdocs.search.corpus import Corpus
from ragdocs.system.names import file_keys, link_key, link_keys
from ragdocs.text import frontmatter
from ragdocs.text.checks import check_content
from ragdocs.text.merge import propose
from ragdocs.types import Change, Discard, Expect, Put, Source, Written
from ragdocs.verbs.memories import record
from ragdocs.verbs.memories.rename import Move, mentions, relink
from ragdocs.verbs.memories.revise import Edit, Revised, revise
from ragdocs.verbs.memories.write import APPEND_TRIES
from ragdocs.verbs.references import memory_path, new_path

KEY_LENGTH = 100


@dataclass(frozen=True, slots=True)
class EditedMemory:
    """A memory of which a part was changed, or nothing if the text was that already."""

    status: str
    path: str
    location: str
    revised: Revised
    written: Written


@dataclass(frozen=True, slots=True, kw_only=True)
class RenamedMemory:
    """A memory under its new name; `links` counts the links that were rewritten in each memory."""

    previous: str
    path: str
    location: str
    links: Mapping[str, int]
    written: Sequence[Written]
    warnings: Sequence[str]


@dataclass(frozen=True, slots=True)
class Edits:
    """Changes of memories that leave most of their text alone."""

    corpus: Corpus

    def edit(
        self,
        filename: str,
        edit: Edit,
        expected_version: str | None = None,
    ) -> EditedMemory:
        """Change a part of a memory; the rest keeps its bytes, history the replaced text."""
        path = memory_path(self.corpus, filename)
        if edit.fields:
            edit = replace(edit, fields=_checked(edit.fields))
        for attempt in range(APPEND_TRIES):
            before = self._read(path)
            if expected_version and expected_version != before.version:
                raise self._stale(before, edit, expected_version)
            revised = revise(before.text, edit)
            if revised.text == before.text:
                unchanged = Written(before.path, before.version)
                return self._edited("unchanged", before.path, revised, unchanged)
            check_content(revised.text)
            put = Put(before.path, revised.text, before.version)
            try:
                written = self.corpus.commit([put], "edit")[0]
            except ConflictError as error:
                if expected_version:
                    raise self._stale(self._read(path), edit, expected_version) from error
                if attempt == APPEND_TRIES - 1:
                    raise
            else:
                return self._edited("edited", before.path, revised, written)
        raise AssertionError  # the loop returns or raises

    def rename(
        self,
        filename: str,
        new_name: str,
        expected_version: str | None = None,
    ) -> RenamedMemory:
        """Give a memory another name and rewrite the links that would no longer reach it.

        All of it, or nothing.
        """
        old = memory_path(self.corpus, filename)
        new = new_path(self.corpus, new_name)
        # Links that were written by hand a moment ago count too.
        unread = self.corpus.sync().skipped
        source = self._read(old)
        if source.path == new:
            raise ValidationError(f"{new} is already its name", "Give another new_name")
        move, warnings = self._move(source, new)
        for path, reason in unread.items():
            warnings.append(f"links in {path} are as they were: {reason}")
        text, count = relink(source.text, source.path, move)
        text = _byte_order_mark(source) + text
        changes: list[Change] = [
            Put(new, text, Expect.ABSENT),
            Discard(source.path, expected_version or source.version, trash=False),
        ]
        counts = {new: count}
        for put, count in self._relinked(move, warnings):
            changes.append(put)
            counts[put.path] = count
        written = self.corpus.commit(changes, "rename")
        return RenamedMemory(
            previous=source.path,
            path=new,
            location=self.corpus.store.locate(new),
            links={path: count for path, count in counts.items() if count},
            written=written,
            warnings=warnings,
        )

    def _read(self, path: str) -> Source:
        source = self.corpus.store.read(path)
        if source.problems:
            raise ParseError(
                f"{source.path} is {source.problems[0]}",
                "Save it as UTF-8 first: nothing was changed",
            )
        return source

    def _stale(self, current: Source, edit: Edit, expected: str) -> ConflictError:
        """Return the conflict of an edit that was meant for another version of the text.

        With the text it would have made of that version, and of the one there now.
        """
        error = ConflictError(
            f"{current.path} changed since version {expected[:16]} was read",
            "Look at the text there now, and repeat the edit with its version",
            theirs=current.text,
            version=current.version,
        )
        with suppress(RagdocsError):
            error.base = self.corpus.versioned.recover(expected)
            error.yours = revise(error.base, edit).text
            propose(error, error.base)
        with suppress(RagdocsError):
            # An edit that can be made in the text there now needs no merge.
            error.merged = revise(current.text, edit).text
            error.overlaps = 0
        return error

    def _edited(
        self,
        status: str,
        path: str,
        revised: Revised,
        written: Written,
    ) -> EditedMemory:
        return EditedMemory(status, path, self.corpus.store.locate(path), revised, written)

    # --- renaming ---

    def _move(self, source: Source, new: str) -> tuple[Move, list[str]]:
        """Find the names that no longer mean the file, and warn of those that others have too."""
        lane = self.corpus.lane
        before = parse.parse(source, lane).document
        after = parse.parse(replace(source, path=new), lane).document
        taken = self._names_of_others(source.path)
        # Who wrote the file's name meant the file, even where its title happens to be the same
        # word.
        lost = {*file_keys(source.path)} - {*file_keys(new)}
        lost |= {*link_keys(before)} - {*link_keys(after)}
        name = source.path.removesuffix(".md")
        exact = {link_key(source.path), link_key(name)}
        shared = (lost & taken) - exact
        full_name = new.removesuffix(".md")
        short = full_name.rpartition("/")[2]
        if link_key(short) in taken:
            short = full_name
        lost -= shared
        move = Move(source.path, new, lane.base, frozenset(lost), short)
        return move, self._shared_warnings(shared)

    def _names_of_others(self, path: str) -> set[str]:
        names: set[str] = set()
        for document in self.corpus.documents():
            if document.path != path:
                names.update(link_keys(document))
        return names

    def _shared_warnings(self, names: set[str]) -> list[str]:
        if not names:
            return []
        links = self.corpus.links(sorted(names))
        if not any(links.values()):
            return []
        listed = ", ".join(sorted(names))
        return [f"links to {listed} are as they were: others have that name too"]

    def _relinked(self, move: Move, warnings: list[str]) -> list[tuple[Put, int]]:
        """Return the other memories with their links rewritten, and how many links each had.

        One that cannot be read is left alone, with a warning.
        """
        relinked = []
        for path in self._pointing(move):
            try:
                source = self._read(path)
            except RagdocsError as error:
                warnings.append(f"links in {path} are as they were: {error}")
                continue
            text, count = relink(source.text, path, move)
            if count:
                relinked.append((Put(path, text, source.version), count))
        return relinked

    def _pointing(self, move: Move) -> list[str]:
        """List the other memories that link to the file, in the text or in the frontmatter."""
        linked = self.corpus.links(sorted(move.lost))
        paths = []
        for document in self.corpus.documents():
            if document.path == move.old:
                continue
            fields = [document.source, dict(document.extra)]
            if document.id in linked or mentions(fields, move):
                paths.append(document.path)
        return paths


def _checked(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields as they may be written."""
    for key in fields:
        if not key.strip() or len(key) > KEY_LENGTH or "\n" in key or "\r" in key:
            raise ValidationError(
                f"{key[:60]!r} is not the name of a field", "Use one word, such as status"
            )
    checked = dict(fields)
    if isinstance(checked.get("tags"), list | str):
        checked["tags"] = record.field_tags(checked["tags"])
    if checked.get("type") is not None:
        record.check_kind(frontmatter.as_text(checked["type"]))
    return checked


def _byte_order_mark(source: Source) -> str:
    """Return the byte order mark that reading took off, if there was one."""
    if source.size > len(source.text.encode()):
        return "\ufeff"
    return ""
