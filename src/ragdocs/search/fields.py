"""What of a document its passages are found by, besides their own text."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import PurePosixPath

from ragdocs.system.turns import give_way
from ragdocs.text.languages import ENGLISH, STEMMED, decide, evidence, is_certain
from ragdocs.text.terms import meaningful, terms
from ragdocs.types import Chunk, IndexedDocument

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
# Different terms of one document. A book has some ten thousand; every one takes the index about
# 0.04 ms.
MOST_TERMS = 200_000
# Characters below which no text has so many terms that it takes long.
PLAIN_SIZE = 500_000
NAMELESS = ("index", "readme")
# Fields whose words are in the language of the document; names of files are mostly English.
IN_ITS_LANGUAGE = ("title", "tags")
# A passage in another language than English has a term that says so: no word has this mark.
LANGUAGE_MARK = ":"

FieldTerms = Mapping[str, list[str]]
# What speaks for the language of a passage is asked for twice when it is compared with its rows.
_evidence = lru_cache(maxsize=256)(evidence)
# A file whose name is a number is not what a question means that has this number in it.
_NUMBER = re.compile(r"\d+")


@lru_cache(maxsize=4096)
def meant(word: str, language: str = ENGLISH) -> frozenset[str]:
    """Return the terms that a word of a query asks for."""
    return frozenset(meaningful(word, (language,)))


def language_term(language: str) -> str:
    """Return the term of all passages in a language."""
    return f"{LANGUAGE_MARK}{language}"


# The terms of the languages whose passages are counted: in all others words stay as they are.
LANGUAGE_TERMS = {language_term(language): language for language in STEMMED if language != ENGLISH}


def field_terms(entry: IndexedDocument, skipped: Collection[int] = ()) -> list[FieldTerms]:
    """Return the terms of each field of each passage, stemmed by the language of the passage.

    The passages at the positions in `skipped` get only the terms that all share.
    """
    languages = passage_languages(entry)
    shared = {}
    own_language = _main_language(languages)
    for field, text in shared_fields(entry, own_language).items():
        language = ENGLISH
        if field in IN_ITS_LANGUAGE:
            language = own_language
        if text:
            shared[field] = list(terms(text, language))
    passages: list[FieldTerms] = []
    for position, chunk in enumerate(entry.chunks):
        own: FieldTerms = {}
        if position not in skipped:
            own = _own_terms(chunk, languages[position])
        passages.append({**own, **shared})
        give_way()
    return passages


def is_read_alone(chunk: Chunk) -> bool:
    """Tell whether the terms of a passage depend on nothing but its own text and headings."""
    return is_certain(_evidence(chunk.text))


def _own_terms(chunk: Chunk, language: str) -> dict[str, list[str]]:
    """Return the terms of the fields that a passage has for itself."""
    body = list(terms(chunk.text, language))
    marker = language_term(language)
    if marker in LANGUAGE_TERMS:
        body.append(marker)
    own = {}
    if body:
        own["body"] = body
    headings = " ".join(chunk.headings)
    if headings:
        own["headings"] = list(terms(headings, language))
    return own


def passage_languages(entry: IndexedDocument) -> list[str]:
    """Return the language of each passage; one that says too little has that of its document."""
    of_passages = []
    together: Counter[str] = Counter()
    for chunk in entry.chunks:
        counts = _evidence(chunk.text)
        together.update(counts)
        of_passages.append(counts)
    of_document = decide(together) or ENGLISH
    return [decide(counts, unless=of_document) for counts in of_passages]


def _main_language(languages: list[str]) -> str:
    """Return the language of most passages; of equally many, the first by its code."""
    counts = Counter(languages)
    return min(counts, key=lambda language: (-counts[language], language), default=ENGLISH)


def objection(entry: IndexedDocument, seconds: float) -> str:
    """Say why a document would hold up all others, if it would.

    Looking takes so much processor time at most.
    """
    deadline = time.thread_time() + seconds
    different: set[str] = set()
    is_large = sum(len(chunk.text) for chunk in entry.chunks) > PLAIN_SIZE
    for chunk in entry.chunks:
        if time.thread_time() > deadline:
            return "it takes too long to read: split it into smaller files, or exclude it"
        if not is_large:
            return ""
        different.update(terms(chunk.text))
        if len(different) > MOST_TERMS:
            return (
                f"it has more than {MOST_TERMS:,} different words: "
                "split it into smaller files, or exclude it"
            )
    return ""


def shared_fields(entry: IndexedDocument, language: str = ENGLISH) -> dict[str, str]:
    """Return the fields that all passages of a document share."""
    document = entry.document
    file = PurePosixPath(document.path)
    shared = {
        "title": "",
        "tags": " ".join((*document.tags, *document.aliases)),
        "path": "",
        "name": "",
        "date": "",
    }
    name = telling(_name(file)) or file.stem
    if not _NUMBER.fullmatch(name):
        shared["name"] = name
    if not _borrowed(entry) and not _NUMBER.fullmatch(document.title):
        shared["title"] = telling(document.title, language)
    if file.parent.name:
        shared["path"] = str(file.parent)
    created = document.created_at
    if created:
        # As people say it: "what did we decide in May 2026".
        shared["date"] = f"{created.day} {MONTHS[created.month - 1]} {created.year}"
    return shared


def _name(file: PurePosixPath) -> str:
    # Every folder may have a page of this name: it says what the folder's name says.
    if file.stem.strip("_").casefold() in NAMELESS:
        return file.parent.name
    return file.stem


def telling(title: str, language: str = ENGLISH) -> str:
    """Return the words of a title that a query may ask for, or all of them if it has no others."""
    return " ".join(word for word in title.split() if meant(word, language)) or title


def _borrowed(entry: IndexedDocument) -> bool:
    """Tell whether a title is nothing but the first words of the text, which count there."""
    title = entry.document.title
    text = ""
    if entry.chunks:
        text = entry.chunks[0].text
    if title.endswith("\u2026"):
        return text.startswith(title[:-1])
    first_line, _, _ = text.partition("\n")
    return first_line.strip() == title
