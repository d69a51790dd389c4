"""What was installed where, so that it can be taken back exactly: a small file of the user."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ragdocs.errors import RagdocsError
from ragdocs.project import folders
from ragdocs.system import files
from ragdocs.system.locks import lock

FILE_NAME = "installed.json"
BACKUPS = "backups"
VERSION = 1
LARGEST = 10_000_000


@dataclass(frozen=True, slots=True)
class Record:
    """A file that has something of ours, as it was before and as we left it."""

    # SHA-256 of the bytes that we wrote.
    after: str
    # The copy of the bytes before; none if there was no file, or if it had something of ours.
    backup: str = ""
    is_new: bool = False
    # Whether there was no file, and others have written into ours since: it is removed if it is
    # bare without our entries, and never restored.
    is_made: bool = False
    # Folders that were made for it, the innermost first.
    made_folders: list[str] = field(default_factory=list)
    # Paths of keys that were made for our entries.
    made_keys: list[list[str]] = field(default_factory=list)
    # Who reads it.
    clients: list[str] = field(default_factory=list)

    @property
    def is_restorable(self) -> bool:
        """Whether what was there before is known."""
        return self.is_new or bool(self.backup)


def digest(data: bytes) -> str:
    """Return the name of some bytes."""
    return hashlib.sha256(data).hexdigest()


def folder() -> Path:
    """Return where records and backups are."""
    return Path(os.path.realpath(folders.state_dir()))


def read() -> dict[str, Record]:
    """Return the record of each file; none if there are none, or if they are damaged."""
    try:
        loaded = json.loads(files.read_bytes(folder() / FILE_NAME, LARGEST))
        entries: dict[str, Any] = loaded["files"]
        return {path: Record(**entry) for path, entry in entries.items()}
    except (RagdocsError, ValueError, KeyError, TypeError, AttributeError):
        # Without a record our entries are still found by what they say.
        return {}


def write(path: Path, record: Record | None) -> None:
    """Keep the record of a file, or forget it."""
    files.make_directories(folder(), 0o700)
    with lock(folder()):
        records = read()
        records.pop(str(path), None)
        if record is not None:
            records[str(path)] = record
        entries = {name: asdict(entry) for name, entry in records.items()}
        text = json.dumps({"version": VERSION, "files": entries}, indent=2)
        files.write_atomic(folder() / FILE_NAME, f"{text}\n".encode(), mode=0o600)


def back_up(path: Path, data: bytes) -> str:
    """Copy the bytes of a file for the user alone, and return the copy's path."""
    backups = folder() / BACKUPS
    files.make_directories(backups, 0o700)
    copy = backups / f"{digest(data)[:16]}-{path.name}"
    files.write_atomic(copy, data, mode=0o600)
    return str(copy)
