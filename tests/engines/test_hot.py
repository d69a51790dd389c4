"""What a server keeps in memory of rows: its answers are those of the rows, whoever writes."""

from __future__ import annotations

import dataclasses
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ragdocs import caller
from ragdocs.caller import Caller
from ragdocs.engines.local.index import LocalIndex
from ragdocs.engines.postgres import hot
from ragdocs.engines.postgres.index import PostgresIndex
from ragdocs.protocols import Index, ProbeVector
from ragdocs.search.encoders.hashing import HashEncoder
from ragdocs.search.encoders.vectors import half_precision
from ragdocs.system.postgres.database import Database, Turns
from ragdocs.types import Filter, IndexedDocument, Link

from .contract import entry
from .reads import ANYTHING, matches, matching
from .test_postgres import make, new_scopes, tester

__all__ = ["tester"]

WORDS = ["apple", "pear", "plum", "quince", "fig", "cherry", "medlar", "the", "of", "rowan"]
FILTERS = (ANYTHING, Filter(hidden=("archived",)), Filter(prefix="b"), Filter(tags=("red",)))
ENCODER = HashEncoder()


@pytest.fixture
def scope(database: Database) -> int:
    return new_scopes(database)[0]


def made(rng: random.Random, path: str) -> IndexedDocument:
    """Make a document of few words, so that many have the same ones."""
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(1, 9))) for _ in range(rng.randint(0, 4))]
    return entry(
        path,
        *texts,
        title=rng.choice(WORDS),
        tags=tuple(rng.sample(["red", "green"], 1)),
        status=rng.choice(["active", "archived"]),
        links=(Link(rng.choice("abcdefgh"), "mentions", ""),),
    )


def answers(index: Index) -> list[object]:
    """Return everything that searches with several probes, filters and vectors say."""
    vector = half_precision(ENCODER.encode(["plum fig"])[0])
    probes = [ProbeVector("first", "apple quinse of fig", vector), ProbeVector("second", "plum")]
    said: list[object] = []
    with index.snapshot() as snapshot:
        candidates = snapshot.candidates(probes, FILTERS, 5)
        ids = sorted(document.id for document in candidates.documents)
        said.append((ids, candidates.term_counts, candidates.lone_share))
        linked = snapshot.neighbours(ids[:3], FILTERS[0])
        said.append({name: [document.id for document, _ in near] for name, near in linked.items()})
        for signal, columns in sorted(candidates.found.items()):
            keys = [candidates.keys[column] for column in columns]
            raw = candidates.raw[signal][list(columns)]
            loaded = snapshot.load(keys, ["apple", "plum"])
            said.append((signal, [round(value, 5) for value in raw.tolist()], loaded))
    return said


def fill(index: Index) -> None:
    """Give vectors to two of three texts."""
    vectors = {}
    for _, passage in index.claim_missing(100):
        if int(passage.digest, 16) % 3:
            vectors[passage.digest] = ENCODER.encode([passage.text])[0]
    index.fill(vectors)


@pytest.mark.parametrize("seed", range(4))
def test_answers_from_memory_are_those_of_rows_after_any_write_of_others(
    database: Database, scope: int, seed: int
) -> None:
    rng = random.Random(seed)
    dim = ENCODER.dim
    local = LocalIndex(None, recipe="1", encoder="h", dim=dim)
    kept = PostgresIndex(database, scope, recipe="1", encoder="h", dim=dim)
    other = PostgresIndex(database, scope, recipe="1", encoder="h", dim=dim)
    for _ in range(12):
        names = rng.sample("abcdefgh", 3)
        changed = [made(rng, f"{name}.md") for name in names[:2]]
        for index in (local, other):
            index.apply(changed, [f"{names[2]}.md"])
            fill(index)
        if rng.random() < 0.3:
            other.refresh()
        fresh = PostgresIndex(database, scope, recipe="1", encoder="h", dim=dim)
        expected = answers(local)
        assert answers(fresh) == expected
        assert answers(kept) == expected
        assert answers(kept) == expected
    state = kept._hot.state
    assert state is not None
    assert state.is_proven


@pytest.mark.parametrize("most", [1, 6, hot.MOST_BEHIND])
def test_words_that_were_not_asked_for_during_many_writes_are_brought_up_to_date(
    database: Database, scope: int, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(hot, "MOST_BEHIND", most)
    rng = random.Random(most)
    kept, other = make(database, scope), make(database, scope)
    other.apply([made(rng, f"{name}.md") for name in "abcdefgh"])
    for word in WORDS:
        matches(kept, word)
    for _ in range(30):
        names = rng.sample("abcdefgh", 3)
        other.apply([made(rng, f"{name}.md") for name in names[:2]], [f"{names[2]}.md"])
        text = " ".join(rng.sample(WORDS, 2))
        assert matches(kept, text) == matches(make(database, scope), text)
    for word in WORDS:
        assert matches(kept, word) == matches(make(database, scope), word)


def test_after_a_write_only_what_it_has_changed_is_read_anew(
    database: Database, scope: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = make(database, scope)
    index.apply([entry(f"{name}.md", f"apple {name}", f"pear {name}") for name in "abcdef"])
    passages = [passage for _, passage in index.claim_missing(100)]
    index.fill({one.digest: ENCODER.encode([one.text])[0] for one in passages})
    for _ in range(3):
        answers(index)
    make(database, scope).apply([entry("z.md", "medlar")])
    turns: list[int] = []
    asked = Turns.ask

    def ask(self: Turns, *statements: Any, **options: Any) -> Any:
        turns.append(len(statements))
        return asked(self, *statements, **options)

    monkeypatch.setattr(Turns, "ask", ask)
    answers(index)
    # As in a search that is repeated; then the new document, its names, and its postings; and the
    # spellings of a word that nobody has.
    assert turns == [8, 3, 1]


def test_a_stranger_finds_nothing_in_what_was_kept_for_others(
    database: Database, scope: int
) -> None:
    index = make(database, scope)
    index.apply([entry("a.md", "apple")])
    for _ in range(3):
        assert matching(index, "apple") == ["a.md"]
    with caller.acting(dataclasses.replace(Caller(), name="stranger")):
        assert matching(index, "apple") == []
    assert matching(index, "apple") == ["a.md"]
    with database.maintaining() as session:
        session.execute("DELETE FROM grants WHERE caller = 'tester'")
    assert matching(index, "apple") == []


def test_what_cannot_be_proven_is_read_anew(database: Database, scope: int) -> None:
    index = make(database, scope)
    index.apply([entry("a.md", "apple"), entry("b.md", "apple pear")])
    for _ in range(3):
        assert matching(index, "apple") == ["a.md", "b.md"]
    make(database, scope).apply([entry("a.md", "plum")])
    with database.maintaining() as session:
        # As if it were long ago.
        session.execute("DELETE FROM touched")
    for _ in range(3):
        assert matching(index, "apple") == ["b.md"]
        assert matching(index, "plum") == ["a.md"]


def test_a_rebuilt_index_is_not_taken_for_the_old_one(database: Database, scope: int) -> None:
    index = make(database, scope)
    index.apply([entry("a.md", "apple")])
    for _ in range(3):
        assert matching(index, "apple") == ["a.md"]
    with database.maintaining() as session:
        session.execute("SELECT forget_scope(%s)", [scope])
    assert matching(index, "apple") == []
    make(database, scope).apply([entry("a.md", "quince")])
    for _ in range(3):
        assert matching(index, "apple") == []
        assert matching(index, "quince") == ["a.md"]


def test_a_process_keeps_no_more_than_its_limit(database: Database) -> None:
    memory = hot.HotMemory(60_000)
    indexes = []
    for scope in new_scopes(database, 3):
        index = make(database, scope)
        index._hot = hot.HotScope(memory)
        index.apply([entry(f"{n}.md", f"apple {'word ' * n} pear{n}") for n in range(90)])
        indexes.append(index)
    for _ in range(4):
        for index in indexes:
            assert matches(index, "apple pear7") == matches(
                make(database, index._scope), "apple pear7"
            )
            assert sum(memory._bytes.values()) <= 60_000


def test_every_search_sees_one_state_while_others_write(database: Database, scope: int) -> None:
    """All documents are rewritten at once, so a search finds a word in all of them or in none."""
    names = [f"{name}.md" for name in "abcdef"]
    writer, index = make(database, scope), make(database, scope)
    writer.apply([entry(name, "apple generation0") for name in names])

    def search(number: int) -> int:
        caller.begin(dataclasses.replace(Caller(), name="tester"))
        found = matching(index, f"apple generation{number % 40}", k=20)
        scores = {round(score, 5) for _, score in matches(index, "apple", k=20)}
        assert sorted(found) == names
        # Equal texts have equal scores: never one of this state and one of that.
        return len(scores)

    with ThreadPoolExecutor(4) as crowd:
        searches = [crowd.submit(search, number) for number in range(120)]
        for generation in range(1, 40):
            writer.apply([entry(name, f"apple generation{generation}") for name in names])
        assert {one.result() for one in searches} == {1}
