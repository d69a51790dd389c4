"""The store on rows of a team database: the promises of every store, and those to many writers."""

from __future__ import annotations

import dataclasses
import itertools
import random
import unicodedata
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.postgres import Cluster, free_port, project_scope

from ragdocs import caller
from ragdocs.caller import Caller
from ragdocs.errors import (
    AlreadyExistsError,
    ForbiddenError,
    NotFoundError,
    ParseError,
    ReadOnlyError,
    ValidationError,
)
from ragdocs.lanes import MEMORY
from ragdocs.stores.changes import Exact
from ragdocs.stores.files.history import KEEP_ALWAYS
from ragdocs.stores.postgres import access as row_access
from ragdocs.stores.postgres import texts
from ragdocs.stores.postgres.access import RowAccessLog
from ragdocs.stores.postgres.pruning import prune
from ragdocs.stores.postgres.summaries import RowSummaries
from ragdocs.stores.postgres.texts import RowStore
from ragdocs.stores.summaries import Limits
from ragdocs.system.postgres.database import Database
from ragdocs.text.redaction.redact import Redactor
from ragdocs.types import Change, Discard, Expect, Put, Restore

from . import access_contract, summaries_contract
from .access_contract import AccessLogContract
from .contract import ChangeSetContract, Library, ReadableContract, VersionedContract
from .summaries_contract import SummariesContract

NOON = datetime(2026, 2, 4, 12, 0, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def database(cluster: Cluster) -> Iterator[Database]:
    """One database for all tests here, each of which has a project of its own."""
    database = Database(cluster.migrated())
    yield database
    database.close()
    cluster.drop(database.address)


@pytest.fixture
def name() -> str:
    return f"shop-{uuid.uuid4().hex[:8]}"


class Rows(Library):
    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self._scope = project_scope(database, name)
        super().__init__(Path(f"team:{name}"))

    def open(self) -> RowStore:
        return RowStore(self._database, self._scope, MEMORY, writable=True)

    def add(self, name: str, text: str) -> None:
        self.open().commit([Put(f"{name}.md", text)])


class TestRowStore(ReadableContract, VersionedContract, ChangeSetContract):
    @pytest.fixture
    def library(self, database: Database, name: str) -> Rows:
        return Rows(database, name)


class TestRowAccessLog(AccessLogContract):
    @pytest.fixture
    def open_log(
        self, database: Database, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> access_contract.Open:
        monkeypatch.setattr(row_access, "PRUNE_EVERY", 1)
        scopes: dict[str, int] = {}

        def open_log(project: str) -> RowAccessLog:
            if project not in scopes:
                scopes[project] = project_scope(database, f"{name}-{project}")
            return RowAccessLog(database, scopes[project])

        return open_log


class TestRowSummaries(SummariesContract):
    @pytest.fixture
    def open_summaries(self, database: Database, name: str) -> summaries_contract.Open:
        scopes = {}
        for branch in ("a", "few", "small", "one", "other"):
            scopes[branch] = project_scope(database, f"{name}-{branch}")

        def open_summaries(branch: str, limits: Limits) -> RowSummaries:
            return RowSummaries(database, scopes[branch], limits, Redactor({}))

        return open_summaries


@pytest.fixture
def store(database: Database, name: str) -> RowStore:
    scope = project_scope(database, name)
    return RowStore(database, scope, MEMORY, writable=True, now=lambda: NOON)


def exact(path: str, data: bytes) -> Exact:
    return Exact(path, data, Expect.ANY, NOON)


# --- as the files of one person ---


def test_odd_bytes_are_kept_and_read_as_far_as_possible(store: RowStore) -> None:
    store.commit_exactly(
        [
            exact("bom.md", b"\xef\xbb\xbf# Title\r\nx"),
            exact("bad.md", b"fine\nbro\xffken"),
            exact("empty.md", b""),
            exact("binary.md", b"\x89PNG\0"),
        ]
    )
    assert store.read("bom.md").text == "# Title\r\nx"
    bad = store.read("bad.md")
    assert bad.text == "fine\nbro\ufffdken"
    assert "line 2" in bad.problems[0]
    assert store.read("empty.md").text == ""
    with pytest.raises(ParseError):
        store.read("binary.md")
    assert store.read_exactly("bad.md") == (b"fine\nbro\xffken", NOON)
    store.commit([Put("bom.md", "one\ntwo\n")])
    assert store.read_exactly("bom.md")[0] == b"\xef\xbb\xbfone\r\ntwo\r\n"


@pytest.mark.parametrize(
    "path",
    ["../a", "/a", ".trash/a", "indices/a", "node_modules/a", "a\0b", "CON", "a/../../b", "\ud800"],
)
def test_names_that_no_store_takes_are_refused(store: RowStore, path: str) -> None:
    for change in (Put(path, "x"), Discard(path, Expect.ANY)):
        with pytest.raises(ValidationError):
            store.commit([change])
    if path != "CON":
        with pytest.raises(ValidationError):
            store.commit_exactly([exact(path, b"x")])
    assert store.scan([path]).stamps == {}
    assert store.history(path) == []
    with pytest.raises(NotFoundError):
        store.read(path)


def test_a_store_that_is_not_writable_refuses(store: RowStore, database: Database) -> None:
    reading = RowStore(database, store.scope, MEMORY, writable=False)
    with pytest.raises(ReadOnlyError):
        reading.commit([Put("a.md", "x")])
    with pytest.raises(ReadOnlyError):
        reading.commit_exactly([exact("a.md", b"x")])


def test_deletes_in_the_same_second_all_survive(
    store: RowStore, database: Database, name: str
) -> None:
    moved = []
    for text in ("one", "two", "three"):
        store.commit([Put("f/a.md", text)])
        moved.append(store.commit([Discard("f/a.md")])[0].moved_to)
    names = ["a_20260204_120000.md", "a_20260204_120000_2.md", "a_20260204_120000_3.md"]
    assert store.locate("") == f"team:{name}/.memories"
    assert moved == [f"team:{name}/.memories/.trash/f/{one}" for one in names]
    with database.maintaining() as session:
        statement = "SELECT data FROM trash JOIN bodies USING (scope, digest) WHERE scope = %s"
        rows = session.execute(statement, [store.scope])
        assert {bytes(data) for (data,) in rows.fetchall()} == {b"one", b"two", b"three"}


def test_a_decomposed_name_is_the_same_text(store: RowStore) -> None:
    name = unicodedata.normalize("NFD", "café/größe.md")
    store.commit_exactly([exact(name, b"old")])
    composed = unicodedata.normalize("NFC", name)
    with pytest.raises(AlreadyExistsError):
        store.commit([Put(composed, "x", Expect.ABSENT)])
    version = store.read(name).version
    store.commit([Put(composed, "new", version), Put("café/b.md", "beside")])
    assert store.read(name).text == "new"
    folders = {path.partition("/")[0] for path in store.scan().stamps}
    assert folders == {name.partition("/")[0]}


@pytest.mark.parametrize(
    "changes",
    [
        [Put("new.md", "x"), Put("a.md/b.md", "x")],
        [Put("new.md", "x"), Put("f.md", "x")],
        [Put("new.md", "x"), Put("new.md/b.md", "x")],
    ],
)
def test_a_file_and_a_folder_of_one_name_are_refused(
    store: RowStore, changes: list[Change]
) -> None:
    store.commit([Put("a.md", "x"), Put("f.md/c.md", "x")])
    with pytest.raises(ValidationError, match="not a f"):
        store.commit(changes)
    assert set(store.scan().stamps) == {"a.md", "f.md/c.md"}


def test_an_earlier_version_comes_back_byte_for_byte(store: RowStore) -> None:
    store.commit_exactly([exact("a.md", b"bro\xffken\r\n")])
    version = store.read("a.md").version
    store.commit([Put("a.md", "mended")])
    assert store.commit([Restore("a.md", version)], "restore")[0].version == version
    assert store.read_exactly("a.md")[0] == b"bro\xffken\r\n"
    with pytest.raises(NotFoundError):
        store.commit([Restore("a.md", "0" * 16)], "restore")


# --- as the texts of many people ---


def test_change_sets_have_an_author(store: RowStore, name: str) -> None:
    with store.database.maintaining() as session:
        session.execute("INSERT INTO grants VALUES (%s, 0, 'writer')", [name])
    with caller.acting(Caller(name=name)):
        store.commit([Put("a.md", "x"), Put("b.md", "x")])
    store.commit([Put("a.md", "y")])
    found = [(one.author, one.verb, len(one.steps)) for one in store.commits()]
    assert found == [("", "update", 1), (name, "create", 2)]


def test_an_author_is_a_member_and_the_program_it_uses(store: RowStore, name: str) -> None:
    with store.database.maintaining() as session:
        session.execute("INSERT INTO grants VALUES (%s, 0, 'writer')", [name])
    program = caller.author.set("claude-code")
    try:
        with caller.acting(Caller(name=name)):
            store.commit([Put("a.md", "x")])
    finally:
        caller.author.reset(program)
    assert [one.author for one in store.commits()] == [f"{name} (claude-code)"]


@pytest.mark.parametrize("role", ["reader", ""])
def test_whoever_may_not_write_changes_nothing(store: RowStore, role: str, name: str) -> None:
    version = store.commit([Put("a.md", "x")])[0].version
    with store.database.maintaining() as session:
        if role:
            session.execute("INSERT INTO grants VALUES (%s, 0, %s)", [name, role])
    before = store.commits()
    caller.begin(dataclasses.replace(Caller(), name=name))
    try:
        changes: list[Change] = [Put("a.md", "y"), Put("new.md", "y"), Discard("a.md", Expect.ANY)]
        changes += [Restore("a.md", version), Put("a.md", "y", version)]
        for change in changes[:2]:
            with pytest.raises(ForbiddenError):
                store.commit([change])
        for change in changes[2:]:
            with pytest.raises((ForbiddenError, NotFoundError)):
                store.commit([change, Put("other.md", "z")])
        assert list(store.scan().stamps) == (["a.md"] if role else [])
        if not role:
            with pytest.raises(
                NotFoundError,
                match=r"a\.md does not exist\. <search memories>[^?]*$",
            ):
                store.read("a.md")
            with pytest.raises(ForbiddenError):
                RowStore(store.database, store.scope, MEMORY, writable=True).locate("a.md")
    finally:
        caller.begin(Caller())
    assert store.read("a.md").text == "x"
    assert store.commits() == before


@pytest.mark.parametrize("before", [4, 5, 6])
def test_a_refused_change_leaves_the_connection_usable(
    team_address: str, name: str, before: int
) -> None:
    database = Database(team_address, connections=1)
    store = RowStore(database, project_scope(database, name), MEMORY, writable=True)
    with database.maintaining() as session:
        session.execute("INSERT INTO grants VALUES (%s, 0, 'reader')", [name])
    for _ in range(2):
        with pytest.raises(NotFoundError):
            store.commit([Discard("missing.md")])
    for number in range(before):
        store.commit([Put(f"{number}.md", "x")])
    # The driver may prepare a statement just now that is never reached.
    caller.begin(dataclasses.replace(Caller(), name=name))
    with pytest.raises(ForbiddenError):
        store.commit([Put("a.md", "x")])
    caller.begin(Caller())
    for number in range(7):
        store.commit([Put(f"after {number}.md", "x")])
    database.close()


def test_320_transactions_on_the_same_texts_never_wait_in_a_circle(store: RowStore) -> None:
    paths = [f"{name}.md" for name in ("a", "b", "c", "f/d", "f/e")]
    store.commit([Put(path, "first") for path in paths])

    def write(seed: int) -> None:
        rng = random.Random(seed)
        for turn in range(40):
            store.commit([Put(path, f"{seed} {turn}") for path in rng.sample(paths, 3)])

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(8)))
    change_sets = store.commits()
    assert len(change_sets) == 321
    # Each change set replaced what the one before it had made.
    versions = {path: store.read(path).version for path in paths}
    for change_set in change_sets:
        for step in change_set.steps:
            assert versions[step.path] == step.after
            versions[step.path] = step.version
    assert set(versions.values()) == {""}


@pytest.mark.parametrize("names", [("a.md", "A.md"), ("f/a.md", "F/b.md"), ("x.md", "x.md/y.md")])
def test_of_two_that_cannot_both_be_only_one_is_made(
    store: RowStore, names: tuple[str, str]
) -> None:
    def create(name: str) -> bool:
        try:
            store.commit([Put(name, "x", Expect.ABSENT)])
        except (AlreadyExistsError, ValidationError):
            return False
        return True

    with ThreadPoolExecutor(2) as threads:
        for turn in range(10):
            pair = [
                f"{turn}{name}" if "f" not in name.lower() else f"{turn}/{name}" for name in names
            ]
            assert sorted(threads.map(create, pair)) == [False, True], pair
    assert len(store.scan().stamps) == 10


def test_old_texts_are_dropped_and_none_that_is_needed(database: Database, name: str) -> None:
    days = itertools.count()
    store = RowStore(
        database,
        project_scope(database, name),
        MEMORY,
        writable=True,
        now=lambda: NOON + timedelta(days=next(days) // 2),
    )
    versions = [store.commit([Put("a.md", f"text {n}")])[0].version for n in range(3)]
    # The oldest text of all is in the trash, too, so that it stays.
    store.commit([Put("b.md", "text 0")])
    store.commit([Discard("b.md")])
    for number in range(KEEP_ALWAYS):
        store.commit([Put("c.md", f"number {number}")])
    prune(database, store.scope, NOON + timedelta(days=2000))
    assert len(store.commits()) == KEEP_ALWAYS
    assert store.recover(versions[0]) == "text 0"
    with pytest.raises(NotFoundError):
        store.recover(versions[1])
    assert store.read("a.md").text == "text 2"
    assert len(store.history("c.md")) == KEEP_ALWAYS - 1


def test_pruning_comes_by_itself(store: RowStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "PRUNE_EVERY", 2)
    monkeypatch.setattr("ragdocs.stores.postgres.pruning.KEEP_ALWAYS", 1)
    with store.database.maintaining() as session:
        store.commit([Put("a.md", "x")])
        statement = "UPDATE change_sets SET made_at = '2001-01-01' WHERE scope = %s"
        session.execute(statement, [store.scope])
    store.commit([Put("a.md", "y")])
    assert len(store.commits()) == 1


# --- accesses ---


def test_readers_are_counted_and_strangers_are_not(database: Database, name: str) -> None:
    scope = project_scope(database, name)
    log = RowAccessLog(database, scope)
    with database.maintaining() as session:
        session.execute("INSERT INTO grants VALUES (%s, 0, 'reader')", [name])
    noted = []
    for visitor in (name, f"{name}-stranger"):
        caller.begin(dataclasses.replace(Caller(), name=visitor))
        noted.append(log.note("search", [("mem_a", 0.5), ("mem_a", 0.4)], NOON, "a\0b\ud800"))
        noted.append(log.note("search", [("mem_a", 0.5)], NOON))
    caller.begin(Caller())
    assert noted == [True, True, False, False]
    assert log.counts("search") == {"mem_a": 3}
    assert log.recent()[-1][4] == "ab?"


def test_a_log_that_is_held_by_somebody_is_done_without(
    database: Database, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragdocs.stores.access.WAIT_SECONDS", 0.01)
    log = RowAccessLog(database, project_scope(database, name))
    assert log.note("get", [("mem_a", None)], NOON)
    with database.maintaining() as session:
        session.execute("LOCK TABLE access_counts IN EXCLUSIVE MODE")
        assert not log.note("get", [("mem_a", None)], NOON)
    assert log.note("get", [("mem_a", None)], NOON)
    assert log.totals()["get"] == 2


def test_without_a_server_nothing_is_noted_and_nothing_fails() -> None:
    log = RowAccessLog(Database(f"postgresql://nobody@127.0.0.1:{free_port()}/team"), 1)
    assert not log.note("get", [("mem_a", None)], NOON)
    assert log.totals() == {"get": 0, "search": 0, "used": 0}
    assert log.of("mem_a")[1] is None
