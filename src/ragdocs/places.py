"""A lane of an open project: its corpus together with the parts it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragdocs import caller
from ragdocs.config import Config
from ragdocs.engines.local.opening import is_saved
from ragdocs.lanes import Lane
from ragdocs.project import layout
from ragdocs.protocols import Index
from ragdocs.search.corpus import Corpus
from ragdocs.stores.files.store import FileStore

# Each is imported where a lane of its kind is opened.
if TYPE_CHECKING:
    from ragdocs.stores.git.commits import CommitStore
    from ragdocs.stores.git.journal import JournalStore
    from ragdocs.stores.postgres.feed import Feed
    from ragdocs.stores.postgres.texts import RowStore
    from ragdocs.stores.sources.shelf import Shelf


@dataclass(frozen=True, slots=True)
class Place:
    """A corpus together with its parts."""

    corpus: Corpus
    store: FileStore | CommitStore | JournalStore | RowStore | Shelf
    index: Index
    # What other servers change, where a team shares the texts and the index.
    feed: Feed | None = None


def has_index(config: Config, places: Mapping[str, Place]) -> bool:
    """Tell whether there is an index of any lane, which may have vectors."""
    for place in places.values():
        if place.feed is not None or is_saved(layout.index_root(config, place.corpus.lane)):
            return True
    return False


def corpora(places: Mapping[str, Place], *lanes: Lane) -> dict[str, Corpus]:
    """Return the corpora of these lanes, or of all, as far as they are open to the caller."""
    names = [lane.name for lane in lanes] or list(places)
    is_remote = caller.current().remote
    opened = {}
    for name in names:
        place = places.get(name)
        if place is not None and not (is_remote and place.corpus.lane.is_personal):
            opened[name] = place.corpus
    return opened
