"""What a document is found by besides its text: title, path, name, tags and date."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ragdocs.search.fields import objection, shared_fields, telling
from ragdocs.types import Chunk, Document, IndexedDocument


def entry(path: str, title: str, text: str = "Some text.") -> IndexedDocument:
    document = Document(
        id=path,
        lane="docs",
        path=path,
        title=title,
        version="",
        created_at=datetime(2026, 5, 3, tzinfo=UTC),
    )
    return IndexedDocument(document, (Chunk("c", path, (), text, 1, 1, "d"),), "stamp")


def test_words_that_every_title_has_are_left_out_unless_there_are_no_others() -> None:
    assert telling("How to use the client libraries") == "use client libraries"
    assert telling("To be or not to be") == "To be or not to be"


@pytest.mark.parametrize(
    ("path", "name", "folder"),
    [
        ("docs/storage/ephemeral-volumes.md", "ephemeral-volumes", "docs/storage"),
        ("docs/storage/_index.md", "storage", "docs/storage"),
        ("docs/storage/README.md", "storage", "docs/storage"),
        ("README.md", "README", ""),
    ],
)
def test_a_file_goes_by_its_name_or_by_that_of_its_folder(
    path: str, name: str, folder: str
) -> None:
    found = shared_fields(entry(path, "Title"))
    assert (found["name"], found["path"]) == (name, folder)


def test_a_number_that_a_file_is_called_by_is_not_its_name() -> None:
    found = shared_fields(entry("docs/502.md", "502"))
    assert (found["name"], found["title"]) == ("", "")
    found = shared_fields(entry("docs/error-502.md", "Error 502"))
    assert (found["name"], found["title"]) == ("error-502", "Error 502")


@pytest.mark.parametrize(
    ("title", "text", "indexed"),
    [
        ("kube-proxy", "kube-proxy is a network proxy.", "kube-proxy"),
        ("We chose Postgres", "We chose Postgres\n\nBecause it was there.", ""),
        ("We chose Postgres because\u2026", "We chose Postgres because it was there.", ""),
    ],
)
def test_first_words_that_were_taken_for_a_title_count_where_they_stand_only(
    title: str, text: str, indexed: str
) -> None:
    assert shared_fields(entry("2026-05-03/101500_a1b2.md", title, text))["title"] == indexed


def test_a_date_is_searched_as_people_say_it() -> None:
    assert shared_fields(entry("a.md", "A"))["date"] == "3 May 2026"


def of_passages(*texts: str) -> IndexedDocument:
    document = entry("a.md", "a").document
    chunks = [Chunk(f"c{n}", "a", (), text, 1, 1, "d") for n, text in enumerate(texts)]
    return IndexedDocument(document, tuple(chunks))


def of_words(count: int) -> IndexedDocument:
    words = [f"w{number:07}" for number in range(count)]
    return of_passages(*(" ".join(words[at : at + 1_000]) for at in range(0, count, 1_000)))


def test_a_document_of_too_many_different_words_is_refused() -> None:
    assert objection(of_words(50_000), 60) == ""
    assert "more than 200,000 different words" in objection(of_words(201_000), 60)
    assert "takes too long" in objection(of_words(1_000), -1)
    assert objection(of_passages(*["the same words again " * 100] * 1_000), 60) == ""
