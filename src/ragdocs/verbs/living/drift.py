"""Whether the files that a memory links to are still what they were when it was written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from ragdocs import caller
from ragdocs.errors import NotFoundError, RagdocsError
from ragdocs.project.folders import user_name
from ragdocs.search.corpus import Corpus
from ragdocs.system.refs import Refs, Stamp
from ragdocs.text import parts
from ragdocs.text.parts import Part
from ragdocs.text.redaction.redact import Redactor
from ragdocs.types import UNSAID_IMPORTANCE, Document, Filter, Link, Put, Written
from ragdocs.verbs.living.baselines import SLACK, Baselines, keeps_baseline, stood_before
from ragdocs.verbs.living.ledger import VERIFIED, Baseline, Check, Ledger, Target
from ragdocs.verbs.living.past import Past
from ragdocs.verbs.living.targets import Finder, Targets

OK, CHANGED, MOVED, MISSING = "ok", "changed", "moved", "missing"
# Nothing is known about what was there, such as a file that is still to be written.
UNKNOWN = "unknown"
# The worst first.
STATES = (MISSING, MOVED, CHANGED)
# Links of one memory whose files a search asks the file system about.
MOST_STATED = 6
# A file that was written so shortly before it was looked at may change within the same tick.
TICK = 100_000_000
# What became of a target, from 0 to 1, where lines cannot be counted or say too little.
LEAST_CHANGE, MOVED_CHANGE, UNCOUNTED_CHANGE = 0.05, 0.2, 0.5
MOST_IMPORTANCE = 10.0
# Memories whose links are compared behind a search.
MOST_QUEUED = 200
# An answer waits so long for links that were not compared yet; git may be slow.
PATIENCE_SECONDS = 2.0
# What is missing may turn up elsewhere without any stamp that tells so.
RECHECK_NANOSECONDS = 60_000_000_000
# Lines around a change in a diff.
AROUND = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkState:
    """What became of the target of one link since its memory was written or verified."""

    link: Link
    path: str
    state: str
    # The moment that it is compared with, and who wrote or verified the memory then, if known.
    since: datetime | None = None
    author: str = ""
    how: str = ""
    # Lines that came and went; None where only times are known.
    added: int | None = None
    removed: int | None = None
    # A path, or a path and a heading or a definition.
    moved_to: str = ""
    change: float = 0.0
    baseline: Baseline | None = field(default=None, repr=False, compare=False)

    @property
    def name(self) -> str:
        """What the link leads to, as it is written."""
        if self.link.heading:
            return f"{self.link.target}#{self.link.heading}"
        return self.link.target


@dataclass(frozen=True, slots=True)
class DriftedMemory:
    """A memory whose links are not what they were: the worse, the higher its weight."""

    document: Document
    weight: float
    links: Sequence[LinkState]
    check: Check | None = None


@dataclass(frozen=True, slots=True)
class VerifiedMemory:
    """A memory that somebody found to be still true."""

    document: Document
    check: Check
    links: Sequence[LinkState]
    # Whether that was written down.
    is_kept: bool


class _Comparison(NamedTuple):
    """The state of one link, and the stamps of the files that it follows from."""

    state: LinkState
    paths: tuple[str, ...]
    stamps: tuple[Stamp | None, ...]


class _ComparedMemory(NamedTuple):
    """The comparisons of a memory: of which version, when, at which state of ledger and HEAD."""

    version: str
    ledger: tuple[int, int]
    commit: str
    at: int
    comparisons: Sequence[_Comparison]


class _Snapshot(NamedTuple):
    """The state of ledger and HEAD for one answer, and the stamps that were asked for."""

    ledger: tuple[int, int]
    commit: str
    stamps: dict[str, Stamp | None]


class Drift:
    """What can be asked about the links of memories and what became of their targets."""

    def __init__(
        self,
        corpora: Callable[[], Mapping[str, Corpus]],
        targets: Targets,
        past: Past,
        baselines: Baselines,
        redactor: Redactor,
    ) -> None:
        self._corpora = corpora
        self._targets = targets
        self._past = past
        self._baselines = baselines
        self._redactor = redactor
        self._compared: dict[str, _ComparedMemory] = {}
        self._comparing = threading.Lock()
        self._queue: dict[str, Document] = {}
        self._queue_lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def ledger(self) -> Ledger:
        """The baselines of this working copy."""
        return self._baselines.ledger

    @property
    def refs(self) -> Refs:
        """The refs of this working copy."""
        return self._baselines.refs

    # --- states ---

    def states(self, document: Document) -> list[LinkState]:
        """Return what became of each file that a memory links to."""
        return self.look([document])[document.id]

    def look(self, documents: Sequence[Document]) -> dict[str, list[LinkState]]:
        """Return what became of the links of several memories, compared now."""
        with self._comparing:
            states: dict[str, list[LinkState]] = {}
            stale = []
            snapshot = self._snapshot()
            for document in documents:
                comparisons = self._still_valid(document, snapshot)
                if comparisons is None or _has_lost_link(comparisons):
                    stale.append(document)
                else:
                    states[document.id] = [comparison.state for comparison in comparisons]
            for document_id, comparisons in self._compare_all(stale).items():
                states[document_id] = [comparison.state for comparison in comparisons]
            return states

    def quick_states(self, documents: Sequence[Document]) -> dict[str, list[LinkState]]:
        """Return the states for an answer: only of memories whose files changed are any read.

        A memory whose links take too long to compare is left out; the next answer has them.
        """
        states: dict[str, list[LinkState]] = {}
        stale = []
        snapshot: _Snapshot | None = None
        for document in documents:
            if not document.links:
                states[document.id] = []
                continue
            snapshot = snapshot or self._snapshot()
            comparisons = self._still_valid(document, snapshot)
            if comparisons is None:
                stale.append(document)
                continue
            states[document.id] = [comparison.state for comparison in comparisons]
            if self._is_due(document):
                self._enqueue([document])
        return states | self._compare_in_time(stale)

    def _compare_in_time(self, documents: Sequence[Document]) -> dict[str, list[LinkState]]:
        """Return what can be compared in the time that an answer may take."""
        if not documents:
            return {}
        since = _now()
        self._enqueue(documents)
        self.settle(PATIENCE_SECONDS)
        states = {}
        for document in documents:
            compared = self._compared.get(document.id)
            if compared is not None and compared.at >= since:
                states[document.id] = [comparison.state for comparison in compared.comparisons]
        return states

    def _is_due(self, document: Document) -> bool:
        """Tell whether something that was missing should be looked for again."""
        compared = self._compared[document.id]
        if _now() - compared.at < RECHECK_NANOSECONDS:
            return False
        return _has_lost_link(compared.comparisons)

    def settle(self, seconds: float | None = None) -> None:
        """Wait until what was asked for behind an answer is compared, or for so long."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _snapshot(self) -> _Snapshot:
        return _Snapshot(self.ledger.state(), self.refs.head().commit, {})

    def _still_valid(self, document: Document, snapshot: _Snapshot) -> Sequence[_Comparison] | None:
        """Return the last comparisons of a memory, if nothing changed since."""
        compared = self._compared.get(document.id)
        if compared is None or compared.version != document.version:
            return None
        if (compared.ledger, compared.commit) != (snapshot.ledger, snapshot.commit):
            return None
        for comparison in compared.comparisons[:MOST_STATED]:
            for path, before in zip(comparison.paths, comparison.stamps, strict=True):
                if path not in snapshot.stamps:
                    snapshot.stamps[path] = self._targets.stamp(path)
                stamp = snapshot.stamps[path]
                is_fresh = stamp is not None and stamp[0] > compared.at - TICK
                if stamp != before or is_fresh:
                    return None
        return compared.comparisons

    def _compare_all(self, documents: Sequence[Document]) -> dict[str, Sequence[_Comparison]]:
        if not documents:
            return {}
        commit = self.refs.head().commit
        finder = self._targets.finder()
        baselines = self._baselines.of_links(documents)
        state = self.ledger.state()
        compared: dict[str, Sequence[_Comparison]] = {}
        for document in documents:
            at = _now()
            comparisons = [
                self._compare_link(link, baseline, finder)
                for link, baseline in baselines[document.id]
            ]
            self._compared[document.id] = _ComparedMemory(
                document.version, state, commit, at, comparisons
            )
            compared[document.id] = comparisons
        return compared

    def _compare_link(self, link: Link, baseline: Baseline | None, finder: Finder) -> _Comparison:
        path = self._targets.path(link.target) if baseline is None else baseline.path
        stamp = self._targets.stamp(path)
        if baseline is None:
            state = LinkState(link=link, path=path, state=UNKNOWN)
            if stamp is not None and self._targets.is_folder(path):
                state = LinkState(link=link, path=path, state=OK)
            return _Comparison(state, (path,), (stamp,))
        try:
            state = self._state(link, baseline, finder)
        except RagdocsError:
            # A file that cannot be read is not missing.
            state = LinkState(link=link, path=path, state=UNKNOWN)
        moved = state.moved_to.partition("#")[0]
        if moved and moved != path:
            return _Comparison(state, (path, moved), (stamp, self._targets.stamp(moved)))
        return _Comparison(state, (path,), (stamp,))

    def _state(self, link: Link, baseline: Baseline, finder: Finder) -> LinkState:
        path = baseline.path
        moved_to = ""
        if self._targets.stamp(path) is None or self._targets.is_folder(path):
            path = self._moved(baseline, finder)
            if not path:
                return self._moved_part(link, baseline, finder)
            moved_to = path
        content = self._targets.content(path, baseline.name)
        if content is None:
            return self._lost_part(link, baseline, path, finder)
        if not baseline.digest:
            return self._by_time(link, baseline, path)
        if content.digest != baseline.digest:
            return _compared(link, baseline, content.signature, moved_to)
        if moved_to:
            return _state(link, baseline, MOVED, moved_to=moved_to, change=MOVED_CHANGE)
        return _state(link, baseline, OK)

    def _lost_part(self, link: Link, baseline: Baseline, path: str, finder: Finder) -> LinkState:
        """Return what became of a section or a definition that lost its name in its file."""
        present = None
        if path == baseline.path:
            # It may have its name still: the heading was one of several, or is one of several now.
            present = self._targets.content(path, link.heading)
        if present is not None and present.digest == baseline.digest:
            return _state(link, baseline, OK)
        renamed = self._renamed_part(link, baseline, path)
        if renamed is None:
            renamed = self._moved_part(link, baseline, finder)
        if present is None:
            return renamed
        if renamed.state == MISSING or renamed.moved_to == f"{path}#{present.name}":
            return _compared(link, baseline, present.signature, "")
        return renamed

    def _renamed_part(self, link: Link, baseline: Baseline, path: str) -> LinkState | None:
        """Look for a section or a definition among those that are new in its file."""
        before = self._past.blob(baseline.blob)
        old_names = set()
        if before is not None:
            old_names = {part.name for part in parts.all_parts(baseline.path, before)}
        new = [part for part in self._targets.parts(path) if part.name not in old_names]
        same = parts.alike(baseline.signature, new)
        if same is None:
            return None
        return _compared(link, baseline, same.signature, f"{path}#{same.name}")

    def _moved_part(self, link: Link, baseline: Baseline, finder: Finder) -> LinkState:
        """Look for a section or a definition in other files; what is in none of them is missing."""
        moved = None
        if baseline.name:
            moved = finder.part(baseline.kind, baseline.name, baseline.signature, baseline.commit)
        if moved is None:
            return _state(link, baseline, MISSING, change=1.0)
        path, part = moved
        return _compared(link, baseline, part.signature, f"{path}#{part.name}")

    def _by_time(self, link: Link, baseline: Baseline, path: str) -> LinkState:
        """Tell by its time alone whether a file changed."""
        stamp = self._targets.stamp(path)
        assert stamp is not None
        if datetime.fromtimestamp(stamp[0] / 1e9, UTC) <= baseline.at + SLACK:
            return _state(link, baseline, OK)
        return _state(link, baseline, CHANGED, change=UNCOUNTED_CHANGE)

    def _moved(self, baseline: Baseline, finder: Finder) -> str:
        """Return the name that a file has now, or "" if it is gone."""
        renamed = self._past.renamed(baseline.path, baseline.commit)
        if renamed and self._targets.stamp(renamed) is not None:
            return renamed
        return finder.same(baseline.path, baseline.blob, baseline.size)

    # --- behind a search ---

    def _enqueue(self, documents: Sequence[Document]) -> None:
        """Have memories looked at by a thread of its own."""
        with self._queue_lock:
            for document in documents[: MOST_QUEUED - len(self._queue)]:
                self._queue[document.id] = document
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._compare_queued, name="ragdocs-drift", daemon=True
                )
                self._thread.start()

    def _compare_queued(self) -> None:
        while True:
            with self._queue_lock:
                documents = list(self._queue.values())
                self._queue.clear()
                if not documents:
                    self._thread = None
                    return
            try:
                self.look(documents)
            except RagdocsError:
                # The next reader meets the same and reports it.
                continue

    # --- writing down ---

    def note_written(self, corpus: Corpus, written: Sequence[Written], verb: str) -> None:
        """Write down what the links of memories lead to that were just written."""
        removed = [change for change in written if not change.version]
        for position, change in enumerate(written):
            document = corpus.get(change.path)
            if not change.version or document is None or document.path != change.path:
                continue
            gone = ""
            before = change.before
            if verb == "rename" and removed and position == 0:
                gone = removed[0].path
                before = removed[0].before
            keeps = partial(keeps_baseline, corpus, document, verb)
            is_older = partial(stood_before, corpus, document, verb, before)
            try:
                self._baselines.record(
                    document, author(), gone=gone, keeps=keeps, is_older=is_older
                )
            except RagdocsError as error:
                import logging

                # The memory is written; what is not known is worked out later.
                logger = logging.getLogger("ragdocs")
                logger.warning("The links of %s were not noted: %s", document.path, error)

    def rewrite(
        self,
        corpus: Corpus,
        puts: Sequence[Put],
        moved: Mapping[str, Mapping[Target, Target]],
    ) -> Sequence[Written]:
        """Write memories anew of which only the links of the targets that moved differ.

        What each is compared with stays: nobody has looked at the rest of it.
        """
        documents = []
        for put in puts:
            document = corpus.get(put.path)
            if document is not None:
                documents.append(document)
        # What was lost is worked out while the memories are as they were.
        self.look(documents)
        earlier = {put.path: self.ledger.of(put.path) for put in puts}
        written = corpus.commit(puts, "edit")
        for path, baselines in earlier.items():
            document = corpus.get(path)
            if document is not None and baselines:
                self._carry(document, baselines, moved.get(path, {}))
        return written

    def _carry(
        self,
        document: Document,
        earlier: Mapping[Target, Baseline],
        moved: Mapping[Target, Target],
    ) -> None:
        """Keep what the links of a memory are compared with, though some are written anew."""
        baselines = []
        for old, baseline in earlier.items():
            # What a link was compared with is there again after an undo.
            current = replace(baseline, version=document.version)
            baselines.append(current)
            target, heading = moved.get(old, old)
            if (target, heading) != old:
                path = self._targets.path(target)
                new = replace(current, target=target, heading=heading, path=path, name=heading)
                baselines.append(new)
        self.ledger.replace(document.path, baselines, [])

    def verify(self, filename: str, lane: str) -> VerifiedMemory:
        """Write down that a memory is still true, with what its links lead to now."""
        corpus = self._corpora()[lane]
        from ragdocs.verbs import references

        path = references.memory_path(corpus, filename)
        corpus.store.read(path)
        document = corpus.get(path)
        if document is None or document.path != path:
            raise NotFoundError(f"{path} is not indexed yet", "Ask again in a few seconds")
        check = Check(self._baselines.clock().astimezone(UTC), author())
        self._baselines.record(document, check.author, VERIFIED)
        is_kept = self.ledger.note_check(path, check)
        return VerifiedMemory(document, check, self.states(document), is_kept)

    # --- what to look at ---

    def drifted(self, lane: str, filename: str = "") -> list[DriftedMemory]:
        """List the memories whose links are not what they were, worst first."""
        corpus = self._corpora()[lane]
        now = self._baselines.clock()
        documents = corpus.documents(Filter(hidden=corpus.lane.hidden, alive_at=now))
        if filename:
            from ragdocs.verbs import references

            path = references.memory_path(corpus, filename)
            corpus.store.read(path)
            documents = [document for document in documents if document.path == path]
        linking = [document for document in documents if document.links]
        states = self.look(linking)
        rows = []
        for document in linking:
            deviating = [link for link in states[document.id] if link.state in STATES]
            if deviating:
                check = self.ledger.check(document.path)
                rows.append(DriftedMemory(document, _weight(document, deviating), deviating, check))
        rows.sort(key=lambda row: (-row.weight, row.document.path))
        return rows

    def check(self, document: Document) -> Check | None:
        """Return when a memory was last found to be still true, and by whom."""
        return self.ledger.check(document.path)

    def difference(self, link: LinkState) -> list[str] | None:
        """Return what changed in the target of a link, as a diff; None if its old text is lost."""
        baseline = link.baseline
        if baseline is None or not baseline.digest:
            return None
        data = self._past.blob(baseline.blob)
        if data is None:
            return None
        before = parts.find(baseline.path, data, baseline.name)
        after = self._present(link, baseline)
        if before is None:
            return None
        import difflib

        rows = difflib.unified_diff(
            self._lines(before),
            self._lines(after) if after is not None else [],
            baseline.path,
            link.moved_to or baseline.path,
            n=AROUND,
            lineterm="",
        )
        return list(rows)

    def _present(self, link: LinkState, baseline: Baseline) -> Part | None:
        path, _, name = (link.moved_to or baseline.path).partition("#")
        if link.state == MISSING:
            return None
        data = self._targets.read(path)
        if data is None:
            return None
        return parts.find(path, data, name or baseline.name)

    def _lines(self, part: Part) -> list[str]:
        """Return the lines of a file without the secrets that stand in it."""
        return self._redactor.redact("\n".join(part.text)).text.split("\n")


def _has_lost_link(comparisons: Sequence[_Comparison]) -> bool:
    """Tell whether a target is not where it was, so that no stamp tells where it turns up."""
    return any(comparison.state.state in (MISSING, MOVED) for comparison in comparisons)


def _state(
    link: Link, baseline: Baseline, state: str, *, moved_to: str = "", change: float = 0.0
) -> LinkState:
    return LinkState(
        link=link,
        path=baseline.path,
        state=state,
        since=baseline.at,
        author=baseline.author,
        how=baseline.how,
        moved_to=moved_to,
        change=change,
        baseline=baseline,
    )


def _compared(link: Link, baseline: Baseline, signature: bytes, moved_to: str) -> LinkState:
    """Return how much of a target changed."""
    added, removed = parts.changed_lines(baseline.signature, signature)
    lines = max(1, len(baseline.signature) // parts.LINE_BYTES)
    change = min(1.0, max(LEAST_CHANGE, (added + removed) / lines))
    if moved_to:
        change = max(change, MOVED_CHANGE)
    state = _state(link, baseline, MOVED if moved_to else CHANGED, moved_to=moved_to, change=change)
    return replace(state, added=added, removed=removed)


def _weight(document: Document, links: Sequence[LinkState]) -> float:
    """Return importance times change, from 0 to 1."""
    importance = document.importance
    if importance is None:
        importance = UNSAID_IMPORTANCE
    share = min(max(importance, 0.0), MOST_IMPORTANCE) / MOST_IMPORTANCE
    return share * max(link.change for link in links)


def _now() -> int:
    """Return the time in nanoseconds, as stamps of files have it."""
    return int(datetime.now(UTC).timestamp() * 1e9)


def author() -> str:
    """Return who asks: a program that is connected, or the user of this process."""
    return caller.author.get() or caller.current().name or user_name()
