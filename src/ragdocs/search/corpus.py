"""The one pipeline: a lane, its store, its index and an encoder, brought to life."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from ragdocs import errors
from ragdocs.errors import NotFoundError, UnavailableError
from ragdocs.lanes import Lane, Ranking
from ragdocs.protocols import (
    Encoder,
    Facet,
    Index,
    IndexInfo,
    Order,
    ProbeVector,
    Readable,
    Ties,
    Vectors,
    Versioned,
)
from ragdocs.search.early import EarlyReader, newest_first, unread_count
from ragdocs.search.reading import ReadFiles, Reading, is_below
from ragdocs.system.turns import answering
from ragdocs.text.redaction.redact import Redactor
from ragdocs.types import (
    Change,
    Chunk,
    Document,
    Filter,
    Findings,
    Link,
    Probe,
    Query,
    Report,
    Scan,
    Written,
)

# What cuts texts, scores and encodes is imported where that is done: a command that only lists
# memories does none of it, and needs no numpy.
if TYPE_CHECKING:
    from ragdocs.search.calibration import Gauge, Gauges
    from ragdocs.search.query import Measured, Plan
    from ragdocs.search.variants import PageVariants

Progress = Callable[[str, int, int], None]

# Chunks applied in the first step, and how many times as many each further step takes. Few steps
# make few segments; but a search sees whole steps only, and a step of half a millisecond a chunk is
# what a write that comes between may have to wait for.
FIRST_BATCH = 100
GROWTH = 3
LARGEST_BATCH = 6400
# Chunks of a step while a search waits for more to be read.
AWAITED_BATCH = 900
# Passages encoded in one step.
ENCODED_AT_ONCE = 64
# Passages a writer waits for; those of a longer text that are left are encoded soon after.
ENCODED_IN_A_WRITE = 16
# A scan that would drop this many documents and this share of them all is repeated after a pause
# before it is believed: a folder in the middle of being moved or mounted looks empty.
MASS_REMOVAL = 20
MASS_SHARE = 0.5
SECOND_LOOK_SECONDS = 0.5
# What the vote of an English model is worth for a query in another language. In German pages
# meaning with its whole weight lost 1.6 points nDCG@10 on words alone; this part of it gains a
# little there, and 2 points in French.
FOREIGN_VOTE = 0.3


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
        self.embedding_unavailable = ""
        if encoder is None:
            self.embedding_unavailable = (
                'semantic search is switched off ([embedding] model = "none")'
            )
        self._reading = Reading(lane, store, index)
        # Files that a look at all of them found new or changed and has not read yet.
        self.unread = 0
        # Until when a search waits for more to be read.
        self.awaited_until = 0.0
        self._writing = threading.Lock()
        # While callers are served before the first look at all files has ended.
        self._early: EarlyReader | None = None
        # Names the paths by which the index is behind, where that is known without a look at all.
        self.behind: Callable[[], Sequence[str]] | None = None
        # Told of the documents that were indexed and of the paths that are gone.
        self.listener: Callable[[Sequence[Document], Sequence[str]], None] | None = None
        # Told what a caller wrote, and by which verb.
        self.recorder: Callable[[Corpus, Sequence[Written], str], None] | None = None

    @cached_property
    def variants(self) -> PageVariants:
        """Which pages are there in several languages or versions."""
        from ragdocs.search.variants import PageVariants

        return PageVariants(self.lane, self.index.stamps)

    @property
    def versioned(self) -> Versioned:
        """The store, if its texts can be changed; a store that is only read is refused."""
        if isinstance(self.store, Versioned):
            return self.store
        raise errors.ReadOnlyError(f"the {self.lane.name} lane is read-only")

    def serve_early(self) -> None:
        """Answer callers before the first look at all files: read for them what is newest."""
        self._early = EarlyReader(self.store, self.index, self._read_early)

    def sync(self, paths: Iterable[str] | None = None, progress: Progress | None = None) -> Report:
        """Bring the index up to the store, or to these paths of it, reading only what changed."""
        started = time.monotonic()
        if paths is None and self.behind is not None:
            return self._catch_up(self.behind(), progress)
        only = None if paths is None else sorted(set(paths))
        with self._writing:
            scan, gone = self._look(only)
            self.index.apply([], gone)
            indexed_stamps = self.index.stamps(scan.stamps)
            refused = self.refused(scan)
            changed = []
            for path, stamp in scan.stamps.items():
                indexed, _ = indexed_stamps.get(path, ("", ""))
                if indexed != stamp and path not in refused:
                    changed.append(path)
            changed = newest_first(changed, scan, indexed_stamps)
        self._tell([], gone)
        self._note_skipped(only, {**scan.unreadable, **refused})
        report = Report(removed=len(gone), unchanged=len(scan.stamps) - len(changed))
        done = 0
        most = FIRST_BATCH
        if only is None:
            self.unread = unread_count(changed, scan, indexed_stamps)
        while done < len(changed):
            read = self._read(changed[done : done + most], most)
            done += read.looked
            if only is None:
                self.unread = max(0, self.unread - read.looked)
                # The newest files are in the index now, and the others follow by themselves.
                self._early = None
            most = min(GROWTH * most, self._largest_batch)
            report = replace(
                report,
                added=report.added + read.new,
                changed=report.changed + read.changed,
                unchanged=report.unchanged + read.same,
            )
            if progress:
                progress("indexing", done, len(changed))
        if only is None:
            self._early = None
            self.unread = 0
        if "variants" in vars(self):
            # Otherwise the first search looks for them; many commands never make one.
            self.variants.learn()
        return replace(report, skipped=dict(self.skipped), seconds=time.monotonic() - started)

    def _catch_up(self, paths: Sequence[str], progress: Progress | None) -> Report:
        """Bring the index up to the store, where all other paths are known to be the same."""
        before = self.index.info().documents
        report = Report(skipped=dict(self.skipped))
        if paths:
            report = self.sync(paths, progress)
        self._early = None
        return replace(report, unchanged=before - report.changed - report.removed)

    def _note_skipped(self, only: Sequence[str] | None, reasons: Mapping[str, str]) -> None:
        """Take these as the files that are left out of what was looked at."""
        looked_at = {""} if only is None else set(only)
        for path in list(self.skipped):
            if is_below(path, looked_at):
                del self.skipped[path]
        self.skipped.update(reasons)

    def refused(self, scan: Scan) -> dict[str, str]:
        """Return which files of a scan would hold up all others, and why."""
        return self._reading.refused(scan)

    @property
    def skipped(self) -> dict[str, str]:
        """The files that are left out, and why."""
        return self._reading.skipped

    def embed(
        self,
        progress: Progress | None = None,
        stop: Callable[[], bool] = lambda: False,
        at_once: int = ENCODED_AT_ONCE,
    ) -> int:
        """Encode passages that have no vector yet until none is left.

        Return how many were encoded.
        """
        done = 0
        while not stop():
            count = self._encode(self.index.claim_missing(at_once))
            if not count:
                break
            done += count
            if progress:
                info = self.index.info()
                progress("embedding", info.vectors, info.passages)
        self.variants.prepare()
        info = self.index.info()
        if self.embedding_unavailable or info.vectors >= info.passages:
            self._measure()
        return done

    def commit(self, changes: Sequence[Change], verb: str = "update") -> list[Written]:
        """Write to the store, without secrets, and see to it that the next search knows."""
        from ragdocs.search.cleaning import clean

        cleaned = [clean(self.redactor, change) for change in changes]
        results = self.versioned.commit([change for change, _ in cleaned], verb)
        written = []
        for result, (_, removed) in zip(results, cleaned, strict=True):
            written.append(replace(result, removed=removed))
        # As the store spells them: a name may be written otherwise on disk.
        paths = {result.path for result in written}
        self.sync(paths)
        self._encode(self.index.claim_missing(ENCODED_IN_A_WRITE, paths))
        if self.recorder is not None:
            self.recorder(self, written, verb)
        return written

    @answering()
    def search(self, query: Query, now: datetime, vector: Vectors | None = None) -> Findings:
        """Search by words and by meaning, rank, and explain.

        At most four calls go to the index.
        `vector` is that of its only probe, if another lane has encoded it already.
        """
        from ragdocs.search.query import search
        from ragdocs.search.relevance import judged
        from ragdocs.search.succession import settled

        started = time.perf_counter()
        self._hasten()
        info = self.index.info()
        plan = self._plan(self.variants.chosen(query), info, now, vector)
        encoded = time.perf_counter()
        gauges = self._gauges(info)
        # Encoding takes longer than all the rest and is done before the snapshot is taken.
        with self.index.snapshot() as snapshot:
            findings = search(plan, snapshot, gauges)
        findings = self.variants.grouped(findings)
        seconds = {"encode": encoded - started, **findings.seconds}
        findings = replace(findings, notes=self._notes(info), seconds=seconds)
        if query.floored:
            findings = judged(findings, plan, gauges)
        return settled(findings, query)

    def encoded(self, text: str) -> Vectors | None:
        """Return the vector of a query, if this lane can be searched by meaning."""
        if not self.index.info().vectors:
            return None
        return self._vector(text)

    def _plan(
        self, query: Query, info: IndexInfo, now: datetime, vector: Vectors | None = None
    ) -> Plan:
        """Make a query ready: what the lane hides, vectors of its probes, the time it names."""
        from ragdocs.search.query import Plan
        from ragdocs.text import times

        where = query.where
        hidden = where.hidden
        if not where.statuses and not hidden:
            hidden = self.lane.hidden
        where = replace(where, alive_at=where.alive_at or now, hidden=hidden)
        probes = tuple(probe for probe in query.probes if probe.text.strip())
        ranking = self._ranking(query, info)
        ready = tuple(self._probe(probe, ranking, info, vector) for probe in probes)
        # Words say alone what a passage is about until it has a vector.
        has_unread = info.vectors < info.passages or self._latin_only()
        query = replace(query, where=where, probes=probes)
        unread_probes = set()
        for probe in probes:
            if info.vectors and not self._can_read(probe.text):
                unread_probes.add(probe.name)
        plan = Plan(
            query,
            ready,
            ranking,
            now,
            hidden=self.lane.hidden,
            unread_probes=frozenset(unread_probes),
            has_unread=has_unread,
        )
        if not ranking.time_weight:
            return plan
        return replace(plan, period=times.span(plan.text, now))

    def _probe(
        self, probe: Probe, ranking: Ranking, info: IndexInfo, vector: Vectors | None
    ) -> ProbeVector:
        """Return what is searched for a probe: a source without weight is left out."""
        from ragdocs.search.measuring import query_languages

        text = probe.text if ranking.keyword_weight else ""
        languages = query_languages(probe.text, info)
        if not ranking.vector_weight or not info.vectors or not self._can_read(probe.text):
            return ProbeVector(probe.name, text, languages=languages)
        if vector is None:
            vector = self._vector(probe.text)
        return ProbeVector(probe.name, text, vector, languages)

    def get(self, name: str) -> Document | None:
        """Return a document by its id or its path."""
        own_id = f"{self.lane.name}:{name.removesuffix('.md')}"
        documents = self.named([name, own_id])
        return documents.get(name) or documents.get(own_id)

    def named(self, names: Sequence[str]) -> Mapping[str, Document]:
        """Map those of these ids and paths that are indexed to their documents."""
        self._hasten()
        with self.index.snapshot() as snapshot:
            return snapshot.get(names)

    def documents(
        self,
        where: Filter | None = None,
        order: Order = "path",
        limit: int | None = None,
        now: datetime | None = None,
        offset: int = 0,
    ) -> list[Document]:
        """List documents by path, or by age as seen from `now`."""
        self._hasten()
        with self.index.snapshot() as snapshot:
            return snapshot.list(where or Filter(), order, limit, offset, now)

    def count(self, where: Filter | None = None) -> int:
        """Count documents."""
        self._hasten()
        with self.index.snapshot() as snapshot:
            return snapshot.count(where or Filter())

    def facets(self, field: Facet, where: Filter | None = None) -> dict[str, int]:
        """Count documents by the values of a field, the most frequent first."""
        self._hasten()
        with self.index.snapshot() as snapshot:
            return dict(snapshot.facets(field, where or Filter()))

    def links(
        self, to: Sequence[str], among: Collection[str] | None = None
    ) -> Mapping[str, tuple[Link, ...]]:
        """Map each document, or each among these, to its links to any of these names."""
        with self.index.snapshot() as snapshot:
            return snapshot.links(to, among)

    def tied(self, documents: Sequence[Document], kinds: Collection[str]) -> list[Document]:
        """Return the other documents that links of these kinds join to these, step by step."""
        with self.index.snapshot() as snapshot:
            tied = snapshot.tied(documents, Ties(kinds))
        return [document for document, _ in tied.values()]

    def passages(self, document_ids: Sequence[str], room: int = 0) -> Mapping[str, Sequence[Chunk]]:
        """Return the first passage of each document, and more up to `room` characters."""
        with self.index.snapshot() as snapshot:
            return snapshot.first_passages(document_ids, room)

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
        from ragdocs.search.measuring import query_languages
        from ragdocs.search.query import measure

        info = self.index.info()
        vector = None
        if info.vectors and self._can_read(text):
            vector = self._vector(text)
        probe = ProbeVector("query", text, vector, query_languages(text, info))
        with self.index.snapshot() as snapshot:
            # All passages are ranked, so that the rank of the last one can be told too.
            candidates = snapshot.candidates([probe], [Filter()], info.passages, [document_id])
            target = (document_id, passage_id)
            return measure(candidates, snapshot, self.lane.ranking, probe, target)

    def stamps(self, paths: Iterable[str] | None = None) -> Mapping[str, tuple[str, str]]:
        """Map each indexed path, or each of these that is indexed, to its stamp and version."""
        self._hasten()
        return self.index.stamps(paths)

    def read_file(self, path: str) -> Document | None:
        """Return the document of a file of this lane, whether it is indexed or not."""
        from ragdocs.search import parse

        try:
            source = self.store.read(path)
        except NotFoundError:
            return None
        return parse.parse(source, self.lane).document

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
        return self._gauges(self.index.info()).both

    def _gauges(self, info: IndexInfo) -> Gauges:
        """Return the stored gauges, if they were made with the sources that are searched now."""
        from ragdocs.search.measuring import stored_gauges

        return stored_gauges(info, has_vectors=bool(info.vectors) and self._has_model())

    def _measure(self) -> None:
        """Measure what chance scores, unless that was done on about as many passages."""
        from ragdocs.search.measuring import measure_chance

        encode = self._vector if self._has_model() else None
        measure_chance(self.index, self.lane.ranking, encode)

    def _has_model(self) -> bool:
        return not self.embedding_unavailable

    def notes(self) -> tuple[str, ...]:
        """Say what a reader of an answer should know about the state of the index."""
        return self._notes(self.index.info())

    def unread_notes(self) -> tuple[str, ...]:
        """Say how many files an answer knows nothing about, if any."""
        if not self.unread:
            return ()
        state = f"{self.unread} files are new or changed and not searched yet"
        return (f"still indexing: {state}; ask again to search them too",)

    def _notes(self, info: IndexInfo) -> tuple[str, ...]:
        notes = list(self.unread_notes())
        if self.embedding_unavailable:
            notes.append(f"keyword and graph search only: {self.embedding_unavailable}")
        elif info.vectors < info.passages:
            progress = f"{info.vectors} of {info.passages} passages"
            notes.append(f"still embedding: {progress} can be found by meaning")
        return tuple(notes)

    def _encode(self, batch: Sequence[tuple[Document, Chunk]]) -> int:
        if not batch or self.encoder is None or self.embedding_unavailable:
            return 0
        from ragdocs.search.chunk import passage
        from ragdocs.search.encoders.vectors import blank

        # A vector of zeros is that of a text that the model cannot read: it is like no other.
        by_digest = {}
        texts = {}
        for document, chunk in batch:
            text = passage(document.title, chunk.headings, chunk.text)
            if self._can_read(text):
                texts[chunk.digest] = text
            else:
                by_digest[chunk.digest] = blank(self.encoder.dim)
        try:
            vectors = self.encoder.encode(list(texts.values()))
        except UnavailableError as error:
            self.embedding_unavailable = str(error)
            return 0
        by_digest.update(zip(texts, vectors, strict=True))
        self.index.fill(by_digest)
        return len(batch)

    def _latin_only(self) -> bool:
        """Tell whether the model reads nothing but Latin letters."""
        if self.encoder is None or self.embedding_unavailable:
            return False
        return self.encoder.latin_only

    def _can_read(self, text: str) -> bool:
        """Tell whether the vector of a text would say anything."""
        from ragdocs.search.encoders.vectors import mostly_latin

        return not self._latin_only() or mostly_latin(text)

    def _ranking(self, query: Query, info: IndexInfo) -> Ranking:
        """Return how sources are weighed, where the query does not say it."""
        from ragdocs.search.measuring import query_language
        from ragdocs.text.languages import ENGLISH

        ranking = self.lane.ranking
        if query.weights is not None:
            vector, keyword = query.weights
            return replace(ranking, vector_weight=vector, keyword_weight=keyword)
        text = " ".join(probe.text for probe in query.probes)
        if self._latin_only() and query_language(text, info) != ENGLISH:
            return replace(ranking, vector_weight=FOREIGN_VOTE * ranking.vector_weight)
        return ranking

    def _vector(self, text: str) -> Vectors | None:
        if self.encoder is None or self.embedding_unavailable:
            return None
        from ragdocs.search.encoders.vectors import half_precision

        try:
            vector = self.encoder.encode([text])[0]
        except UnavailableError as error:
            self.embedding_unavailable = str(error)
            return None
        return half_precision(vector)

    def _look(self, only: Sequence[str] | None) -> tuple[Scan, list[str]]:
        """Scan the store and tell which indexed paths are gone.

        What could not be looked at is not gone.
        """
        scan = self.store.scan(only)
        gone = self._reading.gone(scan, only)
        if len(gone) > MASS_REMOVAL and len(gone) > MASS_SHARE * len(self.index.stamps()):
            time.sleep(SECOND_LOOK_SECONDS)
            scan = self.store.scan(only)
            gone = sorted(set(gone) & set(self._reading.gone(scan, only)))
        return scan, gone

    def _read(self, paths: Sequence[str], most: int) -> ReadFiles:
        """Read paths into the index until there are so many chunks."""
        with self._writing:
            result = self._reading.read(paths, most)
        self._tell(result.documents, result.gone)
        return result

    def _read_early(self, paths: Sequence[str], deadline: float) -> int:
        """Read some of these paths; none if another reader is at work until the deadline."""
        if not self._writing.acquire(timeout=max(0.0, deadline - time.monotonic())):
            return 0
        try:
            result = self._reading.read(paths, FIRST_BATCH)
        finally:
            self._writing.release()
        self._tell(result.documents, result.gone)
        return result.looked

    def _hasten(self) -> None:
        """Before an answer, see to it that the newest files are indexed."""
        early = self._early
        if early is not None:
            unread = early.read_newest()
            # As soon as the first look at all files has begun, it counts itself.
            if self._early is not None:
                self.unread = self.unread or unread

    @property
    def _largest_batch(self) -> int:
        """The chunks of a step: fewer while a search waits for them."""
        if time.monotonic() < self.awaited_until:
            return AWAITED_BATCH
        return LARGEST_BATCH

    def _tell(self, documents: Sequence[Document], gone: Sequence[str]) -> None:
        if self.listener is not None and (documents or gone):
            self.listener(documents, gone)
