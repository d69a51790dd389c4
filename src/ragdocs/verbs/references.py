"""Which memory or document is meant.

By an id, a path, an absolute path, a resource's address or a plain name; a person may also give a
title, an alias or a line.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote

from ragdocs.errors import NotFoundError, RagdocsError, ValidationError
from ragdocs.lanes import document_id
from ragdocs.search.corpus import Corpus
from ragdocs.system.names import ENTRIES, OWN_ID, own_id, relative_name
from ragdocs.system.patterns import later
from ragdocs.types import Document, Revision
from ragdocs.verbs.context.scope import FOLDER as ITEMS

SCHEME = "ragdocs://"
# Earlier texts that are looked through for the id of a memory that is gone.
MOST_REVISIONS = 2000
LISTED = 5
_TRASHED = later(r"\.trash/(?P<name>.+)_\d{8}_\d{6}(?:_\d+)?\.md")
# A line, or the first of several as a search prints them.
_LINE = later(r"(?P<name>.+):(?P<line>[0-9]{1,9})(?:-[0-9]{1,9})?")


@dataclass(frozen=True, slots=True)
class Location:
    """A file, and a line in it if one was named."""

    lane: str
    name: str
    path: str
    line: int | None


def inside(corpus: Corpus, reference: str) -> str:
    """Return a reference without the address of its store; the rest is not checked yet."""
    lane = corpus.lane
    address = f"{SCHEME}{lane.name}/"
    if reference.startswith(address):
        return unquote(reference.removeprefix(address))
    root = f"{corpus.store.locate('')}{os.sep}"
    if reference.startswith(root):
        return reference.removeprefix(root).replace(os.sep, "/")
    if reference.startswith(f"{lane.name}:"):
        return reference.removeprefix(f"{lane.name}:")
    if lane.base and reference.startswith(f"{lane.base}/"):
        return reference.removeprefix(f"{lane.base}/")
    return reference


def new_path(corpus: Corpus, reference: str) -> str:
    """Return the path of a memory that is to be written under a new name."""
    return relative_name(inside(corpus, reference))


def memory_path(corpus: Corpus, reference: str) -> str:
    """Return the path of the memory that is meant, whether there is one at it or not."""
    name = inside(corpus, reference)
    owner = _only(owners(corpus, name), name)
    if owner is not None:
        return owner.path
    path = relative_name(name)
    item = _item(corpus, path)
    if item is not None:
        return item.path
    return path


def past_path(corpus: Corpus, reference: str) -> str:
    """Return the path of a memory that may be gone.

    An id is looked up among the texts that were kept, too.
    """
    trashed = _from_trash(corpus, inside(corpus, reference))
    if trashed:
        return trashed
    path = memory_path(corpus, reference)
    if "/" in path or find(corpus, reference) is not None:
        return path
    own = path.removesuffix(".md")
    if not OWN_ID.fullmatch(own):
        own = ""
    home = ""
    for number, revision in enumerate(_revisions(corpus)):
        if revision.path == path:
            return path
        # The first match is the newest; the search goes on for a file of this very name.
        if home:
            continue
        is_match = _is_at_home(revision.path, path)
        if not is_match and own and number < MOST_REVISIONS:
            is_match = _has_id(corpus, revision.version, own)
        if is_match:
            home = revision.path
    return home or path


def find(corpus: Corpus, reference: str) -> Document | None:
    """Return the document that is meant, if it is indexed."""
    name = inside(corpus, reference)
    ids = {}
    for path in (name, f"{name}.md"):
        ids[path] = document_id(corpus.lane, path)
    documents = corpus.named([*ids.values(), reference])
    for path, path_id in ids.items():
        document = documents.get(path_id)
        if document is not None and document.path == path:
            return document
    owner = _only(owners(corpus, name), name)
    document = documents.get(reference)
    if document is not None and document.id == reference:
        return document
    return owner or _item(corpus, f"{name.removesuffix('.md')}.md")


def locate(corpora: Sequence[Corpus], reference: str) -> Location:
    """Return the file of a document or a memory that is named by path, id, title or file name."""
    reference = reference.strip()
    matches = _called(corpora, reference)
    line = None
    written = _LINE.fullmatch(reference)
    if not matches and written:
        line = int(written["line"])
        reference = written["name"]
        matches = _called(corpora, reference)
    if not matches:
        raise NotFoundError(
            f"there is no document or memory {reference[:200]!r}", _suggestion(corpora, reference)
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


def owners(corpus: Corpus, name: str) -> list[Document]:
    """Return the memories that have this id of their own.

    An entry that is still at its first path is the only one.
    """
    wanted = name.removesuffix(".md")
    if not OWN_ID.fullmatch(wanted):
        return []
    home = corpus.get(document_id(corpus.lane, f"{ENTRIES}/{wanted}.md"))
    if home is not None and own_id(home) == wanted:
        return [home]
    ids = []
    for path in corpus.stamps():
        # Those in the folder of entries have the id of their name, and were asked for already.
        if not path.startswith(f"{ENTRIES}/mem_"):
            ids.append(document_id(corpus.lane, path))
    matches = []
    for document in corpus.named(ids).values():
        if own_id(document) == wanted:
            matches.append(document)
    return matches


def item_id(corpus: Corpus, reference: str, folders: Collection[str]) -> str:
    """Return the id of an item that may be given by its path in one of these folders."""
    folder, _, name = inside(corpus, reference).rpartition("/")
    if folder not in folders:
        name = reference
    return name.removesuffix(".md")


def _item(corpus: Corpus, path: str) -> Document | None:
    """Return the item of the repository with this id, unless a memory at the top has that name."""
    # Looking for the file is cheaper than looking at the names of all.
    if "/" in path or not corpus.lane.writable or _exists(corpus, path):
        return None
    matches = []
    for indexed in corpus.stamps():
        if indexed.startswith(f"{ITEMS}/") and PurePosixPath(indexed).name == path:
            matches.append(document_id(corpus.lane, indexed))
    if not matches:
        return None
    documents = corpus.named(matches)
    return _only(list(documents.values()), path.removesuffix(".md"))


def _from_trash(corpus: Corpus, name: str) -> str:
    """Return the path that a memory had before it went to the trash.

    Nothing if there is one at it again.
    """
    match = _TRASHED.fullmatch(name)
    if match is None:
        return ""
    path = f"{match['name']}.md"
    was_changed = any(revision.path == path for revision in _revisions(corpus))
    if not was_changed or _exists(corpus, path):
        return ""
    return path


def _revisions(corpus: Corpus) -> list[Revision]:
    """List all that was changed, newest first."""
    revisions: list[Revision] = []
    for commit in corpus.versioned.commits():
        revisions += commit.steps
    return revisions


def _is_at_home(path: str, name: str) -> bool:
    """Tell whether a path is where an entry or an item of this name is written first."""
    return path.startswith((f"{ENTRIES}/", f"{ITEMS}/")) and path.endswith(f"/{name}")


def _only(documents: Sequence[Document], name: str) -> Document | None:
    if len(documents) > 1:
        paths = ", ".join(sorted(document.path for document in documents)[:LISTED])
        raise ValidationError(
            f"{len(documents)} memories have the id {name[:80]!r}: {paths}", "Name one by its path"
        )
    if not documents:
        return None
    return documents[0]


def _exists(corpus: Corpus, path: str) -> bool:
    try:
        if path in corpus.store.scan([path]).stamps:
            return True
        # It may be spelled otherwise.
        corpus.store.read(path)
    except NotFoundError:
        return False
    except RagdocsError:
        # It is there, though it cannot be read.
        return True
    return True


def _has_id(corpus: Corpus, version: str, wanted: str) -> bool:
    """Tell whether a kept text has this id."""
    if not version:
        return False
    with suppress(RagdocsError):
        from ragdocs.text import frontmatter

        block = frontmatter.split(corpus.versioned.recover(version))[0]
        return block is not None and frontmatter.load(block)[0].get("id") == wanted
    return False


def _called(corpora: Sequence[Corpus], reference: str) -> list[tuple[Corpus, Document]]:
    """Return the documents of this name: those that have it exactly, or else as a part."""
    exact = []
    for corpus in corpora:
        with suppress(ValidationError):
            document = find(corpus, reference.removeprefix("./"))
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


def _suggestion(corpora: Sequence[Corpus], reference: str) -> str:
    import difflib

    near = difflib.get_close_matches(reference, list(_all_names(corpora)), n=1)
    if near:
        return f"Did you mean {near[0]}?"
    return "List memories with <list memories>, or look for it with <search documentation>"


def _all_names(corpora: Sequence[Corpus]) -> Iterator[str]:
    for corpus in corpora:
        for path in corpus.stamps():
            yield path
            yield PurePosixPath(path).name
