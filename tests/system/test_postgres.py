"""A team database: its schema in steps, its errors in sentences, and what each caller may see."""

from __future__ import annotations

import dataclasses
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from tests.postgres import Cluster, free_port

from ragdocs import caller
from ragdocs.caller import Caller
from ragdocs.errors import DisconnectedError, ForbiddenError, RagdocsError, UnavailableError
from ragdocs.system.postgres import database as team_database
from ragdocs.system.postgres import migrations
from ragdocs.system.postgres.database import Database, without_password


def say_newer(session: psycopg.Connection) -> None:
    session.execute("INSERT INTO migrations VALUES (9999, 'sharding', 'x')")


def say_other(session: psycopg.Connection) -> None:
    session.execute("UPDATE migrations SET digest = 'x' WHERE number = 1")


def test_several_who_make_the_schema_at_once_make_it_once(cluster: Cluster) -> None:
    address = cluster.create()
    databases = [Database(address) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(migrations.migrate, databases))
    assert sorted(map(len, made)) == [0, 0, 0, len(migrations.all_migrations())]
    migrations.check(databases[0])
    for database in databases:
        database.close()
    cluster.drop(address)


def test_a_database_without_tables_says_how_to_make_them(cluster: Cluster) -> None:
    database = Database(cluster.create())
    with pytest.raises(UnavailableError, match=r"no tables of ragdocs yet.*team init"):
        migrations.check(database)
    database.close()
    cluster.drop(database.address)


@pytest.mark.parametrize(
    ("spoil", "reason"), [(say_newer, "newer ragdocs"), (say_other, "not the one of this ragdocs")]
)
def test_a_schema_of_another_version_is_refused_and_left_alone(
    database: Database, spoil: object, reason: str
) -> None:
    assert callable(spoil)
    with database.maintaining() as session:
        spoil(session)
    for step in (migrations.migrate, migrations.check):
        with pytest.raises(UnavailableError, match=reason):
            step(database)


def test_who_waits_for_a_connection_that_another_call_loses_is_told_so(cluster: Cluster) -> None:
    database = Database(cluster.create(), connections=1)
    errors: list[RagdocsError] = []

    def use() -> None:
        try:
            with database.session() as session:
                session.execute("SELECT 1")
        except RagdocsError as error:
            errors.append(error)

    use()
    waiter = threading.Thread(target=use)
    with pytest.raises(DisconnectedError, match="was lost: "):
        lose(database, waiter, cluster)
    waiter.join()
    (error,) = errors
    assert isinstance(error, DisconnectedError)
    assert "was lost while this call waited for it" in error.message
    database.close()
    cluster.drop(database.address)


def lose(database: Database, waiter: threading.Thread, cluster: Cluster) -> None:
    """Lose the only connection as soon as somebody waits for it, and let none be made anew."""
    name = database.address.rpartition("/")[2].partition("?")[0]
    with database.session() as session:
        waiter.start()
        while not is_in_queue(waiter):
            time.sleep(0.01)
        with psycopg.connect(cluster.address, autocommit=True) as other:
            other.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false".encode())
        session.execute("SELECT pg_terminate_backend(pg_backend_pid())")


def is_in_queue(thread: threading.Thread) -> bool:
    """Tell whether a thread waits in the queue of the pool."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        code = frame.f_code
        if code.co_name == "wait" and "psycopg_pool" in code.co_filename:
            return True
        frame = frame.f_back
    return False


def test_a_process_that_saw_older_tables_writes_nothing_into_newer_ones(
    database: Database,
) -> None:
    migrations.check(database)
    with database.maintaining() as session:
        session.execute("INSERT INTO projects (identity, name) VALUES ('before', 'before')")
    other = Database(database.address)
    with other.maintaining() as session:
        say_newer(session)
    other.close()
    for opened in (database.writing, database.maintaining):
        with pytest.raises(UnavailableError, match=r"made anew.*nothing was written"):
            write_project(opened)
    with (
        pytest.raises(UnavailableError, match="made anew"),
        database.writing(1, in_pipeline=True) as session,
    ):
        session.execute("SELECT 1")
    with caller.maintaining(), database.reading() as session:
        rows = session.execute("SELECT name FROM projects").fetchall()
    assert rows == [("before",)]
    # Whoever looks anew is told which step it is.
    with pytest.raises(UnavailableError, match="newer ragdocs"):
        migrations.check(database)


def write_project(opened: object) -> None:
    assert callable(opened)
    with opened() as session:
        session.execute("INSERT INTO projects (identity, name) VALUES ('after', 'after')")


def test_a_server_that_is_not_there_is_named_without_the_password() -> None:
    database = Database(f"postgresql://ann:pa55word@127.0.0.1:{free_port()}/team")
    with pytest.raises(UnavailableError, match="cannot be reached") as caught:
        migrations.check(database)
    assert "pa55word" not in str(caught.value)
    assert "RAGDOCS_DATABASE" in str(caught.value)


def test_a_password_that_ends_in_the_middle_is_not_shown_as_a_host() -> None:
    database = Database(f"postgresql://ann:pa55@pa55word@127.0.0.1:{free_port()}/team")
    with pytest.raises(UnavailableError, match=r"cannot be reached.*127\.0\.0\.1") as caught:
        migrations.check(database)
    assert "pa55" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://ann:pa55word@host/team",
        "postgresql://ann:pa55:word@host/team?x=y",
        "host=h password=pa55word user=u",
        "host=h password = 'pa55 pa55\\'pa55' user=u",
        "postgresql://ann:pa55@pa55/word@host/team",
    ],
)
def test_no_address_shows_its_password(text: str) -> None:
    assert "pa55" not in without_password(text)
    assert "***" in without_password(text)


def test_a_role_that_may_not_make_tables_is_told_so(cluster: Cluster) -> None:
    address = cluster.create()
    with psycopg.connect(address, autocommit=True) as session:
        session.execute("CREATE ROLE visitor LOGIN")
        session.execute("CREATE EXTENSION vector")
    name = address.rpartition("/")[2]
    database = Database(cluster.address_of(name, "visitor"))
    with pytest.raises((UnavailableError, ForbiddenError)):
        migrations.migrate(database)
    database.close()
    cluster.drop(address)


def test_callers_see_and_change_what_their_grants_allow(database: Database) -> None:
    with database.maintaining() as session:
        session.execute("INSERT INTO projects (identity, name) VALUES ('a', 'a'), ('b', 'b')")
        session.execute("INSERT INTO scopes (project, lane) SELECT project, 'memory' FROM projects")
        session.execute("CREATE TABLE things (scope int, text text)")
        session.execute("CALL protect_scoped('things')")
        session.execute("INSERT INTO things SELECT scope, 'secret ' || scope FROM scopes")
        session.execute(
            "INSERT INTO grants SELECT 'reader', project, 'reader' FROM projects WHERE name = 'a'"
        )
        session.execute(
            "INSERT INTO grants SELECT 'writer', project, 'writer' FROM projects WHERE name = 'a'"
        )
        session.execute("INSERT INTO grants VALUES ('everywhere', 0, 'reader')")
    seen = {}
    changed = {}
    for name in ("reader", "writer", "everywhere", "stranger", ""):
        caller.begin(dataclasses.replace(Caller(), name=name))
        with database.reading() as session:
            seen[name] = len(session.execute("SELECT text FROM things").fetchall())
        with database.writing() as session:
            changed[name] = session.execute("UPDATE things SET text = text").rowcount
    caller.begin(Caller())
    assert seen == {"reader": 1, "writer": 1, "everywhere": 2, "stranger": 0, "": 0}
    assert changed == {"reader": 0, "writer": 1, "everywhere": 0, "stranger": 0, "": 0}
    # Naming a scope only takes away.
    with database.maintaining() as session:
        scopes = session.execute("SELECT scope FROM things ORDER BY text").fetchall()
    for name, numbers in (("reader", [1, 0]), ("everywhere", [1, 1]), ("stranger", [0, 0])):
        for (scope,), number in zip(scopes, numbers, strict=True):
            with (
                caller.acting(dataclasses.replace(Caller(), name=name)),
                database.turns(scope) as turns,
            ):
                assert len(turns.ask(("SELECT text FROM things", {}))[0]) == number
    with pytest.raises(ForbiddenError), database.writing() as session:
        session.execute("INSERT INTO things SELECT 1, 'x'")
    with pytest.raises(ForbiddenError), database.writing() as session:
        session.execute("INSERT INTO grants VALUES ('', 0, 'admin')")


def test_many_callers_wait_for_few_connections_and_are_told_if_it_takes_too_long(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowded = Database(cluster.address, connections=2)

    def ask(number: int) -> int:
        with crowded.maintaining() as session:
            ((answer,),) = session.execute("SELECT %s::int", [number]).fetchall()
        return int(answer)

    with ThreadPoolExecutor(64) as callers:
        assert list(callers.map(ask, range(256))) == list(range(256))
    crowded.close()
    monkeypatch.setattr(team_database, "QUEUE_SECONDS", 0.1)
    alone = Database(cluster.address, connections=1)
    with alone.session(), pytest.raises(UnavailableError, match="is busy; nothing was written"):
        ask_alone(alone)
    ask_alone(alone)
    alone.close()


def ask_alone(database: Database) -> None:
    with database.maintaining() as session:
        session.execute("SELECT 1")
