"""The state of a lane's index against its files."""

from __future__ import annotations

from ragdocs.errors import RagdocsError
from ragdocs.search.corpus import Corpus
from ragdocs.verbs import page as answers
from ragdocs.verbs.quality.verify import behind
from ragdocs.verbs.shapes import LaneStatus

# Enough to act on, and small enough that two lanes fit into one answer; the rest are counted.
PROBLEM_CHARS = 3_500
PROBLEM_LENGTH = 160
# Files that are not indexed are read to tell whether they can be; after so many, the rest are taken
# for new.
MOST_READ = 100


def lane_status(corpus: Corpus, embedder: str) -> LaneStatus:
    """Count what is indexed, compare it with what is there now.

    And name the files with problems.
    """
    counts = corpus.index.counts()
    notes = list(corpus.notes())
    unreadable: dict[str, str] = {}
    try:
        paths = behind(corpus, MOST_READ)
    except RagdocsError as error:
        notes.append(str(error))
    else:
        unreadable = paths["unreadable"]
        count = len(paths["stale"]) + len(paths["missing"]) + len(paths["extra"])
        if count and not corpus.unread:
            notes.append(f"{count} files changed on disk and are not indexed yet")
    found = {path: "; ".join(reasons) for path, reasons in problems(corpus).items()} | unreadable
    # The path stands beside its reason already: in full it would leave no room for it.
    told = (
        (path, reason.replace(corpus.store.locate(path), path))
        for path, reason in sorted(found.items())
    )
    cut = ((path, answers.cut(reason, PROBLEM_LENGTH)) for path, reason in told)
    listed = dict(answers.within(cut, PROBLEM_CHARS))
    if len(listed) < len(found):
        notes.append(
            f"{len(found) - len(listed)} more files have problems; `ragdocs lint` lists them all"
        )
    return LaneStatus(
        lane=corpus.lane.name,
        root=corpus.store.locate(""),
        documents=counts["documents"],
        chunks=counts["chunks"],
        vectors=counts["vectors"],
        links=counts["links"],
        embedder=embedder,
        vector_search=corpus.index.vector_search,
        problems=listed,
        notes=notes,
    )


def problems(corpus: Corpus) -> dict[str, tuple[str, ...]]:
    """Map the files that were not indexed, or not as their authors meant, to the reasons."""
    found: dict[str, tuple[str, ...]] = {path: (reason,) for path, reason in corpus.skipped.items()}
    found |= {
        document.path: document.problems
        for document in corpus.index.documents()
        if document.problems
    }
    return dict(sorted(found.items()))
