"""The feed of a team database: nothing is lost, in whatever order writers commit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any
from uuid import uuid4

import pytest
from tests.postgres import project_scope

from ragdocs.lanes import MEMORY
from ragdocs.stores.postgres.change_set import ChangeSetDraft
from ragdocs.stores.postgres.feed import Feed
from ragdocs.stores.postgres.texts import RowStore
from ragdocs.system.postgres.database import Database
from ragdocs.types import Put

from .test_postgres import NOON

ROUNDS, WRITERS, PATHS = 31, 10, 3
_NUMBERED = """
SELECT change_set, path FROM change_sets JOIN revisions USING (scope, change_set)
WHERE change_set > %s
"""


@pytest.fixture
def database(team_address: str) -> Iterator[Database]:
    database = Database(team_address, connections=WRITERS + 2)
    yield database
    database.close()


@pytest.fixture
def store(database: Database) -> RowStore:
    return RowStore(database, project_scope(database, "shop"), MEMORY, writable=True)


class OpenChange:
    """A change that is written and not committed yet."""

    def __init__(self, store: RowStore, *paths: str) -> None:
        self._transaction: AbstractContextManager[Any] = store.database.writing()
        session = self._transaction.__enter__()
        changes = [Put(path, path) for path in paths]
        draft = ChangeSetDraft(store.scope, changes, paths, uuid4(), NOON, MEMORY.largest)
        draft.look(session)
        draft.write(session, draft.plan(session), "create", "")

    def commit(self) -> None:
        self._transaction.__exit__(None, None, None)


class NumberReader:
    """Reads all change sets above the last number, as one would who does not know better."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._last = 0
        self.paths: set[str] = set()

    def read(self) -> None:
        with self._database.reading() as session:
            rows = session.execute(_NUMBERED, [self._last]).fetchall()
        for number, path in rows:
            self._last = max(self._last, number)
            self.paths.add(path)


def test_no_change_is_lost_by_writers_that_commit_out_of_order(
    store: RowStore, database: Database
) -> None:
    rng = random.Random(7)
    feed, naive = Feed(database, store.scope), NumberReader(database)
    cursor = feed.now()
    told: list[str] = []
    written = set()
    for turn in range(ROUNDS):
        changes = []
        for writer in range(WRITERS):
            paths = [f"{turn}-{writer}-{number}.md" for number in range(PATHS)]
            written.update(paths)
            changes.append(OpenChange(store, *paths))
        rng.shuffle(changes)
        for number, change in enumerate(changes):
            change.commit()
            if number % 3 == 0:
                cursor, new = feed.changes(cursor)
                told += new
                naive.read()
    cursor, new = feed.changes(cursor)
    told += new
    naive.read()
    assert len(written) == 930
    assert set(told) == written
    assert len(told) == 930, "nothing is told twice"
    assert len(written - naive.paths) > 100, "numbers alone would have been enough"


def test_a_transaction_that_takes_long_holds_nobody_up(store: RowStore, database: Database) -> None:
    feed = Feed(database, store.scope)
    cursor = feed.now()
    slow = OpenChange(store, "slow.md")
    store.commit([Put("quick.md", "x")])
    cursor, paths = feed.changes(cursor)
    assert paths == ["quick.md"]
    slow.commit()
    assert feed.changes(cursor)[1] == ["slow.md"]


def test_a_writer_wakes_up_those_who_wait(store: RowStore, database: Database) -> None:
    feed, other = Feed(database, store.scope), Feed(database, store.scope + 1)
    assert feed.wait(30), "what was written before anybody listened may have been missed"
    cursor, _ = feed.changes("")
    other.changes("")
    store.commit([Put("a.md", "x")])
    assert feed.wait(30)
    cursor, paths = feed.changes(cursor)
    assert paths == ["a.md"]
    assert not feed.wait(0.05)
    assert not other.wait(0), "another scope was meant"
    with database.maintaining() as session:
        session.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ '^LISTEN'"
        )
    assert feed.wait(30), "a new connection may have missed something"


@pytest.mark.parametrize("cursor", ["", "00000009/5:5:"])
def test_a_cursor_of_no_use_means_everything(
    store: RowStore, database: Database, cursor: str
) -> None:
    store.commit([Put("a.md", "x")])
    feed = Feed(database, store.scope)
    following, paths = feed.changes(cursor)
    assert paths == [""]
    assert feed.changes(following)[1] == []


def test_who_was_away_for_too_long_looks_at_everything(store: RowStore, database: Database) -> None:
    feed = Feed(database, store.scope)
    old = feed.now()
    store.commit([Put("a.md", "x")])
    feed.prune()
    assert feed.changes(old)[1] == ["a.md"]
    recent = feed.now()
    feed.prune(hours=-1)
    assert feed.changes(old)[1] == [""]
    assert feed.changes(recent)[1] == []
