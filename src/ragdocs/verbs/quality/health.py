"""Is a lane in order: its index against its files, its problems, and secrets in its texts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from ragdocs.errors import RagdocsError, UnavailableError
from ragdocs.protocols import Index
from ragdocs.search.corpus import Corpus
from ragdocs.system import files
from ragdocs.verbs import page
from ragdocs.verbs.shapes import LaneStatus, VerifiedLane

# Enough to act on, and small enough that two lanes fit into one answer; the rest are counted.
PROBLEM_CHARS = 3_500
PROBLEM_LENGTH = 160
# Files that are not indexed are read to tell whether they can be; after so many, the rest are taken
# for new.
MOST_READ = 100
# Encoding in another batch moves a vector by rounding only; another text moves it much further.
SAME_VECTOR = 0.999
# Folders of earlier texts in a lane that is written to.
ARCHIVES = (".trash", ".history")
# Not having looked is no proof that there is nothing.
UNREAD = "cannot be read"


# The parts of an index, each as a sorted list.
Contents = Mapping[str, Sequence[Any]]


class Behind(TypedDict):
    """Paths by which an index is behind its files: changed, not indexed, gone, not readable."""

    stale: list[str]
    missing: list[str]
    extra: list[str]
    unreadable: dict[str, str]


class Comparison(TypedDict):
    """How many things of each kind were compared, and the first that differs."""

    compared: dict[str, int]
    difference: str


class Leak(TypedDict):
    """Where a secret stands and what kind it is, never the secret; line 0 is the file's name."""

    path: str
    line: int
    rule: str


def lane_status(corpus: Corpus, embedder: str) -> LaneStatus:
    """Count what is indexed, compare it with the files, and name the files with problems."""
    counts = corpus.counts()
    notes = list(corpus.notes())
    unreadable: dict[str, str] = {}
    try:
        paths = behind(corpus, MOST_READ)
    except RagdocsError as error:
        notes.append(str(error))
    else:
        unreadable = paths["unreadable"]
        count = len([*paths["stale"], *paths["missing"], *paths["extra"]])
        if count and not corpus.unread:
            notes.append(f"{count} files changed on disk and are not indexed yet")
    reasons = _reasons(corpus, unreadable)
    listed = dict(page.within(reasons.items(), PROBLEM_CHARS))
    if len(listed) < len(reasons):
        unlisted = len(reasons) - len(listed)
        notes.append(f"{unlisted} more files have problems; `ragdocs lint` lists them all")
    return LaneStatus(
        lane=corpus.lane.name,
        root=corpus.store.locate(""),
        documents=counts["documents"],
        chunks=counts["chunks"],
        vectors=counts["vectors"],
        links=counts["links"],
        embedder=embedder,
        vector_search=_vector_search(corpus),
        problems=listed,
        notes=notes,
    )


def problems(corpus: Corpus) -> dict[str, tuple[str, ...]]:
    """Map the files that were not indexed, or not as their authors meant, to the reasons."""
    reasons: dict[str, tuple[str, ...]] = {}
    for path, reason in corpus.skipped.items():
        reasons[path] = (reason,)
    for document in corpus.documents():
        if document.problems:
            reasons[document.path] = document.problems
    return dict(sorted(reasons.items()))


def behind(corpus: Corpus, most_read: int | None = None) -> Behind:
    """Compare an index as it answers with its files, and change neither.

    After `most_read` missing files, the rest are taken for files that can be read.
    """
    scan = corpus.store.scan()
    indexed = corpus.stamps()
    if "" in scan.unreadable:
        raise UnavailableError(scan.unreadable[""])
    refused = corpus.refused(scan)
    present = {path: stamp for path, stamp in scan.stamps.items() if path not in refused}
    extra = sorted(indexed.keys() - present.keys())
    answer = Behind(stale=[], missing=[], extra=extra, unreadable={})
    for path, stamp in sorted(present.items()):
        known_stamp, known_version = indexed.get(path, ("", ""))
        is_indexed = path in indexed
        if is_indexed and known_stamp == stamp:
            continue
        if not is_indexed and most_read is not None and len(answer["missing"]) >= most_read:
            answer["missing"].append(path)
            continue
        try:
            # A stamp also differs while a file is too fresh to be sure of; only its text decides.
            version = corpus.store.read(path).version
        except RagdocsError as error:
            answer["unreadable"][path] = str(error)
            continue
        if not is_indexed:
            answer["missing"].append(path)
        elif version != known_version:
            answer["stale"].append(path)
    return answer


def verify(
    corpus: Corpus,
    contents: Callable[[], Mapping[str, Sequence[Any]]],
    rebuild: Callable[[], Index],
) -> VerifiedLane:
    """Compare an index as it answers with one that is built from the files alone.

    An index that is behind its files differs anyway, so nothing is built for it.
    """
    paths = behind(corpus)
    if is_behind(paths):
        result = Comparison(compared={}, difference="the files and the index name different texts")
    else:
        result = compare(contents(), rebuild().contents())
    return VerifiedLane(
        compared=result["compared"],
        difference=result["difference"],
        stale=paths["stale"],
        missing=paths["missing"],
        extra=paths["extra"],
    )


def is_behind(answer: Behind) -> bool:
    """Tell whether an index lacks something that its files have, or has what they lack."""
    return bool(answer["stale"] or answer["missing"] or answer["extra"])


def compare(live: Contents, rebuilt: Contents) -> Comparison:
    """Compare the contents of two indexes: documents, chunks, postings, edges and vectors."""
    compared = {}
    for part, expected in rebuilt.items():
        compared[part] = len(expected)
        for ours, theirs in zip_longest(live[part], expected):
            if not _same(ours, theirs):
                sides = f"the live index has {_short(ours)}, the rebuilt one {_short(theirs)}"
                return Comparison(compared=compared, difference=f"{part}: {sides}")
    return Comparison(compared=compared, difference="")


def secrets(corpus: Corpus) -> list[Leak]:
    """Look for secrets in every text of a lane, in its trash and in its earlier texts."""
    leaks = []
    for path, read in _texts(corpus):
        name = corpus.redactor.redact(path)
        for finding in name.findings:
            leaks.append(Leak(path=name.text, line=0, rule=finding.rule))
        try:
            findings = corpus.redactor.redact(read()).findings
        except RagdocsError:
            leaks.append(Leak(path=name.text, line=0, rule=UNREAD))
            continue
        for finding in findings:
            leaks.append(Leak(path=name.text, line=finding.line, rule=finding.rule))
    return leaks


def _reasons(corpus: Corpus, unreadable: Mapping[str, str]) -> dict[str, str]:
    """Map the files with problems to one short line each."""
    lines = {}
    for path, reasons in problems(corpus).items():
        lines[path] = "; ".join(reasons)
    lines |= unreadable
    shortened = {}
    for path, line in sorted(lines.items()):
        # The path stands beside its reason already: in full it would leave no room for it.
        plain = line.replace(corpus.store.locate(path), path)
        shortened[path] = page.cut(plain, PROBLEM_LENGTH)
    return shortened


def _vector_search(corpus: Corpus) -> str:
    """Say how the lane's engine searches vectors."""
    return corpus.info().vector_search


def _same(ours: Any, theirs: Any) -> bool:
    both_tuples = isinstance(ours, tuple) and isinstance(theirs, tuple)
    if not both_tuples or not isinstance(ours[-1], np.ndarray):
        return bool(ours == theirs)
    *our_name, our_vector = ours
    *their_name, their_vector = theirs
    if our_name != their_name:
        return False
    if not our_vector.any() and not their_vector.any():
        return True
    return float(np.dot(our_vector, their_vector)) >= SAME_VECTOR


def _short(value: Any) -> str:
    if value is None:
        return "nothing"
    return str(value)[:300]


def _texts(corpus: Corpus) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield where each text is and how to read it."""
    store = corpus.store
    scan = store.scan()
    for path in sorted({*scan.stamps, *scan.unreadable}):
        yield store.locate(path), partial(_current_text, corpus, path)
    if not corpus.lane.writable:
        return
    for archive in ARCHIVES:
        for folder, _, names in os.walk(Path(store.locate(""), archive)):
            for name in sorted(names):
                file = Path(folder, name)
                yield str(file), partial(_archived_text, file)


def _current_text(corpus: Corpus, path: str) -> str:
    return corpus.store.read(path).text


def _archived_text(path: Path) -> str:
    return files.read_bytes(path).decode(errors="replace")
