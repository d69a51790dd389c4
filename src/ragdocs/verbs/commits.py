"""The project's own commits: why something is as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ragdocs.errors import NotFoundError
from ragdocs.search.corpus import Corpus
from ragdocs.text import times
from ragdocs.text.formats.journal import SUFFIX
from ragdocs.types import Document, Filter, Hit, Probe, Query
from ragdocs.verbs import page
from ragdocs.verbs.journal_shapes import CommitHit, CommitHits

# Paths of a commit that are listed.
MOST_PATHS = 10
# Authors that are named where nobody has the name that was asked for.
MOST_AUTHORS = 20


@dataclass(frozen=True, slots=True)
class Commits:
    """What can be asked of a project's history."""

    corpus: Corpus
    clock: Callable[[], datetime]
    budget: int

    def search(
        self,
        query: str,
        paths: Sequence[str] = (),
        since: str = "",
        author: str = "",
        limit: int = 5,
    ) -> CommitHits:
        """Find commits by what they say and what they changed.

        Without words, the newest that pass the filters.
        """
        page.check_limit(limit)
        now = self.clock()
        start = None
        if since.strip():
            start = times.start(since, now)
        changed = tuple(path.strip().removeprefix("./").rstrip("/") for path in paths)
        where = Filter(linked_to=changed, since=start, tags=self._authors(author))
        if query.strip():
            words = Query(probes=(Probe(query),), limit=limit, where=where)
            findings = self.corpus.search(words, now)
        else:
            findings = page.newest(self.corpus, where, limit, now)
        results, omitted, notes = page.fit(findings, lambda hit: _shape(hit, now), self.budget)
        return CommitHits(result=results, omitted=omitted, notes=notes)

    def _authors(self, author: str) -> tuple[str, ...]:
        """Return the names and addresses that contain a word; git takes a part of a name, too."""
        word = author.strip().casefold()
        if not word:
            return ()
        authors = sorted(self.corpus.facets("tags"))
        matching = tuple(name for name in authors if word in name.casefold())
        if not matching:
            existing = ", ".join(authors[:MOST_AUTHORS])
            raise NotFoundError(f"no commit is by {author[:80]!r}", f"There are {existing}")
        return matching


def _shape(hit: Hit, now: datetime) -> CommitHit:
    document = hit.document
    files = _files(document)
    shape = CommitHit(
        commit=document.path.removesuffix(SUFFIX),
        subject=page.title(document),
        content="",
        author=page.cut(document.source, page.LONGEST_ORIGIN),
        timestamp=page.moment(document.created_at),
        age=page.age(document.created_at, now),
        paths=files[:MOST_PATHS],
        score=round(hit.score, 3),
        why="",
    )
    if hit.signals:
        shape["why"] = page.why(hit)
    if len(files) > MOST_PATHS:
        shape["paths_total"] = len(files)
    return shape


def _files(document: Document) -> list[str]:
    """Return the files that a commit changed, without the folders they are in."""
    if document.git is None:
        return []
    changed = [str(path) for path in document.git.files_changed]
    folders = {path.rpartition("/")[0] for path in changed}
    return [path for path in changed if path not in folders]
