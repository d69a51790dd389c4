"""The project's own commits: why something is as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ragdocs.errors import NotFoundError
from ragdocs.search.corpus import Corpus
from ragdocs.search.newest import age_order
from ragdocs.text import times
from ragdocs.text.formats.journal import SUFFIX
from ragdocs.types import Filter, Findings, Hit, Probe, Query
from ragdocs.verbs import page as answers
from ragdocs.verbs.journal_shapes import CommitHit, CommitHits

# Paths of a commit that are shown.
SHOWN_PATHS = 10


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
        answers.check_limit(limit)
        now = self.clock()
        where = Filter(
            linked_to=tuple(path.strip().removeprefix("./").rstrip("/") for path in paths),
            since=times.start(since, now) if since.strip() else None,
            tags=self._authors(author),
        )
        if query.strip():
            findings = self.corpus.search(
                Query(probes=(Probe(query),), limit=limit, where=where), now
            )
        else:
            findings = self._newest(where, limit, now)
        shaped, omitted, notes = answers.fit(findings, lambda hit: _shape(hit, now), self.budget)
        return CommitHits(result=shaped, omitted=omitted, notes=notes)

    def _authors(self, author: str) -> tuple[str, ...]:
        """Return the names and addresses that contain a word; git takes a part of a name, too."""
        word = author.strip().casefold()
        if not word:
            return ()
        known = {tag for document in self.corpus.index.documents() for tag in document.tags}
        found = tuple(sorted(tag for tag in known if word in tag.casefold()))
        if not found:
            raise NotFoundError(
                f"no commit is by {author[:80]!r}", f"There are {', '.join(sorted(known)[:20])}"
            )
        return found

    def _newest(self, where: Filter, limit: int, now: datetime) -> Findings:
        index = self.corpus.index
        with index.held():
            found = sorted(index.documents(where), key=lambda document: age_order(document, now))
            keys = [index.chunks(document.id)[0] for document in found[:limit]]
            hits = tuple(Hit(card, piece, 0.0, ()) for card, piece in index.load(keys))
        return Findings(hits=hits, omitted=len(found) - len(hits), notes=self.corpus.notes())


def _shape(hit: Hit, now: datetime) -> CommitHit:
    document = hit.document
    changed = [str(path) for path in document.git.files_changed] if document.git else []
    folders = {path.rpartition("/")[0] for path in changed}
    files = [path for path in changed if path not in folders]
    shape = CommitHit(
        commit=document.path.removesuffix(SUFFIX),
        subject=answers.title(document),
        content="",
        author=answers.cut(document.source, answers.LONGEST_ORIGIN),
        timestamp=answers.moment(document.created_at),
        age=answers.age(document.created_at, now),
        paths=files[:SHOWN_PATHS],
        score=round(hit.score, 3),
        why=answers.why(hit) if hit.signals else "",
    )
    if len(files) > SHOWN_PATHS:
        shape["paths_total"] = len(files)
    return shape
