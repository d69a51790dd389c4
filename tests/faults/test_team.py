"""A team database that is killed, cut off, slow, full and replaced keeps what it acknowledged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests import postgres
from tests.faults import scoreboard
from tests.faults.ledger import Toll
from tests.faults.team import check_promises, check_vectors
from tests.faults.team_writer import served
from tests.postgres import Cluster, project_scope

from ragdocs.errors import DisconnectedError
from ragdocs.lanes import MEMORY
from ragdocs.stores.postgres.texts import RowStore
from ragdocs.system.postgres.database import Database
from ragdocs.types import Put

from .world import judge

if TYPE_CHECKING:
    from tests.tally import Tally


@pytest.fixture(scope="module")
def victim() -> Iterator[Cluster]:
    """A server that may be hurt; no other test uses it."""
    if reason := postgres.unavailable():
        pytest.skip(reason)
    cluster = Cluster()
    cluster.start()
    yield cluster
    cluster.remove()


def test_a_killed_server_has_all_that_was_acknowledged(victim: Cluster, tally: Tally) -> None:
    judge(scoreboard.team_kills(victim, 2, writers=4, between=8), tally)


def test_a_killed_server_of_ours_loses_nothing_and_others_finish_its_work(
    victim: Cluster, tally: Tally
) -> None:
    judge(scoreboard.team_server_kills(victim, 2, writers=2, between=3), tally)


def test_a_missing_vector_is_noticed(victim: Cluster) -> None:
    database = Database(victim.migrated())
    scope = project_scope(database, "shop")
    corpus = served(database, scope)
    corpus.versioned.commit([Put("a.md", "apple"), Put("b.md", "pear")])
    corpus.sync()
    toll = Toll()
    check_promises(database, scope, toll)
    assert not toll.problems
    check_vectors(database, scope, toll)
    assert toll.counts["without a vector"] == 4
    corpus.embed()
    toll = Toll()
    check_vectors(database, scope, toll)
    assert not toll.problems
    with database.maintaining() as session:
        session.execute("DELETE FROM vectors WHERE ctid = (SELECT min(ctid) FROM vectors)")
    check_promises(database, scope, toll)
    check_vectors(database, scope, toll)
    assert toll.counts["without a vector"] == 2
    database.close()
    victim.drop(database.address)


def test_a_cut_connection_makes_all_of_a_change_or_nothing(victim: Cluster, tally: Tally) -> None:
    judge(scoreboard.team_cuts(victim, 5), tally)


def test_a_slow_network_is_waited_for_and_a_still_one_is_told(
    victim: Cluster, tally: Tally
) -> None:
    judge(scoreboard.team_network(victim, 1), tally)


def test_a_full_disk_is_told_and_nothing_is_half_written(victim: Cluster, tally: Tally) -> None:
    rows = list(scoreboard.team_disk(victim, 1))
    if not rows:
        pytest.skip("no small file system can be mounted here")
    judge(rows, tally)


def test_a_transaction_whose_connection_is_cut_says_so(victim: Cluster) -> None:
    database = Database(victim.migrated())
    store = RowStore(database, project_scope(database, "shop"), MEMORY, writable=True)

    def write() -> None:
        with database.writing() as session:
            session.execute("INSERT INTO folders VALUES (%s, 'x', 'x')", [store.scope])
            (pid,) = session.execute("SELECT pg_backend_pid()").fetchall()[0]
            with database.maintaining() as other:
                other.execute("SELECT pg_terminate_backend(%s)", [pid])
            session.execute("SELECT 1")

    with pytest.raises(DisconnectedError, match="was lost"):
        write()
    with database.maintaining() as session:
        assert session.execute("SELECT FROM folders").fetchall() == []
    store.commit([Put("a.md", "x")])
    assert store.read("a.md").text == "x"
    database.close()
    victim.drop(database.address)


def test_a_standby_that_takes_over_has_all_that_was_acknowledged(
    victim: Cluster, tally: Tally
) -> None:
    judge(scoreboard.team_failover(victim), tally)
