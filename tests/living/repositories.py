"""Projects that are git repositories, with a clock that tests move."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

from hypothesis import HealthCheck, settings
from tests.conftest import NOW, Project
from tests.plain_git import plain_git

from ragdocs.types import Document
from ragdocs.verbs.living.drift import LinkState
from ragdocs.workspace import Workspace

STEP = "def step_{0}():\n    # This is step {0}.\n    return {0}\n\n\n"
CODE = "".join(STEP.format(number) for number in range(10))
# With RAGDOCS_EXPLORE=50 there are 50 times as many stories, and new ones.
RANDOM_HISTORIES = settings(
    max_examples=8 * int(os.environ.get("RAGDOCS_EXPLORE", "1")),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class Repository:
    """A project with history: every commit is a minute after the last thing that happened."""

    def __init__(self, root: Path) -> None:
        root.mkdir(exist_ok=True)
        self.project = Project(root)
        self.project.flags["embedding.model"] = "none"
        self.project.clock = lambda: self.now
        self.root = root
        self.now: datetime = NOW
        self.git("init", "--quiet")
        self._workspace: Workspace | None = None

    def git(self, *words: str, check: bool = True) -> str:
        date = self.now.isoformat()
        return plain_git(
            self.root, *words, check=check, GIT_COMMITTER_DATE=date, GIT_AUTHOR_DATE=date
        )

    def tick(self) -> None:
        self.now += timedelta(minutes=1)

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def commit(self, message: str = "change") -> str:
        self.tick()
        self.git("add", "-A", "--", ":!.memories")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def open(self) -> Workspace:
        self._workspace = self.project.open()
        return self._workspace

    def document(self, workspace: Workspace, path: str) -> Document:
        document = workspace.corpus("memory").get(path)
        assert document is not None
        return document

    def states(self, workspace: Workspace, path: str) -> dict[str, LinkState]:
        """Return what became of the links of a memory, by target."""
        states = {}
        for state in workspace.living.drift.states(self.document(workspace, path)):
            name = state.link.target
            if state.link.heading:
                name += f"#{state.link.heading}"
            states[name] = state
        return states


def lose_record(home: Path) -> None:
    """Delete what is known of the links of all working copies."""
    for file in (home / "state/ragdocs").glob("links.sqlite*"):
        file.unlink()
