"""The commits of a project's repository as texts, which are only read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ragdocs.errors import NotFoundError, UnavailableError
from ragdocs.stores.git.ledger import (
    LOG_TERMS,
    CommitLog,
    Ledger,
    Record,
    Refs,
    moved_ref,
    select,
)
from ragdocs.system import git, repository
from ragdocs.types import Scan, Source

# Paths of one commit; one that touches more is a move or an import, and is about none of them.
MOST_PATHS = 100

_NAME = re.compile(r"(?P<hash>[0-9a-f]{40,64})\.md")


class CommitStore:
    """The commits that the head of a project's repository leads to.

    Each is one text, named by its hash.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        top = git.top(root)
        # Below the top of a repository, only commits that touch this folder count.
        is_part = top is not None and top != root
        self._log = CommitLog(root, LOG_TERMS, self._refs, is_part=is_part)
        self._stamps: Mapping[str, str] = {}
        self._stamped = Ledger()
        self._git_folder: Path | None = None

    def scan(self, paths: Iterable[str] | None = None) -> Scan:
        """List all commits, or those whose names begin as these do.

        A repository that cannot be read is unreadable, never empty.
        """
        try:
            stamps = self._current_stamps()
        except UnavailableError as error:
            git.warn(str(error))
            return Scan({}, {"": str(error)})
        return select(stamps, paths)

    def read(self, path: str) -> Source:
        """Read one commit as a text."""
        record = None
        name = _NAME.fullmatch(path)
        if name:
            record = self._log.ledger.records.get(name["hash"])
        if record is None:
            raise NotFoundError(f"there is no commit {path[:200]!r}")
        message = self._log.message(record.hash)
        return Source(
            path=path,
            text=_text(record, message),
            version=record.hash,
            stamp=record.hash,
            size=len(message.encode()),
            modified_at=record.at,
            card=_card(record, message),
        )

    def locate(self, path: str) -> str:
        """Return the repository and the name of a commit in it."""
        if not path:
            return str(self.root)
        return f"{self.root} {path.removesuffix('.md')}"

    def watched(self) -> list[tuple[Path, bool]]:
        """List the folders where refs are moved, each with whether all below it counts."""
        # The watcher calls this every second, so git is asked once.
        if self._git_folder is None:
            self._git_folder = git.common_dir(self.root)
        if self._git_folder is None:
            return []
        folders = [(self._git_folder, False), (self._git_folder / "refs", True)]
        return [(folder, is_deep) for folder, is_deep in folders if folder.is_dir()]

    def relative(self, path: str) -> str | None:
        """Return "", which stands for everything, if a file moves refs; else None."""
        if self._git_folder is None:
            return None
        return moved_ref(path, self._git_folder)

    def _current_stamps(self) -> Mapping[str, str]:
        with self._log.turn:
            ledger = self._log.refresh()
            if ledger is not self._stamped:
                self._stamps = {f"{name}.md": name for name in ledger.records}
                self._stamped = ledger
            return self._stamps

    def _refs(self) -> Refs:
        # A repository that cannot be trusted is reported as a problem by git.run.
        if repository.find(self.root) is None:
            return Refs()
        terms = replace(LOG_TERMS, codes=(0, 1))
        out = git.run(self.root, ["rev-parse", "--verify", "--quiet", "HEAD"], terms=terms)
        head = out.decode().strip()
        if not head:
            return Refs()
        return Refs(head=head, tips=frozenset({head}))


def _text(record: Record, message: str) -> str:
    """Return a message with the paths it is about, so that it is found by them too."""
    if not record.paths:
        return message
    paths = "\n".join(f"- {path}" for path, _ in record.paths[:MOST_PATHS])
    return f"{message.strip()}\n\nChanged:\n\n{paths}"


def _card(record: Record, message: str) -> dict[str, object]:
    """Return the metadata of a commit; the folders of its files count as changed too."""
    changed = [path for path, _ in record.paths[:MOST_PATHS]]
    folders: set[str] = set()
    for path in changed:
        folders.update(_folders(path))
    return {
        "title": message.strip().partition("\n")[0],
        "created_at": record.at.isoformat(),
        "source": record.author,
        "tags": [record.author, record.email],
        "git": {"commit": record.short, "files_changed": [*changed, *sorted(folders)]},
    }


def _folders(path: str) -> Iterator[str]:
    parts = path.split("/")[:-1]
    for depth in range(len(parts), 0, -1):
        yield "/".join(parts[:depth])
