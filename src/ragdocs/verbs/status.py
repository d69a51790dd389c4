"""The state of a lane's index against its files."""

from __future__ import annotations

from ragdocs.errors import RagdocsError
from ragdocs.pipeline.corpus import Corpus
from ragdocs.verbs.shapes import LaneStatus

# Enough to act on; the rest are counted.
MOST_PROBLEMS = 30


def lane_status(corpus: Corpus, embedder: str) -> LaneStatus:
    """Count what is indexed, compare it with what is there now, and name the files with problems."""
    counts = corpus.index.counts()
    notes = list(corpus.notes())
    try:
        behind = _behind(corpus)
    except RagdocsError as error:
        notes.append(str(error))
    else:
        if behind:
            notes.append(f"{behind} files changed on disk and are not indexed yet")
    problems = dict(corpus.skipped)
    for document in corpus.index.documents():
        if document.problems:
            problems.setdefault(document.path, "; ".join(document.problems))
    if len(problems) > MOST_PROBLEMS:
        notes.append(f"{len(problems) - MOST_PROBLEMS} more files have problems")
    return LaneStatus(
        lane=corpus.lane.name,
        root=corpus.store.locate(""),
        documents=counts["documents"],
        chunks=counts["chunks"],
        vectors=counts["vectors"],
        links=counts["links"],
        embedder=embedder,
        problems=dict(sorted(problems.items())[:MOST_PROBLEMS]),
        notes=notes,
    )


def _behind(corpus: Corpus) -> int:
    """Count paths that came, went or look different since they were indexed."""
    seen, known = corpus.store.scan().stamps, corpus.index.stamps()
    changed = [path for path, stamp in seen.items() if path not in known or known[path][0] != stamp]
    # A stamp also differs while a file is too fresh to be sure of; only its text decides.
    differing = [path for path in changed if path not in known or _version(corpus, path) != known[path][1]]
    return len(differing) + len(known.keys() - seen.keys())


def _version(corpus: Corpus, path: str) -> str:
    try:
        return corpus.store.read(path).version
    except RagdocsError:
        return ""
