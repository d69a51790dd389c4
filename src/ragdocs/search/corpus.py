"""The one pipeline: a lane, its store, its index and an encoder, brought to life."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from ragdocs import errors
from ragdocs.errors import NotFoundError, RagdocsError, UnavailableError, ValidationError
from ragdocs.lanes import Lane, Ranking
from ragdocs.protocols import (
    Encoder,
    Facet,
    Index,
    IndexInfo,
    Order,
    ProbeVector,
    Readable,
    Vectors,
    Versioned,
)
from ragdocs.search import calibration, chunk, parse
from ragdocs.search.calibration import Gauge
from ragdocs.search.fields import objection
from ragdocs.search.query import (
    Measured,
    Plan,
    measure,
    score_candidates,
    with_floor,
)
from ragdocs.search.query import search as search_snapshot
from ragdocs.text import frontmatter as metadata
from ragdocs.text import times
from ragdocs.text.redaction.redact import Redactor
from ragdocs.types import (
    FRESH,
    Change,
    Chunk,
    Document,
    Entry,
    Filter,
    Findings,
    Link,
    Probe,
    Put,
    Query,
    Report,
    Scan,
    Written,
)

Progress = Callable[[str, int, int], None]

# Chunks applied in the first step; each further step takes twice as many. Few steps make few
# segments; a step of two milliseconds a chunk is what a write that comes between may have to wait
# for.
FIRST_BATCH = 100
LARGEST_BATCH = 1600
# Passages encoded in one step.
ENCODED_AT_ONCE = 64
# Passages a writer waits for; a longer text is found by its words at once and by the rest of its
# meaning soon after.
ENCODED_IN_A_WRITE = 16
# A scan that would drop this many documents and this share of them all is repeated after a pause
# before it is believed: a folder in the middle of being moved or mounted looks empty.
MASS_REMOVAL = 20
MASS_SHARE = 0.5
SECOND_LOOK_SECONDS = 0.5
# Processor time that one file may take before it is written to the index; ordinary text of 10 MB
# takes a quarter of it.
FILE_SECONDS = 20.0
# The share of passages that must have come or gone before unrelated questions are asked again: it
# takes 0.1 s.
REMEASURED = 0.1
# For questions whose scores do not depend on the time.
NEVER = datetime(1970, 1, 1, tzinfo=UTC)


class Corpus:
    """The search orchestrator of one lane."""

    def __init__(
        self,
        lane: Lane,
        store: Readable,
        index: Index,
        encoder: Encoder | None,
        redactor: Redactor | None = None,
    ) -> None:
        self.lane = lane
        self.store = store
        self.index = index
        self.encoder = encoder
        self.redactor = redactor or Redactor({})
        self.silence = ""
        if encoder is None:
            self.silence = 'semantic search is switched off ([embedding] model = "none")'
        self.skipped: dict[str, str] = {}
        # Files that a look at all of them found new or changed and has not read yet.
        self.unread = 0
        # Stamp and reason of files that would hold up all others, so that not every scan tries them
        # again.
        self._refused: dict[str, tuple[str, str]] = {}
        self._writing = threading.Lock()

    @property
    def versioned(self) -> Versioned:
        """The store, if its texts can be changed; a store that is only read is refused."""
        if isinstance(self.store, Versioned):
            return self.store
        raise errors.ReadOnlyError(f"the {self.lane.name} lane is read-only")

    def sync(self, paths: Iterable[str] | None = None, progress: Progress | None = None) -> Report:
        """Bring the index up to the store, reading only what changed.

        With `paths`, look at these only.
        """
        started = time.monotonic()
        only = None if paths is None else sorted(set(paths))
        with self._writing:
            scan, gone = self._look(only)
            self.index.apply([], gone)
            known = self.index.stamps(scan.stamps)
            refused = self.refused(scan)
            changed = []
            for path, stamp in scan.stamps.items():
                indexed, _ = known.get(path, ("", ""))
                if indexed != stamp and path not in refused:
                    changed.append(path)
        self._note_skipped(only, {**scan.unreadable, **refused})
        report = Report(removed=len(gone), unchanged=len(scan.stamps) - len(changed))
        done, most = 0, FIRST_BATCH
        self.unread = len(changed) if only is None else self.unread
        while done < len(changed):
            added, replaced, same, looked = self._read(changed[done : done + most], most)
            done += looked
            self.unread -= looked if only is None else 0
            most = min(2 * most, LARGEST_BATCH)
            report = replace(
                report,
                added=report.added + added,
                changed=report.changed + replaced,
                unchanged=report.unchanged + same,
            )
            if progress:
                progress("indexing", done, len(changed))
        return replace(report, skipped=dict(self.skipped), seconds=time.monotonic() - started)

    def _note_skipped(self, only: Sequence[str] | None, reasons: Mapping[str, str]) -> None:
        """Take these as the files that are left out of what was looked at."""
        looked_at = {""} if only is None else set(only)
        for path in list(self.skipped):
            if _below(path, looked_at):
                del self.skipped[path]
        self.skipped.update(reasons)

    def refused(self, scan: Scan) -> dict[str, str]:
        """Return which files of a scan would hold up all others, and why.

        They are not indexed until they change.
        """
        refused = {}
        for path, (stamp, reason) in self._refused.items():
            # A stamp taken right after a write is marked until the file has rested.
            if scan.stamps.get(path, "").removeprefix(FRESH) == stamp.removeprefix(FRESH):
                refused[path] = reason
        return refused

    def embed(
        self, progress: Progress | None = None, stop: Callable[[], bool] = lambda: False
    ) -> int:
        """Encode passages that have no vector yet until none is left.

        Return how many were encoded.
        """
        done = 0
        while not stop():
            count = self._encode(self.index.claim_missing(ENCODED_AT_ONCE))
            if not count:
                break
            done += count
            if progress:
                info = self.index.info()
                progress("embedding", info.vectors, info.passages)
        info = self.index.info()
        if self.silence or info.vectors >= info.passages:
            self._measure()
        return done

    def commit(self, changes: Sequence[Change], verb: str = "update") -> list[Written]:
        """Write to the store, without secrets, and see to it that the next search knows."""
        cleaned = [self._clean(change) for change in changes]
        results = self.versioned.commit([change for change, _ in cleaned], verb)
        written = []
        for result, (_, removed) in zip(results, cleaned, strict=True):
            written.append(replace(result, removed=removed))
        # As the store spells them: a name may be written otherwise on disk.
        paths = {result.path for result in written}
        self.sync(paths)
        self._encode(self.index.claim_missing(ENCODED_IN_A_WRITE, paths))
        return written

    def search(self, query: Query, now: datetime) -> Findings:
        """Search by words and by meaning, rank, and explain.

        At most four calls go to the index, whatever the query.
        """
        started = time.perf_counter()
        info = self.index.info()
        plan = self._plan(query, info, now)
        encoded = time.perf_counter()
        gauge = self._gauge(info)
        # Encoding takes longer than all the rest and is done before the snapshot is taken.
        with self.index.snapshot() as snapshot:
            findings = search_snapshot(plan, snapshot, gauge)
        seconds = {"encode": encoded - started, **findings.seconds}
        findings = replace(findings, notes=self._notes(info), seconds=seconds)
        if query.floored and gauge.measured:
            return with_floor(findings)
        return findings

    def _plan(self, query: Query, info: IndexInfo, now: datetime) -> Plan:
        """Make a query ready: what the lane hides, vectors of its probes, the time it names."""
        where = replace(query.where, alive_at=query.where.alive_at or now)
        if not where.statuses:
            where = replace(where, hidden=where.hidden or self.lane.hidden)
        probes = tuple(probe for probe in query.probes if probe.text.strip())
        ranking = self._ranking(query)
        ready = tuple(self._probe(probe, ranking, info) for probe in probes)
        plan = Plan(replace(query, where=where, probes=probes), ready, ranking, now)
        if not ranking.time_weight:
            return plan
        return replace(plan, period=times.span(plan.text, now))

    def _probe(self, probe: Probe, ranking: Ranking, info: IndexInfo) -> ProbeVector:
        """Return what is searched for a probe: a source without weight is left out."""
        text = probe.text if ranking.keyword_weight else ""
        if not ranking.vector_weight or not info.vectors:
            return ProbeVector(probe.name, text)
        return ProbeVector(probe.name, text, self._vector(probe.text))

    def get(self, name: str) -> Document | None:
        """Return a document by its id or its path."""
        with self.index.snapshot() as snapshot:
            document = snapshot.get(name)
            if document is None:
                document = snapshot.get(f"{self.lane.name}:{name.removesuffix('.md')}")
        return document

    def documents(
        self,
        where: Filter | None = None,
        order: Order = "path",
        limit: int | None = None,
        now: datetime | None = None,
        offset: int = 0,
    ) -> list[Document]:
        """List documents by path, or by age as seen from `now`."""
        with self.index.snapshot() as snapshot:
            return snapshot.list(where or Filter(), order, limit, offset, now)

    def count(self, where: Filter | None = None) -> int:
        """Count documents."""
        with self.index.snapshot() as snapshot:
            return snapshot.count(where or Filter())

    def facets(self, field: Facet, where: Filter | None = None) -> dict[str, int]:
        """Count documents by the values of a field, the most frequent first."""
        with self.index.snapshot() as snapshot:
            return dict(snapshot.facets(field, where or Filter()))

    def links(
        self, to: Sequence[str], among: Collection[str] | None = None
    ) -> Mapping[str, tuple[Link, ...]]:
        """Map each document, or each among these, to its links to any of these names."""
        with self.index.snapshot() as snapshot:
            return snapshot.links(to, among)

    def passages(self, document_ids: Sequence[str], room: int = 0) -> dict[str, list[Chunk]]:
        """Return the first passage of each document, and more up to `room` characters."""
        with self.index.snapshot() as snapshot:
            beginnings = snapshot.first_passages(document_ids, room)
        return {document_id: list(passages) for document_id, passages in beginnings.items()}

    def similar(
        self, where: Filter | None = None, threshold: float = 0.85, limit: int | None = None
    ) -> Sequence[tuple[float, str, str]]:
        """Return pairs of document ids that are this alike, the most alike first."""
        with self.index.snapshot() as snapshot:
            return snapshot.similar(where or Filter(), threshold, limit)

    def measure(self, text: str, document_id: str, passage_id: str = "") -> Measured:
        """Measure one passage of a document against a text, whether a search finds it or not.

        Without a passage it is the best one by the weights of the lane.
        """
        info = self.index.info()
        vector = self._vector(text) if info.vectors else None
        probe = ProbeVector("query", text, vector)
        with self.index.snapshot() as snapshot:
            # All passages are ranked, so that the rank of the last one can be told too.
            candidates = snapshot.candidates([probe], [Filter()], info.passages, [document_id])
            return measure(candidates, snapshot, self.lane.ranking, text, (document_id, passage_id))

    def stamps(self, paths: Iterable[str] | None = None) -> Mapping[str, tuple[str, str]]:
        """Map each indexed path, or each of these that is indexed, to its stamp and version."""
        return self.index.stamps(paths)

    def info(self) -> IndexInfo:
        """Return the counts of the index and how it searches."""
        return self.index.info()

    def counts(self) -> dict[str, int]:
        """Count documents, passages, vectors and links."""
        info = self.index.info()
        return {
            "documents": info.documents,
            "chunks": info.passages,
            "vectors": info.vectors,
            "links": info.links,
        }

    def gauge(self) -> Gauge:
        """Return what scores are measured by."""
        return self._gauge(self.index.info())

    def _gauge(self, info: IndexInfo) -> Gauge:
        """Return the stored gauge, if it was made with the sources that are searched now."""
        stored = _stored_gauge(info)
        has_vectors = bool(info.vectors and not self.silence)
        if not stored or bool(stored["vectors"]) != has_vectors:
            return Gauge()
        return Gauge(stored["middle"], stored["spread"], measured=True)

    def _measure(self) -> None:
        """Search for what has nothing to do with the lane and keep the scores.

        Unless that was done on about as many passages.
        """
        info = self.index.info()
        stored = _stored_gauge(info)
        vectors = 0 if self.silence else info.vectors
        difference = abs(info.passages - stored.get("chunks", 0))
        is_changed = difference > REMEASURED * info.passages
        has_same_sources = bool(vectors) == bool(stored.get("vectors"))
        if info.passages < calibration.FEWEST_PASSAGES or (not is_changed and has_same_sources):
            return
        best = [self._best_score(Probe(text), info) for text in calibration.UNRELATED]
        gauge = calibration.measured(best)
        self.index.calibrate(
            {
                "middle": gauge.middle,
                "spread": gauge.spread,
                "chunks": info.passages,
                "vectors": vectors,
                "scale": calibration.SCALE,
            }
        )

    def _best_score(self, probe: Probe, info: IndexInfo) -> float:
        """Return the highest score of a probe before links and calibration."""
        vector = self._vector(probe.text) if info.vectors else None
        text = probe.text if self.lane.ranking.keyword_weight else ""
        ready = ProbeVector(probe.name, text, vector)
        plan = Plan(Query(probes=(probe,)), (ready,), self.lane.ranking, NEVER)
        with self.index.snapshot() as snapshot:
            candidates = snapshot.candidates(plan.probes, [Filter()], plan.pool)
        return float(score_candidates(plan, candidates).scores.totals.max(initial=0.0))

    def notes(self) -> tuple[str, ...]:
        """Say what a reader of an answer should know about the state of the index."""
        return self._notes(self.index.info())

    def _notes(self, info: IndexInfo) -> tuple[str, ...]:
        notes = []
        if self.unread:
            notes.append(
                f"still indexing: {self.unread} files are new or changed and not searched yet"
            )
        if self.silence:
            notes.append(f"keyword and graph search only: {self.silence}")
        elif info.vectors < info.passages:
            progress = f"{info.vectors} of {info.passages} passages"
            notes.append(f"still embedding: {progress} can be found by meaning")
        return tuple(notes)

    def _clean(self, change: Change) -> tuple[Change, tuple[str, ...]]:
        """Take secrets out of what is to be written; tell what was taken and from which line."""
        if not isinstance(change, Put):
            return change, ()
        if findings := self.redactor.redact(change.path).findings:
            source = self.redactor.source(findings[0])
            raise ValidationError(
                f"the name of the file holds a secret, says {source}", "Choose another name"
            )
        text, note = self.redactor.redact(change.text), self.redactor.redact(change.note)
        if text.findings:
            self._refuse_swallowed(metadata.split(change.text)[1])
        if note.findings:
            self._refuse_swallowed(change.note)
        removed = tuple(f"{finding.rule} in line {finding.line}" for finding in text.findings)
        removed += tuple(
            f"{finding.rule} in line {finding.line} of the entry" for finding in note.findings
        )
        return replace(change, text=text.text, note=note.text), removed

    def _refuse_swallowed(self, text: str) -> None:
        """Refuse a text of which a pattern of the configuration would leave nothing."""
        if source := self.redactor.swallowed_by(text, self.redactor.redact(text)):
            hint = "Nothing was written. Make the pattern match the secret alone"
            raise ValidationError(
                f"nothing would be left of the text: {source} matches all of it", hint
            )

    def _encode(self, batch: Sequence[tuple[Document, Chunk]]) -> int:
        if not batch or self.encoder is None or self.silence:
            return 0
        texts = []
        for document, passage in batch:
            texts.append(chunk.passage(document.title, passage.headings, passage.text))
        try:
            vectors = self.encoder.encode(texts)
        except UnavailableError as error:
            self.silence = str(error)
            return 0
        by_digest = {}
        for (_, passage), vector in zip(batch, vectors, strict=True):
            by_digest[passage.digest] = vector
        self.index.fill(by_digest)
        return len(batch)

    def _ranking(self, query: Query) -> Ranking:
        if query.weights is None:
            return self.lane.ranking
        vector, keyword = query.weights
        return replace(self.lane.ranking, vector_weight=vector, keyword_weight=keyword)

    def _vector(self, text: str) -> Vectors | None:
        if self.encoder is None or self.silence:
            return None
        try:
            vector = self.encoder.encode([text])[0]
        except UnavailableError as error:
            self.silence = str(error)
            return None
        return half_precision(vector)

    def _look(self, only: Sequence[str] | None) -> tuple[Scan, list[str]]:
        """Scan the store and tell which indexed paths are gone.

        What could not be looked at is not gone.
        """
        scan = self.store.scan(only)
        gone = self._gone(scan, only)
        if len(gone) > MASS_REMOVAL and len(gone) > MASS_SHARE * len(self.index.stamps()):
            time.sleep(SECOND_LOOK_SECONDS)
            scan = self.store.scan(only)
            gone = sorted(set(gone) & set(self._gone(scan, only)))
        return scan, gone

    def _gone(self, scan: Scan, only: Sequence[str] | None) -> list[str]:
        indexed = set(self.index.stamps(only))
        if only is not None:
            unknown = {path for path in only if path not in indexed} - scan.stamps.keys()
            if unknown:
                # What is neither a document nor a file may be a folder that went away with
                # everything in it.
                folders = indexed | unknown
                indexed = {path for path in self.index.stamps() if _below(path, folders)}
        gone = []
        for path in sorted(indexed - scan.stamps.keys()):
            if not _below(path, scan.unreadable.keys()):
                gone.append(path)
        return gone

    def _read(self, paths: Sequence[str], most: int) -> tuple[int, int, int, int]:
        """Read, parse, chunk and apply paths until there are so many chunks.

        Count the new, changed, same, and all.
        """
        with self._writing:
            known = self.index.stamps(paths)
            entries: list[Entry] = []
            same: dict[str, str] = {}
            gone: list[str] = []
            looked = chunks = 0
            for path in paths:
                if chunks >= most:
                    break
                looked += 1
                started = time.thread_time()
                self.skipped.pop(path, None)
                self._refused.pop(path, None)
                try:
                    source = self.store.read(path)
                except NotFoundError:
                    gone.append(path)
                    continue
                except RagdocsError as error:
                    self.skipped[path] = str(error)
                    continue
                if known.get(path, ("", ""))[1] == source.version:
                    same[path] = source.stamp
                    continue
                parsed = parse.parse(source, self.lane)
                entry = Entry(
                    parsed.document, chunk.chunk(parsed, self.lane.chunking), source.stamp
                )
                reason = objection(entry, FILE_SECONDS - (time.thread_time() - started))
                if reason:
                    self.skipped[path] = reason
                    self._refused[path] = (source.stamp, reason)
                    gone.append(path)
                    continue
                entries.append(entry)
                chunks += len(entry.chunks)
            self.index.apply(entries, gone, same)
            new = sum(entry.document.path not in known for entry in entries)
            return new, len(entries) - new, len(same), looked


def half_precision(vector: Vectors) -> Vectors:
    """Round a query's vector as those of passages are rounded, so that all engines agree."""
    return vector.astype(np.float16).astype(np.float32)


def _stored_gauge(info: IndexInfo) -> Mapping[str, float]:
    """Return the stored calibration, unless scores are made in another way since."""
    if info.calibration.get("scale") != calibration.SCALE:
        return {}
    return info.calibration


def _below(path: str, folders: AbstractSet[str]) -> bool:
    """Tell whether a path is one of these or below one; costs its depth, not their number."""
    parts = path.split("/")
    return not folders.isdisjoint(
        ["", ".", *("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))]
    )
