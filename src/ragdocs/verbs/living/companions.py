"""Which texts were edited in the same commits as which files."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ragdocs.errors import RagdocsError
from ragdocs.system.refs import Refs
from ragdocs.verbs import file_history
from ragdocs.verbs.living.changes import HEAD

MOST_COMMITS = 1_500
# A commit of more files says nothing about any two of them.
MOST_FILES = 60
# Commits of a file that count as not having edited a text: one or two say little.
UNSEEN = 2


class Companion(NamedTuple):
    """A text that was edited in `together` of the `commits` of a file."""

    path: str
    together: int
    commits: int
    # From 0 to 1: how much more often than with any other file.
    weight: float


@dataclass
class _Log:
    """The paths that each commit changed, by the names that they have at the last one."""

    commits: list[list[str]] = field(default_factory=list)
    by_path: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))


class Companions:
    """What the last commits of a project say about texts that go with files."""

    def __init__(self, root: Path, refs: Refs) -> None:
        self._root = root
        self._refs = refs
        self._commit = ""
        self._log = _Log()

    def of(self, path: str, texts: Collection[str], base: str) -> list[Companion]:
        """Return the texts that were edited together with a file before a commit."""
        log = self._read(base)
        numbers = log.by_path.get(path, ())
        together: Counter[str] = Counter()
        for number in numbers:
            together.update(name for name in log.commits[number] if name in texts)
        companions = []
        for text, count in together.items():
            share = count / len(numbers)
            always = len(log.by_path[text]) / len(log.commits)
            surplus = max(0.0, 1 - always / share)
            weight = count / (len(numbers) + UNSEEN) * surplus
            companions.append(Companion(text, count, len(numbers), weight))
        return companions

    def _read(self, base: str) -> _Log:
        commit = base
        if base == HEAD:
            commit = self._refs.head().commit
        if commit and commit != self._commit:
            self._log = self._read_log(commit)
            self._commit = commit
        return self._log

    def _read_log(self, commit: str) -> _Log:
        log = _Log()
        options = ["--no-merges", f"-n{MOST_COMMITS}"]
        try:
            commits = file_history.commits(self._root, options, [commit])
        except RagdocsError:
            # Without history there are no companions.
            return log
        names: dict[str, str] = {}
        for files in commits:
            paths = []
            for file in files:
                path = names.get(file.path, file.path)
                names[file.before] = path
                paths.append(path)
            if len(paths) <= MOST_FILES:
                for path in paths:
                    log.by_path[path].append(len(log.commits))
                log.commits.append(paths)
        return log
