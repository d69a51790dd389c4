"""A server whose address names a standby: it searches and reads, and cannot write."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from tests.conftest import Project
from tests.postgres import Cluster
from tests.team.conftest import Run
from tests.team.servers import until


@pytest.fixture
def standby(cluster: Cluster) -> Iterator[Cluster]:
    """A server that follows the one of all tests."""
    follower = Cluster(standby_of=cluster)
    follower.start()
    yield follower
    follower.remove()


def test_a_standby_answers_as_the_primary_server_and_says_that_it_cannot_write(
    shop: Project, run: Run, standby: Cluster, team_address: str
) -> None:
    shop.doc("cranes.md", "# Cranes\n\nCranes lift grain.\n")
    assert run("push").code == 0
    assert run("memory", "create", "plan.md", "--content", "Cranes lift grain.").code == 0
    with psycopg.connect(team_address, autocommit=True) as session:
        written = session.execute("SELECT pg_current_wal_lsn()").fetchone()
    assert written is not None

    def has_followed() -> bool:
        with psycopg.connect(standby.address, autocommit=True) as session:
            statement = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
            return session.execute(statement, written).fetchone() == (True,)

    until(has_followed)
    replica = standby.address_of(team_address.rpartition("/")[2])
    there = ("--set", f"team.database={replica}")
    for words in (["docs", "search", "cranes"], ["recall", "grain"], ["memory", "read", "plan.md"]):
        answered = run(*words, *there)
        assert (answered.code, answered.err) == (0, "")
        assert answered.out == run(*words).out
    refused = run("memory", "create", "more.md", "--content", "x", *there)
    assert refused.code == 1
    assert "can only be read now" in refused.err
    assert "a standby, 0.0 s behind" in run("team", "status", *there).out
    primary = run("team", "status", "--json").answer
    assert (primary["standby"], primary["standbys"]) == (False, 1)
    assert "the primary server, 1 standbys, the slowest" in run("team", "status").out
