"""Is a lane in order: its index against its files, its problems, and secrets in its texts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ragdocs.errors import RagdocsError, UnavailableError
from ragdocs.project.formats import PLAIN_TEXT
from ragdocs.protocols import Index
from ragdocs.search.corpus import Corpus
from ragdocs.system import files
from ragdocs.verbs.quality.problems import reasons_by_path

# Files that are not indexed are read to tell whether they can be; after so many, the rest are taken
# for new.
MOST_READ = 100
# Encoding in another batch moves a vector by rounding only; another text moves it much further.
SAME_VECTOR = 0.999
# Folders of earlier texts in a lane that is written to.
ARCHIVES = (".trash", ".history")
# Documents that a note names one by one.
MOST_NAMED = 5
# Not having looked is no proof that there is nothing.
UNREAD = "cannot be read"


# The parts of an index, each as a sorted list.
Contents = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class LaneState:
    """The state of one lane's index against its files; `problems` are by path."""

    lane: str
    root: str
    documents: int
    chunks: int
    vectors: int
    links: int
    embedder: str
    vector_search: str
    problems: Mapping[str, str]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProjectState:
    """The state of all lanes of a project."""

    root: str
    version: str
    lanes: tuple[LaneState, ...]


@dataclass(frozen=True, slots=True)
class Behind:
    """Paths by which an index is behind its files: changed, not indexed, gone, not readable."""

    stale: tuple[str, ...]
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    unreadable: Mapping[str, str]

    @property
    def count(self) -> int:
        """How many texts the index lacks or has too many."""
        return len(self.stale) + len(self.missing) + len(self.extra)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many things of each kind were compared, and the first that differs."""

    compared: Mapping[str, int]
    difference: str


@dataclass(frozen=True, slots=True)
class Verification:
    """An index beside one that is built from the files alone."""

    comparison: Comparison
    behind: Behind


@dataclass(frozen=True, slots=True)
class Leak:
    """Where a secret stands and what kind it is, never the secret; line 0 is the file's name."""

    path: str
    line: int
    rule: str


def lane_state(corpus: Corpus, embedder: str) -> LaneState:
    """Count what is indexed, compare it with the files, and name the files with problems."""
    counts = corpus.counts()
    notes = [*corpus.notes(), *_without_headings(corpus)]
    unreadable: Mapping[str, str] = {}
    try:
        paths = behind(corpus, MOST_READ)
    except RagdocsError as error:
        notes.append(str(error))
    else:
        unreadable = paths.unreadable
        if paths.count and not corpus.unread:
            notes.append(f"{paths.count} files changed on disk and are not indexed yet")
    return LaneState(
        lane=corpus.lane.name,
        root=corpus.store.locate(""),
        documents=counts["documents"],
        chunks=counts["chunks"],
        vectors=counts["vectors"],
        links=counts["links"],
        embedder=embedder,
        vector_search=corpus.info().vector_search,
        problems=_reasons(corpus, unreadable),
        notes=tuple(notes),
    )


def closed_state(lane: str, embedder: str, reason: str) -> LaneState:
    """Return the state of a lane that cannot be opened, with the reason."""
    return LaneState(lane, "", 0, 0, 0, 0, embedder, "none", {}, (reason,))


def _without_headings(corpus: Corpus) -> list[str]:
    """Name the documents that are read as plain text, because nothing is known of their format."""
    if corpus.lane.writable:
        return []
    paths = []
    for document in corpus.documents():
        if document.format == PLAIN_TEXT.name:
            paths.append(document.path)
    if not paths:
        return []
    listed = ", ".join(paths[:MOST_NAMED])
    if len(paths) > MOST_NAMED:
        listed += f" and {len(paths) - MOST_NAMED:,} more"
    subject = f"{len(paths):,} documents are read as plain text"
    if len(paths) == 1:
        subject = "1 document is read as plain text"
    return [f"{subject}, without headings: {listed}"]


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
    stale: list[str] = []
    missing: list[str] = []
    unreadable: dict[str, str] = {}
    for path, stamp in sorted(present.items()):
        known_stamp, known_version = indexed.get(path, ("", ""))
        is_indexed = path in indexed
        if is_indexed and known_stamp == stamp:
            continue
        if not is_indexed and most_read is not None and len(missing) >= most_read:
            missing.append(path)
            continue
        try:
            # A stamp also differs while a file is too fresh to be sure of; only its text decides.
            version = corpus.store.read(path).version
        except RagdocsError as error:
            unreadable[path] = str(error)
            continue
        if not is_indexed:
            missing.append(path)
        elif version != known_version:
            stale.append(path)
    return Behind(tuple(stale), tuple(missing), tuple(extra), unreadable)


def verify(
    corpus: Corpus,
    contents: Callable[[], Mapping[str, Sequence[Any]]],
    rebuild: Callable[[], Index],
) -> Verification:
    """Compare an index as it answers with one that is built from the files alone.

    An index that is behind its files differs anyway, so nothing is built for it.
    """
    paths = behind(corpus)
    if paths.count:
        return Verification(Comparison({}, "the files and the index name different texts"), paths)
    return Verification(compare(contents(), rebuild().contents()), paths)


def compare(live: Contents, rebuilt: Contents) -> Comparison:
    """Compare the contents of two indexes: documents, chunks, postings, edges and vectors."""
    compared = {}
    for part, expected in rebuilt.items():
        compared[part] = len(expected)
        for ours, theirs in zip_longest(live[part], expected):
            if not _same(ours, theirs):
                sides = f"the live index has {_short(ours)}, the rebuilt one {_short(theirs)}"
                return Comparison(compared, f"{part}: {sides}")
    return Comparison(compared, "")


def secrets(corpus: Corpus) -> list[Leak]:
    """Look for secrets in every text of a lane, in its trash and in its earlier texts."""
    leaks = []
    for path, read in _texts(corpus):
        name = corpus.redactor.redact(path)
        for finding in name.findings:
            leaks.append(Leak(name.text, 0, finding.rule))
        try:
            findings = corpus.redactor.redact(read()).findings
        except RagdocsError:
            leaks.append(Leak(name.text, 0, UNREAD))
            continue
        for finding in findings:
            leaks.append(Leak(name.text, finding.line, finding.rule))
    return leaks


def _reasons(corpus: Corpus, unreadable: Mapping[str, str]) -> dict[str, str]:
    """Map the files with problems to one line each."""
    lines = {}
    for path, reasons in reasons_by_path(corpus).items():
        lines[path] = "; ".join(reasons)
    lines |= unreadable
    shortened = {}
    for path, line in sorted(lines.items()):
        # The path stands beside its reason already: in full it would leave no room for it.
        shortened[path] = line.replace(corpus.store.locate(path), path)
    return shortened


def _same(ours: Any, theirs: Any) -> bool:
    import numpy as np

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
    import numpy as np

    if value is None:
        return "nothing"
    if isinstance(value, tuple) and isinstance(value[-1], np.ndarray):
        # Hundreds of numbers tell a person nothing.
        *name, vector = value
        kind = "no vector"
        if vector.any():
            kind = f"a vector that begins with {vector[0]:.4f}"
        return f"{kind} for {', '.join(map(str, name))}"[:300]
    return str(value)[:300]


def _texts(corpus: Corpus) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield where each text is and how to read it."""
    store = corpus.store
    scan = store.scan()
    for path in sorted({*scan.stamps, *scan.unreadable}):
        yield store.locate(path), partial(_current_text, corpus, path)
    if not corpus.lane.writable:
        return
    root = Path(store.locate(""))
    if not root.is_absolute():
        yield from _earlier_texts(corpus)
    for archive in ARCHIVES:
        for folder, _, names in os.walk(root / archive):
            for name in sorted(names):
                file = Path(folder, name)
                yield str(file), partial(_archived_text, file)


def _earlier_texts(corpus: Corpus) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield each revision of a store that is no folder."""
    seen = set()
    for revision in corpus.versioned.history():
        if revision.version not in seen:
            seen.add(revision.version)
            name = f"{corpus.store.locate(revision.path)}@{revision.version}"
            yield name, partial(corpus.versioned.recover, revision.version)


def _current_text(corpus: Corpus, path: str) -> str:
    return corpus.store.read(path).text


def _archived_text(path: Path) -> str:
    return files.read_bytes(path).decode(errors="replace")
