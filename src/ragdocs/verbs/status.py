"""The state of a lane's index against its files."""

from __future__ import annotations

from ragdocs.errors import RagdocsError, UnavailableError
from ragdocs.pipeline.corpus import Corpus
from ragdocs.verbs import answers
from ragdocs.verbs.shapes import LaneStatus

# Enough to act on, and small enough that two lanes fit into one answer; the rest are counted.
PROBLEM_CHARS = 3_500
PROBLEM_LENGTH = 160
# Files that are not indexed are read to tell whether they can be; after so many, the rest are taken for new.
MOST_READ = 100


def lane_status(corpus: Corpus, embedder: str) -> LaneStatus:
    """Count what is indexed, compare it with what is there now, and name the files with problems."""
    counts = corpus.index.counts()
    notes = list(corpus.notes())
    unreadable: dict[str, str] = {}
    try:
        behind, unreadable = _compare(corpus)
    except RagdocsError as error:
        notes.append(str(error))
    else:
        if behind and not corpus.unread:
            notes.append(f"{behind} files changed on disk and are not indexed yet")
    found = {path: "; ".join(reasons) for path, reasons in problems(corpus).items()} | unreadable
    # The path stands beside its reason already: in full it would leave no room for it.
    told = ((path, reason.replace(corpus.store.locate(path), path)) for path, reason in sorted(found.items()))
    cut = ((path, answers.cut(reason, PROBLEM_LENGTH)) for path, reason in told)
    listed = dict(answers.within(cut, PROBLEM_CHARS))
    if len(listed) < len(found):
        notes.append(f"{len(found) - len(listed)} more files have problems; `ragdocs lint` lists them all")
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
    found |= {document.path: document.problems for document in corpus.index.documents() if document.problems}
    return dict(sorted(found.items()))


def _compare(corpus: Corpus) -> tuple[int, dict[str, str]]:
    """Count paths that came, went or changed since they were indexed, and tell which cannot be read."""
    scan, known = corpus.store.scan(), corpus.index.stamps()
    if "" in scan.unreadable:
        raise UnavailableError(scan.unreadable[""])
    refused = corpus.refused(scan)
    seen = {path: stamp for path, stamp in scan.stamps.items() if path not in refused}
    behind = len(known.keys() - seen.keys())
    unreadable = {}
    for path, stamp in seen.items():
        if path in known and known[path][0] == stamp:
            continue
        if path not in known and behind >= MOST_READ:
            behind += 1
            continue
        try:
            # A stamp also differs while a file is too fresh to be sure of; only its text decides.
            version = corpus.store.read(path).version
        except RagdocsError as error:
            unreadable[path] = str(error)
        else:
            behind += path not in known or version != known[path][1]
    return behind, unreadable
