"""An edited document has the rows that it would have if it were written for the first time."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator

import pytest

from ragdocs import caller
from ragdocs.caller import Caller
from ragdocs.search.fields import field_terms, is_read_alone
from ragdocs.system.postgres.database import Database
from ragdocs.types import Chunk, IndexedDocument

from .contract import entry
from .test_postgres import make, new_scopes

ENGLISH = "They were there when he had been where she was, and what they have would be these {}."
GERMAN = "Die Pumpe ist nicht in dem Keller, und sie war auch nie für das Haus und den Garten {}."
# Says too little: its words are stemmed as those of the passages around it.
SHORT = "Pumpen gardens houses {}"


@pytest.fixture(autouse=True)
def tester() -> Iterator[None]:
    caller.begin(dataclasses.replace(Caller(), name="tester"))
    yield
    caller.begin(Caller())


def postings(database: Database, scope: int) -> list[tuple[object, ...]]:
    with database.maintaining() as session:
        return session.execute(
            "SELECT term, p.passages, bodies, payload, lengths FROM postings p"
            " JOIN documents d USING (doc_id) WHERE p.scope = %s ORDER BY term",
            [scope],
        ).fetchall()


def best(database: Database, scope: int) -> dict[str, float]:
    with database.maintaining() as session:
        return dict(
            session.execute("SELECT term, best FROM postings WHERE scope = %s", [scope]).fetchall()
        )


def with_headings(document: IndexedDocument, rng: random.Random) -> IndexedDocument:
    chunks = []
    for chunk in document.chunks:
        headings = tuple(rng.sample(("pumps", "gardens", "years"), rng.randint(0, 1)))
        chunks.append(chunk._replace(headings=headings))
    return dataclasses.replace(document, chunks=tuple(chunks))


def edited(texts: list[str], rng: random.Random) -> list[str]:
    """Change, add, repeat, remove or move a passage."""
    texts = list(texts)
    place = rng.randrange(len(texts))
    fresh = rng.choice((ENGLISH, GERMAN, SHORT)).format(f"word{rng.randint(0, 9)}")
    match rng.randint(0, 4):
        case 0:
            texts[place] = fresh
        case 1:
            texts.insert(place, fresh)
        case 2:
            texts.insert(place, rng.choice(texts))
        case 3 if len(texts) > 1:
            del texts[place]
        case _:
            rng.shuffle(texts)
    return texts


@pytest.mark.parametrize("seed", range(3))
def test_an_edited_document_has_the_rows_of_a_new_one(database: Database, seed: int) -> None:
    rng = random.Random(seed)
    scope, *others = new_scopes(database, 13)
    index = make(database, scope)
    texts = [ENGLISH.format("one"), GERMAN.format("two"), SHORT.format("three")]
    index.apply([entry("a.md", *texts)])
    for other in others:
        texts = edited(texts, rng)
        title = rng.choice(("a", "pump", "Garten"))
        document = with_headings(entry("a.md", *texts, title=title), rng)
        index.apply([document])
        fresh = make(database, other)
        fresh.apply([document])
        assert postings(database, scope) == postings(database, other)
        assert index.contents()["documents"] == fresh.contents()["documents"]
        with database.maintaining() as session:
            # Bounds are made with average lengths, which each index has its own of.
            session.execute(
                "UPDATE indexes SET reference = (SELECT reference FROM indexes WHERE scope = %s)"
                " WHERE scope = %s",
                [scope, other],
            )
        fresh.apply([], ["a.md"])
        fresh.apply([document])
        kept = best(database, scope)
        for term, bound in best(database, other).items():
            assert kept[term] >= bound


def test_only_passages_that_changed_are_analysed(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    (scope,) = new_scopes(database)
    index = make(database, scope)
    texts = [ENGLISH.format(number) for number in range(5)]
    index.apply([entry("a.md", *texts)])
    known = []

    def noted(document: IndexedDocument, positions: dict[int, int]) -> object:
        known.append(positions)
        return field_terms(document, positions)

    monkeypatch.setattr("ragdocs.engines.postgres.rows.field_terms", noted)
    texts[2] = ENGLISH.format("changed")
    index.apply([entry("a.md", *texts)])
    assert known == [{0: 0, 1: 1, 3: 3, 4: 4}]


def test_a_text_that_begins_with_its_title_is_not_taken_for_one_without(
    database: Database,
) -> None:
    (scope,) = new_scopes(database)
    index = make(database, scope)
    # The digest is that of the title and the text, whichever of them has the title.
    long = entry("a.md", f"pump\n{ENGLISH}")
    (chunk,) = long.chunks
    index.apply([long])
    shorter = chunk._replace(text=ENGLISH)
    index.apply([dataclasses.replace(long, chunks=(shorter,))])
    counts = {term: payload for term, _, _, payload, _ in postings(database, scope)}
    (other,) = new_scopes(database)
    fresh = make(database, other)
    fresh.apply([dataclasses.replace(long, chunks=(shorter,))])
    assert counts == {term: payload for term, _, _, payload, _ in postings(database, other)}
    with database.maintaining() as session:
        (row,) = session.execute("SELECT text FROM passages WHERE scope = %s", [scope]).fetchall()
    assert row == (ENGLISH.encode(),)


@pytest.mark.parametrize(("text", "alone"), [(ENGLISH, True), (SHORT, False), ("", False)])
def test_a_short_text_is_read_in_the_language_of_its_document(text: str, alone: bool) -> None:
    assert is_read_alone(Chunk("a#0", "a", (), text, 1, 1, "")) is alone
