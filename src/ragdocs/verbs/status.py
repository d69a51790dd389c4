"""The state of a lane's index against its files."""

from __future__ import annotations

from ragdocs.errors import RagdocsError
from ragdocs.pipeline.corpus import Corpus
from ragdocs.verbs import answers
from ragdocs.verbs.shapes import LaneStatus

# Enough to act on, and small enough that two lanes fit into one answer; the rest are counted.
PROBLEM_CHARS = 3_500
PROBLEM_LENGTH = 160


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
    cut = ((path, answers.cut(reason, PROBLEM_LENGTH)) for path, reason in sorted(problems.items()))
    listed = dict(answers.within(cut, PROBLEM_CHARS))
    if len(listed) < len(problems):
        notes.append(f"{len(problems) - len(listed)} more files have problems")
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


def _behind(corpus: Corpus) -> int:
    """Count paths that came, went or look different since they were indexed."""
    seen, known = corpus.store.scan().stamps, corpus.index.stamps()
    changed = [path for path, stamp in seen.items() if path not in known or known[path][0] != stamp]
    # A stamp also differs while a file is too fresh to be sure of; only its text decides.
    differing = [
        path
        for path in changed
        if path not in corpus.skipped and (path not in known or _version(corpus, path) != known[path][1])
    ]
    return len(differing) + len(known.keys() - seen.keys())


def _version(corpus: Corpus, path: str) -> str:
    try:
        return corpus.store.read(path).version
    except RagdocsError:
        return ""
