"""The index in a database: the contract, several scopes, and what is particular to rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ragdocs import caller
from ragdocs.caller import Caller
from ragdocs.engines.local.index import LocalIndex
from ragdocs.engines.postgres import graphs, vectors
from ragdocs.engines.postgres.filters import condition
from ragdocs.engines.postgres.index import MOST_WRITES, PostgresIndex
from ragdocs.errors import DisconnectedError, ForbiddenError, UnavailableError
from ragdocs.protocols import Index, ProbeVector
from ragdocs.system.postgres import connection
from ragdocs.system.postgres.database import Database
from ragdocs.types import Filter, Link
from ragdocs.verbs.quality.health import compare

from .contract import DIM, IndexContract, axis, digest, entry
from .reads import counts, links_to, listed, matches, matching, near, nearest
from .test_local import vector_of


def make(database: Database, scope: int, encoder: str = "test/8", dim: int = DIM) -> PostgresIndex:
    return PostgresIndex(database, scope, recipe="1/900/1400", encoder=encoder, dim=dim)


def new_scopes(database: Database, count: int = 1) -> list[int]:
    """Make lanes of one project in which the caller of the tests may write."""
    with database.maintaining() as session:
        row = session.execute(
            "INSERT INTO projects (identity, name) VALUES (gen_random_uuid()::text, 'test')"
            " RETURNING project"
        ).fetchone()
        assert row is not None
        session.execute("INSERT INTO grants VALUES ('tester', %s, 'writer')", [row[0]])
        rows = session.execute(
            "INSERT INTO scopes (project, lane) SELECT %s, 'lane' || n FROM generate_series(1, %s) n"
            " RETURNING scope",
            [row[0], count],
        ).fetchall()
    return [scope for (scope,) in rows]


@pytest.fixture(autouse=True)
def tester() -> Iterator[None]:
    caller.begin(dataclasses.replace(Caller(), name="tester"))
    yield
    caller.begin(Caller())


class TestAlone(IndexContract):
    @pytest.fixture
    def index(self, database: Database) -> Index:
        (scope,) = new_scopes(database)
        return make(database, scope)


class TestAmongOthers(IndexContract):
    """The same with two neighbours in the database that have much the same documents."""

    @pytest.fixture
    def index(self, database: Database) -> Index:
        before, own, after = new_scopes(database, 3)
        for scope in (before, after):
            other = make(database, scope)
            other.apply([entry(f"{name}.md", "apple pear token word", "x") for name in "abcd"])
            other.fill({digest("x"): axis(1)})
        return make(database, own)


# --- what is stored, and by whom ---


def rows_of(database: Database, table: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table with the transactions that wrote them."""
    with database.maintaining() as session:
        return session.execute(f"SELECT xmin::text, * FROM {table}").fetchall()


@pytest.fixture
def scope(database: Database) -> int:
    return new_scopes(database)[0]


def test_another_encoder_is_refused_and_nothing_is_written(database: Database, scope: int) -> None:
    make(database, scope).apply([entry("a.md", "apple")])
    before = rows_of(database, "documents")
    other = make(database, scope, "other/4", 4)
    for action in (
        other.open,
        lambda: other.apply([entry("b.md", "pear")]),
        lambda: other.claim_missing(1),
        lambda: other.fill({digest("apple"): axis(1)}),
    ):
        with pytest.raises(UnavailableError, match=r"made with test/8.*encodes with other/4"):
            action()
    assert rows_of(database, "documents") == before
    assert rows_of(database, "vectors") == []


def test_an_index_of_another_recipe_is_emptied_and_others_are_left(database: Database) -> None:
    own, beside = new_scopes(database, 2)
    for scope in (own, beside):
        make(database, scope).apply([entry("a.md", "apple", links=(Link("b", "mentions", ""),))])
    old = make(database, own)
    new = PostgresIndex(database, own, recipe="2", encoder="test/8", dim=DIM)
    with pytest.raises(UnavailableError, match="another version"):
        new.apply([entry("b.md", "pear")])
    assert not new.open()
    assert counts(new) == (0, 0, 0, 0)
    new.apply([entry("b.md", "pear")])
    with pytest.raises(UnavailableError, match="another version"):
        old.apply([entry("c.md", "plum")])
    assert new.open()
    assert matching(new, "pear") == ["b.md"]
    assert matching(make(database, beside), "apple") == ["a.md"]


def test_an_edit_writes_only_the_postings_that_changed(database: Database, scope: int) -> None:
    index = make(database, scope)
    index.apply([entry("a.md", "apple pear plum", "fig tart cider", "barrel press")])
    index.fill({digest("fig tart cider"): axis(1)})
    tables = ("postings", "passages", "vectors")
    before = {table: rows_of(database, table) for table in tables}
    index.apply([entry("a.md", "apple pear quince", "fig tart cider", "barrel press")])
    written = {}
    for table in tables:
        fresh = [row for row in rows_of(database, table) if row not in before[table]]
        written[table] = len(fresh)
    assert written == {"postings": 1, "passages": 1, "vectors": 0}
    assert matching(index, "plum") == []
    assert matching(index, "quince") == near(index, axis(1)) == ["a.md"]


def test_a_renamed_document_keeps_its_vectors(database: Database, scope: int) -> None:
    index = make(database, scope)
    index.apply([entry("a.md", "apple", "pear")])
    index.fill({digest("apple"): axis(1), digest("pear"): axis(0, 1)})
    index.apply([entry("b.md", "pear", "apple", "plum")], ["a.md"])
    assert counts(index) == (1, 3, 2, 0)
    assert [passage.text for _, passage in index.claim_missing(9)] == ["plum"]
    ((path, product),) = nearest(index, axis(0, 1), k=1)
    assert path == "b.md"
    assert product == pytest.approx(1.0)


def test_the_contents_are_those_of_a_local_index(database: Database, scope: int) -> None:
    local = LocalIndex(None, recipe="1", encoder="test/8", dim=DIM)
    rows = make(database, scope)
    odd = Link("src/caf\udce9.py", "mentions", "x \x00 y")
    for index in (local, rows):
        index.apply([entry("old.md", "gone"), entry("b.md", "pear", "pear", "src/auth.py")])
        index.apply([entry("caf\udce9.md", "nul \x00 and \ud800", tags=("\udcff",), links=(odd,))])
        index.apply([entry("b.md", "pear", "plum", "pear")], ["old.md"])
        index.fill({digest("pear"): axis(1)})
    assert not compare(rows.contents(), local.contents()).difference
    assert counts(rows) == counts(local) == (2, 4, 2, 1)
    assert listed(rows) == listed(local)
    assert rows.stamps() == local.stamps()
    assert rows.stamps(["caf\udce9.md"]) == local.stamps(["caf\udce9.md"])
    with rows.snapshot() as snapshot:
        assert snapshot.facets("tags", Filter()) == {"\udcff": 1}
    rows.refresh()
    assert counts(rows) == counts(local)
    assert links_to(rows, "src/caf\udce9.py") == {"test:caf\udce9": (odd,)}


def test_adding_up_changes_no_answer(database: Database, scope: int) -> None:
    index = make(database, scope)
    for number in range(9):
        index.apply([entry(f"{number}.md", f"apple pear{number}" * (number + 1))])
    index.apply([], ["3.md"])
    before = [matches(index, text) for text in ("apple pear4", "aple", "pear3")]
    index.refresh()
    assert rows_of(database, "tallies") == rows_of(database, "term_tallies") == []
    assert [matches(index, text) for text in ("apple pear4", "aple", "pear3")] == before
    added_up = rows_of(database, "indexes")
    index.refresh()
    assert rows_of(database, "indexes") == added_up, "nothing to add up, nothing written"
    with database.maintaining() as session:
        left = session.execute("SELECT count(*) FROM terms WHERE passages <= 0").fetchone()
    assert left == (0,)


def test_many_small_writes_are_added_up(database: Database, scope: int) -> None:
    index = make(database, scope)
    for number in range(2 * MOST_WRITES):
        index.apply([entry("a.md", f"apple pear{number}")])
        assert len(rows_of(database, "tallies")) < MOST_WRITES
    assert index.info().documents == index.info().passages == 1


def test_bounds_of_a_young_index_are_made_anew_as_if_written_at_once(database: Database) -> None:
    grown, built = new_scopes(database, 2)
    long = [entry(f"f/{n}.md", f"apple{n} pear " * 40, "plum tart", tags=("x",)) for n in range(9)]
    young = make(database, grown)
    young.apply([entry("a.md", "apple")])
    young.apply(long)
    old = make(database, built)
    old.apply([entry("a.md", "apple"), *long])
    loose, tight = (bounds_of(database, scope) for scope in (grown, built))
    assert loose != tight
    before = matches(young, "apple3 pear")
    young.refresh()
    assert bounds_of(database, grown) == pytest.approx(tight, abs=1e-6)
    assert matches(young, "apple3 pear") == before


def bounds_of(database: Database, scope: int) -> list[float]:
    with database.maintaining() as session:
        rows = session.execute("SELECT best FROM postings WHERE scope = %s", [scope]).fetchall()
    return sorted(best for (best,) in rows)


def test_a_large_index_is_searched_through_a_graph(
    database: Database, scope: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, "EXACT_LIMIT", 100)
    index = make(database, scope)
    texts = [f"text {number}" for number in range(300)]
    index.apply([entry(f"{n // 100}/{n}.md", text) for n, text in enumerate(texts)])
    index.fill({digest(text): vector_of(text) for text in texts})
    exact = [nearest(index, vector_of(text), k=10) for text in texts[:30]]
    assert index.info().vector_search == "exact"
    index.save()
    index.save()
    assert index.info().vector_search == "HNSW"
    found = [nearest(index, vector_of(text), k=10) for text in texts[:30]]
    same = sum(len({*a} & {*b}) for a, b in zip(exact, found, strict=True))
    assert same >= 0.99 * 300
    sql, values = vector_statement(scope, DIM)
    with database.turns() as turns:
        # So few vectors would be sorted, as soon as the server has counted them.
        for other_way in ("seqscan", "bitmapscan", "sort"):
            turns.ask((f"SELECT set_config('enable_{other_way}', 'off', true)", {}))
        (plan,) = turns.ask((f"EXPLAIN {sql}", values))
    assert any("vectors_graph" in line for (line,) in plan)
    # Under a filter that leaves few, those are compared one by one.
    for text in texts[:30]:
        below = Filter(prefix="1/")
        assert len(nearest(index, vector_of(text), below, k=100)) == 100
    # Another server learns of the graph, and what is written later is found through it.
    other = make(database, scope)
    other.apply([entry("new.md", "new")])
    other.fill({digest("new"): vector_of("new")})
    assert nearest(other, vector_of("new"), k=1)[0][0] == "new.md"


def vector_statement(scope: int, dim: int) -> Any:
    return vectors.nearest(scope, vector_of("x"), condition(Filter(), "f"), 10, graph_dim=dim)


# --- several servers ---


def test_a_graph_may_take_longer_than_any_answer(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "ANSWER_SECONDS", 0.2)
    with database.building(1, 2) as session:
        assert session is not None
        session.execute("SELECT pg_sleep(0.7)")
    with pytest.raises(DisconnectedError, match="no answer"), database.session() as session:
        session.execute("SELECT pg_sleep(0.7)")


def test_no_passage_is_encoded_by_two_servers(database: Database, scope: int) -> None:
    texts = [f"text {number % 30}" for number in range(60)]
    make(database, scope).apply([entry(f"{n}.md", text) for n, text in enumerate(texts)])
    encoded: list[str] = []

    def encode(_: int) -> None:
        caller.begin(dataclasses.replace(Caller(), name="tester"))
        server = make(database, scope)
        while batch := server.claim_missing(4):
            encoded.extend(passage.digest for _, passage in batch)
            server.fill({passage.digest: axis(1) for _, passage in batch})

    with ThreadPoolExecutor(4) as servers:
        list(servers.map(encode, range(4)))
    assert sorted(encoded) == sorted(set(map(digest, texts)))
    assert make(database, scope).info().vectors == 60


def test_a_claim_that_is_not_filled_becomes_free_again(database: Database, scope: int) -> None:
    first, second = make(database, scope), make(database, scope)
    first.apply([entry("a.md", "apple")])
    assert len(first.claim_missing(5)) == 1
    assert second.claim_missing(5) == []
    with database.maintaining() as session:
        session.execute("UPDATE waiting SET claimed_until = now() - interval '1 second'")
    assert len(second.claim_missing(5)) == 1
    assert first.claim_missing(5) == []


def test_writers_of_the_same_documents_neither_block_nor_lose(database: Database) -> None:
    (scope,) = new_scopes(database)
    names = [f"{number}.md" for number in range(6)]

    def write(worker: int) -> None:
        caller.begin(dataclasses.replace(Caller(), name="tester"))
        server = make(database, scope)
        for turn in range(10):
            # Each in an order of its own, which would end in a deadlock.
            ordered = names[worker:] + names[:worker]
            server.apply([entry(name, f"apple w{worker} t{turn}") for name in ordered])

    with ThreadPoolExecutor(4) as workers:
        list(workers.map(write, range(4)))
    index = make(database, scope)
    built = LocalIndex(None, recipe="1", encoder="test/8", dim=DIM)
    with index.snapshot() as snapshot:
        for document in snapshot.list(Filter()):
            built.apply([entry(document.path, document.version)])
    assert not compare(index.contents(), built.contents()).difference
    assert counts(index) == counts(built)
    for text in ("apple", "w1 t9", "t8"):
        assert matches(index, text) == matches(built, text)


def test_a_search_sees_one_state(database: Database, scope: int) -> None:
    index = make(database, scope)
    index.apply([entry("a.md", "apple one", "apple two")])
    with index.snapshot() as snapshot:
        candidates = snapshot.candidates([ProbeVector("q", "apple")], [Filter()], 5)
        make(database, scope).apply([entry("b.md", "apple three")], ["a.md"])
        loaded = snapshot.load(candidates.keys).passages
        assert [passage.text for _, passage, _ in loaded] == ["apple one", "apple two"]
        assert [document.path for document in snapshot.list(Filter())] == ["a.md"]
    assert listed(index) == ["b.md"]


def test_strangers_see_nothing_and_readers_write_nothing(database: Database, scope: int) -> None:
    index = make(database, scope)
    index.apply([entry("a.md", "apple")])
    with database.maintaining() as session:
        session.execute("INSERT INTO grants SELECT 'reader', project, 'reader' FROM projects")
    caller.begin(dataclasses.replace(Caller(), name="stranger"))
    assert counts(index) == (0, 0, 0, 0)
    assert matching(index, "apple") == listed(index) == []
    assert index.stamps() == {}
    assert index.contents()["documents"] == []
    caller.begin(dataclasses.replace(Caller(), name="reader"))
    assert matching(index, "apple") == ["a.md"]
    with pytest.raises(ForbiddenError):
        index.apply([entry("b.md", "pear")])
    with pytest.raises(ForbiddenError):
        index.apply([], ["a.md"])
    caller.begin(dataclasses.replace(Caller(), name="tester"))
    assert listed(index) == ["a.md"]


def test_a_removed_project_takes_its_index_with_it(database: Database) -> None:
    kept, gone = new_scopes(database)[0], new_scopes(database)[0]
    for scope in (kept, gone):
        make(database, scope).apply([entry("a.md", "apple", links=(Link("b", "plans", ""),))])
    with database.maintaining() as session:
        session.execute(
            "DELETE FROM projects WHERE project = (SELECT project FROM scopes WHERE scope = %s)",
            [gone],
        )
    tables = ("indexes", "documents", "passages", "postings", "term_tallies", "names", "links")
    with database.maintaining() as session:
        for table in tables:
            rows = session.execute(f"SELECT DISTINCT scope FROM {table}").fetchall()
            # Tallies are added up by one write in so many.
            assert rows == [(kept,)] or (table, rows) == ("term_tallies", []), table
