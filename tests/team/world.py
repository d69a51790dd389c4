"""The world of the golden files with its texts in a team database."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from tests.golden import rims
from tests.golden.normal import Normal
from tests.golden.world import World
from tests.postgres import Cluster

from ragdocs import team


class TeamWorld(World):
    """The same files and commands; memories and documentation are rows of a database."""

    def __init__(self, base: Path, cluster: Cluster) -> None:
        super().__init__(base)
        self._cluster = cluster
        self._template = cluster.migrated()
        self.address = self._template
        # Where somebody finds a text is what must differ.
        folders = {
            # What a GitHub workflow reads has no colons, and other paths than from here.
            "team%3Aharbour@main/": "",
            "team%3Aharbour/": "",
            "team:harbour@main": "<project>",
            "team:harbour": "<project>",
            "team:lighthouse": "<other>",
        }
        self.normal = Normal({**self.normal.folders, **folders})

    @contextmanager
    def entered(self, scenario: str) -> Iterator[None]:
        """Run a block in this world, with the database as the team's."""
        names = {self.project: "harbour", self.other: "lighthouse", self.new: "new"}
        pairs = ",".join(f"{folder}={name}" for folder, name in names.items())
        with super().entered(scenario), pytest.MonkeyPatch.context() as patch:
            patch.setenv("RAGDOCS_DATABASE", self.address)
            patch.setenv("RAGDOCS_TEAM_PROJECTS", pairs)
            yield

    def move_in(self) -> None:
        """Bring the texts that were written by hand into the database."""
        run("team", "init")
        for folder in (self.project, self.other):
            place = ("--project", str(folder))
            run("team", "import", str(folder / ".memories"), "--as-is", *place)
            shutil.rmtree(folder / ".memories")
        run("push")
        run("push", "--branch", "main", "--project", str(self.other))

    def save(self) -> None:
        """Keep the present state, also that of the database."""
        super().save()
        team.disconnect()
        with psycopg.connect(self._cluster.address, autocommit=True) as session:
            name = self._template.rpartition("/")[2]
            session.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
            )

    def restore(self) -> None:
        """Go back to the state that was saved, with a database of its own."""
        super().restore()
        self.leave()
        self.address = self._cluster.create(self._template.rpartition("/")[2])

    def leave(self) -> None:
        """Forget the database of the last scenario."""
        team.disconnect()
        if self.address != self._template:
            self._cluster.drop(self.address)


def run(*words: str) -> None:
    ended = rims.command(words)
    assert ended.code == 0, ended.err
