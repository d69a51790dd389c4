"""Both engines rank alike: the same passages in the same order with the same scores."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.postgres import Cluster

from ragdocs import caller
from ragdocs.caller import Caller
from ragdocs.engines.local.index import LocalIndex
from ragdocs.engines.postgres import candidates as searching
from ragdocs.engines.postgres import graphs, words
from ragdocs.engines.postgres.index import PostgresIndex
from ragdocs.lanes import DOCS, MEMORY, Lane
from ragdocs.protocols import Encoder, Index, ProbeVector, SignalName
from ragdocs.search.corpus import Corpus
from ragdocs.search.encoders.hashing import HashEncoder
from ragdocs.search.encoders.minilm import OnnxEncoder
from ragdocs.search.encoders.vectors import half_precision
from ragdocs.stores.files.store import FileStore
from ragdocs.system.postgres.database import Database, Turns
from ragdocs.types import Chunk, Document, Filter, Findings, IndexedDocument, Link, Probe, Query

from .contract import axis, digest, entry
from .test_local import QUERIES as SMALL_QUERIES
from .test_local import entries
from .test_postgres import new_scopes, tester

__all__ = ["tester"]

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
CLOSE = 1e-6
FOLDERS = ("", "guides/", "guides/deep/", "notes/")
RECENT = NOW - timedelta(days=40)


@pytest.fixture(scope="module")
def shared(cluster: Cluster) -> Iterator[Database]:
    """A database for all tests here, each with scopes of its own."""
    database = Database(cluster.migrated())
    yield database
    database.close()
    cluster.drop(database.address)


def made_up_words(rng: random.Random, count: int) -> list[str]:
    syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
    return ["".join(rng.choices(syllables, k=rng.randint(2, 4))) for _ in range(count)]


def documents(count: int, seed: int = 3) -> list[IndexedDocument]:
    """Make documents of words that are as unevenly frequent as those of a language."""
    rng = random.Random(seed)
    vocabulary = made_up_words(rng, 900)
    weights = [1 / (rank + 2) for rank in range(len(vocabulary))]
    made = []
    for number in range(count):
        path = f"{rng.choice(FOLDERS)}{rng.choice(vocabulary[:200])}-{number}.md"
        title = " ".join(rng.choices(vocabulary, weights, k=rng.randint(1, 3)))
        links = []
        for _ in range(rng.randint(0, 3)):
            target = rng.choice([f"src/module{rng.randint(0, 9)}.py", f"page {rng.randint(0, 99)}"])
            links.append(Link(target, "mentions", "see"))
        document = Document(
            id=f"docs:{path.removesuffix('.md')}",
            lane="docs",
            path=path,
            title=title,
            version=str(number),
            kind=rng.choice(["fact", "plan", ""]),
            status=rng.choice(["active", "active", "Archived"]),
            tags=tuple(rng.sample(["auth", "db", "Ünicode", "rare"], rng.randint(0, 2))),
            aliases=(f"page {number}",) if number < 100 else (),
            created_at=rng.choice([None, NOW - timedelta(days=rng.randint(0, 400))]),
            modified_at=NOW - timedelta(days=rng.randint(0, 400)),
            expires_at=rng.choice([None, None, NOW + timedelta(days=rng.randint(-9, 9))]),
            importance=rng.choice([None, 2.0, 8.0]),
            links=tuple(links),
        )
        chunks = []
        for position in range(rng.choice([1, 1, 2, 4, 9])):
            text = " ".join(rng.choices(vocabulary, weights, k=rng.randint(3, 120)))
            headings = tuple(rng.choices(vocabulary, weights, k=rng.randint(0, 3)))
            name = f"{document.id}#{position}"
            chunks.append(Chunk(name, document.id, headings, text, 1, 2, digest(text)))
        made.append(IndexedDocument(document, tuple(chunks), "s"))
    return made


def both_engines(
    database: Database, encoder: Encoder, entries: Sequence[IndexedDocument]
) -> tuple[LocalIndex, PostgresIndex]:
    (scope,) = new_scopes(database)
    local = LocalIndex(None, recipe="1", encoder=encoder.identity, dim=encoder.dim)
    rows = PostgresIndex(database, scope, recipe="1", encoder=encoder.identity, dim=encoder.dim)
    for index in (local, rows):
        half = len(entries) // 2
        index.apply(entries[half:])
        # Written twice, so that bounds are of several times, and in another order.
        index.apply(entries[: half + 9])
        index.apply([], [entries[0].document.path])
    return local, rows


def corpus(lane: Lane, index: Index, encoder: Encoder, folder: Path) -> Corpus:
    return Corpus(lane, FileStore(folder, lane), index, encoder)


def queries(entries: Sequence[IndexedDocument], count: int) -> list[str]:
    rng = random.Random(4)
    made = []
    for _ in range(count):
        words = rng.choice(rng.choice(entries).chunks).text.split()
        made.append(" ".join(rng.choices(words, k=rng.randint(1, 6))))
    # Misspelled, unknown, and of the commonest words alone.
    made += [made[0][:-1], f"{made[1]} zzzz", "the and of", " ".join(made[:3])]
    return made


FILTERS = {
    "all": Filter(),
    "hidden": Filter(hidden=("archived",), alive_at=NOW),
    "prefix": Filter(prefix="guides/"),
    "tags": Filter(tags=("RARE", "ünicode")),
    "dates": Filter(since=RECENT, until=NOW),
    "linked": Filter(linked_to=("src/Module3.py", "page 7")),
    "worth": Filter(min_importance=4, kinds=("Fact",), prefix="n"),
}


def assert_alike(ours: Findings, theirs: Findings, what: object) -> None:
    assert [hit.chunk.id for hit in ours.hits] == [hit.chunk.id for hit in theirs.hits], what
    for hit, other in zip(ours.hits, theirs.hits, strict=True):
        assert hit.score == pytest.approx(other.score, abs=CLOSE), what
        assert (hit.words, hit.chunk) == (other.words, other.chunk), what
        assert hit.document == other.document, what
        names = [(signal.probe, signal.source, signal.rank) for signal in hit.signals]
        assert names == [(s.probe, s.source, s.rank) for s in other.signals], what
    assert (ours.omitted, ours.notes) == (theirs.omitted, theirs.notes), what


@pytest.fixture(scope="module")
def engines(shared: Database) -> tuple[LocalIndex, PostgresIndex]:
    """Both engines with the same documents, half of which have vectors."""
    encoder = HashEncoder()
    # Only while they are filled: what a fixture of a module sets, other modules would find.
    with caller.acting(dataclasses.replace(Caller(), name="tester")):
        both = both_engines(shared, encoder, documents(300))
        for index in both:
            missing = sorted(index.claim_missing(10_000), key=lambda pair: pair[1].digest)
            texts = {passage.digest: passage.text for _, passage in missing[::2]}
            index.fill(dict(zip(texts, encoder.encode(list(texts.values())), strict=True)))
        assert both[0].info() == both[1].info()
    return both


@pytest.mark.parametrize("limit", [10, 50])
@pytest.mark.parametrize("where", FILTERS)
@pytest.mark.parametrize("weights", [(0.0, 1.0), (0.5, 0.5)], ids=["words", "both"])
def test_the_best_are_the_same_in_both_engines(
    engines: tuple[LocalIndex, PostgresIndex],
    weights: tuple[float, float],
    where: str,
    limit: int,
    tmp_path: Path,
) -> None:
    for lane in (DOCS, MEMORY):
        local, rows = (corpus(lane, index, HashEncoder(), tmp_path) for index in engines)
        for number, text in enumerate(queries(documents(300), 12)):
            if number % 3 == 0:
                # By bounds at first; the next search reads what is kept, the third has it.
                rows.index.close()
            query = Query(probes=(Probe(text),), limit=limit, where=FILTERS[where], weights=weights)
            assert_alike(rows.search(query, NOW), local.search(query, NOW), (lane.name, query))


def test_several_probes_are_the_same_in_both_engines(
    engines: tuple[LocalIndex, PostgresIndex], tmp_path: Path
) -> None:
    local, rows = (corpus(MEMORY, index, HashEncoder(), tmp_path) for index in engines)
    texts = queries(documents(300), 18)
    for first, second, third in zip(texts, texts[1:], texts[2:], strict=False):
        # One filter goes by bounds, the other by what is kept in memory.
        rows.index.close()
        probes = (Probe(first), Probe(second, "work", 0.5), Probe(third, "more", 0.2))
        for where in (Filter(), Filter(since=RECENT)):
            query = Query(probes=probes, limit=20, where=where)
            assert_alike(rows.search(query, NOW), local.search(query, NOW), query)


SENTENCES = {
    "de": "Die Abhängigkeiten werden nicht mit dem Container gelöst und sind in der Datei {}.",
    "fr": "Les dépendances ne sont pas résolues avec le conteneur et sont dans le fichier {}.",
    "en": "The dependencies are not resolved with the container and they are in your file {}.",
    "ru": "Зависимости не разрешаются вместе с контейнером, они находятся в файле {}.",
}


def translated() -> list[IndexedDocument]:
    """Make pages in four languages, some of two passages in different languages."""
    made = []
    for number in range(40):
        language = list(SENTENCES)[number % 4]
        name = f"{language}/page-{number}"
        sentence = SENTENCES[language].format(number % 7)
        first = Chunk(f"{name}#0", name, ("Dateien",), 3 * sentence, 1, 2, digest(name))
        chunks = [first]
        if number % 5 == 0:
            other = 3 * SENTENCES["de"].format(number)
            chunks.append(Chunk(f"{name}#1", name, (), other, 3, 4, digest(f"{name} 1")))
        title = sentence.split()[1]
        document = Document(id=name, lane="docs", path=f"{name}.md", title=title, version="1")
        made.append(IndexedDocument(document, tuple(chunks), "s"))
    return made


@pytest.mark.parametrize(
    ("text", "languages"),
    [
        ("welche Abhängigkeit wird nicht gelöst", {"de"}),
        ("la dépendance du fichier", {"fr"}),
        ("which dependency is in the file", {"en"}),
        ("зависимостей в файлах", {"ru"}),
        ("dependency container", {"en"}),
        ("Abhangigkeit", {"de"}),
        ("container Datei fichier 3", set()),
        ("conteneurr zzzz", set()),
        (" ".join(f"wort{n} dépendances{n} Datei" for n in range(70)), set()),
    ],
)
def test_stems_of_several_languages_are_the_same_in_both_engines(
    shared: Database, tmp_path: Path, text: str, languages: set[str]
) -> None:
    caller.begin(dataclasses.replace(Caller(), name="tester"))
    encoder = HashEncoder()
    local, rows = both_engines(shared, encoder, translated())
    assert local.info().languages == rows.info().languages
    assert set(local.info().languages) == {"de", "fr", "ru"}
    searching = [corpus(DOCS, index, encoder, tmp_path) for index in (local, rows)]
    query = Query(probes=(Probe(text),), limit=20)
    mine, theirs = (one.search(query, NOW) for one in searching)
    assert_alike(theirs, mine, query)
    if languages:
        assert mine.hits[0].document.path[:2] in languages
        assert mine.hits[0].words


def test_the_best_are_the_same_with_vectors_of_the_model(shared: Database, tmp_path: Path) -> None:
    encoder = OnnxEncoder()
    local, rows = both_engines(shared, encoder, documents(15))
    searching = [corpus(DOCS, index, encoder, tmp_path) for index in (local, rows)]
    texts = {passage.digest: passage.text for _, passage in local.claim_missing(1000)}
    # Once for both: what the model makes of a text depends a little on its batch.
    vectors = dict(zip(texts, encoder.encode(list(texts.values())), strict=True))
    local.fill(vectors)
    rows.fill(vectors)
    assert local.info().vectors == rows.info().vectors == local.info().passages
    for text in queries(documents(15), 20):
        query = Query(probes=(Probe(text),), limit=10)
        mine, theirs = (one.search(query, NOW) for one in searching)
        assert_alike(theirs, mine, query)


def test_a_pasted_file_is_searched_by_the_same_terms(
    engines: tuple[LocalIndex, PostgresIndex], tmp_path: Path
) -> None:
    local, rows = (corpus(DOCS, index, HashEncoder(), tmp_path) for index in engines)
    text = " ".join(chunk.text for one in documents(300)[:9] for chunk in one.chunks)
    query = Query(probes=(Probe(f"{text} src/module3.py"),), limit=10)
    assert_alike(rows.search(query, NOW), local.search(query, NOW), query)


# --- nothing that belongs to the best is left out ---


def found(index: Index, probes: Sequence[ProbeVector], filters: Sequence[Filter], k: int) -> Any:
    """Return what each source found and measured, by the ids of passages."""
    with index.snapshot() as snapshot:
        candidates = snapshot.candidates(probes, filters, k)
        loaded = snapshot.load(candidates.keys).passages
        first = snapshot.load([candidates.keys[start] for start in candidates.starts]).passages
    names = [passage.id for _, passage, _ in loaded]
    assert [document for document, _, _ in first] == list(candidates.documents)
    measured: dict[str, dict[object, float]] = {}
    for signal, values in candidates.raw.items():
        for name, value in zip(names, values.tolist(), strict=True):
            measured.setdefault(name, {})[signal] = value
    by_source = {}
    for signal, columns in candidates.found.items():
        by_source[signal] = [names[column] for column in columns]
    return by_source, measured, (candidates.term_counts, candidates.lone_share)


def assert_same_found(
    engines: Sequence[Index], probes: Sequence[ProbeVector], filters: Sequence[Filter], k: int
) -> dict[SignalName, list[str]]:
    ours, theirs = (found(index, probes, filters, k) for index in engines)
    assert ours[0] == theirs[0]
    assert ours[1].keys() == theirs[1].keys()
    for name, measured in ours[1].items():
        assert measured == pytest.approx(theirs[1][name], abs=CLOSE), name
    assert ours[2] == theirs[2]
    by_source: dict[SignalName, list[str]] = ours[0]
    return by_source


filters = st.builds(
    Filter,
    tags=st.sampled_from([(), ("x",)]),
    prefix=st.sampled_from(["", "f/"]),
    linked_to=st.sampled_from([(), ("a",), ("src/x.py",)]),
)


@settings(max_examples=60)
@given(
    batches=st.lists(st.lists(entries, min_size=1, max_size=8), min_size=1, max_size=3),
    texts=st.lists(st.sampled_from(SMALL_QUERIES), min_size=1, max_size=2),
    wheres=st.lists(filters, min_size=1, max_size=2),
    sizes=st.tuples(
        st.integers(1, 4), st.integers(1, 3), st.integers(0, 9), st.sampled_from([0.3, 0.95])
    ),
    cut=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_any_search_finds_and_measures_the_same_in_both_engines(
    shared: Database,
    batches: list[list[IndexedDocument]],
    texts: list[str],
    wheres: list[Filter],
    sizes: tuple[int, int, int, float],
    cut: float,
) -> None:
    """Few documents are fetched at first and few bounds are listed, so that proofs fail often.

    Terms are cut that are not common, up to all of them.
    """
    k, first, filled, listed = sizes
    (scope,) = new_scopes(shared)
    local = LocalIndex(None, recipe="1", encoder="test/8", dim=8)
    rows = PostgresIndex(shared, scope, recipe="1", encoder="test/8", dim=8)
    for index in (local, rows):
        for batch in batches:
            index.apply(list({one.document.path: one for one in batch}.values()))
    missing = sorted(passage.digest for _, passage in local.claim_missing(100))
    for index in (local, rows):
        # Only three different vectors, so that cuts go through equal ones.
        index.fill({name: axis(1, int(name, 16) % 3) for name in missing[:filled]})
    probes = []
    for number, text in enumerate(texts):
        vector = half_precision(axis(1, number, 0.5))
        probes.append(ProbeVector(f"q{number}", text, vector))
    # As a search by meaning alone asks.
    probes.append(ProbeVector("meaning", "", half_precision(axis(0, 1))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words, "FETCHED_SHARE", 0)
        patch.setattr(words, "FETCHED_MORE", first)
        patch.setattr(words, "LISTED_SHARE", listed)
        patch.setattr(words, "COMMON", 1)
        patch.setattr(words, "CUT_SHARE", cut)
        patch.setattr(searching, "MOST_AT_ONCE", filled % 3)
        patch.setattr(searching, "FIRST_ROUND", 2)
        assert_same_found((rows, local), probes, wheres, k)
    # Then from what the first search has made it keep.
    assert_same_found((rows, local), probes, wheres, k)


@pytest.mark.parametrize("k", [3, 12, 60])
def test_a_common_term_that_is_cut_still_counts(
    shared: Database, monkeypatch: pytest.MonkeyPatch, k: int
) -> None:
    """Documents that have nothing but a common term are not listed, but found where it matters."""
    made = []
    for number in range(50):
        texts = ["common " * (number % 5 + 1) + f"word{number}", "filler"]
        if number % 8 == 0:
            texts.append(f"rare common other{number} words{number} in a longer text {number}")
        title = "common" if number == 33 else "title"
        made.append(entry(f"{number:02}.md", *texts, title=title))
    local, rows = both_engines(shared, HashEncoder(), made)
    monkeypatch.setattr(words, "COMMON", 20)
    monkeypatch.setattr(words, "CUT_SHARE", 0.5)
    monkeypatch.setattr(words, "FETCHED_SHARE", 0)
    monkeypatch.setattr(words, "FETCHED_MORE", 4)
    probes = [ProbeVector("q", "common rare", None), ProbeVector("other", "filler rare", None)]
    assert_same_found((rows, local), probes, [Filter(), Filter(prefix="3")], k)


def test_lengths_are_rounded_as_in_the_local_engine() -> None:
    from whoosh.util.numeric import byte_to_length, length_to_byte

    from ragdocs.engines.postgres.lengths import LENGTHS, codes

    assert LENGTHS.tolist() == [byte_to_length(code) for code in range(256)]
    lengths = [*range(300), 5000, 106373, 106374, 10**6]
    coded = codes([[length] * 7 for length in lengths])
    assert coded[:, 0].tolist() == [length_to_byte(length) for length in lengths]


def test_equal_texts_beyond_the_cut_are_told_apart_by_path(shared: Database) -> None:
    local, rows = both_engines(
        shared, HashEncoder(), [entry(f"{n:03}.md", "same text", title="same") for n in range(90)]
    )
    vector = half_precision(HashEncoder().encode(["same text"])[0])
    for index in (local, rows):
        index.fill({digest("same text"): vector})
    probe = ProbeVector("q", "same text", vector)
    meaning = ProbeVector("meaning", "", vector)
    by_source = assert_same_found((rows, local), [probe, meaning], [Filter(), SOME], 5)
    assert by_source["q", "vector"][0] == "test:001#0"
    assert by_source["meaning", "vector"] == by_source["q", "vector"]


SOME = Filter(prefix="05")


@pytest.mark.parametrize("has_graph", [False, True], ids=["exact", "graph"])
def test_equal_vectors_are_told_apart_in_the_turn_that_finds_them(
    shared: Database, monkeypatch: pytest.MonkeyPatch, has_graph: bool
) -> None:
    monkeypatch.setattr(graphs, "EXACT_LIMIT", 50)
    texts = ["copied", "copied", "another"]
    copies = [entry(f"{n:03}.md", *texts, title="t") for n in range(90)]
    copies += [entry(f"{n:03}.md", f"other text {n}", title="t") for n in range(90, 120)]
    (scope,) = new_scopes(shared)
    rows = PostgresIndex(shared, scope, recipe="1", encoder="test/8", dim=8, exact=not has_graph)
    local = LocalIndex(None, recipe="1", encoder="test/8", dim=8)
    for index in (local, rows):
        index.apply(copies[::-1])
        index.fill({digest("copied"): axis(1), digest("another"): axis(0, 1)})
        index.fill({digest(f"other text {n}"): axis(1, n) for n in range(90, 120)})
    rows.save()
    assert rows.info().vector_search == ("HNSW" if has_graph else "exact")
    turns = []
    asked = Turns.ask

    def ask(self: Turns, *statements: Any, **options: Any) -> Any:
        turns.append(statements)
        return asked(self, *statements, **options)

    monkeypatch.setattr(Turns, "ask", ask)
    probe = ProbeVector("q", "", axis(1))
    with rows.snapshot() as snapshot:
        found_there = snapshot.candidates([probe], [Filter(), SOME], 5)
    # One finds the nearest, the other fetches their documents.
    assert len(turns) == 2
    paths = [document.path for document in found_there.documents]
    assert paths == ["000.md", "001.md", "002.md", "050.md", "051.md", "052.md"]
    assert_same_found((rows, local), [probe], [Filter(), SOME], 5)
