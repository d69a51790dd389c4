"""Listing memories without a query: which there are, in an order that a person chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from ragdocs.errors import ValidationError
from ragdocs.search.corpus import Corpus
from ragdocs.text import times
from ragdocs.types import Document, Filter
from ragdocs.verbs import references

Sort = Literal["newest", "oldest", "name", "size"]
# The status that stands for every status.
EVERY_STATUS = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which memories are listed; an empty field asks for nothing."""

    kind: str = ""
    tags: Sequence[str] = ()
    since: str = ""
    status: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class MemoryList:
    """Memories in the order that was asked for, and how many more there are."""

    documents: Sequence[Document]
    omitted: int


@dataclass(frozen=True, slots=True)
class Browse:
    """What can be listed of the memory lane."""

    corpus: Corpus
    clock: Callable[[], datetime]

    def list_memories(
        self, selection: Selection, sort: Sort = "newest", limit: int | None = None
    ) -> MemoryList:
        """List the memories that are selected; archived and expired ones only by their status."""
        if limit is not None and limit < 1:
            raise ValidationError(f"limit is {limit}", "Ask for 1 memory or more")
        now = self.clock()
        documents = self._sorted(self._filter(selection, now), sort, now)
        chosen = documents[:limit]
        return MemoryList(chosen, len(documents) - len(chosen))

    def _filter(self, selection: Selection, now: datetime) -> Filter:
        where = Filter(tags=tuple(selection.tags), prefix=self._folder(selection.path))
        if selection.kind:
            where = replace(where, kinds=(selection.kind,))
        if selection.since:
            where = replace(where, since=times.start(selection.since, now))
        if not selection.status:
            return replace(where, hidden=self.corpus.lane.hidden, alive_at=now)
        if selection.status.casefold() == EVERY_STATUS:
            return where
        return replace(where, statuses=(selection.status,))

    def _sorted(self, where: Filter, sort: Sort, now: datetime) -> list[Document]:
        if sort in ("newest", "oldest"):
            return self.corpus.documents(where, sort, now=now)
        documents = self.corpus.documents(where)
        if sort == "size":
            documents.sort(key=_largest_first)
        return documents

    def _folder(self, path: str) -> str:
        """Return what the paths below a folder begin with, or the path itself of a memory."""
        name = references.inside(self.corpus, path.strip().removeprefix("./")).strip("/")
        if not name or name in self.corpus.stamps([name]):
            return name
        return f"{name}/"


def _largest_first(document: Document) -> tuple[int, str]:
    return -document.size, document.path
