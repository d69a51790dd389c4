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
        self._session = psycopg.connect(cluster.address, autocommit=True)
        # The number that the next transaction that writes had when the database was made.
        self._next_write = -1
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
        """Go back to the state that was saved, in a database to which nobody wrote since."""
        super().restore()
        if self._next_write == self.next_write():
            return
        self.forget()
        self.address = self._cluster.create(self._template.rpartition("/")[2])
        self._next_write = self.next_write()

    def next_write(self) -> int:
        """Return the number of the next transaction that writes; reading uses none up."""
        found = self._session.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")
        return int(found.fetchall()[0][0])

    def leave(self) -> None:
        """Forget the last database, and the server that has it."""
        self.forget()
        self._session.close()

    def forget(self) -> None:
        """Remove the database of the last scenarios."""
        team.disconnect()
        if self.address != self._template:
            self._cluster.drop(self.address)


def run(*words: str) -> None:
    ended = rims.command(words)
    assert ended.code == 0, ended.err
