"""Runs actions of whichever ragdocs is on the path, and prints their processor time.

It is started with the source of any commit: only what all of them have is used. Each line of
standard input is a JSON list of an action's name and its arguments; each line of output is a list
of milliseconds.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ragdocs import config
from ragdocs.workspace import Workspace


class Probe:
    """One project, with the vectors of one model."""

    def __init__(self, root: Path, model: str) -> None:
        flags = {"embedding.model": model}
        self._workspace = Workspace(config.load(root, project=root, flags=flags))
        self._workspace.load()
        self._workspace.sync()
        self._workspace.embed()
        self._workspace.save()

    def search(self, queries: Sequence[str]) -> list[float]:
        """Search the documentation."""
        return [_milliseconds(self._workspace.documents.search, query) for query in queries]

    def create(self, first: int, text: str) -> list[float]:
        """Write ten memories; equal texts would be kept only once in the history."""
        memories = self._workspace.memories
        milliseconds = []
        for name in _names(first):
            milliseconds.append(_milliseconds(memories.create, name, f"{text}{name}\n", ["bench"]))
        return milliseconds

    def append(self, first: int, text: str) -> list[float]:
        """Add to the ten memories that were written."""
        return [
            _milliseconds(self._workspace.memories.append, name, text) for name in _names(first)
        ]

    def index(self) -> list[float]:
        """Build the index of the documentation from its files, vectors included."""
        return [_milliseconds(self._workspace.rebuilt, "docs")]


def _names(first: int) -> list[str]:
    return [f"bench-{first + number}.md" for number in range(10)]


def _milliseconds(action: Callable[..., object], *arguments: object) -> float:
    started = time.process_time()
    action(*arguments)
    return (time.process_time() - started) * 1000


def main() -> None:
    probe = Probe(Path(sys.argv[1]), sys.argv[2])
    print("[]", flush=True)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(getattr(probe, name)(*arguments)), flush=True)


if __name__ == "__main__":
    main()
