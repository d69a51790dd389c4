"""The project's own commits: why something is as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ragdocs.errors import NotFoundError
from ragdocs.search.corpus import Corpus
from ragdocs.text import times
from ragdocs.types import Filter, Findings, Probe, Query
from ragdocs.verbs import page

# Authors that are named where nobody has the name that was asked for.
MOST_AUTHORS = 20


@dataclass(frozen=True, slots=True)
class Commits:
    """What can be asked of a project's history."""

    corpus: Corpus
    clock: Callable[[], datetime]

    def search(
        self,
        query: str,
        paths: Sequence[str] = (),
        since: str = "",
        author: str = "",
        limit: int = 5,
    ) -> Findings:
        """Find commits by what they say and what they changed.

        Without words, the newest that pass the filters.
        """
        page.check_limit(limit)
        now = self.clock()
        where = self._filter(paths, since, author, now)
        if not query.strip():
            return page.newest(self.corpus, where, limit, now)
        words = Query(probes=(Probe(query),), limit=limit, where=where)
        return self.corpus.search(words, now)

    def _filter(self, paths: Sequence[str], since: str, author: str, now: datetime) -> Filter:
        """Return which commits may be found: by files or folders, by age and by author."""
        changed = []
        for path in paths:
            changed.append(path.strip().removeprefix("./").rstrip("/"))
        start = None
        if since.strip():
            start = times.start(since, now)
        return Filter(linked_to=tuple(changed), since=start, tags=self._authors(author))

    def _authors(self, author: str) -> tuple[str, ...]:
        """Return the names and addresses that contain a word, as git looks for authors."""
        word = author.strip().casefold()
        if not word:
            return ()
        authors = sorted(self.corpus.facets("tags"))
        matching = tuple(name for name in authors if word in name.casefold())
        if not matching:
            existing = ", ".join(authors[:MOST_AUTHORS])
            raise NotFoundError(f"no commit is by {author[:80]!r}", f"There are {existing}")
        return matching
