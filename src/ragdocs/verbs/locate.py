"""Which file a person means by a name: of a document or a memory, in any lane of files."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath

from ragdocs.errors import NotFoundError, ValidationError
from ragdocs.search.corpus import Corpus
from ragdocs.types import Document
from ragdocs.verbs import references

# A line, or the first of several as a search prints them.
_LINE = re.compile(r"(?P<name>.+):(?P<line>[0-9]{1,9})(?:-[0-9]{1,9})?")
LISTED = 5


@dataclass(frozen=True, slots=True)
class Location:
    """A file, and a line in it if one was named."""

    lane: str
    name: str
    path: str
    line: int | None


def locate(corpora: Sequence[Corpus], reference: str) -> Location:
    """Return the file of a document or a memory that is named by path, id, title or file name."""
    reference = reference.strip()
    matches = _matches(corpora, reference)
    line = None
    written = _LINE.fullmatch(reference)
    if not matches and written:
        line = int(written["line"])
        reference = written["name"]
        matches = _matches(corpora, reference)
    if not matches:
        raise NotFoundError(
            f"there is no document or memory {reference[:200]!r}", _nearest(corpora, reference)
        )
    if len(matches) > 1:
        names = ", ".join(document.id for _, document in matches[:LISTED])
        raise ValidationError(
            f"{reference[:200]!r} may mean {len(matches)} files: {names}",
            "Name one as it is written there",
        )
    corpus, document = matches[0]
    path = corpus.store.locate(document.path)
    return Location(corpus.lane.name, document.id, path, line)


def _matches(corpora: Sequence[Corpus], reference: str) -> list[tuple[Corpus, Document]]:
    """Return the documents of this name: those that have it exactly, or else as a part."""
    exact = []
    for corpus in corpora:
        with suppress(ValidationError):
            document = references.find(corpus, reference.removeprefix("./"))
            if document is not None:
                exact.append((corpus, document))
    if exact:
        return exact
    wanted = reference.casefold()
    loose = []
    for corpus in corpora:
        for document in corpus.documents():
            if wanted in _loose_names(document):
                loose.append((corpus, document))
    return loose


def _loose_names(document: Document) -> set[str]:
    """Return what a person may call a document: its file name, its title and its aliases."""
    file = PurePosixPath(document.path)
    names = {file.name, file.stem, document.title, *document.aliases}
    return {name.casefold() for name in names}


def _nearest(corpora: Sequence[Corpus], reference: str) -> str:
    near = difflib.get_close_matches(reference, list(_all_names(corpora)), n=1)
    if near:
        return f"Did you mean {near[0]}?"
    return "List memories with <list memories>, or look for it with <search documentation>"


def _all_names(corpora: Sequence[Corpus]) -> Iterator[str]:
    for corpus in corpora:
        for path in corpus.stamps():
            yield path
            yield PurePosixPath(path).name
