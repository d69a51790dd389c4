"""Which memory or document is meant.

By an id, a path, an absolute path, a resource's address or a plain name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from urllib.parse import unquote

from ragdocs.errors import NotFoundError, RagdocsError, ValidationError
from ragdocs.search.corpus import Corpus
from ragdocs.search.parse import document_id
from ragdocs.system.names import ENTRIES, OWN_ID, own_id, relative_name
from ragdocs.text import frontmatter as metadata
from ragdocs.types import Document
from ragdocs.verbs.context.scope import FOLDER as ITEMS

SCHEME = "ragdocs://"
# Earlier texts that are looked through for the id of a memory that is gone.
MOST_REVISIONS = 2000
LISTED = 5
_TRASHED = re.compile(r"\.trash/(?P<name>.+)_\d{8}_\d{6}(?:_\d+)?\.md")


def inside(corpus: Corpus, reference: str) -> str:
    """Return a reference without what tells where the store is; what is left is not checked yet."""
    lane = corpus.lane
    address = f"{SCHEME}{lane.name}/"
    if reference.startswith(address):
        return unquote(reference.removeprefix(address))
    root = f"{corpus.store.locate('')}{os.sep}"
    if reference.startswith(root):
        return reference.removeprefix(root).replace(os.sep, "/")
    for prefix in (f"{lane.name}:", f"{lane.base}/" if lane.base else ""):
        if prefix and reference.startswith(prefix):
            return reference.removeprefix(prefix)
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
    return item.path if item is not None else path


def past_path(corpus: Corpus, reference: str) -> str:
    """Return the path of a memory that may be gone.

    An id is looked up among the texts that were kept, too.
    """
    trashed = _from_trash(corpus, inside(corpus, reference))
    if trashed:
        return trashed
    path = memory_path(corpus, reference)
    wanted = path.removesuffix(".md")
    if "/" in wanted or find(corpus, reference) is not None:
        return path
    own = OWN_ID.fullmatch(wanted) is not None
    homes = []
    looked = 0
    for commit in corpus.versioned.commits():
        for step in commit.steps:
            looked += 1
            if step.path == path:
                return path
            at_home = step.path.startswith((f"{ENTRIES}/", f"{ITEMS}/")) and step.path.endswith(
                f"/{path}"
            )
            readable = own and looked <= MOST_REVISIONS and bool(step.version)
            if at_home or (readable and _says(corpus, step.version, wanted)):
                homes.append(step.path)
    return homes[0] if homes else path


def find(corpus: Corpus, reference: str) -> Document | None:
    """Return the card of the document that is meant, if it is indexed."""
    index, lane = corpus.index, corpus.lane
    name = inside(corpus, reference)
    with index.held():
        for path in (name, f"{name}.md"):
            document = index.document(document_id(lane, path))
            if document is not None and document.path == path:
                return document
        same_id = index.document(reference)
        owner = _only(owners(corpus, name), name)
        return same_id or owner or _item(corpus, f"{name.removesuffix('.md')}.md")


def owners(corpus: Corpus, name: str) -> list[Document]:
    """Return the memories that have this id of their own, that at its first place before others."""
    wanted = name.removesuffix(".md")
    if not OWN_ID.fullmatch(wanted):
        return []
    index, lane = corpus.index, corpus.lane
    home = index.document(document_id(lane, f"{ENTRIES}/{wanted}.md"))
    if home is not None and own_id(home) == wanted:
        return [home]
    with index.held():
        # Those in the folder of entries have the id of their name, and were asked for already.
        paths = [path for path in index.stamps() if not path.startswith(f"{ENTRIES}/mem_")]
        documents = [index.document(document_id(lane, path)) for path in paths]
        return [document for document in documents if document and own_id(document) == wanted]


def item_id(corpus: Corpus, reference: str, folders: Collection[str]) -> str:
    """Return the id of an item that may be given by its path in one of these folders."""
    folder, _, name = inside(corpus, reference).rpartition("/")
    return (name if folder in folders else reference).removesuffix(".md")


def _item(corpus: Corpus, path: str) -> Document | None:
    """Return the item of the repository with this id, unless a memory at the top has that name."""
    if "/" in path or not corpus.lane.writable:
        return None
    index = corpus.index
    paths = [known for known in index.stamps() if known.startswith(f"{ITEMS}/")]
    matches = [known for known in paths if PurePosixPath(known).name == path]
    if not matches or _exists(corpus, path):
        return None
    documents = [index.document(document_id(corpus.lane, match)) for match in matches]
    return _only([document for document in documents if document], path.removesuffix(".md"))


def _from_trash(corpus: Corpus, name: str) -> str:
    """Return the path that a memory had before it went to the trash.

    Unless there is one at it again.
    """
    match = _TRASHED.fullmatch(name)
    path = f"{match['name']}.md" if match else ""
    known = path and any(
        step.path == path for commit in corpus.versioned.commits() for step in commit.steps
    )
    return path if known and not _exists(corpus, path) else ""


def _only(documents: Sequence[Document], name: str) -> Document | None:
    if len(documents) > 1:
        paths = ", ".join(document.path for document in documents[:LISTED])
        raise ValidationError(
            f"{len(documents)} memories have the id {name[:80]!r}: {paths}", "Name one by its path"
        )
    return documents[0] if documents else None


def _exists(corpus: Corpus, path: str) -> bool:
    try:
        corpus.store.read(path)
    except NotFoundError:
        return False
    except RagdocsError:
        # It is there, though it cannot be read.
        return True
    return True


def _says(corpus: Corpus, version: str, wanted: str) -> bool:
    """Tell whether a text that was kept has this id."""
    with suppress(RagdocsError):
        block = metadata.split(corpus.versioned.recover(version))[0]
        return block is not None and metadata.load(block)[0].get("id") == wanted
    return False
