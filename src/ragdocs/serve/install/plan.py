"""What an installation would change, file by file, and the writing of it."""

from __future__ import annotations

import contextlib
import difflib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ragdocs.errors import ConflictError, ParseError, RagdocsError
from ragdocs.serve.install import records
from ragdocs.serve.install.parts import Part
from ragdocs.serve.install.records import Record
from ragdocs.serve.install.target import Target, check_writable, look
from ragdocs.system import files
from ragdocs.text import jsonc

CONTEXT_LINES = 2


@dataclass(slots=True)
class Change:
    """One file: which parts it gets or loses, its bytes before and after, or why it stays."""

    parts: list[Part]
    target: Target | None = None
    after: bytes | None = None
    reason: str = ""
    hint: str = ""
    backup: str = ""
    # Other clients that still need our part in this file.
    others: list[str] = field(default_factory=list)
    made_keys: list[list[str]] = field(default_factory=list)

    @property
    def file(self) -> Path:
        """The file as the client calls it."""
        return self.parts[0].file

    @property
    def clients(self) -> list[str]:
        """The clients that read it."""
        return list(dict.fromkeys(part.client.name for part in self.parts))

    @property
    def is_refused(self) -> bool:
        """Whether the file cannot be changed as wanted."""
        return bool(self.reason)

    @property
    def is_needed(self) -> bool:
        """Whether the file changes at all."""
        return self.target is not None and not self.reason and self.target.data != self.after

    def kinds(self) -> list[str]:
        """Return which parts it is about."""
        return list(dict.fromkeys(part.kind for part in self.parts))

    def lines(self) -> str:
        """Return what a person can paste."""
        return "\n\n".join(part.lines for part in self.parts)

    def diff(self) -> str:
        """Return the change as a unified diff."""
        if self.target is None or not self.is_needed:
            return ""
        old_name = new_name = str(self.file)
        if self.target.data is None:
            old_name = "/dev/null"
        if self.after is None:
            new_name = "/dev/null"
        rows = difflib.unified_diff(
            _lines(self.target.data), _lines(self.after), old_name, new_name, n=CONTEXT_LINES
        )
        return "\n".join(row.rstrip("\n") for row in rows)


# Fills in what a file becomes.
_Work = Callable[[Change, Target], None]


def _lines(data: bytes | None) -> list[str]:
    text = (data or b"").decode("utf-8", "replace").replace("\r\n", "\n")
    return text.splitlines(keepends=True)


def installing(parts: Iterable[Part]) -> list[Change]:
    """Return what adding these parts changes."""
    return [_planned(group, _add) for group in _by_file(parts)]


def uninstalling(parts: Iterable[Part]) -> list[Change]:
    """Return what taking these parts back changes, without files that have nothing of ours."""
    changes = (_planned(group, _take) for group in _by_file(parts))
    return list(filter(_concerns_us, changes))


def _concerns_us(change: Change) -> bool:
    """Tell whether a file has something of ours, or may have it and cannot be changed."""
    if change.is_needed or change.others:
        return True
    if not change.is_refused or change.target is None:
        return False
    return b"ragdocs" in (change.target.data or b"")


def _by_file(parts: Iterable[Part]) -> Iterator[list[Part]]:
    """Group parts by the file that they really are in: CLAUDE.md may be a link to AGENTS.md."""
    groups: dict[str, list[Part]] = {}
    for part in parts:
        groups.setdefault(os.path.realpath(part.file), []).append(part)
    yield from groups.values()


def _planned(group: list[Part], work: _Work) -> Change:
    change = Change(group)
    try:
        change.target = look(group[0].file, group[0].inside)
        work(change, change.target)
        if change.is_needed:
            check_writable(change.target)
    except ParseError as error:
        change.reason = f"{group[0].file} cannot be changed: {error.message}"
    except RagdocsError as error:
        change.reason, change.hint = error.message, error.hint
    return change


def _add(change: Change, target: Target) -> None:
    before = text = target.text
    for part in change.parts:
        text = part.add(text)
        for key in part.keys:
            if jsonc.existing(before, key) < len(key):
                change.made_keys.append(list(key))
    change.after = target.data
    if text != before or target.data is None:
        change.after = target.encoded(text)


def _take(change: Change, target: Target) -> None:
    change.after = target.data
    if target.data is None:
        return
    record = records.read().get(str(target.path))
    if record is not None:
        change.others = [name for name in record.clients if name not in change.clients]
        if change.others:
            return
    before = target.text
    # An installation may have been without hooks.
    change.parts = _present(change.parts, before) or change.parts
    if record is not None and record.is_restorable and record.after == records.digest(target.data):
        change.after = None
        if record.backup:
            change.after = files.read_bytes(Path(record.backup), len(target.data) + 1_000_000)
        return
    text = _without(change.parts, before)
    if text == before:
        return
    is_ours = change.parts[0].is_whole
    if record is not None:
        text = _pruned(text, record.made_keys)
        is_ours = is_ours or record.is_new or record.is_made
    change.after = target.encoded(text)
    if is_ours and _is_bare(text, change.parts):
        change.after = None


def _present(parts: Sequence[Part], text: str) -> list[Part]:
    """Return the parts that a text has."""
    present = []
    for part in parts:
        if part.take(text) != text:
            present.append(part)
    return present


def _without(parts: Sequence[Part], text: str) -> str:
    for part in parts:
        text = part.take(text)
    return text


def _pruned(text: str, keys: Sequence[Sequence[str]]) -> str:
    """Take out objects and lists that were made for our entries and are empty now."""
    for key in keys:
        if jsonc.existing(text, key) < len(key):
            continue
        value = jsonc.loads(text)
        for part in key:
            value = value[part]
        if value in ({}, []):
            text = jsonc.remove(text, key)
    return text


def _is_bare(text: str, parts: Sequence[Part]) -> bool:
    """Tell whether a text holds no more than a file of ours without our parts, however formatted.

    A client may have written it anew. A comment is of a person, and no JSON.
    """
    if not text.strip():
        return True
    ours = ""
    for part in parts:
        ours = part.add(ours)
    ours = _without(parts, ours)
    for part in parts:
        ours = _pruned(ours, part.keys)
    try:
        return bool(json.loads(text) == json.loads(ours))
    except ValueError:
        return False


# --- writing ---


def write(change: Change, *, is_install: bool) -> None:
    """Put a change on disk: back up, replace the file whole, and note how to take it back."""
    target = change.target
    assert target is not None
    _check_unchanged(target)
    earlier = records.read().get(str(target.path))
    if change.others:
        assert earlier is not None
        records.write(target.path, replace(earlier, clients=change.others))
        return
    if is_install:
        record = _record(change, target, earlier)
        if change.after is not None:
            files.write_atomic(target.path, change.after)
        records.write(target.path, record)
        return
    if change.after is None:
        files.remove(target.path)
        _remove_folders(earlier)
    else:
        if earlier is None or records.digest(change.after) != _digest_of(earlier.backup):
            assert target.data is not None
            change.backup = records.back_up(target.path, target.data)
        files.write_atomic(target.path, change.after)
    records.write(target.path, None)
    if earlier is not None and earlier.backup and earlier.backup != change.backup:
        files.remove(Path(earlier.backup), missing_ok=True)


def _digest_of(backup: str) -> str:
    if not backup:
        return ""
    try:
        return records.digest(files.read_bytes(Path(backup)))
    except RagdocsError:
        return ""


def _check_unchanged(target: Target) -> None:
    """Refuse to write over what a client wrote since the file was read."""
    if look(target.named, target.path.parent).data != target.data:
        raise ConflictError(
            f"{target.named} has changed in the meantime", "Try it again with the client closed"
        )


def _record(change: Change, target: Target, earlier: Record | None) -> Record:
    """Back a file up and return its record; the first one is kept while only we change the file."""
    assert change.after is not None
    clients = change.clients
    keys = change.made_keys
    after = records.digest(change.after)
    is_as_we_left_it = earlier is not None and records.digest(target.data or b"") == earlier.after
    if not is_as_we_left_it and not _has_ours(change, target):
        earlier = None
    if earlier is not None:
        clients = list(dict.fromkeys([*earlier.clients, *clients]))
        keys = earlier.made_keys + keys
    if target.data is None:
        made = _make_folders(target.path.parent)
        return Record(after, "", is_new=True, made_folders=made, made_keys=keys, clients=clients)
    change.backup = records.back_up(target.path, target.data)
    if earlier is not None and is_as_we_left_it:
        if earlier.is_restorable:
            _forget(change.backup, earlier.backup)
            change.backup = earlier.backup
        return replace(earlier, after=after, made_keys=keys, clients=clients)
    if _has_ours(change, target):
        # It cannot be taken back to a text that has something of ours.
        if earlier is not None and (earlier.is_new or earlier.is_made):
            made = earlier.made_folders
            return Record(after, is_made=True, made_folders=made, made_keys=keys, clients=clients)
        return Record(after, "", made_keys=keys, clients=clients)
    return Record(after, change.backup, made_keys=keys, clients=clients)


def _forget(backup: str, first: str) -> None:
    if backup != first:
        files.remove(Path(backup), missing_ok=True)


def _has_ours(change: Change, target: Target) -> bool:
    return bool(_present(change.parts, target.text))


def _make_folders(folder: Path) -> list[str]:
    """Make the folders of a new file and return them, the innermost first.

    Those that were made for another file of ours count, too: the last one to go removes them.
    """
    made_before: set[str] = set()
    for record in records.read().values():
        made_before.update(filter(folder.is_relative_to, record.made_folders))
    missing = []
    for parent in (folder, *folder.parents):
        if parent.exists():
            break
        missing.append(str(parent))
    files.make_directories(folder)
    return [*missing, *sorted(made_before, key=len, reverse=True)]


def _remove_folders(record: Record | None) -> None:
    if record is None:
        return
    for folder in record.made_folders:
        # Others may have put something there.
        with contextlib.suppress(OSError):
            Path(folder).rmdir()
